//! The numbers of a host's changes, and which of them are not answered yet.
//!
//! ```text
//!   answered answered | 17 under way, 18 answered, 19 under way | next: 20
//!                       ^ oldest
//! ```
//!
//! A drive knows again what is within its window of the highest number that it has seen. So no number is given while the oldest that is under way
//! would leave it.

use kvssd_runtime::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use kvssd_runtime::time::Duration;
use std::collections::VecDeque;

/// The numbers of a host's changes.
#[derive(Debug, Default)]
pub(super) struct Serials {
    window: Mutex<Window>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct Window {
    /// Numbers before the first of `is_released`, which are all released.
    before: u64,
    is_released: VecDeque<bool>,
}

/// The number of a change, until it is dropped: then the change is answered, or given up.
#[derive(Debug)]
pub(super) struct Serial {
    number: u64,
    of: Arc<Serials>,
}

impl Serials {
    /// The next number, unless one that is not released yet would be `window` or more below.
    pub(super) fn take(self: &Arc<Self>, window: u64) -> Option<Serial> {
        let mut state = self.lock();
        if state.is_released.len() as u64 >= window {
            return None;
        }
        state.is_released.push_back(false);
        let number = state.before + state.is_released.len() as u64;
        Some(Serial { number, of: self.clone() })
    }

    /// Waits until a number is released, but no longer than that.
    pub(super) fn wait(&self, time_max: Duration) {
        let state = self.lock();
        drop(self.released.wait_timeout(state, time_max));
    }

    /// What is in it is whole between any two statements that can panic.
    fn lock(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Serial {
    pub(super) fn number(&self) -> u64 {
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
    fn the_oldest_that_is_under_way_stays_in_the_window() {
        let serials = Arc::new(Serials::default());
        let mut held: Vec<Serial> = (0..4).map(|_| serials.take(4).unwrap()).collect();
        assert!(held.iter().map(Serial::number).eq(1..=4));
        assert!(serials.take(4).is_none());
        held.remove(2);
        assert!(serials.take(4).is_none(), "1 is under way still");
        held.remove(0);
        assert_eq!(serials.take(4).unwrap().number(), 5);
        drop(held);
        assert_eq!(serials.take(4).unwrap().number(), 6);
        assert!(serials.lock().is_released.is_empty());
    }
}
