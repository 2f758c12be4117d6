//! `kvssd bench --store`: what it prints, and that it leaves nothing behind.

use crate::desk::{Desk, number, runs};
use serde_json::Value;
use std::fs;

/// Few operations of one kind.
const FEW: &str = "--store made --durability process --threads 2 --value-bytes 100 --records 300 --operations 200";

const RIVALS: &[&str] = &[
    "fjall",
    #[cfg(feature = "rocksdb")]
    "rocksdb",
    "lmdb",
    "lmdb-writemap",
    "redb",
];

const WORKLOADS: [&str; 6] = ["fillrandom", "readrandom", "overwrite", "mixed", "scan100", "delete"];

#[test]
fn every_workload_is_a_row_and_the_folder_is_removed() {
    let desk = Desk::new();
    let table = desk.prints(&format!("bench {FEW} --json runs.json"));
    assert_eq!(desk.files(), ["runs.json"]);
    assert!(
        table.contains("survives kill -9") && table.contains("300 records of 16 + 100 bytes, 2 threads"),
        "{table}"
    );
    for row in WORKLOADS.iter().chain(&["on disk"]) {
        assert!(table.lines().any(|line| line.starts_with(row)), "no row {row} in\n{table}");
    }
    assert_eq!(table.contains("--features rivals"), !cfg!(feature = "rivals"), "{table}");
    let runs = runs(&desk.read("runs.json"));
    let rivals: &[_] = if cfg!(feature = "rivals") { RIVALS } else { &[] };
    let stores: Vec<_> = ["kvssd", "kvssd-partitioned", "kvssd-ordered"].iter().chain(rivals).collect();
    let pairs = WORKLOADS.iter().flat_map(|workload| stores.iter().map(move |store| (*workload, **store)));
    let is_unordered = |store| ["kvssd", "kvssd-partitioned"].contains(&store);
    let pairs = pairs.filter(|(workload, store)| *workload != "scan100" || !is_unordered(*store));
    assert!(runs.iter().map(|run| (text(run, "workload"), text(run, "store"))).eq(pairs), "{runs:#?}");
    for run in &runs {
        let operations = match text(run, "workload") {
            "fillrandom" => 300.0,
            "scan100" => 20.0,
            _ => 200.0,
        };
        assert_eq!((number(run, "/operations"), number(run, "/latency_ns/count")), (operations, operations));
        let throughput = number(run, "/operations") / number(run, "/wall_ns") * 1e9;
        assert!((number(run, "/throughput_ops_s") / throughput - 1.0).abs() < 1e-3, "{run:#}");
        let latencies = ["p50", "p99", "p999", "max"].map(|name| number(run, &format!("/latency_ns/{name}")));
        assert!(latencies.is_sorted() && latencies[0] > 0.0, "{run:#}");
        assert!(number(run, "/processor_ns") > 0.0, "{run:#}");
        assert!(number(run, "/disk_bytes") > 0.0 && number(run, "/cache_bytes") > 0.0, "{run:#}");
    }
}

fn text<'a>(run: &'a Value, field: &str) -> &'a str {
    run[field].as_str().unwrap_or_else(|| panic!("{field} is no text in {run:#}"))
}

#[test]
fn by_default_both_durabilities_sizes_and_numbers_of_threads_are_measured() {
    // Where nobody waits for a disk.
    let table = Desk::in_memory().prints("bench --store made --records 50 --operations 500");
    for heading in ["16 + 100 bytes, 1 thread,", "16 + 100 bytes, 8", "16 + 4096 bytes, 1", "16 + 4096 bytes, 8"] {
        assert_eq!(table.matches(heading).count(), 2, "{heading} in\n{table}");
    }
    assert_eq!((table.matches("kill -9").count(), table.matches("power loss").count()), (4, 4), "{table}");
}

#[test]
fn of_several_rounds_the_table_shows_the_median() {
    let table = Desk::in_memory().prints(&format!("bench {FEW} --rounds 2"));
    assert_eq!(table.matches("median of 2 rounds").count(), 1, "{table}");
}

#[test]
fn a_folder_that_is_kept_holds_an_image_that_is_whole() {
    let desk = Desk::new();
    desk.prints(&format!("bench {FEW} --keep"));
    assert_eq!(desk.files(), ["made"]);
    let image = "made/process-100-bytes-2-threads-1/kvssd/drive.kv";
    desk.prints(&format!("check {image}"));
    let stat = desk.prints(&format!("stat {image}"));
    assert!(stat.contains("100"), "a third of the records was not deleted: {stat}");
}

#[test]
fn what_cannot_be_measured_is_refused_and_nothing_is_made() {
    let desk = Desk::new();
    let cases = [
        ("--cache 1KiB", ["--cache 1024", "MiB"]),
        ("--durability nonsense", ["nonsense", "process, sync"]),
        ("--value-bytes 11", ["--value-bytes 11", "12 to 1048576"]),
        ("--value-bytes 1048577", ["--value-bytes 1048577", "12 to 1048576"]),
        ("--threads 0", ["--threads 0", "1 to 256"]),
        ("--threads 257", ["--threads 257", "1 to 256"]),
        ("--rounds 0", ["--rounds", "1 at the least"]),
        ("--records 0", ["--records 0", "records"]),
        ("--records 7", ["--records 7", "8 threads"]),
        ("--records 18446744073709551615", ["--records", "1000000000"]),
        ("--records 1000000000 --value-bytes 1048576", ["--records 1000000000", "TiB"]),
        ("--operations 0", ["--operations 0", "operations"]),
        ("--operations 18446744073709551615", ["--operations", "1 to"]),
        ("--depths 3", ["--depths", "on the wire"]),
        ("--json nowhere/runs.json", ["nowhere/runs.json", "written"]),
        // What is said of a drive on virtual time is not passed over.
        ("--design plus", ["--design", "--store"]),
        ("--profile kvvirt", ["--profile", "--store"]),
        ("--scale 1/64", ["--scale", "--store"]),
        ("--workload ycsb-a", ["--workload", "--store"]),
        ("--distribution uniform", ["--distribution", "--store"]),
        ("--overwrites 5", ["--overwrites", "--store"]),
        ("--queue-depth 1", ["--queue-depth", "--store"]),
        ("--rate 5", ["--rate", "--store"]),
        ("--key-bytes 8", ["--key-bytes", "--store"]),
        ("--value-distribution uniform", ["--value-distribution", "--store"]),
        ("--set nand.erase_ns=0", ["--set", "--store"]),
    ];
    let refusals = cases.iter().map(|(arguments, names)| (format!("bench --store made {arguments}"), names));
    let wrong: String = refusals.filter_map(|(arguments, names)| desk.wrong_with_refusal(&arguments, names)).collect();
    assert!(wrong.is_empty(), "{wrong}");
    for option in ["--durability sync", "--keep", "--cache 1MiB"] {
        desk.refuses(&format!("bench --store nvme+tcp://127.0.0.1:9 {option}"), &["--cache", "folder"]);
        desk.refuses(&format!("bench {option}"), &["--store"]);
        desk.refuses(&format!("bench --design plus --scale 1/64 {option}"), &["--store"]);
    }
}

#[test]
fn what_is_there_already_is_refused_and_left_as_it_is() {
    let desk = Desk::new();
    desk.put("file", "mine");
    fs::create_dir(desk.path("folder")).expect("a folder can be made");
    for path in ["file", "folder", "."] {
        desk.refuses(&format!("bench --store {path}"), &[path, "exists already"]);
    }
    desk.refuses("bench --store nowhere/made", &["nowhere/made", "cannot be made"]);
    assert_eq!(desk.read("file"), "mine");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_and_removes_the_folder() {
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::Duration;
    let desk = Desk::new();
    let mut bench = desk.command("bench --store made --durability process --operations 1000000000 --json runs.json");
    let mut child = bench.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    // Time to get to work; it would go on for hours.
    while !desk.path("made").exists() && child.try_wait().expect("the child can be waited for").is_none() {
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_secs(1));
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill starts");
    assert!(kill.success(), "the bench ended too early");
    let output = child.wait_with_output().expect("the child ended");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "kvssd: interrupted\n");
    assert!(output.stdout.is_empty() && desk.files().is_empty(), "{output:?} {:?}", desk.files());
}
