//! Between the firmware and the image: holds commits back, remembers a failure, and keeps a read-only image from being
//! written.
//!
//! ```text
//!   Engine  program, erase, stage, commit, or begin_commit, wait, end_commit
//!     |
//!   Medium  held: commit -> later        an erase makes up for it first: what it forgets must be elsewhere for good
//!     |     read only: program, erase -> memory
//!   image
//! ```

use kvssd_flash::rope::RopeRef;
use kvssd_flash::{
    Backing, BegunCommit, Blob, BlockAddress, BlockState, Geometry, MediaError, PageAddress, PageView, Span,
    UnitAddress, UnitImage,
};
use kvssd_types::Nanos;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What the owner of the drive tells its medium, and the medium its owner.
#[derive(Debug, Default)]
pub(crate) struct MediumState {
    /// Whether commits wait.
    pub(crate) holds_commits: AtomicBool,
    /// Why the medium takes no writes any more.
    pub(crate) failure: OnceLock<String>,
}

/// The backing that the firmware uses.
pub(crate) struct Medium<B> {
    image: B,
    state: Arc<MediumState>,
    owes_commit: bool,
    /// What a read-only drive would have written; `None` for a drive that writes.
    unwritten: Option<Unwritten>,
}

/// What lies in memory instead of the image.
struct Unwritten {
    geometry: Geometry,
    /// Units that were programmed or, without content, erased.
    units: BTreeMap<UnitAddress, Option<UnitImage>>,
}

impl<B: Backing> Medium<B> {
    /// Passes everything on to `image`.
    pub(crate) fn new(image: B) -> Self {
        Medium { image, state: Arc::default(), owes_commit: false, unwritten: None }
    }

    /// Writes nothing to `image`.
    pub(crate) fn read_only(image: B, geometry: Geometry) -> Self {
        let unwritten = Some(Unwritten { geometry, units: BTreeMap::new() });
        Medium { unwritten, ..Medium::new(image) }
    }

    pub(crate) fn state(&self) -> Arc<MediumState> {
        Arc::clone(&self.state)
    }

    fn catch_up(&mut self) -> Result<(), MediaError> {
        if std::mem::take(&mut self.owes_commit) {
            let committed = self.image.commit();
            return self.noted(committed);
        }
        Ok(())
    }

    /// Remembers that the medium failed.
    fn noted<T>(&self, result: Result<T, MediaError>) -> Result<T, MediaError> {
        if let Err(MediaError::Failed(why)) = &result {
            let _ = self.state.failure.set(why.clone());
        }
        result
    }
}

impl Unwritten {
    fn unit(&self, page: PageAddress) -> Option<&UnitImage> {
        self.units.get(&self.geometry.unit_of(page))?.as_ref()
    }

    fn block(&self, block: BlockAddress, on_image: BlockState) -> BlockState {
        let mut state = on_image;
        for row in 0..self.geometry.units_per_block() {
            match self.units.get(&self.geometry.unit_at(block, row)) {
                Some(Some(_)) => state.units_programmed = state.units_programmed.max(row + 1),
                Some(None) => state.units_programmed = state.units_programmed.min(row),
                None => {}
            }
        }
        state
    }
}

impl<B: Backing> Backing for Medium<B> {
    fn program(&mut self, unit: UnitAddress, content: UnitImage, span: Span) -> Result<(), MediaError> {
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.units.insert(unit, Some(content));
            return Ok(());
        }
        let programmed = self.image.program(unit, content, span);
        self.noted(programmed)
    }

    fn copies(&self) -> bool {
        self.unwritten.is_none() && self.image.copies()
    }

    fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, MediaError> {
        if let Some(unwritten) = &self.unwritten
            && let Some(unit) = unwritten.unit(page)
        {
            return Ok(unit.page((page.0 % unwritten.geometry.pages_per_program) as usize));
        }
        // A page that cannot be read says nothing of the others.
        self.image.page(page)
    }

    fn look(&self, page: PageAddress, see: &mut dyn FnMut(PageView<'_>)) -> bool {
        if let Some(unwritten) = &self.unwritten
            && let Some(unit) = unwritten.unit(page)
        {
            see(unit.page((page.0 % unwritten.geometry.pages_per_program) as usize));
            return true;
        }
        self.image.look(page, see)
    }

    fn heads_bytes(&self) -> u64 {
        self.image.heads_bytes()
    }

    fn read_through(&mut self, first: PageAddress, out: &mut [u8], is_wanted: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.unwritten.is_none() && self.image.read_through(first, out, is_wanted)
    }

    fn bring(&self, first: PageAddress, pages: u32) {
        if self.unwritten.as_ref().is_none_or(|unwritten| unwritten.unit(first).is_none()) {
            self.image.bring(first, pages);
        }
    }

    fn fetch(&mut self, first: PageAddress, pages: u32) {
        self.image.fetch(first, pages);
    }

    fn erase(&mut self, block: BlockAddress, span: Span) -> Result<(), MediaError> {
        if let Some(Unwritten { geometry, units }) = &mut self.unwritten {
            units.extend((0..geometry.units_per_block()).map(|row| (geometry.unit_at(block, row), None)));
            return Ok(());
        }
        self.catch_up()?;
        let erased = self.image.erase(block, span);
        self.noted(erased)
    }

    fn block(&self, block: BlockAddress) -> BlockState {
        let on_image = self.image.block(block);
        self.unwritten.as_ref().map_or(on_image, |unwritten| unwritten.block(block, on_image))
    }

    fn stage(&mut self, bytes: &[u8], at: Nanos) -> Result<(), MediaError> {
        if self.unwritten.is_some() {
            return Ok(());
        }
        let staged = self.image.stage(bytes, at);
        self.noted(staged)
    }

    fn stage_record(&mut self, head: &[u8], follows: RopeRef<'_>, at: Nanos) -> Result<(), MediaError> {
        if self.unwritten.is_some() {
            return Ok(());
        }
        let staged = self.image.stage_record(head, follows, at);
        self.noted(staged)
    }

    fn keeps_order(&self) -> bool {
        self.image.keeps_order()
    }

    fn restage(&mut self, bytes: &[u8], at: Nanos) -> Result<(), MediaError> {
        if self.unwritten.is_some() {
            return Ok(());
        }
        let staged = self.image.restage(bytes, at);
        self.noted(staged)
    }

    fn staged(&mut self) -> Result<Vec<u8>, MediaError> {
        self.image.staged()
    }

    fn staging_note(&self) -> Option<&str> {
        self.image.staging_note()
    }

    fn begin_commit(&mut self) -> Result<Option<BegunCommit>, MediaError> {
        let begun = if self.owes_commit { self.image.begin_commit() } else { Ok(None) };
        self.noted(begun)
    }

    fn end_commit(&mut self, begun: BegunCommit) -> Result<bool, MediaError> {
        let ended = self.image.end_commit(begun);
        let is_all = self.noted(ended)?;
        self.owes_commit &= !is_all;
        Ok(is_all)
    }

    fn commit(&mut self) -> Result<(), MediaError> {
        self.owes_commit = self.unwritten.is_none();
        if self.state.holds_commits.load(Ordering::Relaxed) { Ok(()) } else { self.catch_up() }
    }

    fn give_up(&self) -> u64 {
        self.image.give_up()
    }

    fn warm(&self, places: &[(PageAddress, usize)]) {
        self.image.warm(places);
    }

    fn peek(&self, page: PageAddress, start: usize) -> Option<&Blob> {
        self.image.peek(page, start)
    }

    fn take(&mut self, page: PageAddress, start: usize) -> Option<Blob> {
        if self.unwritten.is_some() { None } else { self.image.take(page, start) }
    }

    fn let_go(&mut self, page: PageAddress) {
        self.image.let_go(page);
    }
}
