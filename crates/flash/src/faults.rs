//! A medium that wears and errs, and what a controller does about it. The fault model:
//!
//! ```text
//!   read      some bits flipped on the way  ->  the CRC says so  ->  read again          counted, never believed
//!             more often the more a block was read since its erase (read disturb)
//!   read      never again: a page is lost   ->  rebuilt from the parity of its row; the block is retired
//!   program   fails                         ->  the block is retired, the unit goes to its stand-in
//!   erase     fails                         ->  the block is retired
//!   retired   what the block held and can be read moves to a spare block of its die, which stands in for it
//! ```
//!
//! What lies in a spare is of the block that it stands in for: it has that one's address and counts that one's erases.
//!
//! Two lost pages in one row stay lost, and whoever reads them is told so. When a die has no spare left, programs and erases
//! that fail, fail for good. The time that all this takes is not modelled.

use crate::codec::{self, PageIdentity};
use crate::parity::Parity;
use crate::spares::Spares;
use crate::{
    Backing, BlockAddress, BlockState, ByteBacking, Geometry, MediaError, PageAddress, PageBytes, PageView, RawMedium,
    Span, UnitAddress, UnitImage,
};
use kvssd_types::{Nanos, Random};
use std::collections::BTreeMap;

/// How often what fails, of a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRates {
    /// Reads with flipped bits, of a block that was just erased.
    pub flips_per_million: u64,
    /// After so many reads since its erase a block flips twice as many, and so on.
    pub disturb_reads: u64,
    /// Reads that find their page lost for good.
    pub uncorrectable_per_million: u64,
    /// Programs.
    pub program_failures_per_million: u64,
    /// Erases.
    pub erase_failures_per_million: u64,
}

impl FaultRates {
    /// Nothing fails.
    pub const NONE: FaultRates = FaultRates {
        flips_per_million: 0,
        disturb_reads: u64::MAX,
        uncorrectable_per_million: 0,
        program_failures_per_million: 0,
        erase_failures_per_million: 0,
    };
}

/// What failed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Reads with flipped bits that the CRC caught.
    pub flips_caught: u64,
    /// Pages that were lost and rebuilt.
    pub pages_rebuilt: u64,
    /// Blocks that were retired: for a program or an erase that failed, or a page that was lost.
    pub blocks_retired: u64,
    /// The most reads of a block between two erases.
    pub reads_max: u64,
}

/// The medium.
#[derive(Debug)]
pub struct FaultyMedium {
    geometry: Geometry,
    physical: ByteBacking,
    spares: Spares,
    parity: Parity,
    rates: FaultRates,
    random: Random,
    /// Reads since the erase, by block.
    reads: BTreeMap<BlockAddress, u64>,
    /// By block, whatever stands in for it.
    erases: Vec<u32>,
    counts: FaultCounts,
}

impl FaultyMedium {
    /// An erased drive with `spares_per_die` more blocks than `geometry` says.
    #[must_use]
    pub fn new(geometry: Geometry, spares_per_die: u32, rates: FaultRates, random: Random) -> Self {
        let spares = Spares::new(geometry, spares_per_die);
        FaultyMedium {
            geometry,
            physical: ByteBacking::new(spares.physical()),
            spares,
            parity: Parity::new(geometry),
            rates,
            random,
            reads: BTreeMap::new(),
            erases: vec![0; geometry.blocks() as usize],
            counts: FaultCounts::default(),
        }
    }

    /// What failed so far.
    #[must_use]
    pub fn counts(&self) -> FaultCounts {
        self.counts
    }

    fn identity(&self, page: PageAddress) -> PageIdentity {
        let block = self.geometry.block_of(self.geometry.unit_of(page)).0;
        PageIdentity { page, erases: self.erases[self.geometry.block_index(block)] }
    }

    fn fails(&mut self, per_million: u64) -> bool {
        self.random.below(1_000_000) < per_million
    }

    /// Has a spare stand in for a block, and moves there what the block holds.
    fn retire(&mut self, block: BlockAddress) -> Result<(), MediaError> {
        let retired = self.spares.retire(block)?;
        self.counts.blocks_retired += 1;
        let (from, to) = (self.geometry.pages_of(retired), self.geometry.pages_of(self.spares.block_of(block)));
        for (from, to) in from.into_iter().zip(to) {
            let bytes = self.physical.page_mut(from).take();
            *self.physical.page_mut(to) = bytes;
        }
        Ok(())
    }

    /// Takes these pages into the parity, or out of it.
    fn absorb(&mut self, pages: impl IntoIterator<Item = PageAddress>) {
        let FaultyMedium { physical, spares, parity, .. } = self;
        parity.refresh(|page| physical.bytes(spares.page_of(page)));
        for page in pages {
            if let Some(bytes) = physical.bytes(spares.page_of(page)) {
                parity.absorb(page, bytes);
            }
        }
    }

    /// Takes these pages out of the parity. Nobody will ask for those of them that cannot be read: the parity has what they held, and their
    /// cells do not, so their rows are formed anew.
    fn give_up(&mut self, pages: impl IntoIterator<Item = PageAddress> + Clone) {
        for page in pages.clone() {
            let bytes = self.physical.bytes(self.spares.page_of(page));
            if bytes.is_some_and(|bytes| codec::decode(&self.geometry, self.identity(page), bytes).is_err()) {
                self.parity.distrust(page);
            }
        }
        self.absorb(pages);
    }

    fn flips(&mut self, page: PageAddress) -> bool {
        let block = self.geometry.block_of(self.geometry.unit_of(page)).0;
        let reads = self.reads.entry(block).or_default();
        *reads += 1;
        self.counts.reads_max = self.counts.reads_max.max(*reads);
        let per_million = self.rates.flips_per_million * (1 + *reads / self.rates.disturb_reads);
        self.fails(per_million)
    }

    /// Reads a page that is there with some bits flipped. Gives something when the CRC does not see it: whoever asked gets what
    /// was read, and will tell.
    fn read_flipped(&mut self, page: PageAddress) -> Option<UnitImage> {
        let mut bytes = self.physical.bytes(self.spares.page_of(page))?.to_vec();
        for _ in 0..1 + self.random.below(8) {
            let at = self.random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << self.random.below(8);
        }
        let read = codec::decode(&self.geometry, self.identity(page), &bytes).ok();
        self.counts.flips_caught += u64::from(read.is_none());
        read
    }

    /// The cells of a page lose what they held.
    fn lose(&mut self, page: PageAddress) {
        self.absorb([]);
        let there = self.spares.page_of(page);
        if let Some(bytes) = self.physical.bytes_mut(there) {
            bytes.iter_mut().for_each(|byte| *byte = self.random.below(256) as u8);
        }
    }

    /// Brings a page back that cannot be read, if its row has what that takes, and retires its block.
    fn rebuild(&mut self, page: PageAddress) -> Option<UnitImage> {
        self.absorb([]);
        let FaultyMedium { physical, spares, parity, .. } = self;
        let bytes = parity.rebuilt(page, |page| physical.bytes(spares.page_of(page)));
        let read = codec::decode(&self.geometry, self.identity(page), &bytes).ok()?;
        self.counts.pages_rebuilt += 1;
        let block = self.geometry.block_of(self.geometry.unit_of(page)).0;
        // Without a spare it is rebuilt each time that it is read.
        if self.retire(block).is_ok() {
            *self.physical.page_mut(self.spares.page_of(page)) = Some(bytes);
        }
        Some(read)
    }
}

impl RawMedium for FaultyMedium {
    fn page_mut(&mut self, page: PageAddress) -> &mut PageBytes {
        self.parity.distrust(page);
        self.physical.page_mut(self.spares.page_of(page))
    }

    fn staged_mut(&mut self) -> &mut Vec<u8> {
        self.physical.staged_mut()
    }

    fn set_erases(&mut self, block: BlockAddress, erases: u32) {
        self.erases[self.geometry.block_index(block)] = erases;
    }

    fn decode(&mut self, page: PageAddress) -> Result<UnitImage, MediaError> {
        if self.flips(page)
            && let Some(read) = self.read_flipped(page)
        {
            return Ok(read);
        }
        if self.fails(self.rates.uncorrectable_per_million) {
            self.lose(page);
        }
        match self.physical.decode_as(self.spares.page_of(page), self.identity(page)) {
            // The page is named as who asks knows it.
            Err(MediaError::Damaged { why, .. }) => self.rebuild(page).ok_or(MediaError::Damaged { page, why }),
            read => read,
        }
    }
}

impl Backing for FaultyMedium {
    fn program(&mut self, unit: UnitAddress, content: UnitImage, _span: Span) -> Result<(), MediaError> {
        if self.fails(self.rates.program_failures_per_million) {
            self.retire(self.geometry.block_of(unit).0)?;
        }
        let first = unit.0 * self.geometry.pages_per_program;
        let pages = (first..first + self.geometry.pages_per_program).map(PageAddress);
        self.give_up(pages.clone());
        self.physical.program_as(self.spares.unit_of(unit), &content, self.identity(PageAddress(first)));
        self.absorb(pages);
        Ok(())
    }

    fn page(&mut self, _page: PageAddress) -> Result<PageView<'_>, MediaError> {
        Err(MediaError::Failed("a faulty medium is read page by page, decoded".to_owned()))
    }

    fn erase(&mut self, block: BlockAddress, span: Span) -> Result<(), MediaError> {
        if self.fails(self.rates.erase_failures_per_million) {
            self.retire(block)?;
        }
        self.give_up(self.geometry.pages_of(block));
        self.reads.remove(&block);
        self.erases[self.geometry.block_index(block)] += 1;
        self.physical.erase(self.spares.block_of(block), span)
    }

    fn block(&self, block: BlockAddress) -> BlockState {
        let erases = self.erases[self.geometry.block_index(block)];
        BlockState { erases, ..self.physical.block(self.spares.block_of(block)) }
    }

    fn stage(&mut self, bytes: &[u8], at: Nanos) -> Result<(), MediaError> {
        self.physical.stage(bytes, at)
    }

    fn restage(&mut self, bytes: &[u8], at: Nanos) -> Result<(), MediaError> {
        self.physical.restage(bytes, at)
    }

    fn staged(&mut self) -> Result<Vec<u8>, MediaError> {
        self.physical.staged()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rope::Rope;
    use crate::{DieId, SuperblockId, UnitBuilder};

    const GEOMETRY: Geometry = Geometry {
        channels: 2,
        dies_per_channel: 2,
        blocks_per_die: 3,
        pages_per_block: 4,
        pages_per_program: 2,
        page_bytes: 512,
        oob_bytes: 32,
        superblock_dies: 0,
        read_bytes_min: 0,
    };

    fn unit(fill: u8) -> UnitImage {
        let mut builder = UnitBuilder::new(2);
        for page in 0..2 {
            let mut rope = Rope::default();
            rope.push_literal(&[fill ^ page; 512]);
            builder.push(&[fill], &mut rope);
        }
        builder.finish()
    }

    /// A drive whose units are filled with their numbers, all but the last.
    fn filled(spares_per_die: u32, rates: FaultRates) -> FaultyMedium {
        let mut medium = FaultyMedium::new(GEOMETRY, spares_per_die, rates, Random::new(1));
        for number in 0..GEOMETRY.units() as u32 - 1 {
            medium.program(UnitAddress(number), unit(number as u8), Span::NONE).unwrap();
        }
        medium
    }

    fn fill_of(medium: &mut FaultyMedium, page: u32) -> Result<u8, MediaError> {
        Ok(medium.decode(PageAddress(page))?.page(0).oob[0])
    }

    #[test]
    fn a_lost_page_comes_back_from_its_row_and_moves_to_a_spare() {
        let mut medium = filled(1, FaultRates::NONE);
        for page in [0, 13, 22] {
            medium.lose(PageAddress(page));
            assert_eq!(fill_of(&mut medium, page), Ok(page as u8 / 2));
            assert_eq!(fill_of(&mut medium, page ^ 1), Ok(page as u8 / 2), "its neighbour moved with it");
        }
        assert_eq!((medium.counts().pages_rebuilt, medium.counts().blocks_retired), (3, 3));
    }

    #[test]
    fn without_a_spare_it_comes_back_each_time() {
        let mut medium = filled(0, FaultRates::NONE);
        medium.lose(PageAddress(5));
        assert_eq!((fill_of(&mut medium, 5), fill_of(&mut medium, 5)), (Ok(2), Ok(2)));
        assert_eq!((medium.counts().pages_rebuilt, medium.counts().blocks_retired), (2, 0));
    }

    #[test]
    fn two_lost_pages_of_a_row_are_told() {
        let mut medium = filled(1, FaultRates::NONE);
        let pages = medium.geometry.pages_of(BlockAddress { superblock: SuperblockId(1), die: DieId(0) });
        let others = medium.geometry.pages_of(BlockAddress { superblock: SuperblockId(1), die: DieId(3) });
        medium.lose(pages[1]);
        medium.lose(others[1]);
        medium.lose(others[2]);
        for lost in [pages[1], others[1]] {
            assert!(matches!(medium.decode(lost), Err(MediaError::Damaged { page, .. }) if page == lost));
        }
        assert_eq!(fill_of(&mut medium, others[2].0), Ok(others[2].0 as u8 / 2));
    }

    #[test]
    fn parity_follows_erases_overwrites_and_torn_pages() {
        let rates = FaultRates { program_failures_per_million: 200_000, ..FaultRates::NONE };
        let mut medium = filled(20, rates);
        let block = BlockAddress { superblock: SuperblockId(1), die: DieId(2) };
        medium.erase(block, Span::NONE).unwrap();
        medium.program(GEOMETRY.unit_at(block, 0), unit(77), Span::NONE).unwrap();
        // As a mount does with a unit that is there already.
        medium.program(GEOMETRY.unit_at(block, 0), unit(77), Span::NONE).unwrap();
        let torn = GEOMETRY.pages_of(BlockAddress { die: DieId(1), ..block })[0];
        medium.page_mut(torn).as_mut().unwrap()[100] ^= 1;
        for page in GEOMETRY.pages_of(block).into_iter().take(2) {
            medium.lose(page);
            assert_eq!(fill_of(&mut medium, page.0), Ok(77));
        }
        assert!(fill_of(&mut medium, torn.0).is_err(), "nobody knows what a torn page should have been");
    }

    /// Without a spare its cells keep what they were left with.
    #[test]
    fn a_lost_page_that_is_erased_or_programmed_again_leaves_its_row_whole() {
        let block = |die| BlockAddress { superblock: SuperblockId(1), die: DieId(die) };
        let [of_first, of_second] = [0, 1].map(|die| GEOMETRY.pages_of(block(die))[0]);
        let comes_back = |medium: &mut FaultyMedium, page: PageAddress, fill: u8| {
            medium.lose(page);
            assert_eq!(fill_of(medium, page.0), Ok(fill));
        };
        let with_a_lost_page = || {
            let mut medium = filled(0, FaultRates::NONE);
            comes_back(&mut medium, of_first, of_first.0 as u8 / 2);
            medium
        };
        let mut medium = with_a_lost_page();
        medium.erase(block(0), Span::NONE).unwrap();
        comes_back(&mut medium, of_second, of_second.0 as u8 / 2);
        let mut medium = with_a_lost_page();
        medium.program(GEOMETRY.unit_at(block(0), 0), unit(of_first.0 as u8 / 2), Span::NONE).unwrap();
        comes_back(&mut medium, of_second, of_second.0 as u8 / 2);
        let mut medium = with_a_lost_page();
        (0..4).for_each(|die| medium.erase(block(die), Span::NONE).unwrap());
        (0..4).for_each(|die| medium.program(GEOMETRY.unit_at(block(die), 0), unit(77), Span::NONE).unwrap());
        comes_back(&mut medium, of_second, 77);
    }

    /// Who of two lost pages stays is lost as well, and does not come back for it.
    #[test]
    fn of_two_lost_pages_the_other_stays_lost_until_it_is_erased_too() {
        let mut medium = filled(0, FaultRates::NONE);
        let block = |die| BlockAddress { superblock: SuperblockId(1), die: DieId(die) };
        let pages = [0, 1, 2].map(|die| GEOMETRY.pages_of(block(die))[0]);
        pages[..2].iter().for_each(|page| medium.lose(*page));
        medium.erase(block(0), Span::NONE).unwrap();
        assert!(fill_of(&mut medium, pages[1].0).is_err());
        medium.erase(block(1), Span::NONE).unwrap();
        medium.lose(pages[2]);
        assert_eq!(fill_of(&mut medium, pages[2].0), Ok(pages[2].0 as u8 / 2));
    }

    #[test]
    fn an_erase_that_fails_for_want_of_spares_leaves_the_parity_as_it_was() {
        let mut medium = filled(0, FaultRates::NONE);
        medium.rates.erase_failures_per_million = 1_000_000;
        let block = BlockAddress { superblock: SuperblockId(1), die: DieId(0) };
        assert!(medium.erase(block, Span::NONE).is_err());
        let of_its_row = GEOMETRY.pages_of(BlockAddress { die: DieId(2), ..block })[0];
        medium.lose(of_its_row);
        assert_eq!(fill_of(&mut medium, of_its_row.0), Ok(of_its_row.0 as u8 / 2));
    }
}
