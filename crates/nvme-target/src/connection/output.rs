//! What goes out, and answers that wait for their moment.

use super::command_ids::CommandIds;
use crate::answer::{Answer, Data, Kind};
use crate::limits::PDU_DATA_BYTES_MAX;
use crate::metrics::Metrics;
use kvssd_nvme_spec::pdu::{DataHeader, Framing, Pdu, Sender};
use kvssd_types::{Nanos, Value};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A buffer that has grown beyond this is given back when it is empty.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// An answer that is made, and known to nobody.
#[derive(Debug)]
struct Held {
    answer: Answer,
    /// In which order they were made.
    number: u64,
}

impl Held {
    fn rank(&self) -> (Nanos, u64) {
        (self.answer.due, self.number)
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// The way out of a connection.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    sent: usize,
    /// Answers in the order of their making, before it is looked when they are due.
    pub(super) answers: Vec<Answer>,
    held: BinaryHeap<Reverse<Held>>,
    held_bytes: usize,
    number: u64,
}

impl Output {
    /// What is to be sent.
    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// So much of it was sent.
    pub(super) fn consume(&mut self, count: usize) {
        self.sent += count;
        assert!(self.sent <= self.bytes.len(), "more was sent than there was");
        if self.sent == self.bytes.len() {
            self.sent = 0;
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES_MAX);
        }
    }

    /// Bytes that wait, for the peer or for their moment.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.sent + self.held_bytes
    }

    pub(super) fn push(&mut self, pdu: &Pdu<'_>, framing: &Framing) {
        pdu.encode(framing, &mut self.bytes);
    }

    /// Writes the answers that are due.
    pub(super) fn release(&mut self, now: Nanos, framing: &Framing, queue: &mut CommandIds, metrics: &Metrics) {
        let mut answers = std::mem::take(&mut self.answers);
        for answer in answers.drain(..) {
            if answer.due > now {
                self.held_bytes += answer.data.len();
                self.number += 1;
                self.held.push(Reverse(Held { answer, number: self.number }));
            } else {
                self.write(&answer, now, framing, queue, metrics);
            }
        }
        self.answers = answers;
        while let Some(Reverse(first)) = self.held.peek()
            && first.answer.due <= now
            && let Some(Reverse(Held { answer, .. })) = self.held.pop()
        {
            self.held_bytes -= answer.data.len();
            self.write(&answer, now, framing, queue, metrics);
        }
    }

    /// When the next answer is due.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.held.peek().map(|Reverse(held)| held.answer.due)
    }

    /// Data first, in order, and the completion behind it: hosts find a value's size in that.
    fn write(&mut self, answer: &Answer, now: Nanos, framing: &Framing, queue: &mut CommandIds, metrics: &Metrics) {
        match &answer.data {
            Data::None => {}
            Data::Bytes(bytes) => self.write_data(answer.command_id, bytes, framing),
            Data::Value(Value::Bytes(bytes)) => self.write_data(answer.command_id, bytes, framing),
            Data::Value(value) => self.write_data(answer.command_id, &value.to_vec(), framing),
        }
        if matches!(answer.kind, Kind::Retrieve | Kind::List) {
            metrics.bytes_out.inc_by(answer.data.len() as u64);
        }
        metrics.count(answer, now);
        queue.remove(answer.command_id);
        Pdu::Response(answer.completion(queue.head())).encode(framing, &mut self.bytes);
    }

    fn write_data(&mut self, command_id: u16, data: &[u8], framing: &Framing) {
        let mut offset = 0;
        for part in data.chunks(PDU_DATA_BYTES_MAX as usize) {
            let header = DataHeader::new(command_id, 0, offset as u32, part.len() as u32);
            offset += part.len();
            let is_last = offset == data.len();
            let pdu = Pdu::Data { sender: Sender::Controller, header, is_last, is_success: false, data: part };
            pdu.encode(framing, &mut self.bytes);
        }
    }
}
