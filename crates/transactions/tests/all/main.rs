//! Transactions without a drive. One program: each that is linked costs as much as many tests.

mod life;
mod serial;
