//! Memory that a medium of memory gives up ([`Backing::give_up`](crate::Backing::give_up)), as one does whose pages are dear, for tests of what a
//! firmware does with it.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a firmware may have of it for what it knows of records ([`Backing::heads_bytes`](crate::Backing::heads_bytes)): for few of a tiny drive's
/// records, so that others take their room.
pub(crate) const HEADS_BYTES: u64 = 8192;

/// What is given up at a time.
const PIECE_BYTES: u64 = 4096;

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
