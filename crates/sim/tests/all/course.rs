//! The course of a run: its series and rounds have all of it, once, and change nothing.

use crate::once::run;
use crate::side_by_side::side_by_side;
use kvssd_measure::Quiet;
use kvssd_sim::workload::YcsbCore;
use kvssd_sim::{Bench, HostPlan, Interval, Rounds, RunReport};
use kvssd_types::Nanos;
use serde_json::{Value, json};

/// A small drive whose collector is at work.
fn bench(workload: YcsbCore) -> Bench {
    let design = if workload == YcsbCore::E { "iter" } else { "plus" };
    Bench {
        designs: vec![design.to_owned()],
        scale: 1.0 / 512.0,
        fill: 0.4,
        operations: Some(if workload == YcsbCore::E { 2_000 } else { 20_000 }),
        hosts: HostPlan::closed(4, 1),
        workload,
        overrides: if workload == YcsbCore::E { vec![dram()] } else { Vec::new() },
        ..Bench::default()
    }
}

fn dram() -> (String, String) {
    ("memory.dram_bytes".to_owned(), "8589934592".to_owned())
}

/// A report without what is of the machine that ran it, or asked for beside it.
fn core_of(report: &RunReport) -> Value {
    let mut fields = json!(report);
    for name in ["host", "rounds", "series"] {
        fields.as_object_mut().unwrap().remove(name);
    }
    fields
}

/// Whether intervals have each operation, page and superblock of a run once, and end with it.
fn add_up(intervals: &[Interval], report: &RunReport) {
    let sum = |figure: fn(&Interval) -> u64| intervals.iter().map(figure).sum::<u64>();
    assert_eq!(sum(|interval| interval.operations), report.operations);
    assert_eq!(sum(|interval| interval.flash_reads), report.flash.reads.values().sum::<u64>());
    assert_eq!(sum(|interval| interval.flash_programs), report.flash.programs.values().sum::<u64>());
    assert_eq!(sum(|interval| interval.flash_erases), report.flash.erases);
    assert_eq!(sum(|interval| interval.gc_superblocks), report.gc.superblocks);
    assert_eq!(sum(|interval| interval.gc_busy_ns), report.gc.busy_ns);
    assert_eq!(sum(|interval| interval.gc_stall_ns), report.gc.stall_ns);
    let last = intervals.last().unwrap();
    assert_eq!((last.end_ns, last.dram_used_bytes), (report.simulated_ns, report.dram.used_bytes));
    assert!(intervals.is_sorted_by_key(|interval| interval.end_ns));
    for (name, latency) in report.latency_ns.iter().chain(&report.sequence_latency_ns) {
        let count = |interval: &Interval| interval.latencies.get(&format!("{name}_count")).and_then(Value::as_u64);
        let max = |interval: &Interval| interval.latencies.get(&format!("{name}_max_ns")).and_then(Value::as_u64);
        assert_eq!(intervals.iter().filter_map(count).sum::<u64>(), latency.count, "{name}");
        assert_eq!(intervals.iter().filter_map(max).max().unwrap_or(0), latency.max, "{name}");
    }
}

#[test]
fn a_series_has_all_of_a_run_and_changes_nothing() {
    side_by_side(&[YcsbCore::A, YcsbCore::D, YcsbCore::E, YcsbCore::F], |&workload| {
        let plain = run(&bench(workload));
        let seen = run(&Bench { series: Some(Nanos(5_000_000)), ..bench(workload) });
        assert_eq!(core_of(&plain), core_of(&seen), "{workload}");
        let series = seen.series.as_ref().unwrap();
        add_up(series.intervals(), &seen);
        assert!(series.intervals().len() > 4, "{workload} took {} intervals", series.intervals().len());
        let columns = json!(series);
        let columns = columns.as_object().unwrap();
        assert!(columns.values().all(|column| column.as_array().unwrap().len() == series.intervals().len()));
        assert!(columns.contains_key("free_superblocks") && columns.contains_key("write_amplification"));
    });
}

#[test]
fn rounds_are_a_run_as_such_in_parts() {
    side_by_side(&[YcsbCore::A, YcsbCore::D, YcsbCore::E, YcsbCore::F], |&workload| {
        let plain = run(&bench(workload));
        let operations = Some(plain.operations / 8);
        let series = Some(Nanos(5_000_000));
        let seen = run(&Bench { operations, rounds: Rounds::Count(8), series, ..bench(workload) });
        assert_eq!(core_of(&plain), core_of(&seen), "{workload}");
        let rounds = seen.rounds.as_ref().unwrap();
        add_up(rounds.columns.intervals(), &seen);
        add_up(seen.series.as_ref().unwrap().intervals(), &seen);
        assert_eq!((rounds.reported_first, rounds.reported_last), (1, 8));
        let throughput = rounds.confidence_95["throughput_ops_s"];
        assert!((throughput.mean / seen.throughput_ops_s - 1.0).abs() < 1e-9, "{throughput:?}");
        assert!(throughput.half_width > 0.0 && throughput.half_width < 0.2 * throughput.mean, "{throughput:?}");
    });
}

#[test]
fn what_cannot_be_a_course_is_refused() {
    let refused = |bench: Bench| bench.run(&mut Quiet).unwrap_err().to_string();
    let plain = || Bench { operations: Some(1000), fill: 0.1, ..bench(YcsbCore::A) };
    assert!(refused(Bench { rounds: Rounds::UntilSteady { most: 4 }, ..plain() }).contains("--rounds 4"));
    assert!(refused(Bench { series: Some(Nanos(1)), ..plain() }).contains("--series 1 ns"));
    assert!(refused(Bench { series: Some(Nanos(0)), ..plain() }).contains("--series must be above 0"));
    assert!(refused(Bench { operations: Some(0), rounds: Rounds::Count(2), ..plain() }).contains("--operations"));
    let short = Bench { hosts: HostPlan::closed(64, 1), operations: Some(255), rounds: Rounds::Count(2), ..plain() };
    assert!(refused(short).contains("256 at least"));
}

mod campaigns {
    use super::*;

    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn a_drive_that_was_filled_and_not_overwritten_takes_rounds_to_be_steady() {
        let last_rounds = side_by_side(&[0, 300_000], |&overwrites| {
            let report = run(&Bench {
                operations: Some(40_000),
                overwrites: Some(overwrites),
                rounds: Rounds::UntilSteady { most: 25 },
                fill: 0.6,
                ..bench(YcsbCore::A)
            });
            let rounds = report.rounds.as_ref().unwrap();
            let intervals = rounds.columns.intervals();
            assert!(rounds.steady.as_ref().unwrap().is_steady, "{:?}", rounds.steady);
            assert_eq!((rounds.reported_last - rounds.reported_first, rounds.reported_last), (4, intervals.len()));
            // What is reported is the last five rounds and nothing else.
            let before = rounds.reported_first.checked_sub(2).map_or(0, |before| intervals[before].end_ns);
            assert_eq!(report.simulated_ns, intervals.last().unwrap().end_ns - before);
            assert_eq!(report.operations, 200_000);
            let programs =
                intervals[rounds.reported_first - 1..].iter().map(|interval| interval.flash_programs).sum::<u64>();
            assert_eq!(programs, report.flash.programs.values().sum::<u64>());
            rounds.reported_last
        });
        let (fresh, used) = (last_rounds[0], last_rounds[1]);
        assert!(fresh > used, "{fresh} rounds of a fresh drive, {used} of a used one");
    }
}
