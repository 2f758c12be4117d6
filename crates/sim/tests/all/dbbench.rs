//! LevelDB's benchmarks on drives with ranges.

use kvssd_flash::Profile;
use kvssd_measure::Quiet;
use kvssd_sim::SimError;
use kvssd_sim::dbbench::{DbBench, DbBenchSession, DbBenchmark};

fn session(name: &str) -> DbBenchSession {
    let design = kvssd_designs::named(name).unwrap();
    let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 512.0).unwrap();
    let bench = DbBench { records: 20_000, key_bytes: 4, value_bytes: 1000, scan_length: 20, threads: 2, seed: 1 };
    DbBenchSession::new(&design, &profile, &bench).unwrap()
}

#[test]
fn every_benchmark_finds_what_was_written() {
    for design in ["pink", "iter"] {
        let mut session = session(design);
        for (benchmark, operations) in [
            (DbBenchmark::FillRandom, 20_000),
            (DbBenchmark::ReadSeq, 5_000),
            (DbBenchmark::FillSeq, 20_000),
            (DbBenchmark::Overwrite, 10_000),
            (DbBenchmark::ReadRandom, 2_000),
            (DbBenchmark::SeekRandom, 300),
            (DbBenchmark::ReadWhileWriting, 2_000),
            (DbBenchmark::SeekRandomWhileWriting, 300),
            (DbBenchmark::SeekRandomWhileChanging, 300),
        ] {
            let report = session.run(benchmark, operations, &mut Quiet).unwrap().report;
            assert_eq!((report.failed_retrieves, report.operations), (0, operations), "{design} {benchmark}");
            if !benchmark.writes() {
                assert!(report.verified_retrieves >= operations, "{design} {benchmark}");
            }
        }
    }
}

#[test]
fn what_has_no_order_is_refused_where_ranges_are_wanted() {
    let mut session = session("plus");
    session.run(DbBenchmark::FillRandom, 100, &mut Quiet).unwrap();
    session.run(DbBenchmark::ReadRandom, 100, &mut Quiet).unwrap();
    assert!(matches!(session.run(DbBenchmark::SeekRandom, 1, &mut Quiet), Err(SimError::NoRanges { .. })));
    assert!("seekwild".parse::<DbBenchmark>().is_err());
}

/// Half of the keys are there: reads of the others bring no bytes.
#[test]
fn values_that_are_not_there_are_not_retrieved() {
    let mut session = session("iter");
    let filled = session.run(DbBenchmark::FillRandom, 10_000, &mut Quiet).unwrap().report;
    assert_eq!(filled.records, 0, "none was there when it began");
    let report = session.run(DbBenchmark::ReadRandom, 2_000, &mut Quiet).unwrap().report;
    let retrieved = report.retrieved_bytes_s * report.simulated_ns as f64 / 1e9 / 1000.0;
    assert!((7800..7950).contains(&report.records), "{}", report.records);
    assert!(
        (600.0..1000.0).contains(&retrieved),
        "10 000 draws of 20 000 keys leave 61 % out, and {retrieved:.0} of 2000 were found"
    );
}

/// What is counted is what was read: threads share the operations, as those of all other benchmarks do.
#[test]
fn pairs_that_threads_read_in_order_are_the_operations() {
    let mut session = session("iter");
    session.run(DbBenchmark::FillSeq, 20_000, &mut Quiet).unwrap();
    for threads in [1, 2] {
        session.set(1, threads);
        let report = session.run(DbBenchmark::ReadSeq, 4_000, &mut Quiet).unwrap().report;
        let read = report.retrieved_bytes_s * report.simulated_ns as f64 / 1e9 / 1000.0;
        assert!((read - 4_000.0).abs() < 0.5, "{threads} threads read {read} pairs");
        assert_eq!((report.operations, report.failed_retrieves), (4_000, 0));
    }
}
