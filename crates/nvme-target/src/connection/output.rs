//! Encoded output, and completions that are not due yet.

use super::submission_queue::SubmissionQueue;
use crate::command_kind::CommandKind;
use crate::completion::{Completion, Data};
use crate::limits::PDU_DATA_BYTES_MAX;
use crate::metrics::Metrics;
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::pdu::{DataHeader, Framing, Pdu, Sender};
use kvssd_types::{Blob, Nanos, Value};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::io::IoSlice;

/// The most capacity that an empty buffer keeps.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Values from this length on are sent from where they lie; what is shorter is copied behind what goes before it, which is no slower with 4 KiB.
const LENT_BYTES_MIN: usize = 16 << 10;
/// A piece of memory of so many bytes of which some are sent takes no more: it is given up when all of it is sent, and a host that reads all
/// the time, but never all, would have it grow for ever.
const ENCODED_BYTES_MAX: usize = 64 << 10;
/// The most parts that are given to the system at once.
const PARTS_MAX: usize = 512;

/// What is sent in one piece of memory.
#[derive(Debug)]
enum Part {
    Encoded(Vec<u8>),
    /// These bytes of a value.
    Lent(Blob),
}

impl Part {
    fn bytes(&self) -> &[u8] {
        match self {
            Part::Encoded(bytes) => bytes,
            Part::Lent(value) => value,
        }
    }
}

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
    /// None of them is empty.
    parts: VecDeque<Part>,
    /// Bytes of the first that are sent.
    sent: usize,
    /// Bytes of all, sent ones too.
    bytes: usize,
    /// Memory for what is encoded next.
    spare: Vec<u8>,
    /// New completions, in the order of execution.
    pub(super) completions: Vec<Completion>,
    delayed: BinaryHeap<Reverse<Delayed>>,
    delayed_bytes: usize,
    sequence: u64,
}

impl Output {
    /// The first bytes to send; none when all are sent.
    pub(super) fn pending(&self) -> &[u8] {
        self.parts.front().map_or(&[], |part| &part.bytes()[self.sent..])
    }

    /// Bytes to send, in order, as many parts as the system takes at once.
    pub(super) fn parts(&self) -> Vec<IoSlice<'_>> {
        let behind = self.parts.iter().skip(1).map(Part::bytes);
        let all = std::iter::once(self.pending()).chain(behind);
        all.take(PARTS_MAX).map(IoSlice::new).collect()
    }

    /// Drops the first `count` bytes: they are sent.
    pub(super) fn consume(&mut self, count: usize) {
        self.sent += count;
        assert!(self.sent <= self.bytes, "more was sent than there was");
        while let Some(length) = self.parts.front().map(|part| part.bytes().len()).filter(|length| *length <= self.sent)
        {
            (self.sent, self.bytes) = (self.sent - length, self.bytes - length);
            if let Some(Part::Encoded(mut bytes)) = self.parts.pop_front()
                && bytes.capacity() <= KEPT_BYTES_MAX
            {
                bytes.clear();
                self.spare = bytes;
            }
        }
    }

    /// Bytes that wait for the peer, or until they are due.
    pub(super) fn len(&self) -> usize {
        self.bytes - self.sent + self.delayed_bytes
    }

    pub(super) fn push(&mut self, pdu: &Pdu<'_>, framing: &Framing) {
        self.encode(|out| pdu.encode(framing, out));
    }

    /// Has something appended to what is encoded.
    fn encode<T>(&mut self, append: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let is_sent_in_part = self.parts.len() == 1 && self.sent > 0;
        let mut last = match self.parts.pop_back() {
            Some(Part::Encoded(bytes)) if !is_sent_in_part || bytes.len() < ENCODED_BYTES_MAX => bytes,
            other => {
                self.parts.extend(other);
                std::mem::take(&mut self.spare)
            }
        };
        let before = last.len();
        let appended = append(&mut last);
        self.bytes += last.len() - before;
        if !last.is_empty() {
            self.parts.push_back(Part::Encoded(last));
        }
        appended
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
            Data::Bytes(bytes) => self.write_data(completion.command_id, bytes, None, framing),
            Data::Value(Value::Bytes(bytes)) => self.write_data(completion.command_id, bytes, Some(bytes), framing),
            Data::Value(value) => self.write_data(completion.command_id, &value.to_vec(), None, framing),
        }
        if matches!(completion.kind, CommandKind::Retrieve | CommandKind::List) {
            metrics.bytes_out.inc_by(completion.data.len() as u64);
        }
        metrics.count(completion, now);
        // One that was refused for its identifier was never outstanding: the command that has it still is.
        if completion.status != Status::CommandIdConflict {
            queue.complete(completion.command_id);
        }
        self.push(&Pdu::Response(completion.entry(queue.head())), framing);
    }

    /// Encodes data. What it is a part of may be lent.
    fn write_data(&mut self, command_id: u16, data: &[u8], shared: Option<&Blob>, framing: &Framing) {
        let mut offset = 0;
        for part in data.chunks(PDU_DATA_BYTES_MAX as usize) {
            let header = DataHeader::new(command_id, 0, offset as u32, part.len() as u32);
            let range = offset..offset + part.len();
            offset = range.end;
            let is_last = offset == data.len();
            let pdu = Pdu::Data { sender: Sender::Controller, header, is_last, is_success: false, data: part };
            let Some(shared) = shared.filter(|_| part.len() >= LENT_BYTES_MIN) else {
                self.push(&pdu, framing);
                continue;
            };
            let digest = self.encode(|out| pdu.encode_around(framing, out));
            self.bytes += range.len();
            self.parts.push_back(Part::Lent(shared.part(range)));
            if let Some(digest) = digest {
                self.encode(|out| out.extend(digest));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_never_reads_all_has_no_memory_grow() {
        let (mut output, framing) = (Output::default(), Framing::INITIAL);
        for round in 0..1000u32 {
            output.write_data(7, &[round as u8; 4096], None, &framing);
            output.consume(output.len() - 1);
            assert!(output.bytes <= ENCODED_BYTES_MAX + 8192, "{} bytes in round {round}", output.bytes);
        }
        assert_eq!(output.len(), 1);
    }

    /// Whatever is lent and however little is sent at a time, what comes is what one buffer would have held.
    #[test]
    fn what_is_lent_is_sent_in_its_place() {
        let framing = Framing { header_digest: true, data_digest: true, ..Framing::INITIAL };
        let values: Vec<Blob> = [0, 1, LENT_BYTES_MIN - 1, LENT_BYTES_MIN, 3 * PDU_DATA_BYTES_MAX as usize + 5]
            .map(|length| (0..length).map(|at| (at * 7 + length) as u8).collect::<Vec<u8>>().into())
            .to_vec();
        let (mut lent, mut copied) = (Output::default(), Output::default());
        for round in 0..3 {
            for (id, value) in values.iter().enumerate() {
                lent.write_data(id as u16, value, Some(value), &framing);
                copied.write_data(id as u16, value, None, &framing);
                let entry = Completion::new(id as u16, CommandKind::Retrieve, Nanos::ZERO, Ok(Default::default()));
                lent.push(&Pdu::Response(entry.entry(0)), &framing);
                copied.push(&Pdu::Response(entry.entry(0)), &framing);
            }
            assert!(lent.parts.len() > 8 && copied.parts.len() == 1);
            let expected = copied.pending().to_vec();
            copied.consume(expected.len());
            let (mut got, mut step) = (Vec::new(), 1);
            while lent.len() > 0 {
                assert_eq!(lent.len(), expected.len() - got.len());
                let parts = lent.parts();
                assert_eq!(&*parts[0], lent.pending());
                let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
                assert_eq!(all.len(), lent.len());
                let count = all.len().min(step);
                got.extend_from_slice(&all[..count]);
                lent.consume(count);
                step = (step * 3 + round) % 70_000 + 1;
            }
            assert!(got == expected && lent.pending().is_empty() && copied.len() == 0);
        }
    }
}
