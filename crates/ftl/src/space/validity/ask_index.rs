//! `ask-index`: nothing is kept of single pairs; garbage collection asks the index about each (RHIK, section IV-B).

use crate::dram::DramUse;
use crate::layout::address::Grain;
use crate::layout::packing::Packing;
use crate::space::validity::Validity;
use crate::space::validity::page_counters::PageCounters;
use kvssd_flash::PageAddress;

/// A counter a page, so that pages in which nothing lives need not be read.
#[derive(Clone, Debug)]
pub struct AskIndex {
    counters: PageCounters,
    packing: Packing,
}

impl AskIndex {
    /// Nothing lives in any of `pages`.
    #[must_use]
    pub fn new(packing: Packing, pages: u64) -> Self {
        AskIndex { counters: PageCounters::new(packing, pages), packing }
    }

    /// Charges the counters of `pages`.
    pub fn charge(packing: &Packing, pages: u64, dram: &mut DramUse) {
        PageCounters::charge(packing, pages, dram);
    }
}

impl Validity for AskIndex {
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
        self.counters.get(page)
    }

    fn warm(&self, places: &[Grain]) {
        self.counters.warm(places);
    }

    fn dram(&self, dram: &mut DramUse) {
        AskIndex::charge(&self.packing, self.counters.pages(), dram);
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_allocvec(self.counters.saved()).expect("counters are plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        self.counters.restore(postcard::from_bytes(bytes).ok()?)
    }
}
