//! What garbage collection and the index read and write, as a fluid: superblocks of living pages that die at random.
//!
//! ```text
//!   fill -> overwrites -> run, a part of a superblock at a time:
//!       user pages, and the pages that look-ups and changes push out of DRAM -> open superblocks -> closed
//!       while room is short: the closed superblock that keeps the least -> what lives in it, once more
//! ```
//!
//! Every overwrite takes a record at random: so what was written at the same time dies at the same rate (Desnoyers, 2012, has the
//! steady state of this in closed form; an experiment of some overwrites is not there yet).

use crate::drive::Drive;
use crate::load::Load;
use crate::traffic::Traffic;
use kvssd_ftl::index::Changes;
use kvssd_ftl::{MAP_KEPT_WEIGHT, ValidityKind};
use std::collections::VecDeque;

/// The part of a superblock that is written at a time.
const STEPS_A_SUPERBLOCK: f64 = 4.0;
/// So often all of the flash is written, where it has as many superblocks as are followed, or all that lives in it dies, until a drive is as
/// it stays.
const STEADY_WRITES: f64 = 24.0;
const STEADY_DEATHS: f64 = 6.0;
/// A drive that collects so many superblocks for a step has no room.
const VICTIMS_MAX: usize = 1024;
/// The least part of a superblock that collecting it must give. An estimate.
const GAIN_MIN: f64 = 0.02;
/// The most superblocks that are followed one by one.
const SUPERBLOCKS_MAX: f64 = 256.0;
/// The fewest steps of a phase.
const STEPS_MIN: f64 = 16.0;
/// The three open superblocks are half written, and a victim is half read while its living pages are there twice. An estimate, set by
/// looking at the matrix.
const OPEN_SUPERBLOCKS: f64 = 2.0;

/// A kind of superblocks: of pairs, or of the map.
#[derive(Clone, Debug, Default)]
struct Pool {
    /// Of each closed superblock, the oldest first, the logarithm of its living pages, less what has died of all since. All die at one
    /// rate: so the oldest keeps the least.
    closed: VecDeque<f64>,
    /// Pages in the open one, and how many of them live.
    open: (f64, f64),
    /// The sum of the shares of all that lives that have died.
    died: f64,
}

impl Pool {
    fn append(&mut self, mut pages: f64, superblock_pages: f64) {
        while pages > 0.0 {
            let now = pages.min(superblock_pages - self.open.0);
            self.open = (self.open.0 + now, self.open.1 + now);
            pages -= now;
            if self.open.0 >= superblock_pages - 1e-9 {
                self.closed.push_back(self.open.1.max(1e-300).ln() + self.died);
                self.open = (0.0, 0.0);
            }
        }
    }

    fn die(&mut self, share: f64) {
        self.died += share;
        self.open.1 *= (-share).exp();
    }

    /// The living pages of the closed superblock that has the fewest.
    fn emptiest(&self) -> Option<f64> {
        Some((self.closed.front()? - self.died).exp())
    }

    fn pages(&self, superblock_pages: f64) -> f64 {
        self.closed.len() as f64 * superblock_pages + self.open.0
    }
}

/// What an operation of a run takes.
#[derive(Debug)]
pub(crate) struct Run {
    /// With as many superblocks free as collection rests at.
    pub(crate) traffic: Traffic,
    /// Collection that is done only as far as there is time for it: to come to so many free superblocks, and of a run that stores nothing, all of it.
    pub(crate) raise: Traffic,
}

/// A drive that is filled, overwritten and used.
#[derive(Clone)]
pub(crate) struct Fluid<'a> {
    drive: &'a Drive,
    load: &'a Load,
    /// The share of a look-up's visits that find DRAM, visit by visit: of collection and of commands whose keys are all alike.
    even_hits: Vec<f64>,
    /// And of the run's commands, whose keys may be skewed.
    hits: Option<&'a [f64]>,
    /// Pages of a superblock here: larger than the drive's where that has very many.
    superblock_pages: f64,
    pairs: Pool,
    map: Pool,
    /// Of the last step: visits to the index, changes of it, and pieces that were brought.
    visits: f64,
    changes: f64,
    brought: f64,
    dirty_share: f64,
    sums: Traffic,
    /// Superblocks that collection keeps free now.
    free: f64,
}

impl<'a> Fluid<'a> {
    pub(crate) fn new(drive: &'a Drive, load: &'a Load) -> Self {
        let visits = &drive.forecast.visits;
        let coarse = (drive.superblocks / SUPERBLOCKS_MAX).max(1.0);
        Fluid {
            drive,
            load,
            even_hits: visits.iter().map(|visit| visit.in_dram.min(1.0)).collect(),
            hits: None,
            superblock_pages: drive.superblock_pages * coarse,
            pairs: Pool::default(),
            map: Pool::default(),
            visits: 1.0,
            changes: 1.0,
            brought: 1.0,
            dirty_share: 1.0,
            sums: Traffic::default(),
            free: drive.free_low,
        }
    }

    /// Fills the drive; none where the pairs do not fit.
    pub(crate) fn filled(mut self) -> Option<Self> {
        self.phase(self.load.pairs as f64, (0.0, 1.0), true)?;
        Some(self)
    }

    /// Overwrites its pairs with so many superblocks free; behind [`STEADY_WRITES`] nothing changes any more.
    pub(crate) fn overwritten(mut self, free: f64) -> Option<Self> {
        self.free = free;
        self.phase(self.load.overwrites as f64, (0.0, 1.0), false)?;
        Some(self)
    }

    /// What one of so many operations takes that follow, each so many retrieves and stores, with so many superblocks free.
    pub(crate) fn run(mut self, operations: f64, free: f64, points: (f64, f64), hits: &'a [f64]) -> Option<Run> {
        (self.free, self.hits) = (free, Some(hits));
        self.sums = Traffic::default();
        self.collect()?;
        let raise = std::mem::take(&mut self.sums).for_each_of(operations);
        let reckoned = self.phase(operations, points, false)?;
        let traffic = self.sums.for_each_of(reckoned);
        if points.1 > 0.0 {
            return Some(Run { traffic, raise });
        }
        // Pieces that were changed are written all the same.
        let collection = Traffic { index_pages: 0.0, merge_reads: 0.0, ..traffic };
        Some(Run { traffic: traffic.paced(0.0), raise: raise.beside(collection, 1.0) })
    }

    /// So many operations, each with so many retrieves and stores; gives how many there were when nothing changed any more.
    fn phase(&mut self, operations: f64, (retrieves, stores): (f64, f64), is_new: bool) -> Option<f64> {
        let pages_max = self.superblock_pages / STEPS_A_SUPERBLOCK;
        let steps = (operations * stores * self.drive.record.stored_pages / pages_max).ceil().max(STEPS_MIN);
        let written = self.sums.programs() + STEADY_WRITES * SUPERBLOCKS_MAX * self.superblock_pages;
        let died = self.pairs.died + STEADY_DEATHS;
        for step in 0..steps as usize {
            if self.sums.programs() > written || self.pairs.died > died {
                return Some(operations * step as f64 / steps);
            }
            self.drive.work.add(1);
            self.use_drive(operations / steps * retrieves, operations / steps * stores, is_new);
            self.collect()?;
        }
        Some(operations)
    }

    fn use_drive(&mut self, retrieves: f64, stores: f64, is_new: bool) {
        let (drive, record) = (self.drive, &self.drive.record);
        let pages = stores * record.stored_pages;
        self.sums.user_pages += pages;
        if !is_new {
            self.pairs.die(pages / (self.load.pairs as f64 * record.pages));
        }
        // A drive of blocks is filled block by block.
        self.pairs.append(if is_new { stores * record.pages } else { pages }, self.superblock_pages);
        let (mut visits, mut brought) = (0.0, 0.0);
        let look_ups = match self.hits {
            Some(_) => retrieves + stores * self.load.look_up_stores(drive) / self.load.points().1.max(1e-9),
            None => retrieves + stores,
        };
        for (visit, hit) in drive.forecast.visits.iter().zip(self.hits.unwrap_or(&self.even_hits)) {
            visits += (retrieves + stores) * visit.reached;
            brought += look_ups * visit.reached * (1.0 - hit) * drive.alone(visit, self.load.clients);
        }
        self.sums.look_up_reads += brought;
        (self.visits, self.changes, self.brought) = (visits, stores, brought);
        self.evict(brought, stores);
    }

    /// Pieces that come push as many out; those that were changed are written.
    fn evict(&mut self, brought: f64, changes: f64) {
        let pages = match self.drive.forecast.changes {
            Changes::InPlace => {
                let mut pieces = brought * self.dirty_share;
                if self.changes == 0.0 {
                    // What is changed no more is written once.
                    let cached: f64 = self.drive.forecast.visits.iter().map(|visit| visit.pieces * visit.in_dram).sum();
                    pieces = pieces.min(cached * self.dirty_share);
                    self.dirty_share = (self.dirty_share - pieces / cached.max(1.0)).max(0.0);
                }
                pieces * self.drive.piece_pages()
            }
            Changes::Merged { pages } => {
                self.sums.merge_reads += changes * pages;
                changes * pages
            }
        };
        self.sums.index_pages += pages;
        self.write_map(pages);
    }

    fn write_map(&mut self, pages: f64) {
        if pages > 0.0 {
            self.map.die(pages / self.drive.index_pages());
            self.map.append(pages, self.superblock_pages);
        }
    }

    /// Frees superblocks until there is room again.
    fn collect(&mut self) -> Option<()> {
        let Drive { superblocks, superblock_pages, .. } = *self.drive;
        let wanted = (self.free + OPEN_SUPERBLOCKS) * superblock_pages;
        let all = superblocks * superblock_pages;
        for _ in 0..VICTIMS_MAX {
            let taken = self.pairs.pages(self.superblock_pages) + self.map.pages(self.superblock_pages);
            if all - taken >= wanted {
                self.learn();
                return Some(());
            }
            self.drive.work.add(1);
            let (pairs, map) = (self.pairs.emptiest(), self.map.emptiest());
            let size = self.superblock_pages;
            let gives = |victim: Option<f64>| victim.map_or(0.0, |lives| size - lives);
            let most = gives(pairs).max(gives(map));
            if most < size * GAIN_MIN {
                return (taken < all + size).then_some(());
            }
            let is_best = map.is_some_and(|map| pairs.is_none_or(|pairs| map * (MAP_KEPT_WEIGHT as f64) < pairs));
            let takes_map = if is_best { 2.0 * gives(map) >= most } else { 2.0 * gives(pairs) < most };
            match (takes_map, pairs, map) {
                (true, _, Some(lives)) => self.collect_map(lives),
                (_, Some(lives), _) => self.collect_pairs(lives),
                _ => return None,
            }
        }
        None
    }

    fn collect_map(&mut self, lives: f64) {
        self.map.closed.pop_front();
        let size = self.superblock_pages;
        let pieces_a_page = (1.0 / self.drive.piece_pages()).max(1.0);
        self.sums.map_victim_reads += size * (1.0 - (1.0 - lives / size).powf(pieces_a_page));
        self.sums.map_moved_pages += lives;
        self.sums.erases += self.drive.dies * size / self.drive.superblock_pages;
        self.map.append(lives, size);
    }

    fn collect_pairs(&mut self, lives: f64) {
        self.pairs.closed.pop_front();
        let (size, record) = (self.superblock_pages, &self.drive.record);
        let read = size * (1.0 - (1.0 - lives / size).powf(record.of_page));
        let moved = lives / record.entry_pages;
        let asked = if self.drive.validity == ValidityKind::AskIndex { read / record.entry_pages } else { 0.0 };
        self.sums.victim_reads += read;
        self.sums.moved_pages += lives;
        self.sums.asked += asked;
        self.sums.moved += moved;
        self.sums.victims += size / self.drive.superblock_pages;
        self.sums.erases += self.drive.dies * size / self.drive.superblock_pages;
        self.pairs.append(lives, size);
        let (first, again) = self.ask((read / self.drive.step_pages).max(1.0), asked, moved);
        let brought = first + again;
        self.sums.ask_reads += brought;
        self.sums.again_reads += again;
        self.changes += moved;
        self.brought += brought;
        self.learn();
        self.evict(brought, moved);
    }

    /// Pieces that so many steps of collection bring to ask about pairs, and then to change those that live: of the pairs of a step that
    /// are in one piece the first brings it.
    fn ask(&mut self, steps: f64, asked: f64, moved: f64) -> (f64, f64) {
        let mut brought = (0.0, 0.0);
        for (visit, hit) in self.drive.forecast.visits.iter().zip(&self.even_hits) {
            let distinct = |pairs: f64| visit.pieces * (1.0 - (-pairs * visit.reached / visit.pieces).exp());
            let first = distinct(asked / steps) * (1.0 - hit);
            // What was brought to ask, and by commands meanwhile, pushes out what was there before, first in, first out; and itself
            // where the cache is smaller.
            let by_commands = self.sums.look_up_reads * self.drive.step_pages / self.sums.victim_reads.max(1.0);
            let turns = (first + by_commands) / (visit.in_dram * visit.pieces).max(1.0);
            let gone = hit * turns.min(1.0) + (1.0 - hit) * (1.0 - 1.0 / turns.max(1.0));
            let again = match self.drive.changes_in_place() {
                true if asked > 0.0 => distinct(moved / steps) * gone,
                true => distinct(moved / steps) * (1.0 - hit),
                false if asked > 0.0 => 0.0,
                false => distinct(moved / steps) * (1.0 - hit),
            };
            brought = (brought.0 + steps * first, brought.1 + steps * again);
            // Who is asked about and then changed visits once.
            self.visits += asked.max(moved);
        }
        brought
    }

    /// The share of the pieces pushed out that were changed, from what was done since.
    fn learn(&mut self) {
        if self.changes > 0.0 && self.brought > 0.0 && self.visits > 0.0 {
            let changed = (self.changes / self.visits).min(1.0);
            let stays = (self.visits / self.brought).max(1.0);
            self.dirty_share = 1.0 - (1.0 - changed) * (-changed * (stays - 1.0)).exp();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Mix;
    use kvssd_designs::BLOCK;
    use kvssd_flash::Profile;

    /// Greedy collection under uniform overwrites: of a victim's pages the share d lives where (1 - d) / -ln d is the share of the
    /// flash that is filled (Desnoyers, 2012, equation 10 for large superblocks).
    #[test]
    fn in_the_end_victims_keep_what_the_closed_form_says() {
        let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 64.0).unwrap();
        for filled in [0.6, 0.75, 0.85] {
            let pairs = (filled * profile.geometry.raw_bytes() as f64 / 4096.0) as u64;
            let mix = Mix::Points { retrieves: 0.0, stores: 1.0, modifies: false };
            let load = Load { value_bytes: 4096, overwrites: 8 * pairs, mix, ..Load::half_and_half(pairs) };
            let drive = Drive::new(&profile, &BLOCK, &load).unwrap();
            let overwritten = Fluid::new(&drive, &load).filled().unwrap().overwritten(drive.free_low).unwrap();
            let traffic = overwritten.run(pairs as f64, drive.free_low, load.points(), &[1.0]).unwrap().traffic;
            let kept = traffic.moved_pages / (traffic.moved_pages + traffic.user_pages);
            let usable = 1.0 - (drive.free_low + OPEN_SUPERBLOCKS) / drive.superblocks;
            let closed_form = (1.0 - kept) / -kept.ln();
            assert!((closed_form / (filled / usable) - 1.0).abs() < 0.02, "{filled}: {kept} is of {closed_form}");
        }
    }
}
