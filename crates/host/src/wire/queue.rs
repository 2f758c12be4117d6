//! A queue of a controller, over one connection of NVMe/TCP: commands in, answers out, and bytes both ways. Without I/O.
//!
//! ```text
//!   submit(entry, payload) -> number      takes a slot             CapsuleCmd  -> outgoing
//!   receive(bytes)                        R2T                      H2CData     -> outgoing
//!                                         C2HData                  data of the slot
//!                                         CapsuleResp              the slot is answered
//!   take(number) -> answer                frees the slot
//! ```
//!
//! At most as many commands are under way as there are slots; the bytes that a peer can have kept here are those that the commands
//! under way asked for, and one PDU. Data that was not asked for, out of order or too long, an answer to nothing, a wrong digest: each
//! ends the connection, and none becomes a value.
//!
//! What it does not do: threads, time, or knowing what a command means.

use kvssd_spec::fabrics::FABRICS_OPCODE;
use kvssd_spec::pdu::{DataHeader, Decoded, Fault, FaultStatus, Framing, IcResponse, Pdu, R2tHeader, Sender};
use kvssd_spec::{CompletionEntry, DataPointer, Status, SubmissionEntry};
use std::fmt;
use std::sync::Arc;

/// The least that a controller takes in one PDU of data (MAXH2CDATA).
const HOST_DATA_BYTES_MIN: u32 = 4096;

/// Which of the commands that are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandId(u16);

impl CommandId {
    /// Below the depth of the queue.
    pub(crate) fn index(self) -> usize {
        self.0.into()
    }
}

/// The data of a command.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    None,
    /// To the host, at most so many bytes.
    In(u32),
    /// To the controller.
    Out(Arc<[u8]>),
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) entry: CompletionEntry,
    pub(crate) data: Vec<u8>,
}

/// What the peer did that ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// A PDU that cannot be, or not now.
    Pdu(Fault),
    /// The peer says that something was wrong with what it was sent.
    Terminated(Fault),
    /// Data is not what was sent, its digest says.
    DataDigest,
}

impl From<Fault> for Breach {
    fn from(fault: Fault) -> Self {
        Breach::Pdu(fault)
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Breach::Pdu(fault) => write!(f, "the drive sent what NVMe/TCP does not have there: {fault}"),
            Breach::Terminated(fault) => write!(f, "the drive ended the connection: {fault}"),
            Breach::DataDigest => f.write_str("data came with a wrong digest"),
        }
    }
}

/// How a queue is talked to, beside what the controller says when the connection begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    /// Commands under way at a time.
    pub(crate) depth: u16,
    /// Data that a capsule takes; what is longer waits for an R2T.
    pub(crate) capsule_data_bytes_max: u32,
    /// The most data that any command asks for.
    pub(crate) data_bytes_max: u32,
}

/// One queue over one connection.
#[derive(Debug)]
pub(crate) struct Queue {
    framing: Framing,
    host_data_bytes_max: u32,
    capsule_data_bytes_max: u32,
    slots: Vec<Slot>,
    free: Vec<CommandId>,
    /// The begin of a PDU.
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

#[derive(Debug)]
enum Slot {
    Free,
    UnderWay { buffer_bytes: u32, data: Vec<u8>, value: Option<Arc<[u8]>>, sent_bytes: u32 },
    Answered(Answer),
}

impl Queue {
    /// A queue whose connection began with that response.
    pub(crate) fn new(response: &IcResponse, limits: QueueLimits) -> Result<Queue, Breach> {
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
        Ok(Queue {
            framing,
            host_data_bytes_max,
            capsule_data_bytes_max: limits.capsule_data_bytes_max,
            slots: (0..limits.depth).map(|_| Slot::Free).collect(),
            free: (0..limits.depth).rev().map(CommandId).collect(),
            incoming: Vec::new(),
            outgoing: Vec::new(),
        })
    }

    /// Whether no slot is free.
    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Starts a command; none when no slot is free.
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
        self.slots[id.index()] = Slot::UnderWay { buffer_bytes, data: Vec::new(), value, sent_bytes: 0 };
        Some(id)
    }

    /// What is to be sent; the sender takes it out.
    pub(crate) fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    /// The answer to a command, once, which frees its slot.
    pub(crate) fn take(&mut self, id: CommandId) -> Option<Answer> {
        let slot = &mut self.slots[id.index()];
        if !matches!(slot, Slot::Answered(_)) {
            return None;
        }
        self.free.push(id);
        match std::mem::replace(slot, Slot::Free) {
            Slot::Answered(answer) => Some(answer),
            _ => unreachable!("it was looked at above"),
        }
    }

    /// Whether no command is under way, and no answer left.
    pub(crate) fn is_idle(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// The commands whose answers are awaited.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = CommandId> {
        let is_under_way = |id: &CommandId| matches!(self.slots[id.index()], Slot::UnderWay { .. });
        (0..self.slots.len() as u16).map(CommandId).filter(is_under_way)
    }

    /// Takes in bytes; tells `answered` of each command whose answer they complete.
    pub(crate) fn receive(&mut self, bytes: &[u8], mut answered: impl FnMut(CommandId)) -> Result<(), Breach> {
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
                return Err(Breach::DataDigest);
            }
            if let Some(id) = self.accept(pdu)? {
                answered(id);
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

    /// Takes in a PDU; gives the command that it answers.
    fn accept(&mut self, pdu: Pdu<'_>) -> Result<Option<CommandId>, Breach> {
        match pdu {
            Pdu::Response(entry) => self.answer(entry).map(Some),
            Pdu::Data { header, is_success, data, .. } => {
                self.append(&header, data)?;
                if !is_success {
                    return Ok(None);
                }
                // The answer is left out: what came is all there is.
                let entry = CompletionEntry::new(header.command_id.get(), Status::Success);
                let value_bytes = u64::from(header.offset_bytes.get()) + data.len() as u64;
                self.answer(entry.with_result(value_bytes)).map(Some)
            }
            Pdu::ReadyToTransfer(header) => self.send_part(&header).map(|()| None),
            Pdu::Terminate { fault, .. } => Err(Breach::Terminated(fault)),
            Pdu::IcRequest(_) | Pdu::IcResponse(_) | Pdu::Command { .. } => {
                Err(Fault::of(FaultStatus::Sequence).into())
            }
        }
    }

    fn answer(&mut self, entry: CompletionEntry) -> Result<CommandId, Breach> {
        let id = CommandId(entry.command_id.get());
        match self.slots.get_mut(id.index()) {
            Some(slot @ Slot::UnderWay { .. }) => {
                let Slot::UnderWay { data, .. } = std::mem::replace(slot, Slot::Free) else {
                    unreachable!("it was looked at above")
                };
                *slot = Slot::Answered(Answer { entry, data });
                Ok(id)
            }
            _ => Err(Fault::of(FaultStatus::Sequence).into()),
        }
    }

    fn append(&mut self, header: &DataHeader, part: &[u8]) -> Result<(), Breach> {
        let out_of_range = Fault::of(FaultStatus::DataOutOfRange);
        let Some(Slot::UnderWay { buffer_bytes, data, .. }) = self.slots.get_mut(usize::from(header.command_id.get()))
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

    /// Sends the part of a value that the controller is ready for.
    fn send_part(&mut self, header: &R2tHeader) -> Result<(), Breach> {
        let (begin, length_bytes) = (header.offset_bytes.get(), header.length_bytes.get());
        let out_of_range = Fault::of(FaultStatus::DataOutOfRange);
        let slot = self.slots.get_mut(usize::from(header.command_id.get()));
        let Some(Slot::UnderWay { value: Some(value), sent_bytes, .. }) = slot else { return Err(out_of_range.into()) };
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
