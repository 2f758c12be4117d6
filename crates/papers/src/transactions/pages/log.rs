//! The write-ahead log: one buffer for all, one flush at a time (ARIES: Mohan et al., TODS 1992; its bottleneck: KAML, section V-D).
//!
//! ```text
//!   all log   ....| reclaimed | needed by recovery | on the drive | being written | in the buffer |
//!                             start                          durable            upto             end
//!   area      block n of all log lies in block n mod blocks of the area
//! ```
//!
//! Who needs a record to be durable asks for it again and again ([`Log::harden`]). The first who finds no flush under way makes
//! one: it calls the file system, and what is in the buffer when the call comes to the drive is written, and then flushed where the
//! drive's write cache is volatile. All that ask meanwhile are served by this flush or the next: group commit.
//!
//! The last block of a flush is written again with what comes behind it, as a file's is.

use super::costs;
use super::entry::{Body, Checkpoint, Entry};
use super::media::{BLOCK_BYTES, Media};
use super::page::Lsn;
use crate::transactions::processors::Processors;
use kvssd_flash::timing::Calendar;
use kvssd_sim::SimError;
use kvssd_types::Nanos;
use std::collections::BTreeMap;

/// The part of the area that requests may fill. Undoing takes no more than was done, so the rest is enough for the undoing of all
/// that is under way.
const REQUEST_SHARE: u64 = 2;

/// A flush of the log.
#[derive(Clone, Copy, Debug)]
enum Flush {
    Idle,
    /// Its call comes to the drive then.
    Called(Nanos),
    /// The drive has the log up to there by then.
    Written(Lsn, Nanos),
    /// And no cut of the power takes it back from then on.
    Flushed(Lsn, Nanos),
}

/// Who waits for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogWaiter {
    /// A commit, for its record.
    Commit,
    /// A page that is to be written, for the records of what is in it.
    Page,
    /// A checkpoint, for its record.
    Checkpoint,
}

pub(super) struct Log {
    entries: BTreeMap<Lsn, Entry>,
    start: Lsn,
    durable: Lsn,
    end: Lsn,
    area_bytes: u64,
    flush: Flush,
    /// The lock of the buffer.
    buffer: Calendar,
    /// Flushes that were made.
    pub(super) flushes: u64,
    /// Who does not wait: a bug that tests plant, to see that they find it.
    pub(super) planted: Option<LogWaiter>,
}

impl Log {
    /// One that nothing was written to.
    pub(super) fn new(media: &Media) -> Self {
        // A block in, so that no record begins at zero.
        let start = Lsn(BLOCK_BYTES);
        Log {
            entries: BTreeMap::new(),
            start,
            durable: start,
            end: start,
            area_bytes: media.log_bytes(),
            flush: Flush::Idle,
            buffer: Calendar::default(),
            flushes: 0,
            planted: None,
        }
    }

    /// What is left of one whose power went: the records that are whole before `end`.
    pub(super) fn cut(mut self, end: Lsn) -> Self {
        let torn = self.entries.iter().rev().map_while(|(lsn, entry)| (lsn.0 + entry.bytes() > end.0).then_some(*lsn));
        if let Some(first) = torn.last() {
            self.entries.split_off(&first);
            self.end = first;
        }
        self.durable = self.end;
        self.flush = Flush::Idle;
        self.buffer = Calendar::default();
        self
    }

    /// Where the next record begins.
    pub(super) fn end(&self) -> Lsn {
        self.end
    }

    /// The first record that is kept.
    pub(super) fn start(&self) -> Lsn {
        self.start
    }

    /// The record at a place.
    ///
    /// # Panics
    /// When none begins there: recovery needs one that is gone.
    pub(super) fn entry(&self, lsn: Lsn) -> &Entry {
        self.entries.get(&lsn).expect("a record that is needed is in the log")
    }

    /// The records from a place on.
    pub(super) fn entries_from(&self, lsn: Lsn) -> impl Iterator<Item = (Lsn, &Entry)> {
        assert!(self.start <= lsn, "records that are needed were reclaimed");
        self.entries.range(lsn..).map(|(lsn, entry)| (*lsn, entry))
    }

    /// Bytes from `lsn` on.
    pub(super) fn bytes_from(&self, lsn: Lsn) -> u64 {
        self.end.0 - lsn.0
    }

    /// Bytes that requests may fill.
    pub(super) fn request_bytes_max(&self) -> u64 {
        self.area_bytes / REQUEST_SHARE
    }

    /// Whether a request may still put records into it.
    pub(super) fn has_room(&self) -> bool {
        self.bytes_from(self.start) <= self.request_bytes_max()
    }

    /// Appends a record that a thread has made at `at`; gives where it is and when it is in the buffer.
    ///
    /// # Panics
    /// When the area is full: too small for what is under way at once.
    pub(super) fn append(&mut self, entry: Entry, at: Nanos, cores: &mut Processors) -> (Lsn, Nanos) {
        let bytes = entry.bytes();
        let lsn = self.end;
        self.end = Lsn(lsn.0 + bytes);
        assert!(self.bytes_from(self.start) + 2 * BLOCK_BYTES <= self.area_bytes, "the log is full");
        self.entries.insert(lsn, entry);
        let cost = costs::log_insert(bytes);
        self.buffer.advance(cores.now());
        let worked = cores.work(at, cost);
        (lsn, self.buffer.take(worked - cost, cost) + cost)
    }

    /// Sees to it that a record is on the drive for good: none when it is, or when to ask again.
    pub(super) fn harden(
        &mut self,
        waiter: LogWaiter,
        lsn: Lsn,
        at: Nanos,
        media: &mut Media,
        cores: &mut Processors,
    ) -> Result<Option<Nanos>, SimError> {
        if self.planted == Some(waiter) {
            return Ok(None);
        }
        loop {
            match self.flush {
                Flush::Called(then) | Flush::Written(_, then) | Flush::Flushed(_, then) if then > at => {
                    return Ok((self.durable <= lsn).then_some(then));
                }
                Flush::Idle if self.durable > lsn => return Ok(None),
                Flush::Idle => {
                    let cost = costs::log_flush(self.bytes_from(self.durable));
                    self.flush = Flush::Called(cores.work(at, cost));
                }
                Flush::Called(_) => {
                    self.flushes += 1;
                    self.flush = Flush::Written(self.end, media.write_log(self.durable..self.end, at)?);
                }
                Flush::Written(upto, _) if media.needs_flush() => self.flush = Flush::Flushed(upto, media.flush(at)?),
                Flush::Written(upto, _) | Flush::Flushed(upto, _) => {
                    self.durable = upto;
                    self.flush = Flush::Idle;
                }
            }
        }
    }

    /// A page whose last change is at `lsn` is being written.
    ///
    /// # Panics
    /// When that may come to the drive before the log does.
    pub(super) fn assert_before(&self, lsn: Lsn) {
        assert!(lsn < self.durable || self.planted == Some(LogWaiter::Page), "a page is written after its log");
    }

    /// Gives the space of records before `horizon` back.
    pub(super) fn reclaim(&mut self, horizon: Lsn, media: &mut Media) {
        assert!(self.start <= horizon && horizon <= self.durable, "records that are needed are reclaimed");
        self.start = horizon;
        self.entries = self.entries.split_off(&horizon);
        media.forget_log(horizon);
    }

    /// The checkpoint at a place.
    pub(super) fn checkpoint_at(&self, lsn: Lsn) -> &Checkpoint {
        match &self.entry(lsn).body {
            Body::Checkpoint(checkpoint) => checkpoint,
            other => panic!("the master names a record that is no checkpoint: {other:?}"),
        }
    }
}
