//! What is refused: with exit status 2, in one line that names what cannot be, and without a file left behind.

use crate::desk::{Desk, TINY, runs};
use std::fs;
use std::process::Command;

#[test]
fn what_cannot_be_is_refused_before_work_begins() {
    let desk = Desk::new();
    let cases = [
        ("--design nonsense", ["nonsense", "original, plus"]),
        ("--profile nonsense", ["nonsense", "970pro, kvvirt"]),
        ("--workload nonsense", ["nonsense", "ycsb-a"]),
        ("--workload ycsb-e", ["ycsb-e", "original"]),
        ("--db-bench nonsense", ["nonsense", "fillseq"]),
        ("--db-bench seekrandom", ["seekrandom", "original"]),
        ("--db-bench fillseq --key-bytes 1", ["1 bytes", "records"]),
        ("--design pink --set design.table_pages=9", ["design.table_pages", "1 to 4"]),
        ("--design iter --set design.prefetch_degree=1000", ["design.prefetch_degree", "adaptive"]),
        ("--distribution nonsense", ["nonsense", "zipfian"]),
        ("--value-distribution nonsense", ["nonsense", "constant"]),
        ("--set nand.nonsense_ns=1", ["kvvirt", "nand.nonsense_ns"]),
        ("--set nonsense", ["nonsense", "--set"]),
        ("--set nand.erase_ns=soon", ["kvvirt", "nand.erase_ns"]),
        ("--set nand.program_ns=9223372036854775807", ["kvvirt", "nand.program_ns"]),
        ("--set geometry.channels=0", ["kvvirt", "geometry.channels"]),
        ("--set geometry.channels=1.5", ["kvvirt", "geometry.channels"]),
        ("--set geometry.page_bytes=5000", ["kvvirt", "geometry.page_bytes"]),
        ("--set geometry.pages_per_block=7", ["kvvirt", "geometry.pages_per_block"]),
        ("--set geometry.oob_bytes=32", ["kvvirt", "geometry.oob_bytes"]),
        ("--set geometry.blocks_per_die=4000000000", ["kvvirt", "pages"]),
        ("--set memory.dram_bytes=100000", ["kvvirt", "memory.dram_bytes"]),
        ("--set design.nonsense=1", ["design.nonsense", "grain_bytes"]),
        ("--set design.grain_bytes=100", ["kvvirt", "design.grain_bytes"]),
        ("--set design.grain_bytes=many", ["design.grain_bytes", "number"]),
        ("--set design.gc_high_superblocks=4294967295", ["kvvirt", "design.gc_high_superblocks"]),
        ("--scale 0", ["--scale", "0"]),
        ("--scale 1/100000", ["leaves no superblock", "with --scale 1/512 there is room"]),
        ("--scale 1/2000", ["8 superblocks", "with --scale 1/512 there is room"]),
        ("--scale 1000000000", ["kvvirt", "pages"]),
        ("--records 0", ["--records", "0"]),
        ("--records 18446744073709551615", ["--records", "18446744073709551615"]),
        ("--operations 18446744073709551615", ["--operations", "18446744073709551615"]),
        ("--records 1e18", ["--records", "too large"]),
        ("--threads 0", ["--threads", "0"]),
        ("--threads 1e10", ["--threads", "too large"]),
        ("--rounds 1e10", ["--rounds", "too large"]),
        ("--queue-depth many", ["--queue-depth", "write it as 1e6"]),
        ("--queue-depth 0", ["--queue-depth", "0"]),
        ("--rate 0", ["--rate", "0"]),
        ("--rate nan", ["--rate", "0"]),
        ("--rate 1e-300", ["--rate", "0"]),
        ("--key-bytes 0", ["key", "255"]),
        ("--key-bytes 256", ["256", "255"]),
        ("--key-bytes 1", ["keys of 1 byte", "records"]),
        ("--series 10", ["--series", "10ms"]),
        ("--series 0ms", ["--series", "10ms"]),
        ("--trace-out trace.json", ["--trace-out", "--design"]),
        ("--design plus --trace-out trace.json --trace-window 5ms..1ms", ["--trace-window", "20ms..25ms"]),
        ("--db-bench fillseq --trace-window 1ms..5ms", ["--trace-window", "--trace-out"]),
        ("--design plus --trace-out no/such/folder.json", ["no/such/folder.json", "No such file"]),
        ("--until rich", ["rich", "steady"]),
        ("--until steady --rounds 4", ["--rounds 4", "5"]),
        ("--value-bytes 2097153", ["2097153", "2097152"]),
        ("--operation 5", ["'--operation' found; a similar", "--operations"]),
    ];
    let wrong: String = cases
        .iter()
        .filter_map(|(arguments, names)| desk.wrong_with_refusal(&format!("bench --json runs.json {arguments}"), names))
        .collect();
    assert!(wrong.is_empty(), "{wrong}");
    if cfg!(feature = "campaigns") {
        desk.refuses("world --minutes 0", &["--minutes", "zero"]);
    }
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_work_begins() {
    let desk = Desk::new();
    desk.refuses("bench --json nowhere/runs.json", &["nowhere/runs.json"]);
    desk.refuses(&format!("bench {TINY} --json ."), &["."]);
}

#[test]
fn two_outputs_to_one_place_are_refused_before_work_begins() {
    let desk = Desk::new();
    for (outputs, names) in [
        ("--json x --html x", ["--json and --html", "to x:"]),
        ("--json x --html ./x", ["--json and --html", "to ./x:"]),
        ("--design plus --json - --trace-out -", ["--json and --trace-out", "standard output"]),
        ("--json - --html -", ["--json and --html", "standard output"]),
    ] {
        desk.refuses(&format!("bench {TINY} {outputs}"), &names);
    }
    desk.refuses("reproduce kaml --json x --csv x", &["--json and --csv", "to x:"]);
    #[cfg(unix)]
    assert!(desk.prints(&format!("bench {TINY} --json /dev/null --html /dev/null")).contains("plus"));
}

#[test]
fn an_output_over_what_is_read_is_refused_before_work_begins() {
    let desk = Desk::new();
    let inputs = ["rq.csv", "r.json", "kb.ini", "p.toml", "so/index.json", "so/runs/ab.json"];
    fs::create_dir_all(desk.path("so/runs")).unwrap();
    inputs.iter().for_each(|input| desk.put(input, "what somebody needs"));
    #[cfg(unix)]
    std::os::unix::fs::symlink("rq.csv", desk.path("soft")).unwrap();
    fs::hard_link(desk.path("rq.csv"), desk.path("hard")).unwrap();
    for (arguments, output) in [
        ("replay rq.csv --json rq.csv", "rq.csv"),
        ("replay rq.csv --dry-run --json ./rq.csv", "./rq.csv"),
        #[cfg(unix)]
        ("replay rq.csv --json soft", "soft"),
        ("replay rq.csv --json hard", "hard"),
        ("replay rq.csv --profile p.toml --json p.toml", "p.toml"),
        ("report r.json -o r.json", "r.json"),
        ("report so -o so/index.json", "so/index.json"),
        ("report so/ -o so/runs/../runs/ab.json", "so/runs/../runs/ab.json"),
        ("bench --from r.json --html r.json", "r.json"),
        ("bench --kvbench kb.ini --json kb.ini", "kb.ini"),
        ("bench --design plus --profile p.toml --trace-out p.toml", "p.toml"),
        ("estimate --against so --json so/index.json", "so/index.json"),
        ("estimate --profile p.toml --json p.toml", "p.toml"),
    ] {
        desk.refuses(arguments, &[&format!("{output}: cannot be written"), "read as", "give another name"]);
    }
    inputs.iter().for_each(|input| assert_eq!(desk.read(input), "what somebody needs", "{input}"));
    // Beside what is read there may be what comes of it, once and again.
    desk.put("requests.csv", "key,op\nk,set\n");
    for _ in 0..2 {
        assert!(desk.prints("replay requests.csv --dry-run --json requests.json").contains("csv"));
    }
}

#[test]
fn a_partition_too_large_for_its_design_leaves_no_file() {
    let desk = Desk::new();
    desk.refuses("create drive.kv --size 600GiB", &["plus", "number of partitions"]);
    assert!(!desk.path("drive.kv").exists());
}

#[test]
fn records_that_do_not_fit_leave_no_file() {
    let arguments = "bench --scale 1/600 --records 140000 --json runs.json";
    Desk::new().refuses(arguments, &["full", "140000", "original"]);
}

/// Nobody asked for records: there are as many as the drive takes, with the index that so small pairs need.
#[test]
fn a_fill_that_nobody_asked_for_fits() {
    for (design, value_bytes) in [("rhik", 200), ("pink", 100)] {
        let options =
            format!("--scale 1/512 --operations 1000 --overwrites 0 --design {design} --value-bytes {value_bytes}");
        Desk::new().prints(&format!("bench --quiet {options}"));
    }
}

#[test]
fn a_design_that_cannot_be_filled_as_far_as_was_asked_for_is_told() {
    let desk = Desk::new();
    let bench = "bench --design plus --scale 1/512 --operations 100 --overwrites 0 --json bench.json --fill";
    for (fill, told) in [("0.98", "plus: pairs take 0.450 of the flash, not 0.980"), ("0.4", "")] {
        let said = desk.command(&format!("{bench} {fill}")).output().unwrap().stderr;
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains(told) && said.contains("pairs take") != told.is_empty(), "{fill}: {said}");
    }
}

#[test]
fn a_run_that_little_is_collected_in_is_told_for_what_it_is() {
    let desk = Desk::new();
    let bench = "bench --scale 1/512 --design plus --records 60000 --overwrites 60000 --operations";
    for (run, is_told) in [("3000", true), ("3000 --workload ycsb-c", false), ("8000 --rounds 2", false)] {
        let output = desk.run(&format!("{bench} {run}"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_note = said.contains("plus: garbage collection emptied fewer than 10 superblocks in the run");
        assert!(output.status.success() && is_note == is_told, "{run}: {said}");
    }
}

#[test]
fn a_profile_file_is_used_or_what_is_wrong_in_it_is_named() {
    const KVVIRT: &str = include_str!("../../../flash/profiles/kvvirt.toml");
    let desk = Desk::new();
    desk.put("mine.toml", &KVVIRT.replace("name = \"kvvirt\"", "name = \"mine\""));
    let run = &runs(&desk.prints(&format!("bench {TINY} --profile mine.toml --json -")))[0];
    assert_eq!(run["profile"], "mine");
    for (file, text, name) in [
        ("unknown.toml", KVVIRT.replace("page_bytes =", "page_octets ="), "page_octets"),
        ("lacking.toml", KVVIRT.replace("oob_bytes =", "# oob_bytes ="), "oob_bytes"),
        ("impossible.toml", KVVIRT.replace("dies_per_channel = 8", "dies_per_channel = 0"), "dies_per_channel"),
        ("prose.toml", "This is not TOML.".to_owned(), "TOML"),
        ("empty.toml", String::new(), "name"),
    ] {
        desk.put(file, &text);
        desk.refuses(&format!("bench --profile {file} --json runs.json"), &[file, name]);
    }
}

#[test]
fn an_older_report_stays_when_a_bench_is_refused() {
    let desk = Desk::new();
    desk.put("runs.json", "older");
    desk.refuses("bench --json runs.json --design nonsense", &["nonsense"]);
    assert_eq!(desk.read("runs.json"), "older");
}

/// No output takes the place of a drive, whatever names it: who serves the drive would go on in a file without a name.
#[test]
fn no_output_takes_the_place_of_a_drive() {
    let desk = Desk::new();
    desk.prints("create drive.kv --size 64MiB");
    desk.prints("put drive.kv key value");
    desk.prints("create other.kv --size 64MiB");
    std::os::unix::fs::symlink("drive.kv", desk.path("link")).unwrap();
    for output in ["drive.kv", "link", "./drive.kv"] {
        for command in [
            format!("get drive.kv key --file {output}"),
            format!("dump other.kv {output} --format csv"),
            format!("bench {TINY} --json {output}"),
            format!("bench {TINY} --html {output}"),
            format!("bench {TINY} --design plus --trace-out {output}"),
        ] {
            desk.refuses(&command, &[output, "image of a drive"]);
        }
    }
    assert_eq!(desk.prints("get drive.kv key"), "value");
}

/// A link is a name of its target: that is written whole, as any other file, and keeps its links.
#[test]
fn an_output_behind_links_is_written_whole() {
    let desk = Desk::new();
    desk.prints("create drive.kv --size 64MiB");
    desk.prints("put drive.kv k1 v1");
    std::fs::create_dir(desk.path("days")).unwrap();
    desk.put("days/today.csv", "older and longer than what comes\n");
    for (link, target) in [("latest.csv", "days/today.csv"), ("link.csv", "latest.csv"), ("new.csv", "days/new.csv")] {
        std::os::unix::fs::symlink(target, desk.path(link)).unwrap();
    }
    for (output, written) in [("link.csv", "days/today.csv"), ("new.csv", "days/new.csv")] {
        desk.prints(&format!("dump drive.kv {output}"));
        assert_eq!(desk.read(written), "k1,v1\n");
        desk.prints(&format!("get drive.kv k1 --file {output}"));
        assert_eq!(desk.read(written), "v1");
        desk.prints(&format!("bench {TINY} --json {output}"));
        assert!(desk.read(written).starts_with("{\n"));
        assert!(desk.path(output).is_symlink());
    }
    // What is open already takes more.
    desk.put("all.csv", "head\n");
    for output in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let dump = Command::new("sh")
            .args(["-c", "\"$0\" dump drive.kv $1 --format csv >>all.csv", env!("CARGO_BIN_EXE_kvssd"), output])
            .current_dir(desk.path("."))
            .status();
        assert!(dump.unwrap().success(), "{output}");
    }
    assert_eq!(desk.read("all.csv"), "head\nk1,v1\nk1,v1\nk1,v1\n");
}

/// Threads whose stacks no machine has stand for a limit that is reached (RLIMIT_NPROC does not hold for root).
#[test]
fn where_no_thread_can_be_started_work_is_done_without_or_refused_in_a_line() {
    let desk = Desk::new();
    desk.prints("create parts.kv --size 256MiB --partitions 2");
    desk.put("pairs.csv", "a,1\nb,2\n");
    let run = |arguments: &str| {
        let output = desk.command(arguments).env("RUST_MIN_STACK", "1000000000000000").output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for arguments in [
        "load drive.kv pairs.csv",
        "dump drive.kv again.csv",
        "bench --scale 1/512 --records 1000 --operations 1000 --json bench.json",
    ] {
        let (status, said) = run(arguments);
        assert_eq!(status, Some(0), "{arguments}: {said}");
    }
    assert_eq!(desk.read("again.csv").lines().count(), 2);
    for arguments in ["put parts.kv a 1", "bench --store folder --records 1000", "serve drive.kv --listen 127.0.0.1:0"]
    {
        let (status, said) = run(arguments);
        assert!(status == Some(3) && said.lines().count() == 1, "{arguments}: {said}");
        assert!(said.contains("no thread can be started"), "{arguments}: {said}");
    }
    desk.prints("check drive.kv");
    desk.prints("put parts.kv a 1");
    assert_eq!([desk.prints("get drive.kv b"), desk.prints("get parts.kv a")], ["2", "1"]);
}
