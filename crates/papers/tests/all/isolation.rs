//! Concurrent transactions on few records are serializable, on every engine; and engines that are not are found.

use kvssd_device::Device;
use kvssd_flash::RopeBacking;
use kvssd_ftl::NamespaceAttributes;
use kvssd_measure::Quiet;
use kvssd_papers::transactions::pages::{LockedUnit, PageEngine, PageOptions};
use kvssd_papers::transactions::{
    CachedDrive, CachedDriveOptions, HotRecords, TransactionEngine, TransactionReport, Verdict,
};
use kvssd_transactions::{Granularity, Isolation, PlantedBug, TransactionOptions};
use kvssd_types::{NamespaceId, Nanos};

const TERMINALS: u32 = 12;
const VALUE_BYTES: u32 = 100;
/// Of two tables, so that most transactions meet others.
const RECORDS: u64 = 120;

/// A tiny drive of the design, with two namespaces if it takes keys.
fn drive(name: &str) -> Device {
    let mut design = kvssd_designs::named(name).unwrap();
    if design.takes_keys() {
        design.namespaces_max = 2;
    }
    let dram_bytes = (3 * design.tiny_profile(&[]).unwrap().memory.dram_bytes).to_string();
    let overrides = [("geometry.oob_bytes", "1000"), ("memory.dram_bytes", dram_bytes.as_str())];
    let profile = design.tiny_profile(if design.takes_keys() { &overrides } else { &[] }).unwrap();
    let mut device = Device::new(&design, &profile, Box::new(RopeBacking::new(profile.geometry))).unwrap();
    if design.takes_keys() {
        let (_, second) = device.create_namespace(NamespaceAttributes::PLAIN, Nanos::ZERO).unwrap();
        assert_eq!(second, NamespaceId(2));
    }
    device
}

fn cached(name: &str, isolation: Isolation, transactions: TransactionOptions) -> CachedDrive {
    CachedDrive::new(drive(name), CachedDriveOptions { isolation, transactions, value_bytes_max: 512 }).unwrap()
}

fn paged(locked_unit: LockedUnit) -> PageEngine {
    PageEngine::new(drive("block"), PageOptions { pool_pages: 4, log_bytes: 512 << 10, locked_unit }).unwrap()
}

fn judge(engine: &mut dyn TransactionEngine, transactions: u64) -> (TransactionReport, Verdict) {
    let workload = HotRecords::new(RECORDS, VALUE_BYTES);
    workload.judge(engine, TERMINALS, transactions, 1, &mut Quiet).unwrap()
}

/// So many transactions on each engine with each way to keep them apart.
fn all_are_serializable(transactions: u64) {
    let mut engines: Vec<(String, Box<dyn TransactionEngine>)> = Vec::new();
    for name in ["kaml", "plus"] {
        for isolation in [Isolation::TwoPhaseLocking, Isolation::Optimistic] {
            for records_per_lock in [1, 8] {
                for cache_bytes in [0, 6_000, 1 << 20] {
                    let granularity = Granularity::records(records_per_lock);
                    let options = TransactionOptions { cache_bytes, granularity, planted: None };
                    let what = format!("{name}, {isolation:?}, {records_per_lock} a lock, {cache_bytes} bytes");
                    engines.push((what, Box::new(cached(name, isolation, options))));
                }
            }
        }
    }
    for locked_unit in [LockedUnit::Record, LockedUnit::Page] {
        engines.push((format!("block, {locked_unit:?}"), Box::new(paged(locked_unit))));
    }
    for (what, mut engine) in engines {
        let (report, verdict) = judge(engine.as_mut(), transactions);
        let refused = report.refused as f64 / transactions as f64;
        eprintln!("{what}: {verdict}; {refused:.2} attempts refused for each, {:.0}/s", report.transactions_per_s);
        assert!(verdict.is_serializable() && verdict.versions_unordered == 0, "{what}: {verdict}");
        // One of twenty rolls back.
        assert!(
            verdict.transactions > transactions * 9 / 10 && verdict.dependencies > transactions,
            "{what}: {verdict}"
        );
        assert!(report.refused > 0, "{what}: nobody met another");
    }
}

#[test]
fn transactions_of_every_engine_are_serializable() {
    all_are_serializable(4_000);
}

#[test]
#[ignore = "takes minutes: 100 000 transactions on each engine"]
fn a_hundred_thousand_transactions_of_every_engine_are_serializable() {
    all_are_serializable(100_000);
}

#[test]
fn planted_lost_updates_are_found() {
    for (isolation, bug) in
        [(Isolation::TwoPhaseLocking, PlantedBug::UnlockedRead), (Isolation::Optimistic, PlantedBug::UncheckedRead)]
    {
        for cache_bytes in [0, 1 << 20] {
            let options = TransactionOptions { cache_bytes, planted: Some(bug), ..TransactionOptions::default() };
            let (_, verdict) = judge(&mut cached("kaml", isolation, options), 4_000);
            assert!(verdict.anomalies.contains_key("lost update") && verdict.cycle.is_some(), "{bug:?}: {verdict}");
        }
    }
}
