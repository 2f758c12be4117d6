//! What keeps the pages: memory that holds ropes, or memory that holds nothing but bytes.

use crate::Blob;
use crate::codec::{self, PageIdentity};
use crate::spare::{HEADS_BYTES, Spare};
use crate::{
    Backing, BlockAddress, BlockState, Geometry, MediaError, PageAddress, PageView, Span, UnitAddress, UnitImage,
};
use kvssd_types::Nanos;

/// Keeps ropes: a drive full of generated values costs a few per cent of its capacity in memory.
#[derive(Clone, Debug)]
pub struct RopeBacking {
    geometry: Geometry,
    units: Vec<Option<UnitImage>>,
    spare: Spare,
    heads_bytes: u64,
}

impl RopeBacking {
    /// An erased drive.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        let units = (0..geometry.units()).map(|_| None).collect();
        RopeBacking { geometry, units, spare: Spare::default(), heads_bytes: 0 }
    }

    /// With so many bytes that it gives up.
    #[must_use]
    pub fn giving(self, bytes: u64) -> Self {
        RopeBacking { spare: Spare::new(bytes), heads_bytes: HEADS_BYTES, ..self }
    }
}

impl Backing for RopeBacking {
    fn snapshot(&self) -> Option<Box<dyn Backing>> {
        Some(Box::new(self.clone()))
    }

    fn program(&mut self, unit: UnitAddress, content: UnitImage, _span: Span) -> Result<(), MediaError> {
        self.units[unit.0 as usize] = Some(content);
        Ok(())
    }

    fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, MediaError> {
        let unit = &self.units[self.geometry.unit_of(page).0 as usize];
        let index = page.0 % self.geometry.pages_per_program;
        Ok(unit.as_ref().expect("the array lets only programmed pages through").page(index as usize))
    }

    fn look(&self, page: PageAddress, see: &mut dyn FnMut(PageView<'_>)) -> bool {
        let unit = self.units[self.geometry.unit_of(page).0 as usize].as_ref();
        let index = (page.0 % self.geometry.pages_per_program) as usize;
        unit.map(|unit| see(unit.page(index))).is_some()
    }

    /// Each pass goes one pointer further for all places. The loads of a pass do not depend on each other, so that the processor
    /// waits for many at once and not for one after the other.
    fn warm(&self, places: &[(PageAddress, usize)]) {
        let mut touched = 0;
        let in_units: Vec<(&UnitImage, usize, usize)> = places
            .iter()
            .filter_map(|&(page, start)| {
                let unit = self.units[self.geometry.unit_of(page).0 as usize].as_ref()?;
                Some((unit, (page.0 % self.geometry.pages_per_program) as usize, start))
            })
            .collect();
        in_units.iter().for_each(|(unit, ..)| touched ^= unit.touch_head());
        in_units.iter().for_each(|&(unit, index, _)| touched ^= unit.touch_page(index));
        let slots: Vec<&Option<Blob>> =
            in_units.iter().filter_map(|&(unit, index, start)| unit.page(index).data.blob_slot(start)).collect();
        let blobs: Vec<&Blob> = slots.into_iter().flatten().collect();
        blobs.iter().for_each(|blob| touched ^= blob.touch());
        std::hint::black_box(touched);
    }

    fn erase(&mut self, block: BlockAddress, _span: Span) -> Result<(), MediaError> {
        for row in 0..self.geometry.units_per_block() {
            self.units[self.geometry.unit_at(block, row).0 as usize] = None;
        }
        Ok(())
    }

    fn block(&self, block: BlockAddress) -> BlockState {
        let rows = 0..self.geometry.units_per_block();
        let programmed = rows.filter(|&row| self.units[self.geometry.unit_at(block, row).0 as usize].is_some());
        BlockState { units_programmed: programmed.count() as u32, erases: 0 }
    }

    fn heads_bytes(&self) -> u64 {
        self.heads_bytes
    }

    fn give_up(&self) -> u64 {
        self.spare.give_up()
    }

    fn peek(&self, page: PageAddress, start: usize) -> Option<&Blob> {
        let unit = self.units[self.geometry.unit_of(page).0 as usize].as_ref()?;
        unit.page((page.0 % self.geometry.pages_per_program) as usize).data.blob_slot(start)?.as_ref()
    }

    fn take(&mut self, page: PageAddress, start: usize) -> Option<Blob> {
        let unit = self.units[self.geometry.unit_of(page).0 as usize].as_mut()?;
        unit.take((page.0 % self.geometry.pages_per_program) as usize, start)
    }
}

/// The bytes of a page, or none when it was not programmed.
pub type PageBytes = Option<Box<[u8]>>;

/// Keeps the bytes of every page as they lie in flash, and believes nothing that the checksum does not confirm: that they are whole,
/// lie where they should and are of this life of their block. Slow and large; it proves that the format carries everything the firmware needs.
#[derive(Clone, Debug)]
pub struct ByteBacking {
    geometry: Geometry,
    pages: Vec<PageBytes>,
    erases: Vec<u32>,
    staged: Vec<u8>,
    opened: UnitImage,
}

impl ByteBacking {
    /// An erased drive.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        ByteBacking {
            geometry,
            pages: (0..geometry.pages()).map(|_| None).collect(),
            erases: vec![0; geometry.blocks() as usize],
            staged: Vec::new(),
            opened: UnitImage::of_bytes(&[], &[]),
        }
    }

    /// The bytes of a page, if it was programmed.
    #[must_use]
    pub fn bytes(&self, page: PageAddress) -> Option<&[u8]> {
        self.pages[page.0 as usize].as_deref()
    }

    /// The bytes of a programmed page, to damage them.
    #[must_use]
    pub fn bytes_mut(&mut self, page: PageAddress) -> Option<&mut [u8]> {
        self.pages[page.0 as usize].as_deref_mut()
    }

    /// The bytes of a page, if it was programmed, to tear or lose them.
    ///
    /// # Panics
    /// When there is no such page.
    #[must_use]
    pub fn page_mut(&mut self, page: PageAddress) -> &mut PageBytes {
        &mut self.pages[page.0 as usize]
    }

    /// A page, decoded.
    ///
    /// # Errors
    /// As [`Backing::page`].
    pub fn decode(&self, page: PageAddress) -> Result<UnitImage, MediaError> {
        self.decode_as(page, self.identity(page))
    }

    /// What a page's bytes must be of.
    #[must_use]
    pub fn identity(&self, page: PageAddress) -> PageIdentity {
        let block = self.geometry.block_of(self.geometry.unit_of(page)).0;
        PageIdentity { page, erases: self.erases[self.geometry.block_index(block)] }
    }

    /// A page, decoded, whose bytes are those of another page: this one stands in for it.
    pub(crate) fn decode_as(&self, page: PageAddress, identity: PageIdentity) -> Result<UnitImage, MediaError> {
        let bytes = self.pages[page.0 as usize].as_ref();
        let bytes = bytes.ok_or(MediaError::Damaged { page, why: "it was never written" })?;
        codec::decode(&self.geometry, identity, bytes).map_err(|why| MediaError::Damaged { page, why })
    }

    /// Keeps a unit whose first page is to be this one.
    pub(crate) fn program_as(&mut self, unit: UnitAddress, content: &UnitImage, first: PageIdentity) {
        let place = unit.0 as usize * self.geometry.pages_per_program as usize;
        for index in 0..content.pages() {
            let identity = PageIdentity { page: PageAddress(first.page.0 + index as u32), ..first };
            let bytes = codec::encode(&self.geometry, identity, content.page(index));
            self.pages[place + index] = Some(bytes.into());
        }
    }

    /// How often each block was erased, in the order of their numbers, to copy a medium.
    #[must_use]
    pub fn erases(&self) -> &[u32] {
        &self.erases
    }

    /// Says how often a block was erased.
    pub fn set_erases(&mut self, block: BlockAddress, erases: u32) {
        self.erases[self.geometry.block_index(block)] = erases;
    }

    /// The staged bytes, to lose them.
    #[must_use]
    pub fn staged_mut(&mut self) -> &mut Vec<u8> {
        &mut self.staged
    }
}

impl Backing for ByteBacking {
    fn snapshot(&self) -> Option<Box<dyn Backing>> {
        Some(Box::new(self.clone()))
    }

    fn program(&mut self, unit: UnitAddress, content: UnitImage, _span: Span) -> Result<(), MediaError> {
        let first = self.identity(PageAddress(unit.0 * self.geometry.pages_per_program));
        self.program_as(unit, &content, first);
        Ok(())
    }

    fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, MediaError> {
        self.opened = self.decode(page)?;
        Ok(self.opened.page(0))
    }

    fn erase(&mut self, block: BlockAddress, _span: Span) -> Result<(), MediaError> {
        for page in self.geometry.pages_of(block) {
            self.pages[page.0 as usize] = None;
        }
        self.erases[self.geometry.block_index(block)] += 1;
        Ok(())
    }

    fn origin(&mut self, page: PageAddress) -> Option<PageIdentity> {
        let erases = |block| self.erases[self.geometry.block_index(block)];
        codec::origin(&self.geometry, self.bytes(page)?, codec::suspects(&self.geometry, page, erases))
    }

    fn block(&self, block: BlockAddress) -> BlockState {
        let first_page = |row| self.geometry.unit_at(block, row).0 * self.geometry.pages_per_program;
        let rows = 0..self.geometry.units_per_block();
        let units_programmed = rows.filter(|&row| self.pages[first_page(row) as usize].is_some()).count() as u32;
        BlockState { units_programmed, erases: self.erases[self.geometry.block_index(block)] }
    }

    fn stage(&mut self, bytes: &[u8], _at: Nanos) -> Result<(), MediaError> {
        self.staged.extend_from_slice(bytes);
        Ok(())
    }

    fn restage(&mut self, bytes: &[u8], _at: Nanos) -> Result<(), MediaError> {
        bytes.clone_into(&mut self.staged);
        Ok(())
    }

    fn staged(&mut self) -> Result<Vec<u8>, MediaError> {
        Ok(self.staged.clone())
    }
}

/// A medium whose bytes can be got at, to break them ([`PowerCut`](crate::PowerCut)).
pub trait RawMedium: Backing {
    /// The bytes of a page, if it was programmed.
    fn page_mut(&mut self, page: PageAddress) -> &mut PageBytes;

    /// The staged bytes.
    fn staged_mut(&mut self) -> &mut Vec<u8>;

    /// Says how often a block was erased: an erase that did not begin is not one.
    fn set_erases(&mut self, block: BlockAddress, erases: u32);

    /// A page, decoded.
    ///
    /// # Errors
    /// As [`Backing::page`].
    fn decode(&mut self, page: PageAddress) -> Result<UnitImage, MediaError>;
}

impl RawMedium for ByteBacking {
    fn page_mut(&mut self, page: PageAddress) -> &mut PageBytes {
        ByteBacking::page_mut(self, page)
    }

    fn staged_mut(&mut self) -> &mut Vec<u8> {
        ByteBacking::staged_mut(self)
    }

    fn set_erases(&mut self, block: BlockAddress, erases: u32) {
        ByteBacking::set_erases(self, block, erases);
    }

    fn decode(&mut self, page: PageAddress) -> Result<UnitImage, MediaError> {
        ByteBacking::decode(self, page)
    }
}
