//! Keys of TLS in files: `kvssd serve --config`, and `tls-key-file` of a URL.

use crate::damaged::Damaged;
use crate::desk::Desk;
use crate::rights::{complaint, served_on, wait_for};
use crate::serve::Service;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Instant;

/// Keys of both lengths, as they are and hashed, and a secret.
const FILES: [(&str, &str); 5] = [
    ("a.key", "NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:"),
    ("b.key", "NVMeTLSkey-1:02:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==:"),
    ("c.key", "NVMeTLSkey-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:"),
    ("d.key", "NVMeTLSkey-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==:"),
    ("host.secret", "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:"),
];

pub fn desk() -> Desk {
    let desk = Desk::new();
    for (file, text) in FILES {
        desk.put(file, &format!("{text}\n"));
        set_permissions(desk.path(file), Permissions::from_mode(0o600)).unwrap();
    }
    desk
}

/// The host `nqn.x` has `x.key`, and the last one a secret beside it.
fn rights(hosts: &str) -> String {
    let host = |letter: char| {
        let secret = if letter == 'd' { "secret_file = \"host.secret\"\n" } else { "" };
        format!("[hosts.\"nqn.{letter}\"]\nread_write = \"all\"\ntls_key_file = \"{letter}.key\"\n{secret}")
    };
    hosts.chars().map(host).collect()
}

fn url(service: &Service, parameters: &str) -> String {
    format!("nvme+tcp://{}?timeout=3&{parameters}", service.address)
}

#[test]
fn hosts_with_keys_are_served_and_no_others() {
    let (desk, service) = served_on(desk(), &rights("abcd"));
    let own = |letter: char| {
        let secret = if letter == 'd' { "&secret-file=host.secret" } else { "" };
        url(&service, &format!("host=nqn.{letter}&tls-key-file={letter}.key{secret}"))
    };
    desk.put("large", &"0123456789abcdef".repeat(200 << 6));
    for letter in "abcd".chars() {
        desk.prints(&format!("put {} {letter} value", own(letter)));
        assert_eq!(desk.prints(&format!("get {} {letter}", own('a'))), "value");
        let digests = format!("{}&digest=header", own(letter));
        desk.prints(&format!("put {digests} large --file large"));
        assert!(desk.prints(&format!("get {digests} large")) == desk.read("large"));
    }
    for (parameters, why) in [
        ("host=nqn.a", "add tls-key-file=PATH to the URL"),
        ("host=nqn.d&secret-file=host.secret", "add tls-key-file=PATH to the URL"),
        ("host=nqn.d&tls-key-file=d.key", "add secret-file=PATH to the URL"),
        ("host=nqn.a&tls-key-file=c.key", "no key for TLS in common, or other names"),
        ("host=nqn.a&tls-key-file=b.key", "no key for TLS in common, or other names"),
        ("host=nqn.e&tls-key-file=a.key", "no key for TLS in common, or other names"),
        ("tls-key-file=a.key", "add host=NQN"),
        ("host=nqn.a&tls-key-file=nothing", "nothing: cannot be read"),
        ("host=nqn.a&tls-key-file=host.secret", "host.secret: it has no key for TLS"),
        ("host=nqn.a&secret-file=a.key", "a.key: it has no secret"),
    ] {
        let said = complaint(&desk, &format!("get {} a", url(&service, parameters)));
        assert!(said.contains(why), "{parameters}: {said}");
        assert!(FILES.iter().all(|(_, text)| !said.contains(&text[17..25])), "{said}");
    }
    let named = own('a').replace('?', "/nqn.2025-01.org.kvssd:other?");
    assert!(complaint(&desk, &format!("get {named} a")).contains("other names"));
    let clear = url(&service, "host=nqn.a").replace('?', "/nqn.2025-01.org.kvssd:drive?");
    assert!(complaint(&desk, &format!("get {clear} a")).contains("add tls-key-file=PATH to the URL"));
    set_permissions(desk.path("a.key"), Permissions::from_mode(0o640)).unwrap();
    let said = complaint(&desk, &format!("get {} a", own('a')));
    assert!(said.contains("a.key: others than its owner can read it: chmod 600"), "{said}");
    wait_for(&desk, &["INFO", "a TLS session has begun", "nqn.b"]);
    wait_for(&desk, &["WARN", "a TLS handshake failed", "no host of this drive has a key", "NVMe1R01 nqn.e nqn"]);
    wait_for(&desk, &["WARN", "a TLS handshake failed", "the key of that host is another one", "NVMe1R01 nqn.a nqn"]);
    wait_for(&desk, &["WARN", "nqn.a", "came in the clear"]);
    // A key that others can read is none: what holds stays.
    service.signal("-HUP");
    wait_for(&desk, &["target.toml", "nqn.a", "a.key", "chmod 600", "stay as they were"]);
    assert!(FILES.iter().all(|(_, text)| !desk.read("log").contains(&text[17..25])));
    assert_eq!(service.end("-TERM"), Some(0));
}

/// What damages a handshake cannot be told from another key: a host that was served tries once more before it believes it.
#[test]
fn one_damaged_handshake_of_a_host_that_was_served_ends_no_call() {
    let (desk, service) = served_on(desk(), &rights("a"));
    let way = Damaged::new(&service.address.to_string());
    let key = desk.path("a.key");
    // With the name of the subsystem: discovery would lead around the way.
    let drive = format!("{}/nqn.2025-01.org.kvssd:drive", way.address);
    let url = format!("nvme+tcp://{drive}?timeout=10&host=nqn.a&tls-key-file={}", key.display());
    let store = kvssd_host::connect(&url).unwrap();
    for number in 0..4u8 {
        way.cut(usize::from(number % 2));
        store.store(&[number], &[number]).unwrap();
        assert_eq!(store.retrieve(&[number]).unwrap().as_deref(), Some(&[number][..]));
    }
    way.cut(usize::MAX);
    let began = Instant::now();
    let error = store.retrieve(b"a").unwrap_err().to_string();
    assert!(error.contains("TLS") && began.elapsed().as_secs() < 5, "{error}, after {:?}", began.elapsed());
    way.cut(0);
    assert_eq!(store.retrieve(&[1]).unwrap().as_deref(), Some(&[1][..]));
    assert_eq!(service.end("-TERM"), Some(0));
}

#[test]
fn a_key_that_is_taken_away_ends_its_connections() {
    let (desk, service) = served_on(desk(), &rights("ab"));
    let url = |letter: char| url(&service, &format!("host=nqn.{letter}&tls-key-file={letter}.key"));
    desk.put("many.csv", &(0..200_000).map(|key| format!("key{key},value\n")).collect::<String>());
    let load = format!("load {} many.csv", url('a'));
    let load = desk.command(&load).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&desk, &["INFO", "an I/O queue has connected"]);
    desk.put("target.toml", &rights("b"));
    service.signal("-HUP");
    let output = load.wait_with_output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    wait_for(&desk, &["WARN", "a host that has no rights any more was disconnected", "nqn.a"]);
    assert!(complaint(&desk, &format!("get {} key0", url('a'))).contains("other names"));
    desk.prints(&format!("put {} key value", url('b')));
    assert_eq!(service.end("-TERM"), Some(0));
}

#[test]
fn who_listens_wider_with_a_key_for_each_host_needs_no_more() {
    let desk = desk();
    desk.prints("create drive.kv --size 64MiB");
    desk.put("open.toml", &rights("ab").replace("tls_key_file = \"b.key\"\n", ""));
    desk.refuses(
        "serve drive.kv --listen 0.0.0.0:0 --config open.toml",
        &["0.0.0.0:0", "tls_key_file", "secret_file", "--insecure"],
    );
    desk.put("wrong.toml", &rights("a").replace("a.key", "host.secret"));
    desk.refuses("serve drive.kv --config wrong.toml", &["wrong.toml", "nqn.a", "tls_key_file", "no key for TLS"]);
    set_permissions(desk.path("b.key"), Permissions::from_mode(0o604)).unwrap();
    desk.put("target.toml", &rights("ab"));
    desk.refuses("serve drive.kv --config target.toml", &["target.toml", "nqn.b", "b.key", "chmod 600"]);
}
