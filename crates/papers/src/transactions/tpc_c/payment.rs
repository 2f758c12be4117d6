//! Payment (clause 2.5).

use super::new_order::other_warehouse;
use super::nurand::Constants;
use super::population::between;
use super::rows::{Customer, CustomerName, District, History, Warehouse, customer_number, district_number};
use super::scale::{DISTRICTS, TpcCScale};
use crate::transactions::{End, Program, RowId, Script, Stop};
use kvssd_types::Random;

/// Of a hundred payments, those of customers of another warehouse.
const REMOTE_PERCENT: u64 = 15;
/// Of a hundred payments, those of a customer who tells the last name and no number.
const BY_NAME_PERCENT: u64 = 60;

/// Who pays: row numbers, with warehouse and district.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payer {
    Number(u64),
    Name(u64),
}

/// The transaction, with its input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payment {
    pub(super) warehouse: u64,
    pub(super) district: u64,
    pub(super) payer: Payer,
    pub(super) amount: i64,
    pub(super) history: u64,
}

impl Payment {
    /// Draws the input (clause 2.5.1).
    pub(super) fn draw(scale: &TpcCScale, constants: &Constants, home: u64, history: u64, random: &mut Random) -> Self {
        let district = district_number(home, random.below(DISTRICTS));
        let is_remote = random.below(100) < REMOTE_PERCENT;
        let customers_district = if is_remote {
            district_number(other_warehouse(scale, home, random), random.below(DISTRICTS))
        } else {
            district
        };
        let payer = if random.below(100) < BY_NAME_PERCENT {
            Payer::Name(customer_number(customers_district, constants.name.draw(random)))
        } else {
            Payer::Number(customer_number(customers_district, constants.customer.draw(random)))
        };
        Payment { warehouse: home, district, payer, amount: between(random, 100, 500_000), history }
    }
}

impl Program for Payment {
    fn run(&self, script: &mut Script<'_>) -> Result<End, Stop> {
        let amount = self.amount;
        let warehouse: Warehouse = script.read_for_update(self.warehouse)?;
        let year_to_date = warehouse.year_to_date + amount;
        script.write(self.warehouse, &Warehouse { year_to_date, ..warehouse })?;
        let district: District = script.read_for_update(self.district)?;
        let year_to_date = district.year_to_date + amount;
        script.write(self.district, &District { year_to_date, ..district })?;
        let number = match self.payer {
            Payer::Number(number) => number,
            Payer::Name(name) => {
                let customers: CustomerName = script.read(name)?;
                customers.middle().ok_or(Stop::Broken(RowId::of::<CustomerName>(name)))?
            }
        };
        let customer: Customer = script.read_for_update(number)?;
        let row = Customer {
            balance: customer.balance - amount,
            year_to_date: customer.year_to_date + amount,
            payments: customer.payments + 1,
            ..customer
        };
        script.write(number, &row)?;
        script.write(self.history, &History { customer: number as i64, district: self.district as i64, amount })?;
        Ok(End::Commit)
    }
}
