//! Data that was asked for by R2T.
//!
//! ```text
//!   Store of 2 MiB  ->  waits for room  ->  R2T, tag 3  ->  H2CData, tag 3, from 0 on, in order  ->  whole
//! ```

use crate::limits::{TRANSFER_BYTE_NS, TRANSFER_BYTES_MAX, TRANSFERS_MAX};
use crate::memory::{Held, Memory};
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

/// A command whose data is to come.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) entry: SubmissionEntry,
    pub(super) length_bytes: u32,
    pub(super) arrived: Nanos,
}

/// A command whose data is on its way.
#[derive(Debug)]
struct Transfer {
    pending: Pending,
    buffer: Arc<[u8]>,
    held: Held,
    filled: usize,
    is_intact: bool,
    /// When it was asked for.
    asked: Nanos,
    /// When the last part came.
    heard: Nanos,
}

/// A command whose data is there.
#[derive(Debug)]
pub(super) struct Complete {
    pub(super) entry: SubmissionEntry,
    pub(super) data: Arc<[u8]>,
    pub(super) held: Held,
    /// What was sent is what came.
    pub(super) is_intact: bool,
    pub(super) arrived: Nanos,
}

/// All of a connection.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    /// By tag.
    slots: Vec<Option<Transfer>>,
    waiting: VecDeque<Pending>,
    under_way: usize,
    bytes: u64,
}

impl Transfers {
    /// A command needs data.
    pub(super) fn add(&mut self, pending: Pending) {
        self.waiting.push_back(pending);
    }

    /// The next data that there is room for, here and in the `memory` of all.
    pub(super) fn next_request(&mut self, memory: &Arc<Memory>, now: Nanos) -> Option<R2tHeader> {
        let bytes = u64::from(self.waiting.front()?.length_bytes);
        if self.under_way >= TRANSFERS_MAX || (self.bytes > 0 && self.bytes + bytes > TRANSFER_BYTES_MAX) {
            return None;
        }
        let held = memory.take(bytes)?;
        let pending = self.waiting.pop_front()?;
        let request = |tag: usize| R2tHeader::new(pending.entry.command_id.get(), tag as u16, 0, pending.length_bytes);
        let tag = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        let header = request(tag);
        let buffer = std::iter::repeat_n(0, pending.length_bytes as usize).collect();
        let transfer = Some(Transfer { pending, buffer, held, filled: 0, is_intact: true, asked: now, heard: now });
        match self.slots.get_mut(tag) {
            Some(slot) => *slot = transfer,
            None => self.slots.push(transfer),
        }
        self.under_way += 1;
        self.bytes += bytes;
        Some(header)
    }

    /// A part has come; gives the command when that was the last one.
    pub(super) fn receive(
        &mut self,
        header: &DataHeader,
        data: &[u8],
        is_last: bool,
        is_intact: bool,
        now: Nanos,
    ) -> Result<Option<Complete>, Fault> {
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
        transfer.heard = now;
        if !is_whole {
            return Ok(None);
        }
        let whole = slot.take();
        self.under_way -= 1;
        Ok(whole.map(|Transfer { pending, buffer, held, is_intact, .. }| {
            self.bytes -= buffer.len() as u64;
            Complete { entry: pending.entry, data: buffer, held, is_intact, arrived: pending.arrived }
        }))
    }

    /// When the next part of a transfer, or all of one, must be there, if each may wait so long for the next.
    pub(super) fn expires(&self, wait: Nanos) -> Option<Nanos> {
        if self.under_way == 0 {
            return None;
        }
        let expires = |transfer: &Transfer| {
            let whole = transfer.asked + Nanos(TRANSFER_BYTE_NS * u64::from(transfer.pending.length_bytes));
            transfer.heard.min(whole) + wait
        };
        self.slots.iter().flatten().map(expires).min()
    }
}
