//! What keeps the pages: memory that holds ropes, or memory that holds nothing but bytes.

use crate::Blob;
use crate::codec::{self, PageIdentity};
use crate::rope::RopeRef;
use crate::{BlockAddress, Geometry, PageAddress, PageView, UnitAddress, UnitImage};
use kvssd_types::{KvError, Nanos};
use thiserror::Error;

/// The medium gave back something that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MediaError {
    /// A page's bytes are damaged.
    #[error("page {} is damaged: {why}", page.0)]
    Damaged {
        /// The page.
        page: PageAddress,
        /// What is wrong with its bytes.
        why: &'static str,
    },
    /// The drive has no power any more.
    #[error("the power is gone")]
    PowerLost,
    /// What keeps the pages failed.
    #[error("{0}")]
    Failed(String),
}

/// What a host is told of it.
impl From<MediaError> for KvError {
    fn from(error: MediaError) -> Self {
        match error {
            MediaError::PowerLost => KvError::PowerLost,
            MediaError::Damaged { .. } => KvError::Unrecovered(error.to_string()),
            MediaError::Failed(why) => KvError::Failed(why),
        }
    }
}

/// From when until when an operation is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When the firmware asked for it.
    pub issued: Nanos,
    /// When it has ended.
    pub end: Nanos,
}

impl Span {
    /// Of operations that take no time.
    pub const NONE: Span = Span { issued: Nanos::ZERO, end: Nanos::ZERO };
}

/// What a medium knows of a block without looking into its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockState {
    /// Units that were programmed since it was erased, torn ones with them.
    pub units_programmed: u32,
    /// How often it was erased.
    pub erases: u32,
}

/// Keeps the content of programmed units until their block is erased, and what the write buffer holds. Knows no rules of NAND:
/// [`Nand`](crate::Nand) has checked them before.
pub trait Backing: Send + Sync {
    /// A copy of all that it keeps, where that is in memory alone.
    fn snapshot(&self) -> Option<Box<dyn Backing>> {
        None
    }

    /// Keeps `content` as unit `unit`. A unit that is restored after a mount may be there already, and is put over it.
    ///
    /// # Errors
    /// [`MediaError`] when the medium failed to take it.
    fn program(&mut self, unit: UnitAddress, content: UnitImage, span: Span) -> Result<(), MediaError>;

    /// Whether it copies what it is given, so that bytes may be shared with it that are a small part of what would be kept for them.
    #[inline]
    fn copies(&self) -> bool {
        false
    }

    /// A page that was programmed.
    ///
    /// # Errors
    /// [`MediaError::Damaged`] when its bytes are not what was written.
    fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, MediaError>;

    /// Shows a page that was programmed to `see`, beside others who look: nothing changes that [`Backing::page`] could tell. Gives whether
    /// it could be shown; whoever sees nothing here asks for the page.
    fn look(&self, page: PageAddress, see: &mut dyn FnMut(PageView<'_>)) -> bool {
        let _ = (page, see);
        false
    }

    /// So many pages of one unit, from `first` on, will be looked at now ([`Backing::look`]): a medium may get all of them at once. A hint.
    fn bring(&self, first: PageAddress, pages: u32) {
        let _ = (first, pages);
    }

    /// Which page the bytes are of that lie where this one should, if they are whole and that can be told: a page that went astray, or one
    /// of an earlier life of its block. For people, who want to know what happened.
    fn origin(&mut self, page: PageAddress) -> Option<PageIdentity> {
        let _ = page;
        None
    }

    /// So many pages of one unit, from `first` on, were sensed and will be asked for: a medium may get all of them at once. What is
    /// wrong with one, [`Backing::page`] says.
    fn fetch(&mut self, first: PageAddress, pages: u32) {
        let _ = (first, pages);
    }

    /// Reads whole pages of one unit, from `first` on, to `out`, the data area of one behind that of the other, if their out-of-band areas
    /// are those that are wanted. Gives whether it did: where not, [`Backing::page`] has them, or says what is wrong. Nothing is kept for the next
    /// who asks.
    fn read_through(&mut self, first: PageAddress, out: &mut [u8], is_wanted: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let _ = (first, out, is_wanted);
        false
    }

    /// Drops the content of a block.
    ///
    /// # Errors
    /// [`MediaError`] when the medium failed.
    fn erase(&mut self, block: BlockAddress, span: Span) -> Result<(), MediaError>;

    /// What is known of a block, for a mount.
    fn block(&self, block: BlockAddress) -> BlockState;

    /// Puts `bytes` behind those that are staged: the write buffer's memory, which keeps them when the power goes if it is
    /// protected.
    ///
    /// # Errors
    /// [`MediaError`] when the medium failed to take them.
    fn stage(&mut self, bytes: &[u8], at: Nanos) -> Result<(), MediaError> {
        let _ = (bytes, at);
        Ok(())
    }

    /// As [`Backing::stage`], of what `head` and then `follows` stand for: a medium may take large bytes from where they lie.
    ///
    /// # Errors
    /// As [`Backing::stage`].
    fn stage_record(&mut self, head: &[u8], follows: RopeRef<'_>, at: Nanos) -> Result<(), MediaError> {
        let mut bytes = head.to_vec();
        follows.show(|piece| bytes.extend_from_slice(piece));
        self.stage(&bytes, at)
    }

    /// Whether what is programmed and what is staged comes to be there in the order of the calls, so that who finds a unit finds all that came
    /// before it: what lies in full units need not be staged then.
    #[inline]
    fn keeps_order(&self) -> bool {
        false
    }

    /// Everything that was staged before is in flash, which must be so for good before this returns: `bytes` are staged
    /// in its stead.
    ///
    /// # Errors
    /// [`MediaError`] when the medium failed.
    fn restage(&mut self, bytes: &[u8], at: Nanos) -> Result<(), MediaError> {
        let _ = (bytes, at);
        Ok(())
    }

    /// What is staged, for a mount.
    ///
    /// # Errors
    /// [`MediaError`] when the medium failed.
    fn staged(&mut self) -> Result<Vec<u8>, MediaError> {
        Ok(Vec::new())
    }

    /// Why staging is slower than it could be, if it is: for people, who may put the medium elsewhere.
    fn staging_note(&self) -> Option<&str> {
        None
    }

    /// A command has ended: what was staged and programmed on its behalf must be as safe as the medium promises.
    ///
    /// # Errors
    /// [`MediaError`] when the medium failed.
    fn commit(&mut self) -> Result<(), MediaError> {
        Ok(())
    }

    /// So much memory a firmware may take for what it knows of pages, so as to ask for fewer of them: of a medium whose pages are dear.
    fn heads_bytes(&self) -> u64 {
        0
    }

    /// Gives up some more of the memory for pages, which is the firmware's then: so many bytes, and 0 when there is no more to give. Of a
    /// medium whose pages are dear, and which shows them ([`Backing::look`]).
    fn give_up(&self) -> u64 {
        0
    }

    /// The bytes from these on, of these pages, will be looked at soon: memory may begin to bring them closer.
    fn warm(&self, places: &[(PageAddress, usize)]) {
        let _ = places;
    }

    /// The bytes from `start` of `page` on that were written as one blob, if memory has them at hand: a hint for
    /// [`Backing::warm`]'s sake, which is not reading.
    fn peek(&self, page: PageAddress, start: usize) -> Option<&Blob> {
        let _ = (page, start);
        None
    }

    /// The firmware will never again read the bytes from `start` of `page` on that were written as one blob: memory may let
    /// go of them, and gives them. Flash itself knows no such thing, and a backing may ignore it.
    fn take(&mut self, page: PageAddress, start: usize) -> Option<Blob> {
        let _ = (page, start);
        None
    }

    /// Nothing of a page is wanted any more: what keeps pages closer than flash keeps others in its place. It can be read all the same.
    fn let_go(&mut self, page: PageAddress) {
        let _ = page;
    }
}

/// Keeps ropes: a drive full of generated values costs a few per cent of its capacity in memory.
#[derive(Clone, Debug)]
pub struct RopeBacking {
    geometry: Geometry,
    units: Vec<Option<UnitImage>>,
}

impl RopeBacking {
    /// An erased drive.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        RopeBacking { geometry, units: (0..geometry.units()).map(|_| None).collect() }
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
