//! A medium that wears and errs, and the spare blocks that make up for it.
//!
//! ```text
//!   read      some bits flipped on the way  ->  the CRC says so  ->  read again          counted, never believed
//!             more often the more a block was read since its erase (read disturb)
//!   program   fails: the unit is damaged    ->  the block's earlier units are copied to a spare, the unit goes there
//!   erase     fails                         ->  a spare takes the block's place
//! ```
//!
//! The table of retired blocks is the controller's own and outlives a power cut. When a die has no spare left, the operation fails
//! for good. What it does not do: lose a page that was written well. There is no second copy that would bring it back.

use crate::{
    Backing, BlockAddress, BlockState, ByteBacking, Geometry, MediaError, PageAddress, PageBytes, PageView, RawMedium,
    Span, SuperblockId, UnitAddress, UnitImage, codec,
};
use kvssd_types::Random;
use std::collections::BTreeMap;

/// How often what fails, of a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRates {
    /// Reads with flipped bits, of a block that was just erased.
    pub flips_per_million: u64,
    /// After so many reads since its erase a block flips twice as many, and so on.
    pub disturb_reads: u64,
    /// Programs.
    pub program_failures_per_million: u64,
    /// Erases.
    pub erase_failures_per_million: u64,
}

/// What failed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Reads with flipped bits that the CRC caught.
    pub flips_caught: u64,
    /// Programs and erases that failed; each retired a block.
    pub blocks_retired: u64,
    /// The most reads of a block between two erases.
    pub reads_max: u64,
}

/// The medium.
#[derive(Debug)]
pub struct FaultyMedium {
    geometry: Geometry,
    physical: ByteBacking,
    rates: FaultRates,
    random: Random,
    /// Which block stands in for a retired one.
    stand_ins: BTreeMap<BlockAddress, BlockAddress>,
    /// The next spare of each die.
    next_spare: Vec<u32>,
    spares_end: u32,
    /// Reads since the erase, by block.
    reads: BTreeMap<BlockAddress, u64>,
    counts: FaultCounts,
}

impl FaultyMedium {
    /// An erased drive with `spares_per_die` more blocks than `geometry` says.
    #[must_use]
    pub fn new(geometry: Geometry, spares_per_die: u32, rates: FaultRates, random: Random) -> Self {
        let spares_end = geometry.blocks_per_die + spares_per_die;
        FaultyMedium {
            geometry,
            physical: ByteBacking::new(Geometry { blocks_per_die: spares_end, ..geometry }),
            rates,
            random,
            stand_ins: BTreeMap::new(),
            next_spare: vec![geometry.blocks_per_die; geometry.dies() as usize],
            spares_end,
            reads: BTreeMap::new(),
            counts: FaultCounts::default(),
        }
    }

    /// What failed so far.
    #[must_use]
    pub fn counts(&self) -> FaultCounts {
        self.counts
    }

    /// The block that holds what is written to `block`.
    fn block_of(&self, block: BlockAddress) -> BlockAddress {
        self.stand_ins.get(&block).copied().unwrap_or(block)
    }

    fn unit_of(&self, unit: UnitAddress) -> UnitAddress {
        let (block, row) = self.geometry.block_of(unit);
        self.geometry.unit_at(self.block_of(block), row)
    }

    fn page_of(&self, page: PageAddress) -> PageAddress {
        let unit = self.geometry.unit_of(page);
        let within = page.0 - unit.0 * self.geometry.pages_per_program;
        PageAddress(self.unit_of(unit).0 * self.geometry.pages_per_program + within)
    }

    fn fails(&mut self, per_million: u64) -> bool {
        self.random.below(1_000_000) < per_million
    }

    /// Has a spare block of its die stand in for a block; gives the one that did so far.
    fn retire(&mut self, block: BlockAddress) -> Result<BlockAddress, MediaError> {
        let next = &mut self.next_spare[block.die.0 as usize];
        if *next == self.spares_end {
            return Err(MediaError::Failed(format!("die {} has no spare block left", block.die.0)));
        }
        let spare = BlockAddress { superblock: SuperblockId(*next), ..block };
        *next += 1;
        self.counts.blocks_retired += 1;
        let retired = self.block_of(block);
        self.stand_ins.insert(block, spare);
        Ok(retired)
    }

    /// What is below row `row` in the retired block moves to its stand-in.
    fn move_out(&mut self, retired: BlockAddress, block: BlockAddress, row: u32) {
        let pages = (row * self.geometry.pages_per_program) as usize;
        let (from, to) = (self.geometry.pages_of(retired), self.geometry.pages_of(self.block_of(block)));
        for (from, to) in from.into_iter().zip(to).take(pages) {
            let bytes = self.physical.page_mut(from).take();
            *self.physical.page_mut(to) = bytes;
        }
    }
}

impl RawMedium for FaultyMedium {
    fn page_mut(&mut self, page: PageAddress) -> &mut PageBytes {
        let page = self.page_of(page);
        self.physical.page_mut(page)
    }

    fn staged_mut(&mut self) -> &mut Vec<u8> {
        self.physical.staged_mut()
    }

    fn decode(&mut self, page: PageAddress) -> Result<UnitImage, MediaError> {
        let block = self.geometry.block_of(self.geometry.unit_of(page)).0;
        let reads = self.reads.entry(block).or_default();
        *reads += 1;
        self.counts.reads_max = self.counts.reads_max.max(*reads);
        let flips_per_million = self.rates.flips_per_million * (1 + *reads / self.rates.disturb_reads);
        let there = self.page_of(page);
        if self.fails(flips_per_million)
            && let Some(bytes) = self.physical.page_mut(there).clone()
        {
            let mut bytes = bytes;
            for _ in 0..1 + self.random.below(8) {
                let at = self.random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.random.below(8);
            }
            match codec::decode(&self.geometry, &bytes) {
                // The CRC did not see it: whoever asked gets what was read, and will tell.
                Ok(image) => return Ok(image),
                Err(_) => self.counts.flips_caught += 1,
            }
        }
        self.physical.decode(there)
    }
}

impl Backing for FaultyMedium {
    fn program(&mut self, unit: UnitAddress, content: UnitImage, span: Span) -> Result<(), MediaError> {
        if self.fails(self.rates.program_failures_per_million) {
            let (block, row) = self.geometry.block_of(unit);
            let retired = self.retire(block)?;
            self.move_out(retired, block, row);
        }
        let unit = self.unit_of(unit);
        self.physical.program(unit, content, span)
    }

    fn page(&mut self, _page: PageAddress) -> Result<PageView<'_>, MediaError> {
        Err(MediaError::Failed("a faulty medium is read page by page, decoded".to_owned()))
    }

    fn erase(&mut self, block: BlockAddress, span: Span) -> Result<(), MediaError> {
        if self.fails(self.rates.erase_failures_per_million) {
            self.retire(block)?;
        }
        self.reads.remove(&block);
        let block = self.block_of(block);
        self.physical.erase(block, span)
    }

    fn block(&self, block: BlockAddress) -> BlockState {
        self.physical.block(self.block_of(block))
    }

    fn stage(&mut self, bytes: &[u8], at: kvssd_types::Nanos) -> Result<(), MediaError> {
        self.physical.stage(bytes, at)
    }

    fn restage(&mut self, bytes: &[u8], at: kvssd_types::Nanos) -> Result<(), MediaError> {
        self.physical.restage(bytes, at)
    }

    fn staged(&mut self) -> Result<Vec<u8>, MediaError> {
        self.physical.staged()
    }
}
