//! What changes also while several threads only look at a drive, for a moment each time: its iterators.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A value that is never locked for longer than it takes to find or to put something in it: nobody reads a page while he has it. Who needs
/// two takes what the firmware has before what an index has. Who has the drive alone needs no lock.
#[derive(Debug, Default)]
pub struct Shared<T>(RwLock<T>);

impl<T> Shared<T> {
    /// A value that nobody has.
    pub const fn new(value: T) -> Self {
        Shared(RwLock::new(value))
    }

    /// The value, to find something in it.
    pub fn look(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, to change it beside others.
    pub fn change(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, for who has the drive alone.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared::new(self.look().clone())
    }
}
