//! Any text in the place of a key for TLS, and of an identity.
#![no_main]

use kvssd_nvme_auth::{Derivation, TlsKey, parties_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let (Ok(key), Some(parties)) = (TlsKey::parse(text.lines().next().unwrap_or_default()), parties_of(text)) {
        let _ = key.preshared_keys(&parties, Derivation::Standard);
    }
});
