//! The client of NVMe/TCP against a peer that does what it should, and against one that does not.

mod peer;

use kvssd_host::{Batch, Error, Missing, NamespaceAttributes, NamespaceId, Options, Store, StoreCondition, connect};
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::kv::KvCommand;
use peer::{Act, Manner, NQN, NUMBERED, Numbers, PLAIN, Peer};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::thread::scope;
use std::time::{Duration, Instant};

fn value(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + seed * 7 + at / 251) as u8).collect()
}

const SIZES: [usize; 9] = [0, 1, 100, 4095, 4096, 4097, 70_000, 1 << 20, 2 << 20];

/// All that a store is asked to do.
fn exercise(store: &Store) {
    for (number, size) in SIZES.into_iter().enumerate() {
        let (key, value) = (format!("key {number}"), value(number, size));
        store.store(key.as_bytes(), &value).unwrap();
        assert!(store.retrieve(key.as_bytes()).unwrap().as_deref() == Some(&value[..]), "{size} bytes");
        assert_eq!(
            store.retrieve_part(key.as_bytes(), 10, 20).unwrap().unwrap(),
            value.get(10..).map_or(&[][..], |rest| &rest[..rest.len().min(20)])
        );
    }
    let key = b"sixteen bytes ok";
    store.store_if(key, b"1", StoreCondition::IfAbsent).unwrap();
    assert_eq!(store.store_if(key, b"2", StoreCondition::IfAbsent), Err(Error::KeyExists));
    assert_eq!(store.store_if(b"none", b"2", StoreCondition::IfExists), Err(Error::KeyNotFound));
    store.store_if(key, b"3", StoreCondition::IfExists).unwrap();
    assert_eq!((store.retrieve(key), store.retrieve(b"none")), (Ok(Some(b"3".to_vec())), Ok(None)));
    assert_eq!((store.exist(key), store.exist(b"none")), (Ok(true), Ok(false)));
    assert_eq!(store.list(None, 100).unwrap().len(), SIZES.len() + 1);
    assert_eq!(store.list(Some(b"key 3"), 2).unwrap(), [b"key 3"[..].into(), b"key 4"[..].into()]);
    assert_eq!((store.delete(key), store.delete(key)), (Ok(true), Ok(false)));
    store.flush().unwrap();
    assert_eq!(store.keys(None).count(), SIZES.len());
    for number in 0..SIZES.len() {
        assert!(store.delete(format!("key {number}").as_bytes()).unwrap());
    }
}

#[test]
fn a_store_on_the_wire_does_what_one_in_a_file_does() {
    let peer = Peer::plain();
    for digest in ["none", "header", "data", "header,data"] {
        let store = connect(&peer.url(&format!("digest={digest}"))).unwrap();
        exercise(&store);
        store.close().unwrap();
    }
    assert_eq!(peer.shutdowns(), 4);
}

#[test]
fn a_drive_that_does_not_tell_of_deletes_is_asked_before() {
    let peer = Peer::new(Manner { tells_of_deletes: false, ..PLAIN }, |_, _| Act::Answer);
    exercise(&connect(&peer.url("")).unwrap());
}

#[test]
fn a_drive_whose_firmware_has_panicked_has_failed_and_lacks_no_namespace() {
    let peer = Peer::new(Manner { has_failed: true, ..PLAIN }, |_, _| Act::Answer);
    let refused = connect(&peer.url("")).map(|_| ()).unwrap_err();
    assert!(matches!(&refused, Error::Io { why } if why.contains("the drive has failed")), "{refused}");
}

#[test]
fn a_program_that_is_started_inherits_no_connection() {
    let peer = Peer::plain();
    let store = connect(&peer.url("")).unwrap();
    let mut ls = Command::new("ls");
    let listed = ls.args(["-l", "/proc/self/fd"]).stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
    assert!(!String::from_utf8_lossy(&listed.stdout).contains("socket:"), "{listed:?}");
    store.close().unwrap();
}

#[test]
fn pdus_come_in_pieces_and_values_in_parts() {
    for (split_bytes, r2t_bytes, data_bytes) in
        [(Some(1000), 8192, 512), (Some(4096), 16384, 100_000), (None, 65536, 5000)]
    {
        let manner = Manner { split_bytes, r2t_bytes, data_bytes, ..PLAIN };
        let peer = Peer::new(manner, |_, _| Act::Answer);
        exercise(&connect(&peer.url("digest=header,data")).unwrap());
    }
}

#[test]
fn every_byte_may_come_alone() {
    let peer = Peer::new(Manner { split_bytes: Some(1), data_bytes: 7, ..PLAIN }, |_, _| Act::Answer);
    for digest in ["none", "header,data"] {
        let store = connect(&peer.url(&format!("digest={digest}"))).unwrap();
        store.store(b"key", &value(1, 300)).unwrap();
        assert_eq!(store.retrieve(b"key").unwrap(), Some(value(1, 300)));
    }
}

#[test]
fn the_only_subsystem_is_found_and_several_are_named() {
    let peer = Peer::plain();
    let store = connect(&format!("nvme+tcp://{}", peer.address)).unwrap();
    store.store(b"a", b"1").unwrap();
    assert_eq!(peer.value(1, b"a").unwrap(), b"1");
    for (subsystems, said) in [(&[][..], "no subsystem"), (&["nqn.x:a", "nqn.x:b"], "nqn.x:a, nqn.x:b")] {
        let peer = Peer::new(Manner { subsystems, ..PLAIN }, |_, _| Act::Answer);
        let error = connect(&format!("nvme+tcp://{}", peer.address)).err().unwrap().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn what_cannot_be_reached_is_said_at_once() {
    let began = Instant::now();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = connect(&format!("nvme+tcp://{nobody}/{NQN}")).err().unwrap();
    assert!(matches!(&error, Error::Unreachable { why } if why.contains(&nobody.to_string())), "{error}");
    let peer = Peer::plain();
    let url = format!("nvme+tcp://{}/nqn.x:other", peer.address);
    let error = connect(&url).err().unwrap();
    assert!(matches!(&error, Error::Refused { why } if why.contains("nqn.x:other")), "{error}");
    let error = connect(&peer.url("ns=3")).err().unwrap();
    assert_eq!(error, Error::NoNamespace { name: "3".to_owned() });
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn what_the_wire_does_not_carry_is_refused() {
    let peer = Peer::plain();
    let url = peer.url("");
    let store = kvssd_host::open(&url, Options::default()).unwrap();
    assert_eq!(store.store(&[7; 17], b""), Err(Error::InvalidKey { key_bytes: 17, key_bytes_max: 16 }));
    let large = vec![0; (2 << 20) + 1];
    assert!(matches!(store.store(b"large", &large), Err(Error::InvalidValue { value_bytes_max: 2_097_152, .. })));
    let mut batch = Batch::new();
    batch.store(b"a", b"1");
    for error in [
        store.batch(&batch).unwrap_err(),
        store.create_namespace(NamespaceAttributes::PLAIN).err().unwrap(),
        store.delete_namespace("2").unwrap_err(),
    ] {
        assert!(matches!(&error, Error::Refused { why } if why.contains("Key Value command set")), "{error}");
    }
    let options = |missing, sync| Options { missing, sync, ..Options::default() };
    for options in [options(Missing::CreateNew, false), options(Missing::Fail, true)] {
        let error = kvssd_host::open(&url, options).err().unwrap();
        assert!(matches!(error, Error::InvalidOptions { .. }), "{error}");
    }
    let reader = kvssd_host::open(&url, Options { read_only: true, ..Options::default() }).unwrap();
    assert_eq!((reader.store(b"a", b""), reader.exist(b"a")), (Err(Error::ReadOnly), Ok(false)));
    assert_eq!(reader.bulk(&batch), Err(Error::ReadOnly));
    assert_eq!(peer.commands(), 1);
}

#[test]
fn namespaces_are_key_spaces_of_their_own() {
    let peer = Peer::plain();
    let (first, second) = (connect(&peer.url("")).unwrap(), connect(&peer.url("ns=2")).unwrap());
    first.store(b"key", b"first").unwrap();
    second.store(b"key", b"second").unwrap();
    assert_eq!(first.namespace("2").unwrap().retrieve(b"key").unwrap().unwrap(), b"second");
    let mut batch = Batch::new();
    batch.store(b"more", b"own").store_in(NamespaceId::FIRST, b"more", b"other");
    second.bulk(&batch).unwrap();
    assert_eq!(
        (peer.value(1, b"more").unwrap(), peer.value(2, b"more").unwrap()),
        (b"other".to_vec(), b"own".to_vec())
    );
    assert_eq!(first.namespaces().unwrap().len(), 2);
    assert!(matches!(first.namespace("3"), Err(Error::NoNamespace { .. })));
    assert_eq!(first.own_namespace().keys(None).count(), 2);
}

#[test]
fn many_commands_of_one_thread_are_under_way_together() {
    // Each answer takes a while, but the peer answers many at a time only if they are sent before.
    let peer = Peer::plain();
    for depth in [1, 2, 32, 128] {
        let store = connect(&peer.url(&format!("depth={depth}"))).unwrap();
        let mut batch = Batch::new();
        for number in 0..1000usize {
            batch.store(format!("key {number}").as_bytes(), &value(number, number * 13 % 9000));
        }
        batch.store(b"key 5", b"the last counts");
        store.bulk(&batch).unwrap();
        let keys: Vec<String> = (0..1001).map(|number| format!("key {number}")).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
        let values = store.retrieve_many(&keys).unwrap();
        for (number, found) in values.iter().enumerate() {
            let expected = match number {
                5 => Some(b"the last counts".to_vec()),
                1000 => None,
                _ => Some(value(number, number * 13 % 9000)),
            };
            assert!(*found == expected, "key {number} at depth {depth}");
        }
        let mut stored = Vec::new();
        let pairs = keys.iter().take(300).map(|key| (*key, &b"again"[..]));
        store.own_namespace().store_each(pairs, |number| stored.push(number)).unwrap();
        stored.sort_unstable();
        assert!(stored.into_iter().eq(0..300));
        let error = store.retrieve_many(&[b"a", &[0; 17], b"b"]).unwrap_err();
        assert!(matches!(error, Error::InvalidKey { .. }), "{error}");
    }
}

#[test]
fn threads_share_a_queue() {
    for depth in [1, 3, 128] {
        let peer = Peer::new(Manner { r2t_bytes: 16384, data_bytes: 10_000, ..PLAIN }, |_, _| Act::Answer);
        let store = connect(&peer.url(&format!("depth={depth}"))).unwrap();
        scope(|scope| {
            for thread in 0..8usize {
                let store = &store;
                scope.spawn(move || {
                    let mut model = BTreeMap::new();
                    for step in 0..300usize {
                        let key = format!("{thread}/{}", step * 7 % 40);
                        let bytes = value(step, [0, 10, 5000, 30_000][step % 4]);
                        match step % 5 {
                            0 | 1 => {
                                store.store(key.as_bytes(), &bytes).unwrap();
                                model.insert(key, bytes);
                            }
                            2 => assert_eq!(store.delete(key.as_bytes()).unwrap(), model.remove(&key).is_some()),
                            3 if step % 3 == 0 => {
                                let names: Vec<&[u8]> = model.keys().map(|key| key.as_bytes()).collect();
                                let found = store.retrieve_many(&names).unwrap();
                                assert!(found.iter().flatten().eq(model.values()));
                            }
                            _ => assert!(store.retrieve(key.as_bytes()).unwrap() == model.get(&key).cloned()),
                        }
                    }
                });
            }
        });
    }
}

/// A peer that does something else with one of the commands, the first of its kind behind `number`.
fn misbehaving(act: Act, number: u64) -> Peer {
    numbered(PLAIN, act, number)
}

/// The same, of that manner.
fn numbered(manner: Manner, act: Act, number: u64) -> Peer {
    Peer::new(manner, move |_, count| if count == number { act } else { Act::Answer })
}

#[test]
fn a_connection_that_ends_is_made_again() {
    for act in [Act::EndBefore, Act::EndAfter, Act::HalfOfTheData] {
        let peer = misbehaving(act, 1);
        let store = connect(&peer.url("")).unwrap();
        store.store(b"a", b"12345678").unwrap();
        assert_eq!(store.retrieve(b"a").unwrap().unwrap(), b"12345678", "{act:?}");
        assert_eq!(peer.commands(), 3, "{act:?}");
    }
}

#[test]
fn a_drive_that_knows_changes_again_is_sent_them_again() {
    for act in [Act::EndBefore, Act::EndAfter] {
        let peer = numbered(NUMBERED, act, 0);
        let store = connect(&peer.url("")).unwrap();
        store.store_if(b"a", b"1", StoreCondition::IfAbsent).unwrap();
        assert_eq!((peer.value(1, b"a").unwrap(), peer.commands()), (b"1".to_vec(), 2), "{act:?}");
        let peer = numbered(NUMBERED, act, 1);
        let store = connect(&peer.url("")).unwrap();
        store.store(b"a", b"1").unwrap();
        assert!(store.delete(b"a").unwrap(), "{act:?}: it was there");
        assert_eq!(peer.value(1, b"a"), None);
    }
}

#[test]
fn a_change_is_not_made_again_behind_a_newer_one() {
    let peer = numbered(NUMBERED, Act::EndBehindNewer, 0);
    let store = connect(&peer.url("")).unwrap();
    store.store(b"a", b"old").unwrap();
    assert_eq!((peer.value(1, b"a").unwrap(), peer.commands()), (b"newer".to_vec(), 2));
    // Nobody knows what a drive of another make, or one that has forgotten, has done.
    for manner in [PLAIN, Manner { numbers: Numbers::Forgotten, ..PLAIN }] {
        let peer = numbered(manner, Act::EndBehindNewer, 0);
        let store = connect(&peer.url("")).unwrap();
        let error = store.store(b"a", b"old").unwrap_err();
        assert!(matches!(&error, Error::InDoubt { why } if why.contains("not known whether")), "{error}");
        assert_eq!((peer.value(1, b"a").unwrap(), peer.commands()), (b"newer".to_vec(), 1));
    }
    for (manner, is_told) in [(PLAIN, true), (NUMBERED, false)] {
        let peer = numbered(manner, Act::EndBehindNewer, 0);
        let store = connect(&peer.url("")).unwrap();
        let mut batch = Batch::new();
        batch.store(b"a", b"old");
        assert_eq!(matches!(store.bulk(&batch), Err(Error::InDoubt { .. })), is_told);
        assert_eq!(peer.value(1, b"a").unwrap(), b"newer");
    }
}

#[test]
fn a_change_whose_answer_a_drive_of_another_make_owes_is_in_doubt() {
    for act in [Act::EndBefore, Act::EndAfter] {
        for condition in [StoreCondition::Always, StoreCondition::IfAbsent] {
            let peer = misbehaving(act, 0);
            let store = connect(&peer.url("")).unwrap();
            let error = store.store_if(b"a", b"1", condition).unwrap_err();
            assert!(matches!(&error, Error::InDoubt { why } if why.contains("not known whether")), "{error}");
            assert_eq!(peer.value(1, b"a").is_some(), act == Act::EndAfter);
            store.store(b"a", b"2").unwrap();
            assert_eq!((peer.value(1, b"a").unwrap(), peer.commands()), (b"2".to_vec(), 2));
        }
    }
}

#[test]
fn a_change_is_sent_first_to_a_drive_that_has_forgotten_its_host() {
    let peer = numbered(NUMBERED, Act::Status(Status::RequestForgotten), 0);
    connect(&peer.url("")).unwrap().store(b"a", b"1").unwrap();
    assert_eq!((peer.value(1, b"a").unwrap(), peer.commands()), (b"1".to_vec(), 2));
    // Of one that was sent before, nobody knows.
    let decide = |_: &KvCommand, count| match count {
        0 => Act::EndAfter,
        _ => Act::Status(Status::RequestForgotten),
    };
    let peer = Peer::new(NUMBERED, decide);
    let error = connect(&peer.url("")).unwrap().store(b"a", b"1").unwrap_err();
    assert!(matches!(error, Error::InDoubt { .. }), "{error}");
}

#[test]
fn a_pipeline_that_ends_early_leaves_its_connection() {
    // The first is lost, and its number forgotten. Those that are under way behind it then are never answered.
    let decide = |command: &KvCommand, count| match count {
        0 => Act::EndAfter,
        1 => Act::Status(Status::RequestForgotten),
        _ if command.key().is_some_and(|key| key.bytes() == b"a") => Act::Answer,
        _ => Act::Silence,
    };
    let peer = Peer::new(NUMBERED, decide);
    let store = connect(&peer.url("depth=4")).unwrap();
    let mut batch = Batch::new();
    for number in 0..4 {
        batch.store(&[number], b"1");
    }
    let error = store.bulk(&batch).unwrap_err();
    assert!(matches!(error, Error::InDoubt { .. }), "{error}");
    assert_eq!(peer.io_queues(), 2);
    // On that connection there would be room for one of depth 4 alone.
    store.store(b"a", b"2").unwrap();
    assert_eq!((peer.io_queues(), peer.value(1, b"a").unwrap()), (3, b"2".to_vec()));
}

#[test]
fn a_change_that_a_drive_failed_in_is_in_doubt() {
    let peer = numbered(NUMBERED, Act::Status(Status::InternalError), 0);
    let error = connect(&peer.url("")).unwrap().store(b"a", b"1").unwrap_err();
    assert!(matches!(&error, Error::InDoubt { why } if why.contains("the drive has failed")), "{error}");
    let peer = numbered(NUMBERED, Act::Status(Status::InternalError), 0);
    assert!(matches!(connect(&peer.url("")).unwrap().exist(b"a"), Err(Error::Io { .. })));
}

#[test]
fn a_pipeline_goes_on_where_the_connection_ended() {
    for number in [0, 1, 40, 99, 150] {
        let peer = numbered(NUMBERED, Act::EndAfter, number);
        let store = connect(&peer.url("depth=16")).unwrap();
        let mut batch = Batch::new();
        for number in 0..100usize {
            batch.store(format!("{number:03}").as_bytes(), &value(number, 6000));
        }
        store.bulk(&batch).unwrap();
        let keys: Vec<String> = (0..100).map(|number| format!("{number:03}")).collect();
        let values = store.retrieve_many(&keys.iter().map(|key| key.as_bytes()).collect::<Vec<_>>()).unwrap();
        for (number, found) in values.into_iter().enumerate() {
            assert!(found == Some(value(number, 6000)), "{number}");
        }
    }
}

#[test]
fn a_silent_drive_is_given_up() {
    let peer = misbehaving(Act::Silence, 1);
    let store = connect(&peer.url("timeout=1")).unwrap();
    store.store(b"a", b"1").unwrap();
    let began = Instant::now();
    let error = store.retrieve(b"a").unwrap_err();
    assert!(matches!(&error, Error::Unreachable { why } if why.contains("does not answer")), "{error}");
    assert!((Duration::from_millis(900)..Duration::from_secs(3)).contains(&began.elapsed()));
    assert_eq!(store.retrieve(b"a").unwrap().unwrap(), b"1");
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
    std::thread::sleep(Duration::from_millis(5500));
    assert!(peer.keep_alives() >= 1);
    drop(store);
}

#[test]
fn a_drive_that_is_never_ready_is_waited_for_no_longer_than_said() {
    let peer = Peer::new(PLAIN, |_, _| Act::Status(Status::NamespaceNotReady));
    let store = connect(&peer.url("timeout=1")).unwrap();
    store.store(b"a", b"1").unwrap_err();
    let mut batch = Batch::new();
    batch.store(b"a", b"1");
    let (said, hears) = std::sync::mpsc::channel();
    // Not joined: before, it never ended.
    std::thread::spawn(move || said.send(store.bulk(&batch)));
    let error = hears.recv_timeout(Duration::from_secs(10)).expect("an answer in time").unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. } | Error::InDoubt { .. }), "{error}");
}
