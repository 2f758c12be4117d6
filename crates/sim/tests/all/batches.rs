//! Updates that go together: what is counted, what is checked, and what a batch gains.

use crate::side_by_side::side_by_side;
use kvssd_measure::Quiet;
use kvssd_sim::workload::{PairShape, YcsbCore};
use kvssd_sim::{Bench, Experiment, HostPlan, Rounds, RunReport, SimError};

const TAKE_BATCHES: [&str; 8] = ["original", "plus", "rhik", "multilevel", "pink", "iter", "kaml", "tessera"];

fn experiments(designs: &[&str], batch_pairs: u32, workload: YcsbCore) -> Result<Vec<Experiment>, SimError> {
    let designs = designs.iter().map(|name| (*name).to_owned()).collect();
    let (records, operations) = (Some(4000), Some(3001));
    let hosts = HostPlan::closed(5, 1);
    Bench { designs, scale: 1.0 / 512.0, records, operations, batch_pairs, workload, hosts, ..Bench::default() }
        .experiments(Experiment::check)
}

fn run(design: &str, batch_pairs: u32, workload: YcsbCore) -> RunReport {
    let experiment = &experiments(&[design], batch_pairs, workload).unwrap()[0];
    experiment.run(&mut Quiet).unwrap().remove(0)
}

#[test]
fn every_update_is_on_the_drive_when_the_run_ends_and_nothing_is_read_before() {
    side_by_side(&TAKE_BATCHES, |&design| {
        for workload in [YcsbCore::A, YcsbCore::F] {
            let report = run(design, 8, workload);
            assert_eq!((report.operations, report.failed_retrieves), (3001, 0), "{design}");
            assert!(report.verified_retrieves > 1000, "{design}");
            let batches = report.latency_ns["batch"].count;
            // Half of the operations, in eighths; a batch is smaller when its key comes again, or the run ends.
            assert!((180..=300).contains(&batches), "{design}: {batches} batches");
            assert_eq!(report.latency_ns["store"].count, 0, "{design}");
        }
    });
}

#[test]
fn a_batch_costs_less_than_its_pairs_alone() {
    let [alone, together] =
        [(1, "store"), (8, "batch")].map(|(pairs, name)| run("kaml", pairs, YcsbCore::A).latency_ns[name].mean);
    assert!(together < 8.0 * alone && together > alone, "{together:.0} ns a batch, {alone:.0} ns a store");
}

#[test]
fn rounds_have_many_batches_and_say_what_they_took() {
    let mut bench = Bench { designs: vec!["plus".to_owned()], scale: 1.0 / 512.0, ..Bench::default() };
    (bench.records, bench.batch_pairs, bench.rounds) = (Some(20_000), 4, Rounds::Count(3));
    bench.operations = Some(500);
    assert!(bench.run(&mut Quiet).unwrap_err().to_string().contains("--operations 1600 at least"));
    bench.operations = Some(1600);
    let report = bench.run(&mut Quiet).unwrap().remove(0);
    let columns = serde_json::to_value(report.rounds.expect("there are rounds").columns).unwrap();
    let counts: Vec<u64> =
        columns["batch_count"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect();
    assert!(counts.iter().all(|count| (150..=300).contains(count)), "{counts:?}");
}

#[test]
fn a_drive_that_is_full_says_so_or_goes_on() {
    side_by_side(&TAKE_BATCHES, |&design| {
        for fill in [0.9, 1.0] {
            let mut bench = Bench { designs: vec![design.to_owned()], scale: 1.0 / 512.0, fill, ..Bench::default() };
            (bench.pairs.value_bytes, bench.batch_pairs, bench.operations) = (4000, 16, Some(5000));
            match bench.run(&mut Quiet) {
                Ok(reports) => assert_eq!(reports[0].failed_retrieves, 0, "{design}"),
                Err(SimError::Full { .. }) => {}
                Err(other) => panic!("{design}: {other}"),
            }
        }
    });
}

/// Each pair that collection moves is noted in the tree: where little else is to be gained, the notes take more than is freed.
#[test]
fn a_tree_on_the_smallest_superblocks_says_that_it_is_full_and_does_not_fail() {
    let overrides = [
        ("geometry.channels", "16"),
        ("geometry.dies_per_channel", "1"),
        ("geometry.blocks_per_die", "64"),
        ("geometry.pages_per_block", "1"),
        ("geometry.pages_per_program", "1"),
        ("memory.dram_bytes", "8388608"),
    ];
    let overrides = overrides.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    side_by_side(&["pink", "iter"], |&design| {
        let designs = vec![design.to_owned()];
        let (overrides, pairs) = (overrides.clone(), PairShape::constant(8, 50));
        let mut bench = Bench { designs, scale: 1.0, overrides, pairs, ..Bench::default() };
        assert!(matches!(bench.run(&mut Quiet), Err(SimError::Full { .. })), "{design}");
        bench.records = Some(25_000);
        assert_eq!(bench.run(&mut Quiet).unwrap()[0].failed_retrieves, 0, "{design}");
    });
}

#[test]
fn what_takes_no_batches_says_so() {
    let why = |design, pairs| experiments(&[design], pairs, YcsbCore::A).unwrap_err().to_string();
    assert!(why("block", 2).contains("takes no batches"));
    assert!(why("plus", 100_000).contains("more than the"));
    assert!(why("plus", 0).contains("above 0"));
    let mut few = Bench { designs: vec!["plus".to_owned()], records: Some(20), batch_pairs: 21, ..Bench::default() };
    assert!(few.experiments(Experiment::check).unwrap_err().to_string().contains("more than the 20 records"));
    (few.batch_pairs, few.hosts.rate_per_s) = (2, Some(1000.0));
    assert!(few.experiments(Experiment::check).unwrap_err().to_string().contains("--rate"));
    let of_reads = experiments(&["plus"], 2, YcsbCore::C).unwrap_err().to_string();
    assert!(of_reads.contains("has none"), "{of_reads}");
}
