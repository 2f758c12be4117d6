//! Commands on the drive, a burst of them at a time.
//!
//! ```text
//!   a read of the socket brought    S S R S D R ...
//!     lock the drive
//!       execute, execute, ...       answers: made, and told to nobody
//!       commit                      once for all: what is told from here on outlives the process
//!     unlock
//!   answers go out together
//! ```

use crate::answer::{Answer, Data, Done, Kind, Outcome, Refusal, Work};
use crate::clients::{Clients, NumberedClient, OpenedClient};
use crate::controller::Wishes;
use crate::limits::LIST_BYTES_MAX;
use crate::status::status_of;
use kvssd_device::Drive;
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::kv::{KEY_BYTES_MAX, KvCommand, KvKey, StoreOptions};
use kvssd_nvme_spec::list::{LIST_HEADER_BYTES, ListWriter};
use kvssd_types::{ClientId, Command, Key, KvError, NamespaceId, Nanos, Reply, RequestId, StoreCondition, Value};
use prometheus_client::metrics::counter::Counter;

/// Keys that are asked for at a time.
const LIST_KEYS: usize = 512;

/// The drive, and whether answers wait for its modelled time.
pub(crate) struct Executor {
    pub(crate) drive: Drive,
    is_timed: bool,
    clients: Clients,
    /// Changes that came again and had been made.
    recognized: Counter,
}

impl Executor {
    pub(crate) fn new(drive: Drive, is_timed: bool, recognized: Counter) -> Self {
        Executor { drive, is_timed, clients: Clients::default(), recognized }
    }

    /// A client has a controller, and no other. What it had sent to another and was not executed until now is refused there.
    pub(crate) fn open_client(&mut self, client: ClientId) -> Result<OpenedClient, KvError> {
        let since = self.drive.open_client(client)?;
        Ok(OpenedClient { client: self.clients.open(client), since })
    }

    /// Executes a burst of commands that are there at `now`, and commits them: each that `next` gives, which is told whether they have given
    /// less than `bytes_max` bytes so far. The last one may pass that.
    pub(crate) fn execute(
        &mut self,
        mut next: impl FnMut(bool) -> Option<Work>,
        bytes_max: usize,
        now: Nanos,
        wishes: &Wishes,
        answers: &mut Vec<Answer>,
    ) {
        let begin = answers.len();
        let (mut changes, mut bytes) = (false, 0);
        self.drive.hold_commits(true);
        while let Some(work) = next(bytes < bytes_max) {
            let Work { command_id, namespace, command, serial, value, arrived, held } = work;
            changes |= matches!(command, KvCommand::Store { .. } | KvCommand::Delete { .. } | KvCommand::Flush);
            let delete_needs_key = wishes.delete_needs_key.contains(&namespace);
            let namespace = NamespaceId(namespace);
            let mut turn = Turn { executor: self, namespace, request: None, now, due: Nanos::ZERO };
            let outcome = turn
                .number(&command, serial, wishes.client.as_deref())
                .map_err(Refusal::from)
                .and_then(|()| turn.perform(&command, value, delete_needs_key));
            let due = turn.due;
            drop(held);
            let answer = Answer { due, ..Answer::new(command_id, Kind::of(&command), arrived, outcome) };
            bytes += answer.data.len();
            answers.push(answer);
        }
        self.drive.hold_commits(false);
        if let Err(error) = if changes { self.drive.commit() } else { Ok(()) } {
            // Whatever the drive had said: what was not committed may be lost, or be there when the drive is served again.
            let refusal = status_of(&error).into();
            for answer in &mut answers[begin..] {
                let Answer { command_id, kind, arrived, .. } = *answer;
                *answer = Answer::new(command_id, kind, arrived, Err(refusal));
            }
        }
    }
}

/// One command's turn with the drive.
struct Turn<'a> {
    executor: &'a mut Executor,
    namespace: NamespaceId,
    /// What a change is known by that may come again.
    request: Option<RequestId>,
    now: Nanos,
    /// When the drive's model is through with it.
    due: Nanos,
}

impl Turn<'_> {
    /// A change of a client that numbers them is known by its number, unless the client has gone on to another controller.
    fn number(
        &mut self,
        command: &KvCommand,
        serial: Option<u64>,
        client: Option<&NumberedClient>,
    ) -> Result<(), Status> {
        let is_change = matches!(command, KvCommand::Store { .. } | KvCommand::Delete { .. });
        if let Some((client, serial)) = client.zip(serial).filter(|_| is_change) {
            if client.is_superseded() {
                return Err(Status::ClientSuperseded);
            }
            self.request = Some(RequestId { client: client.id, serial });
        }
        Ok(())
    }

    fn perform(&mut self, command: &KvCommand, value: Option<std::sync::Arc<[u8]>>, delete_needs_key: bool) -> Outcome {
        match command {
            KvCommand::Flush => {
                // There is one buffer for all namespaces, and the first is always there.
                if self.namespace.0 == kvssd_nvme_spec::command::NAMESPACE_ALL {
                    self.namespace = NamespaceId::FIRST;
                }
                self.ask(Command::Flush).map(|_| Done::default())
            }
            KvCommand::Store { key, options, .. } => {
                let condition = condition_of(*options)?;
                let value = Value::Bytes(value.unwrap_or_default());
                self.ask(Command::Store { key: key_of(key)?, value, condition }).map(|_| Done::default())
            }
            KvCommand::Retrieve { key, buffer_bytes } => {
                let command = Command::Retrieve { key: key_of(key)?, offset_bytes: 0, length_bytes: *buffer_bytes };
                match self.ask(command)? {
                    Reply::Retrieved { value, value_bytes } => {
                        Ok(Done { result: value_bytes.into(), data: Data::Value(value) })
                    }
                    _ => Err(Status::InternalError.into()),
                }
            }
            KvCommand::List { from, buffer_bytes } => self.list(from.as_ref(), *buffer_bytes).map(Done::with_data),
            KvCommand::Delete { key } => match self.ask(Command::Delete { key: key_of(key)? }) {
                Err(refusal) if refusal.status == Status::KeyDoesNotExist && !delete_needs_key => Ok(Done::default()),
                other => other.map(|_| Done::default()),
            },
            KvCommand::Exist { key } => self.ask(Command::Exist { key: key_of(key)? }).map(|_| Done::default()),
        }
    }

    fn ask(&mut self, command: Command<'_>) -> Result<Reply, Refusal> {
        let Executor { drive, is_timed, recognized, .. } = &mut *self.executor;
        if let Some(request) = self.request
            && drive.engine().recognize(request, &command).is_some_and(|answer| answer.is_ok())
        {
            recognized.inc();
        }
        let reply = if *is_timed {
            let completion = drive.submit_as(self.request, self.namespace, command, self.now);
            self.due = self.due.max(completion.done);
            completion.reply
        } else {
            drive.execute_as(self.request, self.namespace, command)
        };
        reply.map_err(|error| {
            if matches!(error, KvError::Failed(_) | KvError::PowerLost | KvError::Unrecovered(_)) {
                tracing::error!(namespace = self.namespace.0, %error, "the drive failed a command");
            }
            status_of(&error).into()
        })
    }

    /// As many keys as there is room for, but for those that no command of NVMe can name.
    fn list(&mut self, from: Option<&KvKey>, buffer_bytes: u32) -> Result<Vec<u8>, Refusal> {
        let bytes_max = buffer_bytes.min(LIST_BYTES_MAX) as usize;
        if bytes_max < LIST_HEADER_BYTES {
            return Err(Status::InvalidField.into());
        }
        let mut writer = ListWriter::new(bytes_max);
        let mut last: Option<Box<[u8]>> = None;
        loop {
            let begin = last.as_deref().or(from.map(KvKey::bytes));
            let begin = begin.map(Key::new).transpose().map_err(|error| status_of(&error))?;
            let room = ((bytes_max - LIST_HEADER_BYTES) / 4).max(1);
            let keys_max = room.min(LIST_KEYS) + usize::from(last.is_some());
            let Reply::Listed(keys) = self.ask(Command::List { from: begin, keys_max })? else {
                return Err(Status::InternalError.into());
            };
            let is_end = keys.len() < keys_max;
            let is_new = |key: &&[u8]| last.as_deref() != Some(*key) && key.len() <= KEY_BYTES_MAX;
            for key in keys.iter().map(AsRef::as_ref).filter(is_new) {
                if !writer.push(key) {
                    // None at all would be taken for the end.
                    if writer.keys() == 0 {
                        return Err(Status::InvalidField.into());
                    }
                    return Ok(writer.finish());
                }
            }
            if is_end || keys.last() == last.as_ref() {
                return Ok(writer.finish());
            }
            last = keys.into_iter().next_back();
        }
    }
}

fn key_of(key: &KvKey) -> Result<Key<'_>, Status> {
    Key::new(key.bytes()).map_err(|error| status_of(&error))
}

/// That a value is not to be compressed changes nothing: none is.
fn condition_of(options: StoreOptions) -> Result<StoreCondition, Status> {
    match (options.must_exist, options.must_not_exist) {
        (false, false) => Ok(StoreCondition::Always),
        (true, false) => Ok(StoreCondition::IfExists),
        (false, true) => Ok(StoreCondition::IfAbsent),
        (true, true) => Err(Status::InvalidField),
    }
}
