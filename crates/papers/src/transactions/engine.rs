//! The seam: an engine with transactions, in virtual time.

use kvssd_device::Device;
use kvssd_sim::SimError;
use kvssd_transactions::TransactionId;
use kvssd_types::{Key, NamespaceId, Nanos, Value};

/// A record: a key of a table. A table is a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId<'a> {
    /// The table.
    pub table: NamespaceId,
    /// The key.
    pub key: Key<'a>,
}

/// What a transaction asks for next.
#[derive(Clone, Debug)]
pub enum Request<'a> {
    /// Reads a record; `for_update` when it will be written.
    Read {
        /// The record.
        record: RecordId<'a>,
        /// Locks it as a write does.
        for_update: bool,
    },
    /// Updates or inserts a record.
    Write {
        /// The record.
        record: RecordId<'a>,
        /// Its new value.
        value: Value,
    },
    /// Removes a record.
    Delete {
        /// The record.
        record: RecordId<'a>,
    },
    /// Ends the transaction: all that it wrote is there for good when this is done.
    Commit,
    /// Ends the transaction: nothing that it wrote is there.
    Abort,
}

/// How far a request has come.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It is to be asked again, as it is, at that time: a drive takes commands in the order of their arrival, and something else
    /// may come first.
    Again(Nanos),
    /// It waits for other transactions, and is to be asked again when [`TransactionEngine::woken`] says so.
    Wait,
    /// It is done at that time; of a read, the value, if the record is there.
    Done(Nanos, Option<Value>),
    /// Nothing is left of the transaction at that time: it waited for one that waited for it, or saw what was changed since. It may
    /// be tried again as a new one.
    Aborted(Nanos),
}

/// An engine with transactions. Calls come in the order of their times; each transaction has one request under way at the most.
pub trait TransactionEngine {
    /// Its name in tables.
    fn name(&self) -> &str;

    /// Puts a record into an empty table, outside of any transaction and in any order; gives when it is done.
    ///
    /// # Errors
    /// When the drive is full or fails.
    fn load(&mut self, record: RecordId<'_>, value: Value, at: Nanos) -> Result<Nanos, SimError>;

    /// Nothing more will be loaded; gives when transactions may begin.
    ///
    /// # Errors
    /// When the drive fails.
    fn end_load(&mut self, at: Nanos) -> Result<Nanos, SimError>;

    /// Begins a transaction.
    fn begin(&mut self, at: Nanos) -> TransactionId;

    /// Goes on with the request of a transaction.
    ///
    /// # Errors
    /// When the drive is full or fails.
    fn step(&mut self, transaction: TransactionId, request: &Request<'_>, at: Nanos) -> Result<Step, SimError>;

    /// The transactions whose waiting has ended since this was asked last, and when.
    fn woken(&mut self) -> Vec<(TransactionId, Nanos)>;

    /// When it wants to do work of its own, in the background, if it does.
    fn background_at(&self) -> Option<Nanos> {
        None
    }

    /// Does a bounded step of that.
    ///
    /// # Errors
    /// When the drive is full or fails.
    fn background(&mut self, at: Nanos) -> Result<(), SimError> {
        let _ = at;
        Ok(())
    }

    /// The drive that it lies on.
    fn device(&self) -> &Device;
}
