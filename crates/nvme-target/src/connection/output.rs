//! Encoded output, and completions that are not due yet.

use super::submission_queue::SubmissionQueue;
use crate::command_kind::CommandKind;
use crate::completion::{Completion, Data};
use crate::limits::PDU_DATA_BYTES_MAX;
use crate::metrics::Metrics;
use kvssd_nvme_spec::pdu::{DataHeader, Framing, Pdu, Sender};
use kvssd_types::{Nanos, Value};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The most capacity that an empty buffer keeps.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// A completion that waits until it is due.
#[derive(Debug)]
struct Delayed {
    completion: Completion,
    /// The order of those that are due at the same time.
    sequence: u64,
}

impl Delayed {
    fn rank(&self) -> (Nanos, u64) {
        (self.completion.due, self.sequence)
    }
}

impl PartialEq for Delayed {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Delayed {}

impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Delayed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// The output of a connection.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    sent: usize,
    /// New completions, in the order of execution.
    pub(super) completions: Vec<Completion>,
    delayed: BinaryHeap<Reverse<Delayed>>,
    delayed_bytes: usize,
    sequence: u64,
}

impl Output {
    /// Bytes to send.
    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Drops the first `count` bytes: they are sent.
    pub(super) fn consume(&mut self, count: usize) {
        self.sent += count;
        assert!(self.sent <= self.bytes.len(), "more was sent than there was");
        if self.sent == self.bytes.len() {
            self.sent = 0;
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES_MAX);
        }
    }

    /// Bytes that wait for the peer, or until they are due.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.sent + self.delayed_bytes
    }

    pub(super) fn push(&mut self, pdu: &Pdu<'_>, framing: &Framing) {
        pdu.encode(framing, &mut self.bytes);
    }

    /// Encodes the completions that are due.
    pub(super) fn release(&mut self, now: Nanos, framing: &Framing, queue: &mut SubmissionQueue, metrics: &Metrics) {
        let mut completions = std::mem::take(&mut self.completions);
        for completion in completions.drain(..) {
            if completion.due > now {
                self.delayed_bytes += completion.data.len();
                self.sequence += 1;
                self.delayed.push(Reverse(Delayed { completion, sequence: self.sequence }));
            } else {
                self.write(&completion, now, framing, queue, metrics);
            }
        }
        self.completions = completions;
        while let Some(Reverse(first)) = self.delayed.peek()
            && first.completion.due <= now
            && let Some(Reverse(Delayed { completion, .. })) = self.delayed.pop()
        {
            self.delayed_bytes -= completion.data.len();
            self.write(&completion, now, framing, queue, metrics);
        }
    }

    /// When the next completion is due.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.delayed.peek().map(|Reverse(delayed)| delayed.completion.due)
    }

    /// Encodes data in order, then the completion. The SUCCESS flag is not used: hosts need dword 0, the value's
    /// length.
    fn write(
        &mut self,
        completion: &Completion,
        now: Nanos,
        framing: &Framing,
        queue: &mut SubmissionQueue,
        metrics: &Metrics,
    ) {
        match &completion.data {
            Data::None => {}
            Data::Bytes(bytes) => self.write_data(completion.command_id, bytes, framing),
            Data::Value(Value::Bytes(bytes)) => self.write_data(completion.command_id, bytes, framing),
            Data::Value(value) => self.write_data(completion.command_id, &value.to_vec(), framing),
        }
        if matches!(completion.kind, CommandKind::Retrieve | CommandKind::List) {
            metrics.bytes_out.inc_by(completion.data.len() as u64);
        }
        metrics.count(completion, now);
        queue.complete(completion.command_id);
        Pdu::Response(completion.entry(queue.head())).encode(framing, &mut self.bytes);
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
