//! `kvssd reproduce`: what is refused before the first operation, one claim alone, and a folder that is gone on with.

use crate::desk::Desk;
use serde_json::{Value, json};
use std::fs;

#[test]
fn what_cannot_be_run_is_refused_before_work_begins() {
    let desk = Desk::new();
    fs::create_dir_all(desk.path("kept/reproduction.md")).unwrap();
    for (arguments, names) in [
        ("reproduce plus --scale 1/256", "a drive of 16 superblocks is too small"),
        ("reproduce plus --scale 1/4096", "make 24; with --scale 1/128 there is room"),
        ("reproduce plus --explain plus.99", "plus.1, plus.2"),
        ("reproduce kaml --explain kaml.1 --csv nowhere/cells.csv", "nowhere/cells.csv"),
        ("reproduce kaml --explain kaml.12 --csv cells.csv", "have no cells"),
        ("reproduce plus --csv cells.csv", "iter.1, iter.2"),
        ("reproduce all --csv cells.csv", "ask for one of these papers"),
        ("reproduce kaml --explain kaml.12 --json nowhere/claims.json", "nowhere"),
        ("reproduce kaml --explain kaml.12 --html nowhere/claims.html", "nowhere"),
        ("reproduce rhik --folder kept", "kept/reproduction.md"),
        ("reproduce rhik --explain plus.1", "plus.1"),
        ("reproduce kaml --set design.flash_bytes_per_slot=3072", "load factors"),
        ("reproduce plus --set emulator.nonsense=1", "emulator.nonsense"),
    ] {
        desk.refuses(arguments, &[names]);
    }
}

/// A claim, as `docs/REPRODUCTION.txt` has it.
fn was_printed_before(table: &str) {
    let (claim, _) = table.trim_end().rsplit_once('\n').expect("a sum stands at the end");
    assert!(include_str!("../../../../docs/REPRODUCTION.txt").contains(&format!("{claim}\n")), "{claim}");
}

#[test]
fn one_claim_is_run_alone() {
    let desk = Desk::new();
    let output = desk
        .command("reproduce kaml --explain kaml.12 --json claims.json --html claims.html")
        .output()
        .expect("the program runs");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        table.starts_with("kaml.12 ")
            && table.ends_with("1 claim: 0 reproduced, 0 proven, 1 by construction, 0 direction, 0 not reproduced\n"),
        "{output:?}"
    );
    was_printed_before(&table);
    let document: Value = serde_json::from_str(&desk.read("claims.json")).expect("it is JSON");
    assert_eq!(document["claims"].as_array().map(Vec::len), Some(1));
    assert_eq!(document["claims"][0]["verdict"], "by construction");
    assert!(desk.read("claims.html").contains("<td class=\"good\">by construction</td>"));
    assert!(document.get("figures").is_none(), "no figure of the paper is of this claim");
}

#[test]
fn the_figures_that_a_claim_rests_on_are_in_the_report_and_on_the_page() {
    let desk = Desk::new();
    let run = desk.command("reproduce rhik --explain rhik.4 --json claims.json --html claims.html").output();
    let run = run.expect("the program runs");
    assert!(run.status.success());
    was_printed_before(&String::from_utf8_lossy(&run.stdout));
    let document: Value = serde_json::from_str(&desk.read("claims.json")).expect("it is JSON");
    let figures = document["figures"].as_array().expect("there are figures");
    assert_eq!((figures.len(), &figures[0]["number"], &figures[0]["claims"]), (1, &"8b".into(), &json!(["rhik.4"])));
    let page = desk.read("claims.html");
    assert!(page.contains("<h2>Figures of rhik</h2>") && page.contains("rhik figure 8b: insertions that fail"));
    assert_eq!(page.matches("<svg").count(), 1);
}

#[test]
fn what_was_found_before_is_not_run_again() {
    let desk = Desk::new();
    let run = |arguments: &str| {
        let arguments = format!("reproduce kaml --explain kaml.12 --folder kept {arguments}");
        let output = desk.command(&arguments).output().expect("the program runs");
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let files = || {
        let entries = fs::read_dir(desk.path("kept")).expect("there is a folder").map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries.map(|path| (fs::metadata(&path).unwrap().modified().unwrap(), path)).collect();
        files.sort();
        files
    };
    let first = (run(""), files());
    assert_eq!((run(""), files()), first);
    let other = run("--seed 2");
    assert!(
        other != first.0 && files().len() == 2,
        "another seed finds something else, and takes nothing from the first"
    );
    assert_eq!((run(""), files()[..1].to_vec()), first);
    let [(_, of_first), (_, of_other)] = &files()[..] else { panic!("two files") };
    for content in [b"{".to_vec(), fs::read(of_first).unwrap()] {
        fs::write(of_other, content).unwrap();
        assert_eq!(run("--seed 2"), other, "a file that is broken, or another one's, is made again");
    }
}

#[test]
fn a_sweep_comes_from_the_folder_as_it_came_from_the_drive() {
    let desk = Desk::new();
    let run = |json: &str, csv: &str| {
        let arguments = format!("reproduce iter --scale 1/64 --folder kept --explain iter.5 --json {json} --csv {csv}");
        assert!(desk.command(&arguments).output().expect("the program runs").status.success());
        (desk.read(json), desk.read(csv))
    };
    assert_eq!(run("first.json", "first.csv"), run("second.json", "second.csv"));
}

#[test]
fn somebodys_own_document_is_not_written_over() {
    let desk = Desk::new();
    fs::create_dir(desk.path("kept")).unwrap();
    desk.put("kept/reproduction.md", "# My own\n");
    desk.refuses("reproduce iter --scale 1/64 --folder kept", &["kept/reproduction.md", "something else"]);
    assert_eq!(desk.read("kept/reproduction.md"), "# My own\n");
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_no_empty_file() {
    let desk = Desk::new();
    let mut child = crate::begun(desk.command("reproduce iter --csv cells.csv --json claims.json --html claims.html"));
    // Whoever was begun in the background ignores it until it is at work.
    let status = loop {
        crate::send("INT", &child);
        std::thread::sleep(std::time::Duration::from_secs(2));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    assert!(!status.success(), "{status}");
    assert_eq!(desk.files(), [""; 0]);
}
