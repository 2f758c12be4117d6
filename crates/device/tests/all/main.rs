//! The drive, in memory and in files. One program: each that is linked costs as much as many tests.

mod drive;
mod durability;
mod images;
mod requests;
mod validation_pm983;
