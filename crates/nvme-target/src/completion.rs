//! Completions, with what they are made from.

use crate::command_kind::CommandKind;
use kvssd_nvme_spec::{CompletionEntry, Status};
use kvssd_types::{Nanos, Value};

/// Data to the host.
#[derive(Debug, Default)]
pub(crate) enum Data {
    #[default]
    None,
    Value(Value),
    /// A data structure or a list.
    Bytes(Vec<u8>),
}

/// A completion queue entry to be, with the data that goes before it.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) command_id: u16,
    pub(crate) status: Status,
    /// Dwords 0 and 1 of the completion.
    pub(crate) result: u64,
    pub(crate) data: Data,
    /// When the command arrived.
    pub(crate) arrived: Nanos,
    /// It is not sent before.
    pub(crate) due: Nanos,
    pub(crate) kind: CommandKind,
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

impl Completion {
    /// A completion that is due at once.
    pub(crate) fn new(command_id: u16, kind: CommandKind, arrived: Nanos, outcome: Outcome) -> Self {
        let completion =
            |status, result, data| Completion { command_id, status, result, data, arrived, due: Nanos::ZERO, kind };
        match outcome {
            Ok(Success { result, data }) => completion(Status::Success, result, data),
            Err(Failure { status, result }) => completion(status, result, Data::None),
        }
    }

    pub(crate) fn entry(&self, queue_head: u16) -> CompletionEntry {
        let entry = CompletionEntry::new(self.command_id, self.status).with_result(self.result);
        CompletionEntry { queue_head: queue_head.into(), ..entry }
    }
}

/// What a successful command returns.
#[derive(Debug, Default)]
pub(crate) struct Success {
    pub(crate) result: u64,
    pub(crate) data: Data,
}

impl Success {
    pub(crate) fn with_result(result: u64) -> Self {
        Success { result, data: Data::None }
    }

    pub(crate) fn with_data(data: Vec<u8>) -> Self {
        Success { result: 0, data: Data::Bytes(data) }
    }
}

/// The status of a command that failed, with dwords 0 and 1 of its completion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) result: u64,
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Failure { status, result: 0 }
    }
}

/// The end of a command.
pub(crate) type Outcome = Result<Success, Failure>;
