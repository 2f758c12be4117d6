use super::{Freed, acquire, map};
use crate::machine::{Key, machine};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

/// As [`std::sync::Mutex`].
#[derive(Default)]
pub struct Mutex<T: ?Sized>(std::sync::Mutex<T>);

/// As [`std::sync::MutexGuard`].
#[must_use]
pub struct MutexGuard<'a, T: ?Sized> {
    held: std::sync::MutexGuard<'a, T>,
    freed: Freed,
    mutex: &'a Mutex<T>,
}

impl<T> Mutex<T> {
    /// A mutex that is free.
    pub const fn new(value: T) -> Self {
        Mutex(std::sync::Mutex::new(value))
    }

    /// What was in it.
    ///
    /// # Errors
    /// When it is poisoned.
    pub fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Whether somebody panicked who had it.
    pub fn is_poisoned(&self) -> bool {
        self.0.is_poisoned()
    }

    /// Waits until it can be had.
    ///
    /// # Errors
    /// When it is poisoned.
    #[inline]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let held = match machine() {
            None => self.0.lock(),
            Some(machine) => acquire(&*machine, self.key(), || self.0.try_lock()),
        };
        map(held, |held| self.guard(held))
    }

    /// Takes it if it is free.
    ///
    /// # Errors
    /// When it is not, or when it is poisoned.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        if let Some(machine) = machine() {
            machine.may_lose_turn();
        }
        match self.0.try_lock() {
            Ok(held) => Ok(self.guard(held)),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
            Err(TryLockError::Poisoned(poisoned)) => {
                Err(TryLockError::Poisoned(PoisonError::new(self.guard(poisoned.into_inner()))))
            }
        }
    }

    /// What is in it, where nobody else can have it.
    ///
    /// # Errors
    /// When it is poisoned.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }

    fn key(&self) -> Key {
        Key::at(Key::LOCK, &self.0)
    }

    fn guard<'a>(&'a self, held: std::sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { held, freed: Freed(self.key()), mutex: self }
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Frees the mutex, and gives it.
    pub(super) fn free(self) -> &'a Mutex<T> {
        self.mutex
    }

    /// Has the machine do something with its guard.
    pub(super) fn exchange<R>(
        self,
        with: impl FnOnce(std::sync::MutexGuard<'a, T>) -> LockResult<(std::sync::MutexGuard<'a, T>, R)>,
    ) -> LockResult<(Self, R)> {
        let MutexGuard { held, freed, mutex } = self;
        map(with(held), |(held, result)| (MutexGuard { held, freed, mutex }, result))
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.held.fmt(f)
    }
}
