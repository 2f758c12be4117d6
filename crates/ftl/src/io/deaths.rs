//! Records come to life and die: what validity, the table of superblocks and memory are told.

use super::Io;
use crate::layout::address::Grain;
use kvssd_flash::Blob;
use kvssd_types::KvError;

impl Io<'_> {
    /// A record of `grains` grains lives at `place`.
    pub(crate) fn occupy(&mut self, place: Grain, grains: u32) {
        self.media.space.occupy(place, grains);
    }

    /// The record at `place`, of `grains` grains, lives no more. No invalid mapping is noted.
    pub fn vacate(&mut self, place: Grain, grains: u32) {
        self.media.space.vacate(place, grains);
    }

    /// Whether [`Io::vacate`] may be called.
    pub(crate) fn can_vacate(&self, place: Grain, grains: u32) -> bool {
        self.media.space.can_vacate(place, grains)
    }

    /// As [`Io::vacate`] and [`Io::forget`]: the record lives no more, and nobody will read its bytes. A page that was nothing else takes no
    /// room in a cache.
    pub fn discard(&mut self, place: Grain, grains: u32) {
        self.vacate(place, grains);
        if self.forget(place) && grains == self.media.space.packing.grains_per_page {
            self.media.flash.backing_mut().let_go(self.media.space.packing.page_of(place));
        }
    }

    /// Nobody will read the bytes of the record at `place` any more: memory may let go of them, though flash keeps
    /// them. Returns whether memory was told; it is not while the page is still gathered.
    pub fn forget(&mut self, place: Grain) -> bool {
        let is_flashed = self.is_flashed(place);
        if is_flashed {
            drop(self.take(place));
        }
        is_flashed
    }

    /// As [`Io::forget`], and returns the `length` bytes of the record, whose page was read.
    ///
    /// # Errors
    /// As [`Io::data`].
    pub fn take_last(&mut self, place: Grain, length: usize) -> Result<Blob, KvError> {
        let taken = if self.is_flashed(place) { self.take(place) } else { None };
        if let Some(bytes) = taken.filter(|bytes| bytes.len() == length) {
            return Ok(bytes);
        }
        let (page, start) = self.media.space.packing.start_of(place);
        Ok(self.data(page)?.blob(start..start + length))
    }

    fn is_flashed(&self, place: Grain) -> bool {
        self.media.log.open_page(&self.media.space.geometry, self.media.space.packing.page_of(place)).is_none()
    }

    fn take(&mut self, place: Grain) -> Option<Blob> {
        let (page, start) = self.media.space.packing.start_of(place);
        self.media.flash.backing_mut().take(page, start)
    }

    /// The pair with `tag` at `place`, of `grains` grains, is not its key's pair any more. Validity learns that now.
    /// The record stays while an iterator may want it.
    ///
    /// # Errors
    /// As [`Io::append`]: a page of invalid mappings may have become full.
    pub(crate) fn pair_died(&mut self, tag: u64, place: Grain, grains: u32) -> Result<(), KvError> {
        let superblock_grains = self.media.space.packing.grains_per_superblock;
        if !self.has_iterators || !self.media.held.get_mut().die(place, grains, superblock_grains) {
            self.vacate(place, grains);
        }
        self.mapping_died(tag, place)
    }

    /// The mapping of `tag` to `place` is no longer valid.
    ///
    /// # Errors
    /// As [`Io::pair_died`].
    pub(crate) fn mapping_died(&mut self, tag: u64, place: Grain) -> Result<(), KvError> {
        match self.media.space.validity.pair_died(tag, place) {
            Some(spill) => self.write_spill(spill),
            None => Ok(()),
        }
    }
}
