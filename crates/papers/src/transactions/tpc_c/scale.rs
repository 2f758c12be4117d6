//! How large the supplier is.

use super::rows::{
    Customer, CustomerName, District, History, Item, NewOrder, Order, OrderLine, Stock, Warehouse, district_number,
};
use crate::transactions::Table;
use kvssd_sim::SimError;

/// Districts of a warehouse.
pub(super) const DISTRICTS: u64 = 10;
/// Last names that there are (clause 4.3.2.3: three syllables of ten).
const NAMES: u64 = 1000;
/// Customers of a name, on the average.
const CUSTOMERS_PER_NAME: u64 = 3;
/// Lines of an order, at least and at most (clause 2.4.1.3).
pub(super) const LINES: (u64, u64) = (5, 15);

/// Rows of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TpcCScale {
    /// Warehouses.
    pub warehouses: u64,
    /// Items, of which each warehouse has a stock: 100 000.
    pub items: u64,
    /// Customers of a district, each with an order and a payment in the past: 3000.
    pub customers_per_district: u64,
}

impl TpcCScale {
    /// The tables of so many warehouses (clause 1.2.1).
    #[must_use]
    pub fn specification(warehouses: u64) -> Self {
        TpcCScale { warehouses, items: 100_000, customers_per_district: 3000 }
    }

    /// One in `factor` of the items, and of the customers with their names, orders and payments. Conflicts at warehouses and
    /// districts, which are the hottest, stay as they are; those at stocks and customers become as many times more likely, and more
    /// fits in a cache.
    #[must_use]
    pub fn thinned(self, factor: u64) -> Self {
        let divided = |rows: u64| (rows / factor.max(1)).max(1);
        TpcCScale { items: divided(self.items), customers_per_district: divided(self.customers_per_district), ..self }
    }

    pub(super) fn check(&self) -> Result<(), SimError> {
        let fits = (1..1 << 16).contains(&self.warehouses)
            && (1..1 << 20).contains(&self.items)
            && (1..1 << 16).contains(&self.customers_per_district);
        if fits {
            Ok(())
        } else {
            Err(SimError::Setup(
                "TPC-C has 1 to 65535 warehouses, and customers of a district; and 1 to 1048575 items".to_owned(),
            ))
        }
    }

    pub(super) fn districts(&self) -> u64 {
        self.warehouses * DISTRICTS
    }

    pub(super) fn district_numbers(&self) -> impl Iterator<Item = u64> + use<> {
        (0..self.districts()).map(|number| district_number(number / DISTRICTS, number % DISTRICTS))
    }

    pub(super) fn customers(&self) -> u64 {
        self.districts() * self.customers_per_district
    }

    /// Last names in a district: 1000 of 3000 customers, and as large a share of fewer.
    pub(super) fn names(&self) -> u64 {
        (self.customers_per_district / CUSTOMERS_PER_NAME).clamp(1, NAMES)
    }

    /// The loaded orders of a district: one for each customer.
    pub(super) fn orders_per_district(&self) -> u64 {
        self.customers_per_district
    }

    /// The first loaded order of a district that is not delivered: the last 900 of 3000 are not.
    pub(super) fn first_new_order(&self) -> u64 {
        self.orders_per_district() - self.orders_per_district() * 3 / 10 + 1
    }

    /// The tables. Of lines there are ten to an order on the average.
    pub(super) fn tables(&self) -> Vec<Table> {
        let orders = self.districts() * self.orders_per_district();
        let new_orders = self.districts() * (self.orders_per_district() + 1 - self.first_new_order());
        vec![
            Table::of::<Warehouse>("warehouse", self.warehouses),
            Table::of::<District>("district", self.districts()),
            Table::of::<Customer>("customer", self.customers()),
            Table::of::<History>("history", self.customers()),
            Table::of::<NewOrder>("new_order", new_orders),
            Table::of::<Order>("orders", orders),
            Table::of::<OrderLine>("order_line", orders * (LINES.0 + LINES.1) / 2),
            Table::of::<Item>("item", self.items),
            Table::of::<Stock>("stock", self.warehouses * self.items),
            Table::of::<CustomerName>("customer_name", self.districts() * self.names()),
        ]
    }
}
