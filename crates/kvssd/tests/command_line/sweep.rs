//! `kvssd sweep`: a folder that depends on the file alone, however often the sweep was killed, whoever shared it.

use crate::desk::Desk;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Eight runs, and four points that are impossible.
const EXPERIMENT: &str = "
[options]
scale = '1/512'
operations = 2000
[axes]
design = ['original', 'plus']
seed = { from = 1, to = 2 }
[[pairs]]
value-bytes = [100, 1000, 3000000]
records = [4000, 2000, 10]
";

fn sweep(desk: &Desk, arguments: &str) -> Output {
    desk.command(&format!("sweep experiment.toml {arguments}")).output().expect("the program starts")
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every file of a sweep's folder, with its bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).expect("there is a folder");
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(names(folder).len(), 2, "the index and the runs");
    let runs = names(&folder.join("runs")).into_iter().map(|name| format!("runs/{name}"));
    let files = runs.chain(["index.json".to_owned()]);
    files.map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect()
}

fn desk() -> Desk {
    let desk = Desk::new();
    desk.put("experiment.toml", EXPERIMENT);
    desk
}

/// A whole sweep of [`EXPERIMENT`] in the folder `whole`.
fn whole(desk: &Desk) -> BTreeMap<String, Vec<u8>> {
    let output = sweep(desk, "--out whole --jobs 1");
    assert!(output.status.success(), "{output:?}");
    files(&desk.path("whole"))
}

/// Workloads of each family that begin with one filled drive, and one that does not: its drive is full.
const SHARED: &str = "
[options]
scale = '1/512'
[[pairs]]
design = ['original', 'pink', 'plus']
seed = [1, 2, 3]
[rows.updates]
workload = 'ycsb-a'
records = 3000
[rows.reads]
workload = 'ycsb-c'
distribution = 'zipfian'
records = 3000
operations = 500
[rows.rounds]
workload = 'ycsb-f'
records = 3000
rounds = 3
series = '10ms'
[rows.batches]
records = 3000
batch-pairs = 8
[rows.more]
records = 3000
overwrites = 10
[rows.gets]
db-bench = ['fillrandom', 'overwrite', 'readrandom']
records = 2000
[rows.ranges]
db-bench = ['fillrandom', 'overwrite', 'seekrandom']
records = 2000
scan-length = 10
[rows.population]
kvbench = 'a.ini'
[rows.deletes]
kvbench = 'b.ini'
[rows.full]
records = 160000
[rows.full-too]
records = 160000
workload = 'ycsb-c'
";

const INI: &str = "[document]\nndocs = 2000\n[threads]\nreaders = 4\n[operation]\nnops = 500\n";

#[test]
fn drives_that_are_filled_once_give_the_reports_of_drives_that_are_filled_each() {
    let desk = Desk::new();
    desk.put("experiment.toml", SHARED);
    desk.put("a.ini", INI);
    desk.put("b.ini", &format!("{INI}read_write_insert_delete = 20:70:0:10\n"));
    let output = sweep(&desk, "--out shared --jobs 1");
    assert!(output.status.success(), "{output:?}");
    let shared = files(&desk.path("shared"));
    assert!(message(&output).contains("31 runs on 15 filled drives"), "{}", message(&output));
    // Each shard has a run of its own.
    let runs = shared.len() - 1;
    for shard in 1..=runs {
        let output = sweep(&desk, &format!("--out alone --jobs 1 --shard {shard}/{runs}"));
        assert!(output.status.success(), "{output:?}");
    }
    assert!(files(&desk.path("alone")) == shared);
}

#[test]
fn rows_stand_for_options_of_their_own() {
    let desk = Desk::new();
    desk.put(
        "experiment.toml",
        "[options]\nscale = '1/512'\nrecords = 2000\noperations = 100\n[axes]\ndesign = ['plus', 'iter']\n[rows.ranges]\n\
         db-bench = ['fillseq', 'seekrandom']\n[rows.skewed]\ndistribution = 'zipfian'\nvalue-bytes = 50",
    );
    let output = sweep(&desk, "--out whole");
    assert!(output.status.success(), "{output:?}");
    let index: Value = serde_json::from_str(&desk.read("whole/index.json")).unwrap();
    assert_eq!(index["axes"][0]["row"], serde_json::json!(["ranges", "skewed"]));
    assert_eq!(index["rows"]["skewed"]["value-bytes"], 50);
    let points = index["points"].as_array().unwrap();
    let at =
        |point: &Value| [&point["at"]["row"], &point["at"]["design"]].map(|name| name.as_str().unwrap().to_owned());
    assert_eq!(
        points.iter().map(at).collect::<Vec<_>>(),
        [["ranges", "plus"], ["ranges", "iter"], ["skewed", "plus"], ["skewed", "iter"]]
    );
    assert!(points[0]["impossible"].as_str().unwrap().contains("no order"), "{}", points[0]);
    assert!(points[1..].iter().all(|point| point["report"].is_string()));
    let page = desk.prints("report whole -o -");
    for word in ["op&#x2f;s by row", "ranges: seekrandom", "--heat: 100%"] {
        assert!(page.contains(word), "{word}");
    }
}

#[test]
fn the_matrix_is_a_sweep_that_comes_along() {
    let desk = Desk::new();
    let listed = desk.prints("matrix --list");
    desk.put("experiment.toml", include_str!("../../../../examples/matrix.toml"));
    assert_eq!(listed, desk.prints("sweep experiment.toml --list"));
    assert!(listed.contains("row=half updates design=plus") && listed.contains("which takes no batches"), "{listed}");
}

#[test]
fn the_example_to_begin_with_is_possible() {
    let desk = Desk::new();
    desk.put("experiment.toml", include_str!("../../../../examples/sweep.toml"));
    assert!(!desk.prints("sweep experiment.toml --list").contains("impossible"));
}

#[test]
fn the_evidence_has_tessera_in_every_row() {
    let desk = Desk::new();
    fs::create_dir(desk.path("examples")).unwrap();
    desk.put("examples/kvbench.ini", include_str!("../../../../examples/kvbench.ini"));
    desk.put("experiment.toml", include_str!("../../../../examples/evidence.toml"));
    let listed = desk.prints("sweep experiment.toml --list");
    assert!(listed.contains("row=KVbench design=tessera"), "{listed}");
    let (_, impossible) = listed.split_once("impossible: ").expect("a block drive has no order");
    assert!(!impossible.contains("design=tessera"), "{impossible}");
}

#[test]
fn every_point_has_a_report_or_a_reason() {
    let desk = desk();
    let files = whole(&desk);
    assert_eq!(files.len(), 1 + 8);
    let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
    let points = index["points"].as_array().unwrap();
    assert_eq!(points.len(), 12);
    let names: Vec<&String> =
        index["axes"].as_array().unwrap().iter().flat_map(|axis| axis.as_object().unwrap().keys()).collect();
    assert_eq!(names, ["design", "seed", "value-bytes", "records"]);
    for point in points {
        if point["at"]["value-bytes"] == 3_000_000 {
            assert!(point["impossible"].as_str().unwrap().contains("2097152"), "{point}");
            continue;
        }
        let report: Value = serde_json::from_slice(&files[point["report"].as_str().unwrap()]).unwrap();
        let (asked, run) = (&report["experiments"][0], &report["runs"][0]);
        assert_eq!((&run["design"], &run["seed"]), (&point["at"]["design"], &point["at"]["seed"]));
        assert_eq!(asked["work"]["value_bytes"], point["at"]["value-bytes"]);
        assert_eq!(asked["work"]["operations"], 2000);
        assert_eq!((&asked["hash"], run.get("host")), (&run["experiment"], None));
    }
}

#[cfg(unix)]
#[test]
fn a_sweep_that_is_killed_again_and_again_ends_with_the_same_bytes() {
    let desk = desk();
    // Two runs share each drive, so that kills come between them too.
    desk.put("experiment.toml", &EXPERIMENT.replace("[axes]", "[axes]\nworkload = ['ycsb-a', 'ycsb-c']"));
    let whole = whole(&desk);
    let mut kills = 0;
    // Each lives a little longer: on a busy machine it would not end otherwise.
    for millis in (0..).map(|number| 20 + number * 37 % 200 + number) {
        let mut command = desk.command("sweep experiment.toml --out killed");
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
        sleep(Duration::from_millis(millis));
        child.kill().expect("it can be killed");
        if child.wait().unwrap().success() {
            break;
        }
        kills += 1;
        assert!(kills < 1000, "it never ends");
    }
    assert!(sweep(&desk, "--out killed").status.success());
    assert_eq!(files(&desk.path("killed")), whole);
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_no_parts() {
    let desk = Desk::new();
    desk.put(
        "experiment.toml",
        "[options]\nscale = '1/512'\nrecords = 100000\noverwrites = 1000000000\n[axes]\nseed = [1, 2]",
    );
    crate::interrupted(&desk, "sweep experiment.toml --out out");
    assert_eq!(fs::read_dir(desk.path("out/runs")).unwrap().count(), 0);
}

/// A folder may have been somebody's before.
#[test]
fn runs_that_little_is_collected_in_are_told_for_what_they_are() {
    let desk = Desk::new();
    desk.put(
        "experiment.toml",
        "[options]\ndesign = 'plus'\nscale = '1/512'\nrecords = 60000\noverwrites = 60000\n\
         [axes]\nworkload = ['ycsb-a', 'ycsb-c']\noperations = [3000]\n",
    );
    // Again of reports that were there.
    for _ in 0..2 {
        let said = message(&sweep(&desk, "--out runs"));
        assert!(said.contains("in 1 of 2 runs, such as workload=ycsb-a operations=3000"), "{said}");
        assert!(said.contains("fewer than 10 superblocks"), "{said}");
    }
}

#[test]
fn what_is_no_sweeps_is_not_written_over() {
    let desk = desk();
    let folder = desk.path("out");
    fs::create_dir(&folder).unwrap();
    for file in ["index.json", "index.part"] {
        for of_others in ["{ \"name\": \"a site\" }", "notes"] {
            fs::write(folder.join(file), of_others).unwrap();
            let refused = sweep(&desk, "--out out");
            let message = message(&refused);
            assert_eq!((refused.status.code(), message.lines().count()), (Some(2), 1), "{message}");
            assert!(message.contains(file) && message.contains("something else"), "{message}");
            assert_eq!(fs::read_to_string(folder.join(file)).unwrap(), of_others);
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing came beside it");
        }
        fs::remove_file(folder.join(file)).unwrap();
    }
    // What a sweep that was killed has left is its own.
    for left in ["", "{\n", "{\n  \"program\": {\n    \"version\""] {
        fs::write(folder.join("index.part"), left).unwrap();
        assert!(sweep(&desk, "--out out").status.success());
    }
    assert_eq!(files(&folder), whole(&desk));
}

#[test]
fn what_is_there_is_not_run_again_and_what_is_broken_is() {
    let desk = desk();
    let before = whole(&desk);
    let again = sweep(&desk, "--out whole");
    assert!(again.status.success() && !message(&again).contains("at once"), "{again:?}");
    let mut reports = desk.path("whole").join("runs").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let (broken, other) = (reports.next().unwrap(), reports.next().unwrap());
    for (content, why) in [(b"{".to_vec(), "no JSON"), (fs::read(other).unwrap(), "the report of another run")] {
        fs::write(&broken, content).unwrap();
        let page = desk.command("report whole -o page.html").output().unwrap();
        assert!(!page.status.success() && message(&page).contains(why), "{page:?}");
        desk.refuses("estimate --against whole", &[why]);
        let again = message(&sweep(&desk, "--out whole"));
        assert!(again.contains("1 run, up to 1 at once") && again.contains("7 more were run before"), "{again}");
        assert_eq!(files(&desk.path("whole")), before);
    }
    desk.put("experiment.toml", &EXPERIMENT.replace("to = 2", "to = 3"));
    let longer = message(&sweep(&desk, "--out whole"));
    assert!(longer.contains("4 runs") && longer.contains("8 more were run before"), "{longer}");
    assert!(!longer.contains("another sweep"), "{longer}");
    desk.put("experiment.toml", EXPERIMENT);
    let shorter = message(&sweep(&desk, "--out whole"));
    assert!(shorter.contains("4 runs of it are not in this one's"), "{shorter}");
}

#[test]
fn shards_and_processes_side_by_side_fill_one_folder() {
    let desk = desk();
    let whole = whole(&desk);
    for shard in ["2/3", "3/3", "1/3"] {
        assert!(sweep(&desk, &format!("--out shards --shard {shard}")).status.success());
    }
    assert_eq!(files(&desk.path("shards")), whole);
    let start = |_| {
        let mut command = desk.command("sweep experiment.toml --out shared");
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
    };
    let processes: Vec<_> = (0..3).map(start).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(files(&desk.path("shared")), whole);
}

#[test]
fn a_list_says_what_is_done_and_what_it_takes() {
    let desk = desk();
    let list = desk.prints("sweep experiment.toml --list");
    assert_eq!(list.matches("missing").count(), 8, "{list}");
    let (_, impossible) =
        list.split_once("\nimpossible: 4 points\n").expect("they are behind the runs, under one heading");
    let lines: Vec<&str> = impossible.lines().collect();
    assert_eq!((lines.len(), impossible.matches("2097152").count()), (1 + 4, 1), "the reason once: {list}");
    assert_eq!(lines[1], "    design=original seed=1 value-bytes=3000000 records=10");
    assert!(list.contains("design=plus seed=2 value-bytes=1000 records=2000") && list.contains("MiB"), "{list}");
    assert_eq!(desk.prints("sweep experiment.toml --list --shard 2/8").matches("missing").count(), 1);
    assert_eq!(desk.files(), ["experiment.toml"]);
    whole(&desk);
    assert_eq!(desk.prints("sweep experiment.toml --list --out whole").matches("done").count(), 8);
}

#[test]
fn a_run_that_ends_early_is_a_result() {
    let desk = Desk::new();
    desk.put("experiment.toml", "[options]\nscale = '1/600'\nrecords = 140000\n[axes]\ndesign = ['original']");
    let output = sweep(&desk, "--out full");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("is full after") && text.contains("1 of them"), "{output:?}");
    assert!(text.contains("ask for fewer records, smaller values or a larger scale"), "{text}");
    assert!(!message(&sweep(&desk, "--out full")).contains("at once"), "it is known now");
}

#[test]
fn what_is_wrong_with_the_file_is_named() {
    let desk = Desk::new();
    for (text, names) in [
        ("[options]\nvalue-byte = 1", ["experiment.toml", "'value-bytes'"]),
        ("[options]\nscale = 0", ["'scale'", "such as 1/64"]),
        ("[options]\nrecords = 0", ["none of its points", ": records must be above 0"]),
        ("[options]\nfill = 0.5\nrecords = 9", ["'fill'", "'records'"]),
        ("[axes]\nworkload = ['ycsb-a', 'ycsb-z']", ["workload=ycsb-z", "ycsb-a, ycsb-b"]),
        ("[options]\nstore = 'folder'", ["store", "virtual time"]),
        ("[options]\ndesign = ['plus', 'rhik']", ["one design", "[axes]"]),
        ("[axes]\ndesign = ['nonsense']", ["none of its points", "nonsense"]),
        ("[options]\nnand.nonsense = 1", ["none of its points", "nand.nonsense"]),
        ("[options]\ndurability = 'sync'", ["durability", "virtual time"]),
        ("[axes]\ncache = ['1MiB', '2MiB']", ["cache", "virtual time"]),
        (
            "[options]\ndesign = 'plus'\nworkload = 'ycsb-a'\nscan-length = 5",
            ["the only run", "scan-length is for db-bench"],
        ),
        ("[options", ["experiment.toml", "TOML"]),
    ] {
        desk.put("experiment.toml", text);
        desk.refuses("sweep experiment.toml --out out", &names);
        let output = sweep(&desk, "--out out");
        assert!(!message(&output).contains("--"), "the file has no options of a command line: {output:?}");
    }
    desk.refuses("sweep nowhere.toml --out out", &["nowhere.toml", "cannot be read"]);
    desk.refuses("sweep experiment.toml --out out --shard 3/2", &["--shard", "1/8"]);
    desk.refuses("sweep experiment.toml", &["--out"]);
}
