//! The table of superblocks: what state each is in and how much of it lives.

use crate::dram::DramUse;
use kvssd_flash::SuperblockId;
use kvssd_types::Nanos;
use std::collections::VecDeque;

/// What a superblock is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// One superblock, as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Superblock {
    /// What it is used for.
    pub state: State,
    /// Whether it holds sections of the index, and not pairs and invalid mappings.
    pub is_map: bool,
    /// The grains in it that belong to living records.
    pub live_grains: u64,
    /// The grains at the ends of its pages that no record was given. Moving its records leaves about as many behind again.
    pub padding_grains: u64,
    /// The superblock that its stream went on to: a record that runs over its end goes on there.
    pub next: SuperblockId,
}

/// All superblocks.
#[derive(Debug)]
pub struct Superblocks {
    all: Vec<Superblock>,
    free: VecDeque<(SuperblockId, Nanos)>,
    live_grains: u64,
}

/// Superblock 0 is the system's.
pub const SYSTEM: SuperblockId = SuperblockId(0);

impl Superblocks {
    /// `count` erased superblocks, of which the first is the system's.
    #[must_use]
    pub fn new(count: u32) -> Self {
        let mut all =
            vec![
                Superblock { state: State::Free, is_map: false, live_grains: 0, padding_grains: 0, next: SYSTEM };
                count as usize
            ];
        all[0].state = State::System;
        let free = (1..count).map(|number| (SuperblockId(number), Nanos::ZERO)).collect();
        Superblocks { all, free, live_grains: 0 }
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

    /// The number of erased ones.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// The grains of all living records.
    #[must_use]
    pub fn live_grains(&self) -> u64 {
        self.live_grains
    }

    /// Bytes of DRAM for each: living and padding grains, next, erase count and state.
    pub const ENTRY_BYTES: u64 = 17;

    /// Charges a table of `count` superblocks.
    pub fn charge(count: u64, dram: &mut DramUse) {
        dram.add("superblocks", count * Self::ENTRY_BYTES);
    }

    /// Opens the superblock that has been free for longest, which spreads the erases; gives the moment when its erase ends.
    ///
    /// # Panics
    /// When none is free: garbage collection keeps a reserve so that this cannot be.
    pub fn open(&mut self, is_map: bool) -> (SuperblockId, Nanos) {
        let (superblock, erased) =
            self.free.pop_front().expect("garbage collection keeps a reserve of free superblocks");
        self.all[superblock.0 as usize] =
            Superblock { state: State::Open, is_map, live_grains: 0, padding_grains: 0, next: SYSTEM };
        (superblock, erased)
    }

    /// Says where the stream of `superblock` went on.
    pub fn link(&mut self, superblock: SuperblockId, next: SuperblockId) {
        self.all[superblock.0 as usize].next = next;
    }

    /// A page of a superblock was finished with `grains` that no record was given.
    pub fn add_padding(&mut self, superblock: SuperblockId, grains: u64) {
        self.all[superblock.0 as usize].padding_grains += grains;
    }

    /// A superblock is full.
    pub fn close(&mut self, superblock: SuperblockId) {
        let closed = &mut self.all[superblock.0 as usize];
        assert_eq!(closed.state, State::Open, "only an open superblock is closed");
        closed.state = State::Closed;
    }

    /// Garbage collection begins with a superblock.
    pub fn condemn(&mut self, superblock: SuperblockId) {
        let victim = &mut self.all[superblock.0 as usize];
        assert_eq!(victim.state, State::Closed, "only a closed superblock is collected");
        victim.state = State::Victim;
    }

    /// A victim was erased, which ends at `erased`.
    ///
    /// # Panics
    /// When records still live in it.
    pub fn release(&mut self, superblock: SuperblockId, erased: Nanos) {
        let victim = &mut self.all[superblock.0 as usize];
        assert_eq!(victim.state, State::Victim, "only a victim is erased");
        assert_eq!(victim.live_grains, 0, "{superblock:?} is erased with living records in it");
        victim.state = State::Free;
        self.free.push_back((superblock, erased));
    }

    /// `grains` of a superblock belong to a record that lives.
    pub fn add_live(&mut self, superblock: SuperblockId, grains: u64) {
        self.all[superblock.0 as usize].live_grains += grains;
        self.live_grains += grains;
    }

    /// `grains` of a superblock belonged to a record that died.
    ///
    /// # Panics
    /// When more die than lived.
    pub fn remove_live(&mut self, superblock: SuperblockId, grains: u64) {
        let live = &mut self.all[superblock.0 as usize].live_grains;
        *live = live.checked_sub(grains).expect("no more grains die than lived");
        self.live_grains -= grains;
    }
}
