//! Secrets of hosts and of the drive, in files: `kvssd serve --config`, and `secret-file` of a URL.

use crate::desk::Desk;
use crate::rights::{complaint, served_on, wait_for};
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

const SECRETS: [(&str, &str); 3] = [
    ("host.secret", "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:"),
    ("drive.secret", "DHHC-1:02:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTvGwQfg==:"),
    ("other.secret", "DHHC-1:01:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:"),
];

const RIGHTS: &str = "[hosts.\"nqn.a\"]\nread_write = \"all\"\nsecret_file = \"host.secret\"\n\
                      controller_secret_file = \"drive.secret\"\n\
                      [hosts.\"nqn.b\"]\nread_write = \"all\"\nsecret_file = \"other.secret\"\n";

fn desk() -> Desk {
    let desk = Desk::new();
    for (file, secret) in SECRETS {
        desk.put(file, &format!("{secret}\n"));
        set_permissions(desk.path(file), Permissions::from_mode(0o600)).unwrap();
    }
    desk
}

/// Somebody puts a secret where a file's name belongs, or gives the file of a secret for another: nothing of it is said.
#[test]
fn a_secret_in_the_wrong_place_is_not_repeated() {
    let desk = desk();
    desk.prints("create drive.kv --size 64MiB");
    let (_, secret) = SECRETS[0];
    let rights = |line: &str| format!("[hosts.\"nqn.a\"]\nread_write = \"all\"\n{line}\n");
    for (line, why) in [
        (format!("secret_file = \"{secret}\""), "secret_file: this is a secret itself"),
        (format!("secret_file = {secret}"), "line 3"),
        (format!("secret = \"{secret}\""), "line 3: unknown field `secret`"),
        (format!("tls_key_file = [\"{secret}\"]"), "line 3"),
        (format!("read_write = \"{secret}\""), "line 3: duplicate key"),
        (secret.to_owned(), "line 3"),
    ] {
        desk.put("target.toml", &rights(&line));
        let said = complaint(&desk, "serve drive.kv --listen 127.0.0.1:0 --config target.toml");
        assert!(said.contains(why) && !said.contains(&secret[10..20]), "{line}: {said}");
    }
    for arguments in [
        "serve drive.kv --listen 127.0.0.1:0 --config host.secret".to_owned(),
        format!("get nvme+tcp://127.0.0.1:1?secret-file={secret} key"),
        format!("get nvme+tcp://127.0.0.1:1?secret={secret} key"),
    ] {
        let said = complaint(&desk, &arguments);
        assert!(!said.contains(&secret[10..20]), "{arguments}: {said}");
    }
}

#[test]
fn a_host_with_the_secret_is_served_and_no_other() {
    let (desk, service) = served_on(desk(), RIGHTS);
    let url = |parameters: &str| format!("nvme+tcp://{}?timeout=3&{parameters}", service.address);
    let own = url("host=nqn.a&secret-file=host.secret");
    let mutual = format!("{own}&controller-secret-file=drive.secret");
    desk.prints(&format!("put {own} key value"));
    assert_eq!(desk.prints(&format!("get {mutual} key")), "value");
    for (parameters, why) in [
        ("host=nqn.a", "add secret-file=PATH to the URL"),
        ("host=nqn.a&secret-file=other.secret", "the secrets differ, or the names"),
        ("host=nqn.b&secret-file=host.secret", "the secrets differ, or the names"),
        ("host=nqn.a&secret-file=host.secret&controller-secret-file=other.secret", "the secrets differ, or the names"),
        ("host=nqn.b&secret-file=other.secret&controller-secret-file=drive.secret", "the secrets differ, or the names"),
        ("host=nqn.c&secret-file=host.secret", "does not let nqn.c in"),
        ("host=nqn.a&secret-file=nothing", "nothing: cannot be read"),
        ("host=nqn.a&controller-secret-file=drive.secret", "with secret-file only"),
    ] {
        let said = complaint(&desk, &format!("get {} key", url(parameters)));
        assert!(said.contains(why), "{parameters}: {said}");
        assert!(SECRETS.iter().all(|(_, secret)| !said.contains(&secret[10..20])), "{said}");
    }
    set_permissions(desk.path("host.secret"), Permissions::from_mode(0o644)).unwrap();
    assert!(
        complaint(&desk, &format!("get {own} key"))
            .contains("host.secret: others than its owner can read it: chmod 600")
    );
    wait_for(&desk, &["INFO", "a host has proved who it is", "nqn.a"]);
    wait_for(&desk, &["WARN", "the authentication of a host failed", "nqn.b", "the secrets differ"]);
    wait_for(
        &desk,
        &["WARN", "the authentication of a host failed", "nqn.b", "has no secret of its own for that host"],
    );
    // A secret that others can read is none: what holds stays.
    service.signal("-HUP");
    wait_for(&desk, &["target.toml", "nqn.a", "host.secret", "chmod 600", "stay as they were"]);
    let log = desk.read("log");
    assert!(SECRETS.iter().all(|(_, secret)| !log.contains(&secret[10..20])));
    assert_eq!(service.end("-TERM"), Some(0));
}

#[test]
fn a_drive_that_need_not_prove_itself_is_not_taken_for_one_that_does() {
    let (desk, service) = served_on(desk(), "[others]\nread_write = \"all\"\n");
    let url = format!("nvme+tcp://{}?timeout=3&host=nqn.a&secret-file=host.secret", service.address);
    desk.prints(&format!("put {url} key value"));
    let said = complaint(&desk, &format!("get {url}&controller-secret-file=drive.secret key"));
    assert!(said.contains("does not prove who it is"), "{said}");
    assert_eq!(service.end("-TERM"), Some(0));
}

#[test]
fn nobody_listens_wider_than_this_machine_without_proofs_unless_told_so() {
    let desk = desk();
    desk.prints("create drive.kv --size 64MiB");
    desk.put("open.toml", &RIGHTS.replace("secret_file = \"other.secret\"\n", ""));
    desk.put("same.toml", &RIGHTS.replace("drive.secret", "host.secret"));
    for (arguments, names) in [
        ("", &["0.0.0.0:0", "secret_file", "--insecure"][..]),
        ("--allow-host nqn.a", &["0.0.0.0:0", "secret_file", "--insecure"]),
        ("--config open.toml", &["0.0.0.0:0", "secret_file", "--insecure"]),
        ("--config same.toml", &["same.toml", "nqn.a", "the same secret"]),
    ] {
        desk.refuses(&format!("serve drive.kv --listen 0.0.0.0:0 {arguments}"), names);
    }
    set_permissions(desk.path("other.secret"), Permissions::from_mode(0o640)).unwrap();
    desk.put("target.toml", RIGHTS);
    desk.refuses("serve drive.kv --config target.toml", &["target.toml", "nqn.b", "other.secret", "chmod 600"]);
}
