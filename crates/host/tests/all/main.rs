//! The store as a program meets it. One program: each that is linked costs as much as many tests.

mod full;
mod lives;
mod namespaces;
mod pair_cache;
mod partitions;
mod ranges;
mod side_by_side;
mod slow_disk;
mod store;
mod synced_pairs;
mod transactions;

/// The names of the designs that an image can have.
fn designs() -> impl Iterator<Item = &'static str> {
    kvssd_designs::DESIGNS.into_iter().map(|design| design.name)
}
