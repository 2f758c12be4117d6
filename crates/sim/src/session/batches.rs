//! Updates that go together: each thread gathers its own, and sends them as one atomic batch when there are enough.
//!
//! ```text
//!   update 7, update 3, read 9, update 5   -> retrieve 9, then one batch of 7, 3 and 5
//! ```
//!
//! What is gathered takes no time, and is not on the drive before its batch is. A key has one place in a batch: when it comes again, the
//! batch goes as it is.

use super::{DELETED, Session};
use crate::error::SimError;
use crate::measured::Measured;
use kvssd_device::Completion;
use kvssd_types::{BatchChange, Command, KEY_BYTES_MAX, NamespaceId, Nanos, Value};

/// What threads have gathered.
#[derive(Clone, Debug, Default)]
pub(super) struct Batches {
    /// Pairs of a batch; 0 when updates go one by one.
    pairs: usize,
    /// Records by thread.
    gathered: Vec<Vec<u64>>,
}

impl Batches {
    /// Of so many pairs; of one pair there are none.
    pub(super) fn of(pairs: u32, threads: u32) -> Self {
        match pairs {
            0 | 1 => Batches::default(),
            pairs => Batches { pairs: pairs as usize, gathered: vec![Vec::new(); threads as usize] },
        }
    }

    /// Whether updates go together.
    pub(super) fn are_wanted(&self) -> bool {
        self.pairs > 0
    }

    /// A thread wants to update a record; gives the batch that is to go: one that is full, or has that record already.
    fn gather(&mut self, thread: u32, record: u64) -> Option<Vec<u64>> {
        let gathered = &mut self.gathered[thread as usize];
        if gathered.contains(&record) {
            return Some(std::mem::replace(gathered, vec![record]));
        }
        gathered.push(record);
        (gathered.len() == self.pairs).then(|| std::mem::take(gathered))
    }
}

impl Session {
    /// Has a thread update a record with others, or later; gives when the thread goes on.
    pub(super) fn update_together(
        &mut self,
        record: u64,
        thread: u32,
        at: Nanos,
        measured: &mut Measured,
    ) -> Result<Nanos, SimError> {
        match self.batches.gather(thread, record) {
            Some(records) => self.store_batch(&records, at, measured),
            None => Ok(at),
        }
    }

    /// Sends what threads have gathered when a phase ends.
    pub(super) fn send_rest(&mut self, measured: &mut Measured) -> Result<(), SimError> {
        let rest: Vec<_> = self.batches.gathered.iter_mut().map(std::mem::take).collect();
        let at = measured.end;
        for records in rest.iter().filter(|records| !records.is_empty()) {
            let done = self.store_batch(records, at, measured)?;
            measured.end = measured.end.max(done);
        }
        Ok(())
    }

    fn store_batch(&mut self, records: &[u64], at: Nanos, measured: &mut Measured) -> Result<Nanos, SimError> {
        let mut rooms = vec![[0; KEY_BYTES_MAX]; records.len()];
        for &record in records {
            let version = &mut self.versions[record as usize];
            *version = (*version & !DELETED) + 1;
        }
        let changes: Vec<BatchChange<'_>> = records
            .iter()
            .zip(&mut rooms)
            .map(|(&record, room)| BatchChange {
                namespace: NamespaceId::FIRST,
                key: self.keys.write(record, room),
                value: Some(Value::Pattern(self.pattern(record))),
            })
            .collect();
        let bytes = changes.iter().map(|change| change.key.bytes().len() + change.value.as_ref().map_or(0, Value::len));
        let bytes = bytes.sum::<usize>() as u64;
        let Completion { done, reply } = self.device.submit(Command::Batch { changes: &changes }, at);
        reply.map_err(|why| self.why_not_stored(why))?;
        measured.add_other("batch", at, done, bytes);
        Ok(done)
    }
}
