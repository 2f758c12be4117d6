//! The bounded twin of the fuzzer (`fuzz/fuzz_targets/authentication.rs`).

#[path = "any_bytes/session.rs"]
mod session;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

#[test]
fn no_bytes_stop_a_side_or_prove_anything() {
    let mut runner = TestRunner::new(Config { cases: 3_000, ..Config::default() });
    runner
        .run(&vec(any::<u8>(), 0..300), |script| {
            session::run(&script);
            Ok(())
        })
        .unwrap();
}
