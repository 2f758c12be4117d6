//! The buffer pool: a bounded number of pages in memory, replaced by CLOCK.
//!
//! ```text
//!   frames    [p7 ref] [p2 dirty] [p9 pinned] [p4]        a hand goes around: it takes the mark `ref` away, and stops at the first
//!                ^ hand                                   that has none, is not pinned and not on its way from or to the drive
//! ```
//!
//! A dirty page is written before its frame is given away (steal), and none because its transaction commits (no force).

use super::page::{Lsn, Page, PageId};
use kvssd_types::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A page in memory.
#[derive(Clone, Debug)]
struct Frame {
    id: PageId,
    page: Arc<Page>,
    /// When it is there.
    ready: Nanos,
    /// When the last write of it has ended.
    written: Nanos,
    /// From which record on the drive does not have what was done to it.
    dirty_from: Option<Lsn>,
    pins: u32,
    is_referenced: bool,
}

/// What is to be done for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    /// Nothing: this one is free.
    Frame(usize),
    /// This page is to be written.
    Dirty(PageId),
    /// All are busy until then.
    Busy(Nanos),
}

pub(super) struct BufferPool {
    frames: Vec<Frame>,
    frames_max: usize,
    places: BTreeMap<PageId, usize>,
    dirty: BTreeSet<(Lsn, PageId)>,
    hand: usize,
}

impl BufferPool {
    pub(super) fn new(frames_max: usize) -> Self {
        assert!(frames_max > 0, "a buffer pool has frames");
        let (places, dirty) = (BTreeMap::new(), BTreeSet::new());
        BufferPool { frames: Vec::new(), frames_max, places, dirty, hand: 0 }
    }

    pub(super) fn pages_max(&self) -> usize {
        self.frames_max
    }

    pub(super) fn has_room(&self) -> bool {
        self.frames.len() < self.frames_max
    }

    /// When a page is there, if it is or comes.
    pub(super) fn ready(&self, id: PageId) -> Option<Nanos> {
        self.places.get(&id).map(|place| self.frames[*place].ready)
    }

    /// A page that is there.
    ///
    /// # Panics
    /// When it is not.
    pub(super) fn page(&mut self, id: PageId) -> &Arc<Page> {
        let frame = self.frame(id);
        frame.is_referenced = true;
        &frame.page
    }

    /// The last change of a page that is there.
    pub(super) fn lsn(&self, id: PageId) -> Lsn {
        self.frames[self.places[&id]].page.lsn
    }

    /// Keeps a page from being replaced.
    pub(super) fn pin(&mut self, id: PageId) {
        self.frame(id).pins += 1;
    }

    /// Takes a pin away.
    pub(super) fn unpin(&mut self, id: PageId) {
        self.frame(id).pins -= 1;
    }

    /// Looks for a frame for another page.
    pub(super) fn victim(&mut self, at: Nanos) -> Victim {
        if self.has_room() {
            return Victim::Frame(self.frames.len());
        }
        // Twice around: the first time may do no more than take marks away.
        for _ in 0..2 * self.frames.len() {
            let place = self.hand;
            self.hand = (self.hand + 1) % self.frames.len();
            let frame = &mut self.frames[place];
            if frame.pins > 0 || frame.ready.max(frame.written) > at {
                continue;
            }
            if !std::mem::take(&mut frame.is_referenced) {
                return if frame.dirty_from.is_some() { Victim::Dirty(frame.id) } else { Victim::Frame(place) };
            }
        }
        let busy_until =
            self.frames.iter().map(|frame| frame.ready.max(frame.written)).filter(|until| *until > at).min();
        Victim::Busy(busy_until.unwrap_or(at + Nanos(1)))
    }

    /// Puts a page into a frame that [`BufferPool::victim`] gave.
    pub(super) fn install(&mut self, place: usize, id: PageId, page: Arc<Page>, ready: Nanos) {
        let frame = Frame { id, page, ready, written: Nanos::ZERO, dirty_from: None, pins: 0, is_referenced: true };
        if place == self.frames.len() {
            self.frames.push(frame);
        } else {
            let old = std::mem::replace(&mut self.frames[place], frame);
            assert!(old.pins == 0 && old.dirty_from.is_none(), "a page that is needed is replaced");
            self.places.remove(&old.id);
        }
        assert!(self.places.insert(id, place).is_none(), "a page is in one frame");
    }

    /// Takes in a page that is on the drive, while a frame is empty.
    pub(super) fn install_if_room(&mut self, id: PageId, page: Arc<Page>, at: Nanos) {
        if self.has_room() {
            self.install(self.frames.len(), id, page, at);
        }
    }

    /// Changes a page that is there, as the record at `lsn` says.
    pub(super) fn change(&mut self, id: PageId, lsn: Lsn, change: impl FnOnce(&mut Page)) {
        let frame = self.frame(id);
        assert!(frame.page.lsn < lsn, "a page is changed in the order of the log");
        let page = Arc::make_mut(&mut frame.page);
        change(page);
        page.lsn = lsn;
        frame.is_referenced = true;
        if frame.dirty_from.is_none() {
            frame.dirty_from = Some(lsn);
            self.dirty.insert((lsn, id));
        }
    }

    /// The page is being written as it is; gives it, and from which record on it was dirty.
    pub(super) fn clean(&mut self, id: PageId) -> (Arc<Page>, Lsn) {
        let frame = self.frame(id);
        let from = frame.dirty_from.take().expect("a page that is written is dirty");
        let page = Arc::clone(&frame.page);
        self.dirty.remove(&(from, id));
        (page, from)
    }

    /// It will be written by then.
    pub(super) fn written(&mut self, id: PageId, done: Nanos) {
        self.frame(id).written = done;
    }

    /// Dirty pages, with the record they are dirty from, the oldest first.
    pub(super) fn dirty(&self) -> impl ExactSizeIterator<Item = (Lsn, PageId)> {
        self.dirty.iter().copied()
    }

    /// Whether a page that is there is not on its way to the drive.
    pub(super) fn is_settled(&self, id: PageId, at: Nanos) -> bool {
        self.frames[self.places[&id]].written <= at
    }

    fn frame(&mut self, id: PageId) -> &mut Frame {
        &mut self.frames[self.places[&id]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(pages: u32) -> BufferPool {
        let mut pool = BufferPool::new(pages as usize);
        for id in 0..pages {
            pool.install(id as usize, PageId(id), Arc::default(), Nanos::ZERO);
        }
        pool
    }

    #[test]
    fn the_hand_spares_what_was_used_since_it_came_by() {
        let mut pool = pool(3);
        assert_eq!(pool.victim(Nanos::ZERO), Victim::Frame(0));
        pool.install(0, PageId(7), Arc::default(), Nanos::ZERO);
        pool.page(PageId(1));
        assert_eq!(pool.victim(Nanos::ZERO), Victim::Frame(2));
        assert!(pool.ready(PageId(0)).is_none() && pool.ready(PageId(1)).is_some());
    }

    #[test]
    fn what_is_pinned_or_under_way_stays() {
        let mut pool = pool(2);
        pool.pin(PageId(0));
        pool.written(PageId(1), Nanos(50));
        assert_eq!(pool.victim(Nanos(10)), Victim::Busy(Nanos(50)));
        assert_eq!(pool.victim(Nanos(50)), Victim::Frame(1));
    }

    #[test]
    fn what_is_dirty_is_written_first() {
        let mut pool = pool(1);
        pool.change(PageId(0), Lsn(9), |_| {});
        pool.change(PageId(0), Lsn(10), |_| {});
        assert_eq!(pool.victim(Nanos(1)), Victim::Dirty(PageId(0)));
        assert_eq!(pool.clean(PageId(0)).1, Lsn(9));
        assert_eq!(pool.dirty().len(), 0);
        assert_eq!(pool.victim(Nanos(1)), Victim::Frame(0));
    }
}
