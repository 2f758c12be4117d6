//! Drives that are silent, late, or wrong.

use crate::misbehaving;
use crate::peer::{Act, PLAIN, Peer};
use kvssd_host::{Batch, Error, connect};
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::kv::KvCommand;
use std::thread::scope;
use std::time::{Duration, Instant};

#[test]
fn a_silent_drive_is_given_up() {
    // A second each time; a busy machine may be late now and then.
    let is_in_time = (0..5).any(|_| {
        let peer = misbehaving(Act::Silence, 1);
        let store = connect(&peer.url("timeout=1")).unwrap();
        store.store(b"a", b"1").unwrap();
        let began = Instant::now();
        let error = store.retrieve(b"a").unwrap_err();
        let took = began.elapsed();
        assert!(matches!(&error, Error::Unreachable { why } if why.contains("does not answer")), "{error}");
        assert!(took >= Duration::from_millis(900), "{took:?}");
        assert_eq!(store.retrieve(b"a").unwrap().unwrap(), b"1");
        took < Duration::from_secs(3)
    });
    assert!(is_in_time, "it is waited for longer than said");
    let peer = misbehaving(Act::Silence, 0);
    let store = connect(&peer.url("timeout=1")).unwrap();
    let error = store.store(b"a", b"1").unwrap_err();
    assert!(matches!(error, Error::InDoubt { .. }), "{error}");
}

#[test]
fn one_who_waits_long_does_not_keep_others_from_their_answers() {
    let late = Duration::from_millis(300);
    let peer = Peer::new(PLAIN, move |command, _| match command {
        KvCommand::Exist { .. } => Act::Late(late),
        _ => Act::Answer,
    });
    let store = connect(&peer.url("")).unwrap();
    scope(|scope| {
        scope.spawn(|| store.exist(b"slow").unwrap());
        for number in 0..3 {
            let store = &store;
            scope.spawn(move || {
                for step in 0..20 {
                    let key = format!("{number} {step}");
                    store.store(key.as_bytes(), key.as_bytes()).unwrap();
                    assert_eq!(store.retrieve(key.as_bytes()).unwrap().unwrap(), key.as_bytes());
                }
            });
        }
    });
}

#[test]
fn wrong_answers_never_become_values() {
    let lies = [Act::OtherCommand, Act::DataTooLong, Act::DataOutOfOrder, Act::WrongDigest, Act::Garbage];
    for act in lies {
        let peer = misbehaving(act, 1);
        let store = connect(&peer.url("digest=data")).unwrap();
        store.store(b"a", b"12345678").unwrap();
        // Given up, and asked again on another connection.
        assert_eq!(store.retrieve(b"a").unwrap().unwrap(), b"12345678", "{act:?}");
        assert_eq!(peer.commands(), 3, "{act:?}");
        let liar = Peer::new(PLAIN, move |command, _| match command {
            KvCommand::Retrieve { .. } => act,
            _ => Act::Answer,
        });
        let store = connect(&liar.url("digest=data&timeout=1")).unwrap();
        store.store(b"a", b"12345678").unwrap();
        let error = store.retrieve(b"a").unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{act:?}: {error}");
    }
    let peer = misbehaving(Act::ShortData, 1);
    let store = connect(&peer.url("")).unwrap();
    store.store(b"a", b"12345678").unwrap();
    assert!(matches!(store.retrieve(b"a"), Err(Error::Damaged { .. })));
    let peer = misbehaving(Act::SuccessFlag, 1);
    let store = connect(&peer.url("")).unwrap();
    store.store(b"a", b"12345678").unwrap();
    assert_eq!(store.retrieve(b"a").unwrap().unwrap(), b"12345678");
    let peer = Peer::new(PLAIN, |_, _| Act::R2tOutOfRange);
    let store = connect(&peer.url("")).unwrap();
    let error = store.store(b"a", &[1; 9000]).unwrap_err();
    assert!(matches!(error, Error::InDoubt { .. }), "{error}");
}

#[test]
fn statuses_become_errors_that_say_what_to_do() {
    for (status, expected) in [
        (Status::CapacityExceeded, Error::Full),
        (Status::InvalidNamespace, Error::NoNamespace { name: "1".to_owned() }),
        (Status::KeyExists, Error::KeyExists),
    ] {
        let peer = misbehaving(Act::Status(status), 0);
        assert_eq!(connect(&peer.url("")).unwrap().store(b"a", b"1"), Err(expected));
    }
    let peer = misbehaving(Act::Status(Status::UnrecoveredError), 0);
    assert!(matches!(connect(&peer.url("")).unwrap().retrieve(b"a"), Err(Error::Damaged { .. })));
    let peer = misbehaving(Act::Status(Status::InvalidField), 0);
    let error = connect(&peer.url("")).unwrap().retrieve(b"a").unwrap_err();
    assert!(matches!(&error, Error::Refused { why } if why.contains("invalid field")), "{error}");
    let peer = misbehaving(Act::Status(Status::NamespaceNotReady), 0);
    connect(&peer.url("")).unwrap().store(b"a", b"1").unwrap();
    assert_eq!(peer.value(1, b"a").unwrap(), b"1");
}

#[test]
fn a_drive_hears_from_its_host_now_and_then() {
    let peer = Peer::plain();
    let store = connect(&peer.url("")).unwrap();
    let began = Instant::now();
    while peer.keep_alives() == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "it hears nothing");
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(store);
}

#[test]
fn a_drive_that_is_never_ready_is_waited_for_no_longer_than_said() {
    let peer = Peer::new(PLAIN, |_, _| Act::Status(Status::NamespaceNotReady));
    let store = connect(&peer.url("timeout=1")).unwrap();
    store.store(b"a", b"1").unwrap_err();
    let mut batch = Batch::new();
    batch.store(b"a", b"1");
    let (answer, hears) = std::sync::mpsc::channel();
    // Not joined: before, it never ended.
    std::thread::spawn(move || answer.send(store.bulk(&batch)));
    let error = hears.recv_timeout(Duration::from_secs(60)).expect("an answer in time").unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. } | Error::InDoubt { .. }), "{error}");
}
