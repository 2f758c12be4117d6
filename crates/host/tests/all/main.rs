//! The store as a program meets it. One program: each that is linked costs as much as many tests.

mod lives;
mod namespaces;
mod store;
mod transactions;
