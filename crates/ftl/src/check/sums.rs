//! The checks that need all pages: which grains live, and which keys exist twice.

use crate::check::Harm;
use crate::check::walk::{Walk, page_name, page_now, place};
use crate::layout::address::Grain;
use kvssd_flash::{PageAddress, SuperblockId};
use std::collections::BTreeSet;

impl Walk<'_> {
    /// The key of the record at a place, for people.
    fn key_at(&mut self, at: Grain) -> Option<Vec<u8>> {
        let packing = self.media.space.packing;
        let (page, start) = packing.start_of(at);
        let (_, data) = page_now(self.media, page).ok()??;
        let head = packing.head(data, start).ok()?;
        Some(head.key(data, start, &mut [0; 255]).to_vec())
    }

    fn key_name(&mut self, at: Grain) -> String {
        let key = self.key_at(at).unwrap_or_default();
        format!("{}, key \"{}\"", place(self.media, at), key.escape_ascii())
    }

    /// Checks that records are complete and do not overlap.
    pub(super) fn records(&mut self) {
        let mut runs = std::mem::take(&mut self.ledger.runs);
        runs.sort_unstable();
        for &(first, grains, record) in &runs {
            let (page, last) = (self.media.space.packing.page_of(first).0, Grain(first.0 + u64::from(grains) - 1));
            for page in (page..=self.media.space.packing.page_of(last).0).map(PageAddress) {
                let is_head = page == self.media.space.packing.page_of(record);
                let why = match self.continues[page.0 as usize] {
                    _ if is_head => continue,
                    Some(continued) if continued == record => continue,
                    Some(_) => "belongs to another record",
                    None => "cannot be read",
                };
                let at = self.key_name(record);
                let what = format!("page {}, on which the value goes on, {why}", page.0);
                self.report.find(Harm::PairLost, at, what);
            }
        }
        for pair in runs.windows(2) {
            let [(first, grains, left), (next, _, right)] = *pair else { continue };
            if first.0 + u64::from(grains) > next.0 {
                let at = self.key_name(left);
                let what = format!("the record at {} lies over this one", self.key_name(right));
                self.report.find(Harm::PairLost, at, what);
            }
        }
        self.ledger.runs = runs;
    }

    /// Checks that validity and the table of superblocks agree with the grains that live.
    pub(super) fn grains(&mut self) {
        let packing = self.media.space.packing;
        let mut by_page = vec![0u32; self.media.space.geometry.pages() as usize];
        for &(first, grains, record) in &self.ledger.runs {
            let mut left = u64::from(grains);
            let mut grain = first;
            while left > 0 {
                let count = left.min(u64::from(packing.grains_per_page - packing.index_in_page(grain)));
                by_page[packing.page_of(grain).0 as usize] += count as u32;
                grain.0 += count;
                left -= count;
            }
            if !self.media.space.validity.can_remove(first, grains) {
                let what =
                    format!("{grains} grains live here, of a record at {}, and validity does not know", record.0);
                self.report.find(Harm::PairLost, place(self.media, first), what);
            }
        }
        let pages_per_superblock = self.media.space.geometry.pages_per_superblock() as usize;
        for (number, pages) in by_page.chunks(pages_per_superblock).enumerate() {
            let superblock = SuperblockId(number as u32);
            for (page, &found) in (self.media.space.geometry.first_page(superblock).0..).map(PageAddress).zip(pages) {
                let known = self.media.space.validity.live_grains_of(page);
                let harm = if found > known { Harm::PairLost } else { Harm::SpaceLeaked };
                if found != known {
                    let what = format!("{found} grains live in it, and validity says {known}");
                    self.report.find(harm, page_name(self.media, page), what);
                }
            }
            let found: u64 = pages.iter().map(|&grains| u64::from(grains)).sum();
            let known = self.media.space.superblocks.get(superblock).live_grains;
            let harm = if found > known { Harm::PairLost } else { Harm::SpaceLeaked };
            if found != known {
                let what = format!("{found} grains live in it, and its table says {known}");
                self.report.find(harm, format!("superblock {number}"), what);
            }
        }
    }

    /// Checks that searches find every pair, and that no key exists twice.
    pub(super) fn searches(&mut self) {
        for fault in std::mem::take(&mut self.audits).into_values().flat_map(|audit| audit.end()) {
            let harm = if fault.loses_pairs { Harm::PairLost } else { Harm::Harmless };
            self.report.find(harm, format!("entry {} of the index", fault.number), fault.why);
        }
        let mut keys = std::mem::take(&mut self.ledger.keys);
        // A pair that was stored without a comparison may still have an older pair of the same key beside it.
        let uncompared: BTreeSet<Grain> = self.namespaces.iter().flat_map(|space| space.index.uncompared()).collect();
        keys.retain(|(_, _, place)| !uncompared.contains(place));
        keys.sort_unstable();
        for pair in keys.windows(2) {
            let [(whose, hash, left), (others, other, right)] = *pair else { continue };
            if (whose, hash) == (others, other) && left != right && self.key_at(left) == self.key_at(right) {
                let (at, again) = (self.key_name(left), place(self.media, right));
                self.report.find(Harm::PairLost, at, format!("the key is there a second time: {again}"));
            }
        }
    }
}
