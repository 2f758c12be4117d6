//! Ranges: Create, Seek, Next by Next, and each pair against what was there when the iterator was made.

use super::{DbBenchSession, DbBenchmark, Phase, Step};
use crate::error::SimError;
use kvssd_types::{Command, IteratedPair, IteratorId, IteratorOptions, Nanos, Reply};

/// A range that is gone along.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) iterator: IteratorId,
    /// The last change that it sees.
    pub(super) sees: u64,
    /// The record from which on the next pair must be.
    record: u64,
    /// Calls of Next that are left.
    left: u64,
    pub(super) began: Nanos,
}

impl DbBenchSession {
    /// Begins a range.
    pub(super) fn create(&mut self, at: Nanos, phase: &mut Phase) -> Result<(Nanos, Step), SimError> {
        let command = Command::CreateIterator { options: IteratorOptions::default() };
        let (done, reply) = self.submit(command, at, "create", phase)?;
        let Reply::IteratorCreated(iterator) = reply else { return Err(SimError::of_reply(&reply)) };
        let is_whole = phase.benchmark == DbBenchmark::ReadSeq;
        let record = if is_whole { 0 } else { phase.random.below(self.memory.records()) };
        let left = if is_whole { phase.operations - phase.begun } else { self.bench.scan_length.into() };
        phase.begun += u64::from(!is_whole);
        let sees = self.memory.make_iterator();
        Ok((done, Step::Seek(Scan { iterator, sees, record, left, began: at })))
    }

    pub(super) fn seek(&mut self, mut scan: Scan, at: Nanos, phase: &mut Phase) -> Result<(Nanos, Step), SimError> {
        let room = self.key_of(scan.record);
        let command = Command::Seek { iterator: scan.iterator, key: Some(self.key(&room)), pairs_max: 1 };
        let (done, reply) = self.submit(command, at, "seek", phase)?;
        let Reply::Pairs(pairs) = reply else { return Err(SimError::of_reply(&reply)) };
        let goes_on = self.verify(&mut scan, &pairs, phase);
        Ok((done, if goes_on && scan.left > 0 { Step::Next(scan) } else { Step::Destroy(scan) }))
    }

    pub(super) fn next(&mut self, mut scan: Scan, at: Nanos, phase: &mut Phase) -> Result<(Nanos, Step), SimError> {
        let command = Command::Next { iterator: scan.iterator, pairs_max: 1 };
        let (done, reply) = self.submit(command, at, "next", phase)?;
        let Reply::Pairs(pairs) = reply else { return Err(SimError::of_reply(&reply)) };
        scan.left -= 1;
        let goes_on = self.verify(&mut scan, &pairs, phase);
        Ok((done, if goes_on && scan.left > 0 { Step::Next(scan) } else { Step::Destroy(scan) }))
    }

    /// Ends a range.
    pub(super) fn destroy(&mut self, scan: &Scan, at: Nanos, phase: &mut Phase) -> Result<(Nanos, Step), SimError> {
        let command = Command::DestroyIterator { iterator: scan.iterator };
        let (done, _) = self.submit(command, at, "destroy", phase)?;
        self.memory.end_iterator(scan.sees);
        phase.measured.sequences.entry("query").or_default().add(done - scan.began);
        Ok((done, Step::Begin))
    }

    /// Whether a pair is the one that must come next, or there is none; gives whether the range goes on.
    fn verify(&mut self, scan: &mut Scan, pairs: &[IteratedPair], phase: &mut Phase) -> bool {
        let expected = self.memory.next_at(scan.record, scan.sees);
        let is_right = match (pairs, &expected) {
            ([(key, Some(value))], Some((record, expected))) => {
                **key == *self.key(&self.key_of(*record)).bytes() && value == expected
            }
            ([], None) => true,
            _ => false,
        };
        phase.measured.verified_retrieves += u64::from(is_right);
        phase.measured.failed_retrieves += u64::from(!is_right);
        phase.measured.retrieved_bytes += pairs.len() as u64 * u64::from(self.bench.value_bytes);
        scan.record = expected.as_ref().map_or(self.memory.records(), |(record, _)| record + 1);
        phase.begun += u64::from(phase.benchmark == DbBenchmark::ReadSeq);
        is_right && expected.is_some() && !phase.has_read_all()
    }
}
