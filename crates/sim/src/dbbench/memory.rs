//! What a drive must hold, now and at the moments when its iterators were made.

use kvssd_types::{Pattern, Value, mix64};
use std::collections::BTreeMap;

/// The bit of a version that says that the record was deleted.
const DELETED: u32 = 1 << 31;

/// The version of every record, and what versions were before while an iterator may ask for them.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    seed: u64,
    value_bytes: u32,
    /// 0 for a record that was never written.
    versions: Vec<u32>,
    /// Versions that were replaced, by record and by the change that did.
    before: BTreeMap<(u64, u64), u32>,
    changes: u64,
    /// Iterators by the last change that they see.
    iterators: BTreeMap<u64, u32>,
}

impl Memory {
    pub(super) fn new(records: u64, value_bytes: u32, seed: u64) -> Self {
        let (before, iterators) = (BTreeMap::new(), BTreeMap::new());
        Memory { seed, value_bytes, versions: vec![0; records as usize], before, changes: 0, iterators }
    }

    pub(super) fn records(&self) -> u64 {
        self.versions.len() as u64
    }

    /// Records that are there.
    pub(super) fn present(&self) -> u64 {
        self.versions.iter().filter(|&&version| is_there(version)).count() as u64
    }

    /// A record is written; gives its new value.
    pub(super) fn write(&mut self, record: u64) -> Value {
        let version = (self.versions[record as usize] & !DELETED) + 1;
        self.set(record, version);
        self.value(record, version)
    }

    /// A record is deleted; gives whether it was there.
    pub(super) fn delete(&mut self, record: u64) -> bool {
        let version = self.versions[record as usize];
        if is_there(version) {
            self.set(record, version | DELETED);
        }
        is_there(version)
    }

    fn set(&mut self, record: u64, version: u32) {
        let before = std::mem::replace(&mut self.versions[record as usize], version);
        if !self.iterators.is_empty() {
            self.changes += 1;
            self.before.insert((record, self.changes), before);
        }
    }

    /// The value of a record, if it is there.
    pub(super) fn now(&self, record: u64) -> Option<Value> {
        let version = self.versions[record as usize];
        is_there(version).then(|| self.value(record, version))
    }

    /// An iterator is made; gives the last change that it sees.
    pub(super) fn make_iterator(&mut self) -> u64 {
        *self.iterators.entry(self.changes).or_default() += 1;
        self.changes
    }

    /// An iterator that sees changes up to that one is no more.
    pub(super) fn end_iterator(&mut self, sees: u64) {
        if let Some(count) = self.iterators.get_mut(&sees) {
            *count -= 1;
            if *count == 0 {
                self.iterators.remove(&sees);
            }
        }
        if self.iterators.is_empty() {
            self.before.clear();
        }
    }

    /// The first record from `record` on that was there after change `sees`, and its value then.
    pub(super) fn next_at(&self, record: u64, sees: u64) -> Option<(u64, Value)> {
        let version = |record: u64| {
            let replaced = self.before.range((record, sees + 1)..=(record, u64::MAX)).next();
            replaced.map_or(self.versions[record as usize], |(_, version)| *version)
        };
        let found = (record..self.records()).map(|record| (record, version(record)));
        let (record, version) = found.into_iter().find(|(_, version)| is_there(*version))?;
        Some((record, self.value(record, version)))
    }

    fn value(&self, record: u64, version: u32) -> Value {
        let seed = mix64(mix64(self.seed ^ record << 20).wrapping_add(version.into())) >> 16;
        Value::Pattern(Pattern { seed, offset: 0, length: self.value_bytes })
    }
}

fn is_there(version: u32) -> bool {
    version != 0 && version & DELETED == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterators_see_what_was_there() {
        let mut memory = Memory::new(4, 10, 1);
        let (zero, two) = (memory.write(0), memory.write(2));
        let first = memory.make_iterator();
        memory.write(1);
        memory.delete(2);
        let second = memory.make_iterator();
        memory.write(2);
        assert_eq!(memory.next_at(0, first), Some((0, zero)));
        assert_eq!(memory.next_at(1, first), Some((2, two)));
        assert_eq!(memory.next_at(2, second), None);
        assert_eq!(memory.next_at(1, second).map(|(record, _)| record), Some(1));
        assert_eq!(memory.present(), 3);
        memory.end_iterator(first);
        memory.end_iterator(second);
        assert!(memory.before.is_empty());
    }
}
