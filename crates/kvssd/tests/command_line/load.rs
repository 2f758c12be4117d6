//! `kvssd load`: what it takes for pairs, and what it says when not all of them could be stored.

use crate::desk::Desk;
use crate::store::{desk_with_image, done, message, run};
use std::fs;
use std::io::Write;

/// A full drive refuses a pair in the middle of a batch, and those before it stay: what is said of them is what is there.
#[test]
fn what_a_full_drive_has_loaded_is_said_exactly() {
    let desk = desk_with_image("kaml");
    desk.put("pairs.csv", &(0..20_000).map(|number| format!("k{number},{}\n", "v".repeat(100))).collect::<String>());
    let output = run(&desk, &["load", "drive.kv", "pairs.csv"], b"");
    let message = String::from_utf8(output.stderr).expect("messages are text");
    assert_eq!((output.status.code(), message.lines().count()), (Some(3), 1), "{message}");
    let said = message.split_once("; the first ").expect(&message).1;
    let numbers = said.split(' ').filter_map(|word| word.parse().ok()).collect::<Vec<usize>>();
    let [whole, part, of] = numbers[..] else { panic!("{message}") };
    let there = done(&desk, &["list", "drive.kv"], b"").split(|byte| *byte == b'\n').count() - 1;
    assert_eq!(whole + part, there, "{message}");
    assert!(part > 0 && part < of && there < 20_000, "the test is of a batch that is there in part: {message}");
}

fn loaded(input: &[u8], file: &str) -> String {
    let desk = Desk::new();
    fs::write(desk.path("pairs.csv.gz"), input).unwrap();
    fs::write(desk.path("pairs.txt"), input).unwrap();
    done(&desk, &["load", "drive.kv", file], input);
    String::from_utf8(done(&desk, &["dump", "drive.kv"], b"")).unwrap()
}

/// A name tells nothing of the standard input, and less of what is packed: what it begins with does.
#[test]
fn what_pairs_begin_with_tells_how_they_lie() {
    let gzip = |text: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    };
    let (csv, json): (&[u8], &[u8]) = (b"a,b\n", b"\n { \"key\": \"a\", \"value\": \"b\"}\n");
    for input in [csv, json, &gzip(csv), &gzip(json), &zstd::encode_all(json, 1).unwrap()] {
        assert_eq!(loaded(input, "-"), "a,b\n");
    }
    assert_eq!(loaded(&gzip(csv), "pairs.csv.gz"), "a,b\n");
    assert_eq!(loaded(json, "pairs.txt"), "a,b\n");
    assert_eq!(loaded(b"{a,b\n", "-"), "{a,b\n");
    assert_eq!(loaded(b"", "-"), "");
}

#[test]
fn an_input_that_cannot_be_read_makes_no_image() {
    let desk = Desk::new();
    desk.put("pairs.txt", "a,b\n");
    assert!(message(&desk, &["load", "drive.kv", "pairs.txt"], 2).contains("--format"));
    assert!(!desk.path("drive.kv").exists());
    let output = run(&desk, &["load", "drive.kv", "-"], b"a\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("standard input: line 1: it has 1 field,"), "{output:?}");
}
