//! `kvssd bench --from`: what a report is of gives the same report again.

use crate::desk::{Desk, TINY, runs};
use serde_json::Value;

/// One of each kind, all families and what may be set beside it.
const KINDS: [&str; 17] = [
    "--workload ycsb-a --records 5000 --operations 3000",
    "--workload ycsb-b --fill 0.01 --operations 1000 --distribution latest --design rhik --design multilevel",
    "--workload ycsb-c --records 4000 --threads 3 --queue-depth 4 --design plus",
    "--workload ycsb-d --records 4000 --overwrites 10 --operations 500 --seed 18446744073709551615",
    "--workload ycsb-e --records 3000 --operations 200 --design pink --design iter --set memory.dram_bytes=8589934592",
    "--workload ycsb-f --records 4000 --rate 33333.3 --design block --design kaml --design plus --value-bytes 4096",
    "--records 4000 --value-distribution zipfian --key-bytes 31 --set nand.erase_ns=1234567 --set design.gc_low_superblocks=12",
    "--records 4000 --profile pm983 --scale 1/1024 --set space.over_provisioning_percent=11.7 --design multilevel",
    "--records 4000 --profile cosmos --scale 0.0123 --set emulator.stores_wait=true --design pink",
    "--records 4000 --profile mine.toml --design plus --design plus",
    "--records 4000 --rounds 3 --operations 500 --series 1ms --design plus",
    "--records 4000 --until steady --rounds 6 --operations 500 --design plus",
    "--records 4000 --workload ycsb-f --batch-pairs 7 --threads 3 --operations 500 --design kaml --design iter",
    "--kvbench bench.ini --seed 3",
    "--kvbench bench.ini --design plus --set nand.read_small_ns=[90000]",
    "--db-bench fillrandom,readrandom,overwrite --records 3000 --operations 200 --threads 2",
    "--db-bench fillseq,seekrandom,readseq --design iter --records 3000 --operations 50 --scan-length 9 --key-bytes 4 \
     --set memory.dram_bytes=8589934592",
];

const KVBENCH: &str = "
[document]
ndocs = 3000
[threads]
readers = 4
[operation]
nops = 2000
read_write_insert_delete = 40:30:20:10
";

/// A report without what it took of the machine.
fn without_host(report: &str) -> Value {
    let mut report: Value = serde_json::from_str(report).expect("it is JSON");
    for run in report["runs"].as_array_mut().expect("there are runs") {
        assert!(run.as_object_mut().unwrap().shift_remove("host").is_some());
    }
    report
}

fn desk() -> Desk {
    let desk = Desk::new();
    desk.put("bench.ini", KVBENCH);
    desk
}

#[test]
fn a_report_of_any_kind_is_made_again_byte_by_byte() {
    let desk = desk();
    for kind in KINDS {
        desk.put("mine.toml", &include_str!("../../../flash/profiles/kvvirt.toml").replace("\"kvvirt\"", "\"mine\""));
        let scale = if kind.contains("--scale") { "" } else { "--scale 1/512" };
        desk.prints(&format!("bench {scale} {kind} --json first.json"));
        desk.put("mine.toml", "the report has all of it");
        desk.prints("bench --from first.json --json again.json");
        let [first, again] = ["first.json", "again.json"].map(|file| without_host(&desk.read(file)));
        // Fields are in their order.
        assert_eq!(first.to_string(), again.to_string(), "{kind}");
    }
}

#[test]
fn experiments_that_differ_have_hashes_that_differ() {
    let desk = desk();
    let hash = |options: &str| {
        let report: Value = serde_json::from_str(&desk.prints(&format!("bench --json - {options}"))).unwrap();
        let hash = report["experiments"][0]["hash"].as_str().expect("it is a hash").to_owned();
        assert_eq!(report["runs"][0]["experiment"], hash.as_str());
        hash
    };
    let same = hash(&format!("{TINY} --design plus"));
    assert_eq!(
        hash(&format!("{TINY} --design plus --threads 20 --set design.grain_bytes=64")),
        same,
        "both are as they are"
    );
    for other in ["--seed 2", "--threads 21", "--set nand.erase_ns=1", "--set design.grain_bytes=128", "--overwrites 1"]
    {
        assert_ne!(hash(&format!("{TINY} --design plus {other}")), same, "{other}");
    }
}

#[test]
fn a_report_from_before_there_were_batches_is_run_again() {
    let desk = Desk::new();
    desk.prints(&format!("bench {TINY} --design plus --json first.json"));
    let first = desk.read("first.json");
    let older: String =
        first.lines().filter(|line| !line.contains("\"batch_pairs\"")).map(|line| format!("{line}\n")).collect();
    assert_ne!(older, first);
    desk.put("older.json", &older);
    desk.prints("bench --from older.json --json again.json");
    assert_eq!(without_host(&desk.read("again.json")), without_host(&first));
}

#[test]
fn a_report_says_by_which_program_it_is() {
    let desk = desk();
    desk.prints(&format!("bench {TINY} --json runs.json"));
    let mut report: Value = serde_json::from_str(&desk.read("runs.json")).unwrap();
    assert_eq!(report["program"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(report["program"]["compiler"].as_str().unwrap().starts_with("rustc "));
    assert_eq!(report["program"]["build"].as_str().unwrap().len(), 32);
    report["program"]["build"] = "0".into();
    desk.put("other.json", &report.to_string());
    let output = desk.command("bench --from other.json --json -").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("other.json is by another build"), "{output:?}");
    assert_eq!(runs(&String::from_utf8(output.stdout).unwrap()).len(), 2);
}

#[test]
fn what_cannot_be_run_again_is_named() {
    let desk = desk();
    for (text, name) in [
        (r#"{ "runs": [ { "design": "plus", "simulated_ns": 5 } ] }"#, "an older report"),
        (r#"{ "runs": [ { "design": "plus", "simulated_ns": 5, "trace": {} } ] }"#, "kvssd replay"),
        (r#"{ "runs": [ { "store": "kvssd", "wall_ns": 5 } ] }"#, "wall-clock"),
        (r#"{ "claims": [] }"#, "no report of kvssd bench"),
        (r#"{ "experiments": 1 }"#, "no report"),
        ("[]", "no report"),
        ("runs", "no JSON"),
    ] {
        desk.put("runs.json", text);
        desk.refuses("bench --from runs.json", &["runs.json", name]);
    }
    desk.refuses("bench --from nowhere.json", &["nowhere.json", "cannot be read"]);
    desk.refuses("bench --from runs.json --scale 1/512", &["--from", "--scale"]);
    desk.refuses("bench --from runs.json --seed 1", &["--from", "--seed"]);
    desk.prints(&format!("bench {TINY} --json report.json"));
    for (was, is, name) in [
        ("\"index\": \"hash-fixed\"", "\"index\": \"cuckoo\"", "design.index"),
        ("\"family\": \"ycsb\"", "\"family\": \"tpc\"", "tpc"),
        ("\"page_bytes\": 4096", "\"page_bytes\": 4095", "geometry.page_bytes"),
        ("\"threads\": 20", "\"threads\": 0", "--threads"),
        ("\"threads\": 20", "\"threads\": \"x\"", "u32"),
        ("\"scale\": ", "\"scale\": -", "scale"),
    ] {
        let report = desk.read("report.json");
        assert!(report.contains(was), "{report}");
        desk.put("changed.json", &report.replace(was, is));
        desk.refuses("bench --from changed.json", &[name]);
    }
}
