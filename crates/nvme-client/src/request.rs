//! Commands as the Key Value command set has them, and what their completions mean.
//!
//! ```text
//!   Command    -> Request { entry, payload }      or an error: the command set has no such command
//!   Completion -> Outcome: a reply, an error, or to be sent again
//! ```
//!
//! What it does not do: keys above 16 bytes, batches, iterators and ranges. The command set has none of them.

use crate::Error;
use crate::queue_pair::{Completion, Payload};
use kvssd_nvme_spec::kv::{KEY_BYTES_MAX, KvCommand, KvKey, StoreOptions};
use kvssd_nvme_spec::list::{LIST_HEADER_BYTES, ListReader};
use kvssd_nvme_spec::{Status, SubmissionEntry};
use kvssd_types::{Command, Key, NamespaceId, Reply, StoreCondition, Value};
use std::sync::Arc;

/// Bytes of an entry of a list with the longest key, padded.
const LIST_KEY_BYTES: usize = 20;
/// The most keys of one List: a buffer of 80 KiB.
const LIST_KEYS_MAX: usize = 4096;

const DRIVE_FAILED: &str = "the drive has failed (internal error)";

/// The limits of a namespace, by Identify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamespaceLimits {
    pub(crate) key_bytes_max: usize,
    pub(crate) value_bytes_max: u32,
    /// Delete fails where the key is missing (feature 20h, bit 0).
    pub(crate) delete_needs_key: bool,
}

/// A command, ready to be submitted.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) entry: SubmissionEntry,
    pub(crate) payload: Payload,
    pub(crate) operation: Operation,
}

/// What a completion is interpreted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Store { value_bytes: u32, limits: NamespaceLimits },
    Retrieve { offset_bytes: u32, buffer_bytes: u32 },
    Delete,
    Exist,
    List { keys_max: usize },
    Flush,
}

/// What a completion means.
pub(crate) enum Outcome {
    Done(Result<Option<Reply>, Error>),
    /// Not executed; the same may succeed later.
    RetryLater(Status),
    /// Not executed on this association; a new one is needed.
    Reconnect(Status),
}

impl Request {
    /// Encodes a command for a namespace of those limits.
    pub(crate) fn new(namespace: NamespaceId, command: Command<'_>, limits: NamespaceLimits) -> Result<Request, Error> {
        let key = |key: Key<'_>| key_of(key, limits);
        let (command, payload, operation) = match command {
            Command::Store { key: of, value, condition } => {
                let value = bytes_of(value);
                let value_bytes = u32::try_from(value.len()).ok().filter(|bytes| *bytes <= limits.value_bytes_max);
                let value_bytes = value_bytes.ok_or(Error::InvalidValue {
                    value_bytes: value.len() as u64,
                    value_bytes_max: limits.value_bytes_max.into(),
                })?;
                let options = StoreOptions {
                    must_exist: condition == StoreCondition::IfExists,
                    must_not_exist: condition == StoreCondition::IfAbsent,
                    compression: false,
                };
                let payload = if value.is_empty() { Payload::None } else { Payload::Out(value) };
                let operation = Operation::Store { value_bytes, limits };
                (KvCommand::Store { key: key(of)?, value_bytes, options }, payload, operation)
            }
            Command::Retrieve { key: of, offset_bytes, length_bytes } => {
                let buffer_bytes = offset_bytes.saturating_add(length_bytes).min(limits.value_bytes_max);
                let command = KvCommand::Retrieve { key: key(of)?, buffer_bytes };
                (command, Payload::In(buffer_bytes), Operation::Retrieve { offset_bytes, buffer_bytes })
            }
            Command::Delete { key: of } => (KvCommand::Delete { key: key(of)? }, Payload::None, Operation::Delete),
            Command::Exist { key: of } => (KvCommand::Exist { key: key(of)? }, Payload::None, Operation::Exist),
            Command::List { from, keys_max } => {
                let keys_max = keys_max.min(LIST_KEYS_MAX);
                let buffer_bytes = (LIST_HEADER_BYTES + keys_max * LIST_KEY_BYTES) as u32;
                let command = KvCommand::List { from: from.map(key).transpose()?, buffer_bytes };
                (command, Payload::In(buffer_bytes), Operation::List { keys_max })
            }
            Command::Flush => (KvCommand::Flush, Payload::None, Operation::Flush),
            Command::Batch { .. } => {
                return Err(Error::not_in_the_command_set(
                    "batches that are made all or none; bulk makes changes one by one",
                ));
            }
            Command::CreateIterator { .. }
            | Command::Seek { .. }
            | Command::Next { .. }
            | Command::DestroyIterator { .. } => return Err(Error::not_in_the_command_set("iterators and snapshots")),
            Command::Read { .. } | Command::Write { .. } => return Err(Error::not_in_the_command_set("blocks")),
        };
        Ok(Request { entry: command.entry(namespace.0), payload, operation })
    }

    /// The most data that any command may get, in bytes.
    pub(crate) const fn data_bytes_max(value_bytes_max: u32) -> u32 {
        let list_bytes = (LIST_HEADER_BYTES + LIST_KEYS_MAX * LIST_KEY_BYTES) as u32;
        if value_bytes_max > list_bytes { value_bytes_max } else { list_bytes }
    }
}

fn key_of(key: Key<'_>, limits: NamespaceLimits) -> Result<KvKey, Error> {
    let key_bytes_max = limits.key_bytes_max.min(KEY_BYTES_MAX);
    let too_long = Error::InvalidKey { key_bytes: key.bytes().len(), key_bytes_max };
    if key.bytes().len() > key_bytes_max {
        return Err(too_long);
    }
    KvKey::new(key.bytes()).map_err(|_| too_long)
}

fn bytes_of(value: Value) -> Arc<[u8]> {
    match value {
        Value::Bytes(bytes) => bytes,
        Value::Pattern(_) => value.to_vec().into(),
    }
}

/// What the completion of `operation` means. One that contradicts itself is an error, not a value.
pub(crate) fn outcome(operation: Operation, completion: Completion, namespace: NamespaceId) -> Outcome {
    let status = match completion.entry.status() {
        Ok(status) => status,
        Err(code) => {
            return Outcome::Done(Err(Error::Refused(format!("the drive answers with status {code:03x}h"))));
        }
    };
    let done = match status {
        Status::Success => reply(operation, completion).map(Some),
        Status::KeyDoesNotExist if !matches!(operation, Operation::Store { .. }) => Ok(None),
        Status::NamespaceNotReady | Status::TransientTransportError | Status::CommandAborted | Status::QueueDeleted => {
            return Outcome::RetryLater(status);
        }
        Status::RequestForgotten | Status::ClientSuperseded => return Outcome::Reconnect(status),
        _ => Err(error_of(status, operation, namespace)),
    };
    Outcome::Done(done)
}

fn error_of(status: Status, operation: Operation, namespace: NamespaceId) -> Error {
    match (status, operation) {
        (Status::KeyDoesNotExist, _) => Error::KeyNotFound,
        (Status::KeyExists, _) => Error::KeyExists,
        (Status::CapacityExceeded, _) => Error::CapacityExceeded,
        (Status::InvalidValueSize, Operation::Store { value_bytes, limits }) => {
            Error::InvalidValue { value_bytes: value_bytes.into(), value_bytes_max: limits.value_bytes_max.into() }
        }
        (Status::NamespaceWriteProtected, _) => {
            Error::Refused("the drive lets this host read that namespace, and not change it".to_owned())
        }
        (Status::InvalidNamespace, _) => Error::NoNamespace(namespace.to_string()),
        (Status::UnrecoveredError, _) => Error::Damaged("the drive cannot read what was written there".to_owned()),
        // The drive may have failed before the change or after it. Only a new mount can tell.
        (Status::InternalError, Operation::Store { .. } | Operation::Delete) => {
            Error::InDoubt(format!("{DRIVE_FAILED}: it is not known whether the change was done"))
        }
        (Status::InternalError, _) => drive_failed(),
        _ => Error::Refused(format!("the drive says: {status}")),
    }
}

/// Internal Error: the drive takes no commands until it is served anew.
pub(crate) fn drive_failed() -> Error {
    Error::Io(DRIVE_FAILED.to_owned())
}

fn reply(operation: Operation, completion: Completion) -> Result<Reply, Error> {
    let Completion { entry, data } = completion;
    match operation {
        Operation::Store { .. } => Ok(Reply::Stored),
        Operation::Delete => Ok(Reply::Deleted),
        Operation::Exist => Ok(Reply::Exists),
        Operation::Flush => Ok(Reply::Flushed),
        Operation::Retrieve { offset_bytes, buffer_bytes } => {
            let value_bytes = entry.dword0.get();
            if data.len() as u64 != u64::from(value_bytes.min(buffer_bytes)) {
                let (got, why) = (data.len(), "the drive sent another number of bytes than it says the value has");
                return Err(Error::Damaged(format!("{why}: {got}, not {}", value_bytes.min(buffer_bytes))));
            }
            let part = data.get(offset_bytes as usize..).unwrap_or_default();
            Ok(Reply::Retrieved { value: Value::from(part), value_bytes })
        }
        Operation::List { keys_max } => list(&data, keys_max).map(Reply::Listed),
    }
}

fn list(data: &[u8], keys_max: usize) -> Result<Vec<Box<[u8]>>, Error> {
    let damaged = || Error::Damaged("the drive sent a list of keys that is cut off".to_owned());
    let keys = ListReader::new(data).map_err(|_| damaged())?;
    keys.take(keys_max).map(|key| key.map(Into::into).map_err(|_| damaged())).collect()
}
