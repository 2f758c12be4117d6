//! Scans: an iterator, its pairs in one command, and its end. Each command is submitted when the one before it is done.

use super::Session;
use crate::error::SimError;
use crate::host::{Hosts, Turn};
use crate::measured::Measured;
use kvssd_types::{Command, IteratedPair, IteratorId, IteratorOptions, KEY_BYTES_MAX, Nanos, Reply, Value};

/// A scan that goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan {
    iterator: IteratorId,
    record: u64,
    length: u32,
    began: Nanos,
    is_read: bool,
}

impl Session {
    pub(super) fn begin_scan(
        &mut self,
        record: u64,
        length: u32,
        thread: u32,
        at: Nanos,
        hosts: &mut Hosts,
    ) -> Result<Nanos, SimError> {
        let options = IteratorOptions::default();
        let completion = self.device.submit(Command::CreateIterator { options }, at);
        let iterator = match completion.reply.map_err(SimError::of_drive)? {
            Reply::IteratorCreated(iterator) => iterator,
            other => return Err(SimError::of_reply(&other)),
        };
        self.scans_begun += 1;
        self.scans.insert(self.scans_begun, Scan { iterator, record, length, began: at, is_read: false });
        hosts.go_on(completion.done, Turn::GoOn { thread, scan: self.scans_begun });
        Ok(completion.done)
    }

    /// Does the next command of a scan; gives whether it was the last.
    pub(super) fn go_on(
        &mut self,
        number: u64,
        thread: u32,
        at: Nanos,
        hosts: &mut Hosts,
        measured: &mut Measured,
    ) -> Result<bool, SimError> {
        let Some(scan) = self.scans.remove(&number) else { return Ok(false) };
        let Scan { iterator, record, length, began, is_read } = scan;
        let mut room = [0; KEY_BYTES_MAX];
        let key = self.keys.write(record, &mut room);
        let command = match is_read {
            false => Command::Seek { iterator, key: Some(key), pairs_max: length },
            true => Command::DestroyIterator { iterator },
        };
        let completion = self.device.submit(command, at);
        measured.end = measured.end.max(completion.done);
        match completion.reply.map_err(SimError::Drive)? {
            Reply::Pairs(pairs) => {
                let is_right = self.is_right(key.bytes(), &pairs);
                measured.verified_retrieves += u64::from(is_right);
                measured.failed_retrieves += u64::from(!is_right);
                let value_bytes = |value: &Option<Value>| value.as_ref().map_or(0, Value::len) as u64;
                let bytes = pairs.iter().map(|(_, value)| value_bytes(value)).sum::<u64>();
                measured.add_sequence("scan", began, completion.done, bytes);
                self.scans.insert(number, Scan { is_read: true, ..scan });
                hosts.go_on(completion.done, Turn::GoOn { thread, scan: number });
            }
            Reply::IteratorDestroyed => {
                measured.operation_ends(completion.done);
                hosts.done(completion.done, thread);
            }
            other => return Err(SimError::of_reply(&other)),
        }
        Ok(is_read)
    }

    /// Whether pairs are in order, begin with the key that was asked for, and have the values of their records.
    fn is_right(&self, first: &[u8], pairs: &[IteratedPair]) -> bool {
        let is_sorted = pairs.is_sorted_by(|left, right| left.0 < right.0);
        let begins = pairs.first().is_some_and(|(key, _)| **key == *first);
        let has_its_value = |(key, value): &IteratedPair| {
            let record = self.keys.record_of(key).filter(|&record| record < self.versions.len() as u64);
            record.is_none_or(|record| value.as_ref() == Some(&Value::Pattern(self.pattern(record))))
        };
        is_sorted && begins && pairs.iter().all(has_its_value)
    }
}
