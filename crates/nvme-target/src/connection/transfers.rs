//! Data to the controller that is transferred by R2T.
//!
//! ```text
//!   Store of 2 MiB  ->  waits for memory  ->  R2T, tag 3  ->  H2CData, tag 3, in order from offset 0  ->  complete
//! ```

use crate::limits::{TRANSFER_BYTE_NS, TRANSFER_BYTES_MAX, TRANSFERS_MAX};
use crate::memory::{MemoryBudget, MemoryShare};
use kvssd_nvme_spec::SubmissionEntry;
use kvssd_nvme_spec::pdu::{DataHeader, Fault, FaultStatus, R2tHeader};
use kvssd_types::Nanos;
use std::collections::VecDeque;
use std::sync::Arc;

/// Offset of CCCID in a data PDU.
const AT_COMMAND_ID: u32 = 8;
/// Offset of TTAG in a data PDU.
const AT_TAG: u32 = 10;
/// Offset of the flags in a PDU.
const AT_FLAGS: u32 = 1;

/// A command whose data is to be requested.
#[derive(Debug)]
pub(super) struct PendingTransfer {
    pub(super) entry: SubmissionEntry,
    pub(super) length_bytes: u32,
    pub(super) arrived: Nanos,
}

/// A command whose data was requested.
#[derive(Debug)]
struct Transfer {
    pending: PendingTransfer,
    buffer: Arc<[u8]>,
    share: MemoryShare,
    filled: usize,
    is_intact: bool,
    /// When the R2T was sent.
    requested: Nanos,
    /// When the last H2CData came.
    last_data: Nanos,
}

/// A command whose data has come.
#[derive(Debug)]
pub(super) struct CompleteTransfer {
    pub(super) entry: SubmissionEntry,
    pub(super) data: Arc<[u8]>,
    pub(super) share: MemoryShare,
    /// All data matched its digests.
    pub(super) is_intact: bool,
    pub(super) arrived: Nanos,
}

/// The transfers of a connection.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    /// By TTAG.
    slots: Vec<Option<Transfer>>,
    waiting: VecDeque<PendingTransfer>,
    outstanding: usize,
    bytes: u64,
}

impl Transfers {
    /// Adds a command that needs data.
    pub(super) fn add(&mut self, pending: PendingTransfer) {
        self.waiting.push_back(pending);
    }

    /// The R2T of the next command, if there is room for its data here and in `memory`.
    pub(super) fn next_request(&mut self, memory: &Arc<MemoryBudget>, now: Nanos) -> Option<R2tHeader> {
        let bytes = u64::from(self.waiting.front()?.length_bytes);
        if self.outstanding >= TRANSFERS_MAX || (self.bytes > 0 && self.bytes + bytes > TRANSFER_BYTES_MAX) {
            return None;
        }
        let share = memory.reserve(bytes)?;
        let pending = self.waiting.pop_front()?;
        let tag = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        let header = R2tHeader::new(pending.entry.command_id.get(), tag as u16, 0, pending.length_bytes);
        let buffer = std::iter::repeat_n(0, pending.length_bytes as usize).collect();
        let transfer =
            Some(Transfer { pending, buffer, share, filled: 0, is_intact: true, requested: now, last_data: now });
        match self.slots.get_mut(tag) {
            Some(slot) => *slot = transfer,
            None => self.slots.push(transfer),
        }
        self.outstanding += 1;
        self.bytes += bytes;
        Some(header)
    }

    /// Takes an H2CData; returns the command if its data is complete.
    pub(super) fn receive(
        &mut self,
        header: &DataHeader,
        data: &[u8],
        is_last: bool,
        is_intact: bool,
        now: Nanos,
    ) -> Result<Option<CompleteTransfer>, Fault> {
        let tag = usize::from(header.transfer_tag.get());
        let slot = self.slots.get_mut(tag).ok_or(Fault::header(AT_TAG))?;
        let transfer = slot.as_mut().ok_or(Fault::header(AT_TAG))?;
        if transfer.pending.entry.command_id != header.command_id {
            return Err(Fault::header(AT_COMMAND_ID));
        }
        let end = transfer.filled + data.len();
        if header.offset_bytes.get() as usize != transfer.filled || end > transfer.buffer.len() {
            return Err(Fault::of(FaultStatus::DataOutOfRange));
        }
        let is_whole = end == transfer.buffer.len();
        if is_last != is_whole {
            return Err(Fault::header(AT_FLAGS));
        }
        let filled = transfer.filled;
        let buffer = Arc::get_mut(&mut transfer.buffer).expect("nobody else has a buffer that is being filled");
        buffer[filled..end].copy_from_slice(data);
        transfer.filled = end;
        transfer.is_intact &= is_intact;
        transfer.last_data = now;
        if !is_whole {
            return Ok(None);
        }
        let whole = slot.take();
        self.outstanding -= 1;
        Ok(whole.map(|Transfer { pending, buffer, share, is_intact, .. }| {
            self.bytes -= buffer.len() as u64;
            CompleteTransfer { entry: pending.entry, data: buffer, share, is_intact, arrived: pending.arrived }
        }))
    }

    /// When the first of the transfers times out: each H2CData may take `wait`, and the whole transfer as long beyond
    /// [`TRANSFER_BYTE_NS`] a byte.
    pub(super) fn deadline(&self, wait: Nanos) -> Option<Nanos> {
        if self.outstanding == 0 {
            return None;
        }
        let deadline = |transfer: &Transfer| {
            let whole = transfer.requested + Nanos(TRANSFER_BYTE_NS * u64::from(transfer.pending.length_bytes));
            transfer.last_data.min(whole) + wait
        };
        self.slots.iter().flatten().map(deadline).min()
    }
}
