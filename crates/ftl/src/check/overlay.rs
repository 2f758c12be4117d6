//! A medium on top of another one: it keeps all writes in memory and only reads the one below.

use kvssd_flash::codec::PageIdentity;
use kvssd_flash::{
    Backing, BlockAddress, BlockState, Geometry, MediaError, PageAddress, PageView, Span, UnitAddress, UnitImage,
};
use kvssd_types::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// The medium and what was written over it.
pub(super) struct Overlay {
    geometry: Geometry,
    below: Box<dyn Backing>,
    units: BTreeMap<UnitAddress, UnitImage>,
    erased: BTreeSet<usize>,
    staged: Vec<u8>,
    /// Whether `staged` replaces what is staged below; if not, it follows that.
    restaged: bool,
}

impl Overlay {
    pub(super) fn new(geometry: Geometry, below: Box<dyn Backing>) -> Self {
        let (units, erased) = (BTreeMap::new(), BTreeSet::new());
        Overlay { geometry, below, units, erased, staged: Vec::new(), restaged: false }
    }
}

impl Backing for Overlay {
    fn program(&mut self, unit: UnitAddress, content: UnitImage, _span: Span) -> Result<(), MediaError> {
        self.units.insert(unit, content);
        Ok(())
    }

    fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, MediaError> {
        let unit = self.geometry.unit_of(page);
        if let Some(content) = self.units.get(&unit) {
            return Ok(content.page((page.0 % self.geometry.pages_per_program) as usize));
        }
        if self.erased.contains(&self.geometry.block_index(self.geometry.block_of(unit).0)) {
            return Err(MediaError::Damaged { page, why: "it was never written" });
        }
        self.below.page(page)
    }

    fn origin(&mut self, page: PageAddress) -> Option<PageIdentity> {
        self.below.origin(page)
    }

    fn erase(&mut self, block: BlockAddress, _span: Span) -> Result<(), MediaError> {
        for row in 0..self.geometry.units_per_block() {
            self.units.remove(&self.geometry.unit_at(block, row));
        }
        self.erased.insert(self.geometry.block_index(block));
        Ok(())
    }

    /// Asked for when the array is made, before anything is written.
    fn block(&self, block: BlockAddress) -> BlockState {
        self.below.block(block)
    }

    fn stage(&mut self, bytes: &[u8], _at: Nanos) -> Result<(), MediaError> {
        self.staged.extend_from_slice(bytes);
        Ok(())
    }

    fn restage(&mut self, bytes: &[u8], _at: Nanos) -> Result<(), MediaError> {
        bytes.clone_into(&mut self.staged);
        self.restaged = true;
        Ok(())
    }

    fn staged(&mut self) -> Result<Vec<u8>, MediaError> {
        let mut staged = if self.restaged { Vec::new() } else { self.below.staged()? };
        staged.extend_from_slice(&self.staged);
        Ok(staged)
    }
}
