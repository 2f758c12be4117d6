//! `kvssd load`: what it takes for pairs, and what it says when not all of them could be stored.

use crate::store::{desk_with_image, done, run};

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
