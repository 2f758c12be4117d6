//! What keeps the records of a drive: large values are made of them.

use kvssd_types::{Command, KvError, NamespaceId, Reply, RequestId};

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

    /// Iterators that live.
    fn iterators(&self) -> usize;

    /// Bytes of flash that the records of a namespace take.
    fn record_bytes(&self, namespace: NamespaceId) -> u64;

    /// What is executed from here on could not be before the answers so far were there.
    fn then(&mut self);
}
