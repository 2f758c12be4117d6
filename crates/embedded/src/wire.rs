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

/// Operations that a thread gives the client in one call, at least, and for each that is under way: at the end of a call fewer and fewer are.
const CALL_OPERATIONS: u64 = 2048;
const CALL_OPERATIONS_UNDER_WAY: u64 = 64;
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
    let queue_depth = plan.queue_depths.iter().copied().fold(plan.url.queue_depth, u16::max);
    let store = connect_to(&DriveUrl { queue_depth, ..plan.url.clone() }).map_err(failed)?;
    check_depths(plan, &store)?;
    // That the drive has a place for all threads is known before it is filled.
    drop(connect_all(plan, plan.url.queue_depth)?);
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

/// A connection for each thread.
fn connect_all(plan: &WirePlan, queue_depth: u16) -> Result<Vec<Store>, EmbeddedError> {
    let url = DriveUrl { queue_depth, ..plan.url.clone() };
    (0..plan.threads).map(|_| connect_to(&url)).collect::<Result<_, _>>().map_err(failed)
}

/// Refuses a depth that the drive does not go to. `store` was connected with the largest.
fn check_depths(plan: &WirePlan, store: &Store) -> Result<(), EmbeddedError> {
    let Some(most) = store.stats().map_err(failed)?.queue_depth else { return Ok(()) };
    let too_deep = plan.queue_depths.iter().find(|&&depth| depth > most);
    too_deep.map_or(Ok(()), |depth| {
        Err(EmbeddedError::Plan(format!("--depths {depth}: the drive takes {most} commands of a connection at a time")))
    })
}

impl Target<'_> {
    fn fill(&self, store: &Store, observer: &mut dyn Observer) -> Result<(), EmbeddedError> {
        let mut begin = 0;
        while begin < self.plan.records {
            let end = (begin + CALL_OPERATIONS).min(self.plan.records);
            let keys: Vec<_> = (begin..end).map(|record| (record, self.records.key(record))).collect();
            let pairs = keys.iter().map(|(record, key)| (&key[..], self.value(*record, 1)));
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

    fn value(&self, record: u64, version: u32) -> Vec<u8> {
        let mut value = Vec::with_capacity(self.plan.value_bytes);
        self.records.write_value(record, version, &mut value);
        value
    }

    fn measure(
        &self,
        store: &Store,
        workload: Workload,
        queue_depth: u16,
        observer: &mut dyn Observer,
    ) -> Result<WireMeasurement, EmbeddedError> {
        let WirePlan { threads, operations, records, value_bytes, .. } = *self.plan;
        let connected = connect_all(self.plan, queue_depth)?;
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
        let call_operations = CALL_OPERATIONS.max(CALL_OPERATIONS_UNDER_WAY * u64::from(self.queue_depth));
        let mut latencies = Latencies::new();
        let mut done = 0;
        while done < operations && !watch.is_over() {
            let mut count = call_operations.min(operations - done);
            let goes_on = |number: usize| watch.goes_on(done + number as u64);
            if workload == Workload::ReadRandom {
                let wanted: Vec<u64> = (0..count).map(|_| self.random.below(records)).collect();
                self.retrieve(&wanted, &mut latencies, goes_on)?;
            } else {
                // One after the other: commands under way have no order, so that none is of another's record.
                count = count.min(own);
                let wanted = (self.stored..self.stored + count).map(|number| number % own * threads + self.thread);
                self.overwrite(&wanted.collect::<Vec<_>>(), &mut latencies, goes_on)?;
                self.stored += count;
            }
            done += count;
        }
        Ok(latencies)
    }

    /// Retrieves these records, while it `goes_on`.
    fn retrieve(
        &self,
        wanted: &[u64],
        latencies: &mut Latencies,
        goes_on: impl Fn(usize) -> bool,
    ) -> Result<(), EmbeddedError> {
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
        let keys = keys.iter().enumerate().take_while(|(number, _)| goes_on(*number)).map(|(number, key)| {
            begin(number);
            &key[..]
        });
        if self.queue_depth == 1 {
            for (number, key) in keys.enumerate() {
                see(number, self.store.retrieve(key).map_err(failed)?);
            }
        } else {
            self.store.own_namespace().retrieve_each(keys, see).map_err(failed)?;
        }
        wrong.map_or(Ok(()), Err)
    }

    /// Stores new values of these records, while it `goes_on`. A value is made when its command can go.
    fn overwrite(
        &self,
        wanted: &[u64],
        latencies: &mut Latencies,
        goes_on: impl Fn(usize) -> bool,
    ) -> Result<(), EmbeddedError> {
        let Target { records, versions, .. } = self.target;
        let keys: Vec<_> = wanted.iter().map(|&record| records.key(record)).collect();
        let begun = RefCell::new(Vec::with_capacity(keys.len()));
        let mut stored = |number: usize| {
            latencies.add(since(begun.borrow()[number]));
            versions.set(wanted[number], versions.get(wanted[number]) + 1);
        };
        let pairs = keys.iter().enumerate().take_while(|(number, _)| goes_on(*number)).map(|(number, key)| {
            let value = self.target.value(wanted[number], versions.get(wanted[number]) + 1);
            begun.borrow_mut().push(Instant::now());
            (&key[..], value)
        });
        if self.queue_depth == 1 {
            for (number, (key, value)) in pairs.enumerate() {
                self.store.store(key, &value).map_err(failed)?;
                stored(number);
            }
            return Ok(());
        }
        self.store.own_namespace().store_each(pairs, stored).map_err(failed)
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
