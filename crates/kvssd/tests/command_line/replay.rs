//! Traces and KVbench's files from the command line: told by their content, unpacked, checked, reported.

use crate::desk::{Desk, number, runs};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

/// A trace as Twitter's, of a thousand keys.
fn twitter(lines: u32) -> String {
    let mut text = String::new();
    for line in 0..lines {
        let key = line.wrapping_mul(2_654_435_761) >> 22;
        let operation = ["get", "set", "get", "delete"][(line / 7 % 4) as usize];
        writeln!(text, "{},user:{key},12,{},7,{operation},{}", line / 1000, 100 + key, line % 2).unwrap();
    }
    text
}

#[test]
fn a_trace_is_replayed_on_every_design_and_compressed_or_not_alike() {
    let desk = Desk::new();
    let text = twitter(20_000);
    desk.put("trace", &text);
    fs::write(desk.path("zipped"), zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    fs::write(desk.path("packed"), encoder.finish().unwrap()).unwrap();
    let mut plain = Vec::new();
    for file in ["trace", "zipped", "packed"] {
        let mut found = runs(&desk.prints(&format!("replay {file} --scale 1/512 --json -")));
        assert!(found.len() >= 2);
        for run in &mut found {
            assert_eq!(run["workload"], "twitter");
            assert_eq!((number(run, "/failed_retrieves"), number(run, "/trace/wrong_answers")), (0.0, 0.0));
            assert_eq!(number(run, "/trace/lines"), 20_000.0);
            assert!(number(run, "/trace/hits") > 1_000.0 && number(run, "/trace/misses") > 1_000.0);
            assert_eq!(number(run, "/trace/hits"), number(run, "/verified_retrieves"));
            run.as_object_mut().unwrap().remove("host");
        }
        if plain.is_empty() {
            plain = found;
        } else {
            assert_eq!(found, plain, "{file}");
        }
    }
    let table = desk.prints("replay trace --design plus --scale 1/512 --pace trace --threads 1");
    assert!(table.contains("hits / misses") && table.contains("twitter trace"), "{table}");
    assert!(
        table.contains("delete mean") && !table.contains("exist mean"),
        "no command of that kind was sent: {table}"
    );
}

#[test]
fn a_bad_line_is_named_or_skipped_and_counted() {
    let desk = Desk::new();
    desk.put("trace", &format!("{}19,no,line\n0,k,1,2,3,get,0\n", twitter(100)));
    desk.refuses(
        "replay trace --design plus --scale 1/512",
        &["trace: line 101", "7 fields", "(--bad-lines skip passes"],
    );
    let run = &runs(&desk.prints("replay trace --design plus --scale 1/512 --bad-lines skip --json -"))[0];
    assert_eq!((number(run, "/trace/bad_lines"), number(run, "/operations")), (1.0, 101.0));
}

#[test]
fn what_cannot_be_replayed_is_refused_in_one_line() {
    let desk = Desk::new();
    desk.put("prose", "Once upon a time\n");
    desk.put("bare.csv", "key\nk\n");
    desk.put("twice.csv", "key,key,op\nk,l,set\n");
    desk.put("late.csv", "key,op,value_size,timestamp\na,set,100,0\na,get,100,20000\n");
    fs::write(desk.path("cut"), [0x28, 0xb5, 0x2f, 0xfd, 0, 1]).unwrap();
    for (arguments, names) in [
        ("nowhere", &["nowhere", "cannot be read"][..]),
        ("prose", &["prose", "--format", "twitter", "oracle-general"]),
        ("prose --format nonsense", &["nonsense", "mooncake"]),
        ("prose --format oracle-general --design plus", &["prose: record 1", "24 bytes"]),
        ("cut", &["cut", "cannot be read"]),
        ("bare.csv --pace trace", &["--pace trace"]),
        ("bare.csv --threads 0", &["--threads"]),
        ("bare.csv --column key=id", &["key has no column in the header"]),
        ("bare.csv --column colour=k", &["colour is no meaning", "value_size"]),
        ("bare.csv --format twitter --column key=k", &["--column is for --format csv", "twitter"]),
        ("bare.csv --repeat 0", &["--repeat"]),
        ("twice.csv", &["twice.csv: line 1", "key has two columns"]),
        (
            "late.csv --design plus --scale 1/512 --pace trace --time-scale 1e-6",
            &["20000 s", "20000000000 s", "thirty years", "--time-scale"],
        ),
        (
            "late.csv --design plus --scale 1/512 --pace trace --time-scale 1e-3 --repeat 60",
            &["thirty years", "--repeat"],
        ),
        ("bare.csv --column key=key --column key=k", &["--column key=", "more than once"]),
        ("bare.csv --cache lru --cache-bytes 0", &["--cache-bytes", "4KiB"]),
        ("bare.csv --cache lru --cache-bytes 1", &["--cache-bytes", "4KiB"]),
        ("bare.csv --value-bytes-max 1", &["--value-bytes-max", "4KiB"]),
        ("bare.csv --block-erases 0", &["--block-erases"]),
        ("bare.csv --design block --scale 1/4096", &["too small", "with --scale 1/512 there is room"]),
        (
            "bare.csv --design block --design tessera --set design.colour=3",
            &["design.colour", "none of block, tessera"],
        ),
        ("bare.csv --design tessera --set design.placement_handles=3", &["tessera has no such parameter"]),
        ("bare.csv --design block --design tessera --set design.placement_handles=many", &["placement_handles"]),
        ("- --format csv --design plus --repeat 2", &["read once only", "--repeat"]),
        ("bare.csv --design nonsense", &["nonsense"]),
        ("-", &["--design"]),
    ] {
        desk.refuses(&format!("replay {arguments}"), names);
    }
}

#[test]
fn a_trace_without_a_request_is_said_to_be_one() {
    let desk = Desk::new();
    desk.put("empty", "");
    desk.put("lines", "\n\n");
    desk.put("header.csv", "key,op\n");
    desk.put("bad", "no,line\n");
    for arguments in [
        "empty",
        "empty --format csv",
        "empty --format vscsi",
        "empty --format lcs",
        "lines --format twitter",
        "header.csv",
        "header.csv --repeat 3",
        "bad --format twitter --bad-lines skip",
    ] {
        for way in ["--design plus", "--dry-run"] {
            desk.refuses(&format!("replay {arguments} {way}"), &[arguments.split(' ').next().unwrap(), "no request"]);
        }
    }
    desk.refuses("replay empty --format csv", &["begins with a header"]);
}

#[test]
fn a_setting_is_for_the_designs_that_have_it() {
    let desk = Desk::new();
    desk.put("t.csv", "key,op,value_size\na,set,100\na,get,100\n");
    let both = "--design block --design tessera --scale 1/64 --set design.placement_handles=3";
    let found = runs(&desk.prints(&format!("replay t.csv {both} --set design.fingerprint_bits=12 --json -")));
    assert_eq!((&found[0]["design"], &found[1]["design"]), (&"block".into(), &"tessera".into()));
}

#[test]
fn a_mark_of_byte_order_is_no_part_of_a_trace() {
    let desk = Desk::new();
    let traces = [
        "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n1740553426.194521,Write,131072,Tier-2,layer0,Evict\n",
        "key,op,value_size\na,set,100\n",
        "0,k,1,2,3,get,0\n",
    ];
    for text in traces {
        desk.put("plain", text);
        desk.put("marked", &format!("\u{feff}{text}"));
        let of = |file: &str| desk.prints(&format!("replay {file} --dry-run --json -"));
        assert_eq!(of("plain"), of("marked"));
    }
}

#[test]
fn what_takes_no_time_has_no_rate() {
    let desk = Desk::new();
    // Of a key that is not there memory alone is asked, and the drive not at all.
    desk.put("t.csv", "key,op\na,replace\n");
    let printed = desk.prints("replay t.csv --design plus --scale 1/512 --warm-up 0 --json -");
    let run = &runs(&printed)[0];
    let (rate, took) = (number(run, "/throughput_ops_s"), number(run, "/simulated_ns"));
    assert!(rate.is_finite() && (took > 0.0) == (rate > 0.0), "{rate} {took}");
}

#[test]
fn a_dry_run_says_what_is_in_a_trace() {
    let desk = Desk::new();
    desk.put("trace", &twitter(1000));
    let printed = desk.prints("replay trace --dry-run");
    for name in ["twitter", "1 000", "get", "delete"] {
        assert!(printed.contains(name), "{printed}");
    }
}

#[test]
fn a_cache_on_the_drive_refuses_nothing_and_says_how_long_the_drive_lives() {
    let desk = Desk::new();
    let mut text = "timestamp,key,size\n".to_owned();
    (0..30_000u32).for_each(|line| writeln!(text, "{},key{},20000", line / 10, line % 20_000).unwrap());
    desk.put("trace.csv", &text);
    let replay = "replay trace.csv --design plus --scale 1/512 --threads 1";
    let full = &runs(&desk.prints(&format!("{replay} --json -")))[0];
    assert!(number(full, "/trace/refused_full") > 1000.0);
    let cached = &runs(&desk.prints(&format!("{replay} --cache lru --admit asked=1 --warm-up 100 --json -")))[0];
    assert_eq!((number(cached, "/trace/refused_full"), number(cached, "/operations")), (0.0, 29_900.0));
    assert!(number(cached, "/trace/cache/evicted") > 1000.0 && number(cached, "/trace/life/years") > 0.0);
    assert!(desk.prints(&format!("{replay} --cache s3-fifo")).contains("hits of requests"));
    for (arguments, names) in [
        ("--cache clock", &["clock", "s3-fifo"][..]),
        ("--admit asked=2", &["--cache"]),
        ("--cache lru --admit often", &["often", "asked=TIMES"]),
        ("--cache lru --time-scale 0", &["--time-scale"]),
        ("--warm-up 1e6", &["--warm-up", "30000"]),
    ] {
        desk.refuses(&format!("{replay} {arguments}"), names);
    }
}

const KVBENCH: &str = "[document]\nndocs = 3000\n[threads]\nreaders = 2\n[kvs]\nwrite_mode = async\nqueue_depth = 8\n\
    [key_length]\ndistribution = uniform\nlower_bound = 8\nupper_bound = 40\n\
    [body_length]\ndistribution = ratio\nvalue_size = 100,2000\nvalue_size_ratio = 70:30\n";

#[test]
fn kvbenchs_files_run_on_every_design() {
    let desk = Desk::new();
    for (operation, distribution) in [
        ("nops = 4000\nread_write_insert_delete = 40:30:20:10\nbatch_distribution = zipfian", "zipfian"),
        ("nops = 4000\nread_write_insert_delete = 0:100:0:0", "uniform"),
        ("nops = 4000\nread_write_insert_delete = 0:0:100:0\nbatch_distribution = sequential", "sequential"),
        ("duration = 1\nwarmingup = 1\nread_write_insert_delete = 100:0:0:0", "uniform"),
    ] {
        desk.put("bench.ini", &format!("{KVBENCH}[operation]\n{operation}\n"));
        let found = runs(&desk.prints("bench --kvbench bench.ini --scale 1/512 --design plus --design rhik --json -"));
        assert_eq!(found.len(), 4);
        for (run, (workload, law)) in
            found.iter().zip([("kvbench-insert", "sequential"), ("kvbench-run", distribution)].into_iter().cycle())
        {
            assert_eq!((run["workload"].as_str(), run["distribution"].as_str()), (Some(workload), Some(law)));
            assert_eq!(number(run, "/failed_retrieves"), 0.0);
            assert!(number(run, "/operations") >= 3000.0);
        }
    }
    desk.put("bench.ini", "[threads]\nreaders = many\n");
    desk.refuses("bench --kvbench bench.ini", &["bench.ini: line 2", "readers"]);
    desk.refuses("bench --kvbench bench.ini --records 3", &["--kvbench", "--records"]);
}
