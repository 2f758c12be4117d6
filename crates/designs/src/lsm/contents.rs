//! Everything that a tree holds, for a check.

use super::Lsm;
use super::page::{Entry, TablePage};
use super::summary::LEVELS_MAX;
use super::tables::number_of;
use kvssd_ftl::Io;
use kvssd_ftl::index::IndexFault;
use kvssd_types::OwnedKey;
use std::collections::BTreeMap;

impl Lsm {
    /// The newest entry of every key of the tree, deleted ones aside, with what is wrong on the way.
    pub(super) fn everything(&self, io: &mut Io<'_>, faults: &mut Vec<IndexFault>) -> BTreeMap<OwnedKey, Entry> {
        let mut all: BTreeMap<OwnedKey, Entry> = self.memtable.iter().map(|(key, entry)| (key.into(), entry)).collect();
        let newest_first = self.summary.level(0).iter().rev();
        let deeper = (1..LEVELS_MAX).flat_map(|level| self.summary.level(level));
        for &id in newest_first.chain(deeper) {
            let table = self.tables.get(id);
            for (page, &place) in table.place.pages.iter().enumerate() {
                let mut fault = |why: String| {
                    faults.push(IndexFault { number: number_of(id, page), place, why, loses_pairs: true });
                };
                io.read(io.packing().page_of(place), io.index_cause());
                let bytes = match self.tables.content(io, id, page) {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        fault(error.to_string());
                        continue;
                    }
                };
                let read = TablePage::new(&bytes);
                let entries: Option<Vec<(&[u8], Entry)>> = (0..read.count()).map(|index| read.get(index)).collect();
                let is_in_order = |entries: &Vec<(&[u8], Entry)>| {
                    entries.is_sorted_by(|left, right| left.0 < right.0)
                        && entries.first().is_some_and(|(key, _)| *key == &*table.range.firsts[page])
                        && entries.iter().all(|(key, _)| *key <= &*table.range.last)
                };
                let Some(entries) = entries.filter(is_in_order) else {
                    fault("its keys are not in order, or not those that it is known for".to_owned());
                    continue;
                };
                for (key, entry) in entries {
                    all.entry(key.into()).or_insert(entry);
                }
            }
        }
        all.retain(|_, entry| !entry.is_deleted());
        all
    }
}
