//! Look-ups: MemTable, then the runs of tables, newest first.

use super::Lsm;
use super::page::Entry;
use super::table::TableId;
use kvssd_ftl::index::Sight;
use kvssd_ftl::{Io, readable};
use kvssd_types::KvError;
use std::ops::Range;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

impl Lsm {
    /// The table of a run that may have a key, and the page.
    fn candidate(&self, level: usize, run: Range<usize>, (key, hash): (&[u8], u64)) -> Option<(TableId, usize)> {
        let behind = self.summary.behind_in(&self.tables, level, run.clone(), key);
        let id = self.summary.level(level)[run.start + behind.checked_sub(1)?];
        Some((id, self.tables.get(id).page_of(key, hash)?))
    }

    /// What filters know a key by; nothing where there are none.
    fn hash_of(&self, key: &[u8]) -> u64 {
        if self.tables.form.filter_bits > 0 { xxh3_64(key) } else { 0 }
    }

    /// What the tree knows of a key, deleted or not.
    pub(super) fn look_up(&mut self, io: &mut Io<'_>, key: &[u8]) -> Result<Option<Entry>, KvError> {
        io.cpu(io.costs().section_ns);
        if let Some(entry) = self.memtable.get(key) {
            return Ok(Some(entry));
        }
        let (hash, summary) = (self.hash_of(key), Arc::clone(&self.summary));
        for (level, run) in summary.runs() {
            io.cpu(io.costs().section_ns);
            let Some((id, page)) = self.candidate(level, run, (key, hash)) else { continue };
            self.lookups.access();
            self.tables.fetch(io, &[(id, page)]);
            if let Some(entry) = self.tables.search(io, id, page, key)? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// As [`Lsm::look_up`], of what is to be seen without changing anything.
    pub(super) fn glance_at(&self, sight: &dyn Sight, key: &[u8]) -> Option<Option<Entry>> {
        if let Some(entry) = self.memtable.get(key) {
            return Some(Some(entry));
        }
        let hash = self.hash_of(key);
        for (level, run) in self.summary.runs() {
            let Some((id, page)) = self.candidate(level, run, (key, hash)) else { continue };
            if let Some(entry) = self.tables.glance(sight, id, page, key)? {
                return Some(Some(entry));
            }
        }
        Some(None)
    }

    /// As [`Lsm::look_up`], of many keys, run by run, the pages of each read side by side. None where that cannot be
    /// read.
    pub(super) fn look_up_all(
        &mut self,
        io: &mut Io<'_>,
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Option<Entry>>>, KvError> {
        self.look_up_in(io, keys, usize::MAX)
    }

    /// The same, in the MemTable and the newest runs, so many of them.
    pub(super) fn look_up_in(
        &mut self,
        io: &mut Io<'_>,
        keys: &[&[u8]],
        runs: usize,
    ) -> Result<Vec<Option<Option<Entry>>>, KvError> {
        let mut found: Vec<Option<Option<Entry>>> = keys.iter().map(|key| Some(self.memtable.get(key))).collect();
        let hashes: Vec<u64> = keys.iter().map(|key| self.hash_of(key)).collect();
        let summary = Arc::clone(&self.summary);
        let mut pending: Vec<usize> = (0..keys.len()).filter(|&number| found[number] == Some(None)).collect();
        for (level, run) in summary.runs().take(runs) {
            let sought = pending.iter().map(|&number| (keys[number], hashes[number]));
            let wanted: Vec<_> = sought.map(|sought| self.candidate(level, run.clone(), sought)).collect();
            let mut left = Vec::new();
            for (numbers, pages) in pending.chunks(self.step_pages).zip(wanted.chunks(self.step_pages)) {
                self.tables.fetch(io, &pages.iter().flatten().copied().collect::<Vec<_>>());
                for (&number, page) in numbers.iter().zip(pages) {
                    let Some((id, page)) = *page else {
                        left.push(number);
                        continue;
                    };
                    match readable(self.tables.search(io, id, page, keys[number]))? {
                        Some(Some(entry)) => found[number] = Some(Some(entry)),
                        Some(None) => left.push(number),
                        None => found[number] = None,
                    }
                }
            }
            pending = left;
        }
        Ok(found)
    }
}
