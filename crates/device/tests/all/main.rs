//! The drive, in memory and in files. One program: each that is linked costs as much as many tests.

mod drive;
mod durability;
mod images;
mod requests;
mod validation_pm983;

/// The names of the designs that an image can have.
fn designs() -> impl Iterator<Item = &'static str> {
    kvssd_ftl::DESIGNS.into_iter().map(|design| design.name)
}
