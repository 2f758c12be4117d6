//! The bounded twin of the fuzzer (`fuzz/fuzz_targets/handshake.rs`): handshakes of any bytes, as the target takes them.

mod session;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use session::End;
use std::cell::Cell;

#[test]
fn any_handshake_is_taken_and_only_who_has_a_key_has_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let subsystem = session::subsystem(folder.path());
    // As it should be: both keys, in one piece, byte by byte, and in records of their own.
    for who in [0, 1] {
        for script in [&[who, 0, 0, 7, 0, 0][..], &[who, 0x80, 0, 0x80, 0, 0, 0], &[who, 3, 40, 0, 0, 0]] {
            assert_eq!(session::run(&subsystem, script), End::Established, "{script:?}");
        }
    }
    // As it should not be: a byte, an end, another key, no name.
    for script in [&[0, 1, 0, 60, 0, 0, 0][..], &[0, 2, 0, 90, 0, 0], &[2, 0, 0, 0], &[3, 0, 0, 0]] {
        assert_eq!(session::run(&subsystem, script), End::Refused, "{script:?}");
    }
    let (established, refused) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config { cases: 2_000, ..Config::default() });
    runner
        .run(&vec(any::<u8>(), 0..80), |script| {
            let counted = if session::run(&subsystem, &script) == End::Established { &established } else { &refused };
            counted.set(counted.get() + 1);
            Ok(())
        })
        .unwrap();
    assert!(established.get() > 20 && refused.get() > 200, "{established:?} {refused:?}");
    assert!(subsystem.failure().is_none());
}
