//! The tables' rows and their numbers.
//!
//! ```text
//!   warehouse 16 | district 4 | customer or name 16
//!                |            | order 28 | line 4
//!   warehouse 16 | item 20
//! ```
//!
//! Warehouses, districts, customers and items are counted from 0 on here, orders and lines from 1 on, as in the specification. Money
//! is in cents, shares in ten thousandths.

use crate::transactions::row::{Row, rows};
use kvssd_types::NamespaceId;

/// Customers that a row of names has room for.
const NAME_CUSTOMERS_MAX: usize = 61;

rows! {
    Warehouse: table 1, 512 bytes {
        /// Sales tax.
        tax,
        /// All payments.
        year_to_date,
    }
    District: table 2, 512 bytes {
        /// Sales tax.
        tax,
        /// All payments.
        year_to_date,
        /// The number of the next order.
        next_order,
    }
    Customer: table 3, 1024 bytes {
        /// The last name.
        name,
        /// Whether the credit is bad.
        has_bad_credit,
        discount,
        /// What the customer owes.
        balance,
        /// All payments.
        year_to_date,
        /// How many they were.
        payments,
    }
    /// A payment.
    History: table 4, 512 bytes {
        /// Who paid: the customer's number, with warehouse and district.
        customer,
        /// Where: the district's number, with the warehouse.
        district,
        /// How much.
        amount,
    }
    /// An order that is not delivered.
    NewOrder: table 5, 512 bytes {
        /// The order's number in its district.
        order,
    }
    Order: table 6, 512 bytes {
        /// Who ordered, in the district.
        customer,
        /// Who delivered; zero when nobody did.
        carrier,
        /// How many lines it has.
        lines,
        /// Whether all is of the own warehouse.
        is_local,
    }
    /// A line of an order.
    OrderLine: table 7, 512 bytes {
        /// What.
        item,
        /// Of which warehouse's stock.
        supply_warehouse,
        /// How many.
        quantity,
        /// For how much.
        amount,
    }
    Item: table 8, 512 bytes {
        /// For how much.
        price,
    }
    /// What a warehouse has of an item.
    Stock: table 9, 512 bytes {
        /// How many.
        quantity,
        /// How many were ordered.
        year_to_date,
        /// In how many lines.
        orders,
        /// Lines of orders at other warehouses.
        remote_orders,
    }
}

/// The customers of a last name in a district, in the order of their first names, which is that of their numbers here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomerName {
    /// Their numbers, with warehouse and district.
    pub customers: Vec<u64>,
}

impl CustomerName {
    /// The customer that is meant: the one in the middle, rounded up (clause 2.5.2.2).
    #[must_use]
    pub fn middle(&self) -> Option<u64> {
        self.customers.get(self.customers.len().saturating_sub(1) / 2).copied()
    }
}

impl Row for CustomerName {
    const TABLE: NamespaceId = NamespaceId(10);
    const VALUE_BYTES: u32 = 512;

    fn encode(&self, words: &mut Vec<i64>) {
        words.push(self.customers.len() as i64);
        words.extend(self.customers.iter().map(|&customer| customer as i64));
    }

    fn decode(words: &mut dyn FnMut() -> i64) -> Self {
        let count = words().clamp(0, NAME_CUSTOMERS_MAX as i64);
        CustomerName { customers: (0..count).map(|_| words() as u64).collect() }
    }
}

/// The number of a district.
#[must_use]
pub fn district_number(warehouse: u64, district: u64) -> u64 {
    warehouse << 4 | district
}

/// The number of a customer, or of a last name, of the district of that number.
#[must_use]
pub fn customer_number(district: u64, customer: u64) -> u64 {
    district << 16 | customer
}

/// The number of an order.
#[must_use]
pub fn order_number(district: u64, order: u64) -> u64 {
    assert!(order >> 28 == 0, "a district has 2^28 orders");
    district << 28 | order
}

/// The number of a line of the order of that number.
#[must_use]
pub fn line_number(order: u64, line: u64) -> u64 {
    order << 4 | line
}

/// The number of a stock.
#[must_use]
pub fn stock_number(warehouse: u64, item: u64) -> u64 {
    warehouse << 20 | item
}

/// The number of a payment that a terminal takes.
pub(super) fn history_number(terminal: u32, payment: u64) -> u64 {
    u64::from(terminal) << 32 | payment
}

/// The number of the loaded payment of a customer.
pub(super) fn loaded_history_number(customer: u64) -> u64 {
    1 << 55 | customer
}
