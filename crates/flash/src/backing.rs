//! What keeps the pages under the array: memory, an image, or a medium that is broken on purpose.

use crate::codec::PageIdentity;
use crate::rope::RopeRef;
use crate::{Blob, BlockAddress, PageAddress, PageView, UnitAddress, UnitImage};
use kvssd_types::{KvError, Nanos};
use std::fmt::Debug;
use std::sync::Arc;
use thiserror::Error;

/// The medium failed, or returned something other than what was written.
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

/// The error that a host gets for it.
impl From<MediaError> for KvError {
    fn from(error: MediaError) -> Self {
        match error {
            MediaError::PowerLost => KvError::PowerLost,
            MediaError::Damaged { .. } => KvError::Unrecovered(error.to_string()),
            MediaError::Failed(why) => KvError::Failed(why),
        }
    }
}

/// Waits for the disk under a medium.
pub(crate) trait DiskWait: Debug + Send + Sync {
    /// As [`BegunCommit::wait`].
    fn wait(&self) -> Result<(), MediaError>;
}

/// A commit that waits for the disk, while others use the medium and may begin more.
#[derive(Debug)]
pub struct BegunCommit {
    pub(crate) disk: Arc<dyn DiskWait>,
    /// Writes to the disk before it began.
    pub(crate) writes: u64,
    /// The epoch and the end of what was staged before it began.
    pub(crate) staged: (u64, u64),
}

impl BegunCommit {
    /// Returns when what was written before it began outlives the machine.
    ///
    /// # Errors
    /// [`MediaError::Failed`] when the disk failed; so does every commit from then on.
    pub fn wait(&self) -> Result<(), MediaError> {
        self.disk.wait()
    }
}

/// When an operation begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When the firmware asked for it.
    pub issued: Nanos,
    /// When it has ended.
    pub end: Nanos,
}

impl Span {
    /// The span of operations that take no time.
    pub const NONE: Span = Span { issued: Nanos::ZERO, end: Nanos::ZERO };
}

/// What a medium knows of a block without looking into its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockState {
    /// Units that were programmed since it was erased, including torn ones.
    pub units_programmed: u32,
    /// How often it was erased.
    pub erases: u32,
}

/// Keeps the content of programmed units until their block is erased, and what the write buffer holds. Knows no rules of NAND:
/// [`Nand`](crate::Nand) has checked them before.
pub trait Backing: Send + Sync {
    /// A copy of everything, if all of it is in memory.
    fn snapshot(&self) -> Option<Box<dyn Backing>> {
        None
    }

    /// Keeps `content` as unit `unit`. A unit that is restored after a mount may exist already, and is overwritten.
    ///
    /// # Errors
    /// [`MediaError`] when the medium failed to take it.
    fn program(&mut self, unit: UnitAddress, content: UnitImage, span: Span) -> Result<(), MediaError>;

    /// Whether it copies the bytes that it is given. If so, these may be a small part of a large shared allocation.
    #[inline]
    fn copies(&self) -> bool {
        false
    }

    /// A page that was programmed.
    ///
    /// # Errors
    /// [`MediaError::Damaged`] when its bytes are not what was written.
    fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, MediaError>;

    /// Shows a programmed page to `see`, while others may look too: this does not change what [`Backing::page`] returns. Returns whether the page
    /// could be shown; if not, the caller asks [`Backing::page`].
    fn look(&self, page: PageAddress, see: &mut dyn FnMut(PageView<'_>)) -> bool {
        let _ = (page, see);
        false
    }

    /// The caller will now look at `pages` pages of one unit, from `first` on ([`Backing::look`]): a medium may fetch them together. A hint.
    fn bring(&self, first: PageAddress, pages: u32) {
        let _ = (first, pages);
    }

    /// Which page the bytes at this page's place belong to, if they are whole and that can be told: a page that went astray, or one
    /// of an earlier life of its block. For people who want to know what happened.
    fn origin(&mut self, page: PageAddress) -> Option<PageIdentity> {
        let _ = page;
        None
    }

    /// The firmware has sensed `pages` pages of one unit, from `first` on, and will ask for them: a medium may fetch them together. If
    /// one is damaged, [`Backing::page`] says so.
    fn fetch(&mut self, first: PageAddress, pages: u32) {
        let _ = (first, pages);
    }

    /// Reads whole pages of one unit, from `first` on, into `out`, one data area behind the other, if `is_wanted` accepts all their out-of-band
    /// areas. Returns whether it did; if not, [`Backing::page`] has the pages, or says what is wrong. The pages do not stay in a cache.
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

    /// Like [`Backing::stage`], of `head` and then `follows`: a medium may take large bytes from where they lie.
    fn stage_record(&mut self, head: &[u8], follows: RopeRef<'_>, at: Nanos) -> Result<(), MediaError> {
        let mut bytes = head.to_vec();
        follows.show(|piece| bytes.extend_from_slice(piece));
        self.stage(&bytes, at)
    }

    /// Whether programmed and staged bytes reach the medium in the order of the calls, so that a mount that finds a unit finds all that came
    /// before it. Then what lies in full units need not be staged.
    #[inline]
    fn keeps_order(&self) -> bool {
        false
    }

    /// Everything that was staged before is now in flash, which must be durable before this returns: `bytes` replace
    /// it.
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

    /// Why staging is slower than it could be, if it is, for people who may put the medium elsewhere.
    fn staging_note(&self) -> Option<&str> {
        None
    }

    /// Begins a [`Backing::commit`] whose wait for the disk others need not wait for: gives what waits, behind which [`Backing::end_commit`]
    /// is to be called. Nothing that is staged or programmed meanwhile is promised. Several may wait, and end in any order. By default, and
    /// wherever the wait cannot be told from the rest, or too many wait, none: the caller commits.
    ///
    /// # Errors
    /// [`MediaError`] when the medium failed.
    fn begin_commit(&mut self) -> Result<Option<BegunCommit>, MediaError> {
        Ok(None)
    }

    /// Ends a commit whose wait is over. Whether all is committed that was staged and programmed.
    ///
    /// # Errors
    /// [`MediaError`] when the medium failed.
    fn end_commit(&mut self, begun: BegunCommit) -> Result<bool, MediaError> {
        let _ = begun;
        Ok(false)
    }

    /// A command has ended: what was staged and programmed on its behalf must be as safe as the medium promises.
    ///
    /// # Errors
    /// [`MediaError`] when the medium failed.
    fn commit(&mut self) -> Result<(), MediaError> {
        Ok(())
    }

    /// How much of the memory that is given up ([`Backing::give_up`]) the firmware may use to cache heads of records, so that it asks for fewer
    /// pages. 0 unless pages are expensive to read.
    fn heads_bytes(&self) -> u64 {
        0
    }

    /// Gives up some more memory for pages, which the firmware may then use. Returns how many bytes, and 0 if there is no more to give or the
    /// medium does not show its pages ([`Backing::look`]).
    fn give_up(&self) -> u64 {
        0
    }

    /// The bytes from these on, of these pages, will be looked at soon: memory may begin to bring them closer.
    fn warm(&self, places: &[(PageAddress, usize)]) {
        let _ = places;
    }

    /// The bytes from `start` of `page` on that were written as one blob, if memory has them at hand. A hint for
    /// [`Backing::warm`]; it is no read.
    fn peek(&self, page: PageAddress, start: usize) -> Option<&Blob> {
        let _ = (page, start);
        None
    }

    /// The firmware will never again read the bytes from `start` of `page` on that were written as one blob. Memory may let go of
    /// them, and returns them. Real flash has no such operation, and a backing may ignore it.
    fn take(&mut self, page: PageAddress, start: usize) -> Option<Blob> {
        let _ = (page, start);
        None
    }

    /// Nobody wants a page any more: a cache may keep other pages in its place. It can still be read.
    fn let_go(&mut self, page: PageAddress) {
        let _ = page;
    }
}
