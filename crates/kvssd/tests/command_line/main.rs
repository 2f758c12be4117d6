//! The command line as a person or a script meets it: the built program is run in an empty folder, and what it prints, its
//! exit status and the files that it leaves are looked at.

mod again;
#[cfg(unix)]
mod authentication;
mod desk;
#[cfg(unix)]
mod documents;
mod embedded;
mod estimate;
#[cfg(unix)]
mod joints;
#[cfg(unix)]
mod lives;
mod namespaces;
mod page;
mod partitions;
mod refusals;
mod replay;
mod report;
mod reproduce;
#[cfg(unix)]
mod rights;
#[cfg(unix)]
mod serve;
mod store;
mod sweep;
#[cfg(unix)]
#[path = "../../../host/tests/all/synced_pairs.rs"]
mod synced_pairs;
#[cfg(unix)]
mod tls;
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
        ("namespace --help", ["create", "delete", "cache"]),
        ("namespace create --help", ["--name", "--quota", "Examples"]),
        ("completions bash", ["matrix", "--value-bytes", "namespace"]),
        ("--version", ["kvssd", ".", "0"]),
    ] {
        let printed = desk.prints(arguments);
        for name in names {
            assert!(printed.contains(name), "kvssd {arguments} names no {name}: {printed}");
        }
    }
    assert!(desk.files().is_empty());
}

#[test]
fn pages_of_the_manual_are_written_and_quiet_programs_say_nothing() {
    let desk = Desk::new();
    desk.prints("man pages");
    let page = desk.read("pages/kvssd-bench.1");
    assert!(page.contains("value\\-bytes") && desk.path("pages/kvssd-namespace-create.1").exists());
    for choice in ["[default: ycsb\\-a]", "Possible values:", "ycsb\\-f", "seekrandomwhilechanging", "latest"] {
        assert!(page.contains(choice), "{choice}");
    }
    let message = |arguments: &str| String::from_utf8(desk.command(arguments).output().unwrap().stderr).unwrap();
    assert!(message("put drive.kv key value").contains("is new"));
    assert_eq!(message("put other.kv key value --quiet"), "");
    assert!(message("-q put nowhere/other.kv key value").contains("nowhere"), "errors are said");
}

/// Starts a bench, interrupts it when it is at work, and gives what it printed.
#[cfg(unix)]
fn interrupted(desk: &Desk, arguments: &str) -> std::process::Output {
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::{Duration, Instant};
    let mut child =
        desk.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    // Time to get to work; the bench would go on for more than an hour.
    sleep(Duration::from_secs(3));
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
    output
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_long_bench_without_a_report() {
    let desk = Desk::new();
    let output = interrupted(&desk, "bench --scale 1/512 --records 100000 --overwrites 1000000000 --json runs.json");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "kvssd: interrupted\n");
    assert!(output.stdout.is_empty() && desk.files().is_empty(), "{output:?}");
}

#[cfg(unix)]
#[test]
fn what_was_done_before_an_interrupt_is_shown_and_kept() {
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        return;
    }
    let desk = Desk::new();
    // The one fills few pairs, and is done long before the other.
    let bench = "bench --scale 1/256 --value-bytes 30 --overwrites 0 --operations 10 --design kaml --design plus";
    let output = interrupted(&desk, &format!("{bench} --json runs.json"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(message, "kvssd: 1 of 2 designs were done before the interrupt\nkvssd: interrupted\n");
    assert!(String::from_utf8_lossy(&output.stdout).contains("kaml"));
    assert!(desk.read("runs.json").contains("interrupted: 1 of 2 designs are here"));
    let runs = desk::runs(&desk.read("runs.json"));
    assert_eq!((runs.len(), runs[0]["design"].as_str()), (1, Some("kaml")));
}
