//! After a cut of the power: analysis, redo, undo (ARIES).
//!
//! ```text
//!   master -> checkpoint                              analysis   from the checkpoint on: who is a loser, which pages may be old
//!        log  ...| horizon ... checkpoint ... end |   redo       from the horizon on: every change that its page does not have
//!                                                     undo       losers, with compensation records
//! ```
//!
//! Pages are read once more to make the index anew, before losers are undone.

use super::engine::{Cause, PageEngine, PageOptions, Phase, Transaction};
use super::entry::{Body, Checkpoint, Trail};
use super::log::Log;
use super::media::{Archive, Media};
use super::page::{Lsn, PageId};
use crate::transactions::Step;
use kvssd_device::Device;
use kvssd_sim::SimError;
use kvssd_transactions::TransactionId;
use kvssd_types::Nanos;

/// What the bytes on a drive stand for: of an engine that is no more.
pub struct Remains {
    archive: Archive,
    log: Log,
}

/// What a recovery did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// When transactions may begin.
    pub done: Nanos,
    /// Bytes of log that were looked at.
    pub log_bytes: u64,
    /// Changes that were made again.
    pub redone: u64,
    /// Transactions that were undone.
    pub losers: u64,
    /// Pages of which the drive had one half of a write.
    pub torn: u64,
}

impl PageEngine {
    /// The engine is no more, and its drive is let go; gives what the bytes on that stand for.
    #[must_use]
    pub fn into_remains(self) -> Remains {
        Remains { archive: self.store.media.into_archive(), log: self.store.log }
    }

    /// The engine on a drive whose power went, with the options that it had.
    ///
    /// # Errors
    /// When the drive fails, or what is on it is nothing that an engine wrote.
    pub fn recover(
        device: Device,
        remains: Remains,
        options: PageOptions,
        at: Nanos,
    ) -> Result<(Self, Recovery), SimError> {
        let mut media = Media::new(device, remains.archive, options.log_bytes)?;
        media.is_recovering = true;
        let (clock, checkpoint_at) = media.read_master(at)?;
        let checkpoint = remains.log.checkpoint_at(checkpoint_at).clone();
        let horizon = checkpoint.horizon(checkpoint_at);
        let (clock, end) = media.read_log(horizon, clock)?;
        let log = remains.log.cut(end);
        assert!(checkpoint_at < log.end(), "the log ends before the checkpoint that the master names");
        media.end_log(log.end());
        let mut recovery = Recovery { log_bytes: log.bytes_from(horizon), ..Recovery::default() };
        let mut engine = PageEngine::over(media, log, options);
        let state = engine.analyse(checkpoint_at, checkpoint);
        let clock = engine.redo(horizon, &state, clock, &mut recovery)?;
        let clock = engine.adopt_pages(state.pages, clock)?;
        let clock = engine.undo_losers(&state, clock)?;
        recovery.losers = state.active.len() as u64;
        engine.store.media.is_recovering = false;
        recovery.torn = engine.store.media.torn;
        recovery.done = engine.checkpoint_waiting(clock)?;
        Ok((engine, recovery))
    }

    /// Who was under way and which pages were dirty at the end of the log.
    fn analyse(&mut self, checkpoint_at: Lsn, mut state: Checkpoint) -> Checkpoint {
        for (lsn, entry) in self.store.log.entries_from(checkpoint_at) {
            let Some(id) = entry.transaction else { continue };
            self.next_transaction = self.next_transaction.max(id.0);
            let undo_next = match &entry.body {
                Body::Change(_) => Some(lsn),
                Body::Compensation(_, undo_next) => *undo_next,
                Body::Commit | Body::End | Body::Checkpoint(_) => {
                    state.active.remove(&id);
                    continue;
                }
            };
            let first = state.active.get(&id).map_or(lsn, |trail| trail.first);
            state.active.insert(id, Trail { first, last: lsn, undo_next });
            let (Body::Change(change) | Body::Compensation(change, _)) = &entry.body else { continue };
            state.dirty.entry(change.page).or_insert(lsn);
            state.pages = state.pages.max(change.page.0 + 1);
        }
        let known = state.active.keys().next_back().map_or(0, |id| id.0);
        self.next_transaction = self.next_transaction.max(known);
        state
    }

    /// Makes every change that its page does not have; gives when that is done.
    fn redo(
        &mut self,
        horizon: Lsn,
        state: &Checkpoint,
        at: Nanos,
        recovery: &mut Recovery,
    ) -> Result<Nanos, SimError> {
        let mut clock = at;
        let entries: Vec<_> = self.store.log.entries_from(horizon).map(|(lsn, _)| lsn).collect();
        for lsn in entries {
            let (Body::Change(change) | Body::Compensation(change, _)) = self.store.log.entry(lsn).body.clone() else {
                continue;
            };
            if state.dirty.get(&change.page).is_none_or(|from| lsn < *from) {
                continue;
            }
            clock = self.store.fetch_waiting(change.page, clock)?;
            if self.store.pool.lsn(change.page) < lsn {
                recovery.redone += 1;
                self.store.pool.change(change.page, lsn, |page| {
                    page.table = Some(change.table);
                    page.set(change.slot, change.after);
                });
            }
        }
        Ok(clock)
    }

    /// Makes the index anew.
    fn adopt_pages(&mut self, pages: u32, at: Nanos) -> Result<Nanos, SimError> {
        let mut clock = at;
        for id in (0..pages).map(PageId) {
            clock = self.store.fetch_waiting(id, clock)?;
            self.heap.adopt(id, self.store.pool.page(id));
        }
        Ok(clock)
    }

    fn undo_losers(&mut self, state: &Checkpoint, at: Nanos) -> Result<Nanos, SimError> {
        let mut clock = at;
        for (id, trail) in state.active.iter().rev() {
            let loser = Transaction::new(Phase::Undoing(Cause::Victim), Some(*trail));
            self.transactions.insert(*id, loser);
            clock = self.undo_waiting(*id, clock)?;
        }
        Ok(clock)
    }

    fn undo_waiting(&mut self, id: TransactionId, at: Nanos) -> Result<Nanos, SimError> {
        let mut clock = at;
        loop {
            self.store.processors.advance(clock);
            match self.undo(id, Cause::Victim, clock)? {
                Step::Again(again) => clock = again,
                Step::Done(done, _) | Step::Aborted(done) => return Ok(done),
                Step::Wait => panic!("undoing waits for no lock"),
            }
        }
    }
}
