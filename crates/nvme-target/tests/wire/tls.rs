//! Hosts that come by TLS: who is served under which name, and what becomes of those who are not.

mod attacks;
mod crowd;
mod tunnel;

use crate::host::{HOST_NQN, Heard, Host, NQN, Queue, Target, admin_connect, value};
use kvssd_nvme_auth::{Derivation, Parties, PresharedKey, TlsKey};
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::admin::{AdminCommand, GetLogPage};
use kvssd_nvme_spec::fabrics::{CONTROLLER_ANY, DISCOVERY_NQN};
use kvssd_nvme_spec::log_page::{page, read_discovery_page};
use kvssd_nvme_target::{HostRights, Rights};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tunnel::Tunnel;

/// Of the bytes 0 to 31 or 47, as they are and hashed.
const KEYS: [&str; 4] = [
    "NVMeTLSkey-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
    "NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
    "NVMeTLSkey-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==:",
    "NVMeTLSkey-1:02:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==:",
];
const OTHER_HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:99999999-2222-3333-4444-555555555555";

fn key(text: &str) -> TlsKey {
    TlsKey::parse(text).unwrap()
}

fn with_key(text: &str) -> HostRights {
    HostRights { tls_key: Some(Arc::new(key(text))), ..HostRights::EVERYTHING }
}

fn rights(text: &str) -> Rights {
    Rights::new([(HOST_NQN.to_owned(), with_key(text)), (OTHER_HOST.to_owned(), with_key(KEYS[2]))].into(), None)
}

fn target(text: &str) -> Target {
    Target::with(|options| options.rights = rights(text))
}

fn keys_of(text: &str, host: &str, subsystem: &str) -> Vec<PresharedKey> {
    key(text).preshared_keys(&Parties { host: host.to_owned(), subsystem: subsystem.to_owned() }, Derivation::Standard)
}

/// Those of the host, for the subsystem.
fn own_keys(text: &str) -> Vec<PresharedKey> {
    keys_of(text, HOST_NQN, NQN)
}

/// What a Connect gives.
fn connect(queue: &mut Queue, nqn: &str, host: &str) -> Status {
    queue.connect(admin_connect(0), CONTROLLER_ANY, nqn, host).status()
}

#[test]
fn a_host_with_its_key_is_served_whatever_its_length_hash_and_version() {
    for text in KEYS {
        let target = target(text);
        for version in [0, 1] {
            let only = own_keys(text).split_off(version);
            let tunnel = Tunnel::new(target.address, only);
            for (header, data) in [(false, false), (true, true)] {
                let mut host = Host::with_digests(tunnel.address, header, data);
                for (number, length) in [0, 1, 8192, 8193, 300_000, 1 << 20].into_iter().enumerate() {
                    assert_eq!(host.store(&[number as u8 + 1], &value(number, length)), Status::Success);
                    let found = host.retrieve(&[number as u8 + 1], 1 << 20).unwrap();
                    assert!(found == (value(number, length), length as u32), "{length}");
                }
            }
        }
    }
}

/// As nvme-cli 2.13 puts it into Linux's keyring.
#[test]
fn a_host_with_an_older_libnvme_is_served_too() {
    for text in KEYS {
        let target = target(text);
        let parties = Parties { host: HOST_NQN.to_owned(), subsystem: NQN.to_owned() };
        for preshared in key(text).preshared_keys(&parties, Derivation::Libnvme) {
            let tunnel = Tunnel::new(target.address, vec![preshared]);
            let mut host = Host::with_digests(tunnel.address, false, false);
            assert_eq!(host.store(b"k", b"v"), Status::Success);
        }
    }
}

#[test]
fn values_of_many_megabytes_pass_in_both_directions() {
    let target = Target::over(1 << 30, |options| options.rights = rights(KEYS[1]), |_| {});
    let tunnel = Tunnel::new(target.address, own_keys(KEYS[1]));
    let mut host = Host::with_digests(tunnel.address, false, false);
    for number in 0..6u8 {
        let length = (2 << 20) - usize::from(number) * 7;
        assert_eq!(host.store(&[number + 1], &value(number.into(), length)), Status::Success);
    }
    for number in 0..6u8 {
        let length = (2 << 20) - usize::from(number) * 7;
        assert!(host.retrieve(&[number + 1], 2 << 20).unwrap().0 == value(number.into(), length));
    }
}

#[test]
fn a_host_with_a_key_that_comes_in_the_clear_learns_that_tls_is_required_and_no_more() {
    let target = target(KEYS[1]);
    let mut clear = Queue::greeted(target.address, false, false);
    assert_eq!(connect(&mut clear, NQN, HOST_NQN), Status::AuthenticationRequired);
    // A Connect that failed is none: the place is free for another try.
    assert_eq!(connect(&mut clear, NQN, HOST_NQN), Status::AuthenticationRequired);
    for (address, keys) in [(target.address, None), (target.address, Some(keys_of(KEYS[1], HOST_NQN, DISCOVERY_NQN)))] {
        let tunnel = keys.map(|keys| Tunnel::new(address, keys));
        let address = tunnel.as_ref().map_or(address, |tunnel| tunnel.address);
        let mut discovery = Queue::greeted(address, false, false);
        assert_eq!(connect(&mut discovery, DISCOVERY_NQN, HOST_NQN), Status::Success);
        discovery.set_configuration(kvssd_nvme_spec::fabrics::Configuration::KEY_VALUE);
        let wanted = GetLogPage { page: page::DISCOVERY, length_bytes: 2048, ..GetLogPage::default() };
        let log = discovery.admin(AdminCommand::GetLogPage(wanted), 0, 2048).data;
        let found: Vec<_> = read_discovery_page(&log).collect();
        assert!(found.len() == 1 && found[0].is_secured && found[0].subsystem_nqn == NQN);
        // TREQ, and SECTYPE of TSAS.
        assert_eq!((log[1024 + 3], log[1024 + 768]), (1, 2));
    }
}

#[test]
fn a_key_is_good_for_one_host_and_one_subsystem() {
    let target = target(KEYS[1]);
    let own = Tunnel::new(target.address, own_keys(KEYS[1]));
    let discovery = Tunnel::new(target.address, keys_of(KEYS[1], HOST_NQN, DISCOVERY_NQN));
    let open = |tunnel: &Tunnel| Queue::greeted(tunnel.address, false, false);
    for (tunnel, nqn, host) in [
        (&own, NQN, OTHER_HOST),
        (&own, DISCOVERY_NQN, HOST_NQN),
        (&own, DISCOVERY_NQN, OTHER_HOST),
        (&discovery, NQN, HOST_NQN),
        (&discovery, DISCOVERY_NQN, OTHER_HOST),
    ] {
        assert_eq!(connect(&mut open(tunnel), nqn, host), Status::AuthenticationRequired, "{nqn} {host}");
    }
    assert_eq!(connect(&mut open(&own), NQN, "nqn.stranger"), Status::ConnectInvalidHost);
    assert_eq!(connect(&mut open(&own), NQN, HOST_NQN), Status::Success);
    // The other host's queue does not become one of this host's controllers either.
    let mut host = Host::with_digests(own.address, false, false);
    let other = Tunnel::new(target.address, keys_of(KEYS[2], OTHER_HOST, NQN));
    let mut io = open(&other);
    let got = io.connect(crate::host::io_connect(2), host.controller, NQN, HOST_NQN);
    assert_eq!(got.status(), Status::AuthenticationRequired);
    assert_eq!(host.store(b"k", b"v"), Status::Success);
}

#[test]
fn who_has_another_key_or_name_is_told_and_sent_away() {
    let target = target(KEYS[1]);
    for keys in [
        own_keys(KEYS[0]),
        own_keys(KEYS[3]),
        keys_of(KEYS[1], OTHER_HOST, NQN),
        keys_of(KEYS[1], "nqn.stranger", NQN),
        keys_of(KEYS[1], HOST_NQN, "nqn.another"),
    ] {
        let name = keys[0].identity.clone();
        let error = tunnel::shake(target.address, &keys).err();
        assert_eq!(error, Some(Some(kvssd_tls::TlsError::Alert(51))), "{name}");
    }
    assert!(tunnel::shake(target.address, &own_keys(KEYS[1])).is_ok());
}

#[test]
fn who_loses_its_key_or_gets_another_is_disconnected() {
    let target = target(KEYS[1]);
    let tunnel = Tunnel::new(target.address, own_keys(KEYS[1]));
    let mut host = Host::with_digests(tunnel.address, false, false);
    let mut unconnected = Queue::greeted(tunnel.address, false, false);
    target.subsystem.set_rights(rights(KEYS[1]));
    assert_eq!(host.store(b"k", b"v"), Status::Success);
    target.subsystem.set_rights(rights(KEYS[3]));
    assert_eq!((host.io.hear(), host.admin.hear()), (Heard::Closed, Heard::Closed));
    assert_eq!(connect(&mut unconnected, NQN, HOST_NQN), Status::AuthenticationRequired, "the key of before");
    target.subsystem.set_rights(Rights::everybody());
    assert_eq!(connect(&mut unconnected, NQN, HOST_NQN), Status::AuthenticationRequired, "a key that is none any more");
    let mut clear = Host::new(&target);
    assert_eq!(clear.retrieve(b"k", 10).unwrap().0, b"v");
    target.subsystem.set_rights(rights(KEYS[3]));
    assert_eq!(clear.io.hear(), Heard::Closed);
    let tunnel = Tunnel::new(target.address, own_keys(KEYS[3]));
    assert_eq!(Host::with_digests(tunnel.address, false, false).retrieve(b"k", 10).unwrap().0, b"v");
}

/// OpenSSL's own client, which knows keys of SHA-256. It is on most machines that build this.
#[test]
fn openssl_says_and_hears_what_we_do() {
    let target = target(KEYS[1]);
    for key in own_keys(KEYS[1]) {
        let secret: String = key.secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let address = target.address.to_string();
        let arguments = ["s_client", "-quiet", "-tls1_3", "-connect", &address, "-psk", &secret, "-psk_identity"];
        let mut command = Command::new("openssl");
        command.args(arguments).arg(&key.identity).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut client) = command.spawn() else {
            println!("skipped: there is no openssl here");
            return;
        };
        // An ICReq and the ICResp to it.
        let mut request = [0; 128];
        request[..8].copy_from_slice(&[0, 0, 128, 0, 128, 0, 0, 0]);
        client.stdin.as_mut().unwrap().write_all(&request).unwrap();
        let mut response = [0; 128];
        client.stdout.as_mut().unwrap().read_exact(&mut response).unwrap();
        assert_eq!(response[..8], [1, 0, 128, 0, 128, 0, 0, 0]);
        client.kill().unwrap();
        client.wait().unwrap();
    }
}
