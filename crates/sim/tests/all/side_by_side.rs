//! Cases of a test that share nothing.

use std::panic::resume_unwind;
use std::thread;

/// What comes of each, all at once: the longest does not keep the others waiting.
pub fn side_by_side<T: Sync, U: Send>(all: &[T], look: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let look = &look;
    thread::scope(|scope| {
        let looks: Vec<_> = all.iter().map(|one| scope.spawn(move || look(one))).collect();
        looks.into_iter().map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
