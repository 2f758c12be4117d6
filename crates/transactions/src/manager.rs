//! The transaction manager: what is asked of it, and what is to be done about it.
//!
//! ```text
//!   shell    begin          access                                          commit             put_done
//!              |            |    ^ Ready, Wait, Aborted        fetched       |    | Put            |
//!              v            v    | or Fetch ---> Get ---------> |            v    v                v
//!   manager  control      private copy > lock > cache          cache        validate,            cache,
//!            block                                                          number               locks released
//! ```
//!
//! It is a state machine without I/O, threads or clocks: a call says what is to be done next, and whoever drives it does that and
//! asks the same again. `Fetch`: get the record from the drive, call [`TransactionManager::fetched`], ask again. `Wait`: ask again
//! when [`TransactionManager::woken`] has named the transaction. `Put`: have the drive make the changes, all or none, and call
//! [`TransactionManager::put_done`].
//!
//! All kinds of isolation go together. What a committing transaction writes is locked until its Put is done, also of an optimistic
//! one; so a transaction with locks never sees the ground move. The moment of a commit's number orders all that conflict.
//!
//! What it does not do: share one Get between transactions that ask for the same record, protect ranges of keys against new ones
//! (phantoms), or log: the drive's Put is atomic and durable.

mod locking;

use self::locking::Locked;
use crate::cache::{Cache, Cached};
use crate::commits::Commits;
use crate::control_block::{ControlBlock, Fetched};
use crate::planted::PlantedBug;
use crate::views::Views;
use crate::{
    AbortReason, Access, AccessStep, CommitStep, Granularity, Isolation, LockManager, PutOutcome, Record, Refusal,
    TransactionCounters, TransactionId, TransactionOptions, TransactionState, Transition, ViewStep,
};
use kvssd_types::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Transactions over one drive.
#[derive(Debug)]
pub struct TransactionManager {
    granularity: Granularity,
    planted: Option<PlantedBug>,
    last_id: u64,
    blocks: BTreeMap<TransactionId, ControlBlock>,
    locks: LockManager,
    cache: Cache,
    commits: Commits,
    views: Views,
    woken: Vec<TransactionId>,
    counters: TransactionCounters,
}

impl TransactionManager {
    /// One over a drive that nobody else changes.
    #[must_use]
    pub fn new(options: &TransactionOptions) -> Self {
        TransactionManager {
            granularity: options.granularity,
            planted: options.planted,
            last_id: 0,
            blocks: BTreeMap::new(),
            locks: LockManager::new(),
            cache: Cache::new(options.cache_bytes),
            commits: Commits::default(),
            views: Views::default(),
            woken: Vec::new(),
            counters: TransactionCounters::default(),
        }
    }

    /// Begins a transaction (TransactionBegin). A snapshot needs a view before its first read: [`TransactionManager::view`].
    pub fn begin(&mut self, isolation: Isolation) -> TransactionId {
        self.last_id += 1;
        let transaction = TransactionId(self.last_id);
        let mut block = ControlBlock { isolation, valid_to: self.commits.last(), ..ControlBlock::default() };
        block.go(Transition::Begin);
        if isolation == Isolation::Optimistic {
            self.commits.observe(transaction);
        }
        self.blocks.insert(transaction, block);
        transaction
    }

    /// Forgets what the cache keeps of the drive: somebody has changed what no transaction is using.
    pub fn forget_records(&mut self) {
        self.cache.clear();
    }

    /// Goes on with an access (TransactionRead, TransactionUpdate, TransactionInsert).
    ///
    /// # Panics
    /// When the transaction is not there, is committed or is committing.
    pub fn access(&mut self, transaction: TransactionId, record: Record<'_>, access: &Access) -> AccessStep {
        let block = match self.active(transaction) {
            Ok(block) => block,
            Err(reason) => return AccessStep::Aborted(reason),
        };
        block.go(Transition::Access);
        let isolation = block.isolation;
        let is_write = !matches!(access, Access::Read | Access::ReadForUpdate);
        if isolation == Isolation::Snapshot && is_write {
            return AccessStep::Refused(Refusal::ReadOnly);
        }
        if isolation == Isolation::TwoPhaseLocking
            && let Some(mode) = self.mode_of(access)
        {
            match self.lock(transaction, self.granularity.lock_of(record), mode) {
                Locked::Granted => {}
                Locked::Waits => return AccessStep::Wait,
                Locked::Aborted(reason) => return AccessStep::Aborted(reason),
            }
        }
        let (value, needs_it) = match access {
            Access::Write(value) => return self.write(transaction, record, Some(value.clone())),
            Access::Delete => return self.write(transaction, record, None),
            Access::Read | Access::ReadForUpdate => (None, None),
            Access::Update(value) => (Some(value), Some(true)),
            Access::Insert(value) => (Some(value), Some(false)),
        };
        // What is new to it must have been there together with all that it has read before.
        if isolation == Isolation::Optimistic
            && self.block(transaction).own(record).is_none()
            && !self.is_valid(transaction)
        {
            self.give_up(transaction, AbortReason::Conflict);
            return AccessStep::Aborted(AbortReason::Conflict);
        }
        let Some(before) = self.look_up(transaction, record) else {
            let as_of = self.commits.as_of(record);
            self.block(transaction).fetches_as_of = as_of;
            return AccessStep::Fetch;
        };
        match needs_it {
            None => AccessStep::Ready(before),
            Some(is_needed) if is_needed == before.is_some() => self.write(transaction, record, value.cloned()),
            Some(true) => AccessStep::Refused(Refusal::NoSuchRecord),
            Some(false) => AccessStep::Refused(Refusal::RecordExists),
        }
    }

    /// The drive has answered a `Fetch`: the value, if the record is there. Of a snapshot, in its view.
    ///
    /// # Panics
    /// When the transaction is not there.
    pub fn fetched(&mut self, transaction: TransactionId, record: Record<'_>, value: Option<Value>) {
        let block = self.block(transaction);
        let (as_of, isolation) = (block.fetches_as_of, block.isolation);
        let Record { namespace, key } = record;
        let cached = Cached { value, as_of };
        block.fetched = Some(Fetched { namespace, key: key.bytes().into(), cached: cached.clone() });
        // What may be older than the last commit is for this transaction alone.
        if isolation != Isolation::Snapshot && !self.commits.changed_since(record, as_of) {
            self.cache.put(record, cached);
        }
    }

    /// Goes on with a commit (TransactionCommit).
    ///
    /// # Panics
    /// When the transaction is not there, is committed or is committing.
    pub fn commit(&mut self, transaction: TransactionId) -> CommitStep {
        let block = match self.active(transaction) {
            Ok(block) => block,
            Err(reason) => return CommitStep::Aborted(reason),
        };
        if block.isolation == Isolation::Optimistic {
            match self.lock_writes(transaction) {
                Locked::Granted => {}
                Locked::Waits => return CommitStep::Wait,
                Locked::Aborted(reason) => return CommitStep::Aborted(reason),
            }
            if !self.is_valid(transaction) {
                self.give_up(transaction, AbortReason::Conflict);
                return CommitStep::Aborted(AbortReason::Conflict);
            }
        }
        if self.block(transaction).writes.is_empty() {
            self.end(transaction, Transition::Commit);
            return CommitStep::Done;
        }
        // Not an instant of a Put may lie in the making of a view.
        if self.views.holds_commits(transaction) {
            return CommitStep::Wait;
        }
        let writes = Arc::new(std::mem::take(&mut self.block(transaction).writes));
        let number = self.commits.enter(writes.clone());
        self.block(transaction).commit = Some(number);
        CommitStep::Put(writes)
    }

    /// The drive has answered a `Put`. Only now others see what was written.
    ///
    /// # Panics
    /// When the transaction has no `Put` under way.
    pub fn put_done(&mut self, transaction: TransactionId, outcome: PutOutcome) -> CommitStep {
        let number = self.block(transaction).commit.take().expect("its Put is under way");
        let writes = self.commits.finish(number);
        if self.commits.under_way() == 0 {
            self.woken.append(&mut self.views.may_be_made());
        }
        match outcome {
            PutOutcome::Done => {
                for (record, value) in writes.iter() {
                    self.cache.put(record, Cached { value: value.clone(), as_of: number });
                }
                self.end(transaction, Transition::Commit);
                return CommitStep::Done;
            }
            PutOutcome::Refused => self.give_up(transaction, AbortReason::Refused),
            PutOutcome::InDoubt => {
                writes.iter().for_each(|(record, _)| self.cache.forget(record));
                self.give_up(transaction, AbortReason::InDoubt);
            }
        }
        CommitStep::Aborted(self.block(transaction).aborted.expect("it was given up"))
    }

    /// Goes on with the view of a snapshot, as of now.
    ///
    /// # Panics
    /// When the transaction is no snapshot that needs one.
    pub fn view(&mut self, transaction: TransactionId) -> ViewStep {
        let is_idle = self.commits.under_way() == 0;
        let block = self.block(transaction);
        assert!(block.isolation == Isolation::Snapshot && block.sees.is_none(), "only a new snapshot needs a view");
        if self.views.holds_snapshot(transaction) {
            ViewStep::Wait
        } else if is_idle {
            self.views.make(transaction);
            ViewStep::Make
        } else {
            self.views.wait(transaction);
            ViewStep::Wait
        }
    }

    /// The drive has made the view that was asked for, or has none to make: then nothing is left of the snapshot.
    ///
    /// # Panics
    /// When none was asked for.
    pub fn viewed(&mut self, transaction: TransactionId, was_made: bool) {
        let last = self.commits.last();
        self.woken.append(&mut self.views.end(transaction));
        if was_made {
            self.block(transaction).sees = Some(last);
        } else {
            self.give_up(transaction, AbortReason::Refused);
        }
    }

    /// Ends a transaction without a trace (TransactionAbort).
    ///
    /// # Panics
    /// When the transaction is not there, is committed, or its Put is under way.
    pub fn abort(&mut self, transaction: TransactionId) {
        let block = self.block(transaction);
        assert!(block.commit.is_none(), "the drive has what transaction {transaction} wrote");
        if block.state != TransactionState::Aborted {
            self.give_up(transaction, AbortReason::Asked);
        }
    }

    /// Forgets a transaction that has ended (TransactionFree).
    ///
    /// # Panics
    /// When it is not there or has not ended.
    pub fn free(&mut self, transaction: TransactionId) {
        let mut block = self.blocks.remove(&transaction).expect("a transaction is freed once");
        block.go(Transition::Free);
    }

    /// Ends a transaction, if it has not ended, and forgets it.
    ///
    /// # Panics
    /// As [`TransactionManager::abort`] does.
    pub fn finish(&mut self, transaction: TransactionId) {
        if self.state(transaction) == TransactionState::Active {
            self.abort(transaction);
        }
        self.free(transaction);
    }

    /// The transactions that may go on with what they waited for, or were ended meanwhile, since this was asked last.
    pub fn woken(&mut self) -> Vec<TransactionId> {
        std::mem::take(&mut self.woken)
    }

    /// Where the transaction is; idle when there is none.
    #[must_use]
    pub fn state(&self, transaction: TransactionId) -> TransactionState {
        self.blocks.get(&transaction).map_or(TransactionState::Idle, |block| block.state)
    }

    /// What it did since it was made.
    #[must_use]
    pub fn counters(&self) -> TransactionCounters {
        TransactionCounters { locks: self.locks.counters(), cache: self.cache.counters(), ..self.counters }
    }

    /// Bytes that the cache takes.
    #[must_use]
    pub fn cache_bytes(&self) -> u64 {
        self.cache.bytes()
    }

    fn block(&mut self, transaction: TransactionId) -> &mut ControlBlock {
        self.blocks.get_mut(&transaction).expect("the transaction was begun and not freed")
    }

    /// The block of a transaction that goes on, or why it does not.
    fn active(&mut self, transaction: TransactionId) -> Result<&mut ControlBlock, AbortReason> {
        let block = self.block(transaction);
        assert!(block.commit.is_none(), "transaction {transaction} has nothing left to do but to commit");
        assert!(block.state != TransactionState::Committed, "transaction {transaction} is committed");
        block.aborted.map_or(Ok(block), Err)
    }

    fn write(&mut self, transaction: TransactionId, record: Record<'_>, value: Option<Value>) -> AccessStep {
        self.block(transaction).writes.insert(record, value);
        AccessStep::Ready(None)
    }

    /// What the transaction is to see of the record, if that is here.
    fn look_up(&mut self, transaction: TransactionId, record: Record<'_>) -> Option<Option<Value>> {
        let block = self.blocks.get_mut(&transaction).expect("it was found before");
        if let Some(own) = block.own(record) {
            return Some(own.clone());
        }
        let sees = match block.isolation {
            Isolation::Snapshot if self.planted == Some(PlantedBug::NewerSnapshot) => u64::MAX,
            Isolation::Snapshot => block.sees.expect("a snapshot has a view before it reads"),
            Isolation::TwoPhaseLocking | Isolation::Optimistic => u64::MAX,
        };
        let found = match block.take_fetched(record) {
            Some(fetched) => fetched,
            None => {
                let cached = self.cache.get(record).filter(|cached| cached.as_of <= sees)?;
                Cached { value: cached.value.clone(), as_of: self.commits.as_of(record) }
            }
        };
        let value = found.value.clone();
        if block.isolation == Isolation::Optimistic {
            block.keep(record, found);
        }
        Some(value)
    }

    /// Whether all that an optimistic transaction has read is so now, and is not about to change.
    fn is_valid(&mut self, transaction: TransactionId) -> bool {
        let block = self.blocks.get_mut(&transaction).expect("it was found before");
        if self.planted != Some(PlantedBug::UncheckedRead) && self.commits.changed_any(&block.reads, block.valid_to) {
            return false;
        }
        block.valid_to = self.commits.last();
        true
    }

    fn give_up(&mut self, transaction: TransactionId, reason: AbortReason) {
        self.block(transaction).aborted = Some(reason);
        match reason {
            AbortReason::Deadlock => self.counters.deadlocks += 1,
            AbortReason::Conflict => self.counters.conflicts += 1,
            AbortReason::Asked | AbortReason::Refused | AbortReason::InDoubt => self.counters.other_aborts += 1,
        }
        self.end(transaction, Transition::Abort);
    }

    /// Ends a transaction: others may go on.
    fn end(&mut self, transaction: TransactionId, how: Transition) {
        let block = self.block(transaction);
        block.go(how);
        block.writes.clear();
        block.reads.clear();
        if how == Transition::Commit {
            self.counters.committed += 1;
        }
        self.commits.forget(transaction);
        let mut ended = self.views.end(transaction);
        self.woken.append(&mut ended);
        self.woken.append(&mut self.locks.release_all(transaction));
    }
}
