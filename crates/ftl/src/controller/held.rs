//! What iterators keep: records that died while an iterator may still need them, and where garbage collection moved
//! records that an iterator knows by an older place.
//!
//! ```text
//!   ---- iterator 1 made ---- pair A dies ---- iterator 2 made ---- pair B moves ----> each has a number, in this order
//!             keeps A, knows B by its old place         knows B by its old place
//! ```
//!
//! All of this is DRAM only: the next mount, which has no iterators, knows that A is dead.

use crate::layout::address::Grain;
use kvssd_flash::SuperblockId;
use std::collections::{BTreeMap, BTreeSet};

/// A record that iterators keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dead {
    pub(crate) place: Grain,
    pub(crate) grains: u32,
    died: u64,
}

/// What all iterators keep.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// The number of the last event.
    number: u64,
    /// The creation numbers of the live iterators.
    made: BTreeSet<u64>,
    dead: BTreeMap<Grain, Dead>,
    /// Each move of a record: its old place and the number of the move, to its new place.
    moves: BTreeMap<(Grain, u64), Grain>,
    dead_grains: u64,
    /// Where the hosts' logs stood when the last iterator was made, and the superblocks that were opened for them since:
    /// what lies behind or in these is younger than every iterator.
    frontier: Vec<(SuperblockId, Grain)>,
    younger: BTreeSet<SuperblockId>,
}

impl Held {
    /// DRAM of a record that is kept or was moved: place, grains or place, number.
    const ENTRY_BYTES: u64 = 20;

    /// Whether there are iterators.
    pub(crate) fn is_on(&self) -> bool {
        !self.made.is_empty()
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.dead.len() + self.moves.len()) as u64 * Self::ENTRY_BYTES
    }

    /// Whether iterators keep flash that could be collected otherwise.
    pub(crate) fn keeps_flash(&self) -> bool {
        self.dead_grains > 0
    }

    /// Whether no record is kept and none was moved.
    pub(crate) fn is_empty(&self) -> bool {
        self.dead.is_empty() && self.moves.is_empty()
    }

    /// The number of the next event.
    pub(crate) fn number_next(&self) -> u64 {
        self.number + 1
    }

    /// Registers an iterator while the hosts' logs stand at `frontier`. Returns its number.
    pub(crate) fn make(&mut self, frontier: Vec<(SuperblockId, Grain)>) -> u64 {
        (self.frontier, self.younger) = (frontier, BTreeSet::new());
        self.number += 1;
        self.made.insert(self.number);
        self.number
    }

    /// Removes the iterator `made`. Returns the dead records that no other iterator keeps.
    pub(crate) fn end(&mut self, made: u64) -> Vec<Dead> {
        self.made.remove(&made);
        let Some(&oldest) = self.made.first() else {
            self.moves.clear();
            self.dead_grains = 0;
            return std::mem::take(&mut self.dead).into_values().collect();
        };
        self.moves.retain(|&(_, moved), _| moved > oldest);
        let free: Vec<Dead> = self.dead.values().filter(|dead| dead.died < oldest).copied().collect();
        for dead in &free {
            self.dead.remove(&dead.place);
            self.dead_grains -= u64::from(dead.grains);
        }
        free
    }

    /// A superblock was opened for hosts' records: all that will lie in it is younger than any iterator.
    pub(crate) fn opened(&mut self, superblock: SuperblockId) {
        if self.is_on() {
            self.younger.insert(superblock);
        }
    }

    pub(crate) fn erased(&mut self, superblock: SuperblockId) {
        self.younger.remove(&superblock);
        self.frontier.retain(|(open, _)| *open != superblock);
    }

    /// A pair dies; a superblock has `superblock_grains` grains. Returns whether iterators keep its record. They do not if it
    /// is younger than all of them.
    pub(crate) fn die(&mut self, place: Grain, grains: u32, superblock_grains: u64) -> bool {
        let superblock = SuperblockId((place.0 / superblock_grains) as u32);
        let is_behind = |&(open, frontier): &(SuperblockId, Grain)| open == superblock && place >= frontier;
        let is_younger = self.younger.contains(&superblock) || self.frontier.iter().any(is_behind);
        if !self.is_on() || is_younger {
            return false;
        }
        self.number += 1;
        self.dead.insert(place, Dead { place, grains, died: self.number });
        self.dead_grains += u64::from(grains);
        true
    }

    /// Whether the record at a place is dead, and kept.
    pub(crate) fn has(&self, place: Grain) -> bool {
        self.dead.contains_key(&place)
    }

    /// A record was moved.
    pub(crate) fn moved(&mut self, from: Grain, to: Grain) {
        if self.is_on() {
            self.number += 1;
            self.moves.insert((from, self.number), to);
        }
    }

    /// A dead record was moved.
    pub(crate) fn dead_moved(&mut self, from: Grain, to: Grain) {
        if let Some(dead) = self.dead.remove(&from) {
            self.dead.insert(to, Dead { place: to, ..dead });
            self.moved(from, to);
        }
    }

    /// The current place of the record that lay at `place` when the iterator `made` was made.
    pub(crate) fn place_of(&self, place: Grain, made: u64) -> Grain {
        let (mut place, mut since) = (place, made);
        while let Some((&(_, moved), &to)) = self.moves.range((place, since)..=(place, u64::MAX)).next() {
            (place, since) = (to, moved);
        }
        place
    }

    /// Everything that is kept.
    pub(crate) fn dead(&self) -> impl Iterator<Item = &Dead> {
        self.dead.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iterator_follows_the_moves_since_it_was_made() {
        let mut held = Held::default();
        held.moved(Grain(1), Grain(2));
        let first = held.make(Vec::new());
        held.moved(Grain(1), Grain(5));
        let second = held.make(Vec::new());
        // Another record has come to where the first one was.
        held.moved(Grain(1), Grain(9));
        held.moved(Grain(5), Grain(7));
        assert_eq!((held.place_of(Grain(1), first), held.place_of(Grain(1), second)), (Grain(7), Grain(9)));
        assert_eq!(held.place_of(Grain(5), second), Grain(7));
        assert_eq!(held.place_of(Grain(3), first), Grain(3));
        held.end(first);
        assert_eq!(held.place_of(Grain(5), second), Grain(7));
        held.end(second);
        assert_eq!(held.bytes(), 0);
    }

    #[test]
    fn a_record_is_kept_until_the_last_iterator_that_saw_it_ends() {
        let mut held = Held::default();
        assert!(!held.die(Grain(1), 4, 100), "nobody wants it");
        let first = held.make(Vec::new());
        assert!(held.die(Grain(2), 4, 100));
        let second = held.make(Vec::new());
        assert!(held.die(Grain(3), 4, 100));
        held.dead_moved(Grain(2), Grain(8));
        assert!(held.has(Grain(8)) && !held.has(Grain(2)) && held.keeps_flash());
        let places = |dead: Vec<Dead>| dead.into_iter().map(|dead| dead.place).collect::<Vec<_>>();
        assert_eq!(places(held.end(first)), [Grain(8)]);
        assert_eq!(places(held.end(second)), [Grain(3)]);
        assert!(!held.keeps_flash() && !held.is_on());
    }

    #[test]
    fn what_is_younger_than_all_iterators_is_not_kept() {
        let mut held = Held::default();
        let only = held.make(vec![(SuperblockId(1), Grain(150))]);
        held.opened(SuperblockId(3));
        assert!(!held.die(Grain(160), 4, 100) && !held.die(Grain(310), 4, 100));
        assert!(held.die(Grain(149), 4, 100) && held.die(Grain(250), 4, 100));
        held.erased(SuperblockId(3));
        assert!(held.die(Grain(311), 4, 100), "garbage collection has brought something older there");
        assert_eq!(held.end(only).len(), 3);
    }
}
