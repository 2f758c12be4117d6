//! What caches are made of: records with their large values, as hosts see them on a drive without caches.

use crate::large::LargeValues;
use crate::records::{Origin, Records};
use kvssd_ftl::{Engine, Lack};
use kvssd_types::{BatchChange, Command, KvError, NamespaceId, Reply};

/// Records with their large values: what hosts see of a drive without caches.
pub(crate) struct Whole<'a> {
    pub(crate) large: Option<&'a mut LargeValues>,
    pub(crate) records: &'a mut dyn Records,
}

impl Records for Whole<'_> {
    fn engine(&self) -> &Engine {
        self.records.engine()
    }

    fn engine_mut(&mut self) -> Option<&mut Engine> {
        self.records.engine_mut()
    }

    fn execute_as(&mut self, origin: Origin, command: Command<'_>) -> Result<Reply, KvError> {
        match &mut self.large {
            Some(large) => large.execute_as(self.records, origin, command),
            None => self.records.execute_as(origin, command),
        }
    }

    /// Includes its segments.
    fn record_bytes(&self, namespace: NamespaceId) -> u64 {
        let shadow = self.large.as_ref().and_then(|large| large.shadow_of(namespace));
        self.records.record_bytes(namespace) + shadow.map_or(0, |shadow| self.records.record_bytes(shadow))
    }

    fn lacks(&self) -> Vec<Lack> {
        match &self.large {
            Some(large) => large.lacks(self.records),
            None => self.records.lacks(),
        }
    }

    fn then(&mut self) {
        self.records.then();
    }

    fn check_batch(&self, changes: &[BatchChange<'_>]) -> Result<(), KvError> {
        match &self.large {
            Some(large) => large.check_batch(self.records, changes),
            None => self.records.check_batch(changes),
        }
    }

    fn keep_beside(&mut self, bytes: u64) {
        self.records.keep_beside(bytes);
    }
}
