//! Both sides against each other, against answers that another program has computed, and against anything else.

mod any_bytes;
mod both_sides;
mod secrets;
mod tls_keys;

use kvssd_nvme_auth::{ControllerSide, Credentials, HostSide, Offer, Parties, RANDOMNESS_BYTES, Randomness, Secret};

const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555";
const SUBSYSTEM: &str = "nqn.2025-01.org.kvssd:test";
const TRANSACTION: u16 = 0x1234;

/// Of the bytes 0 to 31, through SHA-256.
const HOST_SECRET: &str = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
/// Of the bytes 100 to 147, through SHA-384.
const CONTROLLER_SECRET: &str = "DHHC-1:02:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTvGwQfg==:";
/// Of the bytes 0 to 63, as they are.
const OTHER_SECRET: &str =
    "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P4zODhA=:";

fn secret(text: &str) -> Secret {
    Secret::parse(text).unwrap()
}

/// The secrets of both, or of the host alone.
fn credentials(is_mutual: bool) -> Credentials {
    Credentials { host: secret(HOST_SECRET), controller: is_mutual.then(|| secret(CONTROLLER_SECRET)) }
}

fn parties() -> Parties {
    Parties { host: HOST.to_owned(), subsystem: SUBSYSTEM.to_owned() }
}

/// The bytes n * factor + summand.
fn randomness(factor: usize, summand: usize) -> Randomness {
    let mut bytes = [0; RANDOMNESS_BYTES];
    bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * factor + summand) as u8);
    Randomness::new(&bytes.into())
}

fn controller(credentials: Credentials) -> ControllerSide {
    ControllerSide::new(credentials, parties(), randomness(7, 3))
}

fn host(credentials: Credentials, offer: Offer) -> HostSide {
    HostSide::new(credentials, parties(), randomness(11, 5), offer, TRANSACTION)
}
