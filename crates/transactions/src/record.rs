//! Records: what transactions read and write.

use kvssd_types::{BatchChange, Key, NamespaceId, OwnedKey, Value, mix64};
use std::collections::BTreeMap;

/// A key of a namespace: together they are the compound key of the cache (KAML, section III-D).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record<'a> {
    /// Whose key it is.
    pub namespace: NamespaceId,
    /// The key.
    pub key: Key<'a>,
}

impl Record<'_> {
    /// Spreads records over 64 bits: words of the key are mixed one into the other.
    pub(crate) fn hash(self) -> u64 {
        let bytes = self.key.bytes();
        let seed = mix64((u64::from(self.namespace.0) << 32) | bytes.len() as u64);
        bytes.chunks(8).fold(seed, |state, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            mix64(state.rotate_left(23) ^ u64::from_le_bytes(word))
        })
    }
}

/// Something for each of some records, in their order.
#[derive(Clone, Debug)]
pub struct RecordMap<T> {
    namespaces: BTreeMap<NamespaceId, BTreeMap<OwnedKey, T>>,
}

/// What a transaction makes of records: their new values, none where they are removed.
pub type WriteSet = RecordMap<Option<Value>>;

impl<T> Default for RecordMap<T> {
    fn default() -> Self {
        RecordMap { namespaces: BTreeMap::new() }
    }
}

impl<T> RecordMap<T> {
    /// What belongs to the record.
    #[must_use]
    pub fn get(&self, record: Record<'_>) -> Option<&T> {
        self.namespaces.get(&record.namespace)?.get(record.key.bytes())
    }

    /// Puts something in the place of what belongs to the record.
    pub(crate) fn insert(&mut self, record: Record<'_>, item: T) {
        let keys = self.namespaces.entry(record.namespace).or_default();
        match keys.get_mut(record.key.bytes()) {
            Some(place) => *place = item,
            None => {
                keys.insert(record.key.bytes().into(), item);
            }
        }
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty()
    }

    /// The number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.namespaces.values().map(BTreeMap::len).sum()
    }

    /// All records.
    pub fn iter(&self) -> impl Iterator<Item = (Record<'_>, &T)> {
        self.namespaces.iter().flat_map(|(&namespace, keys)| {
            keys.iter().map(move |(key, item)| (Record { namespace, key: Key::new(key).expect("it was one") }, item))
        })
    }

    pub(crate) fn clear(&mut self) {
        self.namespaces.clear();
    }
}

impl WriteSet {
    /// The batch that makes them so.
    #[must_use]
    pub fn changes(&self) -> Vec<BatchChange<'_>> {
        self.iter()
            .map(|(Record { namespace, key }, value)| BatchChange { namespace, key, value: value.clone() })
            .collect()
    }
}
