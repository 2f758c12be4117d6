//! Any session on a whole connection, without a socket, over a small drive.
#![no_main]

#[path = "../../crates/nvme-target/tests/any_bytes/session.rs"]
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
