//! `invalid-mappings`: mappings that died, gathered by superblock and written to flash (Plus, section IV-A).
//!
//! ```text
//!   pair dies  ->  buffer of its superblock  --full-->  page among the pairs  (list of the superblock's pages in DRAM)
//!   victim     ->  its pages and its buffer  -------->  a set of dead mappings, for as long as it is collected
//! ```
//!
//! The paper counts the invalid grains of a page; the living ones are counted here, which says the same and needs no
//! reset when a block is erased.

use crate::dram::DramUse;
use crate::layout::address::Grain;
use crate::layout::packing::Packing;
use crate::space::validity::page_counters::PageCounters;
use crate::space::validity::{Spill, Validity};
use kvssd_flash::Blob;
use kvssd_flash::{Geometry, PageAddress, SuperblockId};
use std::collections::BTreeMap;

/// Bytes of a dead mapping: hash index (40 bits, as many as there are of a wider tag), grain within the superblock (24
/// bits), which tells it from all others.
const MAPPING_BYTES: usize = 8;
const PLACE_BITS: u32 = 24;
/// Bytes of a page's number in the list of its superblock.
const SPILL_BYTES: u64 = 4;

/// Counters, buffers and lists of pages, in DRAM.
#[derive(Clone, Debug)]
pub struct InvalidMappings {
    packing: Packing,
    page_bytes: u32,
    counters: PageCounters,
    buffers: Vec<Vec<u64>>,
    spills: Vec<Vec<Grain>>,
    victims: BTreeMap<SuperblockId, Vec<u64>>,
    /// Pages in all lists.
    spills_count: u64,
    /// What is charged when nothing is listed.
    base_bytes: u64,
}

impl InvalidMappings {
    /// Nothing has lived yet.
    #[must_use]
    pub fn new(packing: Packing, geometry: &Geometry) -> Self {
        assert!(packing.grains_per_superblock < 1 << PLACE_BITS, "a grain within its superblock has {PLACE_BITS} bits");
        let superblocks = geometry.superblocks() as usize;
        let mut base = DramUse::default();
        Self::charge(&packing, geometry.pages(), superblocks as u64, packing.page_bytes(), 0, &mut base);
        InvalidMappings {
            packing,
            page_bytes: packing.page_bytes(),
            counters: PageCounters::new(packing, geometry.pages()),
            buffers: vec![Vec::new(); superblocks],
            spills: vec![Vec::new(); superblocks],
            victims: BTreeMap::new(),
            spills_count: 0,
            base_bytes: base.total_bytes(),
        }
    }

    /// Charges the counters, buffers and lists of a drive of `pages` and `superblocks`, with `spills` pages in its
    /// lists.
    pub fn charge(packing: &Packing, pages: u64, superblocks: u64, page_bytes: u32, spills: u64, dram: &mut DramUse) {
        PageCounters::charge(packing, pages, dram);
        // A buffer is a page, whether or not it is full (Plus, "Memory Accounting").
        dram.add("invalid_mapping_buffers", superblocks * u64::from(page_bytes));
        dram.add("invalid_mapping_lists", spills * SPILL_BYTES);
    }

    /// The most pages that a superblock's list can have: every grain of it was a pair that died.
    #[must_use]
    pub fn spills_max(packing: &Packing, page_bytes: u32) -> u64 {
        packing.grains_per_superblock * MAPPING_BYTES as u64 / u64::from(page_bytes)
    }

    fn mapping(&self, tag: u64, place: Grain) -> u64 {
        (tag << PLACE_BITS) | (place.0 % self.packing.grains_per_superblock)
    }

    fn victims_bytes(&self) -> u64 {
        self.victims.values().map(|dead| (dead.len() * MAPPING_BYTES) as u64).sum()
    }
}

fn mappings(page: &[u8]) -> impl Iterator<Item = u64> {
    page.as_chunks().0.iter().map(|&mapping| u64::from_le_bytes(mapping))
}

impl Validity for InvalidMappings {
    fn add(&mut self, first: Grain, grains: u32) {
        self.counters.add(first, grains);
    }

    fn remove(&mut self, first: Grain, grains: u32) {
        self.counters.remove(first, grains);
    }

    fn can_add(&self, first: Grain, grains: u32) -> bool {
        self.counters.can_add(first, grains)
    }

    fn can_remove(&self, first: Grain, grains: u32) -> bool {
        self.counters.can_remove(first, grains)
    }

    fn live_grains_of(&self, page: PageAddress) -> u32 {
        self.counters.live_grains_of(page)
    }

    fn pair_died(&mut self, tag: u64, place: Grain) -> Option<Spill> {
        let superblock = self.packing.superblock_of(place);
        let mapping = self.mapping(tag, place);
        if let Some(dead) = self.victims.get_mut(&superblock) {
            let position = dead.partition_point(|&other| other < mapping);
            dead.insert(position, mapping);
            return None;
        }
        let buffer = &mut self.buffers[superblock.0 as usize];
        buffer.push(mapping);
        if buffer.len() < self.page_bytes as usize / MAPPING_BYTES {
            return None;
        }
        let bytes: Vec<u8> = buffer.iter().flat_map(|mapping| mapping.to_le_bytes()).collect();
        // Most superblocks never fill a second page: give the memory back.
        *buffer = Vec::new();
        Some(Spill { superblock, bytes: bytes.into() })
    }

    fn spills(&self, superblock: SuperblockId) -> &[Grain] {
        &self.spills[superblock.0 as usize]
    }

    fn spilled(&mut self, superblock: SuperblockId, place: Grain) {
        self.spills_count += 1;
        self.spills[superblock.0 as usize].push(place);
    }

    fn spill_moved(&mut self, superblock: SuperblockId, from: Grain, to: Grain) -> bool {
        let place = self.spills[superblock.0 as usize].iter_mut().find(|place| **place == from);
        place.map(|place| *place = to).is_some()
    }

    fn dead_places(&self, superblock: SuperblockId, pages: &[Blob]) -> Option<Vec<Grain>> {
        let first = u64::from(superblock.0) * self.packing.grains_per_superblock;
        let gathered =
            self.buffers[superblock.0 as usize].iter().chain(self.victims.get(&superblock).into_iter().flatten());
        let dead = gathered.copied().chain(pages.iter().flat_map(|page| mappings(page)));
        let within = (1 << PLACE_BITS) - 1;
        Some(dead.map(|mapping| Grain(first + (mapping & within))).collect())
    }

    fn open_victim(&mut self, superblock: SuperblockId, pages: &[Blob]) -> usize {
        let mut dead = std::mem::take(&mut self.buffers[superblock.0 as usize]);
        for page in pages {
            dead.extend(mappings(page));
        }
        dead.sort_unstable();
        let mappings = dead.len();
        self.victims.insert(superblock, dead);
        mappings
    }

    fn is_live(&self, tag: u64, place: Grain) -> Option<bool> {
        let dead = self.victims.get(&self.packing.superblock_of(place)).expect("only a victim is asked about");
        Some(dead.binary_search(&self.mapping(tag, place)).is_err())
    }

    fn close_victim(&mut self, superblock: SuperblockId) -> Vec<Grain> {
        self.victims.remove(&superblock);
        self.buffers[superblock.0 as usize] = Vec::new();
        let freed = std::mem::take(&mut self.spills[superblock.0 as usize]);
        self.spills_count -= freed.len() as u64;
        freed
    }

    fn warm(&self, places: &[Grain]) {
        self.counters.warm(places);
    }

    fn save(&self) -> Vec<u8> {
        // What was gathered of a victim is left out: its checkpoint has it as one with strays, whose pairs the index is asked about.
        postcard::to_allocvec(&(self.counters.counts(), &self.buffers, &self.spills)).expect("counters are plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        let (live_grains, buffers, spills): (_, Vec<Vec<u64>>, Vec<Vec<Grain>>) = postcard::from_bytes(bytes).ok()?;
        let superblocks = self.buffers.len();
        let is_ours = (buffers.len(), spills.len()) == (superblocks, superblocks)
            && buffers.iter().all(|buffer| buffer.len() < self.page_bytes as usize / MAPPING_BYTES);
        if !is_ours {
            return None;
        }
        self.counters.set_counts(live_grains)?;
        (self.buffers, self.spills) = (buffers, spills);
        self.spills_count = self.spills.iter().map(|spills| spills.len() as u64).sum();
        Some(())
    }

    fn dram(&self, dram: &mut DramUse) {
        InvalidMappings::charge(
            &self.packing,
            self.counters.counts().len() as u64,
            self.buffers.len() as u64,
            self.page_bytes,
            self.spills_count,
            dram,
        );
        dram.add("victim_tables", self.victims_bytes());
    }

    fn dram_bytes(&self) -> u64 {
        self.base_bytes + self.spills_count * SPILL_BYTES + self.victims_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> InvalidMappings {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            blocks_per_die: 4,
            pages_per_block: 16,
            pages_per_program: 1,
            page_bytes: 512,
            oob_bytes: 384,
            superblock_dies: 0,
            read_bytes_min: 0,
        };
        InvalidMappings::new(Packing::new(&geometry, 64, crate::RecordLayout::Grains), &geometry)
    }

    #[test]
    fn what_died_before_and_during_collection_is_dead_and_nothing_else() {
        let mut validity = small();
        let place = |grain| Grain(128 + grain);
        let mut pages = Vec::new();
        for grain in 0..100 {
            if let Some(spill) = validity.pair_died(grain, place(grain)) {
                assert_eq!(spill.superblock, SuperblockId(1));
                validity.spilled(spill.superblock, Grain(1000 + grain));
                pages.push(spill.bytes);
            }
        }
        assert_eq!(pages.len(), 1);
        assert!(validity.spill_moved(SuperblockId(1), Grain(1063), Grain(7)));
        assert!(!validity.spill_moved(SuperblockId(1), Grain(1063), Grain(8)));
        validity.open_victim(SuperblockId(1), &pages);
        assert!((0..100).all(|grain| validity.is_live(grain, place(grain)) == Some(false)));
        assert!((100..128).all(|grain| validity.is_live(grain, place(grain)) == Some(true)));
        assert!(validity.is_live(1, place(2)) == Some(true), "a mapping is a tag and a place");
        assert!(validity.pair_died(110, place(110)).is_none());
        assert!(validity.is_live(110, place(110)) == Some(false) && validity.is_live(111, place(111)) == Some(true));
        assert_eq!(validity.close_victim(SuperblockId(1)), [Grain(7)]);
    }

    /// A victim without a living record has pages of invalid mappings too; were they kept, they would kill the records
    /// that are written to the superblock later.
    #[test]
    fn a_wholly_invalid_victim_frees_its_pages_and_the_next_life_is_not_touched() {
        let mut validity = small();
        for grain in 0..64 {
            if let Some(spill) = validity.pair_died(grain, Grain(128 + grain)) {
                validity.spilled(spill.superblock, Grain(9));
            }
        }
        validity.open_victim(SuperblockId(1), &[]);
        assert_eq!(validity.close_victim(SuperblockId(1)), [Grain(9)]);
        assert!(validity.spills(SuperblockId(1)).is_empty());
        validity.open_victim(SuperblockId(1), &[]);
        assert!((0..64).all(|grain| validity.is_live(grain, Grain(128 + grain)) == Some(true)));
    }
}
