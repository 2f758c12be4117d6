//! The table of superblocks: what state each is in and how much of it lives.

use crate::dram::DramUse;
use crate::layout::address::Grain;
use crate::layout::oob::Stream;
use kvssd_flash::SuperblockId;
use kvssd_types::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a superblock is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Holds the drive's own records; the log never takes it.
    System,
    /// Erased.
    Free,
    /// A stream is writing to it.
    Open,
    /// Full.
    Closed,
    /// Garbage collection is moving its living records out.
    Victim,
    /// Full, and what lives in it cannot be read: it is collected when nothing lives in it any more.
    Retired,
}

/// One superblock, as a policy sees it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Superblock {
    /// What it is used for.
    pub state: State,
    /// Whose records it holds, or held last.
    pub stream: Stream,
    /// The grains in it that belong to living records.
    pub live_grains: u64,
    /// The grains in it that were given to records; the others are padding. Moving its records leaves about as much
    /// padding behind again.
    pub appended_grains: u64,
    /// Whether it was written to when the power went: it may hold pairs that were appended and never bound, of which
    /// validity knows nothing.
    pub has_strays: bool,
    /// Whether it must be erased before it is opened: a cut may have ended its erase half way.
    pub must_erase: bool,
    /// The next superblock of its stream: a record that runs over the end of this one goes on there.
    pub next: SuperblockId,
    /// The count of its erases when it was opened ([`Flash::generation`](kvssd_flash::Flash::generation)): a mount that
    /// finds another count knows that pages are stale.
    pub generation: u64,
}

impl Superblock {
    /// One without records.
    #[must_use]
    pub fn new(state: State, stream: Stream) -> Self {
        Superblock {
            state,
            stream,
            live_grains: 0,
            appended_grains: 0,
            has_strays: false,
            must_erase: false,
            next: SYSTEM,
            generation: 0,
        }
    }
}

/// A free superblock.
#[derive(Clone, Copy, Debug)]
struct Free {
    superblock: SuperblockId,
    /// When garbage collection was done with it.
    freed: Nanos,
    /// When its erase ends.
    erased: Nanos,
}

#[derive(Clone, Debug)]
pub struct Superblocks {
    all: Vec<Superblock>,
    /// How many pages all streams had begun when each was full; 0 where it was before the mount.
    closed_at: Vec<u64>,
    /// By target.
    free: Vec<VecDeque<Free>>,
    free_count: usize,
    /// Of those that are free, so many are the next checkpoint's.
    kept_for_checkpoint: usize,
    /// When the last of them became free.
    freed_last: Nanos,
    live_grains: u64,
    retired: u64,
}

/// Superblock 0 is the system's.
pub const SYSTEM: SuperblockId = SuperblockId(0);

impl Superblocks {
    /// `count` erased superblocks, of which the first is the system's, on so many targets.
    #[must_use]
    pub fn new(count: u32, targets: u32) -> Self {
        let mut all = vec![Superblock::new(State::Free, Stream::User); count as usize];
        all[0].state = State::System;
        let closed_at = vec![0; count as usize];
        let free = vec![VecDeque::new(); targets as usize];
        let mut superblocks = Superblocks {
            all,
            closed_at,
            free,
            free_count: 0,
            kept_for_checkpoint: 0,
            freed_last: Nanos::ZERO,
            live_grains: 0,
            retired: 0,
        };
        superblocks.list_free();
        superblocks
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, superblock: SuperblockId) -> &Superblock {
        &self.all[superblock.0 as usize]
    }

    /// All of them, in order.
    #[must_use]
    pub fn all(&self) -> &[Superblock] {
        &self.all
    }

    /// How many pages all streams had begun when it was full; 0 where it was before the mount.
    #[must_use]
    pub fn closed_at(&self, superblock: SuperblockId) -> u64 {
        self.closed_at[superblock.0 as usize]
    }

    /// The number of free superblocks, without those that are kept for a checkpoint.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free_count.saturating_sub(self.kept_for_checkpoint)
    }

    /// Keeps so many for a checkpoint: it is written at once, and what it replaces is erased only then.
    pub(crate) fn keep_for_checkpoint(&mut self, count: usize) {
        self.kept_for_checkpoint = count;
    }

    /// The number of free superblocks on a target.
    pub(crate) fn free_in(&self, target: u32) -> usize {
        self.free[target as usize].len()
    }

    /// The number of free superblocks on the target of this one.
    pub(crate) fn free_beside(&self, superblock: SuperblockId) -> usize {
        self.free[superblock.0 as usize % self.free.len()].len()
    }

    /// The number of free superblocks on the target that has the fewest.
    pub(crate) fn fewest_free(&self) -> usize {
        self.free.iter().map(VecDeque::len).min().unwrap_or_default()
    }

    fn push_free(&mut self, free: Free) {
        let targets = self.free.len();
        self.free[free.superblock.0 as usize % targets].push_back(free);
        self.free_count += 1;
        self.freed_last = self.freed_last.max(free.freed);
    }

    /// The time, `at` or later, from which `count` superblocks are free beside those for a checkpoint: garbage collection may
    /// have freed some of them with a clock that is ahead. `None` if there are fewer.
    pub(crate) fn free_from(&self, count: usize, at: Nanos) -> Option<Nanos> {
        let spare = self.free().checked_sub(count)?;
        if self.freed_last <= at {
            return Some(at);
        }
        let mut freed: Vec<Nanos> = self.free.iter().flatten().map(|free| free.freed.max(at)).collect();
        // Those that come last are not needed.
        freed.sort_unstable_by(|left, right| right.cmp(left));
        Some(freed.get(spare).copied().unwrap_or(at))
    }

    /// The erased superblocks, target by target, in the order in which they will be opened.
    pub fn list_of_free(&self) -> impl Iterator<Item = SuperblockId> {
        self.free.iter().flatten().map(|free| free.superblock)
    }

    /// The grains of all living records.
    #[must_use]
    pub fn live_grains(&self) -> u64 {
        self.live_grains
    }

    /// The number of retired ones.
    #[must_use]
    pub fn retired(&self) -> u64 {
        self.retired
    }

    /// Bytes of DRAM for each: living and appended grains, next, erase count and state.
    pub const ENTRY_BYTES: u64 = 17;

    /// Charges a table of `count` superblocks.
    pub fn charge(count: u64, dram: &mut DramUse) {
        dram.add("superblocks", count * Self::ENTRY_BYTES);
    }

    /// Opens the superblock of a target that has been free for longest, which spreads the erases. Returns it, when its erase
    /// ends, and whether it must be erased again. `None` if none is free: garbage collection keeps a reserve, so that this
    /// happens only on a drive whose table is damaged.
    pub fn open(&mut self, stream: Stream, target: u32) -> Option<(SuperblockId, Nanos, bool)> {
        let Free { superblock, erased, .. } = self.free[target as usize].pop_front()?;
        self.free_count -= 1;
        let must_erase = self.get(superblock).must_erase;
        self.all[superblock.0 as usize] = Superblock::new(State::Open, stream);
        Some((superblock, erased, must_erase))
    }

    /// Moves the free superblock of a target with the least `rank` to the front; of several, the one that has been free for
    /// longest.
    pub fn bring_forward(&mut self, target: u32, rank: impl Fn(SuperblockId) -> u32) {
        let free = &mut self.free[target as usize];
        let ranks = free.iter().map(|free| rank(free.superblock)).enumerate();
        let least = ranks.min_by_key(|&(_, rank)| rank).and_then(|(position, _)| free.remove(position));
        if let Some(least) = least {
            free.push_front(least);
        }
    }

    /// Sets the erase count at which a superblock was opened.
    pub fn set_generation(&mut self, superblock: SuperblockId, generation: u64) {
        self.all[superblock.0 as usize].generation = generation;
    }

    /// Says where the stream of `superblock` went on.
    pub fn link(&mut self, superblock: SuperblockId, next: SuperblockId) {
        self.all[superblock.0 as usize].next = next;
    }

    /// Counts `grains` of a superblock as given, though no record has them: they will not be padding again.
    pub fn add_appended(&mut self, superblock: SuperblockId, grains: u64) {
        self.all[superblock.0 as usize].appended_grains += grains;
    }

    /// A superblock is full, when all streams have begun so many pages.
    pub fn close(&mut self, superblock: SuperblockId, pages_begun: u64) {
        self.closed_at[superblock.0 as usize] = pages_begun;
        let closed = &mut self.all[superblock.0 as usize];
        assert_eq!(closed.state, State::Open, "only an open superblock is closed");
        closed.state = State::Closed;
    }

    /// Makes a closed superblock a victim of garbage collection.
    pub fn condemn(&mut self, superblock: SuperblockId) {
        let victim = &mut self.all[superblock.0 as usize];
        assert_eq!(victim.state, State::Closed, "only a closed superblock is collected");
        victim.state = State::Victim;
    }

    /// A victim was emptied at `freed`, and its erase ends at `erased`.
    ///
    /// # Panics
    /// When records still live in it.
    pub fn release(&mut self, superblock: SuperblockId, freed: Nanos, erased: Nanos) {
        let victim = &mut self.all[superblock.0 as usize];
        assert_eq!(victim.state, State::Victim, "only a victim is erased");
        assert_eq!(victim.live_grains, 0, "{superblock:?} is erased with living records in it");
        victim.state = State::Free;
        self.push_free(Free { superblock, freed, erased });
    }

    /// Retires a victim in which something lives that cannot be read. Validity forgets what is dead in it.
    pub fn retire(&mut self, superblock: SuperblockId) {
        let victim = &mut self.all[superblock.0 as usize];
        victim.state = State::Retired;
        victim.has_strays = true;
        self.retired += 1;
    }

    /// A superblock holds copies that no index will know: garbage collection has to ask the index about each pair.
    pub fn suspect(&mut self, superblock: SuperblockId) {
        self.all[superblock.0 as usize].has_strays = true;
    }

    /// `grains` of a superblock were given to a record, which lives.
    pub fn add_live(&mut self, superblock: SuperblockId, grains: u64) {
        self.all[superblock.0 as usize].appended_grains += grains;
        self.all[superblock.0 as usize].live_grains += grains;
        self.live_grains += grains;
    }

    /// `grains` of a superblock belonged to a record that died.
    ///
    /// # Panics
    /// When more die than lived.
    pub fn remove_live(&mut self, superblock: SuperblockId, grains: u64) {
        let Superblock { live_grains: live, state, .. } = &mut self.all[superblock.0 as usize];
        *live = live.checked_sub(grains).expect("no more grains die than lived");
        self.live_grains -= grains;
        if *live == 0 && *state == State::Retired {
            *state = State::Closed;
            self.retired -= 1;
        }
    }
}

/// What a checkpoint holds of the table.
impl Superblocks {
    /// The table as it is without these runs of living grains, none of which reaches into another superblock. There are no victims in it: of what
    /// garbage collection has moved out of them so far, validity does not know that it is dead there.
    pub(crate) fn without(&self, runs: &[(SuperblockId, Grain, u32)]) -> Vec<Superblock> {
        let mut all = self.all.clone();
        for victim in all.iter_mut().filter(|superblock| superblock.state == State::Victim) {
            (victim.state, victim.has_strays) = (State::Closed, true);
        }
        for &(superblock, _, grains) in runs {
            let found = &mut all[superblock.0 as usize];
            found.live_grains -= u64::from(grains);
            if found.live_grains == 0 && found.state == State::Retired {
                found.state = State::Closed;
            }
        }
        all
    }
}

/// Changes to the table that only a mount makes.
impl Superblocks {
    /// The table as it was saved, and changed since.
    pub(crate) fn recover(&mut self, all: Vec<Superblock>) {
        self.live_grains = all.iter().map(|superblock| superblock.live_grains).sum();
        self.retired = all.iter().filter(|superblock| superblock.state == State::Retired).count() as u64;
        self.all = all;
    }

    /// Superblocks that were open when the power went may hold pairs that no change in the journal names.
    pub(crate) fn suspect_open(&mut self) {
        self.all.iter_mut().for_each(|superblock| superblock.has_strays |= superblock.state == State::Open);
    }

    /// One of them, to change.
    pub(crate) fn get_mut(&mut self, superblock: SuperblockId) -> Option<&mut Superblock> {
        self.all.get_mut(superblock.0 as usize)
    }

    /// Lists the free ones anew.
    pub(crate) fn list_free(&mut self) {
        self.free.iter_mut().for_each(VecDeque::clear);
        self.free_count = 0;
        for number in 0..self.all.len() {
            if self.all[number].state == State::Free {
                let superblock = SuperblockId(number as u32);
                self.push_free(Free { superblock, freed: Nanos::ZERO, erased: Nanos::ZERO });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_that_was_made_ahead_is_there_when_it_was_made() {
        let mut superblocks = Superblocks::new(6, 1);
        for (life, freed) in [(1, 70), (2, 50)] {
            let (superblock, ..) = superblocks.open(Stream::User, 0).unwrap();
            assert_eq!(superblock, SuperblockId(life));
            superblocks.close(superblock, 0);
            superblocks.condemn(superblock);
            superblocks.release(superblock, Nanos(freed), Nanos(1000));
        }
        let from = |count, at| superblocks.free_from(count, Nanos(at));
        assert_eq!(
            (from(3, 10), from(4, 10), from(5, 10), from(6, 10)),
            (Some(Nanos(10)), Some(Nanos(50)), Some(Nanos(70)), None)
        );
        assert_eq!((from(4, 60), from(5, 60), from(5, 80)), (Some(Nanos(60)), Some(Nanos(70)), Some(Nanos(80))));
    }
}
