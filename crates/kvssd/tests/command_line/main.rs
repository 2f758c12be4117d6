//! The command line as a person or a script meets it: the built program is run in an empty folder, and what it prints, its
//! exit status and the files that it leaves are looked at.

mod again;
mod desk;
mod embedded;
#[cfg(unix)]
mod lives;
mod namespaces;
mod page;
mod refusals;
mod replay;
mod report;
mod reproduce;
#[cfg(unix)]
mod serve;
mod store;
mod sweep;
#[cfg(unix)]
#[path = "../../../host/tests/all/synced_pairs.rs"]
mod synced_pairs;
mod wire;

use desk::Desk;

#[test]
fn designs_profiles_and_help_are_printed() {
    let desk = Desk::new();
    for (arguments, names) in [
        ("designs", ["original", "plus", "design.grain_bytes"]),
        ("profiles", ["kvvirt", "970pro", "128 GiB"]),
        ("--help", ["bench", "designs", "profiles"]),
        ("bench --help", ["--design", "--store", "--scale"]),
        ("namespace --help", ["create", "delete", "list"]),
        ("namespace create --help", ["--name", "--quota", "Examples"]),
        ("--version", ["kvssd", ".", "0"]),
    ] {
        let printed = desk.prints(arguments);
        for name in names {
            assert!(printed.contains(name), "kvssd {arguments} names no {name}: {printed}");
        }
    }
    assert!(desk.files().is_empty());
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_long_bench_without_a_report() {
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::{Duration, Instant};
    let desk = Desk::new();
    let mut bench = desk.command("bench --scale 1/512 --records 100000 --overwrites 1000000000 --json runs.json");
    let mut child = bench.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    // Time to get to work; the bench would go on for more than an hour.
    sleep(Duration::from_secs(2));
    let interrupted = Instant::now();
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill starts");
    assert!(kill.success(), "the bench ended too early");
    while child.try_wait().expect("the child can be waited for").is_none() {
        if interrupted.elapsed() > Duration::from_secs(10) {
            child.kill().expect("the child can be ended");
            panic!("the bench goes on after an interrupt");
        }
        sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("the child ended");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "kvssd: interrupted\n");
    assert!(output.stdout.is_empty() && desk.files().is_empty(), "{output:?}");
}
