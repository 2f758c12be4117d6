//! A submission queue and its completion queue, over one connection of NVMe/TCP. Without I/O.
//!
//! ```text
//!   submit(entry, payload) -> id      takes a slot             CapsuleCmd  -> outgoing
//!   receive(bytes)                    R2T                      H2CData     -> outgoing
//!                                     C2HData                  data of the slot
//!                                     CapsuleResp              the slot is completed
//!   take(id) -> completion            frees the slot
//! ```
//!
//! There are no more outstanding commands than slots. A peer can have no more bytes kept here than the outstanding
//! commands asked for, and one PDU. Data that was not asked for, out of order or too long, a completion of no command,
//! a wrong digest: each is a [`ProtocolError`], and none becomes a value.
//!
//! What it does not do: threads, time, or knowing what a command means.

use kvssd_nvme_spec::fabrics::FABRICS_OPCODE;
use kvssd_nvme_spec::pdu::{DataHeader, Decoded, Fault, FaultStatus, Framing, IcResponse, Pdu, R2tHeader, Sender};
use kvssd_nvme_spec::{CompletionEntry, DataPointer, Status, SubmissionEntry};
use kvssd_types::Blob;
use std::fmt;

/// The smallest MAXH2CDATA that a controller may have, in bytes.
const HOST_DATA_BYTES_MIN: u32 = 4096;

/// CID of an outstanding command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandId(u16);

impl CommandId {
    /// Below the depth of the queue.
    pub(crate) fn index(self) -> usize {
        self.0.into()
    }
}

/// The data of a command, and which way it goes.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    None,
    /// To the host, at most that many bytes.
    In(u32),
    /// To the controller.
    Out(Blob),
    /// To the controller, in the capsule, and to the host, at most that many bytes.
    Both(Blob, u32),
}

/// A completion queue entry, with the data that came before it.
#[derive(Clone, Debug)]
pub(crate) struct Completion {
    pub(crate) entry: CompletionEntry,
    pub(crate) data: Vec<u8>,
}

/// What a peer sent that ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolError {
    /// A PDU that is invalid, or out of sequence.
    Pdu(Fault),
    /// C2HTermReq: the controller found such a fault in what it was sent.
    Terminated(Fault),
    /// Data does not match its digest (DDGST).
    DataDigest,
}

impl From<Fault> for ProtocolError {
    fn from(fault: Fault) -> Self {
        ProtocolError::Pdu(fault)
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProtocolError::Pdu(fault) => write!(f, "the drive sent what NVMe/TCP does not have there: {fault}"),
            ProtocolError::Terminated(fault) => write!(f, "the drive ended the connection: {fault}"),
            ProtocolError::DataDigest => f.write_str("data came with a wrong digest"),
        }
    }
}

/// The limits of a queue pair, beside those of the ICResp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    /// The most outstanding commands.
    pub(crate) depth: u16,
    /// The most in-capsule data; longer data waits for an R2T.
    pub(crate) capsule_data_bytes_max: u32,
    /// The most data that a command asks for.
    pub(crate) data_bytes_max: u32,
}

/// The two queues, and the PDUs that are on their way in and out.
#[derive(Debug)]
pub(crate) struct QueuePair {
    framing: Framing,
    host_data_bytes_max: u32,
    capsule_data_bytes_max: u32,
    slots: Vec<Slot>,
    free: Vec<CommandId>,
    /// A PDU that has not come completely.
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

#[derive(Debug)]
enum Slot {
    Free,
    Outstanding { buffer_bytes: u32, data: Vec<u8>, value: Option<Blob>, sent_bytes: u32 },
    Completed(Completion),
}

impl QueuePair {
    /// The queue pair of a connection that was initialized with `response`.
    pub(crate) fn new(response: &IcResponse, limits: QueueLimits) -> Result<QueuePair, ProtocolError> {
        let (header_digest, data_digest) = response.digests();
        let host_data_bytes_max = response.data_bytes_max.get();
        if response.version.get() != 0 || response.data_alignment > 31 || host_data_bytes_max < HOST_DATA_BYTES_MIN {
            return Err(Fault::of(FaultStatus::UnsupportedParameter).into());
        }
        let framing = Framing {
            header_digest,
            data_digest,
            data_alignment_bytes: (u32::from(response.data_alignment) + 1) * 4,
            capsule_data_bytes_max: 0,
            data_bytes_max: limits.data_bytes_max,
        };
        Ok(QueuePair {
            framing,
            host_data_bytes_max,
            capsule_data_bytes_max: limits.capsule_data_bytes_max,
            slots: (0..limits.depth).map(|_| Slot::Free).collect(),
            free: (0..limits.depth).rev().map(CommandId).collect(),
            incoming: Vec::new(),
            outgoing: Vec::new(),
        })
    }

    /// Whether another command must wait.
    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Submits a command; `None` when the queue is full.
    pub(crate) fn submit(&mut self, entry: &SubmissionEntry, payload: &Payload) -> Option<CommandId> {
        let id = self.free.pop()?;
        let mut entry = *entry;
        entry.command_id = id.0.into();
        let (mut buffer_bytes, mut value, mut in_capsule): (u32, _, &[u8]) = (0, None, &[]);
        entry.data = match payload {
            Payload::None => DataPointer::NONE,
            Payload::In(bytes) => {
                buffer_bytes = *bytes;
                DataPointer::Transport { length_bytes: *bytes }
            }
            Payload::Both(bytes, back_bytes) => {
                (buffer_bytes, in_capsule) = (*back_bytes, bytes);
                DataPointer::InCapsule { offset_bytes: 0, length_bytes: bytes.len() as u32 }
            }
            Payload::Out(bytes) => {
                let length_bytes = bytes.len() as u32;
                if entry.opcode == FABRICS_OPCODE || length_bytes <= self.capsule_data_bytes_max {
                    in_capsule = bytes;
                    DataPointer::InCapsule { offset_bytes: 0, length_bytes }
                } else {
                    value = Some(bytes.clone());
                    DataPointer::Transport { length_bytes }
                }
            }
        }
        .into();
        Pdu::Command { entry, data: in_capsule }.encode(&self.framing, &mut self.outgoing);
        self.slots[id.index()] = Slot::Outstanding { buffer_bytes, data: Vec::new(), value, sent_bytes: 0 };
        Some(id)
    }

    /// Bytes to send; who sends them takes them out.
    pub(crate) fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    /// The completion of a command, if it has come, which frees the slot.
    pub(crate) fn take(&mut self, id: CommandId) -> Option<Completion> {
        let slot = &mut self.slots[id.index()];
        if !matches!(slot, Slot::Completed(_)) {
            return None;
        }
        self.free.push(id);
        match std::mem::replace(slot, Slot::Free) {
            Slot::Completed(completion) => Some(completion),
            _ => unreachable!("the slot is completed, as was checked above"),
        }
    }

    /// Whether no command is outstanding, and no completion left.
    pub(crate) fn is_idle(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// The outstanding commands.
    pub(crate) fn outstanding(&self) -> impl Iterator<Item = CommandId> {
        let is_outstanding = |id: &CommandId| matches!(self.slots[id.index()], Slot::Outstanding { .. });
        (0..self.slots.len() as u16).map(CommandId).filter(is_outstanding)
    }

    /// Processes bytes from the controller; calls `completed` with each command whose completion was among them.
    pub(crate) fn receive(&mut self, bytes: &[u8], mut completed: impl FnMut(CommandId)) -> Result<(), ProtocolError> {
        let mut kept = std::mem::take(&mut self.incoming);
        let whole = if kept.is_empty() {
            bytes
        } else {
            kept.extend_from_slice(bytes);
            &kept
        };
        let mut begin = 0;
        while let Decoded::Pdu { pdu, bytes, is_data_intact } =
            Pdu::decode(&whole[begin..], Sender::Controller, &self.framing)?
        {
            if !is_data_intact {
                return Err(ProtocolError::DataDigest);
            }
            if let Some(id) = self.process(pdu)? {
                completed(id);
            }
            begin += bytes;
        }
        if kept.is_empty() {
            kept.extend_from_slice(&bytes[begin..]);
        } else {
            kept.drain(..begin);
        }
        self.incoming = kept;
        Ok(())
    }

    /// Processes a PDU; returns the command that it completes.
    fn process(&mut self, pdu: Pdu<'_>) -> Result<Option<CommandId>, ProtocolError> {
        match pdu {
            Pdu::Response(entry) => self.complete(entry).map(Some),
            Pdu::Data { header, is_success, data, .. } => {
                self.append_data(&header, data)?;
                if !is_success {
                    return Ok(None);
                }
                // The SUCCESS flag stands for a CapsuleResp: the data is all there is.
                let entry = CompletionEntry::new(header.command_id.get(), Status::Success);
                let value_bytes = u64::from(header.offset_bytes.get()) + data.len() as u64;
                self.complete(entry.with_result(value_bytes)).map(Some)
            }
            Pdu::ReadyToTransfer(header) => self.send_data(&header).map(|()| None),
            Pdu::Terminate { fault, .. } => Err(ProtocolError::Terminated(fault)),
            Pdu::IcRequest(_) | Pdu::IcResponse(_) | Pdu::Command { .. } => {
                Err(Fault::of(FaultStatus::Sequence).into())
            }
        }
    }

    fn complete(&mut self, entry: CompletionEntry) -> Result<CommandId, ProtocolError> {
        let id = CommandId(entry.command_id.get());
        match self.slots.get_mut(id.index()) {
            Some(slot @ Slot::Outstanding { .. }) => {
                let Slot::Outstanding { data, .. } = std::mem::replace(slot, Slot::Free) else {
                    unreachable!("the slot is outstanding, as was matched above")
                };
                *slot = Slot::Completed(Completion { entry, data });
                Ok(id)
            }
            _ => Err(Fault::of(FaultStatus::Sequence).into()),
        }
    }

    fn append_data(&mut self, header: &DataHeader, part: &[u8]) -> Result<(), ProtocolError> {
        let out_of_range = Fault::of(FaultStatus::DataOutOfRange);
        let Some(Slot::Outstanding { buffer_bytes, data, .. }) =
            self.slots.get_mut(usize::from(header.command_id.get()))
        else {
            return Err(out_of_range.into());
        };
        let is_next = header.offset_bytes.get() as usize == data.len();
        if !is_next || data.len() + part.len() > *buffer_bytes as usize {
            return Err(out_of_range.into());
        }
        data.extend_from_slice(part);
        Ok(())
    }

    /// Answers an R2T with the part of a value that it asks for.
    fn send_data(&mut self, header: &R2tHeader) -> Result<(), ProtocolError> {
        let (begin, length_bytes) = (header.offset_bytes.get(), header.length_bytes.get());
        let out_of_range = Fault::of(FaultStatus::DataOutOfRange);
        let slot = self.slots.get_mut(usize::from(header.command_id.get()));
        let Some(Slot::Outstanding { value: Some(value), sent_bytes, .. }) = slot else {
            return Err(out_of_range.into());
        };
        let end = begin.checked_add(length_bytes).filter(|&end| end as usize <= value.len() && length_bytes > 0);
        let end = end.filter(|_| begin == *sent_bytes).ok_or(out_of_range)?;
        let mut at = begin;
        while at < end {
            let bytes = self.host_data_bytes_max.min(end - at);
            let pdu = Pdu::Data {
                sender: Sender::Host,
                header: DataHeader::new(header.command_id.get(), header.transfer_tag.get(), at, bytes),
                is_last: at + bytes == end,
                is_success: false,
                data: &value[at as usize..][..bytes as usize],
            };
            pdu.encode(&self.framing, &mut self.outgoing);
            at += bytes;
        }
        *sent_bytes = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
