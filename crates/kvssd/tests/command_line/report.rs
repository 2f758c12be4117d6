//! What a bench reports, and that it is what was asked for.

use crate::desk::{Desk, NEARLY_FULL, TINY, bench, number, runs};
use serde_json::Value;

/// The numbers that a run under YCSB-A reports, as JSON pointers.
const NUMBERS: [&str; 34] = [
    "/seed",
    "/records",
    "/operations",
    "/throughput_ops_s",
    "/latency_ns/retrieve/mean",
    "/latency_ns/retrieve/p50",
    "/latency_ns/retrieve/p99",
    "/latency_ns/retrieve/p999",
    "/latency_ns/retrieve/max",
    "/latency_ns/store/mean",
    "/latency_ns/store/p50",
    "/latency_ns/store/p99",
    "/latency_ns/store/p999",
    "/latency_ns/store/max",
    "/flash/erases",
    "/write_amplification",
    "/read_amplification",
    "/space_amplification",
    "/dram/budget_bytes",
    "/dram/used_bytes",
    "/index/cache_hit_ratio",
    "/index/collisions",
    "/index/flash_reads_per_lookup_mean",
    "/index/flash_reads_per_lookup_max",
    "/wear/erases_min",
    "/wear/erases_mean",
    "/wear/erases_max",
    "/channels/program_share_min",
    "/channels/program_share_max",
    "/verified_retrieves",
    "/failed_retrieves",
    "/simulated_ns",
    "/host/wall_ns",
    "/host/speedup",
];

/// The tables of numbers by name.
const TABLES: [&str; 3] = ["/flash/reads", "/flash/programs", "/dram/parts"];

#[test]
fn a_bench_compares_both_designs_in_a_table_and_in_json() {
    let desk = Desk::new();
    let table = desk.prints(&format!("bench {NEARLY_FULL} --json runs.json"));
    assert_eq!(desk.files(), ["runs.json"]);
    let heading: Vec<_> = table.lines().next().expect("a table").split_whitespace().collect();
    assert_eq!(heading, ["original", "plus"]);
    for row in ["throughput", "store p50", "write amplification", "device DRAM", "verified / failed retrieves"] {
        assert!(table.lines().any(|line| line.starts_with(row)), "no row {row} in\n{table}");
    }
    let runs = runs(&desk.read("runs.json"));
    assert_eq!(runs.iter().map(|run| run["design"].as_str().unwrap()).collect::<Vec<_>>(), ["original", "plus"]);
    for run in &runs {
        has_every_field(run);
        is_consistent(run);
        assert!(number(run, "/flash/programs/gc") > 0.0, "garbage collection moved nothing: {run:#}");
    }
}

fn has_every_field(run: &Value) {
    for (field, text) in [("profile", "kvvirt"), ("workload", "ycsb-a"), ("distribution", "zipfian")] {
        assert_eq!(run[field], text, "{field}");
    }
    for pointer in NUMBERS {
        assert!(number(run, pointer) >= 0.0, "{pointer} is below 0 in {run:#}");
    }
    assert!(number(run, "/host/peak_rss_bytes") > 0.0 || !cfg!(target_os = "linux"), "{run:#}");
    for pointer in TABLES {
        let table = run.pointer(pointer).and_then(Value::as_object).unwrap_or_else(|| panic!("no {pointer}"));
        assert!(!table.is_empty() && table.values().all(Value::is_u64), "{pointer} in {run:#}");
    }
}

fn is_consistent(run: &Value) {
    for ascending in [
        [
            "/latency_ns/retrieve/p50",
            "/latency_ns/retrieve/p99",
            "/latency_ns/retrieve/p999",
            "/latency_ns/retrieve/max",
        ],
        ["/latency_ns/store/p50", "/latency_ns/store/p99", "/latency_ns/store/p999", "/latency_ns/store/max"],
        ["/wear/erases_min", "/wear/erases_mean", "/wear/erases_max", "/wear/erases_max"],
    ] {
        assert!(ascending.map(|pointer| number(run, pointer)).is_sorted(), "{ascending:?} in {run:#}");
    }
    assert_eq!((number(run, "/records"), number(run, "/operations")), (100_000.0, 60_000.0));
    assert!(number(run, "/dram/used_bytes") <= number(run, "/dram/budget_bytes"), "{run:#}");
    let parts = run["dram"]["parts"].as_object().expect("has parts").values().filter_map(Value::as_u64).sum();
    assert_eq!(run["dram"]["used_bytes"].as_u64(), Some(parts), "the parts of DRAM make up what is used");
    // An eighth each, to within what a few open units of a short run leave over.
    for share in ["/channels/program_share_min", "/channels/program_share_max"] {
        assert!((number(run, share) / 0.125 - 1.0).abs() < 0.05, "{share} of 8 channels: {run:#}");
    }
    let throughput = number(run, "/operations") / number(run, "/simulated_ns") * 1e9;
    assert!((number(run, "/throughput_ops_s") / throughput - 1.0).abs() < 1e-6, "{run:#}");
    let speedup = number(run, "/simulated_ns") / number(run, "/host/wall_ns");
    assert!((number(run, "/host/speedup") / speedup - 1.0).abs() < 1e-6, "{run:#}");
    assert_eq!(number(run, "/failed_retrieves"), 0.0);
}

#[test]
fn a_seed_decides_everything_but_the_host() {
    let report = |seed: u64| {
        let mut runs = bench(&format!("{NEARLY_FULL} --seed {seed}"));
        for run in &mut runs {
            let fields = run.as_object_mut().expect("a run is an object");
            assert_eq!(fields.remove("seed"), Some(seed.into()));
            assert!(fields.remove("host").is_some());
        }
        runs
    };
    let first = report(7);
    assert_eq!(format!("{:#?}", report(7)), format!("{first:#?}"));
    for (same, other) in first.iter().zip(report(8)) {
        assert_ne!(same["simulated_ns"], other["simulated_ns"], "another seed, and yet the same run");
    }
}

#[test]
fn every_workload_of_points_runs_and_verifies() {
    // Of 3000 operations so many read: all, about 95 %, about half.
    for (workload, retrieves) in [
        ("ycsb-a", 1350.0..=1650.0),
        ("ycsb-b", 2800.0..=2900.0),
        ("ycsb-c", 3000.0..=3000.0),
        ("ycsb-d", 2800.0..=2900.0),
        ("ycsb-f", 3000.0..=3000.0),
    ] {
        let runs = bench(&format!("{TINY} --workload {workload}"));
        assert_eq!(runs.len(), 2);
        for run in runs {
            assert_eq!(run["workload"], workload);
            assert!(retrieves.contains(&number(&run, "/verified_retrieves")), "{run:#}");
            assert_eq!(number(&run, "/failed_retrieves"), 0.0);
        }
    }
}

#[test]
fn ranges_run_and_verify_where_keys_have_an_order() {
    const ROOMY: &str = "--design pink --design iter --scale 1/512 --set memory.dram_bytes=8589934592";
    for run in bench(&format!("{ROOMY} --records 5000 --operations 1000 --workload ycsb-e")) {
        assert!((900.0..=1000.0).contains(&number(&run, "/verified_retrieves")), "{run:#}");
        assert_eq!(number(&run, "/failed_retrieves"), 0.0);
        assert!(number(&run, "/sequence_latency_ns/scan/p99") > 0.0);
    }
    let crowded = format!("bench {TINY} --design iter --workload ycsb-e --json runs.json");
    Desk::new().refuses(&crowded, &["iterators", "fewer threads"]);
    let names = "fillrandom,readrandom,readseq,seekrandomwhilewriting";
    let options = format!("{ROOMY} --records 5000 --operations 200 --key-bytes 16 --threads 2 --db-bench {names}");
    let runs = bench(&format!("{options} --scan-length 9"));
    assert_eq!(runs.len(), 8);
    for run in &runs[3..4] {
        assert_eq!(run["workload"], "seekrandomwhilewriting");
        assert!(number(run, "/latency_ns/next/count") > 1700.0 && number(run, "/latency_ns/seek/count") == 200.0);
        assert!(number(run, "/retrieved_bytes_s") > 0.0 && number(run, "/failed_retrieves") == 0.0);
    }
}

#[test]
fn what_does_not_happen_has_no_amplification() {
    for run in bench(&format!("{TINY} --workload ycsb-c")) {
        assert_eq!(run["write_amplification"], Value::Null);
        assert!(number(&run, "/read_amplification") >= 1.0);
    }
}

#[test]
fn an_open_loop_keeps_the_rate_that_it_was_given() {
    for run in bench(&format!("{TINY} --rate 20000")) {
        let throughput = number(&run, "/throughput_ops_s");
        assert!((18_000.0..22_000.0).contains(&throughput), "{throughput}");
    }
}

#[test]
fn options_reach_the_run() {
    let options = "--design plus --distribution uniform --value-bytes 50 --key-bytes 16 --threads 4 --queue-depth 2";
    let usual = &bench(&format!("{TINY} {options}"))[0];
    assert_eq!((usual["design"].as_str(), usual["distribution"].as_str()), (Some("plus"), Some("uniform")));
    let slow_flash = &bench(&format!("{TINY} {options} --set nand.read_small_ns=[900000]"))[0];
    assert!(number(slow_flash, "/latency_ns/retrieve/mean") > 5.0 * number(usual, "/latency_ns/retrieve/mean"));
    let large_grains = &bench(&format!("{TINY} {options} --set design.grain_bytes=512"))[0];
    assert!(number(large_grains, "/space_amplification") > 2.0 * number(usual, "/space_amplification"));
    let small_drive = &bench(&format!("{TINY} {options} --set memory.dram_bytes=209715200"))[0];
    assert!(number(small_drive, "/dram/budget_bytes") < number(usual, "/dram/budget_bytes"));
}

/// Such as a file that one may write in a folder that one may not: long work is not done for nothing.
#[cfg(target_os = "linux")]
#[test]
fn a_file_whose_folder_takes_no_other_is_refused_before_work_begins() {
    let desk = Desk::new();
    // Whoever runs this: no folder of that kind takes files.
    desk.refuses("bench --scale 1/512 --records 1000 --operations 1000 --json /proc/self/comm", &["/proc/self/comm"]);
}
