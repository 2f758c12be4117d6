//! A drive's share of a batch over several partitions.

use super::Drive;
use crate::cached::Whole;
use crate::clocked::Clocked;
use crate::records::{Origin, Records};
use kvssd_ftl::{BatchSequence, CheckReport, Engine};
use kvssd_types::{
    BatchChange, ClientId, Command, Key, KvError, NamespaceId, Nanos, OwnedKey, Reply, RequestId, Value,
};
use std::sync::atomic::Ordering;

impl Drive {
    /// Checks that the drive takes a batch of that size, and that each key occurs once.
    pub(crate) fn check_batch(&mut self, changes: &[BatchChange<'_>]) -> Result<(), KvError> {
        let (caches, whole) = self.parts();
        caches.check_size(&whole, changes)
    }

    /// In the first partition: the number of the next batch over several partitions.
    pub(crate) fn next_batch(&self) -> BatchSequence {
        self.engine().decided().next()
    }

    /// Makes as much of a share as can be undone. If it is refused, nothing is changed. If not, no other command may come until the share is
    /// abandoned, or finished or decided, and ended.
    pub(crate) fn prepare_batch(&mut self, share: &[BatchChange<'_>]) -> Result<(), KvError> {
        let Drive { clocked, large, caches, .. } = self;
        let at = clocked.clock();
        let mut records = Preparing { clocked, prepared: None };
        let mut whole = Whole { large: large.as_mut(), records: &mut records };
        let command = Command::Batch { changes: share };
        caches.execute_as(&mut whole, (Some(SHARE), NamespaceId::FIRST), command, at)?;
        self.share = records.prepared.unwrap_or_default();
        Ok(())
    }

    /// Undoes a prepared share, since another one was refused with the error `why`.
    pub(crate) fn abandon_batch(&mut self, share: &[BatchChange<'_>], why: &KvError) -> Result<(), KvError> {
        self.on_share(|engine, changes, at| engine.abandon_batch(changes, at))?;
        if let Some(large) = &mut self.large {
            large.reload(&mut self.clocked)?;
        }
        let (caches, mut whole) = self.parts();
        caches.taken_back(&mut whole, share, why)
    }

    /// Makes the rest of a prepared share and commits it. It counts once the first partition has decided.
    pub(crate) fn finish_batch(&mut self, sequence: BatchSequence) -> Result<(), KvError> {
        self.on_share(|engine, changes, at| engine.finish_batch(changes, sequence, at))
    }

    /// Decides a batch, together with the share prepared here, if there is one, and commits that.
    pub(crate) fn decide_batch(&mut self, sequence: BatchSequence) -> Result<(), KvError> {
        self.on_share(|engine, changes, at| engine.decide_batch(changes, sequence, at))
    }

    /// Ends a share that was finished here, after its batch was decided.
    pub(crate) fn end_batch(&mut self) -> Result<(), KvError> {
        self.clocked.in_prepared(|engine, at| (at, engine.end_batch(at)))
    }

    /// After a batch counts and all shares are ended: deletes the pairs that could not leave caches before.
    pub(crate) fn leave_behind_batch(&mut self) -> Result<(), KvError> {
        let (caches, mut whole) = self.parts();
        caches.leave_overdue(&mut whole)
    }

    /// Does something with the prepared share that must not wait for other commits: a thread that waits for the commits of one partition knows
    /// nothing of another.
    fn on_share(
        &mut self,
        act: impl FnOnce(&mut Engine, &[BatchChange<'_>], Nanos) -> (Nanos, Result<(), KvError>),
    ) -> Result<(), KvError> {
        let share = std::mem::take(&mut self.share);
        let changes = share.iter().map(PreparedChange::as_change).collect::<Result<Vec<_>, KvError>>()?;
        let held = self.medium_state.holds_commits.swap(false, Ordering::Relaxed);
        let done = self.clocked.in_prepared(|engine, at| act(engine, &changes, at));
        self.medium_state.holds_commits.store(held, Ordering::Relaxed);
        done
    }

    /// Adds to `report` what is wrong with the large values of a drive that was opened read-only.
    pub(crate) fn check_large(mut self, report: &mut CheckReport) {
        if let Some(large) = &self.large {
            large.check(&mut self.clocked, report);
        }
    }

    /// As [`Engine::keep_deleted`](kvssd_ftl::Engine::keep_deleted).
    pub(crate) fn keep_deleted(&mut self, keeps: bool) {
        self.clocked.device.engine.keep_deleted(keeps);
    }

    /// Removes what is left of deleted namespaces, so that their numbers are free.
    pub(crate) fn free_all_numbers(&mut self) -> Result<(), KvError> {
        self.clocked.in_turn(|engine, at| engine.free_all_numbers(at))
    }
}

/// A change of the prepared share as the firmware has it: with stamps and tags.
#[derive(Debug)]
pub(super) struct PreparedChange {
    namespace: NamespaceId,
    key: OwnedKey,
    value: Option<Value>,
}

impl PreparedChange {
    fn of(change: &BatchChange<'_>) -> Self {
        PreparedChange { namespace: change.namespace, key: change.key.bytes().into(), value: change.value.clone() }
    }

    fn as_change(&self) -> Result<BatchChange<'_>, KvError> {
        Ok(BatchChange { namespace: self.namespace, key: Key::new(&self.key)?, value: self.value.clone() })
    }
}

/// Tells the share from batches that make room for it, as when large values are deleted. No host uses this request, and no drive notes it.
const SHARE: RequestId = RequestId { client: ClientId([0; 32]), serial: 0 };

/// Records in which a batch is prepared. What would follow the batch waits: pairs are evicted after it, and the rest is done with a later
/// change.
struct Preparing<'a> {
    clocked: &'a mut Clocked,
    prepared: Option<Vec<PreparedChange>>,
}

impl Records for Preparing<'_> {
    fn engine(&self) -> &Engine {
        self.clocked.engine()
    }

    fn engine_mut(&mut self) -> Option<&mut Engine> {
        self.clocked.engine_mut()
    }

    fn execute_as(&mut self, origin: Origin, command: Command<'_>) -> Result<Reply, KvError> {
        match command {
            _ if self.prepared.is_some() => Err(KvError::InvalidCommand("a batch is not decided yet")),
            Command::Batch { changes } if origin.0 == Some(SHARE) => {
                self.clocked.in_turn(|engine, at| engine.prepare_batch(changes, at))?;
                self.prepared = Some(changes.iter().map(PreparedChange::of).collect());
                Ok(Reply::Batched)
            }
            other => self.clocked.execute_as(origin, other),
        }
    }

    fn keep_beside(&mut self, bytes: u64) {
        if self.prepared.is_none() {
            self.clocked.keep_beside(bytes);
        }
    }
}
