//! NewOrder (clause 2.4).

use super::nurand::Constants;
use super::population::between;
use super::rows::{
    Customer, District, Item, NewOrder, Order, OrderLine, Stock, Warehouse, customer_number, district_number,
    line_number, order_number, stock_number,
};
use super::scale::{DISTRICTS, LINES, TpcCScale};
use crate::transactions::{End, Program, Script, Stop};
use kvssd_types::Random;

/// Of a hundred lines, those of another warehouse's stock.
const REMOTE_PERCENT: u64 = 1;
/// Of a hundred orders, those with an item that there is not, which roll back.
const UNUSED_ITEM_PERCENT: u64 = 1;
/// A stock never has so few after an order that this many are not brought in.
const REFILL: i64 = 91;
const QUANTITY_LEFT_MIN: i64 = 10;

#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) item: u64,
    pub(super) supply_warehouse: u64,
    pub(super) quantity: i64,
}

/// The transaction, with its input.
#[derive(Clone, Debug)]
pub(super) struct PlaceOrder {
    pub(super) warehouse: u64,
    pub(super) district: u64,
    pub(super) customer: u64,
    pub(super) lines: Vec<Line>,
}

impl PlaceOrder {
    /// Draws the input (clause 2.4.1).
    pub(super) fn draw(scale: &TpcCScale, constants: &Constants, home: u64, random: &mut Random) -> Self {
        let district = district_number(home, random.below(DISTRICTS));
        let customer = constants.customer.draw(random);
        let count = between(random, LINES.0 as i64, LINES.1 as i64);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| {
                let item = constants.item.draw(random);
                let is_remote = random.below(100) < REMOTE_PERCENT;
                let supply_warehouse = if is_remote { other_warehouse(scale, home, random) } else { home };
                Line { item, supply_warehouse, quantity: between(random, 1, 10) }
            })
            .collect();
        if random.below(100) < UNUSED_ITEM_PERCENT {
            lines.last_mut().expect("an order has lines").item = scale.items;
        }
        PlaceOrder { warehouse: home, district, customer, lines }
    }
}

/// Any warehouse but this one, when there are several.
pub(super) fn other_warehouse(scale: &TpcCScale, home: u64, random: &mut Random) -> u64 {
    match scale.warehouses {
        1 => home,
        warehouses => (home + 1 + random.below(warehouses - 1)) % warehouses,
    }
}

impl Program for PlaceOrder {
    fn run(&self, script: &mut Script<'_>) -> Result<End, Stop> {
        let warehouse: Warehouse = script.read(self.warehouse)?;
        let district: District = script.read_for_update(self.district)?;
        let order = district.next_order;
        script.write(self.district, &District { next_order: order + 1, ..district })?;
        let customer: Customer = script.read(customer_number(self.district, self.customer))?;
        let is_local = self.lines.iter().all(|line| line.supply_warehouse == self.warehouse);
        let number = order_number(self.district, order as u64);
        let row = Order {
            customer: self.customer as i64,
            carrier: 0,
            lines: self.lines.len() as i64,
            is_local: i64::from(is_local),
        };
        script.write(number, &row)?;
        script.write(number, &NewOrder { order })?;
        for (line, of_line) in (1..).zip(&self.lines) {
            let Some(item) = script.find::<Item>(of_line.item)? else { return Ok(End::RollBack) };
            self.take(script, of_line)?;
            let row = OrderLine {
                item: of_line.item as i64,
                supply_warehouse: of_line.supply_warehouse as i64,
                quantity: of_line.quantity,
                amount: of_line.quantity * item.price,
            };
            script.write(line_number(number, line), &row)?;
        }
        // What the terminal would show: the sum of the lines with taxes and discount. Nothing of it is stored.
        let _shown = (warehouse.tax, district.tax, customer.discount);
        Ok(End::Commit)
    }
}

impl PlaceOrder {
    /// Takes a line's quantity from its stock (clause 2.4.2.2).
    fn take(&self, script: &mut Script<'_>, line: &Line) -> Result<(), Stop> {
        let number = stock_number(line.supply_warehouse, line.item);
        let stock: Stock = script.read_for_update(number)?;
        let left = stock.quantity - line.quantity;
        let row = Stock {
            quantity: if left >= QUANTITY_LEFT_MIN { left } else { left + REFILL },
            year_to_date: stock.year_to_date + line.quantity,
            orders: stock.orders + 1,
            remote_orders: stock.remote_orders + i64::from(line.supply_warehouse != self.warehouse),
        };
        script.write(number, &row)
    }
}
