//! What caches are made of: records with their large values, as hosts see them on a drive without caches.

use crate::large::LargeValues;
use crate::records::Records;
use kvssd_ftl::Lack;
use kvssd_types::{BatchChange, Command, IteratorId, KvError, NamespaceId, Reply, RequestId};

/// Records with their large values: what hosts see of a drive without caches.
pub(crate) struct Whole<'a> {
    pub(crate) large: Option<&'a mut LargeValues>,
    pub(crate) records: &'a mut dyn Records,
}

impl Records for Whole<'_> {
    fn execute_as(
        &mut self,
        request: Option<RequestId>,
        namespace: NamespaceId,
        command: Command<'_>,
    ) -> Result<Reply, KvError> {
        match &mut self.large {
            Some(large) => large.execute_as(self.records, request, namespace, command),
            None => self.records.execute_as(request, namespace, command),
        }
    }

    fn oldest_iterator(&self) -> Option<IteratorId> {
        self.records.oldest_iterator()
    }

    fn expire(&mut self) -> Result<bool, KvError> {
        self.records.expire()
    }

    /// With its segments.
    fn record_bytes(&self, namespace: NamespaceId) -> u64 {
        let shadow = self.large.as_ref().and_then(|large| large.shadow_of(namespace));
        self.records.record_bytes(namespace) + shadow.map_or(0, |shadow| self.records.record_bytes(shadow))
    }

    fn free_bytes(&self) -> u64 {
        self.records.free_bytes()
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
