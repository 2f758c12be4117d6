//! TPC-C: NewOrder and Payment of a wholesale supplier.
//!
//! ```text
//!   warehouse -- 10 district -- 3000 customer -- history        item (100 000)
//!       |             +-------- orders, new_order -- order_line
//!       +------- 100 000 stock
//! ```
//!
//! Source: TPC Benchmark C, standard specification, revision 5.11: clauses 1.3 (tables), 2.1.6 (NURand), 2.4 (NewOrder), 2.5 (Payment),
//! 3.3.2 (consistency), 4.3.3 (population). Values of 512 bytes, those of customers of 1024, as KAML (section V-D) has them; its scaling
//! of 100 is [`TpcCScale::specification`]`(100)`, with 50 million rows. The paper measures the two transactions apart; [`TpcC::new`]
//! takes the share of Payment in a hundred.
//!
//! An engine finds rows by their keys alone, so the index of customers by their last names, which Payment needs in 60 of 100 cases,
//! is a table of the workload: a row for each name of a district, with the numbers of its customers. Neither transaction changes it.
//!
//! What it does not do: the other three transactions, so that orders are never delivered; the text columns, which are padding; and
//! time to think and to type.

mod check;
mod new_order;
mod nurand;
mod payment;
mod population;
mod rows;
mod scale;
#[cfg(test)]
mod tests;

pub use scale::TpcCScale;

use self::nurand::Constants;
use super::consistency::{Acknowledged, Consistency};
use super::program::{Loader, Table, Transaction, Workload};
use super::row::Rows;
use kvssd_sim::SimError;
use kvssd_types::Random;

/// The kinds of transactions.
const NEW_ORDER: usize = 0;
const PAYMENT: usize = 1;

/// The workload. Terminal t belongs to warehouse t modulo their number (clause 5.2.2: a terminal has one home).
pub struct TpcC {
    scale: TpcCScale,
    payments_percent: u64,
    constants: Constants,
    seed: u64,
    /// The payments that each terminal drew.
    payments: Vec<u64>,
}

impl TpcC {
    /// A supplier of that size, for so many terminals; `payments_percent` of its transactions are payments.
    ///
    /// # Errors
    /// [`SimError::Setup`] when the size or the share cannot be.
    pub fn new(scale: TpcCScale, payments_percent: u64, terminals: u32, seed: u64) -> Result<Self, SimError> {
        scale.check()?;
        if payments_percent > 100 {
            return Err(SimError::Setup(format!(
                "a share of payments is 0 to 100 in a hundred, not {payments_percent}"
            )));
        }
        let constants = Constants::new(&scale, &mut Random::stream(seed, u64::MAX));
        Ok(TpcC { scale, payments_percent, constants, seed, payments: vec![0; terminals as usize] })
    }
}

impl Workload for TpcC {
    fn name(&self) -> &str {
        match self.payments_percent {
            0 => "TPC-C NewOrder",
            100 => "TPC-C Payment",
            _ => "TPC-C NewOrder and Payment",
        }
    }

    fn tables(&self) -> Vec<Table> {
        self.scale.tables()
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<(), SimError> {
        population::load(&self.scale, &self.constants, self.seed, loader)
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["NewOrder", "Payment"]
    }

    fn next(&mut self, terminal: u32, random: &mut Random) -> Transaction {
        let home = u64::from(terminal) % self.scale.warehouses;
        if random.below(100) < self.payments_percent {
            let payment = &mut self.payments[terminal as usize];
            let history = rows::history_number(terminal, *payment);
            *payment += 1;
            let program = payment::Payment::draw(&self.scale, &self.constants, home, history, random);
            return Transaction { kind: PAYMENT, program: Box::new(program) };
        }
        let program = new_order::PlaceOrder::draw(&self.scale, &self.constants, home, random);
        Transaction { kind: NEW_ORDER, program: Box::new(program) }
    }

    fn check(&self, rows: &mut Rows<'_>, acknowledged: &Acknowledged) -> Result<Consistency, SimError> {
        check::check(&self.scale, rows, acknowledged)
    }

    fn resume(&mut self, rows: &mut Rows<'_>, acknowledged: &mut Acknowledged) -> Result<(), SimError> {
        for terminal in 0..acknowledged.terminals() {
            let promised = acknowledged.commits(terminal, PAYMENT);
            let is_more = rows.find::<rows::History>(rows::history_number(terminal, promised))?.is_some();
            acknowledged.add(terminal, PAYMENT, is_more.into());
            self.payments[terminal as usize] = acknowledged.commits(terminal, PAYMENT);
        }
        let mut placed = 0;
        for district in self.scale.district_numbers() {
            let next_order = rows.find::<rows::District>(district)?.map_or(0, |row| row.next_order as u64);
            placed += next_order.saturating_sub(self.scale.orders_per_district() + 1);
        }
        // Whose they were nobody asks.
        acknowledged.add(0, NEW_ORDER, placed.saturating_sub(acknowledged.commits_of_kind(NEW_ORDER)));
        Ok(())
    }
}
