//! The bounded twin of the fuzzer (`fuzz/fuzz_targets/connection.rs`): sessions of any bytes.

mod session;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

#[test]
fn any_session_is_answered_and_nothing_panics() {
    let folder = tempfile::tempdir().unwrap();
    let subsystem = session::subsystem(folder.path());
    let mut runner = TestRunner::new(Config { cases: 20_000, ..Config::default() });
    runner
        .run(&vec(any::<u8>(), 0..600), |script| {
            session::run(&subsystem, &script);
            Ok(())
        })
        .unwrap();
    // The sessions came to what they are about.
    let page = kvssd_nvme_target::metrics_page(&subsystem);
    for opcode in ["store", "retrieve", "list", "delete", "exist", "flush", "fabrics"] {
        let counted = page.lines().find(|line| line.contains(&format!("{opcode}\",status=\"success\"}}")));
        let count = counted.and_then(|line| line.rsplit(' ').next()).and_then(|count| count.parse::<u64>().ok());
        assert!(count.is_some_and(|count| count > 100), "{counted:?}");
    }
    for status in ["invalid field in command", "key does not exist", "key exists"] {
        assert!(page.contains(status), "no session came to {status}");
    }
    subsystem.close().unwrap();
}
