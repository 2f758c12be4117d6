//! What a program does with a store, a step at a time: by a script, or at random.

use super::hardware::{LARGE_VALUE_BYTES, SPACES_MAX};
use super::model::{Content, PairChange};
use kvssd_types::{Random, StoreCondition};
use std::fmt;

/// Keys of a namespace.
const KEYS: u64 = 90;
/// The largest value of those who write much.
const HEAVY_VALUE_BYTES: u64 = 48_999;
/// Values of a batch are smaller, so that it fits.
const BATCHED_BYTES: usize = 5000;
const HEAVY_BATCHED_BYTES: usize = 12_000;
/// One of so many values is large, where values may be.
const LARGE: u64 = 24;
/// A batch has 2 changes and up to so many more.
const BATCH_CHANGES: u64 = 6;

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// A pair is stored.
    Store(usize, usize, Content),
    /// A pair is stored if the key is there, or if it is not.
    StoreIf(usize, usize, Content, StoreCondition),
    /// A pair is removed.
    Delete(usize, usize),
    /// A value is asked for.
    Retrieve(usize, usize),
    /// Changes that are made all or none.
    Batch(Vec<PairChange>),
    /// Changes that are made one by one.
    Bulk(Vec<PairChange>),
    /// A namespace is made.
    CreateSpace(usize),
    /// A namespace is deleted.
    DeleteSpace(usize),
    /// All keys of a namespace are listed.
    List(usize),
    /// The write buffer is written out.
    Flush,
    /// The store is closed in order, and opened again.
    Close,
    /// The store is dropped, and opened again.
    Drop,
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Store(space, key, Content { bytes, .. }) => write!(f, "store {space}/{key} {bytes} B"),
            Act::StoreIf(space, key, Content { bytes, .. }, condition) => {
                write!(f, "store {space}/{key} {bytes} B {condition:?}")
            }
            Act::Delete(space, key) => write!(f, "delete {space}/{key}"),
            Act::Retrieve(space, key) => write!(f, "retrieve {space}/{key}"),
            Act::Batch(changes) => write!(f, "batch of {}", changes.len()),
            Act::Bulk(changes) => write!(f, "bulk of {}", changes.len()),
            Act::CreateSpace(space) => write!(f, "create namespace {space}"),
            Act::DeleteSpace(space) => write!(f, "delete namespace {space}"),
            Act::List(space) => write!(f, "list {space}"),
            Act::Flush => write!(f, "flush"),
            Act::Close => write!(f, "close, open"),
            Act::Drop => write!(f, "drop, open"),
        }
    }
}

/// The bytes of a key: short and long ones, some the beginning of others.
#[must_use]
pub fn key(number: usize) -> Vec<u8> {
    let mut key = format!("{number:04}").into_bytes();
    key.resize(key.len() + number * number % 29, b'k');
    key
}

/// The number of a key, if it is one of these.
#[must_use]
pub fn number_of(bytes: &[u8]) -> Option<usize> {
    let number = std::str::from_utf8(bytes.get(..4)?).ok()?.parse().ok()?;
    (key(number) == bytes).then_some(number)
}

/// Steps at random.
#[derive(Clone, Debug)]
pub struct Acts {
    random: Random,
    has_large_values: bool,
    is_heavy: bool,
    values: u64,
}

impl Acts {
    /// By that seed. Half of those without large values write so much that the drive is collected.
    #[must_use]
    pub fn new(seed: u64, has_large_values: bool) -> Self {
        let is_heavy = !has_large_values && seed.is_multiple_of(2);
        Acts { random: Random::new(seed), has_large_values, is_heavy, values: seed << 24 }
    }

    /// Whether it writes so much.
    #[must_use]
    pub fn is_heavy(&self) -> bool {
        self.is_heavy
    }

    /// What those who write much begin with: every key gets a value.
    pub fn fill(&mut self) -> Vec<Act> {
        let spaces = 0..=SPACES_MAX;
        let made = spaces.clone().skip(1).map(Act::CreateSpace);
        let pairs = spaces.flat_map(|space| (0..KEYS as usize).map(move |key| (space, key)));
        let stores: Vec<Act> = pairs.map(|(space, key)| Act::Store(space, key, self.content())).collect();
        made.chain(stores).collect()
    }

    fn content(&mut self) -> Content {
        self.values += 1;
        let random = &mut self.random;
        let bytes = match random.below(40) {
            _ if self.has_large_values && random.below(LARGE) == 0 => random.below(LARGE_VALUE_BYTES.into()),
            0 => random.below(40_000),
            1..8 => random.below(20_000),
            8..20 => random.below(2500),
            _ => random.below(200),
        };
        let bytes = if self.is_heavy { (64 * bytes).min(HEAVY_VALUE_BYTES) } else { bytes };
        Content { seed: self.values, bytes: bytes as usize }
    }

    fn space(&mut self) -> usize {
        self.random.below(SPACES_MAX as u64 + 1) as usize
    }

    fn key(&mut self) -> usize {
        self.random.below(KEYS) as usize
    }

    /// Changes of a batch. None of its values is large: a batch has to fit.
    fn changes(&mut self) -> Vec<PairChange> {
        let count = 2 + self.random.below(BATCH_CHANGES);
        let change = |_| {
            let mut content = self.content();
            content.bytes %= if self.is_heavy { HEAVY_BATCHED_BYTES } else { BATCHED_BYTES };
            (self.space(), self.key(), (self.random.below(4) > 0).then_some(content))
        };
        (0..count).map(change).collect()
    }

    /// The next one.
    pub fn next_act(&mut self) -> Act {
        let (space, key) = (self.space(), self.key());
        match self.random.below(100) {
            0..45 => Act::Store(space, key, self.content()),
            // What goes need not be moved.
            60..67 | 91..93 if self.is_heavy => Act::Store(space, key, self.content()),
            45..50 => Act::StoreIf(space, key, self.content(), StoreCondition::IfAbsent),
            50..55 => Act::StoreIf(space, key, self.content(), StoreCondition::IfExists),
            55..67 => Act::Delete(space, key),
            67..77 => Act::Retrieve(space, key),
            77..85 => Act::Batch(self.changes()),
            85..88 => Act::Bulk(self.changes()),
            88..91 => Act::CreateSpace(1 + self.random.below(SPACES_MAX as u64) as usize),
            91..93 => Act::DeleteSpace(1 + self.random.below(SPACES_MAX as u64) as usize),
            93..95 => Act::List(space),
            95..97 => Act::Flush,
            97 => Act::Drop,
            _ => Act::Close,
        }
    }
}
