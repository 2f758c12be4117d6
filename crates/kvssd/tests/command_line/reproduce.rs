//! `kvssd reproduce`: what is refused before the first operation, one claim alone, and a folder that is gone on with.

use crate::desk::Desk;
use serde_json::Value;
use std::fs;

#[test]
fn what_cannot_be_run_is_refused_before_work_begins() {
    let desk = Desk::new();
    for (arguments, names) in [
        ("reproduce plus --scale 1/256", "a drive of 16 superblocks is too small"),
        ("reproduce plus --explain plus.99", "plus.99"),
        ("reproduce rhik --explain plus.1", "plus.1"),
        ("reproduce kaml --set design.flash_bytes_per_slot=3072", "load factors"),
        ("reproduce plus --set emulator.nonsense=1", "emulator.nonsense"),
    ] {
        desk.refuses(arguments, &[names]);
    }
}

#[test]
fn one_claim_is_run_alone() {
    let desk = Desk::new();
    let output =
        desk.command("reproduce kaml --explain kaml.12 --json claims.json").output().expect("the program runs");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        table.starts_with("kaml.12 ")
            && table.ends_with("1 claims: 1 reproduced, 0 proven, 0 by construction, 0 direction, 0 not reproduced\n"),
        "{output:?}"
    );
    let document: Value = serde_json::from_str(&desk.read("claims.json")).expect("it is JSON");
    assert_eq!(document["claims"].as_array().map(Vec::len), Some(1));
    assert_eq!(document["claims"][0]["verdict"], "reproduced");
}

#[test]
fn what_was_found_before_is_not_run_again() {
    let desk = Desk::new();
    let run = |arguments: &str| {
        let output = desk
            .command(&format!("reproduce kaml --explain kaml.12 --folder kept {arguments}"))
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "{output:?}");
        (output.stdout, fs::metadata(desk.path("kept/kaml.12.json")).unwrap().modified().unwrap())
    };
    let first = run("");
    assert_eq!(run(""), first);
    assert!(desk.read("kept/reproduction.md").contains("| kaml.12 |"));
    let other = run("--seed 2");
    assert!(other.1 > first.1 && other.0 != first.0, "another seed finds something else");
    fs::write(desk.path("kept/kaml.12.json"), "{").unwrap();
    assert_eq!(run("--seed 2").0, other.0, "a file that is broken is made again");
}
