//! The command line as a person or a script meets it: the built program is run in an empty folder, and what it prints, its
//! exit status and the files that it leaves are looked at.

mod again;
#[cfg(unix)]
mod authentication;
#[cfg(unix)]
mod damaged;
mod desk;
#[cfg(unix)]
mod documents;
mod embedded;
mod estimate;
#[cfg(unix)]
mod joints;
#[cfg(unix)]
mod lives;
mod load;
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
mod salvage;
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
        ("namespace create --help", ["--name", "tessera", "Examples"]),
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
    interrupted_after(3, desk, arguments)
}

/// As [`interrupted`], after so many seconds of work.
#[cfg(unix)]
fn interrupted_after(seconds: u64, desk: &Desk, arguments: &str) -> std::process::Output {
    let child = begun_for(seconds, desk.command(arguments));
    send("INT", &child);
    ended(child)
}

/// A bench that is at work, and would go on for more than an hour.
#[cfg(unix)]
fn begun(command: std::process::Command) -> std::process::Child {
    begun_for(3, command)
}

#[cfg(unix)]
fn begun_for(seconds: u64, mut command: std::process::Command) -> std::process::Child {
    use std::process::Stdio;
    use std::thread::sleep;
    use std::time::{Duration, Instant};
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let begin = Instant::now();
    // On a busy machine it takes a while until there is somebody to hear.
    while !hears_signals(&child) && child.try_wait().expect("the child can be waited for").is_none() {
        assert!(begin.elapsed() < Duration::from_secs(120), "it hears no signals");
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_secs(seconds));
    child
}

/// Whether a program has a handler of SIGTERM by now, where the system tells.
#[cfg(unix)]
fn hears_signals(child: &std::process::Child) -> bool {
    const SIGTERM: u32 = 15;
    let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", child.id())) else { return true };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|signals| u64::from_str_radix(signals.trim(), 16).ok());
    caught.is_none_or(|signals| signals >> (SIGTERM - 1) & 1 == 1)
}

#[cfg(unix)]
fn send(signal: &str, child: &std::process::Child) {
    let signal = format!("-{signal}");
    let kill = std::process::Command::new("kill").args([&signal, &child.id().to_string()]).status();
    assert!(kill.expect("kill starts").success(), "the bench ended too early");
}

/// What a bench has printed that was interrupted.
#[cfg(unix)]
fn ended(mut child: std::process::Child) -> std::process::Output {
    use std::time::{Duration, Instant};
    let interrupted = Instant::now();
    while child.try_wait().expect("the child can be waited for").is_none() {
        if interrupted.elapsed() > Duration::from_secs(120) {
            child.kill().expect("the child can be ended");
            panic!("the bench goes on after an interrupt");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("the child ended");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    output
}

/// As `nohup` does, and no terminal to be closed is needed.
#[cfg(target_os = "linux")]
#[test]
fn work_that_ignores_hangups_from_its_beginning_outlives_its_terminal() {
    let desk = Desk::new();
    desk.prints("create drive.kv --size 64MiB");
    for arguments in
        ["bench --scale 1/512 --records 100000 --overwrites 1000000000", "serve drive.kv --listen 127.0.0.1:0"]
    {
        let program = desk.command(arguments);
        let mut command = std::process::Command::new("sh");
        command.current_dir(desk.path("")).args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]);
        command.arg(program.get_program()).args(program.get_args());
        let mut child = begun(command);
        send("HUP", &child);
        std::thread::sleep(std::time::Duration::from_secs(1));
        assert!(child.try_wait().expect("the child can be waited for").is_none(), "{arguments}: it ended");
        send("TERM", &child);
        let status = child.wait().expect("the child ended");
        assert!(matches!(status.code(), Some(0 | 130)), "{arguments}: {status}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_long_work_without_a_report() {
    let bench = "bench --scale 1/512 --records 100000 --overwrites 1000000000 --json runs.json";
    let world = cfg!(feature = "campaigns").then_some("world --drives 1000000 --json rows.json");
    for arguments in [bench].into_iter().chain(world) {
        let desk = Desk::new();
        let output = interrupted(&desk, arguments);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "kvssd: interrupted\n");
        assert!(output.stdout.is_empty() && desk.files().is_empty(), "{output:?}");
    }
}

#[cfg(unix)]
#[test]
fn what_was_done_before_an_interrupt_is_shown_and_kept() {
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        return;
    }
    let desk = Desk::new();
    // The one fills few pairs, and is done long before the other.
    let bench =
        "bench --quiet --scale 1/256 --value-bytes 30 --overwrites 0 --operations 10 --design kaml --design plus";
    // On a busy machine the one is done later, and the other later still.
    let output = [3, 9, 27, 81].into_iter().find_map(|seconds| {
        let output = interrupted_after(seconds, &desk, &format!("{bench} --json runs.json"));
        (output.stderr != b"kvssd: interrupted\n").then_some(output)
    });
    let output = output.expect("none is done before the interrupt");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(message, "kvssd: 1 of 2 designs were done before the interrupt\nkvssd: interrupted\n");
    assert!(String::from_utf8_lossy(&output.stdout).contains("kaml"));
    assert!(desk.read("runs.json").contains("interrupted: 1 of 2 designs are here"));
    let runs = desk::runs(&desk.read("runs.json"));
    assert_eq!((runs.len(), runs[0]["design"].as_str()), (1, Some("kaml")));
}

#[test]
fn what_was_done_beside_a_drive_that_is_full_is_shown_and_kept() {
    let desk = Desk::new();
    // The second has a table for fewer pairs, and the third is none of those before it.
    let bench = "bench --quiet --scale 1/512 --value-bytes 30 --records 70000 --overwrites 0 --operations 10";
    let output =
        desk.run(&format!("{bench} --design plus --design kaml --design tessera --json runs.json --html runs.html"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message.starts_with("kvssd: 1 of 3 designs were done\nkvssd: the index of design kaml is full"),
        "{message}"
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stdout).contains("plus"));
    for file in ["runs.json", "runs.html"] {
        assert!(desk.read(file).contains("--scale: 1 of 3 designs are here"), "{file}");
    }
    let runs = desk::runs(&desk.read("runs.json"));
    assert_eq!((runs.len(), runs[0]["design"].as_str()), (1, Some("plus")));
}
