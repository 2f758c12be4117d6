//! The array and NAND's rules: a block is erased as a whole, its units are programmed in order, once, and only what was
//! programmed is read.
//!
//! Breaking a rule is a bug of the firmware and stops the program; what the medium does is a [`MediaError`].

use crate::{
    Backing, BlockAddress, BlockState, DieId, Geometry, MediaError, PageAddress, PageView, Span, SuperblockId,
    UnitAddress, UnitImage,
};

/// How often a block can be erased: of three bits a cell, as data sheets have it. An estimate: profiles do not say.
pub const BLOCK_ERASES_MAX: u32 = 3000;

/// The array: a [`Backing`] behind the rules of NAND.
pub struct Nand {
    geometry: Geometry,
    blocks: Vec<BlockState>,
    backing: Box<dyn Backing>,
}

impl Nand {
    /// The array that `backing` keeps, erased or not.
    #[must_use]
    pub fn new(geometry: Geometry, backing: Box<dyn Backing>) -> Self {
        let superblocks = (0..geometry.superblocks()).map(SuperblockId);
        let blocks = superblocks
            .flat_map(|superblock| geometry.dies_of(superblock).map(move |die| BlockAddress { superblock, die }))
            .map(|block| backing.block(block))
            .collect();
        Nand { geometry, blocks, backing }
    }

    /// The same array once more, if what keeps it can be copied.
    #[must_use]
    pub fn snapshot(&self) -> Option<Nand> {
        Some(Nand { geometry: self.geometry, blocks: self.blocks.clone(), backing: self.backing.snapshot()? })
    }

    /// How the array is divided.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Writes a unit.
    ///
    /// # Errors
    /// [`MediaError`] when the medium fails.
    ///
    /// # Panics
    /// When the unit is not the next one of its block, or does not have the pages of one.
    pub fn program(&mut self, unit: UnitAddress, content: UnitImage, span: Span) -> Result<(), MediaError> {
        let (block, row) = self.geometry.block_of(unit);
        let state = &mut self.blocks[self.geometry.block_index(block)];
        assert_eq!(row, state.units_programmed, "NAND rule: the units of {block:?} are programmed in order, once");
        assert_eq!(content.pages(), self.geometry.pages_per_program as usize, "a unit is programmed whole");
        state.units_programmed += 1;
        self.backing.program(unit, content, span)
    }

    /// Writes a unit that the write buffer still held when the power went, unless its program had ended.
    ///
    /// # Errors
    /// [`MediaError`] when the medium fails.
    ///
    /// # Panics
    /// When the unit is neither the last one of its block nor the next.
    pub fn restore(&mut self, unit: UnitAddress, content: UnitImage) -> Result<(), MediaError> {
        let (block, row) = self.geometry.block_of(unit);
        if row == self.blocks[self.geometry.block_index(block)].units_programmed {
            return self.program(unit, content, Span::NONE);
        }
        self.backing.program(unit, content, Span::NONE)
    }

    /// Whether a page was programmed, or its program begun, since its block was erased.
    #[must_use]
    pub fn is_programmed(&self, page: PageAddress) -> bool {
        let (block, row) = self.geometry.block_of(self.geometry.unit_of(page));
        row < self.blocks[self.geometry.block_index(block)].units_programmed
    }

    /// As [`Backing::warm`], with the states of the pages' blocks.
    pub fn warm(&self, places: &[(PageAddress, usize)]) {
        let state_of = |&(page, _): &(PageAddress, usize)| {
            let (block, _) = self.geometry.block_of(self.geometry.unit_of(page));
            self.blocks.get(self.geometry.block_index(block))
        };
        let touched = places.iter().filter_map(state_of).fold(0, |touched, state| touched ^ state.units_programmed);
        std::hint::black_box(touched);
        self.backing.warm(places);
    }

    /// Reads a page.
    ///
    /// # Errors
    /// [`MediaError`] when its bytes are not what was written.
    ///
    /// # Panics
    /// When the page was not programmed since its block was erased.
    #[inline]
    pub fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, MediaError> {
        assert!(self.is_programmed(page), "NAND rule: {page:?} is read before it was programmed");
        self.backing.page(page)
    }

    /// As [`Backing::look`]; of a page that was not programmed there is nothing to see.
    pub fn look(&self, page: PageAddress, see: &mut dyn FnMut(PageView<'_>)) -> bool {
        self.is_programmed(page) && self.backing.look(page, see)
    }

    /// Erases a block; returns the number of pages that were programmed in it.
    ///
    /// # Errors
    /// [`MediaError`] when the medium fails.
    pub fn erase(&mut self, block: BlockAddress, span: Span) -> Result<u64, MediaError> {
        let state = &mut self.blocks[self.geometry.block_index(block)];
        let units = std::mem::take(&mut state.units_programmed);
        state.erases = state.erases.saturating_add(1);
        self.backing.erase(block, span)?;
        Ok(u64::from(units) * u64::from(self.geometry.pages_per_program))
    }

    /// What keeps the pages, for its other services.
    #[must_use]
    #[inline]
    pub fn backing(&self) -> &dyn Backing {
        &*self.backing
    }

    /// The same, to be changed.
    #[inline]
    pub fn backing_mut(&mut self) -> &mut dyn Backing {
        &mut *self.backing
    }

    /// Pages that are programmed and not erased.
    #[must_use]
    pub fn pages_programmed(&self) -> u64 {
        let units: u64 = self.blocks.iter().map(|block: &BlockState| u64::from(block.units_programmed)).sum();
        units * u64::from(self.geometry.pages_per_program)
    }

    /// How often a superblock was erased: all its blocks are at once.
    #[must_use]
    pub fn superblock_erases(&self, superblock: SuperblockId) -> u32 {
        let first = self.geometry.target_of(superblock) * self.geometry.target_dies();
        self.blocks[self.geometry.block_index(BlockAddress { superblock, die: DieId(first) })].erases
    }

    /// Tells the lives of a superblock from each other: it grows with every erase of any of its blocks, all of which a cut need not have
    /// come to.
    #[must_use]
    pub fn generation(&self, superblock: SuperblockId) -> u64 {
        let dies = self.geometry.dies_of(superblock);
        let erases = dies.map(|die| self.blocks[self.geometry.block_index(BlockAddress { superblock, die })].erases);
        erases.map(u64::from).sum()
    }

    /// How often each block was erased.
    pub fn erases(&self) -> impl Iterator<Item = u32> {
        self.blocks.iter().map(|block| block.erases)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ByteBacking, RopeBacking};

    const GEOMETRY: Geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        blocks_per_die: 2,
        pages_per_block: 3,
        pages_per_program: 1,
        page_bytes: 512,
        oob_bytes: 32,
        superblock_dies: 0,
        read_bytes_min: 0,
    };

    fn nands() -> [Nand; 2] {
        [
            Nand::new(GEOMETRY, Box::new(RopeBacking::new(GEOMETRY))),
            Nand::new(GEOMETRY, Box::new(ByteBacking::new(GEOMETRY))),
        ]
    }

    fn unit(fill: u8) -> UnitImage {
        UnitImage::of_bytes(&[fill], &[fill; 512])
    }

    #[test]
    fn what_is_programmed_is_read_until_it_is_erased() {
        for mut nand in nands() {
            let block = BlockAddress { superblock: SuperblockId(1), die: DieId(1) };
            for life in 0..3 {
                for row in 0..3 {
                    let address = GEOMETRY.unit_at(block, row);
                    nand.program(address, unit(row as u8 + life), Span::NONE).unwrap();
                    let page = nand.page(PageAddress(address.0)).unwrap();
                    assert_eq!((page.oob, page.data.blob(0..512)[511]), (&[row as u8 + life][..], row as u8 + life));
                }
                nand.erase(block, Span::NONE).unwrap();
            }
            assert_eq!(nand.erases().collect::<Vec<_>>(), [0, 0, 0, 3]);
            assert_eq!([0, 1].map(|superblock| nand.generation(SuperblockId(superblock))), [0, 3]);
        }
    }

    #[test]
    #[should_panic(expected = "in order, once")]
    fn a_page_is_not_programmed_twice() {
        let [mut nand, _] = nands();
        nand.program(UnitAddress(0), unit(1), Span::NONE).unwrap();
        let _ = nand.program(UnitAddress(0), unit(2), Span::NONE);
    }

    #[test]
    #[should_panic(expected = "in order, once")]
    fn no_page_is_skipped() {
        let [mut nand, _] = nands();
        let _ = nand.program(UnitAddress(2), unit(1), Span::NONE);
    }

    #[test]
    #[should_panic(expected = "before it was programmed")]
    fn an_erased_page_is_not_read() {
        let [mut nand, _] = nands();
        nand.program(UnitAddress(0), unit(1), Span::NONE).unwrap();
        nand.erase(BlockAddress { superblock: SuperblockId(0), die: DieId(0) }, Span::NONE).unwrap();
        let _ = nand.page(PageAddress(0));
    }

    #[test]
    fn damage_is_an_error_that_names_the_page() {
        let mut backing = ByteBacking::new(GEOMETRY);
        backing.program(UnitAddress(0), unit(1), Span::NONE).unwrap();
        backing.bytes_mut(PageAddress(0)).unwrap()[100] ^= 4;
        let error = backing.page(PageAddress(0)).unwrap_err();
        assert_eq!(error.to_string(), "page 0 is damaged: the checksum does not match");
    }
}
