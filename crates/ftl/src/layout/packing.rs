//! Packing: how records lie in pages.
//!
//! ```text
//!   grains     | record | record, which runs on over |   any number of pages                  original, plus, rhik
//!
//!   chunks     | record | record | pad | record .. |   as grains, but a record that fits into a page lies in one   kaml
//!
//!   tails      | large record            |pad| ..     |   as grains, but a large one does not begin at a page's end
//!
//!   halves     | half a page | half a page |pad| ..   |   as tails, and one of about half a page does not either         tessera
//!
//!   slots      | record  | record, which .. | rest |   as grains, but the rest is the controller's own; a record
//!              | .. runs on |- - - - - - - -| rest |   that is larger than what a page takes begins one
//!              | first fragment ...         | rest |
//!              |o| second fragment | record | rest |   o: the offset record                  multilevel
//! ```
//!
//! A block drive has blocks of a grain each, without a head: their numbers lie out of band.
//!
//! Slots are what the Study paper (section IV) concludes of its drive: pairs below 1 KiB are padded to it, 24 KiB of a
//! value fit into a page of 32 KiB with key and metadata, and larger ones are split, which takes the management of
//! offsets.

use crate::layout::address::Grain;
use crate::layout::record::RecordHead;
use crate::parameters::Parameters;
use kvssd_flash::rope::{Rope, RopeRef};
use kvssd_flash::{Geometry, PageAddress, SuperblockId};
use kvssd_types::KvError;
use std::ops::Range;

/// Bytes before each fragment but the first: its number and the byte of the record that it begins with, u32 little
/// endian each.
const OFFSET_RECORD_BYTES: usize = 8;

/// Records in slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Bytes of the smallest record: smaller ones are padded.
    pub slot_bytes_min: u32,
    /// The share of a page that records take, in whole grains; the rest is the controller's own.
    pub page_use_per_mille: u32,
}

impl Slots {
    pub(crate) fn parameters(&mut self) -> Parameters<'_> {
        vec![("slot_bytes_min", &mut self.slot_bytes_min), ("page_use_per_mille", &mut self.page_use_per_mille)]
    }

    /// Whether they can be.
    pub(crate) fn check(&self, page_bytes: u32, grain_bytes: u32) -> Result<(), String> {
        let Slots { slot_bytes_min, page_use_per_mille } = *self;
        if !(250..=1000).contains(&page_use_per_mille) {
            return Err(format!("design.page_use_per_mille = {page_use_per_mille} must lie between 250 and 1000"));
        }
        let used_bytes = self.page_grains(page_bytes, grain_bytes) * grain_bytes;
        if slot_bytes_min > used_bytes || used_bytes < 512 {
            return Err(format!(
                "design.slot_bytes_min = {slot_bytes_min}, and {page_use_per_mille} / 1000 of a page in whole grains are {used_bytes}"
            ));
        }
        Ok(())
    }

    fn page_grains(&self, page_bytes: u32, grain_bytes: u32) -> u32 {
        (u64::from(page_bytes) * u64::from(self.page_use_per_mille) / 1000) as u32 / grain_bytes
    }
}

/// How records lie in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordLayout {
    /// One after the other, in whole grains.
    Grains,
    /// In whole grains, in one page where one takes it (KAML, section IV-B: the first record starts at the page's
    /// beginning).
    Chunks,
    /// As grains, but a record of three quarters of a page or more does not begin in the last sixteenth of one: it would
    /// be two reads for little room. Both shares are estimates.
    Tails,
    /// As tails, and a record of about half a page, three quarters of it or more, does not begin in the last 32nd of a page: every other one
    /// would be two reads. The shares are those of tails.
    Halves,
    /// In slots.
    Slots(Slots),
    /// Blocks of one grain each.
    Blocks,
}

impl RecordLayout {
    /// The layout of keys that has that name and no parameters.
    pub(crate) fn of_grains(name: &str) -> Result<RecordLayout, String> {
        let all = [RecordLayout::Grains, RecordLayout::Chunks, RecordLayout::Tails, RecordLayout::Halves];
        let found = all.into_iter().find(|layout| layout.name() == name);
        found.ok_or_else(|| {
            format!("there is no layout {name:?} without parameters (there are: grains, chunks, tails, halves)")
        })
    }

    /// The name in descriptions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RecordLayout::Grains => "grains",
            RecordLayout::Chunks => "chunks",
            RecordLayout::Tails => "tails",
            RecordLayout::Halves => "halves",
            RecordLayout::Slots(_) => "slots",
            RecordLayout::Blocks => "blocks",
        }
    }
}

/// How records lie in pages, and pages are divided into grains.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    /// Bytes of a grain.
    pub grain_bytes: u32,
    /// Grains of a page.
    pub grains_per_page: u32,
    /// Grains of a superblock.
    pub grains_per_superblock: u64,
    pub(crate) layout: RecordLayout,
}

impl Packing {
    /// Pages of `geometry` divided into grains of `grain_bytes`, which must divide a page.
    #[must_use]
    pub fn new(geometry: &Geometry, grain_bytes: u32, layout: RecordLayout) -> Self {
        // What cannot be is refused before anything is built; until then it must only not stop the program.
        let grain_bytes = grain_bytes.clamp(1, geometry.page_bytes);
        let grains_per_page = match layout {
            RecordLayout::Slots(slots) => slots.page_grains(geometry.page_bytes, grain_bytes).max(1),
            _ => geometry.page_bytes / grain_bytes,
        };
        let grains_per_superblock = u64::from(grains_per_page) * u64::from(geometry.pages_per_superblock());
        Packing { grain_bytes, grains_per_page, grains_per_superblock, layout }
    }

    /// Bytes of a page that records may take.
    #[must_use]
    pub fn page_bytes(&self) -> u32 {
        self.grains_per_page * self.grain_bytes
    }

    /// Bytes of a superblock that records may take.
    #[must_use]
    pub fn superblock_bytes(&self) -> u64 {
        self.grains_per_superblock * u64::from(self.grain_bytes)
    }

    /// The page that a grain lies in.
    #[must_use]
    pub fn page_of(&self, grain: Grain) -> PageAddress {
        PageAddress((grain.0 / u64::from(self.grains_per_page)) as u32)
    }

    /// Which of its page's grains a grain is.
    #[must_use]
    pub fn index_in_page(&self, grain: Grain) -> u32 {
        (grain.0 % u64::from(self.grains_per_page)) as u32
    }

    /// The first byte of a grain in its page.
    #[must_use]
    pub fn byte_in_page(&self, grain: Grain) -> usize {
        self.index_in_page(grain) as usize * self.grain_bytes as usize
    }

    /// The page that a grain lies in, and its first byte there.
    #[must_use]
    pub fn start_of(&self, grain: Grain) -> (PageAddress, usize) {
        (self.page_of(grain), self.byte_in_page(grain))
    }

    /// The grain with number `index` of a page.
    #[must_use]
    pub fn grain(&self, page: PageAddress, index: u32) -> Grain {
        Grain(u64::from(page.0) * u64::from(self.grains_per_page) + u64::from(index))
    }

    /// The superblock that a grain lies in.
    #[must_use]
    pub fn superblock_of(&self, grain: Grain) -> SuperblockId {
        SuperblockId((grain.0 / self.grains_per_superblock) as u32)
    }

    /// The grains that `bytes` take.
    #[must_use]
    pub fn grains_of(&self, bytes: usize) -> u32 {
        bytes.div_ceil(self.grain_bytes as usize) as u32
    }

    /// The head of the record at byte `start` of a page.
    ///
    /// # Errors
    /// [`KvError::Unrecovered`] when there is no record.
    pub fn head(&self, page: RopeRef<'_>, start: usize) -> Result<RecordHead, KvError> {
        match self.layout {
            RecordLayout::Blocks => Ok(self.block()),
            _ => RecordHead::read(page, start, self.page_bytes() as usize),
        }
    }

    /// The head that a block would have.
    #[must_use]
    pub fn block(&self) -> RecordHead {
        RecordHead { key_bytes: 0, value_bytes: self.grain_bytes }
    }

    /// The grains of the record with this head.
    #[must_use]
    pub fn grains_of_record(&self, head: &RecordHead) -> u32 {
        self.grains_of(self.record_bytes(head))
    }

    /// The bytes that the record with this head takes: its grains, and what may be left of the page before if it begins
    /// a page. Of chunks, its share of what is left at the ends of pages when all records are as large.
    #[must_use]
    #[inline]
    pub fn bytes_charged(&self, head: &RecordHead) -> u64 {
        let (grains, per_page) = (u64::from(self.grains_of_record(head)), u64::from(self.grains_per_page));
        let charged = match self.layout {
            _ if self.begins_page(head) => grains + per_page - 1,
            RecordLayout::Chunks => (grains * per_page).div_ceil(per_page - grains + 1).min(per_page),
            _ => grains + u64::from(self.tail_grains(head)),
        };
        charged * u64::from(self.grain_bytes)
    }

    /// Bytes of the record with this head, as it lies in flash.
    #[must_use]
    pub fn record_bytes(&self, head: &RecordHead) -> usize {
        let (bytes, page_bytes) = (head.record_bytes(), self.page_bytes() as usize);
        match self.layout {
            RecordLayout::Slots(slots) if !self.is_split(head) => bytes.max(slots.slot_bytes_min as usize),
            RecordLayout::Slots(_) => {
                let fragments = (bytes - page_bytes).div_ceil(page_bytes - OFFSET_RECORD_BYTES);
                bytes + fragments * OFFSET_RECORD_BYTES
            }
            _ => bytes,
        }
    }

    /// How many bytes of the record with this head, from the first on, must lie in one page.
    #[must_use]
    pub fn unbroken_bytes(&self, head: &RecordHead) -> usize {
        match self.layout {
            _ if self.begins_page(head) => self.page_bytes() as usize,
            RecordLayout::Chunks => head.record_bytes(),
            _ => match self.tail_grains(head) {
                0 => head.bytes(),
                tail => head.bytes().max((tail * self.grain_bytes) as usize + 1),
            },
        }
    }

    /// The end of a page at which the record with this head does not begin: a sixteenth of what it is about as large as, a page or half
    /// of one.
    fn tail_grains(&self, head: &RecordHead) -> u32 {
        let parts = match self.layout {
            RecordLayout::Tails => 1..=1,
            RecordLayout::Halves => 1..=2,
            _ => return 0,
        };
        let grains = self.grains_of(head.record_bytes());
        let part =
            parts.map(|parts| self.grains_per_page / parts).find(|part| (part * 3 / 4..=*part).contains(&grains));
        part.map_or(0, |part| part / 16)
    }

    /// Whether the record with this head is larger than a page and begins one.
    fn begins_page(&self, head: &RecordHead) -> bool {
        let is_whole = matches!(self.layout, RecordLayout::Slots(_) | RecordLayout::Chunks);
        is_whole && head.record_bytes() > self.page_bytes() as usize
    }

    /// Whether the record with this head begins a page and has an offset record in each of the next.
    fn is_split(&self, head: &RecordHead) -> bool {
        matches!(self.layout, RecordLayout::Slots(_)) && self.begins_page(head)
    }

    /// Brings `record`, which is a head and a value, into the form that it has in flash.
    pub(crate) fn lay_out(&self, head: &RecordHead, record: &mut Rope) {
        let page_bytes = self.page_bytes() as usize;
        if self.is_split(head) {
            let whole = std::mem::take(record);
            record.push_slice(whole.as_ref(), 0..page_bytes);
            let (mut begin, mut number) = (page_bytes, 1u32);
            while begin < whole.len() {
                record.push_literal(&number.to_le_bytes());
                record.push_literal(&(begin as u32).to_le_bytes());
                let end = whole.len().min(begin + page_bytes - OFFSET_RECORD_BYTES);
                record.push_slice(whole.as_ref(), begin..end);
                (begin, number) = (end, number + 1);
            }
        }
        record.push_zeros(self.record_bytes(head) - record.len());
    }

    /// The parts of the value of a record that begins at byte `start` of a page, page by page: the byte of the page
    /// that a part begins at, and which bytes of the value it has.
    pub(crate) fn value_parts(
        &self,
        head: &RecordHead,
        start: usize,
    ) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let (page_bytes, value_bytes) = (self.page_bytes() as usize, head.value_bytes as usize);
        let later = if self.is_split(head) { OFFSET_RECORD_BYTES } else { 0 };
        let mut next = Some((start + head.bytes(), 0));
        std::iter::from_fn(move || {
            let (at, begin) = next?;
            let end = value_bytes.min(begin + page_bytes - at);
            next = (end < value_bytes).then_some((later, end));
            Some((at, begin..end))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::record::write_record;
    use kvssd_types::{Key, Pattern, Value, ValueBuilder};
    use proptest::prelude::*;

    const GEOMETRY: Geometry = Geometry {
        channels: 1,
        dies_per_channel: 2,
        blocks_per_die: 4,
        pages_per_block: 8,
        pages_per_program: 1,
        page_bytes: 32_768,
        oob_bytes: 1024,
        superblock_dies: 0,
        read_bytes_min: 0,
    };

    /// The Study paper's drive.
    fn packing() -> Packing {
        Packing::new(&GEOMETRY, 512, RecordLayout::Slots(Slots { slot_bytes_min: 1024, page_use_per_mille: 766 }))
    }

    #[test]
    fn pairs_are_padded_to_a_slot_and_split_where_the_paper_saw_bandwidth_drop() {
        let packing = packing();
        let grains = |value_bytes| packing.grains_of_record(&RecordHead { key_bytes: 16, value_bytes });
        assert_eq!((grains(50), grains(1003), grains(1004)), (2, 2, 3));
        let pages = |value_kib: u32| grains(value_kib << 10).div_ceil(packing.grains_per_page);
        assert_eq!((pages(24), pages(25), pages(48), pages(49)), (1, 2, 2, 3));
    }

    #[test]
    fn only_a_record_of_about_a_page_leaves_a_tail_and_is_charged_it() {
        let packing = Packing::new(&GEOMETRY, 512, RecordLayout::Tails);
        let head = |record_bytes: u32| RecordHead { key_bytes: 16, value_bytes: record_bytes - 21 };
        let [small, large, page, larger] = [24_064, 24_576, 32_768, 33_000].map(|bytes| {
            let head = head(bytes);
            (packing.unbroken_bytes(&head), packing.bytes_charged(&head) / 512)
        });
        assert_eq!((small.1, larger.1), (47, 65));
        assert!(small.0 == larger.0 && small.0 < 512);
        // 4 of 64 grains.
        assert_eq!([large, page], [(2049, 48 + 4), (2049, 64 + 4)]);
    }

    /// 63 of a page's 128 grains: of pages that were filled without a gap, every other record would lie in two.
    #[test]
    fn records_of_about_half_a_page_lie_in_one_each() {
        let geometry = Geometry { page_bytes: 8192, ..GEOMETRY };
        let head = RecordHead { key_bytes: 8, value_bytes: 4000 };
        let broken = |layout| {
            let packing = Packing::new(&geometry, 64, layout);
            let (per_page, grains, unbroken) =
                (packing.grains_per_page, packing.grains_of_record(&head), packing.unbroken_bytes(&head) as u32);
            let (mut at, mut broken) = (0, 0);
            for _ in 0..100 {
                let rest = per_page - at % per_page;
                at += if rest * 64 < unbroken { rest } else { 0 };
                broken += u32::from(at % per_page + grains > per_page);
                at += grains;
            }
            (broken, packing.bytes_charged(&head) / 64)
        };
        assert_eq!((broken(RecordLayout::Tails).0 > 40, broken(RecordLayout::Tails).1), (true, 63));
        assert_eq!(broken(RecordLayout::Halves), (0, 63 + 4));
        let [small, quarter, half] = [6000, 8000, 16_000].map(|value_bytes| {
            let packing = Packing::new(&GEOMETRY, 512, RecordLayout::Halves);
            let head = RecordHead { key_bytes: 16, value_bytes };
            packing.bytes_charged(&head) / 512 - u64::from(packing.grains_of_record(&head))
        });
        assert_eq!((small, quarter, half), (0, 0, 2), "smaller ones leave nothing");
    }

    proptest! {
        #[test]
        fn the_parts_of_a_value_are_where_they_were_laid_out(length in 0u32..200_000, key in prop::collection::vec(any::<u8>(), 1..256)) {
            let packing = packing();
            let value = Value::Pattern(Pattern { seed: 7, offset: 0, length });
            let head = RecordHead { key_bytes: key.len() as u32, value_bytes: length };
            let mut record = Rope::default();
            write_record(Key::new(&key).unwrap(), &value, &mut record);
            packing.lay_out(&head, &mut record);
            prop_assert_eq!(record.len(), packing.record_bytes(&head));
            let page_bytes = packing.page_bytes() as usize;
            let (mut read, mut covered) = (ValueBuilder::default(), 0);
            prop_assert!(packing.bytes_charged(&head) >= record.len() as u64);
            for (page, (at, part)) in packing.value_parts(&head, 0).enumerate() {
                prop_assert_eq!(part.start, covered);
                prop_assert!(at + part.len() <= page_bytes);
                covered = part.end;
                record.as_ref().push_to(page * page_bytes + at..page * page_bytes + at + part.len(), &mut read);
            }
            prop_assert_eq!(read.build(), value);
        }
    }
}
