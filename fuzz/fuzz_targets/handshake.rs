//! Any handshake by TLS, as the target takes it: a client with or without a key, whose records are changed, cut off, cut up
//! and mixed with any bytes.
#![no_main]

#[path = "../../crates/nvme-target/tests/any_handshake/session.rs"]
mod session;

use kvssd_nvme_target::Subsystem;
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, OnceLock};

static SUBSYSTEM: OnceLock<(tempfile::TempDir, Arc<Subsystem>)> = OnceLock::new();

fuzz_target!(|script: &[u8]| {
    let (_, subsystem) = SUBSYSTEM.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let subsystem = session::subsystem(folder.path());
        (folder, subsystem)
    });
    session::run(subsystem, script);
});
