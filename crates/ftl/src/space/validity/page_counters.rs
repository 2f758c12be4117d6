//! `ask-index`: how many grains of each page live, so that pages in which nothing lives need not be read. Nothing is kept of single pairs;
//! garbage collection asks the index about each (RHIK, section IV-B).

use crate::dram::DramUse;
use crate::layout::address::Grain;
use crate::layout::packing::Packing;
use crate::space::validity::Validity;
use kvssd_flash::PageAddress;

/// A counter a page.
#[derive(Clone, Debug)]
pub struct PageCounters {
    packing: Packing,
    live_grains: Vec<u16>,
}

impl PageCounters {
    /// Nothing lives in any of `pages`.
    #[must_use]
    pub fn new(packing: Packing, pages: u64) -> Self {
        PageCounters { packing, live_grains: vec![0; pages as usize] }
    }

    /// Charges the counters of `pages`.
    pub fn charge(packing: &Packing, pages: u64, dram: &mut DramUse) {
        let counter_bytes = if packing.grains_per_page < 256 { 1 } else { 2 };
        dram.add("page_counters", pages * counter_bytes);
    }

    /// All of them, for a checkpoint.
    pub(crate) fn counts(&self) -> &Vec<u16> {
        &self.live_grains
    }

    /// Becomes what was saved. None when that cannot be.
    pub(crate) fn set_counts(&mut self, saved: Vec<u16>) -> Option<()> {
        let is_ours = saved.len() == self.live_grains.len()
            && saved.iter().all(|&live| u32::from(live) <= self.packing.grains_per_page);
        is_ours.then(|| self.live_grains = saved)
    }
}

impl Validity for PageCounters {
    fn add(&mut self, first: Grain, grains: u32) {
        for (page, count) in counts(self.packing, first, grains) {
            let live = &mut self.live_grains[page];
            *live += count;
            assert!(u32::from(*live) <= self.packing.grains_per_page, "a grain is given out twice");
        }
    }

    fn remove(&mut self, first: Grain, grains: u32) {
        for (page, count) in counts(self.packing, first, grains) {
            let live = &mut self.live_grains[page];
            *live = live.checked_sub(count).expect("a grain dies twice");
        }
    }

    fn can_add(&self, first: Grain, grains: u32) -> bool {
        let room = |live: u16| self.packing.grains_per_page - u32::from(live);
        counts(self.packing, first, grains)
            .all(|(page, count)| self.live_grains.get(page).is_some_and(|&live| room(live) >= u32::from(count)))
    }

    fn can_remove(&self, first: Grain, grains: u32) -> bool {
        counts(self.packing, first, grains)
            .all(|(page, count)| self.live_grains.get(page).is_some_and(|&live| live >= count))
    }

    fn live_grains_of(&self, page: PageAddress) -> u32 {
        self.live_grains[page.0 as usize].into()
    }

    fn warm(&self, places: &[Grain]) {
        let counters = places.iter().map(|&place| self.live_grains[self.packing.page_of(place).0 as usize]);
        std::hint::black_box(counters.fold(0, |sum, counter| sum ^ counter));
    }

    fn dram(&self, dram: &mut DramUse) {
        PageCounters::charge(&self.packing, self.live_grains.len() as u64, dram);
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_allocvec(self.counts()).expect("counters are plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        self.set_counts(postcard::from_bytes(bytes).ok()?)
    }
}

/// Each page that a run of grains touches, and the number of the run's grains in it.
fn counts(packing: Packing, first: Grain, grains: u32) -> impl Iterator<Item = (usize, u16)> {
    let (mut grain, mut left) = (first, grains);
    std::iter::from_fn(move || {
        let page = packing.page_of(grain);
        let count = left.min(packing.grains_per_page - packing.index_in_page(grain));
        grain.0 += u64::from(count);
        left -= count;
        (count > 0).then_some((page.0 as usize, count as u16))
    })
}
