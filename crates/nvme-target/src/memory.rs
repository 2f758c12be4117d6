//! The memory that values take on their way in, or out, of all connections together.
//!
//! A connection has bounds of its own; where values may have 256 MiB, many connections at once are bounded here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// So many bytes, of which parts are held.
#[derive(Debug)]
pub(crate) struct Memory {
    held_bytes: AtomicU64,
    bytes_max: u64,
}

/// A part of it, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Memory {
    pub(crate) fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Memory { held_bytes: AtomicU64::new(0), bytes_max })
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that nobody holds.
    pub(crate) fn room_bytes(&self) -> u64 {
        self.bytes_max.saturating_sub(self.held_bytes())
    }

    /// So many bytes, if they are there, or nobody holds any: what comes alone always has room.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Option<Held> {
        let take = |held: u64| (held == 0 || held + bytes <= self.bytes_max).then_some(held + bytes);
        self.held_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(Held { memory: Arc::clone(self), bytes })
    }
}

impl Held {
    /// None yet.
    pub(crate) fn none(memory: &Arc<Memory>) -> Self {
        Held { memory: Arc::clone(memory), bytes: 0 }
    }

    /// It is so many bytes now, whether they are there or not.
    pub(crate) fn set(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        // In one step: nobody is to see both.
        if bytes >= self.bytes {
            self.memory.held_bytes.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            self.memory.held_bytes.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_there_again_when_it_is_dropped() {
        let memory = Memory::new(100);
        let first = memory.take(60).unwrap();
        assert!(memory.take(41).is_none());
        let second = memory.take(40).unwrap();
        assert_eq!(memory.room_bytes(), 0);
        drop((first, second));
        let mut large = memory.take(500).unwrap();
        assert!(memory.take(1).is_none());
        large.set(99);
        assert_eq!(memory.room_bytes(), 1);
        drop(large);
        assert_eq!(memory.room_bytes(), 100);
    }
}
