//! The host cache with transactions over a key drive, in virtual time (KAML, section III-D).
//!
//! ```text
//!   step    Read, a hit    | processor |                                         Done
//!           Read, a miss   | processor | Retrieve ..................|            Done       Again at each bar
//!           Commit         | processor | Batch .....................| processor  Done
//!              of a volatile drive: | Batch ......| Flush ...........| processor  Done
//! ```
//!
//! A commit is there for good when it is done. A protected drive's Batch is that by itself; behind that of a volatile one comes a
//! Flush, before which nobody else sees what was written. What a drive whose power loss is ignored has is lost anyway.
//!
//! A command is submitted when its moment comes, so that those of all terminals are in order; what it brought is used when it is
//! done, so that nobody sees it earlier.
//!
//! What it does not do: share a Flush among commits; work in the background, or begin snapshots: the seam has no word for them.

use super::costs::{BEGIN_NS, CALL_NS, END_NS, LOCK_NS, WAKE_NS};
use super::engine::{RecordId, Request, Step, TransactionEngine};
use super::processors::Processors;
use crate::stores::costs::{COMMAND_NS, INDEX_NS, KEY_CALL_NS, SYSTEM_CALL_NS, passes};
use kvssd_device::{Completion, Device};
use kvssd_flash::PowerLoss;
use kvssd_sim::SimError;
use kvssd_transactions::{
    Access, AccessStep, CommitStep, Isolation, PutOutcome, Record, TransactionCounters, TransactionId,
    TransactionManager, TransactionOptions, WriteSet,
};
use kvssd_types::{Command, KvError, NamespaceId, Nanos, Reply, StoreCondition, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A key command on its way to the drive.
const KEY_COMMAND_NS: u64 = KEY_CALL_NS + SYSTEM_CALL_NS + COMMAND_NS;

/// How a cached drive works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedDriveOptions {
    /// Of all transactions; no snapshot.
    pub isolation: Isolation,
    /// Cache and locks.
    pub transactions: TransactionOptions,
    /// The room that is given for the answer of a `Retrieve`: the largest value.
    pub value_bytes_max: u32,
}

/// A key drive, and the cache before it.
pub struct CachedDrive {
    device: Device,
    options: CachedDriveOptions,
    manager: TransactionManager,
    processors: Processors,
    stages: BTreeMap<TransactionId, Stage>,
    woken: Vec<(TransactionId, Nanos)>,
}

/// What comes next of a request that is under way.
enum Stage {
    Get,
    Fetched(Option<Value>),
    Put(Arc<WriteSet>),
    /// And not yet there for good.
    Batched,
    Flush,
    PutDone,
}

impl CachedDrive {
    /// The cache is empty.
    ///
    /// # Errors
    /// When transactions are to be snapshots.
    pub fn new(device: Device, options: CachedDriveOptions) -> Result<Self, SimError> {
        if options.isolation == Isolation::Snapshot {
            return Err(SimError::Setup("snapshots write nothing: a workload needs another isolation".to_owned()));
        }
        Ok(CachedDrive {
            device,
            manager: TransactionManager::new(&options.transactions),
            options,
            processors: Processors::new(),
            stages: BTreeMap::new(),
            woken: Vec::new(),
        })
    }

    /// What transactions did so far.
    #[must_use]
    pub fn counters(&self) -> TransactionCounters {
        self.manager.counters()
    }

    /// Time of the host's processors so far.
    #[must_use]
    pub fn cpu(&self) -> Nanos {
        self.processors.busy()
    }

    /// A core works on it, as soon as one is free; gives when it is done.
    fn work(&mut self, at: Nanos, time: Nanos) -> Nanos {
        self.processors.advance(at);
        self.processors.work(at, time)
    }

    /// Has the drive execute a command.
    fn submit(&mut self, table: NamespaceId, command: Command<'_>, at: Nanos) -> Completion {
        self.device.submit_in(table, command, at)
    }

    fn access(
        &mut self,
        transaction: TransactionId,
        record: RecordId<'_>,
        access: &Access,
        at: Nanos,
    ) -> Result<Step, SimError> {
        let named = Record { namespace: record.table, key: record.key };
        let mut cost = CALL_NS + LOCK_NS + INDEX_NS;
        match self.stages.remove(&transaction) {
            None => {}
            Some(Stage::Get) => {
                let (done, value) = self.retrieve(record, at)?;
                self.stages.insert(transaction, Stage::Fetched(value));
                return Ok(Step::Again(done));
            }
            Some(Stage::Fetched(value)) => {
                self.manager.fetched(transaction, named, value);
                cost = INDEX_NS;
            }
            Some(Stage::Put(_) | Stage::Batched | Stage::Flush | Stage::PutDone) => {
                panic!("transaction {transaction} commits, and wants a record")
            }
        }
        let step = self.manager.access(transaction, named, access);
        self.wake(at);
        Ok(match step {
            AccessStep::Ready(read) => {
                let value = match access {
                    Access::Write(written) => Some(written),
                    _ => read.as_ref(),
                };
                let copied = passes(value.map_or(0, Value::len) as u64, 1);
                Step::Done(self.work(at, Nanos(cost) + copied), read)
            }
            AccessStep::Fetch => {
                self.stages.insert(transaction, Stage::Get);
                Step::Again(self.work(at, Nanos(cost + KEY_COMMAND_NS)))
            }
            AccessStep::Wait => Step::Wait,
            AccessStep::Aborted(_) => Step::Aborted(self.end(transaction, at)),
            AccessStep::Refused(refusal) => panic!("what is asked can not be refused as {refusal:?}"),
        })
    }

    fn retrieve(&mut self, record: RecordId<'_>, at: Nanos) -> Result<(Nanos, Option<Value>), SimError> {
        let length_bytes = self.options.value_bytes_max;
        let command = Command::Retrieve { key: record.key, offset_bytes: 0, length_bytes };
        let Completion { done, reply } = self.submit(record.table, command, at);
        match reply {
            Ok(Reply::Retrieved { value, value_bytes }) if value.len() == value_bytes as usize => {
                Ok((done, Some(value)))
            }
            Ok(_) => Err(SimError::WrongAnswers(1)),
            Err(KvError::KeyNotFound) => Ok((done, None)),
            Err(other) => Err(SimError::of_drive(other)),
        }
    }

    fn commit(&mut self, transaction: TransactionId, at: Nanos) -> Result<Step, SimError> {
        let step = match self.stages.remove(&transaction) {
            None => self.manager.commit(transaction),
            Some(Stage::Put(writes)) => {
                let command = Command::Batch { changes: &writes.changes() };
                let done = self.submit(NamespaceId::FIRST, command, at).success().map_err(SimError::of_drive)?;
                let is_volatile = self.device.profile().memory.power_loss == PowerLoss::Volatile;
                self.stages.insert(transaction, if is_volatile { Stage::Batched } else { Stage::PutDone });
                return Ok(Step::Again(done));
            }
            Some(Stage::Batched) => {
                self.stages.insert(transaction, Stage::Flush);
                return Ok(Step::Again(self.work(at, Nanos(KEY_COMMAND_NS))));
            }
            Some(Stage::Flush) => {
                let done = self.submit(NamespaceId::FIRST, Command::Flush, at).success();
                let done = done.map_err(SimError::of_drive)?;
                self.stages.insert(transaction, Stage::PutDone);
                return Ok(Step::Again(done));
            }
            Some(Stage::PutDone) => {
                self.work(at, Nanos(WAKE_NS));
                self.manager.put_done(transaction, PutOutcome::Done)
            }
            Some(Stage::Get | Stage::Fetched(_)) => panic!("transaction {transaction} reads, and wants to commit"),
        };
        self.wake(at);
        Ok(match step {
            CommitStep::Done => Step::Done(self.end(transaction, at), None),
            CommitStep::Aborted(_) => Step::Aborted(self.end(transaction, at)),
            CommitStep::Wait => Step::Wait,
            CommitStep::Put(writes) => {
                let bytes = writes.iter().filter_map(|(_, value)| Some(value.as_ref()?.len() as u64)).sum();
                let locks = match self.options.isolation {
                    Isolation::Optimistic => writes.len() as u64 * LOCK_NS,
                    Isolation::TwoPhaseLocking | Isolation::Snapshot => 0,
                };
                self.stages.insert(transaction, Stage::Put(writes));
                Step::Again(self.work(at, Nanos(CALL_NS + locks + KEY_COMMAND_NS) + passes(bytes, 1)))
            }
        })
    }

    /// Frees a transaction; gives when that is done.
    fn end(&mut self, transaction: TransactionId, at: Nanos) -> Nanos {
        self.manager.finish(transaction);
        self.wake(at);
        self.work(at, Nanos(END_NS))
    }

    fn wake(&mut self, at: Nanos) {
        for transaction in self.manager.woken() {
            let goes_on = self.work(at, Nanos(WAKE_NS));
            self.woken.push((transaction, goes_on));
        }
    }
}

impl TransactionEngine for CachedDrive {
    fn name(&self) -> &str {
        match self.options.isolation {
            Isolation::Optimistic => "key drive, optimistic",
            Isolation::TwoPhaseLocking | Isolation::Snapshot => "key drive, record locks",
        }
    }

    fn load(&mut self, record: RecordId<'_>, value: Value, at: Nanos) -> Result<Nanos, SimError> {
        let command = Command::Store { key: record.key, value, condition: StoreCondition::Always };
        self.submit(record.table, command, at).success().map_err(SimError::of_drive)
    }

    fn end_load(&mut self, at: Nanos) -> Result<Nanos, SimError> {
        self.submit(NamespaceId::FIRST, Command::Flush, at).success().map_err(SimError::of_drive)
    }

    fn begin(&mut self, at: Nanos) -> TransactionId {
        self.work(at, Nanos(BEGIN_NS));
        self.manager.begin(self.options.isolation)
    }

    fn step(&mut self, transaction: TransactionId, request: &Request<'_>, at: Nanos) -> Result<Step, SimError> {
        match request {
            Request::Read { record, for_update: false } => self.access(transaction, *record, &Access::Read, at),
            Request::Read { record, for_update: true } => self.access(transaction, *record, &Access::ReadForUpdate, at),
            Request::Write { record, value } => self.access(transaction, *record, &Access::Write(value.clone()), at),
            Request::Delete { record } => self.access(transaction, *record, &Access::Delete, at),
            Request::Commit => self.commit(transaction, at),
            Request::Abort => Ok(Step::Done(self.end(transaction, at), None)),
        }
    }

    fn woken(&mut self) -> Vec<(TransactionId, Nanos)> {
        std::mem::take(&mut self.woken)
    }

    fn device(&self) -> &Device {
        &self.device
    }
}

#[cfg(test)]
mod tests;
