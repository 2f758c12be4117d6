//! The store in an image: put, get and the rest, as a script uses them.

use crate::desk::Desk;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Output, Stdio};

/// Makes an image of the smallest size.
pub fn desk_with_image(design: &str) -> Desk {
    let desk = Desk::new();
    desk.prints(&format!("create drive.kv --size 64MiB --design {design}"));
    desk
}

/// What came of the program with these arguments and this input.
pub fn run(desk: &Desk, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = desk.command("");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // A program that refuses to work reads nothing.
    let _ = child.stdin.take().expect("the input is a pipe").write_all(input);
    child.wait_with_output().expect("the program ends")
}

/// What it prints when it does as it is told.
pub fn done(desk: &Desk, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let output = run(desk, arguments, input);
    assert!(output.status.success(), "kvssd {arguments:?}: {output:?}");
    output.stdout
}

/// What it says in one line when it ends with that status.
pub fn message(desk: &Desk, arguments: &[&str], status: i32) -> String {
    let output = run(desk, arguments, b"");
    assert_eq!(output.status.code(), Some(status), "kvssd {arguments:?}: {output:?}");
    assert!(output.stdout.is_empty(), "kvssd {arguments:?}: {output:?}");
    let message = String::from_utf8(output.stderr).expect("messages are text");
    assert!(message.starts_with("kvssd: ") && message.lines().count() == 1, "kvssd {arguments:?}: {message}");
    message
}

#[test]
fn pairs_come_and_go() {
    for design in ["plus", "original", "rhik", "multilevel", "kaml"] {
        let desk = desk_with_image(design);
        done(&desk, &["put", "drive.kv", "city/oslo", "59.91N"], b"");
        done(&desk, &["put", "drive.kv", "hex:00ff", "hex:c0ffee"], b"");
        done(&desk, &["put", "drive.kv", "stdin", "-"], b"\0two\nlines");
        fs::write(desk.path("value.bin"), b"from a file\r\n").unwrap();
        done(&desk, &["put", "drive.kv", "file", "--file", "value.bin"], b"");
        done(&desk, &["put", "drive.kv", "empty", ""], b"");
        done(&desk, &["put", "drive.kv", "dash", "hex:2d"], b"not this");
        done(&desk, &["put", "drive.kv", "gone", "1", "--sync"], b"");
        done(&desk, &["delete", "drive.kv", "gone"], b"");
        for (key, value) in [
            ("city/oslo", &b"59.91N"[..]),
            ("hex:00ff", b"\xc0\xff\xee"),
            ("hex:737464696e", b"\0two\nlines"),
            ("file", b"from a file\r\n"),
            ("empty", b""),
            ("dash", b"-"),
        ] {
            assert_eq!(done(&desk, &["get", "drive.kv", key], b""), value, "{key}");
            assert_eq!(done(&desk, &["exist", "drive.kv", key], b""), b"");
        }
        done(&desk, &["get", "drive.kv", "hex:00ff", "--file", "out.bin"], b"");
        assert_eq!(fs::read(desk.path("out.bin")).unwrap(), b"\xc0\xff\xee");
        let listed = String::from_utf8(done(&desk, &["list", "drive.kv"], b"")).unwrap();
        let mut keys: Vec<_> = listed.lines().collect();
        let from = done(&desk, &["list", "drive.kv", "--from", keys[2], "--count", "2"], b"");
        assert_eq!(String::from_utf8(from).unwrap().lines().collect::<Vec<_>>(), keys[2..4]);
        keys.sort_unstable();
        assert_eq!(keys, ["city/oslo", "dash", "empty", "file", "hex:00ff", "stdin"]);
        assert!(desk.prints("stat drive.kv").starts_with("pairs             6\n"));
        let info = desk.prints("info drive.kv");
        assert!(info.contains(&format!("{design}: index")) && info.contains("67108864 bytes"), "{info}");
        assert!(desk.prints("check drive.kv").contains("pairs: 6"));
    }
}

#[test]
fn a_missing_key_is_status_1() {
    let desk = desk_with_image("plus");
    for command in ["get", "delete", "exist"] {
        let message = message(&desk, &[command, "drive.kv", "no\nsuch"], 1);
        assert!(message.contains("drive.kv") && message.contains("hex:6e6f0a73756368"), "{message}");
    }
}

#[test]
fn parameters_of_the_firmware_are_chosen_when_an_image_is_made_and_kept_in_it() {
    let desk = Desk::new();
    for (design, set) in [("plus", "design.victims=cost-benefit"), ("pink", "design.table_pages=2")] {
        done(
            &desk,
            &["create", design, "--size", "128MiB", "--design", design, "--partitions", "2", "--set", set],
            b"",
        );
        done(&desk, &["put", design, "key", "value"], b"");
        assert_eq!(done(&desk, &["get", design, "key"], b""), b"value");
        done(&desk, &["check", design], b"");
    }
    let info = String::from_utf8(done(&desk, &["info", "plus"], b"")).unwrap();
    assert!(info.contains("victims cost-benefit"), "{info}");
    for (set, why) in [
        ("design.nonsense=1", "plus has no such parameter (it has: index, victims, layout, grain_bytes"),
        ("design.victims=least", "greedy, erase-counts, cost-benefit"),
        ("design.occupancy_percent=0", "occupancy_percent"),
        ("nand.erase_ns=5", "design.NAME=value"),
    ] {
        let said = message(&desk, &["create", "new.kv", "--size", "64MiB", "--set", set], 2);
        assert!(said.contains(why), "{said}");
        assert!(!desk.path("new.kv").exists());
    }
}

#[test]
fn a_put_makes_an_image_and_says_so() {
    let desk = Desk::new();
    let output = run(&desk, &["put", "new.kv", "a", "1"], b"");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && message.contains("new.kv is new") && message.lines().count() == 1, "{message}");
    assert_eq!(done(&desk, &["get", "new.kv", "a"], b""), b"1");
    for command in [&["get", "other.kv", "a"][..], &["delete", "other.kv", "a"], &["list", "other.kv"]] {
        assert!(self::message(&desk, command, 2).contains("other.kv"));
    }
    // A key that no drive takes makes no image.
    for key in ["", &"k".repeat(256), "hex:"] {
        assert!(self::message(&desk, &["put", "other.kv", key, "1"], 2).contains("a key has 1 to 255"));
    }
    assert_eq!(desk.files(), ["new.kv"]);
}

#[test]
fn a_dump_loads_back_to_the_same_pairs() {
    let desk = desk_with_image("plus");
    let mut lines = String::new();
    for number in 0..3000 {
        lines += &format!("key {number},\"value, {number}\"\n");
    }
    lines += "hex:0001ff,hex:6865783a\nhex:6865783a,\"two\nlines\"\nempty,\n\"comma,key\",\"say \"\"x\"\"\"\n";
    fs::write(desk.path("pairs.csv"), &lines).unwrap();
    done(&desk, &["load", "drive.kv", "pairs.csv"], b"");
    let sorted = |csv: &[u8]| {
        let mut lines: Vec<_> = String::from_utf8(csv.to_vec()).unwrap().split('\n').map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let csv = done(&desk, &["dump", "drive.kv"], b"");
    assert_eq!(sorted(&csv).len(), sorted(lines.as_bytes()).len());
    done(&desk, &["dump", "drive.kv", "pairs.jsonl"], b"");
    for (number, (file, input)) in [("pairs.jsonl", &b""[..]), ("-", &csv)].into_iter().enumerate() {
        let image = format!("copy{number}.kv");
        desk.prints(&format!("create {image} --size 64MiB --design original"));
        done(&desk, &["load", &image, file], input);
        assert_eq!(sorted(&done(&desk, &["dump", &image, "-"], b"")), sorted(&csv), "{file}");
        assert_eq!(done(&desk, &["get", &image, "hex:0001ff"], b""), b"hex:");
        assert_eq!(done(&desk, &["get", &image, "hex:6865783a"], b""), b"two\nlines");
        assert_eq!(done(&desk, &["get", &image, "comma,key"], b""), b"say \"x\"");
        assert_eq!(done(&desk, &["get", &image, "empty"], b""), b"");
    }
}

#[test]
fn a_wrong_line_is_named_and_those_before_it_stay() {
    let desk = desk_with_image("plus");
    desk.put("pairs.csv", "a,1\nb,2\nc\nd,4\n");
    let message = message(&desk, &["load", "drive.kv", "pairs.csv"], 2);
    assert!(message.contains("pairs.csv: line 3"), "{message}");
    assert_eq!(desk.prints("list drive.kv").lines().count(), 2);
}

#[test]
fn what_is_no_image_is_refused_and_left_as_it_was() {
    let desk = desk_with_image("plus");
    done(&desk, &["put", "drive.kv", "a", "1"], b"");
    let whole = fs::read(desk.path("drive.kv")).unwrap();
    fs::write(desk.path("short.kv"), &whole[..whole.len() / 2]).unwrap();
    let mut header = whole.clone();
    header[200] ^= 1;
    fs::write(desk.path("header.kv"), header).unwrap();
    fs::write(desk.path("text.kv"), "This is a text, and no image of anything.").unwrap();
    for (image, named) in [("short.kv", "truncated"), ("header.kv", "damaged"), ("text.kv", "not a kvssd image")] {
        let before = fs::read(desk.path(image)).unwrap();
        for command in [&["get", image, "a"][..], &["put", image, "a", "2"], &["check", image], &["dump", image]] {
            let message = message(&desk, command, 2);
            assert!(message.contains(image) && message.contains(named), "{message}");
        }
        assert!(before == fs::read(desk.path(image)).unwrap(), "{image} has changed");
    }
    assert!(message(&desk, &["create", "text.kv"], 2).contains("text.kv"));
    assert!(message(&desk, &["create", "drive.kv"], 2).contains("exists"));
    assert!(whole == fs::read(desk.path("drive.kv")).unwrap());
}

#[test]
fn a_damaged_page_is_found_by_a_check() {
    let desk = desk_with_image("plus");
    desk.put("pairs.csv", &(0..2000).map(|n| format!("key{n},{}\n", "v".repeat(1000))).collect::<String>());
    done(&desk, &["load", "drive.kv", "pairs.csv"], b"");
    let mut bytes = fs::read(desk.path("drive.kv")).unwrap();
    // The last copy is the one in a page: what is staged lies before.
    let at = bytes.windows(200).rposition(|bytes| bytes == [b'v'; 200]).expect("the value lies in the image");
    bytes[at] ^= 0x40;
    fs::write(desk.path("drive.kv"), bytes).unwrap();
    let output = run(&desk, &["check", "drive.kv"], b"");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("pair lost"), "{output:?}");
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let desk = desk_with_image("plus");
    for (arguments, names) in [
        ("create new.kv --size 1MiB", ["64 MiB", "new.kv"]),
        ("create new.kv --size many", ["--size", "4GiB"]),
        ("create new.kv --size 1PiB", ["new.kv", "TiB of flash, not"]),
        ("serve drive.kv --listen localhost:0", ["--listen", "127.0.0.1:4420"]),
        ("put nvme+tcp:127.0.0.1:4420 key value", ["two slashes", "nvme+tcp://127.0.0.1:4420"]),
        ("create new.kv --design minus", ["minus", "original, plus"]),
        ("put drive.kv key", ["<VALUE|--file <FILE>>", "required"]),
        ("put drive.kv hex:0 value", ["hex:0", "digits"]),
        ("put drive.kv key --file nowhere", ["nowhere", "read"]),
        ("load drive.kv nowhere.csv", ["nowhere.csv", "read"]),
        ("dump drive.kv drive.kv --format csv", ["drive.kv", "image of a drive"]),
        ("dump drive.kv nowhere/pairs.csv", ["nowhere/pairs.csv", "written"]),
    ] {
        desk.refuses(arguments, &names);
    }
    let long = "k".repeat(256);
    assert!(message(&desk, &["put", "drive.kv", &long, "1"], 2).contains("256"));
    assert!(message(&desk, &["get", "drive.kv", ""], 2).contains("1 to 255"));
    let large = vec![0; 3 << 20];
    let output = run(&desk, &["put", "drive.kv", "large", "-"], &large);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("3145728"), "{output:?}");
}

#[test]
fn a_full_drive_is_status_3() {
    let desk = desk_with_image("plus");
    desk.put("pairs.csv", &(0..90_000).map(|n| format!("key{n},{}\n", "v".repeat(1000))).collect::<String>());
    let message = message(&desk, &["load", "drive.kv", "pairs.csv"], 3);
    assert!(message.contains("drive.kv") && message.contains("full"), "{message}");
    // It says how far it came, and that much is there.
    let (_, loaded) = message.split_once("the first ").expect("pairs were loaded");
    let loaded: usize = loaded.split_once(" pairs").unwrap().0.parse().expect("a number of pairs");
    let there = desk.prints("list drive.kv").lines().count();
    assert!(0 < loaded && loaded <= there && there <= loaded + 1024, "{loaded} of {there}");
    let key = String::from_utf8(done(&desk, &["list", "drive.kv", "--count", "1e0"], b"")).unwrap();
    done(&desk, &["delete", "drive.kv", key.trim()], b"");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let desk = desk_with_image("plus");
    desk.put(
        "pairs.csv",
        &(0..20_000)
            .map(|n| format!("a rather long key, so that pipes fill up {n},\n"))
            .map(|line| line.replacen(", so", " so", 1))
            .collect::<String>(),
    );
    done(&desk, &["load", "drive.kv", "pairs.csv"], b"");
    for command in ["list drive.kv", "dump drive.kv"] {
        let mut command = desk.command(command);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut first = [0; 100];
        child.stdout.take().expect("the output is a pipe").read_exact(&mut first).expect("it prints something");
        let output = child.wait_with_output().expect("the program ends");
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn work_goes_on_when_nobody_can_be_told() {
    let desk = Desk::new();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let status = |arguments: &str| {
        let status = desk.command(arguments).stdin(Stdio::null()).stderr(full()).status();
        status.expect("the program starts").code()
    };
    assert_eq!(status("put drive.kv key value"), Some(0));
    assert_eq!(status("get drive.kv nothing"), Some(1));
    assert_eq!(status("no-such-command"), Some(2));
    assert_eq!(done(&desk, &["get", "drive.kv", "key"], b""), b"value");
}

#[cfg(target_os = "linux")]
#[test]
fn a_standard_output_that_is_full_is_named() {
    let desk = desk_with_image("plus");
    done(&desk, &["put", "drive.kv", "key", "value"], b"");
    for arguments in
        ["get drive.kv key", "list drive.kv", "dump drive.kv", "stat drive.kv --json", "designs", "--help", "--version"]
    {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let output = desk.command(arguments).stdout(full).output().expect("the program starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.starts_with("kvssd: standard output: cannot be written: "), "{arguments}: {message}");
        assert_eq!(output.status.code(), Some(3), "{arguments}");
    }
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let made = desk.command("namespace create drive.kv --name accounts").stdout(full).output().expect("it starts");
    let message = String::from_utf8_lossy(&made.stderr);
    assert_eq!((made.status.code(), message.lines().count()), (Some(3), 1), "{message}");
    assert!(message.ends_with("; namespace 2 is made\n"), "{message}");
    done(&desk, &["put", "drive.kv", "key", "value", "--namespace", "accounts"], b"");
}

#[cfg(unix)]
#[test]
fn a_limit_of_the_size_of_files_is_said_and_loses_nothing() {
    let desk = desk_with_image("plus");
    done(&desk, &["put", "drive.kv", "key", "value"], b"");
    desk.put("pairs.csv", &(0..2000).map(|n| format!("key{n},{}\n", "v".repeat(1000))).collect::<String>());
    let limited = |blocks: u32, arguments: &str| {
        let program = env!("CARGO_BIN_EXE_kvssd");
        let mut shell = std::process::Command::new("sh");
        shell.current_dir(desk.path("")).args(["-c", &format!("ulimit -f {blocks}; exec {program} {arguments}")]);
        let output = shell.output().expect("there is a shell");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code().is_some_and(|code| code != 0), "{arguments}: {output:?}");
        assert!(message.starts_with("kvssd: ") && message.trim_end().lines().count() == 1, "{message}");
        message
    };
    limited(64, "create other.kv --mib 64");
    limited(64, "load drive.kv pairs.csv");
    assert_eq!(done(&desk, &["get", "drive.kv", "key"], b""), b"value");
    // The draft of a file is no matter of the user's, and no file is there in part.
    done(&desk, &["load", "drive.kv", "pairs.csv"], b"");
    let message = limited(64, "dump drive.kv out.csv");
    assert!(message.contains("out.csv") && !message.contains(".tmp"), "{message}");
    assert!(limited(8, "man long/pages").contains("long/pages"));
    assert!(!desk.path("out.csv").exists());
    let pages = |folder: &str| std::fs::read_dir(desk.path(folder)).unwrap().map(|page| page.unwrap().path());
    done(&desk, &["man", "whole"], b"");
    assert!(pages("long/pages").count() < pages("whole").count());
    for page in pages("long/pages") {
        let whole = desk.path("whole").join(page.file_name().unwrap());
        assert_eq!(std::fs::read(&page).unwrap(), std::fs::read(whole).unwrap(), "{}", page.display());
    }
}

#[test]
fn an_image_in_use_names_its_holder() {
    let desk = desk_with_image("plus");
    let (mut holder, input, message) = (1..20)
        .find_map(|time| {
            let mut command = desk.command("load drive.kv -");
            let mut holder = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
            let mut input = holder.stdin.take().expect("the input is a pipe");
            input.write_all(b"a,1\n").expect("the holder reads");
            // It takes a moment until it has the image and has said so; who asks too early may keep it from both.
            std::thread::sleep(std::time::Duration::from_millis(300 * time));
            let output = run(&desk, &["get", "drive.kv", "a"], b"");
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.code() == Some(4) && message.contains(&format!("process {}", holder.id())) {
                return Some((holder, input, message));
            }
            drop(input);
            holder.wait().expect("the program ends");
            None
        })
        .expect("the image is in use, and its holder is named");
    drop(input);
    assert!(holder.wait().expect("the program ends").success());
    assert!(message.contains("in use") && message.contains("drive.kv"), "{message}");
    assert_eq!(done(&desk, &["get", "drive.kv", "a"], b""), b"1");
}

/// The program in a loop of puts, as a script would; a put that has returned must outlive it. The keys are told by a process
/// that only tells what has returned.
#[test]
fn what_was_acknowledged_outlives_kill_9() {
    let desk = desk_with_image("plus");
    let script = "i=0; while :; do \"$0\" put drive.kv key$i value$i || exit; echo $i; i=$((i+1)); done";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_kvssd")]).current_dir(desk.path("."));
    use std::os::unix::process::CommandExt;
    let mut shell = command.process_group(0).stdout(Stdio::piped()).spawn().expect("a shell starts");
    let lines = BufReader::new(shell.stdout.take().expect("the output is a pipe")).lines();
    let mut acknowledged = 0;
    for line in lines {
        acknowledged = line.expect("numbers are text").parse::<u32>().expect("it prints numbers") + 1;
        if acknowledged == 40 {
            // The whole group of processes, in the middle of a put or between two.
            let group = format!("-{}", shell.id());
            let killed = std::process::Command::new("kill").args(["-9", "--", &group]).status();
            assert!(killed.expect("kill starts").success());
        }
    }
    shell.wait().expect("the shell has ended");
    assert!(acknowledged >= 40);
    for number in 0..acknowledged {
        assert_eq!(
            done(&desk, &["get", "drive.kv", &format!("key{number}")], b""),
            format!("value{number}").as_bytes()
        );
    }
    assert!(desk.prints("check drive.kv").contains("pairs: "));
}

/// A load that is killed: what was stored is a beginning of the file, and the image is whole.
#[test]
fn a_load_that_is_killed_leaves_a_beginning() {
    let desk = desk_with_image("plus");
    let mut command = desk.command("load drive.kv -");
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("the input is a pipe");
    for number in 0..30_000 {
        input.write_all(format!("key{number},value{number}\n").as_bytes()).unwrap();
    }
    child.kill().expect("the child can be ended");
    child.wait().expect("the child has ended");
    let dumped = String::from_utf8(done(&desk, &["dump", "drive.kv"], b"")).unwrap();
    let mut numbers: Vec<u32> =
        dumped.lines().map(|line| line.split_once(",value").expect("a pair").1.parse().expect("a number")).collect();
    numbers.sort_unstable();
    assert!(
        numbers.len() > 1000 && numbers.iter().zip(0..).all(|(number, index)| *number == index),
        "{}",
        numbers.len()
    );
    desk.prints("check drive.kv");
}

#[test]
fn room_that_the_disk_has_not_is_refused() {
    // A limit on the size of files stands for a disk that is full.
    let desk = Desk::new();
    for blocks in [0, 1000] {
        let script = format!("ulimit -f {blocks}; trap '' XFSZ; \"$0\" create drive.kv --size 64MiB --preallocate");
        let mut command = std::process::Command::new("sh");
        let output =
            command.args(["-c", &script, env!("CARGO_BIN_EXE_kvssd")]).current_dir(desk.path(".")).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("drive.kv"), "{output:?}");
        assert!(desk.files().is_empty());
        assert!(File::open(desk.path("drive.kv")).is_err());
    }
}

/// A disk that becomes full in the middle of a load: one line says so, and what was stored before is there and can be added to.
#[test]
fn a_disk_that_becomes_full_loses_nothing() {
    let desk = desk_with_image("plus");
    done(&desk, &["put", "drive.kv", "first", "1"], b"");
    let pairs: String = (0..30_000).map(|number| format!("key{number},{}\n", "v".repeat(600))).collect();
    fs::write(desk.path("pairs.csv"), pairs).unwrap();
    // Blocks of 512 bytes, as many as the staging and some superblocks take.
    let script = "ulimit -f 110000; trap '' XFSZ; \"$0\" load drive.kv pairs.csv";
    let mut command = std::process::Command::new("sh");
    let output =
        command.args(["-c", script, env!("CARGO_BIN_EXE_kvssd")]).current_dir(desk.path(".")).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.lines().count() == 1 && message.contains("drive.kv") && message.contains("write"), "{message}");
    desk.prints("check drive.kv");
    assert_eq!(done(&desk, &["get", "drive.kv", "first"], b""), b"1");
    let kept = String::from_utf8(done(&desk, &["dump", "drive.kv"], b"")).unwrap().lines().count();
    assert!((1000..30_000).contains(&kept), "{kept} pairs");
    done(&desk, &["put", "drive.kv", "later", "2"], b"");
    assert_eq!(done(&desk, &["get", "drive.kv", "later"], b""), b"2");
}

/// Also of few and large pairs, each of which takes a while.
#[test]
fn an_interrupt_ends_a_dump_at_the_next_pair() {
    let desk = Desk::new();
    desk.prints("create drive.kv --size 64MiB");
    let value = "v".repeat(400_000);
    let pairs = (0..16).map(|number| format!("k{number},{value}\n")).collect::<String>();
    desk.put("pairs.csv", &pairs);
    desk.prints("-q load drive.kv pairs.csv");
    let mut dump = desk.command("dump drive.kv - --format csv");
    let mut dump = dump.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // The second pair waits for its reader.
    let mut output = BufReader::new(dump.stdout.take().unwrap());
    output.read_until(b'\n', &mut Vec::new()).unwrap();
    crate::send("INT", &dump);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(dump.wait().unwrap().code(), Some(130));
    assert!(rest.lines().count() < 15, "{} more pairs", rest.lines().count());
}
