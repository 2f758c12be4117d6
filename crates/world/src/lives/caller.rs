//! A thread that calls a store at random, and writes into the book what it was answered.
//!
//! | answer | what it means |
//! |---|---|
//! | done | it took effect between its begin and its end |
//! | refused: full, not there, there | it has no effect, and says what was there |
//! | unreachable | it was not done; only after the time that a call may take |
//! | in doubt | once at a later moment, or never; only after that time, when the disk has failed, or the drive has forgotten the client |
//! | failed (I/O) | it was not done; only when the disk has failed |

use super::book::{Line, Place, SharedBook};
use super::excuses::Excuses;
use crate::linear::Found;
use kvssd_host::{Batch, Error, Namespace, NamespaceId, Store};
use kvssd_runtime::time::{Duration, Instant};
use kvssd_types::{Random, StoreCondition};
use std::rc::Rc;

/// Keys that are listed at the most: more than there are.
const LIST: usize = 1000;
/// Keys that all ask for: fewer than there are.
const HOT_KEYS: usize = 2;
/// Keys of a call of several.
const SEVERAL: u64 = 8;
/// A drive gives up so long before the time is over at the most.
const EARLY: Duration = Duration::from_millis(50);

/// What keys of accounts begin with, which are no callers'.
pub const ACCOUNT: &[u8] = b"account";

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It was answered, or the drive was not reached in time.
    Answered,
    /// The store takes nothing any more, and says so.
    Ended(Error),
}

/// What a store is asked for.
pub struct Caller {
    /// What it writes into.
    pub book: SharedBook,
    /// What it does.
    pub random: Random,
    /// How many keys there are.
    pub keys: usize,
    /// One of so many values is large.
    pub large_one_in: u64,
    /// Bytes of the largest.
    pub large_bytes: u64,
    /// The wire; none where there is none, and nothing is in doubt.
    pub wire: Option<Wire>,
}

/// What is between a caller and a drive.
pub struct Wire {
    /// How long a call may take.
    pub time_max: Duration,
    /// What it may be told before.
    pub excuses: Rc<Excuses>,
}

/// The bytes of a key: at the most 16.
#[must_use]
pub fn key(number: usize) -> Vec<u8> {
    let mut key = format!("{number:02}").into_bytes();
    key.resize(key.len() + number % 13, b'k');
    key
}

/// The number of a key.
#[must_use]
pub fn number_of(key: &[u8]) -> Option<usize> {
    std::str::from_utf8(key.get(..2)?).ok()?.parse().ok()
}

impl Caller {
    /// A key; one in three is one of the few that all others ask for, too.
    fn key(&mut self) -> usize {
        let among = if self.random.below(3) == 0 { HOT_KEYS } else { self.keys };
        self.random.below(among as u64) as usize
    }

    fn several(&mut self) -> Vec<usize> {
        let mut several: Vec<usize> = (0..2 + self.random.below(SEVERAL)).map(|_| self.key()).collect();
        several.sort_unstable();
        several.dedup();
        several
    }

    /// A value for a key, and its number.
    pub fn value(&mut self, place: Place, is_one_of_many: bool) -> (u64, Vec<u8>) {
        let random = &mut self.random;
        let bytes = match random.below(40) {
            _ if !is_one_of_many && self.large_one_in > 0 && random.below(self.large_one_in) == 0 => {
                random.below(self.large_bytes)
            }
            0 => random.below(40_000),
            1..6 => random.below(10_000),
            6..20 => random.below(1500),
            _ => random.below(100),
        };
        self.book.borrow_mut().new_value(place, bytes as usize)
    }

    /// Takes a step in a namespace.
    pub fn step(&mut self, store: &Store, namespace: Namespace<'_>) -> Step {
        let place = (namespace.id().0, self.key());
        match self.random.below(100) {
            0..34 => self.store(namespace, place),
            34..44 => self.store_if(namespace, place),
            44..56 => self.delete(namespace, place),
            56..74 => self.retrieve(namespace, place),
            74..80 => self.retrieve_each(namespace),
            80..86 => self.store_each(namespace),
            86..91 => self.bulk(store, namespace),
            91..95 => self.list(namespace),
            95..97 => self.exist(namespace, place),
            _ => self.flush(store),
        }
    }

    /// Looks at what somebody is changing.
    pub fn look_beside(&mut self, store: &Store) -> Step {
        let Some(place) = self.book.borrow().under_way() else { return Step::Answered };
        let namespace = store.namespace_at(NamespaceId(place.0));
        match self.random.below(8) {
            0 => self.list(namespace),
            1 => self.exist(namespace, place),
            2 => self.retrieve_each(namespace),
            _ => self.retrieve(namespace, place),
        }
    }

    fn store(&mut self, namespace: Namespace<'_>, place: Place) -> Step {
        let (number, value) = self.value(place, false);
        let line = self.book.borrow_mut().begin(place, Found::Anything, Some(Some(number)));
        let began = Instant::now();
        match namespace.store(&key(place.1), &value) {
            Ok(()) => self.done(line),
            Err(error) => self.not_done(&[line], began, error),
        }
    }

    fn store_if(&mut self, namespace: Namespace<'_>, place: Place) -> Step {
        let (number, value) = self.value(place, false);
        let condition = [StoreCondition::IfAbsent, StoreCondition::IfExists][self.random.below(2) as usize];
        let (found, refusal, otherwise) = match condition {
            StoreCondition::IfAbsent => (Found::Exactly(None), Error::KeyExists, Found::Something),
            _ => (Found::Something, Error::KeyNotFound, Found::Exactly(None)),
        };
        let line = self.book.borrow_mut().begin(place, found, Some(Some(number)));
        let began = Instant::now();
        match namespace.store_if(&key(place.1), &value, condition) {
            Ok(()) => self.done(line),
            Err(error) if error == refusal => self.found(line, otherwise, None),
            Err(error) => self.not_done(&[line], began, error),
        }
    }

    fn delete(&mut self, namespace: Namespace<'_>, place: Place) -> Step {
        let line = self.book.borrow_mut().begin(place, Found::Anything, Some(None));
        let began = Instant::now();
        match namespace.delete(&key(place.1)) {
            Ok(true) => self.found(line, Found::Something, Some(None)),
            Ok(false) => self.found(line, Found::Exactly(None), None),
            Err(error) => self.not_done(&[line], began, error),
        }
    }

    fn exist(&mut self, namespace: Namespace<'_>, place: Place) -> Step {
        let line = self.look_at(place);
        let began = Instant::now();
        match namespace.exist(&key(place.1)) {
            Ok(true) => self.found(line, Found::Something, None),
            Ok(false) => self.found(line, Found::Exactly(None), None),
            Err(error) => self.not_done(&[line], began, error),
        }
    }

    /// Asks for a value.
    pub fn retrieve(&mut self, namespace: Namespace<'_>, place: Place) -> Step {
        let line = self.look_at(place);
        let began = Instant::now();
        match namespace.retrieve(&key(place.1)) {
            Ok(value) => self.saw(line, place, value.as_deref()),
            Err(error) => self.not_done(&[line], began, error),
        }
    }

    fn retrieve_each(&mut self, namespace: Namespace<'_>) -> Step {
        let several = self.several();
        let keys: Vec<Vec<u8>> = several.iter().map(|number| key(*number)).collect();
        let places: Vec<Place> = several.iter().map(|number| (namespace.id().0, *number)).collect();
        let lines: Vec<Line> = places.iter().map(|place| self.look_at(*place)).collect();
        let (mut seen, began) = (vec![false; lines.len()], Instant::now());
        let retrieved = namespace.retrieve_each(keys.iter().map(Vec::as_slice), |number, value| {
            seen[number] = true;
            let _ = self.saw(lines[number], places[number], value.as_deref());
        });
        match retrieved {
            Ok(()) if seen.iter().all(|seen| *seen) => Step::Answered,
            Ok(()) => self.wrong("not every key was shown"),
            Err(error) => self.not_done(&left(&lines, &seen), began, error),
        }
    }

    fn store_each(&mut self, namespace: Namespace<'_>) -> Step {
        let several = self.several();
        let places: Vec<Place> = several.iter().map(|number| (namespace.id().0, *number)).collect();
        let values: Vec<(u64, Vec<u8>)> = places.iter().map(|place| self.value(*place, true)).collect();
        let keys: Vec<Vec<u8>> = several.iter().map(|number| key(*number)).collect();
        let lines: Vec<Line> =
            places.iter().zip(&values).map(|(place, (number, _))| self.change(*place, Some(*number))).collect();
        let pairs = keys.iter().zip(&values).map(|(key, (_, value))| (key.as_slice(), value.as_slice()));
        let (mut seen, began) = (vec![false; lines.len()], Instant::now());
        let stored = namespace.store_each(pairs, |number| {
            seen[number] = true;
            self.book.borrow_mut().end(lines[number]);
        });
        match stored {
            Ok(()) if seen.iter().all(|seen| *seen) => Step::Answered,
            Ok(()) => self.wrong("not every pair was stored"),
            Err(error) => self.some_done(began, error),
        }
    }

    fn bulk(&mut self, store: &Store, namespace: Namespace<'_>) -> Step {
        let (mut batch, mut lines) = (Batch::new(), Vec::new());
        for number in self.several() {
            let place = (namespace.id().0, number);
            if self.random.below(4) == 0 {
                batch.delete_in(namespace.id(), &key(number));
                lines.push(self.change(place, None));
            } else {
                let (value, bytes) = self.value(place, true);
                batch.store_in(namespace.id(), &key(number), &bytes);
                lines.push(self.change(place, Some(value)));
            }
        }
        let began = Instant::now();
        match store.bulk(&batch) {
            Ok(()) => {
                lines.into_iter().for_each(|line| drop(self.done(line)));
                Step::Answered
            }
            Err(error) => self.some_done(began, error),
        }
    }

    /// Lists all keys with one command: a look at each of them at one moment.
    pub fn list(&mut self, namespace: Namespace<'_>) -> Step {
        let lines: Vec<Line> = (0..self.keys).map(|number| self.look_at((namespace.id().0, number))).collect();
        let began = Instant::now();
        match namespace.list(None, LIST) {
            Ok(keys) => {
                let mut is_there = vec![false; self.keys];
                for name in keys {
                    match number_of(&name).filter(|number| *number < self.keys && *key(*number) == *name) {
                        Some(number) if !is_there[number] => is_there[number] = true,
                        Some(number) => return self.wrong(&format!("key {number} is listed twice")),
                        // What belongs to transactions.
                        None if name.starts_with(ACCOUNT) => {}
                        None => return self.wrong(&format!("key {name:?} is listed, which nobody stored")),
                    }
                }
                for (line, is_there) in lines.into_iter().zip(is_there) {
                    self.found(line, if is_there { Found::Something } else { Found::Exactly(None) }, None);
                }
                Step::Answered
            }
            Err(error) => self.not_done(&lines, began, error),
        }
    }

    fn flush(&mut self, store: &Store) -> Step {
        let began = Instant::now();
        match store.flush() {
            Ok(()) => Step::Answered,
            Err(error) => self.not_done(&[], began, error),
        }
    }

    /// A look at a key begins.
    pub fn look_at(&self, place: Place) -> Line {
        self.book.borrow_mut().begin(place, Found::Anything, None)
    }

    /// A change of a key begins.
    pub fn change(&self, place: Place, value: Option<u64>) -> Line {
        self.book.borrow_mut().begin(place, Found::Anything, Some(value))
    }

    /// What a look has found.
    pub fn saw(&self, line: Line, place: Place, value: Option<&[u8]>) -> Step {
        let number = value.map(|value| self.book.borrow().number_of(place, value)).transpose();
        match number {
            Ok(number) => self.found(line, Found::Exactly(number), None),
            Err(words) => self.wrong(&words),
        }
    }

    fn done(&self, line: Line) -> Step {
        self.book.borrow_mut().end(line);
        Step::Answered
    }

    fn found(&self, line: Line, found: Found, left: Option<crate::linear::Content>) -> Step {
        self.book.borrow_mut().end_with(line, found, left);
        Step::Answered
    }

    /// Something cannot be.
    pub fn wrong(&self, words: &str) -> Step {
        self.book.borrow_mut().fail(words);
        Step::Answered
    }

    /// What was asked for was refused, or is in doubt.
    pub fn not_done(&self, lines: &[Line], began: Instant, error: Error) -> Step {
        let is_in_doubt = matches!(error, Error::InDoubt { .. });
        if !is_in_doubt {
            lines.iter().for_each(|line| self.book.borrow_mut().cancel(*line));
        }
        self.some_done(began, error)
    }

    /// Some of what was asked for was not answered, and stays in doubt.
    pub fn some_done(&self, began: Instant, error: Error) -> Step {
        let Some(wire) = &self.wire else {
            return match error {
                Error::Full
                | Error::BatchTooLarge { .. }
                | Error::BatchValueTooLarge { .. }
                | Error::NoNamespace { .. } => Step::Answered,
                error => Step::Ended(error),
            };
        };
        let took = began.elapsed();
        let is_late = took + EARLY >= wire.time_max;
        match error {
            Error::Full => Step::Answered,
            Error::Unreachable { .. } | Error::InDoubt { .. } if is_late => Step::Answered,
            Error::InDoubt { .. } if wire.excuses.is_doubt(began) => Step::Answered,
            Error::Io { .. } if wire.excuses.is_failure(began) => Step::Answered,
            Error::Unreachable { .. } | Error::InDoubt { .. } => {
                self.wrong(&format!("given up after {took:?}: {error}"))
            }
            error => Step::Ended(error),
        }
    }
}

fn left(lines: &[Line], seen: &[bool]) -> Vec<Line> {
    lines.iter().zip(seen).filter(|(_, seen)| !**seen).map(|(line, _)| *line).collect()
}
