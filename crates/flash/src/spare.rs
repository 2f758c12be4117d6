//! Memory that a medium of memory gives up ([`Backing::give_up`](crate::Backing::give_up)), as one does whose pages are dear, for tests of what a
//! firmware does with it.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is given up at a time.
const PIECE_BYTES: u64 = 8192;

/// So many bytes that are still there.
#[derive(Debug, Default)]
pub(crate) struct Spare(AtomicU64);

impl Spare {
    pub(crate) fn new(bytes: u64) -> Self {
        Spare(AtomicU64::new(bytes))
    }

    /// Gives up some of it: so many bytes.
    pub(crate) fn give_up(&self) -> u64 {
        let left = |bytes: u64| Some(bytes.saturating_sub(PIECE_BYTES));
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).unwrap_or_default();
        before.min(PIECE_BYTES)
    }
}

impl Clone for Spare {
    fn clone(&self) -> Self {
        Spare::new(self.0.load(Ordering::Relaxed))
    }
}
