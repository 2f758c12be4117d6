//! I/O commands that are ready to be executed.

use crate::memory::MemoryShare;
use kvssd_nvme_spec::kv::KvCommand;
use kvssd_types::Nanos;
use std::sync::Arc;

/// An I/O command whose data has come.
#[derive(Debug)]
pub(crate) struct IoCommand {
    pub(crate) command_id: u16,
    pub(crate) namespace: u32,
    pub(crate) command: KvCommand,
    /// The serial of a change, if its host numbers them (see [`kvssd_nvme_spec::numbered`]).
    pub(crate) serial: Option<u64>,
    /// The value of a Store.
    pub(crate) value: Option<Arc<[u8]>>,
    /// The memory of a value that was transferred by R2T.
    pub(crate) share: Option<MemoryShare>,
    pub(crate) arrived: Nanos,
}

impl IoCommand {
    /// The most bytes of data that a completion of a Retrieve comes with, where no value has more than so many.
    pub(crate) fn data_bytes_max(&self, value_bytes_max: u64) -> u64 {
        match self.command {
            KvCommand::Retrieve { buffer_bytes, .. } => u64::from(buffer_bytes).min(value_bytes_max),
            _ => 0,
        }
    }

    /// Whether its completion may come with data.
    pub(crate) fn may_return_data(&self) -> bool {
        matches!(self.command, KvCommand::Retrieve { .. } | KvCommand::List { .. })
    }
}
