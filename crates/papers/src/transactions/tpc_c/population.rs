//! The rows that there are in the beginning (clause 4.3.3).

use super::nurand::Constants;
use super::rows::{
    Customer, CustomerName, District, History, Item, NewOrder, Order, OrderLine, Stock, Warehouse, customer_number,
    district_number, line_number, loaded_history_number, order_number, stock_number,
};
use super::scale::{DISTRICTS, LINES, TpcCScale};
use crate::transactions::Loader;
use crate::transactions::row::{Row, RowId, Stamp};
use kvssd_sim::SimError;
use kvssd_types::Random;

/// What every customer paid before: 10.00.
const FIRST_PAYMENT: i64 = 1000;
/// The quantity of every loaded line.
const FIRST_QUANTITY: i64 = 5;

pub(super) fn load(
    scale: &TpcCScale,
    constants: &Constants,
    seed: u64,
    loader: &mut Loader<'_>,
) -> Result<(), SimError> {
    let mut random = Random::stream(seed, u64::MAX - 1);
    let district_payments = FIRST_PAYMENT * scale.customers_per_district as i64;
    for item in 0..scale.items {
        give(loader, item, &Item { price: between(&mut random, 100, 10_000) })?;
    }
    for warehouse in 0..scale.warehouses {
        let year_to_date = district_payments * DISTRICTS as i64;
        give(loader, warehouse, &Warehouse { tax: between(&mut random, 0, 2000), year_to_date })?;
        for item in 0..scale.items {
            let stock = Stock { quantity: between(&mut random, 10, 100), ..Stock::default() };
            give(loader, stock_number(warehouse, item), &stock)?;
        }
        for district in 0..DISTRICTS {
            let number = district_number(warehouse, district);
            let tax = between(&mut random, 0, 2000);
            let next_order = scale.orders_per_district() as i64 + 1;
            give(loader, number, &District { tax, year_to_date: district_payments, next_order })?;
            customers(scale, constants, number, &mut random, loader)?;
            orders(scale, warehouse, number, &mut random, loader)?;
        }
    }
    Ok(())
}

/// The customers of a district with their payments, and the index of their names.
fn customers(
    scale: &TpcCScale,
    constants: &Constants,
    district: u64,
    random: &mut Random,
    loader: &mut Loader<'_>,
) -> Result<(), SimError> {
    let mut names = vec![CustomerName::default(); scale.names() as usize];
    for customer in 0..scale.customers_per_district {
        // The first customers have each name once.
        let name = if customer < scale.names() { customer } else { constants.loaded_name.draw(random) };
        let number = customer_number(district, customer);
        let row = Customer {
            name: name as i64,
            has_bad_credit: i64::from(random.below(10) == 0),
            discount: between(random, 0, 5000),
            balance: -FIRST_PAYMENT,
            year_to_date: FIRST_PAYMENT,
            payments: 1,
        };
        give(loader, number, &row)?;
        let payment = History { customer: number as i64, district: district as i64, amount: FIRST_PAYMENT };
        give(loader, loaded_history_number(number), &payment)?;
        names[name as usize].customers.push(number);
    }
    names.iter().enumerate().try_for_each(|(name, row)| give(loader, customer_number(district, name as u64), row))
}

/// The orders of a district: one of each customer, in an order that is drawn; the last three tenths are not delivered.
fn orders(
    scale: &TpcCScale,
    warehouse: u64,
    district: u64,
    random: &mut Random,
    loader: &mut Loader<'_>,
) -> Result<(), SimError> {
    let mut customers: Vec<u64> = (0..scale.orders_per_district()).collect();
    for last in (1..customers.len()).rev() {
        customers.swap(last, random.below(last as u64 + 1) as usize);
    }
    for (order, customer) in (1..).zip(customers) {
        let is_new = order >= scale.first_new_order();
        let carrier = if is_new { 0 } else { between(random, 1, 10) };
        let lines = between(random, LINES.0 as i64, LINES.1 as i64);
        let number = order_number(district, order);
        give(loader, number, &Order { customer: customer as i64, carrier, lines, is_local: 1 })?;
        for line in 1..=lines as u64 {
            let row = OrderLine {
                item: random.below(scale.items) as i64,
                supply_warehouse: warehouse as i64,
                quantity: FIRST_QUANTITY,
                amount: if is_new { between(random, 1, 999_999) } else { 0 },
            };
            give(loader, line_number(number, line), &row)?;
        }
        if is_new {
            give(loader, number, &NewOrder { order: order as i64 })?;
        }
    }
    Ok(())
}

fn give<R: Row>(loader: &mut Loader<'_>, number: u64, row: &R) -> Result<(), SimError> {
    let id = RowId::of::<R>(number);
    loader(id, row.to_value(Stamp::loaded(id)))
}

/// A number from `low` to `high`.
pub(super) fn between(random: &mut Random, low: i64, high: i64) -> i64 {
    low + random.below((high - low + 1) as u64) as i64
}
