//! A page in a real browser: `cargo test -p kvssd-report --test browser -- --ignored`, with Chromium in the path.

use kvssd_report::{Study, html};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A bench of two designs and two workloads.
fn page() -> String {
    let run = |design: &str, workload: &str, throughput: u64| -> Value {
        json!({ "design": design, "workload": workload, "simulated_ns": 7, "throughput_ops_s": throughput })
    };
    let runs = [
        run("original", "ycsb-a", 9),
        run("original", "ycsb-c", 800),
        run("plus", "ycsb-a", 10),
        run("plus", "ycsb-c", 70),
    ];
    html("a bench", &Study::of_report(&json!({ "runs": runs })).unwrap())
}

/// What is in the page when its script has run, and what the browser complained of. It has no network.
fn shown(folder: &Path, address: &str) -> (String, String) {
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"];
    let output = Command::new("chromium")
        .args(quiet)
        .args([&profile, "--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom", address])
        .output()
        .expect("chromium starts: it is a package of most systems");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    let complaints = message.lines().filter(|line| line.contains("CONSOLE")).collect::<Vec<_>>().join("\n");
    (String::from_utf8_lossy(&output.stdout).into_owned(), complaints)
}

#[test]
#[ignore = "it needs Chromium"]
fn a_page_filters_and_sorts_without_a_complaint() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("page.html");
    // The figures, which are behind the heat map, sorted by the fourth column, descending, as if a person had clicked twice.
    let click = "<script>for (const _ of [1, 2]) [...document.querySelectorAll('table')].at(-1).querySelectorAll('th button')[3].click()</script></body>";
    fs::write(&path, page().replace("</body>", click)).unwrap();
    let address = format!("file://{}", path.display());
    let rows = |dom: &str| {
        let body =
            dom.split("<tbody>").last().and_then(|rest| rest.split("</tbody>").next()).expect("there is a table");
        body.split("<tr").skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let (dom, complaints) = shown(folder.path(), &address);
    assert_eq!(complaints, "");
    let order: Vec<bool> =
        ["800", "70", "10", "9"].iter().zip(rows(&dom)).map(|(text, row)| row.contains(text)).collect();
    assert_eq!((order, rows(&dom).iter().filter(|row| row.contains("hidden")).count()), (vec![true; 4], 0));

    let (dom, complaints) = shown(folder.path(), &format!("{address}#design=plus"));
    assert_eq!(complaints, "");
    let hidden: Vec<String> = rows(&dom).into_iter().filter(|row| row.contains("hidden")).collect();
    assert!(hidden.len() == 2 && hidden.iter().all(|row| row.contains("original")), "{hidden:?}");
    assert!(dom.contains(".coloured [fill=\"#0072B2\"]") && !dom.contains(".coloured [fill=\"#D55E00\"]"), "{dom}");
}
