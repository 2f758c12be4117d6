//! The records of a drive, of which large values are made.

use kvssd_ftl::{Engine, Lack};
use kvssd_types::{BatchChange, Command, IteratorId, KvError, NamespaceId, Reply, RequestId};

/// The request that a command belongs to, if it may be sent again, and its namespace.
pub(crate) type Origin = (Option<RequestId>, NamespaceId);

/// What keeps the records: a firmware, and how commands come to it.
pub(crate) trait Records {
    /// The firmware.
    fn engine(&self) -> &Engine;

    /// The firmware, for changes; `None` if nothing may change.
    fn engine_mut(&mut self) -> Option<&mut Engine>;

    /// Executes a command of a namespace. With a request, this is the command that makes the request done.
    fn execute_as(&mut self, origin: Origin, command: Command<'_>) -> Result<Reply, KvError>;

    /// The same, for a command that is not sent again.
    fn execute(&mut self, namespace: NamespaceId, command: Command<'_>) -> Result<Reply, KvError> {
        self.execute_as((None, namespace), command)
    }

    /// The oldest iterator that lives; later ones have larger numbers.
    fn oldest_iterator(&self) -> Option<IteratorId> {
        self.engine().oldest_iterator()
    }

    /// Ends the oldest iterator. Returns whether there was one.
    fn expire(&mut self) -> Result<bool, KvError> {
        self.engine_mut().map_or(Ok(false), Engine::expire)
    }

    /// Bytes of flash that the records of a namespace take.
    fn record_bytes(&self, namespace: NamespaceId) -> u64 {
        self.engine().record_bytes(namespace)
    }

    /// Bytes of flash that are left; what deleted namespaces still take counts as free.
    fn free_bytes(&self) -> u64 {
        self.engine().free_bytes()
    }

    /// What the last command lacked that was refused for lack of room.
    fn lacks(&self) -> Vec<Lack> {
        self.engine().lacks().to_vec()
    }

    /// Later commands depend on the answers so far, and cannot begin before these.
    fn then(&mut self) {}

    /// Whether the drive takes a batch of that size, and each key is there once.
    fn check_batch(&self, changes: &[BatchChange<'_>]) -> Result<(), KvError> {
        self.engine().check_batch(changes)
    }

    /// Keeps `bytes` of DRAM beside the records from here on.
    fn keep_beside(&mut self, bytes: u64) {
        if let Some(engine) = self.engine_mut() {
            engine.keep_beside(bytes);
        }
    }
}

/// The records that can be seen without changing anything ([`Engine::glance`]).
pub(crate) struct Glances<'a> {
    pub(crate) engine: &'a Engine,
    /// Whether everything that was asked for could be seen.
    pub(crate) sees_all: bool,
}

impl Records for Glances<'_> {
    fn engine(&self) -> &Engine {
        self.engine
    }

    fn engine_mut(&mut self) -> Option<&mut Engine> {
        None
    }

    fn execute_as(&mut self, (_, namespace): Origin, command: Command<'_>) -> Result<Reply, KvError> {
        self.engine.glance(namespace, &command).unwrap_or_else(|| {
            self.sees_all = false;
            Err(KvError::InvalidCommand("it is not to be seen"))
        })
    }
}
