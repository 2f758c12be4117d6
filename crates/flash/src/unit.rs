//! The content of a one-shot program: the pages that are written together, kept in one piece of memory.
//!
//! ```text
//!   code   [wide u8] [pages - 1 u8] [end of page 0] .. [end of page n-1] [page 0] .. [page n-1]     ends are u16, or u32 if wide
//!   page   [out-of-band length << 1 | has blobs] [blobs, if it has] [out-of-band bytes] [rope code]
//!   blobs  [number of the first] [count] [the byte that each starts at, u32]                       numbers as LEB128
//! ```
//!
//! A large drive keeps millions of these: on `kvvirt`, with eight pages of four records, one takes just under a kibibyte.

use crate::Blob;
use crate::rope::{LiteralHead, Rope, RopeRef, START_BYTES, get_number, put_number};
use kvssd_types::touch;

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
    /// Empty when all have been taken: a large drive has a million of such units before they are erased.
    blobs: Box<[Option<Blob>]>,
    blobs_left: u32,
}

/// The pages of one program operation while they are gathered.
#[derive(Clone, Debug)]
pub struct UnitBuilder {
    code: Vec<u8>,
    blobs: Vec<Option<Blob>>,
    ends: Vec<usize>,
    pages_max: usize,
}

const HEAD_BYTES: usize = 2;
/// Of a number of 64 bits.
const NUMBER_BYTES_MAX: usize = 10;
/// Of a page's code so much is read ahead: heads, out-of-band bytes and the first records.
const TOUCHED_BYTES: usize = 128;

impl UnitBuilder {
    /// Room for `pages_max` pages.
    ///
    /// # Panics
    /// When these are none, or more than 256.
    #[must_use]
    pub fn new(pages_max: usize) -> Self {
        assert!((1..=256).contains(&pages_max), "a unit has 1 to 256 pages");
        UnitBuilder { code: Vec::new(), blobs: Vec::new(), ends: Vec::new(), pages_max }
    }

    /// The number of pages so far.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.ends.len()
    }

    /// Adds the next page and empties `data`.
    pub fn push(&mut self, oob: &[u8], data: &mut Rope) {
        let rope = data.as_ref();
        put_number(&mut self.code, oob.len() << 1 | usize::from(!rope.blobs.is_empty()));
        if !rope.blobs.is_empty() {
            put_number(&mut self.code, self.blobs.len());
            put_number(&mut self.code, rope.blobs.len());
            self.code.extend_from_slice(rope.starts);
        }
        self.code.extend_from_slice(oob);
        self.code.extend_from_slice(rope.code);
        self.blobs.append(data.blobs_mut());
        self.ends.push(self.code.len());
        data.clear();
    }

    /// One of the pages so far.
    ///
    /// # Panics
    /// When there is no such page yet.
    #[must_use]
    pub fn page(&self, index: usize) -> PageView<'_> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        view(&self.code[start..self.ends[index]], &self.blobs).0
    }

    /// The finished unit; the builder is empty again and keeps its memory.
    ///
    /// # Panics
    /// When pages are missing.
    pub fn finish(&mut self) -> UnitImage {
        assert_eq!(self.pages(), self.pages_max, "a unit is programmed whole");
        let wide = self.code.len() > usize::from(u16::MAX);
        let end_bytes = end_bytes(wide);
        let mut code = Vec::with_capacity(HEAD_BYTES + self.pages_max * end_bytes + self.code.len());
        code.push(u8::from(wide));
        code.push((self.pages_max - 1) as u8);
        for end in self.ends.drain(..) {
            code.extend_from_slice(&(end as u32).to_le_bytes()[..end_bytes]);
        }
        code.append(&mut self.code);
        let blobs: Box<[_]> = std::mem::take(&mut self.blobs).into();
        UnitImage { code: code.into(), blobs_left: blobs.len() as u32, blobs }
    }
}

impl UnitImage {
    /// A unit of a single page of held bytes, as a builder would make it, with one copy of them.
    #[must_use]
    pub fn of_bytes(oob: &[u8], data: &[u8]) -> Self {
        let (wide, start) = (true, HEAD_BYTES + end_bytes(true));
        let literal = LiteralHead::new(data.len());
        let mut code = Vec::with_capacity(start + NUMBER_BYTES_MAX + oob.len() + literal.len() + data.len());
        code.extend([u8::from(wide), 0, 0, 0, 0, 0]);
        put_number(&mut code, oob.len() << 1);
        code.extend_from_slice(oob);
        if !data.is_empty() {
            code.extend_from_slice(literal.bytes());
            code.extend_from_slice(data);
        }
        let end = (code.len() - start) as u32;
        code[HEAD_BYTES..start].copy_from_slice(&end.to_le_bytes());
        UnitImage { code: code.into(), blobs: Box::default(), blobs_left: 0 }
    }

    /// The number of pages.
    #[must_use]
    pub fn pages(&self) -> usize {
        usize::from(self.code[1]) + 1
    }

    /// One of the pages.
    #[must_use]
    pub fn page(&self, index: usize) -> PageView<'_> {
        self.view(index).0
    }

    fn view(&self, index: usize) -> (PageView<'_>, usize) {
        let body = HEAD_BYTES + self.pages() * end_bytes(self.is_wide());
        view(&self.code[body + self.start(index)..body + self.start(index + 1)], &self.blobs)
    }

    /// Reads the head, for the processor to have it at hand.
    pub(crate) fn touch_head(&self) -> u8 {
        self.code[0]
    }

    /// Reads a page's code, as [`UnitImage::touch_head`] does.
    pub(crate) fn touch_page(&self, index: usize) -> u8 {
        let start = HEAD_BYTES + self.pages() * end_bytes(self.is_wide()) + self.start(index);
        touch(&self.code[start..self.code.len().min(start + TOUCHED_BYTES)])
    }

    /// Takes the blob that starts at byte `start` of a page, if one does.
    pub(crate) fn take(&mut self, index: usize, start: usize) -> Option<Blob> {
        let (page, first) = self.view(index);
        let number = page.data.blob_number_at(start)?;
        let blob = self.blobs.get_mut(first + number)?.take()?;
        self.blobs_left -= 1;
        if self.blobs_left == 0 {
            self.blobs = Box::default();
        }
        Some(blob)
    }

    fn is_wide(&self) -> bool {
        self.code[0] != 0
    }

    /// Where a page starts, which is where the one before it ends.
    fn start(&self, index: usize) -> usize {
        if index == 0 {
            return 0;
        }
        let end_bytes = end_bytes(self.is_wide());
        let mut end = [0; 4];
        end[..end_bytes].copy_from_slice(&self.code[HEAD_BYTES + (index - 1) * end_bytes..][..end_bytes]);
        u32::from_le_bytes(end) as usize
    }
}

fn end_bytes(wide: bool) -> usize {
    if wide { 4 } else { 2 }
}

/// A page, and the number of its first blob among those of the unit.
fn view<'a>(page: &'a [u8], blobs: &'a [Option<Blob>]) -> (PageView<'a>, usize) {
    let (head, at) = get_number(page, 0);
    let (mut first, mut starts, mut rest) = (0, &page[..0], &page[at..]);
    if head & 1 == 1 {
        let (number, at) = get_number(page, at);
        let (count, at) = get_number(page, at);
        first = number;
        (starts, rest) = page[at..].split_at(count * START_BYTES);
    }
    let (oob, code) = rest.split_at(head >> 1);
    let blobs = blobs.get(first..first + starts.len() / START_BYTES).unwrap_or_default();
    (PageView { oob, data: RopeRef { code, blobs, starts } }, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_of_bytes_is_what_a_builder_makes_of_them() {
        for (oob, data) in [(&b""[..], &b""[..]), (b"x", b""), (b"", &[7; 70_000]), (&[1; 300], &[2; 4096])] {
            let mut rope = Rope::default();
            rope.push_literal(data);
            let mut builder = UnitBuilder::new(1);
            builder.push(oob, &mut rope);
            let (one, other) = (UnitImage::of_bytes(oob, data), builder.finish());
            assert_eq!((one.pages(), one.page(0).oob), (1, other.page(0).oob));
            assert_eq!(one.page(0).data.code, other.page(0).data.code);
        }
    }

    #[test]
    fn pages_come_back_as_they_went_in() {
        let mut builder = UnitBuilder::new(3);
        let blob: Blob = vec![9; 1000].into();
        for round in 0..2u8 {
            for page in 0..3u8 {
                let mut rope = Rope::default();
                rope.push_literal(&[page; 10]);
                rope.push_blob(blob.clone());
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
                assert_eq!(view.data.blob(10..1010).as_ptr(), blob.as_ptr());
            }
            assert!(unit.take(1, 10).is_some() && unit.take(1, 10).is_none() && unit.take(1, 0).is_none());
            assert!(unit.page(1).data.blob_number_at(10).is_some());
            assert_eq!(&*unit.page(1).data.blob(0..10), [1; 10]);
            assert_eq!(unit.page(2).data.blob(10..1010).as_ptr(), blob.as_ptr());
            assert!(unit.take(0, 10).is_some() && unit.take(2, 10).is_some() && unit.take(2, 10).is_none());
            assert_eq!((unit.page(2).oob, &*unit.page(2).data.blob(0..10)), (&[round, 2][..], &[2; 10][..]));
        }
    }
}
