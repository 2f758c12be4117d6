//! Executes I/O commands on the drive, a burst of them at a time.
//!
//! ```text
//!   a read of the socket brought    S S R S D R ...
//!     share a partition
//!       glance, glance, ...         until one changes something, or more is to be read than lies at hand
//!     lock the partition of the next command; for one that concerns several, all
//!       execute, execute, ...       all that concern it, up to one that concerns several; completions are made, and none is sent
//!       commit                      once for all: what is sent from here on outlives the process
//!     unlock, and so on
//!   completions are sent together
//! ```

mod iteration;

use crate::clients::{Clients, NumberedClient, OpenedClient};
use crate::command_kind::CommandKind;
use crate::completion::{Completion, Data, Failure, Outcome, Success};
use crate::controller::IoSettings;
use crate::io_command::IoCommand;
use crate::iterators::{HostIterator, HostIterators, Owner};
use crate::limits::{LIST_BYTES_MAX, LONG_LIST_BYTES_MAX};
use crate::lock::lock;
use crate::quota::check_quota;
use crate::rights::HostRights;
use crate::status::status_of;
use kvssd_device::{Drive, Partitions};
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::kv::{KEY_BYTES_MAX, KvCommand, KvKey, LONG_KEY_BYTES_MAX, StoreOptions};
use kvssd_nvme_spec::list::{LIST_HEADER_BYTES, ListWriter};
use kvssd_runtime::sync::Mutex;
use kvssd_runtime::sync::atomic::{AtomicBool, Ordering};
use kvssd_runtime::time::since_1970;
use kvssd_types::{ClientId, Command, Key, KvError, NamespaceId, Nanos, Reply, RequestId, StoreCondition, Value};
use prometheus_client::metrics::counter::Counter;
use std::sync::Arc;

/// The most keys that one List asks the drive for at a time.
const LIST_KEYS: usize = 512;

/// What executions share, whichever partitions of the drive they have.
pub(crate) struct Sessions {
    pub(crate) is_timed: bool,
    /// Locked behind all partitions.
    of_hosts: Mutex<OfHosts>,
    /// How long an iterator may be idle.
    idle_ns: Nanos,
    /// Whether there are iterators, to be seen without a lock.
    has_iterators: AtomicBool,
    /// Changes that came again and were not made again.
    recognized: Counter,
}

#[derive(Default)]
struct OfHosts {
    clients: Clients,
    iterators: HostIterators,
}

impl Sessions {
    pub(crate) fn new(is_timed: bool, recognized: Counter, idle_ns: Nanos) -> Self {
        Sessions { is_timed, of_hosts: Mutex::default(), idle_ns, has_iterators: AtomicBool::new(false), recognized }
    }

    /// Whether there are iterators.
    pub(crate) fn has_iterators(&self) -> bool {
        self.has_iterators.load(Ordering::Relaxed)
    }

    /// Does something with the iterators of hosts.
    fn on_iterators<T>(&self, act: impl FnOnce(&mut HostIterators) -> T) -> T {
        let mut of_hosts = lock(&self.of_hosts);
        let done = act(&mut of_hosts.iterators);
        self.has_iterators.store(!of_hosts.iterators.is_empty(), Ordering::Relaxed);
        done
    }
}

/// The partitions of the drive that somebody has: the one that his commands concern, or all.
pub(crate) struct Executor<'a> {
    pub(crate) drive: Partitions<'a>,
    pub(crate) sessions: &'a Sessions,
}

/// The outcome of a command that changes nothing and has so many bytes of data at the most, where it is to be had beside others
/// ([`Drive::glance`]).
pub(crate) fn glance(drive: &Drive, ready: &IoCommand, bytes_max: u32) -> Option<Outcome> {
    let mut buffer_max = 0;
    let command = match &ready.command {
        KvCommand::Retrieve { key, buffer_bytes } => {
            buffer_max = *buffer_bytes;
            let length_bytes = bytes_max.min(*buffer_bytes);
            Command::Retrieve { key: key_of(key).ok()?, offset_bytes: 0, length_bytes }
        }
        KvCommand::Exist { key } => Command::Exist { key: key_of(key).ok()? },
        _ => return None,
    };
    match drive.glance(NamespaceId(ready.namespace), &command)? {
        // More of it is wanted.
        Ok(Reply::Retrieved { value_bytes, .. }) if value_bytes.min(buffer_max) > bytes_max => None,
        Ok(reply) => Some(seen(reply)),
        Err(KvError::KeyNotFound) => Some(Err(Status::KeyDoesNotExist.into())),
        Err(_) => None,
    }
}

impl Executor<'_> {
    /// Ends the iterators that nobody uses any more.
    pub(crate) fn end_iterators(&mut self, now: Nanos) {
        let idle_ns = self.sessions.idle_ns;
        for ended in self.sessions.on_iterators(|iterators| iterators.take_ended(idle_ns, now)) {
            self.end_iterator(&ended);
        }
    }

    fn end_iterator(&mut self, ended: &HostIterator) {
        // A drive that has failed keeps nothing for it.
        let _ = self.drive.execute_in(ended.namespace, Command::DestroyIterator { iterator: ended.id });
    }

    /// Ends the iterators of a namespace that is deleted, and the drive's with it.
    pub(crate) fn forget_namespace(&mut self, namespace: NamespaceId) {
        self.sessions.on_iterators(|iterators| iterators.forget_namespace(namespace));
    }

    /// Makes a controller the client's only one. Its changes that are not executed yet on another are refused there.
    pub(crate) fn open_client(&mut self, client: ClientId) -> Result<OpenedClient, KvError> {
        let since = self.drive.open_client(client)?;
        Ok(OpenedClient { client: lock(&self.sessions.of_hosts).clients.open(client), since })
    }

    /// The most bytes of data that the completion of a command comes with.
    pub(crate) fn data_bytes_max(&mut self, ready: &IoCommand) -> u32 {
        match &ready.command {
            KvCommand::Retrieve { key, buffer_bytes } => {
                let of = |key| self.drive.value_bytes_of(NamespaceId(ready.namespace), key).ok().flatten();
                key_of(key).ok().and_then(of).unwrap_or(0).min(*buffer_bytes)
            }
            KvCommand::List { buffer_bytes, .. } => (*buffer_bytes).min(LIST_BYTES_MAX),
            KvCommand::ListLong { buffer_bytes, .. } | KvCommand::Iterate { buffer_bytes, .. } => *buffer_bytes,
            _ => 0,
        }
    }

    /// Executes the commands that `next` returns, and commits them. `next` is told whether their data is less than
    /// `bytes_max` so far; the last command may exceed that.
    pub(crate) fn execute(
        &mut self,
        mut next: impl FnMut(bool) -> Option<IoCommand>,
        bytes_max: usize,
        now: Nanos,
        settings: &IoSettings,
        completions: &mut Vec<Completion>,
    ) {
        let begin = completions.len();
        let (mut changes, mut bytes) = (false, 0);
        self.drive.hold_commits(true);
        while let Some(ready) = next(bytes < bytes_max) {
            let IoCommand { command_id, namespace, command, serial, value, arrived, share, .. } = ready;
            changes |= matches!(command, KvCommand::Store { .. } | KvCommand::Delete { .. } | KvCommand::Flush);
            let delete_needs_key = settings.delete_needs_key.contains(&namespace);
            let namespace = NamespaceId(namespace);
            let rights = &settings.rights;
            let mut execution = Execution { executor: self, rights, namespace, request: None, now, due: Nanos::ZERO };
            let outcome = execution
                .set_request(&command, serial, settings.client.as_deref())
                .map_err(Failure::from)
                .and_then(|()| execution.perform(&command, value, delete_needs_key, &settings.iterators));
            let due = execution.due;
            drop(share);
            let completion =
                Completion { due, ..Completion::new(command_id, CommandKind::of(&command), arrived, outcome) };
            bytes += completion.data.len();
            completions.push(completion);
        }
        self.drive.hold_commits(false);
        if let Err(error) = if changes { self.drive.commit() } else { Ok(()) } {
            // Whatever the drive replied: what is not committed may be lost, or not.
            let failure = status_of(&error).into();
            for completion in &mut completions[begin..] {
                let Completion { command_id, kind, arrived, .. } = *completion;
                *completion = Completion::new(command_id, kind, arrived, Err(failure));
            }
        }
    }
}

/// The execution of one command.
struct Execution<'a, 'd> {
    executor: &'a mut Executor<'d>,
    rights: &'a HostRights,
    namespace: NamespaceId,
    /// What a change is recognized by.
    request: Option<RequestId>,
    now: Nanos,
    /// When the drive's model completes it.
    due: Nanos,
}

impl Execution<'_, '_> {
    /// Has the drive recognize a numbered change. Refuses it if the client has gone on to another controller.
    fn set_request(
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

    fn perform(
        &mut self,
        command: &KvCommand,
        value: Option<Arc<[u8]>>,
        delete_needs_key: bool,
        owner: &Owner,
    ) -> Outcome {
        let drive = &mut self.executor.drive;
        if drive.wants_time() {
            drive.tell_time(Nanos(u64::try_from(since_1970().as_nanos()).unwrap_or(u64::MAX)));
        }
        match command {
            KvCommand::Flush => {
                // All namespaces share one buffer, and the first always exists.
                if self.namespace.0 == kvssd_nvme_spec::command::NAMESPACE_ALL {
                    self.namespace = NamespaceId::FIRST;
                }
                self.on_drive(Command::Flush).map(|_| Success::default())
            }
            KvCommand::Store { key, options, .. } => {
                let condition = condition_of(*options)?;
                let (key, value) = (key_of(key)?, Value::Bytes(value.unwrap_or_default().into()));
                let value_bytes = value.len() as u64;
                let store = Command::Store { key, value, condition };
                if !self.is_recognized(&store) {
                    let drive = &mut self.executor.drive;
                    check_quota(drive, self.rights, self.namespace, key, value_bytes, condition)?;
                }
                self.on_drive(store).map(|_| Success::default())
            }
            KvCommand::Retrieve { key, buffer_bytes } => {
                let command = Command::Retrieve { key: key_of(key)?, offset_bytes: 0, length_bytes: *buffer_bytes };
                seen(self.on_drive(command)?)
            }
            KvCommand::List { from, buffer_bytes } => {
                let bounds = (KEY_BYTES_MAX, LIST_BYTES_MAX);
                self.list(from.as_ref(), *buffer_bytes, bounds).map(Success::with_data)
            }
            KvCommand::ListLong { from, buffer_bytes } => {
                let bounds = (LONG_KEY_BYTES_MAX, LONG_LIST_BYTES_MAX);
                self.list(from.as_ref(), *buffer_bytes, bounds).map(Success::with_data)
            }
            KvCommand::CreateIterator(range) => self.create_iterator(range, owner),
            KvCommand::Iterate { iterator, seek, pairs_max, buffer_bytes } => {
                self.iterate(*iterator, owner, *seek, *pairs_max, *buffer_bytes)
            }
            KvCommand::DestroyIterator { iterator } => self.destroy_iterator(*iterator, owner),
            KvCommand::Delete { key } => match self.on_drive(Command::Delete { key: key_of(key)? }) {
                Err(failure) if failure.status == Status::KeyDoesNotExist && !delete_needs_key => {
                    Ok(Success::default())
                }
                other => other.map(|_| Success::default()),
            },
            KvCommand::Exist { key } => self.on_drive(Command::Exist { key: key_of(key)? }).and_then(seen),
        }
    }

    /// Whether it is a change that was made before.
    fn is_recognized(&self, command: &Command<'_>) -> bool {
        let known = |request| self.executor.drive.recognize(request, self.namespace, command);
        self.request.and_then(known).is_some_and(|completion| completion.is_ok())
    }

    fn on_drive(&mut self, command: Command<'_>) -> Result<Reply, Failure> {
        if self.is_recognized(&command) {
            self.executor.sessions.recognized.inc();
        }
        let Executor { drive, sessions } = &mut *self.executor;
        let reply = if sessions.is_timed {
            let completed = drive.timed().submit_as(self.request, self.namespace, command, self.now);
            self.due = self.due.max(completed.done);
            completed.reply
        } else {
            drive.execute_as(self.request, self.namespace, command)
        };
        reply.map_err(|error| {
            if matches!(error, KvError::Unrecovered(_)) {
                tracing::error!(namespace = self.namespace.0, %error, "the drive failed a command");
            }
            status_of(&error).into()
        })
    }

    /// The data of a List: as many keys as the buffer takes, without those that are too long for the command.
    fn list(
        &mut self,
        from: Option<&KvKey>,
        buffer_bytes: u32,
        (key_bytes_max, list_bytes_max): (usize, u32),
    ) -> Result<Vec<u8>, Failure> {
        let bytes_max = buffer_bytes.min(list_bytes_max) as usize;
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
            let Reply::Listed(keys) = self.on_drive(Command::List { from: begin, keys_max })? else {
                return Err(Status::InternalError.into());
            };
            let is_end = keys.len() < keys_max;
            let is_new = |key: &&[u8]| last.as_deref() != Some(*key) && key.len() <= key_bytes_max;
            for key in keys.iter().map(AsRef::as_ref).filter(is_new) {
                if !writer.push(key) {
                    // A list without keys would mean the end.
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

/// The outcome of a Retrieve or an Exist that found the key.
fn seen(reply: Reply) -> Outcome {
    match reply {
        Reply::Retrieved { value, value_bytes } => Ok(Success { result: value_bytes.into(), data: Data::Value(value) }),
        Reply::Exists => Ok(Success::default()),
        _ => Err(Status::InternalError.into()),
    }
}

fn key_of(key: &KvKey) -> Result<Key<'_>, Status> {
    Key::new(key.bytes()).map_err(|error| status_of(&error))
}

/// The condition of a Store. Its compression option is ignored: no value is compressed.
fn condition_of(options: StoreOptions) -> Result<StoreCondition, Status> {
    match (options.must_exist, options.must_not_exist) {
        (false, false) => Ok(StoreCondition::Always),
        (true, false) => Ok(StoreCondition::IfExists),
        (false, true) => Ok(StoreCondition::IfAbsent),
        (true, true) => Err(Status::InvalidField),
    }
}
