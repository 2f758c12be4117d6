//! Transactions over a store, with a cache: for threads (KAML, section III-D).
//!
//! ```text
//!   threads        begin, read, update, insert, delete, commit, abort
//!                    |  one at a time, for as long as it takes to look something up      | waits: each thread for its own bell
//!   manager        kvssd_transactions: control blocks, locks, cache
//!                    |  many at a time
//!   Port           get, put (all or none)
//! ```
//!
//! ```
//! use kvssd_host::tx::{Isolation, TransactionOptions, Transactions};
//! use kvssd_host::{Options, Store};
//! use kvssd_types::NamespaceId;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("drive.kv");
//! let transactions = Transactions::new(Store::open(&path, Options::default())?, &TransactionOptions::default());
//! let accounts = NamespaceId::FIRST;
//! let mut transfer = transactions.begin(Isolation::TwoPhaseLocking)?;
//! transfer.insert(accounts, b"alice", b"70")?;
//! transfer.insert(accounts, b"bob", b"30")?;
//! assert_eq!(transfer.read(accounts, b"bob")?.as_deref(), Some(&b"30"[..]));      // it reads what it writes
//! transfer.commit()?;                                                           // both are there for good, or none
//! # Ok(())
//! # }
//! ```
//!
//! A transaction that is dropped is aborted. One thread must not wait within a transaction for another one of its own.
//!
//! Not supported: retrying an aborted transaction, and changes by anybody else to pairs that transactions use, not even between these: the cache
//! keeps what was read, unless [`TransactionOptions::cache_bytes`] is 0. A namespace may be deleted while no transaction uses it.

mod error;
mod port;

pub use error::TransactionError;
pub use kvssd_transactions::{
    AbortReason, Granularity, Isolation, Record, Refusal, TransactionCounters, TransactionOptions,
};
pub use port::Port;

use crate::Error;
use kvssd_flash::Owner;
use kvssd_runtime::sync::{Arc, Condvar, Mutex, MutexGuard};
use kvssd_transactions::{
    Access, AccessStep, CommitStep, PutOutcome, TransactionId, TransactionManager, TransactionState, ViewStep, WriteSet,
};
use kvssd_types::{Key, NamespaceId, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a transaction that waits asks whether it is still wanted.
const ASKS_EVERY: Duration = Duration::from_millis(50);

const PANICKED: &str = "a thread has panicked within the transaction manager";

/// Transactions over one drive. It can be shared: every call takes `&self`, from any thread, of the process that made it.
pub struct Transactions<P: Port> {
    owner: Owner,
    port: P,
    state: Mutex<State>,
}

/// The state that threads use in turns.
struct State {
    manager: TransactionManager,
    /// The transactions that wait; a woken one is removed.
    waiting: BTreeMap<TransactionId, Arc<Condvar>>,
    /// Namespaces that were deleted before the cache had what it has.
    namespaces_ended: u64,
}

/// A transaction that is in progress.
pub struct Transaction<'a, P: Port> {
    transactions: &'a Transactions<P>,
    id: TransactionId,
    bell: Arc<Condvar>,
    view: Option<P::View>,
    is_putting: bool,
    /// Asks whether it shall stop waiting.
    is_unwanted: Option<fn() -> bool>,
}

impl<P: Port> Transactions<P> {
    /// Transactions over `port`, with an empty cache.
    #[must_use]
    pub fn new(port: P, options: &TransactionOptions) -> Self {
        let manager = TransactionManager::new(options);
        let namespaces_ended = port.namespaces_ended();
        let state = State { manager, waiting: BTreeMap::new(), namespaces_ended };
        Transactions { owner: Owner::here(), port, state: Mutex::new(state) }
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// For a snapshot: if the drive has no views, or fails.
    pub fn begin(&self, isolation: Isolation) -> Result<Transaction<'_, P>, TransactionError> {
        self.begin_with(isolation, None)
    }

    /// As [`Transactions::begin`]. While the transaction waits for others, it calls `is_unwanted` now and then, and is aborted if that returns
    /// true: a signal may have come. Meanwhile it holds nothing but its locks.
    ///
    /// # Errors
    /// As [`Transactions::begin`]; and [`TransactionError::Aborted`].
    pub fn begin_unless(
        &self,
        isolation: Isolation,
        is_unwanted: fn() -> bool,
    ) -> Result<Transaction<'_, P>, TransactionError> {
        self.begin_with(isolation, Some(is_unwanted))
    }

    fn begin_with(
        &self,
        isolation: Isolation,
        is_unwanted: Option<fn() -> bool>,
    ) -> Result<Transaction<'_, P>, TransactionError> {
        self.check_owner()?;
        let id = self.lock().begin(isolation, self.port.namespaces_ended());
        let mut transaction =
            Transaction { transactions: self, id, bell: Arc::default(), view: None, is_putting: false, is_unwanted };
        if isolation == Isolation::Snapshot {
            transaction.make_view()?;
        }
        Ok(transaction)
    }

    /// What transactions did so far.
    #[must_use]
    pub fn counters(&self) -> TransactionCounters {
        self.lock().manager.counters()
    }

    /// The drive.
    pub fn port(&self) -> &P {
        &self.port
    }

    /// The drive, when no transaction uses it any more.
    pub fn into_port(self) -> P {
        self.port
    }

    /// A forked child may have inherited the lock while another thread held it.
    fn check_owner(&self) -> Result<(), Error> {
        if self.owner.is_here() { Ok(()) } else { Err(Error::Forked { process: self.owner.process() }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(PANICKED)
    }
}

impl State {
    /// Begins a transaction, which sees nothing of namespaces that were deleted.
    fn begin(&mut self, isolation: Isolation, namespaces_ended: u64) -> TransactionId {
        if self.namespaces_ended < namespaces_ended {
            self.namespaces_ended = namespaces_ended;
            self.manager.forget_records();
        }
        self.manager.begin(isolation)
    }

    /// Wakes the transactions that may go on.
    fn wake(&mut self) {
        for woken in self.manager.woken() {
            if let Some(bell) = self.waiting.remove(&woken) {
                bell.notify_one();
            }
        }
    }
}

impl<P: Port> Transaction<'_, P> {
    /// The value of a record, if it is there.
    ///
    /// # Errors
    /// [`TransactionError::Aborted`], and what the drive answers.
    pub fn read(&mut self, namespace: NamespaceId, key: &[u8]) -> Result<Option<Vec<u8>>, TransactionError> {
        Ok(self.access(namespace, key, &Access::Read)?.map(|value| value.to_vec()))
    }

    /// Like [`Transaction::read`], for a record that will be written: if two transactions both read it first, they deadlock.
    ///
    /// # Errors
    /// As [`Transaction::read`].
    pub fn read_for_update(&mut self, namespace: NamespaceId, key: &[u8]) -> Result<Option<Vec<u8>>, TransactionError> {
        Ok(self.access(namespace, key, &Access::ReadForUpdate)?.map(|value| value.to_vec()))
    }

    /// Gives a record that is there a new value.
    ///
    /// # Errors
    /// [`Refusal::NoSuchRecord`], and as [`Transaction::read`].
    pub fn update(&mut self, namespace: NamespaceId, key: &[u8], value: &[u8]) -> Result<(), TransactionError> {
        self.access(namespace, key, &Access::Update(value.into())).map(|_| ())
    }

    /// Gives a record that is not there a value.
    ///
    /// # Errors
    /// [`Refusal::RecordExists`], and as [`Transaction::read`].
    pub fn insert(&mut self, namespace: NamespaceId, key: &[u8], value: &[u8]) -> Result<(), TransactionError> {
        self.access(namespace, key, &Access::Insert(value.into())).map(|_| ())
    }

    /// Gives a record a value, whether or not it is there.
    ///
    /// # Errors
    /// As [`Transaction::read`].
    pub fn write(&mut self, namespace: NamespaceId, key: &[u8], value: &[u8]) -> Result<(), TransactionError> {
        self.access(namespace, key, &Access::Write(value.into())).map(|_| ())
    }

    /// Removes a record, if it is there.
    ///
    /// # Errors
    /// As [`Transaction::read`].
    pub fn delete(&mut self, namespace: NamespaceId, key: &[u8]) -> Result<(), TransactionError> {
        self.access(namespace, key, &Access::Delete).map(|_| ())
    }

    /// Ends the transaction: all that it wrote is then durable on the drive.
    ///
    /// # Errors
    /// [`TransactionError::Aborted`] and [`TransactionError::Drive`]: nothing is. [`TransactionError::InDoubt`]: all or nothing is.
    pub fn commit(mut self) -> Result<(), TransactionError> {
        self.transactions.check_owner()?;
        let mut state = self.transactions.lock();
        let mut failure = None;
        let mut step = state.manager.commit(self.id);
        loop {
            state.wake();
            match step {
                CommitStep::Done => return Ok(()),
                CommitStep::Aborted(reason) => return Err(TransactionError::of_abort(reason, failure)),
                CommitStep::Wait => {
                    state = self.wait(state);
                    step = state.manager.commit(self.id);
                }
                CommitStep::Put(writes) => {
                    drop(state);
                    let outcome = self.put(&writes, &mut failure);
                    state = self.transactions.lock();
                    step = state.manager.put_done(self.id, outcome);
                    self.is_putting = false;
                }
            }
        }
    }

    /// Ends the transaction without a trace, as dropping it does.
    pub fn abort(self) {}

    fn access(
        &mut self,
        namespace: NamespaceId,
        key: &[u8],
        access: &Access,
    ) -> Result<Option<Value>, TransactionError> {
        self.transactions.check_owner()?;
        let record = Record { namespace, key: Key::new(key).map_err(Error::from)? };
        let mut state = self.transactions.lock();
        loop {
            let step = state.manager.access(self.id, record, access);
            state.wake();
            match step {
                AccessStep::Ready(value) => return Ok(value),
                AccessStep::Refused(refusal) => return Err(TransactionError::Refused(refusal)),
                AccessStep::Aborted(reason) => return Err(TransactionError::Aborted(reason)),
                AccessStep::Wait => state = self.wait(state),
                AccessStep::Fetch => {
                    drop(state);
                    let value = self.get(record)?;
                    state = self.transactions.lock();
                    state.manager.fetched(self.id, record, value);
                }
            }
        }
    }

    fn make_view(&mut self) -> Result<(), TransactionError> {
        let mut state = self.transactions.lock();
        while state.manager.view(self.id) == ViewStep::Wait {
            state = self.wait(state);
            if state.manager.state(self.id) == TransactionState::Aborted {
                return Err(TransactionError::Aborted(AbortReason::Asked));
            }
        }
        drop(state);
        let made = self.transactions.port.create_view();
        let mut state = self.transactions.lock();
        state.manager.viewed(self.id, made.is_ok());
        state.wake();
        self.view = Some(made?);
        Ok(())
    }

    fn get(&self, record: Record<'_>) -> Result<Option<Value>, Error> {
        let port = &self.transactions.port;
        self.view.as_ref().map_or_else(|| port.get(record), |view| port.get_in_view(view, record))
    }

    fn put(&mut self, writes: &WriteSet, failure: &mut Option<Error>) -> PutOutcome {
        self.is_putting = true;
        let put = self.transactions.port.put(&writes.changes());
        let outcome = match put {
            Ok(()) => PutOutcome::Done,
            Err(Error::Io { .. } | Error::Failed { .. } | Error::InDoubt { .. }) => PutOutcome::InDoubt,
            Err(_) => PutOutcome::Refused,
        };
        *failure = put.err();
        outcome
    }

    /// Waits until it is woken, or is to be aborted. It cannot have been woken before: the lock was held since it was told to wait.
    fn wait<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        state.waiting.insert(self.id, self.bell.clone());
        while state.waiting.contains_key(&self.id) {
            let Some(is_unwanted) = self.is_unwanted else {
                state = self.bell.wait(state).expect(PANICKED);
                continue;
            };
            let (held, waited) = self.bell.wait_timeout(state, ASKS_EVERY).expect(PANICKED);
            state = held;
            if !waited.timed_out() {
                continue;
            }
            // Other threads go on meanwhile: the function that answers may need what one of them has.
            drop(state);
            let is_to_end = is_unwanted();
            state = self.transactions.lock();
            if is_to_end && state.waiting.remove(&self.id).is_some() {
                state.manager.abort(self.id);
                state.wake();
            }
        }
        state
    }
}

impl<P: Port> Drop for Transaction<'_, P> {
    fn drop(&mut self) {
        // In a forked child, the transaction is the parent's.
        if self.transactions.check_owner().is_err() {
            return;
        }
        // After a panic in the manager nothing can be put in order.
        let Ok(mut state) = self.transactions.state.lock() else { return };
        if self.is_putting {
            state.manager.put_done(self.id, PutOutcome::InDoubt);
        }
        state.manager.finish(self.id);
        state.wake();
        drop(state);
        if let Some(view) = self.view.take() {
            self.transactions.port.destroy_view(view);
        }
    }
}
