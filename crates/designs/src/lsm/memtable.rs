//! The MemTable: what changed since the last table was written.

use super::page::{ENTRY_BYTES, ENTRY_BYTES_MAX, Entry, entries_of};
use super::table::TableForm;
use kvssd_types::OwnedKey;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Keys in their order, with what the tree knows of each.
#[derive(Clone, Debug, Default)]
pub(super) struct MemTable {
    entries: BTreeMap<OwnedKey, Entry>,
    key_bytes: usize,
    /// The bytes of every key, while they are alike.
    alike_bytes: Option<usize>,
}

impl MemTable {
    /// What it says of a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<Entry> {
        self.entries.get(key).copied()
    }

    /// Says something else of a key.
    pub(super) fn insert(&mut self, key: &[u8], entry: Entry) {
        if let Some(known) = self.entries.get_mut(key) {
            *known = entry;
            return;
        }
        let is_alike = self.entries.is_empty() || self.alike_bytes == Some(key.len());
        self.alike_bytes = is_alike.then_some(key.len());
        self.key_bytes += key.len();
        self.entries.insert(key.into(), entry);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of what it holds.
    pub(super) fn bytes(&self) -> u64 {
        (self.key_bytes + self.entries.len() * ENTRY_BYTES) as u64
    }

    /// Whether one more may not fit into a table.
    pub(super) fn is_full(&self, form: &TableForm) -> bool {
        let count = self.entries.len() + 1;
        match self.alike_bytes {
            Some(key_bytes) => count > entries_of(form.pages_max, form.page_bytes, key_bytes),
            // The end of each page may be too short for the next entry.
            None => {
                let bytes = self.key_bytes + count * (ENTRY_BYTES + 3);
                bytes > form.pages_max as usize * (form.page_bytes as usize - ENTRY_BYTES_MAX)
            }
        }
    }

    /// All of it, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Entry)> {
        self.entries.iter().map(|(key, &entry)| (&**key, entry))
    }

    /// The first key from one bound on, or the last up to it, and what is said of it.
    pub(super) fn from(&self, bound: Bound<&[u8]>, is_ascending: bool) -> Option<(&[u8], Entry)> {
        let found = if is_ascending {
            self.entries.range::<[u8], _>((bound, Bound::Unbounded)).next()
        } else {
            self.entries.range::<[u8], _>((Bound::Unbounded, bound)).next_back()
        };
        found.map(|(key, &entry)| (&**key, entry))
    }
}
