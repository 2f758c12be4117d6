//! Measures a drive on the wire: stores and retrieves at several queue depths, from one thread or several.
//!
//! ```text
//!   connect, fill            once
//!   for each depth:          threads, each with a connection of its own and as many commands under way
//!     overwrite              records of one's own, at random
//!     readrandom             any record; every value is checked
//!   delete                   what was filled in
//! ```
//!
//! At depth 1 a thread calls `store` and `retrieve`; above, `store_each` and `retrieve_each`. An operation's time is from when it is given
//! to the client to when its answer is. Processor time is that of this process, checks included, and of the service.

use crate::EmbeddedError;
use crate::records::{HEAD_BYTES, KEY_BYTES, Records, Versions, fault};
use crate::threads::{self, Watch, Worked, work_together};
use crate::workload::Workload;
use kvssd_host::{DriveUrl, Error, Store, connect_to};
use kvssd_measure::{Latencies, LatencySummary, Observer, columns, grouped, size};
use kvssd_types::{Nanos, Random};
use serde::Serialize;
use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

/// Operations that a thread gives the client in one call, at most, and bytes of values; but never less than it has under way.
const CALL_OPERATIONS: u64 = 2048;
const CALL_BYTES: u64 = 64 << 20;
/// What errors call it.
const NAME: &str = "kvssd";
const VALUE_BYTES_MAX: usize = 16 << 20;
const RECORDS_MAX: u64 = 100_000_000;
const THREADS_MAX: u32 = 64;

/// What is measured.
#[derive(Clone, Debug)]
pub struct WirePlan {
    /// Where.
    pub url: DriveUrl,
    /// Commands that a thread has under way.
    pub queue_depths: Vec<u16>,
    /// Threads, each with a connection of its own.
    pub threads: u32,
    /// Pairs that the drive is filled with.
    pub records: u64,
    /// Operations of each measurement.
    pub operations: u64,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Of everything that is random.
    pub seed: u64,
}

/// One workload at one depth.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "the names, with their units, are the JSON's; docs/REPORT.md says what each means")]
pub struct WireMeasurement {
    pub workload: &'static str,
    pub queue_depth: u16,
    pub threads: u32,
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub records: u64,
    pub operations: u64,
    pub wall_ns: u64,
    pub throughput_ops_s: f64,
    pub latency_ns: LatencySummary,
    pub client_processor_ns: u64,
    pub service_processor_ns: Option<u64>,
}

/// All that was measured.
#[derive(Clone, Debug)]
pub struct WireReport {
    /// In the order in which it was.
    pub measurements: Vec<WireMeasurement>,
}

/// A drive that is measured, and what must be in it.
struct Target<'a> {
    plan: &'a WirePlan,
    records: Records,
    versions: Versions,
}

/// Measures what `plan` says. The drive has no more pairs in the end than before, unless it failed.
///
/// # Errors
/// [`EmbeddedError`]: the plan cannot be, the drive is not reached, failed or gave a wrong value, or the observer ended it.
pub fn measure_wire(plan: &WirePlan, observer: &mut dyn Observer) -> Result<WireReport, EmbeddedError> {
    check(plan)?;
    let records = Records::new(of_this_run(plan.seed), plan.value_bytes, plan.records);
    let target = Target { plan, records, versions: Versions::new(plan.records) };
    let store = connect_to(&plan.url).map_err(failed)?;
    observer.begin("fill", plan.records);
    let filled = target.fill(&store, observer);
    let mut measurements = Vec::new();
    let measured = filled.and_then(|()| {
        for &queue_depth in &plan.queue_depths {
            for workload in [Workload::ReadRandom, Workload::Overwrite] {
                measurements.push(target.measure(&store, workload, queue_depth, observer)?);
            }
        }
        Ok(())
    });
    // What was filled in goes, whatever came of it.
    let removed = target.remove(&store).map_err(|error| target.failed_with_pairs(&error));
    match measured {
        Err(wrong @ EmbeddedError::WrongValue { .. }) => return Err(wrong),
        // That pairs are left is worth more than why the measurement ended.
        measured => removed.and(measured)?,
    }
    store.close().map_err(failed)?;
    Ok(WireReport { measurements })
}

/// What the keys of this run are made from. Others may measure the drive at the same time, with the same seed: no key is theirs, or one of
/// them deletes what another one looks for.
fn of_this_run(seed: u64) -> u64 {
    // Its keys are drawn by the system.
    RandomState::new().hash_one(seed)
}

fn check(plan: &WirePlan) -> Result<(), EmbeddedError> {
    let wrong = |why: String| Err(EmbeddedError::Plan(why));
    if !(HEAD_BYTES..=VALUE_BYTES_MAX).contains(&plan.value_bytes) {
        let bytes = plan.value_bytes;
        return wrong(format!("--value-bytes {bytes}: a value has {HEAD_BYTES} to {VALUE_BYTES_MAX} bytes here"));
    }
    if !(1..=THREADS_MAX).contains(&plan.threads) {
        return wrong(format!("--threads {}: there are 1 to {THREADS_MAX} threads", plan.threads));
    }
    let under_way = u64::from(plan.queue_depths.iter().copied().max().unwrap_or(1)) * u64::from(plan.threads);
    if !(under_way..=RECORDS_MAX).contains(&plan.records) {
        let why = "as many as commands under way at least";
        return wrong(format!("--records {}: there are {under_way} to {RECORDS_MAX}, {why}", plan.records));
    }
    if plan.operations < u64::from(plan.threads) {
        return wrong(format!("--operations {}: each thread has one at least", plan.operations));
    }
    Ok(())
}

impl WirePlan {
    fn call_operations(&self, queue_depth: u16) -> u64 {
        (CALL_BYTES / self.value_bytes as u64).clamp(u64::from(queue_depth), CALL_OPERATIONS)
    }
}

impl Target<'_> {
    fn fill(&self, store: &Store, observer: &mut dyn Observer) -> Result<(), EmbeddedError> {
        let call_operations = self.plan.call_operations(1);
        let mut begin = 0;
        while begin < self.plan.records {
            let end = (begin + call_operations).min(self.plan.records);
            let pairs: Vec<_> = (begin..end).map(|record| self.pair(record, 1)).collect();
            let pairs = pairs.iter().map(|(key, value)| (&key[..], &value[..]));
            let stored = store.own_namespace().store_each(pairs, |number| self.versions.set(begin + number as u64, 1));
            stored.map_err(failed)?;
            begin = end;
            observer.progress(begin);
            if observer.is_interrupted() {
                return Err(EmbeddedError::Interrupted);
            }
        }
        Ok(())
    }

    fn failed_with_pairs(&self, error: &Error) -> EmbeddedError {
        let pairs_left = (0..self.plan.records).filter(|&record| self.versions.get(record) > 0).count() as u64;
        EmbeddedError::Wire { why: error.to_string(), pairs_left }
    }

    fn remove(&self, store: &Store) -> Result<(), Error> {
        let mut batch = kvssd_host::Batch::new();
        for record in (0..self.plan.records).filter(|&record| self.versions.get(record) > 0) {
            batch.delete(&self.records.key(record));
            if batch.len() as u64 == CALL_OPERATIONS {
                store.bulk(&batch)?;
                batch.clear();
            }
        }
        store.bulk(&batch)
    }

    fn pair(&self, record: u64, version: u32) -> ([u8; KEY_BYTES], Vec<u8>) {
        let mut value = Vec::with_capacity(self.plan.value_bytes);
        self.records.write_value(record, version, &mut value);
        (self.records.key(record), value)
    }

    fn measure(
        &self,
        store: &Store,
        workload: Workload,
        queue_depth: u16,
        observer: &mut dyn Observer,
    ) -> Result<WireMeasurement, EmbeddedError> {
        let WirePlan { threads, operations, records, value_bytes, .. } = *self.plan;
        let url = DriveUrl { queue_depth, ..self.plan.url.clone() };
        let connected = (0..threads).map(|_| connect_to(&url)).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        observer.begin(&format!("{} at depth {queue_depth}", workload.name()), operations);
        let before = processor_ns(store)?;
        let Worked { latencies, wall } = work_together(threads, observer, |thread, watch| {
            let random = Random::stream(self.plan.seed, u64::from(queue_depth) << 32 | u64::from(thread));
            let store = &connected[thread as usize];
            let thread = thread.into();
            Hand { target: self, store, thread, random, queue_depth, stored: 0 }.work(workload, watch)
        })?;
        let after = processor_ns(store)?;
        Ok(WireMeasurement {
            workload: workload.name(),
            queue_depth,
            threads,
            key_bytes: KEY_BYTES,
            value_bytes,
            records,
            operations,
            wall_ns: wall.as_nanos() as u64,
            throughput_ops_s: operations as f64 / wall.as_secs_f64().max(1e-9),
            latency_ns: latencies.summary(),
            client_processor_ns: after.0 - before.0,
            service_processor_ns: between(before.1, after.1),
        })
    }
}

/// A thread with a connection of its own.
struct Hand<'a> {
    target: &'a Target<'a>,
    store: &'a Store,
    thread: u64,
    random: Random,
    queue_depth: u16,
    /// Own records that were stored again.
    stored: u64,
}

impl Hand<'_> {
    fn work(&mut self, workload: Workload, watch: &Watch) -> Result<Latencies, EmbeddedError> {
        let WirePlan { threads, operations, records, .. } = *self.target.plan;
        let threads = u64::from(threads);
        let operations = operations / threads + u64::from(self.thread < operations % threads);
        let own = records / threads;
        let call_operations = self.target.plan.call_operations(self.queue_depth);
        let mut latencies = Latencies::new();
        let mut done = 0;
        while done < operations {
            let count = call_operations.min(operations - done).min(own);
            if workload == Workload::ReadRandom {
                let wanted: Vec<u64> = (0..count).map(|_| self.random.below(records)).collect();
                self.retrieve(&wanted, &mut latencies)?;
            } else {
                // One after the other: commands under way have no order, so that none is of another's record.
                let wanted = (self.stored..self.stored + count).map(|number| number % own * threads + self.thread);
                self.overwrite(&wanted.collect::<Vec<_>>(), &mut latencies)?;
                self.stored += count;
            }
            if !(done..done + count).all(|number| watch.goes_on(number)) {
                break;
            }
            done += count;
        }
        Ok(latencies)
    }

    fn retrieve(&self, wanted: &[u64], latencies: &mut Latencies) -> Result<(), EmbeddedError> {
        let Target { records, versions, .. } = self.target;
        let keys: Vec<_> = wanted.iter().map(|&record| records.key(record)).collect();
        let begun = RefCell::new(Vec::with_capacity(keys.len()));
        let begin = |number: usize| begun.borrow_mut().push((Instant::now(), versions.get(wanted[number])));
        let mut wrong = None;
        let mut see = |number: usize, value: Option<Vec<u8>>| {
            let (start, before): (Instant, u32) = begun.borrow()[number];
            latencies.add(since(start));
            let record = wanted[number];
            let seen = value.map(|value| records.version_of(record, &value));
            if let Some(why) = fault(seen, before, versions.get(record)) {
                wrong = Some(EmbeddedError::WrongValue { store: NAME, record, why });
            }
        };
        if self.queue_depth == 1 {
            for (number, key) in keys.iter().enumerate() {
                begin(number);
                see(number, self.store.retrieve(key).map_err(failed)?);
            }
        } else {
            let keys = keys.iter().enumerate().map(|(number, key)| {
                begin(number);
                &key[..]
            });
            self.store.own_namespace().retrieve_each(keys, see).map_err(failed)?;
        }
        wrong.map_or(Ok(()), Err)
    }

    fn overwrite(&self, wanted: &[u64], latencies: &mut Latencies) -> Result<(), EmbeddedError> {
        let versions = &self.target.versions;
        let pairs: Vec<_> = wanted.iter().map(|&record| self.target.pair(record, versions.get(record) + 1)).collect();
        let begun = RefCell::new(Vec::with_capacity(pairs.len()));
        let mut stored = |number: usize| {
            latencies.add(since(begun.borrow()[number]));
            versions.set(wanted[number], versions.get(wanted[number]) + 1);
        };
        if self.queue_depth == 1 {
            for (number, (key, value)) in pairs.iter().enumerate() {
                begun.borrow_mut().push(Instant::now());
                self.store.store(key, value).map_err(failed)?;
                stored(number);
            }
            return Ok(());
        }
        let given = pairs.iter().map(|(key, value)| {
            begun.borrow_mut().push(Instant::now());
            (&key[..], &value[..])
        });
        self.store.own_namespace().store_each(given, stored).map_err(failed)
    }
}

impl WireReport {
    /// A row for each workload and depth.
    #[must_use]
    pub fn table(&self) -> String {
        let Some(first) = self.measurements.first() else { return String::new() };
        let heading = ["", "depth", "op/s", "p50", "p99", "p99.9", "client, us/op", "service, us/op"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        for measured in &self.measurements {
            let LatencySummary { p50, p99, p999, .. } = measured.latency_ns;
            let share = |time: Option<u64>| {
                let per_operation = |time: u64| format!("{:.2}", time as f64 / 1e3 / measured.operations as f64);
                time.map_or_else(|| "-".to_owned(), per_operation)
            };
            rows.push(vec![
                measured.workload.to_owned(),
                measured.queue_depth.to_string(),
                grouped(measured.throughput_ops_s as u64),
                Nanos(p50).to_string(),
                Nanos(p99).to_string(),
                Nanos(p999).to_string(),
                share(Some(measured.client_processor_ns)),
                share(measured.service_processor_ns),
            ]);
        }
        let WireMeasurement { records, key_bytes, value_bytes, threads, .. } = *first;
        let threads =
            if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads, a connection each") };
        let (records, bytes) = (grouped(records), size(records * (key_bytes + value_bytes) as u64));
        format!(
            "{records} records of {key_bytes} + {value_bytes} bytes ({bytes}), {threads}; every value checked\n{}",
            columns(&rows)
        )
    }
}

/// Processor time of this process, and of the service, so far.
fn processor_ns(store: &Store) -> Result<(u64, Option<u64>), EmbeddedError> {
    let service = store.stats().map_err(failed)?.traffic.and_then(|traffic| traffic.processor_ns);
    Ok((threads::processor_ns(), service))
}

/// The time between two looks; none of a service that was begun anew in between, and its time with it.
fn between(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    after?.checked_sub(before?)
}

fn since(start: Instant) -> Nanos {
    Nanos(start.elapsed().as_nanos() as u64)
}

#[expect(clippy::needless_pass_by_value, reason = "as errors are mapped")]
fn failed(error: Error) -> EmbeddedError {
    EmbeddedError::Wire { why: error.to_string(), pairs_left: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_was_begun_anew_has_no_time_in_place_of_none_that_it_took() {
        assert_eq!((between(Some(3), Some(5)), between(Some(5), Some(3))), (Some(2), None));
        assert_eq!((between(None, Some(3)), between(Some(3), None)), (None, None));
    }

    #[test]
    fn two_runs_of_one_seed_share_no_key() {
        let keys = || Records::new(of_this_run(1), 100, 1).key(0);
        assert_ne!(keys(), keys());
    }
}
