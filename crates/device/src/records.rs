//! What keeps the records of a drive: large values are made of them.

use kvssd_ftl::{Engine, Lack};
use kvssd_types::{BatchChange, Command, IteratorId, KvError, NamespaceId, Reply, RequestId};

/// What keeps the records.
pub(crate) trait Records {
    /// Executes a command of a namespace: what makes `request` so, where it is the one that does.
    fn execute_as(
        &mut self,
        request: Option<RequestId>,
        namespace: NamespaceId,
        command: Command<'_>,
    ) -> Result<Reply, KvError>;

    /// Executes a command of a namespace.
    fn execute(&mut self, namespace: NamespaceId, command: Command<'_>) -> Result<Reply, KvError> {
        self.execute_as(None, namespace, command)
    }

    /// The oldest iterator that lives; later ones have larger numbers.
    fn oldest_iterator(&self) -> Option<IteratorId>;

    /// Ends the oldest iterator. Gives whether there was one.
    fn expire(&mut self) -> Result<bool, KvError>;

    /// Bytes of flash that the records of a namespace take.
    fn record_bytes(&self, namespace: NamespaceId) -> u64;

    /// Bytes of flash that are left, those with it that deleted namespaces take.
    fn free_bytes(&self) -> u64;

    /// What the last command lacked that was refused for want of room.
    fn lacks(&self) -> Vec<Lack>;

    /// What is executed from here on could not be before the answers so far were there.
    fn then(&mut self);

    /// Whether the drive takes a batch of that size, and each key is there once.
    fn check_batch(&self, changes: &[BatchChange<'_>]) -> Result<(), KvError>;

    /// So many bytes of DRAM are kept beside the records from here on.
    fn keep_beside(&mut self, bytes: u64);
}

/// The records that can be seen without changing anything ([`Engine::glance`]).
pub(crate) struct Glances<'a> {
    pub(crate) engine: &'a Engine,
    /// Whether all that was asked for was to be seen.
    pub(crate) sees_all: bool,
}

impl Records for Glances<'_> {
    fn execute_as(
        &mut self,
        _request: Option<RequestId>,
        namespace: NamespaceId,
        command: Command<'_>,
    ) -> Result<Reply, KvError> {
        self.engine.glance(namespace, &command).unwrap_or_else(|| {
            self.sees_all = false;
            Err(KvError::InvalidCommand("it is not to be seen"))
        })
    }

    fn oldest_iterator(&self) -> Option<IteratorId> {
        self.engine.oldest_iterator()
    }

    fn expire(&mut self) -> Result<bool, KvError> {
        Ok(false)
    }

    fn record_bytes(&self, namespace: NamespaceId) -> u64 {
        self.engine.record_bytes(namespace)
    }

    fn free_bytes(&self) -> u64 {
        self.engine.free_bytes()
    }

    fn lacks(&self) -> Vec<Lack> {
        self.engine.lacks().to_vec()
    }

    fn then(&mut self) {}

    fn check_batch(&self, changes: &[BatchChange<'_>]) -> Result<(), KvError> {
        self.engine.check_batch(changes)
    }

    /// A glance keeps nothing.
    fn keep_beside(&mut self, _bytes: u64) {}
}
