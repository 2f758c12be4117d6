//! Databases on drives. One program: each that is linked costs as much as many tests.

mod crash_transactions;
mod isolation;
