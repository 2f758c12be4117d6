//! Each switch of the `[emulator]` table does what it says.

use crate::once::{self, Once};
use kvssd_sim::workload::{Distribution, YcsbCore};
use kvssd_sim::{Bench, RunReport};

/// `original` under collection, with this much of its testbed switched on.
fn run_as(workload: YcsbCore, distribution: Distribution, switches: &[(&'static str, &'static str)]) -> RunReport {
    type Run = (&'static str, &'static str, Vec<(&'static str, &'static str)>);
    static REPORTS: Once<Run, RunReport> = Once::new();
    let bench = Bench {
        designs: vec!["original".to_owned()],
        scale: 1.0 / 512.0,
        fill: 0.5,
        operations: Some(40_000),
        workload,
        distribution: Some(distribution),
        overrides: switches.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..Bench::default()
    };
    REPORTS.get((workload.name(), distribution.name(), switches.to_vec()), || once::run(&bench))
}

fn run(switches: &[(&'static str, &'static str)]) -> RunReport {
    run_as(YcsbCore::A, Distribution::Uniform, switches)
}

fn buffer_ns(report: &RunReport, command: &str) -> u64 {
    report.spent_ns[command].get("buffer").copied().unwrap_or_default()
}

#[test]
fn dies_that_use_no_gaps_do_less() {
    let (gaps, first_come) = (run(&[]), run(&[("emulator.dies_first_come", "true")]));
    assert!(first_come.throughput_ops_s < 0.9 * gaps.throughput_ops_s, "{}", first_come.throughput_ops_s);
}

#[test]
fn who_fills_a_program_waits_for_it() {
    let plain = run(&[]);
    let evictions = run(&[("emulator.evictions_wait", "true")]);
    assert!(buffer_ns(&evictions, "retrieve") > 2 * buffer_ns(&plain, "retrieve"), "a retrieve evicts");
    let stores = run(&[("emulator.stores_wait", "true")]);
    assert!(buffer_ns(&stores, "store") > 2 * buffer_ns(&plain, "store"));
}

#[test]
fn a_retrieve_pays_for_each_record_of_another_key() {
    let (plain, retries) = (run(&[]), run(&[("emulator.retry_ns", "1000000")]));
    let core_ns = |report: &RunReport, command: &str| report.spent_ns[command]["core"] as f64;
    assert!(core_ns(&retries, "retrieve") > 10.0 * core_ns(&plain, "retrieve"));
    assert!(core_ns(&retries, "store") < 1.5 * core_ns(&plain, "store"), "stores try again for nothing more");
}

#[test]
fn sections_may_have_dram_of_their_own() {
    let hits = |report: RunReport| report.index.cache_hit_ratio.unwrap();
    // At 1/512 of it all of a table of 1/512 fits.
    assert!(hits(run(&[("emulator.section_dram_bytes", "2000000000")])) > 0.99);
    assert!(hits(run(&[("emulator.section_dram_bytes", "20000000")])) < hits(run(&[])));
}

#[test]
fn victims_may_be_read_in_no_time() {
    let (plain, unread) = (run(&[]), run(&[("emulator.victims_unread", "true")]));
    assert!(plain.flash.reads["gc"] > 0 && unread.flash.reads["gc"] == 0);
}

#[test]
fn what_collection_moves_need_not_be_written_in_sections() {
    // Every value that is retrieved is compared: what the sections say is kept elsewhere.
    let (plain, moved) = (run(&[]), run(&[("emulator.moves_dirty_nothing", "true")]));
    let written = |report: &RunReport| report.flash.programs["index"] + report.flash.programs["gc_index"];
    let read = |report: &RunReport| report.flash.reads["gc_index"];
    assert!(5 * written(&moved) < 4 * written(&plain), "{} {}", written(&moved), written(&plain));
    assert!(2 * read(&moved) > read(&plain), "they are read all the same: {} {}", read(&moved), read(&plain));
}

#[test]
fn reads_need_not_be_shared() {
    let reads = |switches: &[(&'static str, &'static str)]| {
        let flash = run_as(YcsbCore::C, Distribution::Zipfian, switches).flash;
        (flash.reads["user"], flash.shared_reads["user"])
    };
    let (shared, unshared) = (reads(&[]), reads(&[("emulator.reads_unshared", "true")]));
    assert!(shared.1 > 0 && unshared.1 == 0 && unshared.0 > shared.0, "{shared:?} {unshared:?}");
}

#[test]
fn threads_with_one_sequence_share_what_each_brings() {
    let misses = |switches: &[(&'static str, &'static str)]| {
        1.0 - run_as(YcsbCore::C, Distribution::Zipfian, switches).index.cache_hit_ratio.unwrap()
    };
    let (own, same) = (misses(&[]), misses(&[("emulator.one_sequence", "true")]));
    assert!(same < own / 3.0, "{same:.3} of look-ups miss, {own:.3} with sequences of their own");
    let uniform = |switches: &[(&'static str, &'static str)]| run(switches).simulated_ns;
    assert_eq!(uniform(&[]), uniform(&[("emulator.one_sequence", "true")]), "uniform runs are seeded apart");
}

#[test]
fn the_first_that_were_loaded_may_be_the_popular_ones() {
    let run = |switches: &[(&'static str, &'static str)]| run_as(YcsbCore::C, Distribution::Zipfian, switches);
    let (scattered, first) = (run(&[]), run(&[("emulator.first_are_popular", "true")]));
    // Who came first met nobody in his slot.
    let reads = |report: &RunReport| report.flash.reads["user"] + report.flash.shared_reads["user"];
    assert!(reads(&first) < reads(&scattered), "{} {}", reads(&first), reads(&scattered));
    assert!(first.index.cache_hit_ratio > scattered.index.cache_hit_ratio);
}
