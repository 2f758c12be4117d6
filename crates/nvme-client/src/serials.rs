//! The serials of a host's changes, and which of them are outstanding.
//!
//! ```text
//!   released released | 17 outstanding, 18 released, 19 outstanding | next: 20
//!                       ^ oldest
//! ```
//!
//! A drive recognizes a serial while it is within its window below the highest that it has seen. So none is allocated
//! while the oldest outstanding one would leave the window.

use kvssd_runtime::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use kvssd_runtime::time::Duration;
use std::collections::VecDeque;

/// Allocates serials in order.
#[derive(Debug, Default)]
pub(crate) struct Serials {
    window: Mutex<Window>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct Window {
    /// All serials up to this one are released; `is_released` begins with the next.
    before: u64,
    is_released: VecDeque<bool>,
}

/// A serial of a change. To drop it releases it: the change is completed, or given up.
#[derive(Debug)]
pub(crate) struct Serial {
    number: u64,
    of: Arc<Serials>,
}

impl Serials {
    /// Allocates the next serial; `None` while `window` serials or more are between the oldest outstanding one and
    /// that.
    pub(crate) fn allocate(self: &Arc<Self>, window: u64) -> Option<Serial> {
        let mut state = self.lock();
        if state.is_released.len() as u64 >= window {
            return None;
        }
        state.is_released.push_back(false);
        let number = state.before + state.is_released.len() as u64;
        Some(Serial { number, of: self.clone() })
    }

    /// Waits until the oldest serial is released, for `time_max` at most.
    pub(crate) fn wait(&self, time_max: Duration) {
        let state = self.lock();
        drop(self.released.wait_timeout(state, time_max));
    }

    /// A panic leaves the window whole, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Serial {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Serial {
    fn drop(&mut self) {
        let mut state = self.of.lock();
        let index = (self.number - state.before - 1) as usize;
        state.is_released[index] = true;
        let mut moved = false;
        while state.is_released.front() == Some(&true) {
            state.is_released.pop_front();
            state.before += 1;
            moved = true;
        }
        drop(state);
        if moved {
            self.of.released.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_outstanding_serial_stays_in_the_window() {
        let serials = Arc::new(Serials::default());
        let mut held: Vec<Serial> = (0..4).map(|_| serials.allocate(4).unwrap()).collect();
        assert!(held.iter().map(Serial::number).eq(1..=4));
        assert!(serials.allocate(4).is_none());
        held.remove(2);
        assert!(serials.allocate(4).is_none(), "1 is outstanding still");
        held.remove(0);
        assert_eq!(serials.allocate(4).unwrap().number(), 5);
        drop(held);
        assert_eq!(serials.allocate(4).unwrap().number(), 6);
        assert!(serials.lock().is_released.is_empty());
    }
}
