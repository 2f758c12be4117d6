//! The page cache: pages as they were written, in memory.
//!
//! ```text
//!   page p    set p % sets      [slot] x 8      a hand goes round the slots of a set: it passes by what was asked for again since it
//!                                               came, once, and takes the first that was not
//!   slot      [head of a literal] [data area] [out-of-band area]         a page is read to here, its checksum looked at, nothing copied
//! ```
//!
//! Pages that a scan reads once are evicted by the next pages of the scan (SIEVE, NSDI 2024, within a set). The firmware may use the memory of
//! up to five eighths of the slots instead.
//!
//! Callers with shared access lock one set. A caller with exclusive access needs no lock.

use crate::codec::PageIdentity;
use crate::rope::{LiteralHead, RopeRef};
use crate::{Geometry, PageAddress, PageView, codec};
use std::hint;
use std::io::IoSliceMut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Slots of a set.
const WAYS: usize = 8;
/// Slots of a set that may be given up, and slots that all sets together give up at a time.
const GIVEN_UP_MAX: usize = 5;
const GIVEN_UP_STEP: usize = 8;
/// The fewest sets: what a command reads side by side must not be in its own way.
const SETS_MIN: usize = 8;

/// Bytes of a record that are prefetched: most records are smaller, and for larger ones the processor fetches the rest itself.
const WARM_BYTES: usize = 192;
const CACHE_LINE_BYTES: usize = 64;
/// How often a caller tries to lock a set: about as long as another one looks at a cached page.
const TRIES: usize = 64;

#[derive(Debug)]
pub(super) struct OpenedPages {
    sets: Vec<Mutex<Set>>,
    form: PageForm,
    /// The next slot to give up, counted over all sets in turn.
    given_up: AtomicUsize,
}

/// What the slots look like.
#[derive(Clone, Debug)]
struct PageForm {
    head: LiteralHead,
    geometry: Geometry,
}

/// Slots for the pages with one remainder. One cache line tells whether a page is among them.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Set {
    pages: [Option<PageAddress>; WAYS],
    slots: [Slot; WAYS],
    /// The slot that the hand points to.
    hand: u8,
    /// How many slots were given up: the last ones.
    given_up: u8,
    /// The page that somebody looked at last.
    looked_at: Option<PageAddress>,
}

/// What is known of a page.
#[derive(Debug, Default)]
struct Slot {
    /// Whether its checksum was verified.
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
        let form = PageForm { head: LiteralHead::new(geometry.page_bytes as usize), geometry: *geometry };
        let sets = (cache_bytes / form.slot_bytes() / WAYS as u64).min(geometry.pages()) as usize;
        let sets = (0..sets.max(SETS_MIN)).map(|_| Mutex::default()).collect();
        OpenedPages { sets, form, given_up: AtomicUsize::new(0) }
    }

    /// Gives up some slots, and says how many bytes they are together; 0 when there are no more to give.
    pub(super) fn give_up(&self) -> u64 {
        let most = self.sets.len() * GIVEN_UP_MAX;
        while self.given_up.load(Ordering::Relaxed) < most {
            let begin = self.given_up.fetch_add(GIVEN_UP_STEP, Ordering::Relaxed);
            let sets = (begin..most.min(begin + GIVEN_UP_STEP)).map(|slot| &self.sets[slot % self.sets.len()]);
            // A set in use keeps its slot.
            let given = sets.filter_map(|set| soon(set).map(|mut set| set.give_up())).count();
            if given > 0 {
                return given as u64 * self.form.slot_bytes();
            }
        }
        0
    }

    fn number_of(&self, page: PageAddress) -> usize {
        page.0 as usize % self.sets.len()
    }

    fn set_of(&mut self, page: PageAddress) -> &mut Set {
        let number = self.number_of(page);
        self.sets[number].get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a page is here.
    pub(super) fn holds(&mut self, page: PageAddress) -> bool {
        self.set_of(page).whole(page).is_some()
    }

    /// Notes that a cached page was asked for again, after others.
    pub(super) fn ask_again(&mut self, page: PageAddress) {
        self.set_of(page).ask_again(page);
    }

    /// A page that is here.
    pub(super) fn get(&mut self, page: PageAddress) -> Option<PageView<'_>> {
        let number = self.number_of(page);
        let set = self.sets[number].get_mut().unwrap_or_else(PoisonError::into_inner);
        set.whole(page).map(|slot| self.form.view(slot))
    }

    /// Shows a page to `see`. `read` fetches it if it is not cached. Returns whether it could be shown.
    pub(super) fn look(
        &self,
        identity: PageIdentity,
        read: impl FnOnce(&mut [u8]) -> bool,
        see: &mut dyn FnMut(PageView<'_>),
    ) -> bool {
        let page = identity.page;
        let set = &self.sets[self.number_of(page)];
        let mut slot = Slot::default();
        if let Some(mut set) = soon(set) {
            set.look_at(page);
            if let Some(slot) = set.whole(page) {
                see(self.form.view(slot));
                return true;
            }
            slot = set.take_for(page);
        }
        // Nobody waits for what is read here.
        if !read(self.form.place(&mut slot)) || self.form.open(&mut slot, identity).is_err() {
            return false;
        }
        see(self.form.view(&slot));
        if let Some(mut set) = soon(set) {
            *set.place_for(page) = slot;
        }
        true
    }

    /// Pages from `first` on will be looked at now: if the first is not cached, `read` fetches `pages` of them together. Damage is found when a page
    /// is looked at.
    pub(super) fn bring(&self, first: PageIdentity, pages: u32, read: impl FnOnce(&mut [IoSliceMut<'_>]) -> bool) {
        let set = |page: PageAddress| soon(&self.sets[self.number_of(page)]);
        if set(first.page).is_none_or(|set| set.whole(first.page).is_some()) {
            return;
        }
        let all = (first.page.0..).map(PageAddress);
        let take = |page| set(page).map(|mut set| set.take_for(page)).unwrap_or_default();
        let mut slots: Vec<Slot> = all.clone().take(pages as usize).map(take).collect();
        let mut places: Vec<IoSliceMut<'_>> =
            slots.iter_mut().map(|slot| IoSliceMut::new(self.form.place(slot))).collect();
        if !read(&mut places) {
            return;
        }
        for (page, mut slot) in all.zip(slots) {
            let is_whole = self.form.open(&mut slot, PageIdentity { page, ..first }).is_ok();
            if is_whole && let Some(mut set) = set(page) {
                *set.place_for(page) = slot;
            }
        }
    }

    /// See [`Backing::warm`](crate::Backing::warm). The reads of one pass do not wait for each other, but a lock of a set waits for all reads before
    /// it: so all sets are locked first. A set that another caller uses is warm already.
    pub(super) fn warm(&self, places: &[(PageAddress, usize)]) {
        let lock = |&(page, start): &(PageAddress, usize)| {
            Some((self.sets[self.number_of(page)].try_lock().ok()?, page, start))
        };
        let sets: Vec<(MutexGuard<'_, Set>, PageAddress, usize)> = places.iter().filter_map(lock).collect();
        let mut touched = 0;
        for (set, page, start) in &sets {
            let Some(way) = set.way_of(*page) else { continue };
            let bytes = &set.slots[way].bytes;
            let record = bytes.get(self.form.head.len() + start..).unwrap_or_default();
            let lines = record.chunks(CACHE_LINE_BYTES).take(WARM_BYTES / CACHE_LINE_BYTES);
            touched =
                lines.filter_map(<[u8]>::first).chain(bytes.first()).fold(touched, |touched, byte| touched ^ byte);
        }
        std::hint::black_box(touched);
    }

    /// Where `pages` pages from `first` on are to be read to, or fewer if there are not so many sets behind that of the first. The old content is
    /// dropped.
    pub(super) fn places(&mut self, first: PageAddress, pages: u32) -> impl Iterator<Item = &mut [u8]> {
        let begin = self.number_of(first);
        let form = &self.form;
        self.sets[begin..].iter_mut().zip(first.0..first.0 + pages).map(move |(set, page)| {
            let set = set.get_mut().unwrap_or_else(PoisonError::into_inner);
            form.place(set.place_for(PageAddress(page)))
        })
    }

    /// Admits a page that was read to its place. The error says why it is none.
    pub(super) fn open(&mut self, identity: PageIdentity) -> Result<(), &'static str> {
        let number = self.number_of(identity.page);
        let set = self.sets[number].get_mut().unwrap_or_else(PoisonError::into_inner);
        set.slot_mut(identity.page).map_or(Ok(()), |slot| self.form.open(slot, identity))
    }

    /// A page is in the file as `bytes`, with so many of its out-of-band area the firmware's.
    pub(super) fn keep(&mut self, page: PageAddress, bytes: &[u8], oob_bytes: usize) {
        self.places(page, 1).for_each(|place| place.copy_from_slice(bytes));
        if let Some(slot) = self.set_of(page).slot_mut(page) {
            (slot.oob_bytes, slot.is_whole) = (oob_bytes, true);
        }
    }

    /// A page is written anew, or not wanted any more.
    pub(super) fn forget(&mut self, page: PageAddress) {
        let set = self.set_of(page);
        if let Some(way) = set.way_of(page) {
            set.pages[way] = None;
        }
    }
}

/// The lock, if it is free before long. Nothing sleeps here: only the code above the drive knows how threads wait.
fn soon<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    (0..TRIES).find_map(|_| match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            hint::spin_loop();
            None
        }
    })
}

impl PageForm {
    fn slot_bytes(&self) -> u64 {
        u64::from(self.geometry.page_bytes) + u64::from(self.geometry.oob_bytes)
    }

    fn view<'s>(&self, slot: &'s Slot) -> PageView<'s> {
        let (code, oob) = slot.bytes.split_at(self.head.len() + self.geometry.page_bytes as usize);
        let oob = &oob[codec::OOB_HEAD_BYTES as usize..][..slot.oob_bytes];
        PageView { oob, data: RopeRef::of_literal(code) }
    }

    /// Where a page is to be read to, in a slot whose page is gone.
    fn place<'s>(&self, slot: &'s mut Slot) -> &'s mut [u8] {
        let Geometry { page_bytes, oob_bytes, .. } = self.geometry;
        (slot.is_whole, slot.was_asked_again) = (false, false);
        if slot.bytes.is_empty() {
            slot.bytes.extend_from_slice(self.head.bytes());
            slot.bytes.resize(self.head.len() + page_bytes as usize + oob_bytes as usize, 0);
        }
        &mut slot.bytes[self.head.len()..]
    }

    /// A page has been read to its place in a slot.
    fn open(&self, slot: &mut Slot, identity: PageIdentity) -> Result<(), &'static str> {
        slot.is_whole = false;
        let (oob, _) = codec::verify(&self.geometry, identity, &slot.bytes[self.head.len()..])?;
        slot.oob_bytes = oob.len();
        slot.is_whole = true;
        Ok(())
    }
}

impl Set {
    fn way_of(&self, page: PageAddress) -> Option<usize> {
        self.pages.iter().position(|&there| there == Some(page))
    }

    /// The slot of a page that is here.
    fn whole(&self, page: PageAddress) -> Option<&Slot> {
        self.way_of(page).map(|way| &self.slots[way]).filter(|slot| slot.is_whole)
    }

    fn slot_mut(&mut self, page: PageAddress) -> Option<&mut Slot> {
        self.way_of(page).map(|way| &mut self.slots[way])
    }

    /// Somebody looks at a page: it is asked for again if another one came in between.
    fn look_at(&mut self, page: PageAddress) {
        if self.looked_at.replace(page) != Some(page) {
            self.ask_again(page);
        }
    }

    fn ask_again(&mut self, page: PageAddress) {
        if let Some(slot) = self.slot_mut(page) {
            slot.was_asked_again = true;
        }
    }

    /// The slot for a page: its own, or that of the page that it evicts.
    fn place_for(&mut self, page: PageAddress) -> &mut Slot {
        let way = self.way_of(page).unwrap_or_else(|| self.choose());
        self.pages[way] = Some(page);
        &mut self.slots[way]
    }

    /// Takes that slot out while a page is read into it, so that its memory is reused and nobody waits for the read.
    fn take_for(&mut self, page: PageAddress) -> Slot {
        let way = self.way_of(page).unwrap_or_else(|| self.choose());
        self.pages[way] = None;
        std::mem::take(&mut self.slots[way])
    }

    /// Gives up the slot that would be evicted next.
    fn give_up(&mut self) {
        let (way, last) = (self.choose(), self.ways() - 1);
        self.pages.swap(way, last);
        self.slots.swap(way, last);
        (self.pages[last], self.slots[last]) = (None, Slot::default());
        self.given_up += 1;
    }

    /// The slots that it has.
    fn ways(&self) -> usize {
        WAYS - usize::from(self.given_up)
    }

    fn choose(&mut self) -> usize {
        let ways = self.ways();
        if let Some(empty) = self.pages[..ways].iter().position(Option::is_none) {
            return empty;
        }
        loop {
            let at = usize::from(self.hand) % ways;
            self.hand = ((at + 1) % ways) as u8;
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
        keep(&mut pages, 512);
        assert_eq!(
            (0..=512).filter(|&page| pages.holds(PageAddress(page))).count(),
            256,
            "what is forgotten makes room"
        );
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
    fn five_eighths_are_given_up_and_what_is_asked_for_again_stays() {
        let mut pages = OpenedPages::new(&GEOMETRY, 256 * 576);
        (0..256).for_each(|page| keep(&mut pages, page));
        let held = |pages: &mut OpenedPages| (0..2000).filter(|&page| pages.holds(PageAddress(page))).count();
        for left in (96..256).rev().step_by(8).map(|left| left - 7) {
            (0..64).for_each(|page| pages.ask_again(PageAddress(page)));
            assert_eq!((pages.give_up(), held(&mut pages)), (8 * 576, left));
        }
        assert_eq!((pages.give_up(), held(&mut pages)), (0, 96));
        assert!((0..64).all(|page| pages.holds(PageAddress(page))));
        (1000..1256).for_each(|page| keep(&mut pages, page));
        assert_eq!(held(&mut pages), 96);
        let slots = pages.sets.iter().flat_map(|set| set.lock().unwrap().slots.each_ref().map(|slot| slot.bytes.len()));
        assert_eq!(slots.filter(|&bytes| bytes > 0).count(), 96);
    }

    #[test]
    fn where_somebody_looks_nothing_is_given_up_and_nobody_waits() {
        let pages = OpenedPages::new(&GEOMETRY, 256 * 576);
        let held: Vec<_> = pages.sets.iter().map(|set| set.lock().unwrap()).collect();
        assert_eq!(pages.give_up(), 0);
        drop(held);
        assert_eq!(pages.give_up(), 0, "they were asked once");
        assert!(pages.sets.iter().all(|set| set.lock().unwrap().ways() == WAYS));
    }

    #[test]
    fn those_who_look_see_what_is_here_and_what_is_read_for_them() {
        let pages = OpenedPages::new(&GEOMETRY, 0);
        let bytes = |page: u32| {
            let view = crate::UnitImage::of_bytes(&page.to_le_bytes(), &[page as u8; 512]);
            codec::encode(&GEOMETRY, PageIdentity { page: PageAddress(page), erases: 1 }, view.page(0))
        };
        let look = |page: u32, may_read: bool| {
            let (mut seen, mut reads) = (None, 0);
            let read = |place: &mut [u8]| {
                reads += 1;
                place.copy_from_slice(&bytes(page));
                may_read
            };
            let identity = PageIdentity { page: PageAddress(page), erases: 1 };
            let is_seen = pages.look(identity, read, &mut |PageView { oob, data }| {
                let mut first = [0];
                data.copy_to(0, &mut first);
                seen = Some((oob.to_vec(), first[0]));
            });
            assert_eq!(is_seen, seen.is_some());
            seen.inspect(|seen| assert_eq!(*seen, (page.to_le_bytes().to_vec(), page as u8))).map(|_| reads)
        };
        assert_eq!((look(3, true), look(3, true), look(4, false), look(4, true)), (Some(1), Some(0), None, Some(1)));
        let asked_again = |page: usize| pages.sets[page].lock().unwrap().slots[0].was_asked_again;
        assert!(!asked_again(3), "the same page over and over is one look");
        assert_eq!((look(3 + SETS_MIN as u32, true), look(3, true), asked_again(3)), (Some(1), Some(0), true));
        let _held = pages.sets[pages.number_of(PageAddress(3))].lock().unwrap();
        assert_eq!(look(3, true), Some(1), "it is read once more where somebody is in the way");
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
