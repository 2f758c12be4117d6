//! Garbage collection: a background task with a clock of its own.
//!
//! ```text
//!   choose victim -> open (read its invalid mappings) -> step, step, step ... -> close -> erase -> free
//!                                                         |
//!                           read the pages that live, copy the living, tell the index, all of a step side by side
//! ```
//!
//! Where superblocks lie on several targets, several victims are opened at once, and a step reads pages of each (`victim.rs`).
//!
//! It runs while fewer than `low` superblocks are free, beside the few that it keeps for itself. Moving pairs changes
//! sections, which are evicted to the map log. So a victim can take more room than it gives, for a while. When the
//! reserve runs low in the middle of one, a map superblock is collected in between: moving sections changes nothing but
//! the directory. If none gives anything, the victim waits before it takes what a checkpoint needs: the drive is full then.

mod copies;
mod counters;
mod liveness;
mod moves;
pub(crate) mod tags;
mod victim;

pub use self::counters::GcCounters;

use self::liveness::{compare_some, oob_of};
use self::moves::move_pages;
use self::victim::Victim;
use crate::design::pace::CollectionPace;
use crate::io::Io;
use crate::io::media::Media;
use crate::layout::oob::{Oob, Stream};
use crate::namespace::Namespaces;
use crate::space::Space;
use crate::space::superblock::Superblock;
use crate::space::victims::{Greedy, can_be_collected, gives_grains};
use kvssd_flash::{Cause, PageAddress, SuperblockId};
use kvssd_types::{KvError, Nanos};

/// Superblocks that garbage collection keeps for itself: a step takes one at most for the pairs that it moves, two for
/// the sections that this evicts, and one is for a map superblock that is then collected in between.
pub(crate) const STEP_SUPERBLOCKS: usize = 4;

#[derive(Clone, Debug)]
pub(crate) struct Collector {
    /// The clock of its work.
    pub(crate) clock: Nanos,
    /// It works while fewer superblocks are free, beside those that it keeps for itself.
    low: usize,
    pace: CollectionPace,
    /// Somebody has taken room since victims were opened last.
    is_hastened: bool,
    /// Nobody took room between the last two openings of victims, nor has since.
    is_calm: bool,
    /// The most victims at once.
    victims_max: usize,
    /// The most pages that a step reads.
    pages_per_step_max: usize,
    /// The most pairs that a step may move of a victim.
    pairs_per_step: usize,
    /// The victims that are under way side by side, and above them the map superblock that is collected in between.
    victims: Vec<Vec<Victim>>,
    /// Whether the last victim may have been chosen for its erases alone.
    leveled: bool,
    /// Superblocks collected and pairs moved so far.
    pub(crate) counters: GcCounters,
}

impl Collector {
    pub(crate) fn new(media: &Media, low: usize, victims_max: u32, pace: CollectionPace) -> Self {
        let geometry = &media.space.geometry;
        let victims_max = victims_max.min(geometry.targets());
        // Each pair that is moved may evict a page of the index: two superblocks of them at the most.
        let pairs_per_step = 2 * geometry.pages_per_superblock() as usize;
        // What it passes on waits in the write buffer.
        let in_hand = media.controller.write_buffer_bytes / 2 / u64::from(geometry.page_bytes);
        let pages_max = u64::from(victims_max) * u64::from(geometry.pages_per_superblock());
        let pages_per_step_max = pages_max.min(in_hand.max(1)) as usize;
        Collector {
            clock: Nanos::ZERO,
            low,
            pace,
            is_hastened: true,
            is_calm: false,
            victims_max: victims_max as usize,
            pages_per_step_max,
            pairs_per_step,
            victims: Vec::new(),
            leveled: false,
            counters: GcCounters::default(),
        }
    }

    /// Whether there is something to do.
    pub(crate) fn is_wanted(&self, media: &Media) -> bool {
        !self.victims.is_empty() || media.space.superblocks.free() < self.low + STEP_SUPERBLOCKS
    }

    /// Whether it is in the middle of a victim.
    pub(crate) fn is_busy(&self) -> bool {
        !self.victims.is_empty()
    }

    /// Whether a checkpoint may be written now. In the middle of a victim it waits, so that the next mount need not ask the indexes what lives in
    /// it, but not while the reserve is low: a journal beside a victim that lasts would take the rest.
    pub(crate) fn lets_checkpoint(&self, media: &Media) -> bool {
        self.victims.is_empty() || media.space.superblocks.free() < STEP_SUPERBLOCKS
    }

    /// Somebody takes room.
    pub(crate) fn hasten(&mut self) {
        (self.is_hastened, self.is_calm) = (true, false);
    }

    /// Does one bounded step. Returns false when there is nothing to gain, or no room for it.
    pub(crate) fn step(&mut self, media: &mut Media, namespaces: &mut Namespaces) -> Result<bool, KvError> {
        let mut io = Io::new(media, self.clock, true);
        let short = io.media.space.superblocks.free() < STEP_SUPERBLOCKS;
        match self.victims.last() {
            // What was replaced shows which superblocks give the most.
            None if !short && compare_some(&mut io, namespaces)? => return Ok(self.end_step(io)),
            None => {
                if !self.open_victims(&mut io)? {
                    return Ok(false);
                }
            }
            Some(top) if short && takes_room(io.media.space.superblocks.get(top[0].superblock)) => {
                if let Some(in_between) = self.choose(io.media, true) {
                    let in_between = Victim::open(&mut io, in_between)?;
                    self.victims.push(vec![in_between]);
                } else if io.media.space.superblocks.free() == 0 {
                    return Ok(false);
                }
            }
            Some(_) => {}
        }
        self.work(&mut io, namespaces)?;
        Ok(self.end_step(io))
    }

    /// Returns that something was done.
    fn end_step(&mut self, mut io: Io<'_>) -> bool {
        let done = io.settle();
        self.counters.busy_ns += (done - self.clock).0;
        self.clock = done;
        true
    }

    /// The next victim. While room is short, it is the superblock that gives the most. Else superblocks of the map wait,
    /// and one on the target with the fewest free superblocks goes first, as long as what is taken instead gives at least
    /// half as much. Half is an estimate.
    fn choose(&mut self, media: &Media, map_only: bool) -> Option<SuperblockId> {
        let superblocks = &media.space.superblocks;
        let is_short = map_only || superblocks.free() < STEP_SUPERBLOCKS;
        let policy = if is_short { &Greedy } else { media.space.victims.policy() };
        let erases = victim::erases(media, policy);
        let candidates = victim::candidates(media, &erases);
        if let Some(erase_spread_max) = policy.erase_spread_max() {
            self.leveled = !self.leveled;
            if let Some(coldest) = candidates.to_level(erase_spread_max).filter(|_| self.leveled) {
                return Some(coldest);
            }
        }
        let best_where = |map_dies, is_there: &dyn Fn(SuperblockId) -> bool| {
            let can = |id, superblock: &Superblock| can_be_collected(superblock, map_only) && is_there(id);
            candidates.best(policy, map_dies, can)
        };
        let most = best_where(false, &|_| true)?;
        if is_short {
            return Some(most);
        }
        let gives = |id: SuperblockId| gives_grains(superblocks.get(id), &media.space.packing);
        let gives_enough = |&id: &SuperblockId| gives(id).map(|gives| 2 * gives) >= gives(most);
        let best = best_where(true, &|_| true).filter(gives_enough).unwrap_or(most);
        let fewest = superblocks.fewest_free();
        let needed = best_where(true, &|id| superblocks.free_beside(id) == fewest);
        needed.filter(gives_enough).or(Some(best))
    }

    /// Opens the next victims; returns whether there is one. Where superblocks lie on several targets, there are several: the best of each
    /// target, if it gives at least half as much, and so many that a step reads a program unit of each.
    fn open_victims(&mut self, io: &mut Io<'_>) -> Result<bool, KvError> {
        let Some(first) = self.choose(io.media, false) else { return Ok(false) };
        self.is_calm = !std::mem::take(&mut self.is_hastened);
        let Space { geometry, superblocks, .. } = &io.media.space;
        let free = superblocks.free();
        let units = self.width(&io.media.space).div_ceil(geometry.pages_per_program as usize);
        let beside = units.min(victim::at_once(free)).min(self.victims_max) - 1;
        let beside = if beside == 0 { Vec::new() } else { victim::beside(io.media, first, beside) };
        self.counters.victims_beside += beside.len() as u64;
        let victims = std::iter::once(first).chain(beside).map(|superblock| Victim::open(io, superblock));
        let victims = victims.collect::<Result<_, _>>()?;
        self.victims.push(victims);
        Ok(true)
    }

    /// Reads some pages of each of the victims that are under way, all side by side, and moves what lives in them.
    fn work(&mut self, io: &mut Io<'_>, namespaces: &mut Namespaces) -> Result<(), KvError> {
        let Some(victims) = self.victims.last() else { return Ok(()) };
        let free = io.media.space.superblocks.free();
        let count = victims.len().min(victim::at_once(free));
        let pages_max = self.width(&io.media.space).div_ceil(count);
        let steps: Vec<(Victim, Vec<PageAddress>)> =
            victims[..count].iter().map(|&victim| (victim, victim.pages(&io.media.space, pages_max))).collect();
        if !io.media.controller.emulator.victims_unread {
            for cause in [Cause::Gc, Cause::GcIndex] {
                let of_cause = steps.iter().filter(|(victim, _)| victim.cause(&io.media.space) == cause);
                let unread: Vec<PageAddress> = of_cause.flat_map(|(victim, pages)| victim.unread(pages)).collect();
                if !unread.is_empty() {
                    io.read_all(&unread, cause);
                }
            }
        }
        for (victim, pages) in steps {
            self.empty(io, namespaces, victim, &pages)?;
        }
        Ok(())
    }

    /// Moves what lives in these pages of a victim, which were read. Without pages nothing is left in it: it is erased.
    fn empty(
        &mut self,
        io: &mut Io<'_>,
        namespaces: &mut Namespaces,
        mut victim: Victim,
        pages: &[PageAddress],
    ) -> Result<(), KvError> {
        let Some(&last) = pages.last() else {
            self.counters.pages_skipped += u64::from(victim.end(&io.media.space) - victim.next);
            self.replace(victim, None);
            return victim.close(io, &mut self.counters);
        };
        let first = victim.first;
        victim.read = victim.read.max(last.0 + 1 - first.0);
        let oobs = self.oobs_of(io, namespaces, pages)?;
        // What is read and not yet moved stays in the controller for the next step.
        let moved = &pages[..oobs.len()];
        let next = moved.last().map_or(victim.next, |page| page.0 + 1 - first.0);
        self.counters.pages_skipped += u64::from(next - victim.next) - moved.len() as u64;
        victim.next = next;
        self.replace(victim, Some(victim));
        move_pages(io, namespaces, moved, oobs, first, &mut self.counters)
    }

    /// A victim has come so far, or is done.
    fn replace(&mut self, old: Victim, new: Option<Victim>) {
        let Some(victims) = self.victims.last_mut() else { return };
        let position = victims.iter().position(|victim| victim.superblock == old.superblock);
        if let Some(position) = position {
            victims.splice(position..=position, new);
        }
        if victims.is_empty() {
            self.victims.pop();
        }
    }

    /// How many pages a step reads.
    fn width(&self, space: &Space) -> usize {
        let low = self.low.max(1);
        let gone = (STEP_SUPERBLOCKS + low).saturating_sub(space.superblocks.free()).clamp(1, low);
        self.pace.pages(&space.geometry, self.pages_per_step_max, gone, low, self.is_calm)
    }

    /// The out-of-band areas of pages that were read, none for one that cannot be; of as many of them as a step may move
    /// the pairs of.
    fn oobs_of(
        &self,
        io: &mut Io<'_>,
        namespaces: &Namespaces,
        pages: &[PageAddress],
    ) -> Result<Vec<Option<Oob>>, KvError> {
        let packing = io.media.space.packing;
        io.warm(&pages.iter().map(|&page| packing.grain(page, 0)).collect::<Vec<_>>());
        let mut oobs = Vec::with_capacity(pages.len());
        let mut pairs = 0;
        for &page in pages {
            let oob = oob_of(io, namespaces, page)?;
            pairs += oob.as_ref().map_or(0, |oob| oob.entries.len());
            if !oobs.is_empty() && pairs > self.pairs_per_step {
                break;
            }
            oobs.push(oob);
        }
        Ok(oobs)
    }
}

/// Whether to go on with a victim takes room that a superblock of the map must give before: moving sections changes nothing but the directory, and
/// a victim that is empty gives room.
fn takes_room(victim: &Superblock) -> bool {
    victim.stream != Stream::Map && victim.live_grains > 0
}
