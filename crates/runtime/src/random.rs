use crate::machine::machine;
use std::hash::{BuildHasher, RandomState};

/// A random number that is not fit for secrets.
#[must_use]
pub fn random_u64() -> u64 {
    match machine() {
        Some(machine) => machine.random_u64(),
        // The standard library's hash tables have random keys.
        None => RandomState::new().hash_one(0u8),
    }
}
