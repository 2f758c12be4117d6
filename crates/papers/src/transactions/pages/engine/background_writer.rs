//! What goes on in the background: dirty pages are written, checkpoints taken, and the log's space given back.
//!
//! ```text
//!   cleaner      pages dirty from an old part of the log, or too many dirty ones
//!                copy -> their log on the drive -> write, side by side -> flush, where the drive asks for it
//!   checkpoint   record -> log on the drive -> master names it -> flush, as above -> log before its horizon is free
//! ```
//!
//! Checkpoints are fuzzy: nothing stops for them, and they write no pages; they say which pages are dirty and who is under way.

use super::{PageEngine, Phase};
use crate::transactions::pages::entry::{Body, Checkpoint, Entry};
use crate::transactions::pages::log::LogWaiter;
use crate::transactions::pages::page::{Lsn, PageId};
use crate::transactions::pages::store::{Copied, Store};
use kvssd_sim::SimError;
use kvssd_types::Nanos;

/// Pages that are written side by side.
const BATCH_PAGES: usize = 32;
/// Pages are written when they are dirty from before the last of so many parts of the log's area.
const OLD_SHARE: u64 = 4;
/// And when more than one page of so many of the pool is dirty.
const DIRTY_SHARE: usize = 2;
/// A checkpoint comes when it gives back one of so many parts of the log's area.
const CHECKPOINT_SHARE: u64 = 8;

/// What is being done.
#[derive(Debug, Default)]
enum Task {
    #[default]
    None,
    /// These are to be written, after their log.
    Write(Vec<Copied>),
    /// They are written.
    Sync,
    /// The checkpoint's record is to be on the drive.
    Log(Lsn),
    /// And the master is written.
    Master(Lsn),
    /// And flushed.
    Reclaim(Lsn),
}

#[derive(Debug, Default)]
pub(super) struct BackgroundWriter {
    task: Task,
    /// When it can go on.
    free_at: Nanos,
    checkpoints: u64,
}

impl BackgroundWriter {
    pub(super) fn checkpoints(&self) -> u64 {
        self.checkpoints
    }
}

impl PageEngine {
    /// When the background_writer wants to go on.
    pub(super) fn keeper_at(&self) -> Option<Nanos> {
        let wants = !matches!(self.background_writer.task, Task::None)
            || self.wants_to_clean()
            || self.wants_checkpoint()
            || self.wants_flush();
        wants.then_some(self.background_writer.free_at.max(self.store.processors.now()))
    }

    /// Does a step.
    pub(super) fn keep(&mut self, at: Nanos) -> Result<(), SimError> {
        self.background_writer.free_at = self.background_writer.free_at.max(at);
        self.store.settle(at);
        match std::mem::take(&mut self.background_writer.task) {
            Task::None if self.wants_to_clean() => {
                let pages = self.oldest(at);
                self.background_writer.task = Task::Write(pages.into_iter().map(|id| self.store.copy(id)).collect());
                self.write_copied(at)
            }
            Task::None if self.wants_checkpoint() => {
                self.begin_checkpoint(at);
                Ok(())
            }
            Task::None if !self.wants_flush() => Ok(()),
            task @ Task::Write(_) => {
                self.background_writer.task = task;
                self.write_copied(at)
            }
            Task::None | Task::Sync => {
                self.background_writer.free_at = self.store.media.flush(at)?;
                Ok(())
            }
            Task::Log(lsn) => self.write_master(lsn, at),
            Task::Master(lsn) if self.store.media.needs_flush() => {
                self.background_writer.free_at = self.store.media.flush(at)?;
                self.background_writer.task = Task::Reclaim(lsn);
                Ok(())
            }
            Task::Master(lsn) | Task::Reclaim(lsn) => {
                self.reclaim(lsn);
                Ok(())
            }
        }
    }

    /// Takes a checkpoint at once, while nothing else goes on; gives when it is there.
    pub(in crate::transactions::pages) fn checkpoint_waiting(&mut self, at: Nanos) -> Result<Nanos, SimError> {
        self.store.processors.advance(at);
        self.begin_checkpoint(at);
        while !matches!(self.background_writer.task, Task::None) {
            let clock = self.background_writer.free_at;
            self.store.processors.advance(clock);
            self.keep(clock)?;
        }
        Ok(self.background_writer.free_at)
    }

    /// The first record of the transactions under way.
    pub(in crate::transactions::pages) fn active_from(&self) -> Lsn {
        let under_way = self.transactions.values().filter(|other| !matches!(other.phase, Phase::Committing(_)));
        let firsts = under_way.filter_map(|other| other.trail).map(|trail| trail.first);
        firsts.min().unwrap_or(self.store.log.end())
    }

    /// Whether the log would be needed from there on for too long.
    fn is_old(&self, from: Lsn) -> bool {
        self.store.log.bytes_from(from) > self.store.media.log_bytes() / OLD_SHARE
    }

    fn wants_to_clean(&self) -> bool {
        let Some((oldest, _)) = self.store.pool.dirty().next() else { return false };
        self.is_old(oldest) || self.store.pool.dirty().len() > self.store.pool.pages_max() / DIRTY_SHARE
    }

    /// Whether pages were written long ago, for their frames, and not flushed since.
    fn wants_flush(&self) -> bool {
        self.store.media.needs_flush() && self.store.soft_from().is_some_and(|from| self.is_old(from))
    }

    /// Whether a checkpoint gives much space of the log back; or any, when requests wait for it.
    fn wants_checkpoint(&self) -> bool {
        let horizon = self.active_from().min(self.store.dirty_from());
        let gain = horizon.0 - self.store.log.start().0;
        gain > self.store.media.log_bytes() / CHECKPOINT_SHARE || gain > 0 && !self.store.log.has_room()
    }

    fn begin_checkpoint(&mut self, at: Nanos) {
        let under_way =
            self.transactions.iter().filter(|(_, transaction)| !matches!(transaction.phase, Phase::Committing(_)));
        let active = under_way.filter_map(|(id, transaction)| Some((*id, transaction.trail?))).collect();
        let checkpoint = Checkpoint { active, dirty: self.store.dirty(at), pages: self.heap.pages() };
        let entry = Entry { transaction: None, previous: None, body: Body::Checkpoint(checkpoint) };
        let (lsn, done) = self.store.log.append(entry, at, &mut self.store.processors);
        self.background_writer.task = Task::Log(lsn);
        self.background_writer.free_at = done;
    }

    fn write_master(&mut self, lsn: Lsn, at: Nanos) -> Result<(), SimError> {
        let Store { log, media, processors, .. } = &mut self.store;
        self.background_writer.task = match log.harden(LogWaiter::Checkpoint, lsn, at, media, processors)? {
            Some(again) => {
                self.background_writer.free_at = again;
                Task::Log(lsn)
            }
            None => {
                self.background_writer.free_at = self.store.media.write_master(lsn, at)?;
                Task::Master(lsn)
            }
        };
        Ok(())
    }

    fn reclaim(&mut self, lsn: Lsn) {
        let horizon = self.store.log.checkpoint_at(lsn).horizon(lsn);
        self.store.log.reclaim(horizon, &mut self.store.media);
        self.background_writer.checkpoints += 1;
    }

    /// The pages that are dirty for the longest time and not on their way already.
    fn oldest(&self, at: Nanos) -> Vec<PageId> {
        let pages_max = (self.store.pool.pages_max() / 4).clamp(1, BATCH_PAGES);
        let pages = self.store.pool.dirty().map(|(_, id)| id);
        pages.filter(|id| self.store.pool.is_settled(*id, at)).take(pages_max).collect()
    }

    /// Writes the pages that were copied once their log is on the drive.
    fn write_copied(&mut self, at: Nanos) -> Result<(), SimError> {
        let Task::Write(pages) = std::mem::take(&mut self.background_writer.task) else { return Ok(()) };
        if let Some(again) = self.store.harden(&pages, at)? {
            self.background_writer.free_at = again;
            self.background_writer.task = Task::Write(pages);
            return Ok(());
        }
        // Pages that are all on their way are looked at again soon.
        let mut done = at + Nanos(1000);
        for copied in &pages {
            done = done.max(self.store.write(copied, at)?);
        }
        self.background_writer.free_at = done;
        if self.store.media.needs_flush() {
            self.background_writer.task = Task::Sync;
        }
        Ok(())
    }
}
