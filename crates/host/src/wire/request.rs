//! Commands as the Key Value command set has them, and what its answers mean.
//!
//! ```text
//!   Command -> Request { entry, payload }         or why the wire does not carry it
//!   Answer  -> Outcome: a reply, an error, or to be asked again
//! ```
//!
//! What it does not do: keys above 16 bytes, batches, iterators and ranges. The command set has none, and nothing else keeps their
//! promises.

use super::queue::{Answer, Payload};
use crate::Error;
use kvssd_spec::kv::{KEY_BYTES_MAX, KvCommand, KvKey, StoreOptions};
use kvssd_spec::list::{LIST_HEADER_BYTES, ListReader};
use kvssd_spec::{Status, SubmissionEntry};
use kvssd_types::{Command, Key, NamespaceId, Reply, StoreCondition, Value};
use std::sync::Arc;

/// Bytes that a key of 16 takes in a list, padded.
const LIST_KEY_BYTES: usize = 20;
/// Keys of one list at the most: a buffer of 80 KiB.
const LIST_KEYS_MAX: usize = 4096;

const DRIVE_FAILED: &str = "the drive has failed (internal error)";

/// What a namespace takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamespaceLimits {
    pub(crate) key_bytes_max: usize,
    pub(crate) value_bytes_max: u32,
    /// A delete says whether the key was there.
    pub(crate) delete_needs_key: bool,
}

/// A command for the wire.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) entry: SubmissionEntry,
    pub(crate) payload: Payload,
    pub(crate) ask: Ask,
}

/// What is asked, as far as the answer depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Store { condition: StoreCondition, value_bytes: u32, limits: NamespaceLimits },
    Retrieve { offset_bytes: u32, buffer_bytes: u32 },
    Delete,
    Exist,
    List { keys_max: usize },
    Flush,
}

/// What an answer means.
pub(crate) enum Outcome {
    Done(Result<Option<Reply>, Error>),
    /// The drive did not do it, and would, later.
    Again(Status),
    /// The drive did not do it now, and wants it on another connection.
    Elsewhere(Status),
}

impl Request {
    /// The command for a namespace of those limits.
    pub(crate) fn of(namespace: NamespaceId, command: Command<'_>, limits: NamespaceLimits) -> Result<Request, Error> {
        let key = |key: Key<'_>| key_of(key, limits);
        let (command, payload, ask) = match command {
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
                let ask = Ask::Store { condition, value_bytes, limits };
                (KvCommand::Store { key: key(of)?, value_bytes, options }, payload, ask)
            }
            Command::Retrieve { key: of, offset_bytes, length_bytes } => {
                let buffer_bytes = offset_bytes.saturating_add(length_bytes).min(limits.value_bytes_max);
                let command = KvCommand::Retrieve { key: key(of)?, buffer_bytes };
                (command, Payload::In(buffer_bytes), Ask::Retrieve { offset_bytes, buffer_bytes })
            }
            Command::Delete { key: of } => (KvCommand::Delete { key: key(of)? }, Payload::None, Ask::Delete),
            Command::Exist { key: of } => (KvCommand::Exist { key: key(of)? }, Payload::None, Ask::Exist),
            Command::List { from, keys_max } => {
                let keys_max = keys_max.min(LIST_KEYS_MAX);
                let buffer_bytes = (LIST_HEADER_BYTES + keys_max * LIST_KEY_BYTES) as u32;
                let command = KvCommand::List { from: from.map(key).transpose()?, buffer_bytes };
                (command, Payload::In(buffer_bytes), Ask::List { keys_max })
            }
            Command::Flush => (KvCommand::Flush, Payload::None, Ask::Flush),
            Command::Batch { .. } => {
                return Err(not_carried("batches that are made all or none; bulk makes changes one by one"));
            }
            Command::CreateIterator { .. }
            | Command::Seek { .. }
            | Command::Next { .. }
            | Command::DestroyIterator { .. } => return Err(not_carried("iterators and snapshots")),
            Command::Read { .. } | Command::Write { .. } => return Err(not_carried("blocks")),
        };
        Ok(Request { entry: command.entry(namespace.0), payload, ask })
    }

    /// The data that it may get back, at most.
    pub(crate) const fn data_bytes_max(value_bytes_max: u32) -> u32 {
        let list_bytes = (LIST_HEADER_BYTES + LIST_KEYS_MAX * LIST_KEY_BYTES) as u32;
        if value_bytes_max > list_bytes { value_bytes_max } else { list_bytes }
    }
}

/// That NVMe has no such thing.
pub(crate) fn not_carried(what: &str) -> Error {
    Error::Refused {
        why: format!("the Key Value command set of NVMe has no {what}; a drive in a file that is opened has"),
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

/// What the answer to `ask` means. One that cannot be right is an error, not a value.
pub(crate) fn outcome(ask: Ask, answer: Answer, namespace: NamespaceId) -> Outcome {
    let status = match answer.entry.status() {
        Ok(status) => status,
        Err(code) => {
            return Outcome::Done(Err(Error::Refused { why: format!("the drive answers with status {code:03x}h") }));
        }
    };
    let done = match status {
        Status::Success => reply(ask, answer).map(Some),
        Status::KeyDoesNotExist if !matches!(ask, Ask::Store { .. }) => Ok(None),
        Status::NamespaceNotReady | Status::TransientTransportError | Status::CommandAborted | Status::QueueDeleted => {
            return Outcome::Again(status);
        }
        Status::RequestForgotten | Status::ClientSuperseded => return Outcome::Elsewhere(status),
        _ => Err(error_of(status, ask, namespace)),
    };
    Outcome::Done(done)
}

fn error_of(status: Status, ask: Ask, namespace: NamespaceId) -> Error {
    match (status, ask) {
        (Status::KeyDoesNotExist, _) => Error::KeyNotFound,
        (Status::KeyExists, _) => Error::KeyExists,
        (Status::CapacityExceeded, _) => Error::Full,
        (Status::InvalidValueSize, Ask::Store { value_bytes, limits, .. }) => {
            Error::InvalidValue { value_bytes: value_bytes.into(), value_bytes_max: limits.value_bytes_max.into() }
        }
        (Status::InvalidNamespace, _) => Error::NoNamespace { name: namespace.to_string() },
        (Status::UnrecoveredError, _) => {
            Error::Damaged { why: "the drive cannot read what was written there".to_owned() }
        }
        // It may have failed in the middle of it, or behind it before it was safe: the next who serves the drive will know.
        (Status::InternalError, Ask::Store { .. } | Ask::Delete) => {
            Error::InDoubt { why: format!("{DRIVE_FAILED}: it is not known whether the change was done") }
        }
        (Status::InternalError, _) => drive_failed(),
        _ => Error::Refused { why: format!("the drive says: {status}") },
    }
}

/// What Internal Error says: it takes nothing any more until it is served anew.
pub(super) fn drive_failed() -> Error {
    Error::Io { why: DRIVE_FAILED.to_owned() }
}

fn reply(ask: Ask, answer: Answer) -> Result<Reply, Error> {
    let Answer { entry, data } = answer;
    match ask {
        Ask::Store { .. } => Ok(Reply::Stored),
        Ask::Delete => Ok(Reply::Deleted),
        Ask::Exist => Ok(Reply::Exists),
        Ask::Flush => Ok(Reply::Flushed),
        Ask::Retrieve { offset_bytes, buffer_bytes } => {
            let value_bytes = entry.dword0.get();
            if data.len() as u64 != u64::from(value_bytes.min(buffer_bytes)) {
                let (got, why) = (data.len(), "the drive sent another number of bytes than it says the value has");
                return Err(Error::Damaged { why: format!("{why}: {got}, not {}", value_bytes.min(buffer_bytes)) });
            }
            let part = data.get(offset_bytes as usize..).unwrap_or_default();
            Ok(Reply::Retrieved { value: Value::from(part), value_bytes })
        }
        Ask::List { keys_max } => list(&data, keys_max).map(Reply::Listed),
    }
}

fn list(data: &[u8], keys_max: usize) -> Result<Vec<Box<[u8]>>, Error> {
    let damaged = || Error::Damaged { why: "the drive sent a list of keys that is cut off".to_owned() };
    let keys = ListReader::new(data).map_err(|_| damaged())?;
    keys.take(keys_max).map(|key| key.map(Into::into).map_err(|_| damaged())).collect()
}
