//! What must hold (clause 3.3.2), and what was promised.
//!
//! | condition | of each   | what                                                                        |
//! |-----------|-----------|-----------------------------------------------------------------------------|
//! | 1         | warehouse | its payments are the sum of those of its districts                          |
//! | 2, 3      | district  | orders and new orders end before the next order's number and have no gaps   |
//! | 4, 6      | order     | it has as many lines as it says                                             |
//! | 5         | order     | it is a new order just when nobody delivered it                             |
//! | 8, 9      | district  | its payments are the sum of its history; so are the warehouse's, with 1     |
//! | 10, 12    | customer  | balance, payments and their number are those of the history (none delivers) |
//! | beyond    | warehouse | its stocks were ordered as often, and as much, as lines say                 |
//! | beyond    | terminal  | its payments have no gaps, and none that was acknowledged is lost           |
//! | beyond    | all       | no order that was acknowledged is lost                                      |

use super::super::broken::broken_row;
use super::rows::{
    Customer, District, History, NewOrder, Order, OrderLine, Stock, Warehouse, customer_number, district_number,
    history_number, line_number, loaded_history_number, order_number, stock_number,
};
use super::scale::{DISTRICTS, LINES, TpcCScale};
use super::{NEW_ORDER, PAYMENT};
use crate::transactions::{Acknowledged, Consistency, Row, RowId, Rows};
use kvssd_sim::SimError;
use std::collections::BTreeMap;

/// Orders that are looked for behind the last one.
const BEHIND: u64 = 4;

/// Payments: how much, and how many.
type Paid = BTreeMap<u64, (i64, i64)>;

struct Check<'c, 'r> {
    scale: &'c TpcCScale,
    rows: &'c mut Rows<'r>,
    found: Consistency,
    by_district: Paid,
    by_customer: Paid,
    /// Of each warehouse, how many were ordered and in how many lines.
    ordered: Vec<(i64, i64)>,
    orders_placed: u64,
}

pub(super) fn check(
    scale: &TpcCScale,
    rows: &mut Rows<'_>,
    acknowledged: &Acknowledged,
) -> Result<Consistency, SimError> {
    let ordered = vec![(0, 0); scale.warehouses as usize];
    let (by_district, by_customer) = (Paid::new(), Paid::new());
    let found = Consistency::default();
    let mut check = Check { scale, rows, found, by_district, by_customer, ordered, orders_placed: 0 };
    check.history(acknowledged)?;
    for warehouse in 0..scale.warehouses {
        let mut payments = 0;
        for district in 0..DISTRICTS {
            payments += check.district(district_number(warehouse, district))?;
        }
        let row: Warehouse = check.must(warehouse)?;
        check.found.verify_equal(|| format!("condition 1: W_YTD of {warehouse}"), row.year_to_date, payments);
    }
    for warehouse in 0..scale.warehouses {
        check.stocks(warehouse)?;
    }
    let (placed, promised) = (check.orders_placed, acknowledged.commits_of_kind(NEW_ORDER));
    let under_way = u64::from(acknowledged.terminals());
    check.found.verify((promised..=promised + under_way).contains(&placed), || {
        format!("there are {placed} orders beyond the loaded ones, and {promised} were acknowledged")
    });
    Ok(check.found)
}

impl Check<'_, '_> {
    fn must<R: Row>(&mut self, number: u64) -> Result<R, SimError> {
        let row = self.rows.find(number)?;
        row.ok_or_else(|| broken_row(&RowId::of::<R>(number)))
    }

    /// Adds up all payments.
    fn history(&mut self, acknowledged: &Acknowledged) -> Result<(), SimError> {
        for district in self.scale.district_numbers() {
            for customer in 0..self.scale.customers_per_district {
                let payment = self.must(loaded_history_number(customer_number(district, customer)))?;
                self.pay(payment);
            }
        }
        for terminal in 0..acknowledged.terminals() {
            let mut payments = 0;
            while let Some(payment) = self.rows.find(history_number(terminal, payments))? {
                self.pay(payment);
                payments += 1;
            }
            let promised = acknowledged.commits(terminal, PAYMENT);
            self.found.verify((promised..=promised + 1).contains(&payments), || {
                format!("terminal {terminal} has {payments} payments in the history, and {promised} were acknowledged")
            });
        }
        Ok(())
    }

    fn pay(&mut self, payment: History) {
        for (paid, number) in [(&mut self.by_district, payment.district), (&mut self.by_customer, payment.customer)] {
            let (amount, payments) = paid.entry(number as u64).or_default();
            *amount += payment.amount;
            *payments += 1;
        }
    }

    /// Verifies a district with its orders and customers; gives its payments.
    fn district(&mut self, district: u64) -> Result<i64, SimError> {
        let District { year_to_date, next_order, .. } = self.must(district)?;
        let paid = self.by_district.get(&district).copied().unwrap_or_default();
        self.found.verify_equal(|| format!("condition 9: D_YTD of {district:x}"), year_to_date, paid.0);
        let next = next_order as u64;
        for order in 1..next {
            self.order(district, order)?;
        }
        for order in next..next + BEHIND {
            let number = order_number(district, order);
            let (is_there, is_new) =
                (self.rows.find::<Order>(number)?.is_some(), self.rows.find::<NewOrder>(number)?.is_some());
            self.found.verify(!is_there && !is_new, || {
                format!("condition 2: district {district:x} has an order {order}, and its next one is {next}")
            });
        }
        self.orders_placed += (next - 1).saturating_sub(self.scale.orders_per_district());
        for customer in 0..self.scale.customers_per_district {
            let number = customer_number(district, customer);
            let row: Customer = self.must(number)?;
            let (amount, payments) = self.by_customer.get(&number).copied().unwrap_or_default();
            let is_right = (row.balance, row.year_to_date, row.payments) == (-amount, amount, payments);
            self.found.verify(is_right, || {
                format!("conditions 10 and 12: {row:x?} of {number:x}, who paid {amount} in {payments} payments")
            });
        }
        Ok(year_to_date)
    }

    /// Verifies an order that must be there, with its lines.
    fn order(&mut self, district: u64, order: u64) -> Result<(), SimError> {
        let number = order_number(district, order);
        let row: Option<Order> = self.rows.find(number)?;
        let is_new = self.rows.find::<NewOrder>(number)?.is_some();
        self.found.verify(row.is_some(), || format!("condition 2: district {district:x} has a gap at order {order}"));
        let must_be_new = order >= self.scale.first_new_order();
        self.found.verify(is_new == must_be_new, || {
            format!("condition 3: order {order} of district {district:x} is a new order, or should be: {is_new}")
        });
        let Some(row) = row else { return Ok(()) };
        self.found
            .verify(is_new == (row.carrier == 0), || format!("condition 5: order {order} of district {district:x}"));
        for line in 1..=LINES.1 {
            let of_line: Option<OrderLine> = self.rows.find(line_number(number, line))?;
            self.found.verify(of_line.is_some() == (line <= row.lines as u64), || {
                format!("condition 4: line {line} of order {order} of district {district:x}, which has {}", row.lines)
            });
            if let Some(of_line) = of_line
                && order > self.scale.orders_per_district()
            {
                let (quantity, lines) = &mut self.ordered[of_line.supply_warehouse as usize];
                *quantity += of_line.quantity;
                *lines += 1;
            }
        }
        Ok(())
    }

    fn stocks(&mut self, warehouse: u64) -> Result<(), SimError> {
        let mut stocks = (0, 0);
        for item in 0..self.scale.items {
            let stock: Stock = self.must(stock_number(warehouse, item))?;
            stocks.0 += stock.year_to_date;
            stocks.1 += stock.orders;
        }
        let ordered = self.ordered[warehouse as usize];
        self.found.verify_equal(|| format!("S_YTD of all stocks of warehouse {warehouse}"), stocks.0, ordered.0);
        self.found.verify_equal(|| format!("S_ORDER_CNT of all stocks of warehouse {warehouse}"), stocks.1, ordered.1);
        Ok(())
    }
}
