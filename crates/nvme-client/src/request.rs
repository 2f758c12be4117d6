//! Commands as the Key Value command set has them, and what their completions mean.
//!
//! ```text
//!   Command    -> Request { entry, payload }      or an error: the command set has no such command
//!   Completion -> Outcome: a reply, an error, or to be sent again
//! ```
//!
//! Keys above 16 bytes and iterators are for drives that have commands for them ([`kvssd_nvme_spec::extended`]).
//!
//! What it does not do: batches. The command set has none.

use crate::Error;
use crate::meant::Place;
use crate::queue_pair::{Completion, Payload};
use kvssd_nvme_spec::extended::{IteratorRange, PairsReader};
use kvssd_nvme_spec::kv::{KEY_BYTES_MAX, KvCommand, KvKey, LONG_KEY_BYTES_MAX, StoreOptions};
use kvssd_nvme_spec::list::{LIST_HEADER_BYTES, ListReader};
use kvssd_nvme_spec::named::{CACHE_STAMP_BYTES, set_meant_birth};
use kvssd_nvme_spec::status::HOST_QUOTA;
use kvssd_nvme_spec::{Status, SubmissionEntry};
use kvssd_types::{
    Blob, Command, IteratedPair, IteratorId, IteratorOptions, Key, NamespaceId, Reply, StoreCondition, Value,
};

/// Bytes of an entry of a list with the longest key, padded.
const LIST_KEY_BYTES: usize = 20;
/// The same with keys of any length.
const LIST_LONG_KEY_BYTES: usize = 260;
/// What a pair of an iterator takes beside its value, at the most, with the numbers before the first.
const BESIDE_VALUE_BYTES: u32 = 512;
/// The most keys of one List: a buffer of 80 KiB, or of 1 MiB where keys may be long.
const LIST_KEYS_MAX: usize = 4096;

const DRIVE_FAILED: &str = "the drive has failed (internal error): its service says why, and has to be started again";

/// The limits of a namespace, by Identify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamespaceLimits {
    pub(crate) key_bytes_max: usize,
    pub(crate) value_bytes_max: u32,
    /// Delete fails where the key is missing (feature 20h, bit 0).
    pub(crate) delete_needs_key: bool,
    /// The connection, if the drive has the commands of [`kvssd_nvme_spec::extended`]: iterators are its own.
    pub(crate) extended: Option<u32>,
    /// Its number, and which one of that number it is ([`kvssd_nvme_spec::named`]).
    pub(crate) place: Place,
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
    Store {
        value_bytes: u32,
        limits: NamespaceLimits,
    },
    Retrieve {
        offset_bytes: u32,
        buffer_bytes: u32,
    },
    Delete,
    Exist,
    List {
        keys_max: usize,
    },
    Flush,
    /// On that connection.
    CreateIterator {
        connection: u32,
    },
    Iterate,
    DestroyIterator,
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
    pub(crate) fn new(command: Command<'_>, limits: NamespaceLimits) -> Result<Request, Error> {
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
                let key = key(of)?;
                let payload = match (value.is_empty(), key.is_long()) {
                    (true, false) => Payload::None,
                    (false, false) => Payload::Out(value),
                    (_, true) => Payload::Out([key.bytes(), &value].concat().into()),
                };
                let operation = Operation::Store { value_bytes, limits };
                (KvCommand::Store { key, value_bytes, options }, payload, operation)
            }
            Command::Retrieve { key: of, offset_bytes, length_bytes } => {
                let buffer_bytes = offset_bytes.saturating_add(length_bytes).min(limits.value_bytes_max);
                let command = KvCommand::Retrieve { key: key(of)?, buffer_bytes };
                let payload = both_ways(&command, buffer_bytes);
                (command, payload, Operation::Retrieve { offset_bytes, buffer_bytes })
            }
            Command::Delete { key: of } => {
                let command = KvCommand::Delete { key: key(of)? };
                let payload = out(&command);
                (command, payload, Operation::Delete)
            }
            Command::Exist { key: of } => {
                let command = KvCommand::Exist { key: key(of)? };
                let payload = out(&command);
                (command, payload, Operation::Exist)
            }
            Command::List { from, keys_max } => {
                let keys_max = keys_max.min(LIST_KEYS_MAX);
                let from = from.map(key).transpose()?;
                let key_bytes = if limits.extended.is_some() { LIST_LONG_KEY_BYTES } else { LIST_KEY_BYTES };
                let buffer_bytes = (LIST_HEADER_BYTES + keys_max * key_bytes) as u32;
                let command = match limits.extended {
                    Some(_) => KvCommand::ListLong { from, buffer_bytes },
                    None => KvCommand::List { from, buffer_bytes },
                };
                let payload = both_ways(&command, buffer_bytes);
                (command, payload, Operation::List { keys_max })
            }
            Command::Flush => (KvCommand::Flush, Payload::None, Operation::Flush),
            Command::Batch { .. } => {
                return Err(Error::not_in_the_command_set("batches that are made all or none"));
            }
            Command::CreateIterator { .. }
            | Command::Seek { .. }
            | Command::Next { .. }
            | Command::DestroyIterator { .. } => iteration(&command, limits)?,
            Command::Read { .. } | Command::Write { .. } | Command::Deallocate { .. } => {
                return Err(Error::not_in_the_command_set("blocks"));
            }
        };
        let mut entry = command.entry(limits.place.number.0);
        if let Some(birth) = limits.place.birth {
            set_meant_birth(&mut entry, birth);
        }
        Ok(Request { entry, payload, operation })
    }

    /// The most data that any command may get, in bytes.
    pub(crate) const fn data_bytes_max(value_bytes_max: u32) -> u32 {
        let list_bytes = (LIST_HEADER_BYTES + LIST_KEYS_MAX * LIST_LONG_KEY_BYTES) as u32;
        let pair_bytes = value_bytes_max.saturating_add(BESIDE_VALUE_BYTES);
        if pair_bytes > list_bytes { pair_bytes } else { list_bytes }
    }
}

/// Bytes of the longest key.
pub(crate) fn key_bytes_max(limits: NamespaceLimits) -> usize {
    match limits.extended {
        Some(_) => LONG_KEY_BYTES_MAX,
        None => limits.key_bytes_max.min(KEY_BYTES_MAX),
    }
}

fn key_of(key: Key<'_>, limits: NamespaceLimits) -> Result<KvKey, Error> {
    let key_bytes_max = key_bytes_max(limits);
    let too_long = Error::InvalidKey { key_bytes: key.bytes().len(), key_bytes_max };
    if key.bytes().len() > key_bytes_max {
        return Err(too_long);
    }
    KvKey::long(key.bytes()).map_err(|_| too_long)
}

/// What goes to the controller with a command that has no value.
fn out(command: &KvCommand) -> Payload {
    let lead = command.lead();
    if lead.is_empty() { Payload::None } else { Payload::Out(lead.into()) }
}

/// The same of a command that gets up to so many bytes.
fn both_ways(command: &KvCommand, buffer_bytes: u32) -> Payload {
    let lead = command.lead();
    if lead.is_empty() { Payload::In(buffer_bytes) } else { Payload::Both(lead.into(), buffer_bytes) }
}

/// The commands of iterators. They are those of a connection, whose number is the upper half of theirs.
fn iteration(command: &Command<'_>, limits: NamespaceLimits) -> Result<(KvCommand, Payload, Operation), Error> {
    let connection = limits.extended.ok_or_else(|| Error::not_in_the_command_set("iterators and snapshots"))?;
    let number = |iterator: IteratorId| {
        let is_here = iterator.0 >> 32 == u64::from(connection);
        is_here.then_some(iterator.0 as u32).ok_or_else(iterator_ended)
    };
    let buffer_bytes = limits.value_bytes_max.saturating_add(BESIDE_VALUE_BYTES);
    let (command, operation) = match *command {
        Command::CreateIterator { options } => {
            let IteratorOptions { prefix, first, end, descending, keys_only } = options;
            let longest = [prefix, first, end.unwrap_or_default()].into_iter().map(<[u8]>::len).max().unwrap_or(0);
            if longest > LONG_KEY_BYTES_MAX {
                return Err(Error::InvalidKey { key_bytes: longest, key_bytes_max: LONG_KEY_BYTES_MAX });
            }
            let (prefix, first, end) = (prefix.to_vec(), first.to_vec(), end.map(<[u8]>::to_vec));
            let range = IteratorRange { prefix, first, end, descending, keys_only };
            (KvCommand::CreateIterator(Box::new(range)), Operation::CreateIterator { connection })
        }
        Command::Seek { iterator, key: to, pairs_max } => {
            let seek = Some(to.map(|key| key_of(key, limits)).transpose()?);
            let iterator = number(iterator)?;
            (KvCommand::Iterate { iterator, seek, pairs_max, buffer_bytes }, Operation::Iterate)
        }
        Command::Next { iterator, pairs_max } => {
            let iterator = number(iterator)?;
            (KvCommand::Iterate { iterator, seek: None, pairs_max, buffer_bytes }, Operation::Iterate)
        }
        Command::DestroyIterator { iterator } => {
            let iterator = number(iterator)?;
            (KvCommand::DestroyIterator { iterator }, Operation::DestroyIterator)
        }
        _ => return Err(Error::not_in_the_command_set("such iterators")),
    };
    let payload = match command {
        KvCommand::Iterate { .. } => both_ways(&command, buffer_bytes),
        _ => out(&command),
    };
    Ok((command, payload, operation))
}

fn iterator_ended() -> Error {
    let why = "the iterator has ended: with its connection, its namespace, or since it was idle or the drive needed what \
               it kept; another one goes on from the last key";
    Error::Refused(why.to_owned())
}

fn bytes_of(value: Value) -> Blob {
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
    let is_quota = completion.entry.dword0.get() == HOST_QUOTA;
    let done = match status {
        Status::CapacityExceeded if is_quota => Err(Error::QuotaExceeded),
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
        (Status::IteratorEnded, _) => iterator_ended(),
        (Status::TooManyIterators, _) => {
            let why = "there is no memory for another iterator, or this host has its most: end one, or wait for others";
            Error::Refused(why.to_owned())
        }
        (Status::InvalidOpcode, Operation::CreateIterator { .. }) => {
            Error::Refused("keys of this namespace have no order".to_owned())
        }
        (Status::CapacityExceeded, _) => Error::CapacityExceeded,
        (Status::InvalidValueSize, Operation::Store { value_bytes, limits }) => {
            // Larger ones are not sent: it is a cache.
            let stamp_bytes = if limits.extended.is_some() { CACHE_STAMP_BYTES } else { 0 };
            let value_bytes_max = u64::from(limits.value_bytes_max.saturating_sub(stamp_bytes));
            Error::InvalidValue { value_bytes: value_bytes.into(), value_bytes_max }
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
        Operation::CreateIterator { connection } => {
            let number = u64::from(connection) << 32 | u64::from(entry.dword0.get());
            Ok(Reply::IteratorCreated(IteratorId(number)))
        }
        Operation::Iterate => pairs(&data).map(Reply::Pairs),
        Operation::DestroyIterator => Ok(Reply::IteratorDestroyed),
    }
}

fn list(data: &[u8], keys_max: usize) -> Result<Vec<Box<[u8]>>, Error> {
    let damaged = || Error::Damaged("the drive sent a list of keys that is cut off".to_owned());
    let keys = ListReader::new(data).map_err(|_| damaged())?;
    keys.take(keys_max).map(|key| key.map(Into::into).map_err(|_| damaged())).collect()
}

fn pairs(data: &[u8]) -> Result<Vec<IteratedPair>, Error> {
    let damaged = || Error::Damaged("the drive sent pairs of an iterator that are cut off".to_owned());
    let reader = PairsReader::new(data).map_err(|_| damaged())?;
    if data.len() <= 8 && reader.next_bytes > 0 {
        return Err(Error::Damaged("the drive has a pair that is larger than its largest value".to_owned()));
    }
    let owned = |(key, value): (&[u8], &[u8])| (key.into(), Some(Value::from(value)));
    reader.map(|pair| pair.map(owned).map_err(|_| damaged())).collect()
}
