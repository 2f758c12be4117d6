use super::{Freed, acquire, map};
use crate::machine::{Key, machine};
use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, TryLockError};

/// As [`std::sync::RwLock`].
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(std::sync::RwLock<T>);

/// As [`std::sync::RwLockReadGuard`].
#[derive(Debug)]
#[must_use]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    held: std::sync::RwLockReadGuard<'a, T>,
    #[expect(dead_code, reason = "it is dropped")]
    freed: Freed,
}

/// As [`std::sync::RwLockWriteGuard`].
#[derive(Debug)]
#[must_use]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    held: std::sync::RwLockWriteGuard<'a, T>,
    #[expect(dead_code, reason = "it is dropped")]
    freed: Freed,
}

impl<T> RwLock<T> {
    /// A lock that is free.
    pub const fn new(value: T) -> Self {
        RwLock(std::sync::RwLock::new(value))
    }

    /// What it holds.
    ///
    /// # Errors
    /// When it is poisoned.
    pub fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Whether somebody panicked who could write.
    pub fn is_poisoned(&self) -> bool {
        self.0.is_poisoned()
    }

    /// Takes it to read, without waiting: none while somebody writes, or waits for that.
    #[inline]
    pub fn try_read(&self) -> Option<LockResult<RwLockReadGuard<'_, T>>> {
        if let Some(machine) = machine() {
            machine.may_lose_turn();
        }
        let held = match self.0.try_read() {
            Ok(held) => Ok(held),
            Err(TryLockError::Poisoned(poisoned)) => Err(poisoned),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(map(held, |held| RwLockReadGuard { held, freed: Freed(self.key()) }))
    }

    /// Waits until nobody writes.
    ///
    /// # Errors
    /// When it is poisoned.
    #[inline]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let held = match machine() {
            None => self.0.read(),
            Some(machine) => acquire(&*machine, self.key(), || self.0.try_read()),
        };
        map(held, |held| RwLockReadGuard { held, freed: Freed(self.key()) })
    }

    /// Waits until nobody reads or writes.
    ///
    /// # Errors
    /// When it is poisoned.
    #[inline]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let held = match machine() {
            None => self.0.write(),
            Some(machine) => acquire(&*machine, self.key(), || self.0.try_write()),
        };
        map(held, |held| RwLockWriteGuard { held, freed: Freed(self.key()) })
    }

    fn key(&self) -> Key {
        Key::at(Key::LOCK, &self.0)
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}
