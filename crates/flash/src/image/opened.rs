//! The page cache: pages as they were written, in memory.
//!
//! ```text
//!   page p    set p % sets      [slot] x 8      a hand goes round the slots of a set: it passes by what was asked for again since it
//!                                               came, once, and takes the first that was not
//!   slot      [head of a literal] [data area] [out-of-band area]         a page is read to here, its checksum looked at, nothing copied
//! ```
//!
//! What a scan reads once makes room for what the scan reads next (SIEVE, NSDI 2024, within a set).

use crate::codec::PageIdentity;
use crate::rope::{LiteralHead, RopeRef};
use crate::{Geometry, PageAddress, PageView, codec};

/// Slots of a set.
const WAYS: usize = 8;
/// The fewest sets: what a command reads side by side must not be in its own way.
const SETS_MIN: usize = 8;

/// Of a record so much is brought closer: most are smaller, and what follows of larger ones the processor brings by itself.
const WARM_BYTES: usize = 192;
const CACHE_LINE_BYTES: usize = 64;

/// The pages.
#[derive(Debug)]
pub(super) struct OpenedPages {
    sets: Vec<Set>,
    head: LiteralHead,
    geometry: Geometry,
}

/// Slots for the pages with one remainder. Whether a page is among them is seen in one cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Set {
    pages: [Option<PageAddress>; WAYS],
    slots: [Slot; WAYS],
    /// The slot that the hand points to.
    hand: u8,
}

/// What is known of a page.
#[derive(Debug, Default)]
struct Slot {
    /// Its checksum was right.
    is_whole: bool,
    was_asked_again: bool,
    /// Empty before its first page.
    bytes: Vec<u8>,
    /// Bytes of the out-of-band area that are the firmware's.
    oob_bytes: usize,
}

impl OpenedPages {
    /// Room for so many bytes of pages, and for 64 pages at least.
    pub(super) fn new(geometry: &Geometry, cache_bytes: u64) -> Self {
        let slot_bytes = u64::from(geometry.page_bytes) + u64::from(geometry.oob_bytes);
        let sets = (cache_bytes / slot_bytes / WAYS as u64).min(geometry.pages()) as usize;
        let sets = (0..sets.max(SETS_MIN)).map(|_| Set::default()).collect();
        OpenedPages { sets, head: LiteralHead::new(geometry.page_bytes as usize), geometry: *geometry }
    }

    fn set_of(&self, page: PageAddress) -> usize {
        page.0 as usize % self.sets.len()
    }

    fn slot_of(&self, page: PageAddress) -> Option<&Slot> {
        let set = &self.sets[self.set_of(page)];
        set.way_of(page).map(|way| &set.slots[way])
    }

    fn slot_of_mut(&mut self, page: PageAddress) -> Option<&mut Slot> {
        let number = self.set_of(page);
        let set = &mut self.sets[number];
        set.way_of(page).map(|way| &mut set.slots[way])
    }

    /// Whether a page is here.
    pub(super) fn holds(&self, page: PageAddress) -> bool {
        self.slot_of(page).is_some_and(|slot| slot.is_whole)
    }

    /// A page that is here was asked for again, after others.
    pub(super) fn ask_again(&mut self, page: PageAddress) {
        if let Some(slot) = self.slot_of_mut(page) {
            slot.was_asked_again = true;
        }
    }

    /// A page that is here.
    pub(super) fn get(&self, page: PageAddress) -> Option<PageView<'_>> {
        let slot = self.slot_of(page).filter(|slot| slot.is_whole)?;
        let (code, oob) = slot.bytes.split_at(self.head.len() + self.geometry.page_bytes as usize);
        let oob = &oob[codec::OOB_HEAD_BYTES as usize..][..slot.oob_bytes];
        Some(PageView { oob, data: RopeRef::of_literal(code) })
    }

    /// See [`Backing::warm`](crate::Backing::warm). The reads of each pass wait for none of each other.
    pub(super) fn warm(&self, places: &[(PageAddress, usize)]) {
        let slots: Vec<(&[u8], usize)> =
            places.iter().filter_map(|&(page, start)| Some((&*self.slot_of(page)?.bytes, start))).collect();
        let mut touched = 0;
        for (bytes, start) in slots {
            let record = bytes.get(self.head.len() + start..).unwrap_or_default();
            let lines = record.iter().take(WARM_BYTES).step_by(CACHE_LINE_BYTES);
            touched = bytes.iter().take(1).chain(lines).fold(touched, |touched, byte| touched ^ byte);
        }
        std::hint::black_box(touched);
    }

    /// Where pages are to be read to, from `first` on: so many, or as many as there are sets behind that of the first. What was there is
    /// gone.
    pub(super) fn places(&mut self, first: PageAddress, pages: u32) -> impl Iterator<Item = &mut [u8]> {
        let begin = self.set_of(first);
        let Geometry { page_bytes, oob_bytes, .. } = self.geometry;
        let page_bytes = page_bytes as usize + oob_bytes as usize;
        let head = &self.head;
        self.sets[begin..].iter_mut().zip(first.0..first.0 + pages).map(move |(set, page)| {
            let slot = set.place_for(PageAddress(page));
            (slot.is_whole, slot.was_asked_again) = (false, false);
            if slot.bytes.is_empty() {
                slot.bytes.extend_from_slice(head.bytes());
                slot.bytes.resize(head.len() + page_bytes, 0);
            }
            &mut slot.bytes[head.len()..]
        })
    }

    /// A page has been read to its place: takes it in, or says why it is none.
    pub(super) fn open(&mut self, identity: PageIdentity) -> Result<(), &'static str> {
        let (geometry, head_bytes) = (self.geometry, self.head.len());
        let Some(slot) = self.slot_of_mut(identity.page) else { return Ok(()) };
        slot.is_whole = false;
        let (oob, _) = codec::verify(&geometry, identity, &slot.bytes[head_bytes..])?;
        slot.oob_bytes = oob.len();
        slot.is_whole = true;
        Ok(())
    }

    /// A page is in the file as `bytes`, with so many of its out-of-band area the firmware's.
    pub(super) fn keep(&mut self, page: PageAddress, bytes: &[u8], oob_bytes: usize) {
        self.places(page, 1).for_each(|place| place.copy_from_slice(bytes));
        if let Some(slot) = self.slot_of_mut(page) {
            (slot.oob_bytes, slot.is_whole) = (oob_bytes, true);
        }
    }

    /// A page is written anew.
    pub(super) fn forget(&mut self, page: PageAddress) {
        let number = self.set_of(page);
        let set = &mut self.sets[number];
        if let Some(way) = set.way_of(page) {
            set.pages[way] = None;
        }
    }
}

impl Set {
    fn way_of(&self, page: PageAddress) -> Option<usize> {
        self.pages.iter().position(|&there| there == Some(page))
    }

    /// The slot that is a page's from now on: its own, or that of the page that leaves.
    fn place_for(&mut self, page: PageAddress) -> &mut Slot {
        let way = self.way_of(page).unwrap_or_else(|| self.choose());
        self.pages[way] = Some(page);
        &mut self.slots[way]
    }

    fn choose(&mut self) -> usize {
        loop {
            let at = usize::from(self.hand);
            self.hand = ((at + 1) % WAYS) as u8;
            if !std::mem::take(&mut self.slots[at].was_asked_again) {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        blocks_per_die: 64,
        pages_per_block: 64,
        pages_per_program: 1,
        page_bytes: 512,
        oob_bytes: 64,
        superblock_dies: 0,
        read_bytes_min: 0,
    };

    fn keep(pages: &mut OpenedPages, page: u32) {
        let bytes = codec::encode(
            &GEOMETRY,
            PageIdentity { page: PageAddress(page), erases: 1 },
            crate::UnitImage::of_bytes(&page.to_le_bytes(), &[page as u8; 512]).page(0),
        );
        pages.keep(PageAddress(page), &bytes, 4);
    }

    #[test]
    fn what_is_kept_is_what_was_written_and_there_is_as_much_as_was_asked_for() {
        let mut pages = OpenedPages::new(&GEOMETRY, 256 * 576);
        (0..256).for_each(|page| keep(&mut pages, page));
        for page in 0..256 {
            let PageView { oob, data } = pages.get(PageAddress(page)).unwrap();
            let mut bytes = [0; 512];
            data.copy_to(0, &mut bytes);
            assert_eq!((oob, bytes), (&page.to_le_bytes()[..], [page as u8; 512]));
        }
        keep(&mut pages, 256);
        assert_eq!((0..=256).filter(|&page| pages.holds(PageAddress(page))).count(), 256);
        pages.forget(PageAddress(256));
        assert!(pages.get(PageAddress(256)).is_none());
        assert_eq!(OpenedPages::new(&GEOMETRY, 0).sets.len() * WAYS, 64);
        assert_eq!(OpenedPages::new(&GEOMETRY, u64::MAX).sets.len() as u64, GEOMETRY.pages());
    }

    #[test]
    fn a_scan_leaves_what_is_asked_for_again() {
        let mut pages = OpenedPages::new(&GEOMETRY, 256 * 576);
        (0..128).for_each(|page| keep(&mut pages, page));
        (0..128).for_each(|page| pages.ask_again(PageAddress(page)));
        (1000..1128).for_each(|page| keep(&mut pages, page));
        assert!((0..128).all(|page| pages.holds(PageAddress(page))), "a scan as large as the room that was left");
        for round in 0..8 {
            (0..128).for_each(|page| pages.ask_again(PageAddress(page)));
            (2000 + round * 128..2128 + round * 128).for_each(|page| keep(&mut pages, page));
        }
        assert!((0..128).all(|page| pages.holds(PageAddress(page))), "and longer ones");
    }

    #[test]
    fn a_page_that_is_not_what_was_written_is_not_kept() {
        let mut pages = OpenedPages::new(&GEOMETRY, 0);
        keep(&mut pages, 7);
        pages.places(PageAddress(7), 1).for_each(|place| place[100] ^= 1);
        assert!(pages.open(PageIdentity { page: PageAddress(7), erases: 1 }).is_err());
        assert!(!pages.holds(PageAddress(7)) && pages.get(PageAddress(7)).is_none());
    }
}
