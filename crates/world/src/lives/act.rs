//! What a program does with a store, a step at a time: by a script, or at random.

use super::hardware::{LARGE_VALUE_BYTES, SPACES_MAX};
use super::model::{Content, PairChange};
use kvssd_types::{Random, StoreCondition};
use std::fmt;

/// Keys of a namespace, and of one whose index grows.
const KEYS: u64 = 90;
const MANY_KEYS: u64 = 9000;
/// Stores of one act of the fill, where there are so many.
const FILLED_AT_ONCE: usize = 500;
/// The largest value of those who write much.
const HEAVY_VALUE_BYTES: u64 = 48_999;
/// Values of a batch are smaller, so that it fits.
const BATCHED_BYTES: usize = 5000;
const HEAVY_BATCHED_BYTES: usize = 12_000;
/// One of so many values is large, where values may be.
const LARGE: u64 = 24;
/// A batch has 2 changes and up to so many more.
const BATCH_CHANGES: u64 = 6;
const MANY_CHANGES: u64 = 60;
/// Where keys are many, one of so many values is larger than most.
const LARGER: u64 = 60;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// Few pairs of all sizes.
    Little,
    /// Values of many pages among them.
    Large,
    /// So much that the drive is collected.
    Much,
    /// So many small pairs that indexes grow, and that a drive of large grains is full of them.
    Many,
}

impl Writing {
    /// By that seed.
    #[must_use]
    pub fn of(seed: u64, has_large_values: bool) -> Writing {
        match seed % 8 {
            _ if has_large_values => Writing::Large,
            1 => Writing::Many,
            3 | 5 | 7 => Writing::Little,
            _ => Writing::Much,
        }
    }

    /// Whether every key gets a value before anything happens.
    #[must_use]
    pub fn fills(self) -> bool {
        matches!(self, Writing::Much | Writing::Many)
    }

    fn keys(self) -> u64 {
        if self == Writing::Many { MANY_KEYS } else { KEYS }
    }

    /// The bytes of a value.
    fn bytes(self, random: &mut Random) -> u64 {
        if self == Writing::Many {
            let most = if random.below(LARGER) == 0 { 5000 } else { random.below(500) + 1 };
            return random.below(most);
        }
        let bytes = match random.below(40) {
            _ if self == Writing::Large && random.below(LARGE) == 0 => random.below(LARGE_VALUE_BYTES.into()),
            0 => random.below(40_000),
            1..8 => random.below(20_000),
            8..20 => random.below(2500),
            _ => random.below(200),
        };
        if self == Writing::Much { (64 * bytes).min(HEAVY_VALUE_BYTES) } else { bytes }
    }
}

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
    writing: Writing,
    values: u64,
}

impl Acts {
    /// By that seed.
    #[must_use]
    pub fn new(seed: u64, writing: Writing) -> Self {
        Acts { random: Random::new(seed), writing, values: seed << 24 }
    }

    /// What is written.
    #[must_use]
    pub fn writing(&self) -> Writing {
        self.writing
    }

    /// Every key gets a value, alone, or with others where keys are many.
    pub fn fill(&mut self) -> Vec<Act> {
        let spaces = 0..=SPACES_MAX;
        let made = spaces.clone().skip(1).map(Act::CreateSpace);
        let keys = self.writing.keys() as usize;
        let pairs = spaces.flat_map(|space| (0..keys).map(move |key| (space, key)));
        let stores: Vec<PairChange> = pairs.map(|(space, key)| (space, key, Some(self.content()))).collect();
        let at_once = if self.writing == Writing::Many { FILLED_AT_ONCE } else { 1 };
        let filled = stores.chunks(at_once).map(|stores| match *stores {
            [(space, key, Some(content))] => Act::Store(space, key, content),
            _ => Act::Bulk(stores.to_vec()),
        });
        made.chain(filled).collect()
    }

    fn content(&mut self) -> Content {
        self.values += 1;
        let bytes = self.writing.bytes(&mut self.random);
        Content { seed: self.values, bytes: bytes as usize }
    }

    fn space(&mut self) -> usize {
        self.random.below(SPACES_MAX as u64 + 1) as usize
    }

    fn key(&mut self) -> usize {
        self.random.below(self.writing.keys()) as usize
    }

    /// Changes of a batch. None of its values is large: a batch has to fit.
    fn changes(&mut self) -> Vec<PairChange> {
        let count = 2 + self.random.below(if self.writing == Writing::Many { MANY_CHANGES } else { BATCH_CHANGES });
        let change = |_| {
            let mut content = self.content();
            content.bytes %= if self.writing == Writing::Much { HEAVY_BATCHED_BYTES } else { BATCHED_BYTES };
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
            60..67 | 91..93 if self.writing == Writing::Much => Act::Store(space, key, self.content()),
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
