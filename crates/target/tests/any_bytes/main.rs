//! The bounded twin of the fuzzer (`fuzz/fuzz_targets/connection.rs`): sessions of any bytes.

mod session;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

#[test]
fn any_session_is_answered_and_nothing_panics() {
    let folder = tempfile::tempdir().unwrap();
    let subsystem = session::subsystem(folder.path());
    let mut runner = TestRunner::new(Config { cases: 3000, ..Config::default() });
    runner
        .run(&vec(any::<u8>(), 0..600), |script| {
            session::run(&subsystem, &script);
            Ok(())
        })
        .unwrap();
    subsystem.close().unwrap();
}
