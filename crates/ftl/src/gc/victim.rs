//! A victim, and which superblocks are victims beside it.
//!
//! ```text
//!   target 0   | victim: page, page ..|              a superblock of one die gives its pages one after the other; several of
//!   target 1   | victim: page, page ..|  -> a step   them give as many side by side as a superblock over all dies does
//!   target 2   | victim: page, page ..|
//! ```

use super::{GcCounters, STEP_SUPERBLOCKS};
use crate::io::media::Media;
use crate::io::{Io, readable};
use crate::journal::Change;
use crate::layout::oob::Stream;
use crate::space::Space;
use crate::space::victims::{Candidates, VictimPolicy, can_be_collected, gives_grains};
use kvssd_flash::{Cause, PageAddress, SuperblockId};
use kvssd_types::KvError;

/// Superblocks that a step may take for each victim: one for the pairs that it moves, two for the sections that this evicts.
const TAKEN_SUPERBLOCKS: usize = STEP_SUPERBLOCKS - 1;

/// A superblock that garbage collection is at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Victim {
    pub(super) superblock: SuperblockId,
    pub(super) first: PageAddress,
    /// The next of its pages to look at.
    pub(super) next: u32,
    /// Its pages before this one that may hold something alive are in the controller.
    pub(super) read: u32,
}

impl Victim {
    /// Garbage collection begins with a superblock.
    pub(super) fn open(io: &mut Io<'_>, superblock: SuperblockId) -> Result<Self, KvError> {
        let superblocks = &mut io.media.space.superblocks;
        let live_grains = superblocks.get(superblock).live_grains;
        superblocks.condemn(superblock);
        // Where nothing lives, no mapping is asked about.
        let spills = if live_grains == 0 { Vec::new() } else { io.media.space.validity.spills(superblock).to_vec() };
        let mut pages: Vec<PageAddress> = spills.iter().map(|&spill| io.media.space.packing.page_of(spill)).collect();
        pages.sort_unstable();
        io.read_all(&pages, Cause::InvalidMappings);
        let page_bytes = io.media.space.packing.page_bytes() as usize;
        let mut contents = Vec::with_capacity(pages.len());
        for &page in &pages {
            contents.extend(readable(io.data(page).map(|data| data.blob(0..page_bytes)))?);
        }
        if contents.len() < pages.len() {
            // Validity does not know all that is dead in it.
            io.media.space.superblocks.suspect(superblock);
        }
        let mappings = io.media.space.validity.open_victim(superblock, &contents) as u64;
        io.cpu(mappings * io.media.controller.costs.gc_record_ns);
        Ok(Victim { superblock, first: io.media.space.geometry.first_page(superblock), next: 0, read: 0 })
    }

    /// Nothing is left of it to move: it is erased.
    pub(super) fn close(self, io: &mut Io<'_>, counters: &mut GcCounters) -> Result<(), KvError> {
        let Victim { superblock, .. } = self;
        let grains_per_page = io.media.space.packing.grains_per_page;
        for spill in io.media.space.validity.close_victim(superblock) {
            io.discard(spill, grains_per_page);
        }
        // What could not be read stays, and so does what no page named: nothing that lives is erased, whatever the pages
        // say.
        if io.media.space.superblocks.get(superblock).live_grains > 0 {
            io.media.space.superblocks.retire(superblock);
            io.note(Change::Retired { superblock });
            return Ok(());
        }
        // The erase takes the last other copy of what was moved out.
        let at = io.make_durable()?;
        let erased = io.media.flash.erase(superblock, at)?;
        io.media.space.superblocks.release(superblock, at, erased);
        io.media.held.get_mut().erased(superblock);
        io.note(Change::Erased { superblock });
        counters.superblocks += 1;
        Ok(())
    }

    /// Its pages end before this one: where nothing lives any more, none is left.
    pub(super) fn end(&self, space: &Space) -> u32 {
        let is_dead = space.superblocks.get(self.superblock).live_grains == 0;
        if is_dead { self.next } else { space.geometry.pages_per_superblock() }
    }

    /// So many at the most of its next pages that may hold something alive.
    pub(super) fn pages(&self, space: &Space, pages_max: usize) -> Vec<PageAddress> {
        let rest = (self.next..self.end(space)).map(|number| PageAddress(self.first.0 + number));
        rest.filter(|&page| !space.validity.page_is_dead(page)).take(pages_max).collect()
    }

    /// Of these pages, those that are not yet in the controller.
    pub(super) fn unread(&self, pages: &[PageAddress]) -> impl Iterator<Item = PageAddress> {
        let read = self.first.0 + self.read;
        pages.iter().copied().filter(move |page| page.0 >= read)
    }

    /// What its pages are read for.
    pub(super) fn cause(&self, space: &Space) -> Cause {
        if space.superblocks.get(self.superblock).stream == Stream::Map { Cause::GcIndex } else { Cause::Gc }
    }
}

/// The victims that a step may move something of while so many superblocks are free. What all of them hold finds room there, too.
pub(super) fn at_once(free: usize) -> usize {
    (free.saturating_sub(STEP_SUPERBLOCKS) / TAKEN_SUPERBLOCKS).max(1)
}

/// Up to `count` superblocks beside the victim `first`: on another target each, the best there, and none that gives less than half as
/// much. Half is an estimate, as in the choice of the first.
pub(super) fn beside(media: &Media, first: SuperblockId, count: usize) -> Vec<SuperblockId> {
    let Space { geometry, packing, superblocks, victims, .. } = &media.space;
    let gives = |id: SuperblockId| gives_grains(superblocks.get(id), packing);
    let erases = erases(media, victims.policy());
    let candidates = candidates(media, &erases);
    let mut chosen = vec![first];
    while chosen.len() <= count {
        let taken: Vec<u32> = chosen.iter().map(|&id| geometry.target_of(id)).collect();
        let next = candidates.best(victims.policy(), true, |id, superblock| {
            can_be_collected(superblock, false) && !taken.contains(&geometry.target_of(id))
        });
        let Some(next) = next.filter(|&id| gives(id).map(|gives| 2 * gives) >= gives(first)) else { break };
        chosen.push(next);
    }
    chosen.split_off(1)
}

/// The erases of each superblock, where the policy weighs them.
pub(super) fn erases(media: &Media, policy: &dyn VictimPolicy) -> Vec<u32> {
    let all = 0..media.space.superblocks.all().len() as u32;
    let erases = |_| all.map(|id| media.flash.superblock_erases(SuperblockId(id))).collect();
    policy.erase_spread_max().map(erases).unwrap_or_default()
}

/// All superblocks, for a choice.
pub(super) fn candidates<'d>(media: &'d Media, erases: &'d [u32]) -> Candidates<'d> {
    let Space { superblocks, packing, .. } = &media.space;
    Candidates { superblocks, packing, erases, pages_begun: media.log.sequence }
}
