//! A bound on the memory of values, in or out, that all connections share. Each connection has bounds of its own as
//! well, but with values of 256 MiB they are too large together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// More than one of so many parts of the memory is large: 16 MiB of 1 GiB.
const LARGE_PARTS: u64 = 64;

/// A number of bytes that connections share.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    used_bytes: AtomicU64,
    bytes_max: u64,
}

/// Bytes that one connection uses. Dropping it frees them.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    memory: Arc<MemoryBudget>,
    bytes: u64,
}

impl MemoryBudget {
    pub(crate) fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(MemoryBudget { used_bytes: AtomicU64::new(0), bytes_max })
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        self.bytes_max.saturating_sub(self.used_bytes())
    }

    /// Reserves bytes; `None` if they are not free. When no others are in use, any number is granted. What is large leaves the last quarter
    /// to what is not: its host may take minutes to send it, or have to wait for its rate.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: u64) -> Option<MemoryShare> {
        let kept_bytes = if bytes > self.bytes_max / LARGE_PARTS { self.bytes_max / 4 } else { 0 };
        let take = |share: u64| (share == 0 || share + bytes <= self.bytes_max - kept_bytes).then_some(share + bytes);
        self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(MemoryShare { memory: Arc::clone(self), bytes })
    }
}

impl MemoryShare {
    /// A share of no bytes.
    pub(crate) fn empty(memory: &Arc<MemoryBudget>) -> Self {
        MemoryShare { memory: Arc::clone(memory), bytes: 0 }
    }

    /// Adds bytes to the share, if they are free. When nobody else uses any, any number is granted.
    pub(crate) fn try_grow(&mut self, bytes: u64) -> bool {
        let (own, bytes_max) = (self.bytes, self.memory.bytes_max);
        let take = |used: u64| (used == own || used + bytes <= bytes_max).then_some(used + bytes);
        let is_taken = self.memory.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        self.bytes += if is_taken { bytes } else { 0 };
        is_taken
    }

    /// Changes the share, even beyond the budget.
    pub(crate) fn resize(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        // In one step, so that nobody sees both sizes added.
        if bytes >= self.bytes {
            self.memory.used_bytes.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            self.memory.used_bytes.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_there_again_when_it_is_dropped() {
        let memory = MemoryBudget::new(100);
        let first = memory.reserve(60).unwrap();
        assert!(memory.reserve(16).is_none());
        let mut second = memory.reserve(15).unwrap();
        assert!(memory.reserve(2).is_none() && memory.reserve(1).is_some(), "the last quarter is for what is small");
        second.resize(40);
        assert_eq!(memory.free_bytes(), 0);
        drop((first, second));
        let mut large = memory.reserve(500).unwrap();
        assert!(memory.reserve(1).is_none());
        large.resize(99);
        assert_eq!(memory.free_bytes(), 1);
        drop(large);
        assert_eq!(memory.free_bytes(), 100);
    }
}
