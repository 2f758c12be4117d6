use crate::machine::machine;
use std::io;

/// A random number that nobody else has: a child that is forked draws others than its parent, and than its brothers.
///
/// # Errors
/// When the system has none.
pub fn random_u64() -> io::Result<u64> {
    match machine() {
        Some(machine) => Ok(machine.random_u64()),
        // From the system each time: what a process keeps of randomness, a forked child has as well.
        None => getrandom::u64().map_err(io::Error::other),
    }
}
