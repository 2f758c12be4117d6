//! Space: how the flash is divided, and what lives where. The table of superblocks and validity count the same grains: a record
//! begins and ceases to live here, in both at once.
//!
//! Below: where what is written goes ([`log`], [`placement`]), what lives there ([`superblock`], [`validity`], [`utilization`]), and which superblock
//! is collected next ([`victims`]). State and choices, without I/O. It imports `layout`.

pub(crate) mod log;
pub(crate) mod placement;
pub(crate) mod superblock;
pub(crate) mod utilization;
pub mod validity;
pub(crate) mod victims;

use crate::layout::address::Grain;
use crate::layout::packing::Packing;
use crate::space::superblock::{State, Superblock, Superblocks};
use crate::space::validity::Validity;
use crate::space::victims::VictimChoice;
use kvssd_flash::{Geometry, PageAddress, SuperblockId};

/// A run of a record's grains: the superblock that it lies in, its first grain, and how many there are.
pub(crate) type Run = (SuperblockId, Grain, u32);

/// Why a checkpoint is not of this drive.
pub(crate) const OF_ANOTHER: &str = "its checkpoint is that of another design or geometry";

/// What lives where.
#[derive(Clone)]
pub(crate) struct Space {
    pub(crate) geometry: Geometry,
    pub(crate) packing: Packing,
    pub(crate) superblocks: Superblocks,
    /// Grains that may live while no superblock is retired.
    pub(crate) capacity_grains: u64,
    pub(crate) validity: Box<dyn Validity>,
    pub(crate) victims: VictimChoice,
}

impl Space {
    pub(crate) fn new(geometry: Geometry, packing: Packing, validity: Box<dyn Validity>) -> Self {
        let superblocks = Superblocks::new(geometry.superblocks(), geometry.targets());
        let capacity_grains = u64::from(geometry.superblocks()) * packing.grains_per_superblock;
        Space { geometry, packing, superblocks, capacity_grains, validity, victims: VictimChoice::GREEDY }
    }

    /// Bytes that may live.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        let retired = self.superblocks.retired() * self.packing.grains_per_superblock;
        self.capacity_grains.saturating_sub(retired) * u64::from(self.packing.grain_bytes)
    }

    /// A record of `grains` grains lives at `place`.
    pub(crate) fn occupy(&mut self, place: Grain, grains: u32) {
        self.each_run(place, grains, |space, (superblock, first, grains)| {
            space.superblocks.add_live(superblock, grains.into());
            space.validity.add(first, grains);
        });
    }

    /// The record at `place`, of `grains` grains, lives no more. No invalid mapping is noted.
    pub(crate) fn vacate(&mut self, place: Grain, grains: u32) {
        self.each_run(place, grains, |space, (superblock, first, grains)| {
            space.superblocks.remove_live(superblock, grains.into());
            space.validity.remove(first, grains);
        });
    }

    /// For a checkpoint: the superblocks and what validity keeps, as if these runs did not live.
    pub(crate) fn saved_without(&mut self, runs: &[Run]) -> (Vec<Superblock>, Vec<u8>) {
        let superblocks = self.superblocks.without(runs);
        runs.iter().for_each(|&(_, first, grains)| self.validity.remove(first, grains));
        let validity = self.validity.save();
        runs.iter().for_each(|&(_, first, grains)| self.validity.add(first, grains));
        (superblocks, validity)
    }

    /// Becomes what a checkpoint saved.
    ///
    /// # Errors
    /// Why that cannot be.
    pub(crate) fn restore(&mut self, superblocks: Vec<Superblock>, validity: &[u8]) -> Result<(), &'static str> {
        if superblocks.len() != self.superblocks.all().len() || self.validity.restore(validity).is_none() {
            return Err(OF_ANOTHER);
        }
        self.superblocks.recover(superblocks);
        self.superblocks.suspect_open();
        if !self.counts_agree() {
            return Err("its checkpoint counts the living records in two ways");
        }
        Ok(())
    }

    /// Calls `visit` with each run of a record's grains that lies in one superblock.
    fn each_run(&mut self, first: Grain, grains: u32, mut visit: impl FnMut(&mut Self, Run)) {
        let (mut first, mut left) = (first, grains);
        while left > 0 {
            let superblock = self.packing.superblock_of(first);
            let room = self.packing.grains_per_superblock - first.0 % self.packing.grains_per_superblock;
            let count = u64::from(left).min(room) as u32;
            visit(self, (superblock, first, count));
            left -= count;
            let next = self.superblocks.get(superblock).next;
            first = Grain(u64::from(next.0) * self.packing.grains_per_superblock);
        }
    }

    /// The page behind `page` in the order of its stream.
    pub(crate) fn page_after(&self, page: PageAddress) -> PageAddress {
        if !self.geometry.ends_superblock(page) {
            return PageAddress(page.0 + 1);
        }
        self.geometry.first_page(self.superblocks.get(self.geometry.superblock_of(page)).next)
    }
}

/// Validates what a mount reads, which may say anything.
impl Space {
    /// The runs of a record of `grains` grains at `place`, by superblock; none when there can be no such record.
    pub(crate) fn runs_of(&self, place: Grain, grains: u32) -> Option<Vec<Run>> {
        let per_superblock = self.packing.grains_per_superblock;
        // A record has at most a superblock of bytes and a head, and so touches three at the most.
        if u64::from(grains) > 2 * per_superblock {
            return None;
        }
        let (mut first, mut left) = (place, grains);
        let mut runs = Vec::with_capacity(1);
        while left > 0 {
            let number = u32::try_from(first.0 / per_superblock).ok()?;
            let superblock = self.superblocks.all().get(number as usize)?;
            if superblock.state == State::System {
                return None;
            }
            let count = u64::from(left).min(per_superblock - first.0 % per_superblock) as u32;
            runs.push((SuperblockId(number), first, count));
            left -= count;
            first = Grain(u64::from(superblock.next.0) * per_superblock);
        }
        Some(runs)
    }

    /// The pages of a record of `grains` grains at `place`, in its order; none when there can be no such record.
    pub(crate) fn pages_of(&self, place: Grain, grains: u32) -> Option<Vec<PageAddress>> {
        let pages = |&(_, first, grains): &Run| {
            let last = Grain(first.0 + u64::from(grains) - 1);
            (self.packing.page_of(first).0..=self.packing.page_of(last).0).map(PageAddress)
        };
        Some(self.runs_of(place, grains)?.iter().flat_map(pages).collect())
    }

    /// Whether a record of `grains` grains may begin to live at `place`.
    pub(crate) fn can_occupy(&self, place: Grain, grains: u32) -> bool {
        self.runs_of(place, grains).is_some_and(|runs| {
            runs.iter().all(|&(superblock, first, grains)| {
                let superblock = self.superblocks.get(superblock);
                superblock.live_grains + u64::from(grains) <= self.packing.grains_per_superblock
                    && self.validity.can_add(first, grains)
            })
        })
    }

    /// Whether a record of `grains` grains at `place` may cease to live.
    pub(crate) fn can_vacate(&self, place: Grain, grains: u32) -> bool {
        self.runs_of(place, grains).is_some_and(|runs| {
            runs.iter().all(|&(superblock, first, grains)| {
                self.superblocks.get(superblock).live_grains >= u64::from(grains)
                    && self.validity.can_remove(first, grains)
            })
        })
    }

    /// Whether validity and the table of superblocks, as a checkpoint has put them back, count the same.
    fn counts_agree(&self) -> bool {
        (0..).map(SuperblockId).zip(self.superblocks.all()).all(|(id, superblock)| {
            let pages = self.geometry.superblock_pages(id);
            let counted: u64 = pages.map(|page| u64::from(self.validity.live_grains_of(page))).sum();
            counted == superblock.live_grains && superblock.live_grains <= superblock.appended_grains
        })
    }
}
