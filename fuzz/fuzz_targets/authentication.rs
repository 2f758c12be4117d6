//! Any session of a host and a controller between which somebody changes, drops and adds messages.
#![no_main]

#[path = "../../crates/nvme-auth/tests/all/any_bytes/session.rs"]
mod session;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| session::run(script));
