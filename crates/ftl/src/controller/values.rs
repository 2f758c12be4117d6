//! A cache of small values in key order. A repeated scan of an ordered index finds neighbouring values beside each other, instead of each
//! on a page of its own among dead pairs.
//!
//! ```text
//!   page of the index, in a life of its superblock:   entries 0 ... 31 | 32 ... 63 | ...
//!                                                            |            |
//!                                                          block        block: [end u16] x 32, then [key bytes u8] [key] [value] of each
//! ```
//!
//! An entry of such a page names one version of a pair for ever, wherever that is moved, so a value once seen for it stays its value. A block
//! holds the values that were seen, and returns each only for its own key. Blocks are memory beside the drive's DRAM, which the medium gives up
//! from its memory for pages ([`Backing::give_up`]). When it has no more to give, a block is evicted that nobody asked for since it was made or
//! since the last round. A block that grows uses its own room too; if that is not enough, it stays as it was.

use crate::layout::address::Grain;
use kvssd_flash::{Backing, Blob};
use kvssd_types::KEY_BYTES_MAX;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Entries of a block.
const ENTRIES: usize = 32;

/// The longest value that is kept. An estimate: a few longer ones fill a page, and copying them takes longer than finding them.
const SMALL_BYTES_MAX: usize = 512;
const _: () = assert!(ENTRIES * (1 + KEY_BYTES_MAX + SMALL_BYTES_MAX) <= u16::MAX as usize, "ends have two bytes");

/// How many recently used blocks one eviction passes over before it evicts the next one. An estimate.
const STAYING_MAX: usize = 64;

/// A medium that has never given memory is asked this often, since readers may hold its pages at the time; then the cache is off. An estimate.
const ASKS_MAX: u32 = 64;

/// Bytes that a block takes beside its values, including its name twice. An estimate.
const BLOCK_BYTES: u64 = 256;

/// The name of a block: neighbouring entries of one index page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockName {
    pub(crate) page: Grain,
    /// The life of its superblock.
    pub(crate) generation: u64,
    /// Which of the page's blocks.
    pub(crate) block: u32,
}

/// The block of its page that entry `number` is in, and the entry's position in that block.
pub(crate) fn block_of(number: u32) -> (u32, usize) {
    (number / ENTRIES as u32, number as usize % ENTRIES)
}

/// The pairs of a block that were seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// A bit for each entry: whether it was seen.
    seen: u32,
    /// Where the pair of each entry ends, and that of the next one begins.
    ends: [u16; ENTRIES],
    pairs: Blob,
}

impl Block {
    /// The value of an entry, if it was seen and the key is its own.
    pub(crate) fn value(&self, entry: usize, key: &[u8]) -> Option<Blob> {
        let pair = self.pair(entry)?;
        let value_begin = 1 + usize::from(*self.pairs[pair.clone()].first()?);
        let is_its_key = self.pairs[pair.start + 1..pair.start + value_begin] == *key;
        is_its_key.then(|| self.pairs.part(pair.start + value_begin..pair.end))
    }

    fn pair(&self, entry: usize) -> Option<Range<usize>> {
        let begin = entry.checked_sub(1).map_or(0, |before| self.ends[before]);
        (self.seen >> entry & 1 == 1).then(|| begin.into()..self.ends[entry].into())
    }

    /// The block with more pairs.
    pub(crate) fn with(&self, more: &[SeenPair<'_>]) -> Block {
        let (mut seen, mut ends, mut pairs) = (self.seen, [0; ENTRIES], Vec::with_capacity(self.pairs.len()));
        for (entry, end) in ends.iter_mut().enumerate() {
            if let Some(&SeenPair { key, value, .. }) = more.iter().find(|pair| pair.entry == entry) {
                seen |= 1 << entry;
                pairs.push(key.len() as u8);
                pairs.extend_from_slice(key);
                pairs.extend_from_slice(value);
            } else if let Some(pair) = self.pair(entry) {
                pairs.extend_from_slice(&self.pairs[pair]);
            }
            *end = pairs.len() as u16;
        }
        Block { seen, ends, pairs: pairs.into() }
    }

    fn bytes(&self) -> u64 {
        BLOCK_BYTES + self.pairs.len() as u64
    }
}

/// A pair that was seen, and its entry in a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenPair<'p> {
    pub(crate) entry: usize,
    pub(crate) key: &'p [u8],
    pub(crate) value: &'p [u8],
}

impl SeenPair<'_> {
    /// Whether such a value is kept.
    pub(crate) fn is_small(&self) -> bool {
        self.value.len() <= SMALL_BYTES_MAX
    }
}

#[derive(Debug)]
struct Kept {
    block: Arc<Block>,
    was_asked: AtomicBool,
}

/// The blocks that are kept.
#[derive(Debug, Default)]
pub(crate) struct Values {
    blocks: BTreeMap<BlockName, Kept>,
    /// The order of eviction, the next candidate first.
    order: VecDeque<BlockName>,
    bytes: u64,
    /// What the medium has given.
    bytes_max: u64,
    /// How often it gave nothing, before it has given anything.
    asked_in_vain: u32,
}

impl Values {
    /// Whether anything can be kept, as far as is known.
    pub(crate) fn is_on(&self) -> bool {
        self.asked_in_vain < ASKS_MAX
    }

    /// A block, if it is kept.
    pub(crate) fn find(&self, name: &BlockName) -> Option<Arc<Block>> {
        let kept = self.blocks.get(name)?;
        // The flag is written only if it changes: cores share a cache line that is only read.
        if !kept.was_asked.load(Ordering::Relaxed) {
            kept.was_asked.store(true, Ordering::Relaxed);
        }
        Some(Arc::clone(&kept.block))
    }

    /// Keeps a block in place of the one with its name, if the medium gives memory for it.
    pub(crate) fn keep(&mut self, name: BlockName, block: Arc<Block>, backing: &dyn Backing) {
        let bytes = block.bytes();
        let before_bytes = self.blocks.get(&name).map_or(0, |kept| kept.block.bytes());
        self.bytes -= before_bytes;
        if !self.make_room(bytes, &name, backing) {
            self.bytes += before_bytes;
            return;
        }
        self.bytes += bytes;
        match self.blocks.get_mut(&name) {
            Some(kept) => kept.block = block,
            None => {
                self.order.push_back(name);
                self.blocks.insert(name, Kept { block, was_asked: AtomicBool::new(false) });
            }
        }
    }

    /// Makes room for `bytes` more: with memory of the medium, or by evicting blocks other than `name`. Returns whether there is room.
    fn make_room(&mut self, bytes: u64, name: &BlockName, backing: &dyn Backing) -> bool {
        while self.bytes + bytes > self.bytes_max {
            let given_bytes = backing.give_up();
            self.bytes_max += given_bytes;
            self.asked_in_vain += u32::from(self.bytes_max == 0);
            // Nothing is evicted for a block that is larger than the whole cache.
            if given_bytes == 0 && (bytes > self.bytes_max || !self.let_one_go(name)) {
                return false;
            }
        }
        true
    }

    /// Evicts a block other than `name`. Returns whether there was one.
    fn let_one_go(&mut self, name: &BlockName) -> bool {
        if self.blocks.len() == usize::from(self.blocks.contains_key(name)) {
            return false;
        }
        for passed in 0.. {
            let Some(first) = self.order.pop_front() else { break };
            let kept = self.blocks.get_mut(&first).expect("the order has the blocks that are kept, each once");
            if first == *name || std::mem::take(kept.was_asked.get_mut()) && passed < STAYING_MAX {
                self.order.push_back(first);
            } else {
                self.bytes -= kept.block.bytes();
                self.blocks.remove(&first);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_flash::{BlockAddress, BlockState, MediaError, PageAddress, PageView, Span, UnitAddress, UnitImage};
    use std::sync::atomic::AtomicU64;

    /// A medium with so many times 10 000 bytes to give.
    #[derive(Debug)]
    struct Giver(AtomicU64);

    impl Backing for Giver {
        fn program(&mut self, _: UnitAddress, _: UnitImage, _: Span) -> Result<(), MediaError> {
            unreachable!()
        }

        fn page(&mut self, _: PageAddress) -> Result<PageView<'_>, MediaError> {
            unreachable!()
        }

        fn erase(&mut self, _: BlockAddress, _: Span) -> Result<(), MediaError> {
            unreachable!()
        }

        fn block(&self, _: BlockAddress) -> BlockState {
            unreachable!()
        }

        fn give_up(&self) -> u64 {
            let before = self.0.load(Ordering::Relaxed);
            self.0.store(before.saturating_sub(1), Ordering::Relaxed);
            if before > 0 { 10_000 } else { 0 }
        }
    }

    fn name(page: u64, generation: u64, block: u32) -> BlockName {
        BlockName { page: Grain(page), generation, block }
    }

    fn pair<'p>(entry: usize, key: &'p [u8], value: &'p [u8]) -> SeenPair<'p> {
        SeenPair { entry, key, value }
    }

    fn keep(values: &mut Values, name: BlockName, more: &[SeenPair<'_>], giver: &Giver) {
        let before = values.find(&name).unwrap_or_default();
        values.keep(name, Arc::new(before.with(more)), giver);
    }

    #[test]
    fn a_block_shows_what_was_seen_to_its_key_alone() {
        let (mut values, giver) = (Values::default(), Giver(AtomicU64::new(9)));
        let shown = |values: &Values, name, entry, key: &[u8]| {
            values.find(&name).and_then(|block| block.value(entry, key)).map(|value| value.to_vec())
        };
        let first = name(5, 1, 0);
        keep(&mut values, first, &[pair(3, b"three", b"3"), pair(0, b"zero", b"")], &giver);
        keep(&mut values, first, &[pair(31, b"", b"last"), pair(1, b"one", &[1; SMALL_BYTES_MAX])], &giver);
        let large = vec![1; SMALL_BYTES_MAX];
        for (entry, key, value) in
            [(0, &b"zero"[..], &b""[..]), (1, b"one", &large), (3, b"three", b"3"), (31, b"", b"last")]
        {
            assert_eq!(shown(&values, first, entry, key).as_deref(), Some(value));
        }
        // Of another entry, key, block, life or page there is nothing.
        for (name, entry, key) in [
            (first, 2, &b"three"[..]),
            (first, 3, b"threE"),
            (first, 3, b"thre"),
            (first, 3, b"three3"),
            (name(5, 1, 1), 3, b"three"),
            (name(5, 2, 0), 3, b"three"),
            (name(6, 1, 0), 3, b"three"),
        ] {
            assert_eq!(shown(&values, name, entry, key), None);
        }
        assert!(pair(0, b"", &large).is_small() && !pair(0, b"", &[0; SMALL_BYTES_MAX + 1]).is_small());
        assert_eq!((block_of(31), block_of(32)), ((0, 31), (1, 0)));
    }

    #[test]
    fn what_is_asked_for_stays_and_all_take_no_more_than_was_given() {
        let (mut values, giver) = (Values::default(), Giver(AtomicU64::new(3)));
        let check = |values: &Values| {
            assert_eq!(values.bytes, values.blocks.values().map(|kept| kept.block.bytes()).sum());
            assert!(values.bytes <= 30_000 && values.order.len() == values.blocks.len());
        };
        (0..10).for_each(|page| keep(&mut values, name(page, 0, 0), &[pair(0, b"key", &[7; 100])], &giver));
        for page in 10..1000 {
            // Some come in two parts.
            for entry in 0..1 + page as usize % 2 {
                keep(&mut values, name(page, 0, 0), &[pair(entry, b"key", &[7; 100])], &giver);
                check(&values);
            }
            assert!((0..10).all(|page| values.find(&name(page, 0, 0)).is_some()), "at page {page}");
        }
        assert!(values.bytes > 29_000 && values.find(&name(10, 0, 0)).is_none());
        // All were asked for: one leaves all the same.
        for page in 0..2000 {
            (0..2000).for_each(|page| drop(values.find(&name(page, 0, 0))));
            keep(&mut values, name(page, 0, 1), &[pair(0, b"key", &[7; 100])], &giver);
            check(&values);
        }
    }

    /// The first entries of a block, of 400 bytes each.
    fn block_of_pairs(count: usize) -> Arc<Block> {
        let pairs: Vec<_> = (0..count).map(|entry| pair(entry, b"key", &[7; 400])).collect();
        Arc::new(Block::default().with(&pairs))
    }

    /// Keeps a block of so many pairs under the name of each page in turn; returns how many pairs the pages have then, of 2.
    fn keep_in_turn(values: &mut Values, giver: &Giver, kept: &[(u64, usize)]) -> [usize; 2] {
        for &(page, count) in kept {
            values.keep(name(page, 0, 0), block_of_pairs(count), giver);
        }
        let bytes: u64 = values.blocks.values().map(|kept| kept.block.bytes()).sum();
        assert_eq!((values.bytes, values.order.len()), (bytes, values.blocks.len()));
        let pairs = |page| values.blocks.get(&name(page, 0, 0)).map_or(0, |kept| kept.block.seen.count_ones() as usize);
        [pairs(0), pairs(1)]
    }

    #[test]
    fn a_block_that_grows_takes_the_room_that_it_had() {
        // 10 000 bytes are room for 23 pairs in two blocks, but not for 10 + 10 + 12.
        let (mut values, giver) = (Values::default(), Giver(AtomicU64::new(1)));
        assert_eq!(keep_in_turn(&mut values, &giver, &[(0, 10), (1, 10)]), [10, 10]);
        assert_eq!(keep_in_turn(&mut values, &giver, &[(0, 12), (1, 11)]), [12, 11], "nobody leaves");
        // The first that would leave is the one that grows: the other one does.
        assert_eq!(keep_in_turn(&mut values, &giver, &[(0, 20)]), [20, 0]);
        assert_eq!(keep_in_turn(&mut values, &giver, &[(0, 10), (0, 24)]), [24, 0], "one alone has all room");
    }

    #[test]
    fn for_a_block_that_is_too_large_for_all_room_nobody_leaves() {
        let (mut values, giver) = (Values::default(), Giver(AtomicU64::new(1)));
        for (page, is_new) in [(2, true), (0, false)] {
            assert_eq!(keep_in_turn(&mut values, &giver, &[(0, 10), (1, 10), (page, 30)]), [10, 10], "new: {is_new}");
        }
        assert!(values.is_on() && values.find(&name(2, 0, 0)).is_none());
    }

    #[test]
    fn a_medium_that_gives_nothing_is_asked_again_and_not_for_ever() {
        let (mut values, mut none, giver) = (Values::default(), Values::default(), Giver(AtomicU64::new(0)));
        for _ in 1..ASKS_MAX {
            assert_eq!(keep_in_turn(&mut values, &giver, &[(0, 1)]), [0, 0]);
            assert_eq!(keep_in_turn(&mut none, &giver, &[(0, 1)]), [0, 0]);
        }
        assert!(values.is_on() && none.is_on());
        keep_in_turn(&mut none, &giver, &[(0, 1)]);
        assert!(!none.is_on());
        giver.0.store(1, Ordering::Relaxed);
        assert_eq!(keep_in_turn(&mut values, &giver, &[(0, 10), (1, 10), (2, 30)]), [10, 10]);
        assert!(values.is_on());
    }
}
