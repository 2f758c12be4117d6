//! A file of the disk: what the process sees, and what a stop of the machine leaves of it.

use super::pages::{PAGE_BYTES, Pages};
use kvssd_types::Random;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub(super) struct FileState {
    /// What the process sees, and what the medium has for sure.
    pub(super) cached: Pages,
    pub(super) durable: Pages,
    /// Written since the last sync that did not fail.
    loose: Vec<Loose>,
    pub(super) has_durable_name: bool,
    pub(super) failed_syncs: u64,
    /// Handles that have the lock, and whether they share it.
    pub(super) locked_by: Vec<u64>,
    pub(super) is_shared: bool,
}

#[derive(Clone, Debug)]
struct Loose {
    at: u64,
    bytes: Vec<u8>,
    /// No sync covers it any more: one failed.
    is_doubtful: bool,
}

impl FileState {
    /// A file that is on the medium as it is.
    pub(super) fn durable(pages: Pages) -> Self {
        FileState { durable: pages.clone(), cached: pages, has_durable_name: true, ..FileState::default() }
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        self.cached.write(at, bytes);
        self.loose.push(Loose { at, bytes: bytes.to_owned(), is_doubtful: false });
    }

    /// Whole pages go to the medium, with whatever else was written to them before.
    pub(super) fn sync(&mut self) {
        self.durable.set_length(self.cached.length_bytes());
        let (doubtful, loose): (Vec<Loose>, _) = self.loose.drain(..).partition(|loose| loose.is_doubtful);
        let mut synced = BTreeSet::new();
        for Loose { at, bytes, .. } in loose {
            self.durable.copy_from(&self.cached, at, bytes.len() as u64);
            synced.extend(at / PAGE_BYTES..(at + bytes.len() as u64).div_ceil(PAGE_BYTES));
        }
        self.loose.extend(doubtful.into_iter().filter(|loose| !synced.contains(&(loose.at / PAGE_BYTES))));
    }

    /// A sync failed: what it was to cover is on the medium or not, page by page.
    pub(super) fn doubt(&mut self) {
        self.failed_syncs += 1;
        for Loose { at, bytes, .. } in std::mem::take(&mut self.loose) {
            pieces(at, &bytes, PAGE_BYTES, |at, piece| {
                self.loose.push(Loose { at, bytes: piece.to_owned(), is_doubtful: true });
            });
        }
    }

    pub(super) fn lose_power(&mut self, sector_bytes: u64, random: &mut Random) {
        // A length is metadata: it is there or not as a whole, and no shorter than what was synced.
        if random.below(2) == 0 {
            self.durable.set_length(self.cached.length_bytes());
        }
        let mut by_sector: BTreeMap<u64, Vec<(u64, &[u8])>> = BTreeMap::new();
        for Loose { at, bytes, .. } in &self.loose {
            pieces(*at, bytes, sector_bytes, |at, piece| {
                by_sector.entry(at / sector_bytes).or_default().push((at, piece));
            });
        }
        for writes in by_sector.into_values() {
            let count = random.below(writes.len() as u64 + 1) as usize;
            writes[..count].iter().for_each(|(at, piece)| self.durable.write_within(*at, piece));
        }
        self.loose.clear();
        self.cached = self.durable.clone();
        self.has_durable_name = true;
    }
}

/// Shows the parts of the bytes at `at` that lie in a sector each.
fn pieces<'a>(mut at: u64, bytes: &'a [u8], sector_bytes: u64, mut show: impl FnMut(u64, &'a [u8])) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min((sector_bytes - at % sector_bytes) as usize));
        show(at, piece);
        at += piece.len() as u64;
        rest = after;
    }
}
