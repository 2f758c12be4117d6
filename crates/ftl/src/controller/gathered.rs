//! Gathers partial writes on a block drive: mapped blocks of which hosts have written only a part.
//!
//! ```text
//!   write of 512 B --> block 7   . X . . X X . .   --> all of it has come: a record, and the rest is never read
//!                      block 9   X . . . . . . .   --> its place is wanted, or a flush: the rest is read, then a record
//! ```
//!
//! Places are bounded, charged to spare DRAM, and as safe as the write buffer: a change of a block is staged before it is answered, and a
//! mount finds it there. A place becomes free when the record of its block is in the write buffer; a command that needs it earlier waits.
//! Between commands, half of the places are freed: their blocks are written out side by side, and no write waits for the reads of another.
//! At least two places are freed, since a command can write two blocks in part.
//!
//! A volatile drive keeps the order of writes instead, and gathers nothing.

use crate::dram::DramUse;
use kvssd_flash::{PowerLoss, Profile};
use kvssd_types::{BLOCK_BYTES, Nanos, PlacementHandle, Value};
use std::collections::VecDeque;
use std::ops::Range;

/// Blocks that a command can write in part: the first and the last.
pub(crate) const PARTS_MAX: usize = 2;
/// The fewest places with which there is anything to gather.
const PLACES_MIN: usize = 2 * PARTS_MAX;
/// The most places.
pub(crate) const PLACES_MAX: u32 = 1 << 16;
/// The part of the write buffer's size that places may have. An estimate.
const SHARE: u64 = 2;
/// DRAM of a place beside its bytes: the block's number, its neighbours in age, what of it has come.
const PLACE_BYTES: u64 = 32;

/// A mapped block of which a part has come.
#[derive(Clone, Debug)]
pub(crate) struct GatheredBlock {
    pub(crate) number: u64,
    /// What has come, a piece for each logical block.
    pub(crate) pieces: Vec<Option<Value>>,
    pub(crate) handle: PlacementHandle,
    /// When its last part came.
    pub(crate) since: Nanos,
}

impl GatheredBlock {
    /// Whether nothing of it is missing.
    pub(crate) fn is_whole(&self) -> bool {
        self.pieces.iter().all(Option::is_some)
    }

    /// Whether these bytes of it have all come.
    pub(crate) fn covers(&self, bytes: Range<usize>) -> bool {
        self.pieces[pieces_of(bytes)].iter().all(Option::is_some)
    }
}

/// The numbers, within a mapped block, of the logical blocks that these bytes cover.
pub(crate) fn pieces_of(bytes: Range<usize>) -> Range<usize> {
    bytes.start / BLOCK_BYTES as usize..bytes.end / BLOCK_BYTES as usize
}

/// The blocks that are gathered, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    mapped_bytes: u64,
    blocks: VecDeque<GatheredBlock>,
    /// For each free place, since when it is free.
    free: Vec<Nanos>,
}

impl Gathered {
    /// For a drive of `profile` with mapped blocks of `mapped_bytes`: up to `places_max` places, as many as fit into `spare_bytes` of DRAM and
    /// into their share of the write buffer's size.
    pub(crate) fn new(profile: &Profile, mapped_bytes: u32, places_max: u32, spare_bytes: u64) -> Self {
        let mapped_bytes = u64::from(mapped_bytes);
        let fit =
            (profile.memory.write_buffer_bytes / SHARE / mapped_bytes).min(spare_bytes / (mapped_bytes + PLACE_BYTES));
        let places = fit.min(places_max.into()) as usize;
        let is_kept = profile.memory.power_loss != PowerLoss::Volatile;
        let places = if is_kept && places >= PLACES_MIN { places } else { 0 };
        Gathered { mapped_bytes, blocks: VecDeque::new(), free: vec![Nanos::ZERO; places] }
    }

    /// Charges what so many places take at the most.
    pub(crate) fn charge(mapped_bytes: u32, places_max: u32, dram: &mut DramUse) {
        if places_max > 0 {
            dram.add("gathered_blocks", u64::from(places_max) * (u64::from(mapped_bytes) + PLACE_BYTES));
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        !self.blocks.is_empty() || !self.free.is_empty()
    }

    pub(crate) fn dram_bytes(&self) -> u64 {
        (self.blocks.len() + self.free.len()) as u64 * (self.mapped_bytes + PLACE_BYTES)
    }

    pub(crate) fn dram(&self, dram: &mut DramUse) {
        if self.is_on() {
            dram.add("gathered_blocks", self.dram_bytes());
        }
    }

    /// Bytes of flash that the blocks will take.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.len() as u64 * self.mapped_bytes
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = &GatheredBlock> {
        self.blocks.iter()
    }

    pub(crate) fn get(&self, number: u64) -> Option<&GatheredBlock> {
        self.blocks.iter().find(|block| block.number == number)
    }

    pub(crate) fn free_places(&self) -> usize {
        self.free.len()
    }

    /// Places that are given up between commands.
    pub(crate) fn wanted_places(&self) -> usize {
        ((self.blocks.len() + self.free.len()) / 2).max(PARTS_MAX)
    }

    /// The time from which there is a place for the block: 0 if it has one already.
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn place_since(&self, number: u64) -> Nanos {
        match self.get(number) {
            Some(_) => Nanos::ZERO,
            None => *self.free.iter().min().expect("between commands places are free"),
        }
    }

    /// Adds a part of a block that came at `at`; `start` is its first byte in the block.
    ///
    /// # Panics
    /// When no place is free, or the part is none of the block's.
    pub(crate) fn put(&mut self, number: u64, start: usize, part: &Value, handle: PlacementHandle, at: Nanos) {
        if self.get(number).is_none() {
            let first = (0..self.free.len()).min_by_key(|&place| self.free[place]).expect("places were made");
            self.free.swap_remove(first);
            let pieces = vec![None; self.mapped_bytes as usize / BLOCK_BYTES as usize];
            self.blocks.push_back(GatheredBlock { number, pieces, handle, since: at });
        }
        let block = self.blocks.iter_mut().find(|block| block.number == number).expect("it has a place");
        for piece in pieces_of(start..start + part.len()) {
            let from = piece * BLOCK_BYTES as usize - start;
            block.pieces[piece] = Some(part.slice(from..from + BLOCK_BYTES as usize));
        }
        block.handle = handle;
        block.since = block.since.max(at);
    }

    /// Removes a block that was written, if it is here; its place is free from `at` on.
    pub(crate) fn remove(&mut self, number: u64, at: Nanos) {
        if let Some(found) = self.blocks.iter().position(|block| block.number == number) {
            self.blocks.remove(found);
            self.free.push(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(overrides: &[(&str, &str)]) -> Gathered {
        let owned: Vec<_> = overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Gathered::new(&Profile::load("kvvirt", &owned).unwrap(), 4096, 4, 1 << 20)
    }

    fn bytes(fill: u8, blocks: usize) -> Value {
        Value::from(&vec![fill; blocks * BLOCK_BYTES as usize][..])
    }

    #[test]
    fn a_block_is_whole_when_all_of_it_has_come_and_the_last_that_came_counts() {
        let mut gathered = gathered(&[]);
        gathered.put(7, 512, &bytes(1, 2), PlacementHandle::DEFAULT, Nanos(5));
        let block = gathered.get(7).unwrap();
        assert!(block.covers(512..1536) && !block.covers(0..1024) && !block.is_whole());
        gathered.put(7, 0, &bytes(2, 2), PlacementHandle(1), Nanos(9));
        gathered.put(7, 1536, &bytes(3, 5), PlacementHandle::DEFAULT, Nanos(5));
        let block = gathered.get(7).unwrap();
        assert!(block.is_whole() && block.since == Nanos(9));
        let firsts: Vec<u8> = block.pieces.iter().map(|piece| piece.as_ref().unwrap().to_vec()[0]).collect();
        assert_eq!(firsts, [2, 2, 1, 3, 3, 3, 3, 3]);
    }

    #[test]
    fn who_finds_no_place_waits_for_the_first_that_becomes_free() {
        let mut gathered = gathered(&[]);
        let put = |gathered: &mut Gathered, number| {
            gathered.put(number, 0, &bytes(1, 1), PlacementHandle::DEFAULT, Nanos(1));
        };
        (0..4).for_each(|number| put(&mut gathered, number));
        assert_eq!((gathered.free_places(), gathered.place_since(2)), (0, Nanos::ZERO), "it has one");
        let charged = gathered.dram_bytes();
        gathered.remove(1, Nanos(30));
        gathered.remove(0, Nanos(20));
        gathered.remove(9, Nanos(5));
        assert_eq!((gathered.place_since(4), gathered.free_places()), (Nanos(20), 2));
        put(&mut gathered, 4);
        assert_eq!((gathered.place_since(5), gathered.dram_bytes()), (Nanos(30), charged));
        assert_eq!(gathered.blocks().map(|block| block.number).collect::<Vec<_>>(), [2, 3, 4]);
    }

    #[test]
    fn nothing_is_gathered_where_there_is_no_room_or_the_buffer_is_lost() {
        assert!(gathered(&[]).is_on() && gathered(&[("memory.power_loss", "protected")]).is_on());
        assert!(!gathered(&[("memory.power_loss", "volatile")]).is_on());
        let profile = Profile::load("kvvirt", &[]).unwrap();
        assert!(!Gathered::new(&profile, 4096, 3, 1 << 20).is_on(), "two are to be free");
        let spare = [0, 20_000, 100_000].map(|spare| Gathered::new(&profile, 4096, 64, spare).free_places());
        assert_eq!(spare, [0, 4, 24], "what DRAM has room for");
        let places = |bytes: u64| {
            let mut profile = profile.clone();
            profile.memory.write_buffer_bytes = bytes;
            Gathered::new(&profile, 4096, 64, 1 << 20).free_places()
        };
        assert_eq!([16 << 10, 64 << 10, 4 << 20].map(places), [0, 8, 64], "half of the write buffer at the most");
        let mut charged = DramUse::default();
        Gathered::charge(4096, 64, &mut charged);
        assert_eq!(charged.total_bytes(), Gathered::new(&profile, 4096, 64, 1 << 20).dram_bytes());
    }
}
