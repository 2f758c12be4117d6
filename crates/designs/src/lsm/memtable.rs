//! The MemTable: what changed since the last tables were written.
//!
//! ```text
//!   first prefix of each leaf [u64 | u64 | ...]
//!                               v     v
//!                              leaf  leaf       each up to 64 keys in their order, shared with the versions that have it as well
//! ```
//!
//! A version that is kept shares all leaves but those that change behind it.

use super::page::{ENTRY_BYTES, ENTRY_BYTES_MAX, Entry, entries_of, prefix};
use super::table::TableForm;
use kvssd_types::OwnedKey;
use std::ops::Bound;
use std::sync::Arc;

/// Keys of a leaf at the most. An estimate: a change moves half of them, and a version that is kept copies one leaf.
const LEAF_KEYS_MAX: usize = 64;

/// Keys in their order. Nearly all comparisons end with their [`prefix`]es, which lie together.
#[derive(Clone, Debug)]
struct Leaf {
    prefixes: Vec<u64>,
    known: Vec<(OwnedKey, Entry)>,
}

impl Leaf {
    fn new() -> Self {
        Leaf { prefixes: Vec::with_capacity(LEAF_KEYS_MAX), known: Vec::with_capacity(LEAF_KEYS_MAX) }
    }

    /// Where a key is, or where it would be.
    fn place(&self, key: &[u8]) -> Result<usize, usize> {
        let wanted = prefix(key);
        let before = self.prefixes.partition_point(|&other| other < wanted);
        let alike = self.prefixes[before..].iter().take_while(|&&other| other == wanted).count();
        let place = self.known[before..before + alike].binary_search_by(|(known, _)| (**known).cmp(key));
        place.map(|place| before + place).map_err(|place| before + place)
    }

    fn insert(&mut self, place: usize, key: &[u8], entry: Entry) {
        self.prefixes.insert(place, prefix(key));
        self.known.insert(place, (key.into(), entry));
    }

    /// Takes all from a place on.
    fn split_off(&mut self, place: usize) -> Leaf {
        let mut rest = Leaf::new();
        rest.prefixes.extend(self.prefixes.drain(place..));
        rest.known.extend(self.known.drain(place..));
        rest
    }
}

/// Keys in their order, with what the tree knows of each.
#[derive(Clone, Debug, Default)]
pub(super) struct MemTable {
    /// None is empty.
    leaves: Vec<Arc<Leaf>>,
    /// The [`prefix`] of the first key of each.
    prefixes: Vec<u64>,
    count: usize,
    key_bytes: usize,
    /// The bytes of every key, while they are alike.
    alike_bytes: Option<usize>,
}

impl MemTable {
    /// What it says of a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<Entry> {
        let leaf = self.leaves.get(self.leaf_of(key)?)?;
        leaf.place(key).ok().map(|place| leaf.known[place].1)
    }

    /// Says something else of a key.
    pub(super) fn insert(&mut self, key: &[u8], entry: Entry) {
        let number = self.leaf_of(key).unwrap_or(0);
        let place = match self.leaves.get(number).map_or(Err(0), |leaf| leaf.place(key)) {
            Ok(place) => {
                Arc::make_mut(&mut self.leaves[number]).known[place].1 = entry;
                return;
            }
            Err(place) => place,
        };
        let is_alike = self.count == 0 || self.alike_bytes == Some(key.len());
        self.alike_bytes = is_alike.then_some(key.len());
        self.key_bytes += key.len();
        self.count += 1;
        if self.leaves.is_empty() {
            self.leaves.push(Arc::new(Leaf::new()));
            self.prefixes.push(0);
        }
        let leaf = Arc::make_mut(&mut self.leaves[number]);
        leaf.insert(place, key, entry);
        self.prefixes[number] = leaf.prefixes[0];
        if leaf.known.len() == LEAF_KEYS_MAX {
            // Keys that come in their order leave full leaves behind.
            let is_last = number + 1 == self.prefixes.len() && place + 1 == LEAF_KEYS_MAX;
            let rest = leaf.split_off(if is_last { LEAF_KEYS_MAX - 1 } else { LEAF_KEYS_MAX / 2 });
            self.prefixes.insert(number + 1, rest.prefixes[0]);
            self.leaves.insert(number + 1, Arc::new(rest));
        }
    }

    /// The leaf that has a key, if it is there; none before the first key of all.
    fn leaf_of(&self, key: &[u8]) -> Option<usize> {
        let wanted = prefix(key);
        let before = self.prefixes.partition_point(|&first| first < wanted);
        let alike = self.prefixes[before..].partition_point(|&first| first == wanted);
        let in_doubt = &self.leaves[before..before + alike];
        (before + in_doubt.partition_point(|leaf| *leaf.known[0].0 <= *key)).checked_sub(1)
    }

    /// Bytes of what it holds.
    pub(super) fn bytes(&self) -> u64 {
        (self.key_bytes + self.count * ENTRY_BYTES) as u64
    }

    /// Whether one more may not fit into so many tables.
    pub(super) fn is_full(&self, form: &TableForm, tables: u32) -> bool {
        let (count, pages) = (self.count + 1, tables * form.pages_max);
        match self.alike_bytes {
            Some(key_bytes) => count > entries_of(pages, form.page_bytes, key_bytes),
            // The end of each page may be too short for the next entry.
            None => {
                let bytes = self.key_bytes + count * (ENTRY_BYTES + 3);
                bytes > pages as usize * (form.page_bytes as usize - ENTRY_BYTES_MAX)
            }
        }
    }

    /// All of it, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Entry)> {
        self.leaves.iter().flat_map(|leaf| &leaf.known).map(|(key, entry)| (&**key, *entry))
    }

    /// What it says of the keys behind this one.
    pub(super) fn behind(&self, key: &[u8]) -> MemTable {
        let mut rest = MemTable::default();
        let mut next = self.from(Bound::Excluded(key), true);
        while let Some((key, entry)) = next {
            rest.insert(key, entry);
            next = self.from(Bound::Excluded(key), true);
        }
        rest
    }

    /// The first key from one bound on, or the last up to it, and what is said of it.
    pub(super) fn from(&self, bound: Bound<&[u8]>, is_ascending: bool) -> Option<(&[u8], Entry)> {
        let (key, is_included) = match bound {
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
            Bound::Unbounded => return None,
        };
        let leaf = self.leaf_of(key);
        let place = match leaf.map_or(Err(0), |leaf| self.leaves[leaf].place(key)) {
            Ok(place) if is_included => Some(place),
            Ok(place) if is_ascending => Some(place + 1),
            Err(place) if is_ascending => Some(place),
            Ok(place) | Err(place) => place.checked_sub(1),
        };
        let number = leaf.unwrap_or(0);
        let known = match place {
            Some(place) => {
                self.leaves.get(number)?.known.get(place).or_else(|| self.leaves.get(number + 1)?.known.first())
            }
            None => leaf?.checked_sub(1).and_then(|before| self.leaves[before].known.last()),
        };
        known.map(|(key, entry)| (&**key, *entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_ftl::Grain;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Keys that are alike in their first eight bytes among others, and a version that is kept meanwhile.
        #[test]
        fn it_is_a_sorted_map(
            keys in prop::collection::vec((0u8..6, prop::collection::vec(0u8..6, 0..4)), 1..1500),
            kept_at in 0usize..1500,
            sought in prop::collection::vec((0u8..7, prop::collection::vec(0u8..7, 0..4)), 20),
        ) {
            let key_of = |(first, rest): &(u8, Vec<u8>)| [&[b'k', 0, 0, 0, 0, 0, 0, *first][..], rest].concat();
            let (mut memtable, mut model) = (Arc::new(MemTable::default()), BTreeMap::new());
            let mut kept = None;
            for (number, key) in keys.iter().enumerate() {
                if number == kept_at {
                    kept = Some((Arc::clone(&memtable), model.clone()));
                }
                let (key, entry) = (key_of(key), Entry { place: Grain(number as u64), value_bytes: 0 });
                Arc::make_mut(&mut memtable).insert(&key, entry);
                model.insert(key, entry);
            }
            for (memtable, model) in [(memtable, model)].into_iter().chain(kept) {
                prop_assert!(memtable.iter().eq(model.iter().map(|(key, &entry)| (key.as_slice(), entry))));
                prop_assert_eq!(memtable.bytes(), model.keys().map(|key| (key.len() + ENTRY_BYTES) as u64).sum::<u64>());
                let owned = |(key, &entry): (&Vec<u8>, &Entry)| (key.clone(), entry);
                let found = |found: Option<(&[u8], Entry)>| found.map(|(key, entry)| (key.to_vec(), entry));
                for key in sought.iter().map(key_of).chain([Vec::new(), vec![u8::MAX; 9]]) {
                    prop_assert_eq!(memtable.get(&key), model.get(&key).copied());
                    for bound in [Bound::Included(&*key), Bound::Excluded(&*key)] {
                        let up = model.range::<[u8], _>((bound, Bound::Unbounded)).next().map(owned);
                        let down = model.range::<[u8], _>((Bound::Unbounded, bound)).next_back().map(owned);
                        prop_assert_eq!(found(memtable.from(bound, true)), up);
                        prop_assert_eq!(found(memtable.from(bound, false)), down);
                    }
                }
            }
        }
    }
}
