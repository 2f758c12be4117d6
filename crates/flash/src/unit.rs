//! The content of a one-shot program: the pages that are written together, kept in one piece of memory.
//!
//! ```text
//!   code   [start of page 0 u32] .. [start of page n-1 u32] [end u32] [page 0] .. [page n-1]
//!   page   [out-of-band length u16] [number of its first blob u16] [out-of-band bytes] [rope code]
//! ```

use crate::rope::{Blob, Rope, RopeRef};

/// A page to look at.
#[derive(Clone, Copy, Debug)]
pub struct PageView<'a> {
    /// What the firmware wrote to the out-of-band area.
    pub oob: &'a [u8],
    /// The page's bytes.
    pub data: RopeRef<'a>,
}

/// The pages of one program operation, full and no longer changing.
#[derive(Clone, Debug)]
pub struct UnitImage {
    code: Box<[u8]>,
    blobs: Box<[Option<Blob>]>,
}

/// The pages of one program operation while they are gathered.
#[derive(Debug)]
pub struct UnitBuilder {
    code: Vec<u8>,
    blobs: Vec<Option<Blob>>,
    pages: usize,
    pages_max: usize,
}

const START_BYTES: usize = 4;
const HEAD_BYTES: usize = 4;

impl UnitBuilder {
    /// Room for `pages_max` pages.
    #[must_use]
    pub fn new(pages_max: usize) -> Self {
        let mut builder = UnitBuilder { code: Vec::new(), blobs: Vec::new(), pages: 0, pages_max };
        builder.reset();
        builder
    }

    /// The number of pages so far.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Adds the next page and empties `data`.
    ///
    /// # Panics
    /// When `oob` is longer than 64 KiB.
    pub fn push(&mut self, oob: &[u8], data: &mut Rope) {
        self.code.extend(u16::try_from(oob.len()).expect("an out-of-band area is small").to_le_bytes());
        self.code.extend(u16::try_from(self.blobs.len()).expect("a unit has few blobs").to_le_bytes());
        self.code.extend_from_slice(oob);
        self.code.extend_from_slice(data.as_ref().code);
        self.blobs.append(data.blobs_mut());
        self.pages += 1;
        self.mark();
        data.clear();
    }

    /// One of the pages so far.
    ///
    /// # Panics
    /// When there is no such page yet.
    #[must_use]
    pub fn page(&self, index: usize) -> PageView<'_> {
        assert!(index < self.pages, "page {index} of {} is not there yet", self.pages);
        view(&self.code, &self.blobs, index)
    }

    /// The finished unit; the builder is empty again and keeps its memory.
    pub fn finish(&mut self) -> UnitImage {
        assert_eq!(self.pages, self.pages_max, "a unit is programmed whole");
        let image = UnitImage { code: self.code.as_slice().into(), blobs: std::mem::take(&mut self.blobs).into() };
        self.reset();
        image
    }

    fn reset(&mut self) {
        self.code.clear();
        self.code.resize((self.pages_max + 1) * START_BYTES, 0);
        self.pages = 0;
        self.mark();
    }

    /// Notes where the next page starts, which is where the last one ends.
    fn mark(&mut self) {
        let start = u32::try_from(self.code.len()).expect("a unit is small");
        self.code[self.pages * START_BYTES..][..START_BYTES].copy_from_slice(&start.to_le_bytes());
    }
}

impl UnitImage {
    /// A unit of a single page of held bytes.
    #[must_use]
    pub fn of_bytes(oob: &[u8], data: &[u8]) -> Self {
        let mut builder = UnitBuilder::new(1);
        let mut rope = Rope::default();
        rope.push_literal(data);
        builder.push(oob, &mut rope);
        builder.finish()
    }

    /// The number of pages.
    #[must_use]
    pub fn pages(&self) -> usize {
        start_of(&self.code, 0) / START_BYTES - 1
    }

    /// One of the pages.
    #[must_use]
    pub fn page(&self, index: usize) -> PageView<'_> {
        view(&self.code, &self.blobs, index)
    }

    /// Reads where a page starts, for the processor to have it at hand.
    pub(crate) fn touch_starts(&self, index: usize, _start: usize) -> u8 {
        self.code[index * START_BYTES]
    }

    /// Reads a page's first byte and one of the table of blobs.
    pub(crate) fn touch_page(&self, index: usize, _start: usize) -> u8 {
        self.code[start_of(&self.code, index)] ^ u8::from(self.blobs.first().is_some_and(Option::is_some))
    }

    /// Reads the first byte of the blob that starts at byte `start` of a page, if one does.
    pub(crate) fn touch_blob(&self, index: usize, start: usize) -> u8 {
        let data = self.page(index).data;
        let blob = data.blob_number_at(start).and_then(|number| data.blobs[number].as_ref());
        blob.map_or(0, |blob| blob[0])
    }

    /// Takes the blob that starts at byte `start` of a page, if one does.
    pub(crate) fn take(&mut self, index: usize, start: usize) -> Option<Blob> {
        let number = self.page(index).data.blob_number_at(start)?;
        let first = first_blob(&self.code, start_of(&self.code, index));
        self.blobs[first + number].take()
    }
}

fn start_of(code: &[u8], index: usize) -> usize {
    let at = index * START_BYTES;
    u32::from_le_bytes([code[at], code[at + 1], code[at + 2], code[at + 3]]) as usize
}

fn first_blob(code: &[u8], start: usize) -> usize {
    usize::from(u16::from_le_bytes([code[start + 2], code[start + 3]]))
}

fn view<'a>(code: &'a [u8], blobs: &'a [Option<Blob>], index: usize) -> PageView<'a> {
    let (start, end) = (start_of(code, index), start_of(code, index + 1));
    let oob_bytes = usize::from(u16::from_le_bytes([code[start], code[start + 1]]));
    let (oob, rope) = code[start + HEAD_BYTES..end].split_at(oob_bytes);
    PageView { oob, data: RopeRef { code: rope, blobs: &blobs[first_blob(code, start)..] } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn pages_come_back_as_they_went_in() {
        let mut builder = UnitBuilder::new(3);
        let blob: Blob = vec![9; 1000].into();
        for round in 0..2u8 {
            for page in 0..3u8 {
                let mut rope = Rope::default();
                rope.push_literal(&[page; 10]);
                rope.push_blob(Arc::clone(&blob));
                builder.push(&[round, page], &mut rope);
                assert!(rope.is_empty());
                assert_eq!(builder.page(page.into()).oob, [round, page]);
            }
            let mut unit = builder.finish();
            assert_eq!(unit.pages(), 3);
            for page in 0..3u8 {
                let view = unit.page(page.into());
                assert_eq!(view.oob, [round, page]);
                assert_eq!(&*view.data.blob(0..10), [page; 10]);
                assert!(Arc::ptr_eq(&view.data.blob(10..1010), &blob));
            }
            assert!(unit.take(1, 10).is_some() && unit.take(1, 10).is_none() && unit.take(1, 0).is_none());
            assert!(unit.page(1).data.blob_number_at(10).is_some());
            assert_eq!(&*unit.page(1).data.blob(0..10), [1; 10]);
            assert!(Arc::ptr_eq(&unit.page(2).data.blob(10..1010), &blob));
        }
        assert_eq!(Arc::strong_count(&blob), 1);
    }
}
