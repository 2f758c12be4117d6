//! The measurement of a cell: stores side by side, one workload on each in turn, so that what the machine does beside hits all
//! alike.
//!
//! ```text
//!   turn of a store:  its files are read in -> workload, measured -> it and the system have nothing left to do
//! ```
//!
//! A store waits for its turn for as long as all others take. A system that lets go of what nobody asked for meanwhile would have it read its files
//! from the disk again.

use crate::folder::{read_in, write_out};
use crate::plan::Cell;
use crate::records::{KEY_BYTES, Records, Versions};
use crate::stores::STORES;
use crate::threads::{Worked, processor_ns, work_together};
use crate::workload::{Hand, Subject};
use crate::{EmbeddedError, Measurement, Opening, StoreError, Workload};
use kvssd_measure::{Latencies, Observer};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

/// Records that are looked at after the deletes.
const VERIFIED_RECORDS: u64 = 2000;
/// How long a store may go on in the background before the next is measured.
const BUSY_MAX: Duration = Duration::from_secs(30);
/// How long a store must have nothing to do until that is believed.
const IDLE: Duration = Duration::from_millis(50);
/// How often it is asked.
const LOOK: Duration = Duration::from_millis(5);

/// Measures every workload on every store.
pub(crate) fn measure(
    cell: &Cell,
    folder: &Path,
    observer: &mut dyn Observer,
) -> Result<Vec<Measurement>, EmbeddedError> {
    let records = Records::new(cell.seed, cell.value_bytes, cell.records);
    let mut subjects = Vec::new();
    for kind in STORES {
        let folder = folder.join(kind.name);
        let failed = |why: StoreError| EmbeddedError::of_store(kind.name, &why);
        fs::create_dir(&folder).map_err(|error| failed(format!("its folder cannot be made: {error}").into()))?;
        let (durability, pair_bytes, cache_bytes) = (cell.durability, cell.pair_bytes(), cell.cache_bytes);
        let opening = Opening { folder: &folder, durability, pair_bytes, cache_bytes };
        let store = (kind.open)(&opening).map_err(failed)?;
        let versions = Versions::new(cell.records);
        subjects.push((folder, Subject { name: kind.name, store, cell, records: &records, versions }));
    }
    let mut measurements = Vec::new();
    for workload in Workload::ALL {
        let has_it = |subject: &Subject<'_>| workload != Workload::Scan || subject.store.is_ordered();
        for (folder, subject) in subjects.iter().filter(|(_, subject)| has_it(subject)) {
            measurements.push(measure_one(subject, workload, folder, observer)?);
        }
    }
    for (_, subject) in &subjects {
        subject.verify(VERIFIED_RECORDS)?;
    }
    Ok(measurements)
}

fn measure_one(
    subject: &Subject<'_>,
    workload: Workload,
    folder: &Path,
    observer: &mut dyn Observer,
) -> Result<Measurement, EmbeddedError> {
    let Cell { durability, value_bytes, threads, records, round, cache_bytes, .. } = *subject.cell;
    let operations = subject.operations(workload);
    read_in(folder).map_err(|error| of_files(subject, "read", &error))?;
    observer.begin(&format!("{} {}", subject.name, workload.name()), operations);
    let before_ns = processor_ns();
    let Worked { latencies, wall } = work_together(threads, observer, |thread, watch| {
        let mut hand = Hand::new(subject, workload, thread);
        let mut latencies = Latencies::new();
        for number in 0..hand.operations() {
            if !watch.goes_on(number) {
                break;
            }
            latencies.add(hand.step(number)?);
        }
        Ok(latencies)
    })?;
    let disk_bytes = settle(subject, folder)?;
    let processor_ns = processor_ns() - before_ns;
    Ok(Measurement {
        store: subject.name,
        workload: workload.name(),
        durability: durability.name(),
        round,
        threads,
        key_bytes: KEY_BYTES,
        value_bytes,
        records,
        operations,
        cache_bytes,
        wall_ns: wall.as_nanos() as u64,
        throughput_ops_s: operations as f64 / wall.as_secs_f64().max(1e-9),
        latency_ns: latencies.summary(),
        processor_ns,
        disk_bytes,
    })
}

/// Waits until a store and the system have done what the store left to be done, so that it does not fall into the measurement of
/// another. Gives the room that it takes on disk then.
fn settle(subject: &Subject<'_>, folder: &Path) -> Result<u64, EmbeddedError> {
    let start = Instant::now();
    let mut idle_since = start;
    while idle_since.elapsed() < IDLE && start.elapsed() < BUSY_MAX {
        sleep(LOOK);
        if subject.store.is_busy() {
            idle_since = Instant::now();
        }
    }
    write_out(folder).map_err(|error| of_files(subject, "synced", &error))
}

fn of_files(subject: &Subject<'_>, what: &str, error: &io::Error) -> EmbeddedError {
    EmbeddedError::Store { store: subject.name, why: format!("its files cannot be {what}: {error}") }
}
