//! What keeps the pages, as the array sees it: in memory, in an image, or broken on purpose.

use crate::codec::PageIdentity;
use crate::rope::RopeRef;
use crate::{Blob, BlockAddress, PageAddress, PageView, UnitAddress, UnitImage};
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
