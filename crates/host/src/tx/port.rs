//! What transactions need of a drive.

use crate::{Error, Store};
use kvssd_transactions::Record;
use kvssd_types::{BatchChange, Command, IteratorId, IteratorOptions, NamespaceId, Reply, Value};

/// A drive, which nobody else changes. Threads call it at the same time.
pub trait Port: Send + Sync {
    /// The drive as it was at a moment.
    type View: Send;

    /// The value of a record, if it is there.
    ///
    /// # Errors
    /// When the drive fails.
    fn get(&self, record: Record<'_>) -> Result<Option<Value>, Error>;

    /// Makes all changes or none; they are safe when it returns.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Failed`] leave it open whether they are there; after all others they are not.
    fn put(&self, changes: &[BatchChange<'_>]) -> Result<(), Error>;

    /// Makes a view of the drive as it is. No `put` is under way meanwhile.
    ///
    /// # Errors
    /// When the drive has none, or fails.
    fn create_view(&self) -> Result<Self::View, Error>;

    /// The value of a record in a view, if it is there.
    ///
    /// # Errors
    /// When the drive fails, or keeps the view no longer.
    fn get_in_view(&self, view: &Self::View, record: Record<'_>) -> Result<Option<Value>, Error>;

    /// Ends a view.
    fn destroy_view(&self, view: Self::View);
}

/// The first namespace of a store. Its views are iterators, which designs with an ordered index have.
impl Port for Store {
    type View = IteratorId;

    fn get(&self, record: Record<'_>) -> Result<Option<Value>, Error> {
        check(record.namespace)?;
        let command = Command::Retrieve { key: record.key, offset_bytes: 0, length_bytes: u32::MAX };
        Ok(self.ask(command)?.map(|reply| match reply {
            Reply::Retrieved { value, .. } => value,
            other => unreachable!("{other:?} does not answer a retrieve"),
        }))
    }

    fn put(&self, changes: &[BatchChange<'_>]) -> Result<(), Error> {
        self.make(Command::Batch { changes }).map(|_| ())
    }

    fn create_view(&self) -> Result<IteratorId, Error> {
        match self.ask(Command::CreateIterator { options: IteratorOptions::default() })? {
            Some(Reply::IteratorCreated(view)) => Ok(view),
            other => unreachable!("{other:?} does not answer the creation of an iterator"),
        }
    }

    fn get_in_view(&self, view: &IteratorId, record: Record<'_>) -> Result<Option<Value>, Error> {
        check(record.namespace)?;
        match self.ask(Command::Seek { iterator: *view, key: Some(record.key), pairs_max: 1 })? {
            Some(Reply::Pairs(pairs)) => {
                let found = pairs.into_iter().find(|(key, _)| **key == *record.key.bytes());
                Ok(found.and_then(|(_, value)| value))
            }
            other => unreachable!("{other:?} does not answer a seek"),
        }
    }

    fn destroy_view(&self, view: IteratorId) {
        // A drive that has failed has no views either.
        let _ = self.ask(Command::DestroyIterator { iterator: view });
    }
}

/// A store knows of one namespace.
fn check(namespace: NamespaceId) -> Result<(), Error> {
    if namespace == NamespaceId::FIRST {
        Ok(())
    } else {
        Err(Error::InvalidOptions { why: format!("namespace {namespace}: a store has the first alone") })
    }
}
