//! Changes that a host may send again: each is made once.

use super::Engine;
use super::batches::Phase;
use crate::journal::Change;
use crate::journal::clients::Fate;
use kvssd_types::{ClientId, Command, KvError, NamespaceId, Nanos, Reply, RequestId};

impl Engine {
    /// Starts, at `at`, to remember which changes of a client are made ([`Engine::execute_request`]). Returns when that is
    /// done, and a number below 2^48. If the number differs from the last time, the client was forgotten in between. If there
    /// are too many clients, the one idle for longest is forgotten.
    ///
    /// # Errors
    /// What the flash operations answer.
    pub fn open_client(&mut self, client: ClientId, at: Nanos) -> (Nanos, Result<u64, KvError>) {
        self.administer_for(at, |engine| engine.open(client, at))
    }

    fn open(&mut self, client: ClientId, at: Nanos) -> Result<(Nanos, u64), KvError> {
        let mut done = at;
        if let Some(slot) = self.media.durable.clients.free_slot(client) {
            self.media.durable.clients.open(slot, client).expect("there is such a slot");
            done = self.note_at(at, Change::Client { slot, client: client.0 })?;
            self.share_dram();
        }
        Ok((done, self.media.durable.clients.since(client).expect("it has a slot")))
    }

    /// The answer to a change that was made before, or an error if its outcome is not known any more. `None` if the change
    /// is still to be made.
    #[must_use]
    pub fn recognize(&self, request: RequestId, command: &Command<'_>) -> Option<Result<Reply, KvError>> {
        match self.media.durable.clients.fate(request) {
            Fate::New => None,
            Fate::Forgotten => Some(Err(KvError::RequestForgotten)),
            Fate::Made => Some(match command {
                Command::Store { .. } => Ok(Reply::Stored),
                Command::Delete { .. } => Ok(Reply::Deleted),
                Command::Batch { .. } => Ok(Reply::Batched),
                _ => Err(KvError::RequestForgotten),
            }),
        }
    }

    /// Like [`Engine::execute_in`], for a store, delete or batch that the host may send again: it is made once, and answered
    /// each time. A refused change was not made, and may be tried again. It is refused with [`KvError::RequestForgotten`] if
    /// its client was not opened, or has had [`RequestId::WINDOW`] later changes made.
    #[expect(clippy::needless_pass_by_value, reason = "a command is given away, and may be tried twice within")]
    pub fn execute_request(
        &mut self,
        request: RequestId,
        namespace: NamespaceId,
        command: Command<'_>,
        at: Nanos,
    ) -> (Nanos, Result<Reply, KvError>) {
        match self.recognize(request, &command) {
            Some(answer) => (self.take_part(at), answer),
            None => self.run(Some(request), Phase::All, namespace, &command, at),
        }
    }
}
