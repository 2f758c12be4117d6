//! `kvssd report` and `--html`: pages of what was run.

use crate::desk::{Desk, TINY};

/// The page in a file: whole, and without an address.
fn page(desk: &Desk, file: &str) -> String {
    let page = desk.read(file);
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>"), "{file}");
    assert!(!page.replace("http://www.w3.org/2000/svg", "").contains("http"), "{file}");
    page
}

#[test]
fn a_bench_writes_the_page_that_its_report_gives() {
    let desk = Desk::new();
    desk.prints(&format!("bench {TINY} --series 1ms --rounds 3 --json bench.json --html bench.html"));
    let whole = page(&desk, "bench.html");
    for title in ["Figures by axis", "Latencies", "Where the time went", "DRAM of the device", "Over time", "±"] {
        assert!(whole.contains(title), "{title}");
    }
    assert_eq!(desk.prints("report bench.json -o again.html"), "");
    let without_title = |page: &str| page.split_once("</h1>").expect("there is a heading").1.to_owned();
    assert_eq!(without_title(&page(&desk, "again.html")), without_title(&whole));
    let printed = desk.prints("report bench.json -o -");
    assert_eq!(printed, page(&desk, "again.html"));
}

#[test]
fn a_sweep_has_intervals_and_says_what_is_missing() {
    let desk = Desk::new();
    let axes = "value-bytes = [100, 1000, 3000000]\nseed = [1, 2]";
    let options = "scale = '1/512'\nrecords = 4000\noperations = 1000";
    desk.put("experiment.toml", &format!("[options]\n{options}\n[axes]\n{axes}"));
    desk.refuses("report results", &["results: there is no such folder or file: give", "kvssd sweep", "--json"]);
    for part in ["1/8", "2/8", "3/8", "4/8"] {
        let output = desk.command(&format!("sweep experiment.toml --out results --shard {part}")).output();
        assert!(output.expect("the program starts").status.success());
    }
    desk.prints("report results");
    let page = page(&desk, "report.html");
    assert!(page.contains("4 of 12 points are not run yet") && page.contains("impossible: design=original"));
    assert!(page.contains("±") && page.contains("value-bytes") && page.len() < 1_000_000);
}

/// A run that was not made yet is no fault; one that cannot be read is, and both it and the index can be made again.
#[test]
fn damaged_files_of_a_sweep_are_named_and_made_again() {
    let desk = Desk::new();
    let options = "design = 'plus'\nscale = '1/512'\nrecords = 4000\noperations = 1000";
    desk.put("experiment.toml", &format!("[options]\n{options}\n[axes]\nseed = [1, 2, 3]"));
    let sweep = "sweep experiment.toml --out results --quiet";
    desk.prints(sweep);
    let index = desk.read("results/index.json");
    let (whole, mut runs) = (desk.prints("report results -o -"), desk.files_in("results/runs"));
    let kept = runs.pop().expect("there are three");
    let [cut, folder] = [0, 1].map(|number| format!("results/runs/{}", runs[number]));
    desk.put(&cut, "{ \"program\": ");
    std::fs::remove_file(desk.path(&folder)).unwrap();
    std::fs::create_dir(desk.path(&folder)).unwrap();
    let output = desk.command("report results").output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 2), "{said}");
    for file in [&cut, &folder] {
        assert!(
            said.lines().any(|line| line.contains(file) && line.contains("remove it and run the sweep again")),
            "{said}"
        );
    }
    assert!(page(&desk, "report.html").contains("2 of"), "the others are shown");
    desk.put("results/index.json", &index[..100]);
    for arguments in ["report results -o -", sweep] {
        desk.refuses(arguments, &["results/index.json", "remove it"]);
    }
    let made = || std::fs::metadata(desk.path(&format!("results/runs/{kept}"))).unwrap().modified().unwrap();
    let before = made();
    std::fs::remove_dir(desk.path(&folder)).unwrap();
    for file in [&cut, "results/index.json"] {
        std::fs::remove_file(desk.path(file)).unwrap();
    }
    desk.prints(sweep);
    assert_eq!((desk.prints("report results -o -"), made()), (whole, before), "what was there is taken over");
}

#[test]
fn what_cannot_be_shown_is_named() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("folder")).unwrap();
    for (file, text) in [("other.json", "{}"), ("broken.json", "{"), ("wall.json", "{\"runs\":[{\"wall_ns\":1}]}")] {
        desk.put(file, text);
    }
    desk.refuses("report folder", &["folder", "index.json", "kvssd sweep"]);
    desk.refuses("report other.json", &["other.json", "kvssd bench"]);
    desk.refuses("report broken.json", &["broken.json", "JSON"]);
    desk.refuses("report wall.json", &["wall.json", "wall-clock"]);
    desk.refuses("report other.json -o nowhere/page.html", &["nowhere/page.html"]);
    desk.refuses("bench --store made --html page.html", &["--html", "--store"]);
    desk.refuses(&format!("bench {TINY} --series 1ms"), &["--series", "--json", "--html"]);
}
