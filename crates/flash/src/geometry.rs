//! How a drive's flash is divided, and the addresses of its parts.
//!
//! Pages are numbered in the order in which a log fills a superblock (the same block number on every die of its target): the pages of
//! a one-shot program, then the next channel, then the next die of the channels, then the next word line.
//!
//! ```text
//!   superblock s, row r       channel 0      channel 1   ...   channel 7
//!     die 0 of a channel      p0 .. p7       p8 .. p15         p56 .. p63
//!     die 1 of a channel      p64 .. p71     ...
//!   row r + 1                 ...
//! ```
//!
//! A **target** is a group of neighbouring dies that superblocks spread over: all dies of the drive, unless the geometry says how many.
//! Superblock `s` lies in target `s % targets`.
//!
//! So that "the next page of the log" is "the next number", and every other part of an address is arithmetic.

use serde::{Deserialize, Serialize};

/// A mapping page, the smallest thing that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PageAddress(pub u32);

/// The pages of a one-shot program, the smallest thing that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitAddress(pub u32);

/// A block of one die, the smallest thing that is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockAddress {
    /// The superblock that the block belongs to.
    pub superblock: SuperblockId,
    /// The die.
    pub die: DieId,
}

/// The same block of every die of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SuperblockId(pub u32);

/// A die, channel first: die `d` hangs on channel `d % channels`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DieId(pub u32);

/// How the flash is divided: a profile's `[geometry]` table. Every field but the last is at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Independent buses.
    pub channels: u32,
    /// Dies that share a channel.
    pub dies_per_channel: u32,
    /// Blocks of a die.
    pub blocks_per_die: u32,
    /// Mapping pages of a block; a multiple of `pages_per_program`.
    pub pages_per_block: u32,
    /// Mapping pages that one program operation writes.
    pub pages_per_program: u32,
    /// Bytes of a mapping page.
    pub page_bytes: u32,
    /// Bytes of the out-of-band area of a mapping page.
    pub oob_bytes: u32,
    /// Dies that a superblock spreads over, a divisor of all; 0 for all.
    #[serde(default)]
    pub superblock_dies: u32,
    /// Bytes of a page that a read brings at the least, a power of two; 0 for 4096, an estimate: the data that one code word or a
    /// few protect.
    #[serde(default)]
    pub read_bytes_min: u32,
}

const SECTOR_BYTES: u32 = 4096;

impl Geometry {
    /// The smallest part of a page that crosses a channel.
    #[must_use]
    pub fn sector_bytes(&self) -> u32 {
        self.page_bytes.min(if self.read_bytes_min == 0 { SECTOR_BYTES } else { self.read_bytes_min })
    }

    /// Sectors of a page.
    #[must_use]
    pub fn sectors_per_page(&self) -> u32 {
        quotient(self.page_bytes, self.sector_bytes())
    }

    /// The number of dies.
    #[must_use]
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Dies of a target, and blocks of a superblock.
    #[must_use]
    pub fn target_dies(&self) -> u32 {
        if self.superblock_dies == 0 { self.dies() } else { self.superblock_dies }
    }

    /// The number of targets.
    #[must_use]
    pub fn targets(&self) -> u32 {
        quotient(self.dies(), self.target_dies())
    }

    /// The target that a superblock lies in.
    #[must_use]
    pub fn target_of(&self, superblock: SuperblockId) -> u32 {
        superblock.0 % self.targets()
    }

    /// The dies that a superblock spreads over.
    pub fn dies_of(&self, superblock: SuperblockId) -> impl Iterator<Item = DieId> + use<> {
        let first = self.target_of(superblock) * self.target_dies();
        (first..first + self.target_dies()).map(DieId)
    }

    /// The number of superblocks.
    #[must_use]
    pub fn superblocks(&self) -> u32 {
        self.blocks_per_die * self.targets()
    }

    /// The number of blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        u64::from(self.dies()) * u64::from(self.blocks_per_die)
    }

    /// Pages of a superblock.
    #[must_use]
    pub fn pages_per_superblock(&self) -> u32 {
        self.target_dies() * self.pages_per_block
    }

    /// Pages of the drive.
    #[must_use]
    pub fn pages(&self) -> u64 {
        u64::from(self.pages_per_superblock()) * u64::from(self.superblocks())
    }

    /// Units of a block: how often a block is programmed until it is full.
    #[must_use]
    pub fn units_per_block(&self) -> u32 {
        quotient(self.pages_per_block, self.pages_per_program)
    }

    /// Units of a superblock.
    #[must_use]
    pub fn units_per_superblock(&self) -> u32 {
        self.units_per_block() * self.target_dies()
    }

    /// Units of the drive.
    #[must_use]
    pub fn units(&self) -> u64 {
        u64::from(self.units_per_superblock()) * u64::from(self.superblocks())
    }

    /// Bytes of a one-shot program.
    #[must_use]
    pub fn unit_bytes(&self) -> u64 {
        u64::from(self.pages_per_program) * u64::from(self.page_bytes)
    }

    /// Bytes of a superblock.
    #[must_use]
    pub fn superblock_bytes(&self) -> u64 {
        u64::from(self.pages_per_superblock()) * u64::from(self.page_bytes)
    }

    /// Bytes of all pages, without their out-of-band areas.
    #[must_use]
    pub fn raw_bytes(&self) -> u64 {
        self.pages() * u64::from(self.page_bytes)
    }

    /// The superblock that `page` lies in.
    #[must_use]
    pub fn superblock_of(&self, page: PageAddress) -> SuperblockId {
        SuperblockId(quotient(page.0, self.pages_per_superblock()))
    }

    /// The first page of a superblock.
    #[must_use]
    pub fn first_page(&self, superblock: SuperblockId) -> PageAddress {
        PageAddress(superblock.0 * self.pages_per_superblock())
    }

    /// The pages of a superblock, in their order.
    pub fn superblock_pages(&self, superblock: SuperblockId) -> impl Iterator<Item = PageAddress> + Clone + use<> {
        let first = self.first_page(superblock).0;
        (first..first + self.pages_per_superblock()).map(PageAddress)
    }

    /// Whether a page is the last of its superblock.
    #[must_use]
    pub fn ends_superblock(&self, page: PageAddress) -> bool {
        (page.0 + 1).is_multiple_of(self.pages_per_superblock())
    }

    /// The unit that `page` is programmed with.
    #[must_use]
    pub fn unit_of(&self, page: PageAddress) -> UnitAddress {
        UnitAddress(quotient(page.0, self.pages_per_program))
    }

    /// The block that `unit` lies in, and which of the block's units it is.
    #[must_use]
    #[inline]
    pub fn block_of(&self, unit: UnitAddress) -> (BlockAddress, u32) {
        let (units, dies) = (self.units_per_superblock(), self.target_dies());
        let superblock = SuperblockId(quotient(unit.0, units));
        let within = unit.0 - superblock.0 * units;
        let row = quotient(within, dies);
        (BlockAddress { superblock, die: DieId(self.target_of(superblock) * dies + within - row * dies) }, row)
    }

    /// The word line of `unit`, counted on from block to block and from die to die: where blocks have a single row, so that a superblock
    /// has all levels of a cell, and no stream has more of one.
    #[must_use]
    #[inline]
    pub fn word_line_of(&self, unit: UnitAddress) -> u32 {
        let (BlockAddress { superblock, die }, row) = self.block_of(unit);
        (superblock.0 + die.0).wrapping_mul(self.units_per_block()).wrapping_add(row)
    }

    /// The unit of `block` with number `row`; the inverse of [`Geometry::block_of`].
    #[must_use]
    pub fn unit_at(&self, block: BlockAddress, row: u32) -> UnitAddress {
        UnitAddress(block.superblock.0 * self.units_per_superblock() + row * self.target_dies() + self.within(block))
    }

    /// The pages of a block, in the order in which they are programmed.
    #[must_use]
    pub fn pages_of(&self, block: BlockAddress) -> Vec<PageAddress> {
        let first_page = |row| self.unit_at(block, row).0 * self.pages_per_program;
        let rows = 0..self.units_per_block();
        rows.flat_map(|row| first_page(row)..first_page(row) + self.pages_per_program).map(PageAddress).collect()
    }

    /// The channel that a die hangs on.
    #[must_use]
    pub fn channel_of(&self, die: DieId) -> u32 {
        die.0 % self.channels
    }

    /// Blocks numbered densely, for tables with an entry a block.
    #[must_use]
    pub fn block_index(&self, block: BlockAddress) -> usize {
        block.superblock.0 as usize * self.target_dies() as usize + self.within(block) as usize
    }

    /// Which of its superblock's blocks it is.
    fn within(&self, block: BlockAddress) -> u32 {
        block.die.0 - self.target_of(block.superblock) * self.target_dies()
    }
}

/// A division that is quick for powers of two, which most of a geometry's numbers are.
fn quotient(dividend: u32, divisor: u32) -> u32 {
    if divisor.is_power_of_two() { dividend >> divisor.trailing_zeros() } else { dividend / divisor }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn addresses_and_numbers_are_one_to_one(channels in 1u32..9, ways in 1u32..9, rows in 1u32..5, pages in 1u32..9, page in 0u32..1_000_000, width in 0u32..3) {
            let superblock_dies = [0, 1, channels][width as usize];
            let geometry = Geometry {
                channels, dies_per_channel: ways, blocks_per_die: 3, pages_per_block: rows * pages,
                pages_per_program: pages, page_bytes: 4096, oob_bytes: 64, superblock_dies, read_bytes_min: 0,
            };
            let page = PageAddress(page % geometry.pages() as u32);
            let unit = geometry.unit_of(page);
            let (block, row) = geometry.block_of(unit);
            prop_assert_eq!(geometry.unit_at(block, row), unit);
            prop_assert_eq!(block.superblock, geometry.superblock_of(page));
            prop_assert!(geometry.dies_of(block.superblock).any(|die| die == block.die) && row < geometry.units_per_block());
            prop_assert!((geometry.block_index(block) as u64) < geometry.blocks());
            let blocks = (0..geometry.superblocks()).map(SuperblockId).flat_map(|superblock| {
                geometry.dies_of(superblock).map(move |die| BlockAddress { superblock, die })
            });
            prop_assert!(blocks.enumerate().all(|(index, block)| geometry.block_index(block) == index));
        }
    }

    #[test]
    fn the_log_goes_over_channels_before_dies_before_rows() {
        let geometry = Geometry {
            channels: 2,
            dies_per_channel: 2,
            blocks_per_die: 2,
            pages_per_block: 4,
            pages_per_program: 2,
            page_bytes: 4096,
            oob_bytes: 64,
            superblock_dies: 0,
            read_bytes_min: 0,
        };
        let path: Vec<_> = (0..8)
            .map(|unit| {
                let (block, row) = geometry.block_of(UnitAddress(unit));
                (geometry.channel_of(block.die), block.die.0, row)
            })
            .collect();
        assert_eq!(path, [(0, 0, 0), (1, 1, 0), (0, 2, 0), (1, 3, 0), (0, 0, 1), (1, 1, 1), (0, 2, 1), (1, 3, 1)]);
    }
}
