//! Pages between the buffer pool and the drive: read when they are asked for, written after their log.

use super::costs;
use super::log::{Log, LogWaiter};
use super::media::Media;
use super::page::{Lsn, Page, PageId};
use super::pool::{BufferPool, Victim};
use crate::transactions::processors::Processors;
use kvssd_sim::SimError;
use kvssd_types::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who waits for a frame that nobody knows the end of looks again after this. An estimate.
const LOOK_AGAIN_NS: u64 = 50_000;

/// How far a transaction has come with a page that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ticket {
    /// It has called for the page.
    is_called: bool,
    /// The page that it had read, which stays until it was looked at.
    pinned: Option<PageId>,
}

/// A write of a page that a cut of the power may take back.
#[derive(Clone, Copy, Debug)]
struct SoftWrite {
    page: PageId,
    /// From where on the drive may not have what was done to it.
    from: Lsn,
    /// When the drive has it; at the end of time while it is not sent.
    done: Nanos,
}

/// A page as it was when it was taken to be written.
#[derive(Clone, Debug)]
pub(super) struct Copied {
    pub(super) id: PageId,
    page: Arc<Page>,
    from: Lsn,
}

/// Pool, log and drive.
pub(super) struct Store {
    pub(super) media: Media,
    pub(super) log: Log,
    pub(super) pool: BufferPool,
    pub(super) processors: Processors,
    soft: Vec<SoftWrite>,
    /// Pages that were written because a frame was needed.
    pub(super) evictions: u64,
}

impl Store {
    pub(super) fn new(media: Media, log: Log, pool_pages: usize) -> Self {
        let (pool, processors) = (BufferPool::new(pool_pages), Processors::new());
        Store { media, log, pool, processors, soft: Vec::new(), evictions: 0 }
    }

    /// Sees to it that a page is in the pool: none when it is, or when to ask again.
    pub(super) fn fetch(&mut self, id: PageId, ticket: &mut Ticket, at: Nanos) -> Result<Option<Nanos>, SimError> {
        if let Some(ready) = self.pool.ready(id) {
            if ready > at {
                return Ok(Some(ready));
            }
            self.give_up(ticket);
            return Ok(None);
        }
        let is_written = self.media.is_written(id);
        if is_written && !ticket.is_called {
            ticket.is_called = true;
            return Ok(Some(self.processors.work(at, costs::page_call())));
        }
        match self.pool.victim(at) {
            Victim::Frame(place) if is_written => {
                let (ready, page) = self.media.read_page(id, at)?;
                self.pool.install(place, id, page, ready);
                self.pool.pin(id);
                if let Some(other) = ticket.pinned.replace(id) {
                    self.pool.unpin(other);
                }
                Ok(Some(ready))
            }
            Victim::Frame(place) => {
                self.pool.install(place, id, Arc::default(), at);
                Ok(None)
            }
            Victim::Dirty(victim) => Ok(Some(self.evict(victim, at)?)),
            Victim::Busy(until) => Ok(Some(until.min(at + Nanos(LOOK_AGAIN_NS)))),
        }
    }

    /// Who waits for something else keeps no page.
    pub(super) fn give_up(&mut self, ticket: &mut Ticket) {
        if let Some(pinned) = std::mem::take(ticket).pinned {
            self.pool.unpin(pinned);
        }
    }

    /// As [`Store::fetch`], waiting; gives when the page is there. For times when nothing else goes on.
    pub(super) fn fetch_waiting(&mut self, id: PageId, at: Nanos) -> Result<Nanos, SimError> {
        let (mut clock, mut ticket) = (at, Ticket::default());
        while let Some(again) = self.fetch(id, &mut ticket, clock)? {
            clock = again;
            self.processors.advance(clock);
        }
        Ok(clock)
    }

    /// Takes a page that is to be written out of the dirty ones; it stays in its frame until it is written.
    pub(super) fn copy(&mut self, id: PageId) -> Copied {
        let (page, from) = self.pool.clean(id);
        self.pool.written(id, Nanos::MAX);
        self.soft.push(SoftWrite { page: id, from, done: Nanos::MAX });
        Copied { id, page, from }
    }

    /// Sees to it that the log of pages is on the drive: none when it is, or when to ask again.
    pub(super) fn harden(&mut self, pages: &[Copied], at: Nanos) -> Result<Option<Nanos>, SimError> {
        let lsn = pages.iter().map(|copied| copied.page.lsn).max().unwrap_or_default();
        self.log.harden(LogWaiter::Page, lsn, at, &mut self.media, &mut self.processors)
    }

    /// Writes a page, whose log is on the drive; gives when the drive has it.
    pub(super) fn write(&mut self, copied: &Copied, at: Nanos) -> Result<Nanos, SimError> {
        self.log.assert_before(copied.page.lsn);
        let done = self.media.write_page(copied.id, &copied.page, at)?;
        self.processors.work(at, costs::page_call());
        self.pool.written(copied.id, done);
        let is_it = |soft: &&mut SoftWrite| (soft.page, soft.from) == (copied.id, copied.from);
        self.soft.iter_mut().find(is_it).expect("it was noted when it was copied").done = done;
        Ok(done)
    }

    /// Pages that may lie on the drive without what was done from there on.
    pub(super) fn dirty(&mut self, at: Nanos) -> BTreeMap<PageId, Lsn> {
        self.settle(at);
        // The writes of a page are older than what was done since, and the first is the oldest.
        let soft = self.soft.iter().rev().map(|write| (write.page, write.from));
        self.pool.dirty().map(|(from, id)| (id, from)).chain(soft).collect()
    }

    /// The first record that is not in all pages on the drive, as far as is known.
    pub(super) fn dirty_from(&self) -> Lsn {
        let dirty = self.pool.dirty().next().map(|(from, _)| from);
        self.soft_from().into_iter().chain(dirty).min().unwrap_or(self.log.end())
    }

    /// The first record that is only in pages of which a cut of the power takes the writes back, if it is known to be.
    pub(super) fn soft_from(&self) -> Option<Lsn> {
        self.soft.iter().map(|write| write.from).min()
    }

    /// Drops the writes that no cut of the power takes back any more.
    pub(super) fn settle(&mut self, at: Nanos) {
        let hard_until = self.media.hard_until(at);
        self.soft.retain(|write| write.done > hard_until);
    }

    /// Writes a dirty page, or has its log written first; gives when to look for a frame again.
    fn evict(&mut self, id: PageId, at: Nanos) -> Result<Nanos, SimError> {
        let lsn = self.pool.lsn(id);
        if let Some(again) = self.log.harden(LogWaiter::Page, lsn, at, &mut self.media, &mut self.processors)? {
            return Ok(again);
        }
        let copied = self.copy(id);
        self.evictions += 1;
        self.write(&copied, at)
    }
}
