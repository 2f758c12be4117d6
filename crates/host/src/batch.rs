//! Changes that are made together.

use crate::Error;
use kvssd_types::{BatchChange, Command, Key, NamespaceId, StoreCondition, Value};
use std::collections::BTreeMap;

/// Stores and deletes of one or several namespaces, which [`Store::batch`](crate::Store::batch) makes all or none, and
/// [`Store::bulk`](crate::Store::bulk) each by itself.
///
/// If a key is changed several times, the last change counts.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    changes: Vec<Change>,
}

/// A store, or a delete if it has no value.
#[derive(Clone, Debug)]
struct Change {
    /// `None` for the store's own.
    namespace: Option<NamespaceId>,
    key: Box<[u8]>,
    value: Option<Value>,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Batch::default()
    }

    /// Adds a store in the store's own namespace.
    pub fn store(&mut self, key: &[u8], value: &[u8]) -> &mut Self {
        self.add(None, key, Some(value.into()))
    }

    /// Adds a delete in the store's own namespace. A missing key is no error.
    pub fn delete(&mut self, key: &[u8]) -> &mut Self {
        self.add(None, key, None)
    }

    /// Adds a store in a namespace.
    pub fn store_in(&mut self, namespace: NamespaceId, key: &[u8], value: &[u8]) -> &mut Self {
        self.add(Some(namespace), key, Some(value.into()))
    }

    /// Adds a delete in a namespace. A missing key is no error.
    pub fn delete_in(&mut self, namespace: NamespaceId, key: &[u8]) -> &mut Self {
        self.add(Some(namespace), key, None)
    }

    fn add(&mut self, namespace: Option<NamespaceId>, key: &[u8], value: Option<Value>) -> &mut Self {
        self.changes.push(Change { namespace, key: key.into(), value });
        self
    }

    /// The number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Removes all changes.
    pub fn clear(&mut self) {
        self.changes.clear();
    }

    /// The last change of each key; `own` is the namespace of changes without one.
    pub(crate) fn last_changes(&self, own: NamespaceId) -> Result<Vec<BatchChange<'_>>, Error> {
        let mut last = BTreeMap::new();
        for Change { namespace, key, value } in &self.changes {
            last.insert((namespace.unwrap_or(own), Key::new(key)?), value);
        }
        let change =
            |((namespace, key), value): (_, &Option<Value>)| BatchChange { namespace, key, value: value.clone() };
        Ok(last.into_iter().map(change).collect())
    }

    /// All changes, as single commands; `own` is the namespace of changes without one.
    pub(crate) fn commands(&self, own: NamespaceId) -> Result<Vec<(NamespaceId, Command<'_>)>, Error> {
        self.changes.iter().map(|change| change.command(own)).collect()
    }
}

impl Change {
    fn command(&self, own: NamespaceId) -> Result<(NamespaceId, Command<'_>), Error> {
        let key = Key::new(&self.key)?;
        let command = match self.value.clone() {
            Some(value) => Command::Store { key, value, condition: StoreCondition::Always },
            None => Command::Delete { key },
        };
        Ok((self.namespace.unwrap_or(own), command))
    }
}
