//! What transactions need of a drive.

use crate::{Error, Namespace, Store};
use kvssd_transactions::Record;
use kvssd_types::{BatchChange, Command, IteratorId, NamespaceId, Reply, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// [`Error::Io`], [`Error::Failed`] and [`Error::InDoubt`] leave open whether the changes were made; after all other errors they were not.
    fn put(&self, changes: &[BatchChange<'_>]) -> Result<(), Error>;

    /// Makes a view of the drive as it is. No `put` is under way meanwhile.
    ///
    /// # Errors
    /// If the drive has no views, or fails.
    fn create_view(&self) -> Result<Self::View, Error>;

    /// The value of a record in a view, if it is there.
    ///
    /// # Errors
    /// If the drive fails, or has given up the view.
    fn get_in_view(&self, view: &Self::View, record: Record<'_>) -> Result<Option<Value>, Error>;

    /// Ends a view.
    fn destroy_view(&self, view: Self::View);

    /// How many namespaces were deleted: another one may have their numbers. Transactions that begin behind a deletion see it.
    fn namespaces_ended(&self) -> u64 {
        0
    }
}

/// A store, with all its namespaces. A view is an iterator of each namespace whose keys have an order; others have none.
impl Port for Store {
    type View = BTreeMap<NamespaceId, IteratorId>;

    fn get(&self, record: Record<'_>) -> Result<Option<Value>, Error> {
        Namespace::new(self, record.namespace).value(record.key, 0, u32::MAX)
    }

    fn put(&self, changes: &[BatchChange<'_>]) -> Result<(), Error> {
        self.execute_in(NamespaceId::FIRST, Command::Batch { changes }).map(|_| ())
    }

    fn create_view(&self) -> Result<Self::View, Error> {
        let view = self.drive()?.create_iterators()?;
        let why = "there is no snapshot of any namespace: keys have no order there";
        if view.is_empty() { Err(Error::Refused { why: why.to_owned() }) } else { Ok(view) }
    }

    fn get_in_view(&self, view: &Self::View, record: Record<'_>) -> Result<Option<Value>, Error> {
        let Some(&iterator) = view.get(&record.namespace) else {
            let of = record.namespace;
            let why = format!("there is no snapshot of namespace {of}: it is younger, or its keys have no order");
            return Err(Error::Refused { why });
        };
        match self.execute_in(record.namespace, Command::Seek { iterator, key: Some(record.key), pairs_max: 1 })? {
            Some(Reply::Pairs(pairs)) => {
                let found = pairs.into_iter().find(|(key, _)| **key == *record.key.bytes());
                Ok(found.and_then(|(_, value)| value))
            }
            other => unreachable!("{other:?} does not answer a seek"),
        }
    }

    fn destroy_view(&self, view: Self::View) {
        for (namespace, iterator) in view {
            // A drive that has failed has no views either.
            let _ = self.execute_in(namespace, Command::DestroyIterator { iterator });
        }
    }

    fn namespaces_ended(&self) -> u64 {
        self.lives().ended()
    }
}

/// A drive that others use as well. They change only pairs that no transaction reads or writes, neither meanwhile nor later: a cache keeps what was
/// read. A namespace may be deleted while no transaction uses it.
impl<P: Port> Port for Arc<P> {
    type View = P::View;

    fn get(&self, record: Record<'_>) -> Result<Option<Value>, Error> {
        P::get(self, record)
    }

    fn put(&self, changes: &[BatchChange<'_>]) -> Result<(), Error> {
        P::put(self, changes)
    }

    fn create_view(&self) -> Result<Self::View, Error> {
        P::create_view(self)
    }

    fn get_in_view(&self, view: &Self::View, record: Record<'_>) -> Result<Option<Value>, Error> {
        P::get_in_view(self, view, record)
    }

    fn destroy_view(&self, view: Self::View) {
        P::destroy_view(self, view);
    }

    fn namespaces_ended(&self) -> u64 {
        P::namespaces_ended(self)
    }
}
