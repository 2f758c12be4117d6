//! Commands on their way through a connection, and their answers.

use crate::memory::Held;
use kvssd_nvme_spec::kv::KvCommand;
use kvssd_nvme_spec::{CompletionEntry, Status};
use kvssd_types::{Nanos, Value};
use std::sync::Arc;

/// An I/O command that has all it needs.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) command_id: u16,
    pub(crate) namespace: u32,
    pub(crate) command: KvCommand,
    /// What its host would know it by, if it has numbered its changes.
    pub(crate) serial: Option<u64>,
    /// Of a Store.
    pub(crate) value: Option<Arc<[u8]>>,
    /// The memory of a value that came behind its command.
    pub(crate) held: Option<Held>,
    /// When it came.
    pub(crate) arrived: Nanos,
}

impl Work {
    /// Whether its answer may have data.
    pub(crate) fn gives_data(&self) -> bool {
        matches!(self.command, KvCommand::Retrieve { .. } | KvCommand::List { .. })
    }
}

/// What a command gives besides its completion.
#[derive(Debug, Default)]
pub(crate) enum Data {
    /// Nothing.
    #[default]
    None,
    /// A value.
    Value(Value),
    /// What was put together for it.
    Bytes(Vec<u8>),
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) command_id: u16,
    pub(crate) status: Status,
    /// Dwords 0 and 1 of the completion.
    pub(crate) result: u64,
    pub(crate) data: Data,
    /// When the command came.
    pub(crate) arrived: Nanos,
    /// Nobody is to know before.
    pub(crate) due: Nanos,
    /// What it is counted as.
    pub(crate) kind: Kind,
}

/// What commands are counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Store,
    Retrieve,
    List,
    Delete,
    Exist,
    Flush,
    Admin,
    Fabrics,
    /// An opcode that is not known.
    Other,
}

impl Kind {
    pub(crate) const ALL: [Kind; 9] = [
        Kind::Store,
        Kind::Retrieve,
        Kind::List,
        Kind::Delete,
        Kind::Exist,
        Kind::Flush,
        Kind::Admin,
        Kind::Fabrics,
        Kind::Other,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Store => "store",
            Kind::Retrieve => "retrieve",
            Kind::List => "list",
            Kind::Delete => "delete",
            Kind::Exist => "exist",
            Kind::Flush => "flush",
            Kind::Admin => "admin",
            Kind::Fabrics => "fabrics",
            Kind::Other => "other",
        }
    }

    pub(crate) fn of(command: &KvCommand) -> Kind {
        match command {
            KvCommand::Store { .. } => Kind::Store,
            KvCommand::Retrieve { .. } => Kind::Retrieve,
            KvCommand::List { .. } => Kind::List,
            KvCommand::Delete { .. } => Kind::Delete,
            KvCommand::Exist { .. } => Kind::Exist,
            KvCommand::Flush => Kind::Flush,
        }
    }
}

impl Data {
    pub(crate) fn len(&self) -> usize {
        match self {
            Data::None => 0,
            Data::Value(value) => value.len(),
            Data::Bytes(bytes) => bytes.len(),
        }
    }
}

impl Answer {
    /// The answer to a command that is over at once.
    pub(crate) fn new(command_id: u16, kind: Kind, arrived: Nanos, outcome: Outcome) -> Self {
        let answer =
            |status, result, data| Answer { command_id, status, result, data, arrived, due: Nanos::ZERO, kind };
        match outcome {
            Ok(Done { result, data }) => answer(Status::Success, result, data),
            Err(Refusal { status, result }) => answer(status, result, Data::None),
        }
    }

    pub(crate) fn completion(&self, queue_head: u16) -> CompletionEntry {
        let entry = CompletionEntry::new(self.command_id, self.status).with_result(self.result);
        CompletionEntry { queue_head: queue_head.into(), ..entry }
    }
}

/// What a command gave that went well.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) result: u64,
    pub(crate) data: Data,
}

impl Done {
    pub(crate) fn with_result(result: u64) -> Self {
        Done { result, data: Data::None }
    }

    pub(crate) fn with_data(data: Vec<u8>) -> Self {
        Done { result: 0, data: Data::Bytes(data) }
    }
}

/// Why a command was refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) result: u64,
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Refusal { status, result: 0 }
    }
}

/// How a command ended.
pub(crate) type Outcome = Result<Done, Refusal>;
