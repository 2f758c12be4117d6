use super::atomic::{AtomicUsize, Ordering};
use super::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::thread::yield_now;
use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, PoisonError, TryLockError};

/// How often who finds the value taken lets others run before it sleeps. An estimate: a turn takes a few microseconds, to be woken tens.
const YIELDS_MAX: usize = 16;

/// How many may wait awake for one value. An estimate: with all of eight, one value was changed up to a third less often.
const AWAKE_MAX: usize = 2;

/// A value that threads look at side by side, and change in turns.
///
/// Who finds it taken waits at a mutex, which goes to whoever runs just then: two of them awake for a little, which keeps the cores busy where
/// there are several values. With a [`RwLock`] alone all would sleep where there are many changes.
#[derive(Debug, Default)]
pub struct Turns<T> {
    turn: Mutex<()>,
    awake: AtomicUsize,
    value: RwLock<T>,
}

/// A turn: the value, to be changed.
#[derive(Debug)]
#[must_use]
pub struct Turn<'a, T> {
    value: RwLockWriteGuard<'a, T>,
    #[expect(dead_code, reason = "it is dropped, behind the value")]
    turn: MutexGuard<'a, ()>,
}

impl<T> Turns<T> {
    /// A value that nobody has.
    pub const fn new(value: T) -> Self {
        Turns { turn: Mutex::new(()), awake: AtomicUsize::new(0), value: RwLock::new(value) }
    }

    /// The value, to look at.
    ///
    /// # Errors
    /// When somebody panicked who could change it.
    pub fn look(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        if let Some(value) = self.value.try_read() {
            return value;
        }
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let value = self.value.read();
        drop(turn);
        value
    }

    /// The value, to be changed.
    ///
    /// # Errors
    /// As [`Turns::look`].
    pub fn take(&self) -> LockResult<Turn<'_, T>> {
        let turn = self.turn();
        match self.value.write() {
            Ok(value) => Ok(Turn { value, turn }),
            Err(poisoned) => Err(PoisonError::new(Turn { value: poisoned.into_inner(), turn })),
        }
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.free_turn()
            .or_else(|| self.awaited_turn())
            .unwrap_or_else(|| self.turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn free_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A turn that comes soon. Few wait awake at a time: more would only take the cores from each other.
    fn awaited_turn(&self) -> Option<MutexGuard<'_, ()>> {
        let yields = if self.awake.fetch_add(1, Ordering::Relaxed) < AWAKE_MAX { YIELDS_MAX } else { 0 };
        let turn = (0..yields).find_map(|_| {
            yield_now();
            self.free_turn()
        });
        self.awake.fetch_sub(1, Ordering::Relaxed);
        turn
    }

    /// Whether somebody panicked who could change it.
    pub fn is_poisoned(&self) -> bool {
        self.value.is_poisoned()
    }

    /// The value, without others.
    ///
    /// # Errors
    /// As [`Turns::look`].
    pub fn into_inner(self) -> LockResult<T> {
        self.value.into_inner()
    }
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    #[test]
    fn those_who_look_see_no_change_half_made_and_no_change_is_lost() {
        let (turns, looks) = (Turns::new((0, 0)), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let mut turn = turns.take().unwrap();
                        turn.0 += 1;
                        turn.1 += 1;
                    }
                });
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let seen = turns.look().unwrap();
                        assert_eq!(seen.0, seen.1);
                        looks.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!((turns.into_inner().unwrap(), looks.into_inner()), ((8_000, 8_000), 8_000));
    }

    #[test]
    fn several_look_at_a_time_and_a_panic_in_a_turn_is_told() {
        let turns = Turns::new(1);
        let (first, second) = (turns.look().unwrap(), turns.look().unwrap());
        assert_eq!((*first, *second), (1, 1));
        drop((first, second));
        let panicked = thread::scope(|scope| {
            scope
                .spawn(|| {
                    let _turn = turns.take().unwrap();
                    panic!("planted");
                })
                .join()
        });
        assert!(panicked.is_err() && turns.is_poisoned() && turns.look().is_err() && turns.take().is_err());
    }
}
