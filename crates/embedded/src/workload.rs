//! What the threads do.
//!
//! ```text
//!   record 0 1 2 3 4 5 6 7 ...     of three threads, thread 1 changes records 1, 4, 7, ...; everyone reads any
//! ```

use crate::plan::Cell;
use crate::records::{Records, Versions, fault};
use crate::{EmbeddedError, EmbeddedStore, StoreError};
use kvssd_types::{Nanos, Random, named_enum};
use std::time::Instant;

named_enum! {
    /// What is done, in this order.
    pub enum Workload: "workload" {
        /// Every record is put once; its key lies anywhere.
        FillRandom = "fillrandom",
        /// Records are read at random.
        ReadRandom = "readrandom",
        /// Records are put again at random.
        Overwrite = "overwrite",
        /// Each operation is as likely a read as an overwrite.
        Mixed = "mixed",
        /// Pairs that lie one after the other are read, from a key at random on, [`SCAN_PAIRS`] at a time. Of stores that have an order.
        Scan = "scan100",
        /// Records are deleted, each at most once.
        Delete = "delete",
    }
}

pub(crate) const SCAN_PAIRS: u64 = 100;
/// How often each pair is scanned that a workload of reads reads once: the first scan of a pair is dearer than those that follow.
const SCAN_TIMES: u64 = 10;

/// A store in a cell, and what must be in it.
pub(crate) struct Subject<'a> {
    pub(crate) name: &'static str,
    pub(crate) store: Box<dyn EmbeddedStore>,
    pub(crate) cell: &'a Cell,
    pub(crate) records: &'a Records,
    pub(crate) versions: Versions,
}

/// A thread of a workload on a store.
pub(crate) struct Hand<'a> {
    subject: &'a Subject<'a>,
    workload: Workload,
    thread: u64,
    random: Random,
    value: Vec<u8>,
}

impl Subject<'_> {
    /// Operations of a workload by all threads.
    pub(crate) fn operations(&self, workload: Workload) -> u64 {
        (0..self.cell.threads).map(|thread| self.operations_of(workload, thread)).sum()
    }

    fn operations_of(&self, workload: Workload, thread: u32) -> u64 {
        let own = self.share(self.cell.records, thread);
        match workload {
            Workload::FillRandom => own,
            Workload::ReadRandom => self.share(self.cell.reads, thread),
            Workload::Scan => self.share((self.cell.reads * SCAN_TIMES / SCAN_PAIRS).max(1), thread),
            Workload::Delete => own.min(self.share(self.cell.operations, thread)),
            _ => self.share(self.cell.operations, thread),
        }
    }

    /// How many of `total`, given out in turns, a thread gets.
    fn share(&self, total: u64, thread: u32) -> u64 {
        let threads = u64::from(self.cell.threads);
        total / threads + u64::from(u64::from(thread) < total % threads)
    }

    fn failed(&self, why: &StoreError) -> EmbeddedError {
        EmbeddedError::of_store(self.name, why)
    }

    fn wrong(&self, record: u64, why: &'static str) -> EmbeddedError {
        EmbeddedError::WrongValue { store: self.name, record, why }
    }

    /// Sees that records are there, or are not, as they must: `count` of them, evenly spread.
    pub(crate) fn verify(&self, count: u64) -> Result<(), EmbeddedError> {
        let step = (self.cell.records / count.max(1)).max(1);
        for record in (0..self.cell.records).step_by(step as usize) {
            let is_there = self.store.get(&self.records.key(record), &mut |_| {}).map_err(|why| self.failed(&why))?;
            match (is_there, self.versions.get(record)) {
                (true, 0) => return Err(self.wrong(record, "there is a value, and it was deleted")),
                (false, 1..) => return Err(self.wrong(record, "there is no value, and one was put")),
                _ => {}
            }
        }
        Ok(())
    }
}

impl<'a> Hand<'a> {
    pub(crate) fn new(subject: &'a Subject<'_>, workload: Workload, thread: u32) -> Self {
        let stream = (workload as u64) << 32 | u64::from(thread);
        let random = Random::stream(subject.cell.seed, stream);
        Hand { subject, workload, thread: u64::from(thread), random, value: Vec::new() }
    }

    pub(crate) fn operations(&self) -> u64 {
        self.subject.operations_of(self.workload, self.thread as u32)
    }

    /// Does the operation of that number, and gives the time that the store took.
    pub(crate) fn step(&mut self, number: u64) -> Result<Nanos, EmbeddedError> {
        match self.workload {
            Workload::FillRandom => self.put(self.own(number)),
            Workload::ReadRandom => self.get(),
            Workload::Overwrite => self.overwrite(),
            Workload::Mixed if self.random.bits() & 1 == 0 => self.get(),
            Workload::Mixed => self.overwrite(),
            Workload::Scan => self.scan(),
            Workload::Delete => self.delete(self.own(number)),
        }
    }

    /// The record of that number among those that this thread changes.
    fn own(&self, number: u64) -> u64 {
        number * u64::from(self.subject.cell.threads) + self.thread
    }

    fn overwrite(&mut self) -> Result<Nanos, EmbeddedError> {
        let own = self.subject.share(self.subject.cell.records, self.thread as u32);
        let number = self.random.below(own);
        self.put(self.own(number))
    }

    fn put(&mut self, record: u64) -> Result<Nanos, EmbeddedError> {
        let Subject { store, records, versions, .. } = self.subject;
        let version = versions.get(record) + 1;
        let key = records.key(record);
        records.write_value(record, version, &mut self.value);
        let start = Instant::now();
        let put = store.put(&key, &self.value);
        let took = since(start);
        put.map_err(|why| self.subject.failed(&why))?;
        versions.set(record, version);
        Ok(took)
    }

    /// Reads any record. That the value is looked at counts as the store's time: each may show it where it lies.
    fn get(&mut self) -> Result<Nanos, EmbeddedError> {
        let Subject { store, records, versions, cell, .. } = self.subject;
        let record = self.random.below(cell.records);
        let key = records.key(record);
        let before = versions.get(record);
        let mut seen = None;
        let start = Instant::now();
        let got = store.get(&key, &mut |value| seen = Some(records.version_of(record, value)));
        let took = since(start);
        got.map_err(|why| self.subject.failed(&why))?;
        match fault(seen, before, versions.get(record)) {
            Some(why) => Err(self.subject.wrong(record, why)),
            None => Ok(took),
        }
    }

    /// Reads the records that come next in the order of keys, from one at random on; nobody changes them. That they are looked at
    /// counts as the store's time, as in [`Hand::get`].
    fn scan(&mut self) -> Result<Nanos, EmbeddedError> {
        let Subject { store, records, versions, cell, .. } = self.subject;
        let from = self.random.below(cell.records);
        let key = records.key(from);
        let wanted = records.following(&key, SCAN_PAIRS as usize);
        let mut seen = Vec::with_capacity(wanted.len());
        let mut look = |key: &[u8], value: &[u8]| {
            let record = records.record_of(key);
            seen.push((record, record.and_then(|record| records.version_of(record, value))));
        };
        let start = Instant::now();
        let scanned = store.scan(&key, SCAN_PAIRS as usize, &mut look);
        let took = since(start);
        scanned.map_err(|why| self.subject.failed(&why))?;
        if !seen.iter().map(|&(record, _)| record).eq(wanted.iter().map(|&record| Some(record))) {
            return Err(self.subject.wrong(from, "a scan from it on shows other records than those that come next"));
        }
        let mut faults = wanted.iter().zip(seen).filter_map(|(&record, (_, seen))| {
            let version = versions.get(record);
            fault(Some(seen), version, version).map(|why| self.subject.wrong(record, why))
        });
        faults.next().map_or(Ok(took), Err)
    }

    fn delete(&mut self, record: u64) -> Result<Nanos, EmbeddedError> {
        let Subject { store, records, versions, .. } = self.subject;
        let key = records.key(record);
        let start = Instant::now();
        let deleted = store.delete(&key);
        let took = since(start);
        deleted.map_err(|why| self.subject.failed(&why))?;
        versions.set(record, 0);
        Ok(took)
    }
}

fn since(start: Instant) -> Nanos {
    Nanos(start.elapsed().as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Durability;
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    /// What is wrong with a store.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Defect {
        Nothing,
        LosesPuts,
        LosesOverwrites,
        LosesDeletes,
        SkipsInScans,
        GivesOthers,
        FlipsBits,
    }

    struct Memory {
        defect: Defect,
        pairs: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    }

    impl EmbeddedStore for Memory {
        fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
            let mut pairs = self.pairs.lock().unwrap();
            let is_lost = match self.defect {
                Defect::LosesPuts => pairs.len() == 50,
                Defect::LosesOverwrites => pairs.contains_key(key),
                _ => false,
            };
            if !is_lost {
                pairs.insert(key.to_vec(), value.to_vec());
            }
            Ok(())
        }

        fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
            let pairs = self.pairs.lock().unwrap();
            let found = match self.defect {
                Defect::GivesOthers => pairs.values().next().cloned(),
                _ => pairs.get(key).cloned(),
            };
            Ok(found.is_some_and(|mut value| {
                value[50] ^= u8::from(self.defect == Defect::FlipsBits);
                see(&value);
                true
            }))
        }

        fn scan(&self, from: &[u8], count: usize, see: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
            let pairs = self.pairs.lock().unwrap();
            let skipped = usize::from(self.defect == Defect::SkipsInScans);
            let all =
                pairs.range(from.to_vec()..).enumerate().filter(|&(number, _)| number != 30 * skipped || skipped == 0);
            all.take(count).for_each(|(_, (key, value))| see(key, value));
            Ok(())
        }

        fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
            if self.defect != Defect::LosesDeletes {
                self.pairs.lock().unwrap().remove(key);
            }
            Ok(())
        }
    }

    fn cell(threads: u32, records: u64, operations: u64) -> Cell {
        let durability = Durability::Process;
        let reads = 2 * operations;
        Cell { durability, value_bytes: 100, threads, records, operations, reads, round: 1, seed: 1, cache_bytes: 0 }
    }

    /// The workload at which a store is caught, if at any.
    fn caught(defect: Defect) -> Option<Workload> {
        let cell = cell(3, 100, 500);
        let records = Records::new(cell.seed, cell.value_bytes, cell.records);
        let store = Box::new(Memory { defect, pairs: Mutex::default() });
        let subject =
            Subject { name: "memory", store, cell: &cell, records: &records, versions: Versions::new(cell.records) };
        Workload::ALL.into_iter().find(|&workload| {
            let mut hands = (0..cell.threads).map(|thread| Hand::new(&subject, workload, thread));
            let work = |mut hand: Hand<'_>| (0..hand.operations()).try_for_each(|number| hand.step(number).map(|_| ()));
            hands.try_for_each(work).and_then(|()| subject.verify(cell.records)).is_err()
        })
    }

    #[test]
    fn a_store_that_lies_is_caught() {
        for (defect, workload) in [
            (Defect::Nothing, None),
            (Defect::LosesPuts, Some(Workload::FillRandom)),
            (Defect::LosesOverwrites, Some(Workload::Mixed)),
            (Defect::LosesDeletes, Some(Workload::Delete)),
            (Defect::SkipsInScans, Some(Workload::Scan)),
            (Defect::GivesOthers, Some(Workload::ReadRandom)),
            (Defect::FlipsBits, Some(Workload::ReadRandom)),
        ] {
            assert_eq!(caught(defect), workload, "{defect:?}");
        }
    }

    #[test]
    fn every_record_is_filled_and_none_is_deleted_twice() {
        let cell = cell(8, 101, 1003);
        let records = Records::new(cell.seed, cell.value_bytes, cell.records);
        let store = Box::new(Memory { defect: Defect::Nothing, pairs: Mutex::default() });
        let subject =
            Subject { name: "memory", store, cell: &cell, records: &records, versions: Versions::new(cell.records) };
        let operations = Workload::ALL.map(|workload| subject.operations(workload));
        assert_eq!(operations, [101, 2006, 1003, 1003, 200, 101]);
        let hands = (0..cell.threads).map(|thread| Hand::new(&subject, Workload::FillRandom, thread));
        let mut filled: Vec<_> =
            hands.flat_map(|hand| (0..hand.operations()).map(|number| hand.own(number)).collect::<Vec<_>>()).collect();
        filled.sort_unstable();
        assert!(filled.into_iter().eq(0..101));
    }
}
