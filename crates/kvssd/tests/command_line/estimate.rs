//! `kvssd estimate`: what a bench will show, and how far off that is beside a sweep.

use crate::desk::Desk;
use serde_json::Value;

fn ran(desk: &Desk, arguments: &str) -> (String, String, bool) {
    let output = desk.command(arguments).output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.success())
}

#[test]
fn designs_are_reckoned_side_by_side_and_who_cannot_be_says_why() {
    let desk = Desk::new();
    let (table, _, is_done) = ran(&desk, "estimate --scale 1/256 --design plus --design tessera --design multilevel");
    assert!(is_done);
    assert!(table.starts_with("on paper"), "{table}");
    assert!(
        table.contains("multilevel: no estimate: nobody has reckoned what the index multilevel will do"),
        "{table}"
    );
    let (json, _, _) = ran(&desk, "estimate --scale 1/256 --design plus --json -");
    let json: Value = serde_json::from_str(&json).unwrap();
    let estimate = &json[0]["estimate"];
    assert!(estimate["throughput_ops_s"].as_f64() < estimate["limit_ops_s"].as_f64(), "{json}");
    // Every drive that can be run has one, however large its superblocks are.
    for profile in ["970pro", "cosmos", "pm983", "kvemu --scale 1/16"] {
        let (table, message, is_done) = ran(&desk, &format!("estimate --profile {profile} --design pink"));
        assert!(is_done && table.contains("throughput"), "{profile}: {message}");
    }
    for (arguments, wanted) in [
        ("estimate --scale 1/256 --design multilevel", "no estimate"),
        ("estimate --scale 1/256 --workload ycsb-d --design plus", "the model does not know inserts"),
        ("estimate --store folder", "are of what runs"),
        ("estimate --against nowhere", "nowhere/index.json"),
    ] {
        let (_, message, is_done) = ran(&desk, arguments);
        assert!(!is_done && message.contains(wanted) && message.lines().count() == 1, "{arguments}: {message}");
    }
}

#[test]
fn a_sweep_is_reckoned_cell_by_cell() {
    let desk = Desk::new();
    desk.put(
        "reads.toml",
        "[options]\nscale = '1/512'\nrecords = 60000\noverwrites = 0\noperations = 10000\nworkload = 'ycsb-c'\n\
         [axes]\ndesign = ['plus', 'multilevel']\nseed = [1, 2]\n",
    );
    assert!(ran(&desk, "sweep reads.toml --out folder").2);
    let (table, _, is_done) = ran(&desk, "estimate --against folder");
    assert!(is_done && table.contains("cells that are near") && table.contains("multilevel: no estimate"), "{table}");
    let (json, _, _) = ran(&desk, "estimate --against folder --json -");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["cells"].as_array().unwrap().len(), 2, "seeds are one cell");
    let reads = &json["cells"][0]["figures"]["reads"];
    assert!((reads["estimate"].as_f64().unwrap() / reads["run"].as_f64().unwrap() - 1.0).abs() < 0.15, "{json}");
    assert_eq!(json["within"]["reads"], 0.5, "a cell without an estimate is off");
    let counts =
        |figure: &str| ["near", "off", "not_reckoned", "no_cell"].map(|count| json["counts"][figure][count].as_u64());
    assert_eq!(counts("reads"), [1, 0, 1, 0].map(Some));
    assert_eq!(
        counts("store p50"),
        [0, 0, 0, 2].map(Some),
        "runs of reads have none: no cell, with an estimate or without"
    );
    assert!(
        table.contains("without an estimate, counted as off")
            && table.contains("the runs have no such figure: no cell"),
        "{table}"
    );
}
