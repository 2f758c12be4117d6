//! Calls on a drive that does what it should.

use crate::peer::{Act, Behaviour, NQN, Numbers, PLAIN, Peer};
use crate::{exercise, value};
use kvssd_host::{Batch, Error, Missing, NamespaceAttributes, NamespaceId, Options, connect};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::thread::scope;
use std::time::{Duration, Instant};

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
    let peer = Peer::new(Behaviour { tells_of_deletes: false, ..PLAIN }, |_, _| Act::Answer);
    exercise(&connect(&peer.url("")).unwrap());
}

#[test]
fn a_drive_whose_firmware_has_panicked_has_failed_and_lacks_no_namespace() {
    let peer = Peer::new(Behaviour { has_failed: true, ..PLAIN }, |_, _| Act::Answer);
    let refused = connect(&peer.url("")).map(|_| ()).unwrap_err();
    assert!(matches!(&refused, Error::Io { why } if why.contains("the drive has failed")), "{refused}");
}

/// Without numbers, what is sent when the drive is served anew would be in doubt as soon as the connection is lost.
#[test]
fn a_drive_that_has_failed_is_not_taken_for_one_without_numbers() {
    let peer = Peer::new(Behaviour { numbers: Numbers::Failed, ..PLAIN }, |_, _| Act::Answer);
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
        let behaviour = Behaviour { split_bytes, r2t_bytes, data_bytes, ..PLAIN };
        let peer = Peer::new(behaviour, |_, _| Act::Answer);
        exercise(&connect(&peer.url("digest=header,data")).unwrap());
    }
}

#[test]
fn every_byte_may_come_alone() {
    let peer = Peer::new(Behaviour { split_bytes: Some(1), data_bytes: 7, ..PLAIN }, |_, _| Act::Answer);
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
    for (subsystems, message) in [(&[][..], "no subsystem"), (&["nqn.x:a", "nqn.x:b"], "nqn.x:a, nqn.x:b")] {
        let peer = Peer::new(Behaviour { subsystems, ..PLAIN }, |_, _| Act::Answer);
        let error = connect(&format!("nvme+tcp://{}", peer.address)).err().unwrap().to_string();
        assert!(error.contains(message), "{error}");
        assert!(error.starts_with(&format!("nvme+tcp://{}/?ns=1: ", peer.address)), "{error}");
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
    assert!(matches!(&error, Error::Refused { why } if why.contains("no subsystem nqn.x:other")), "{error}");
    assert!(error.to_string().starts_with(&format!("{url}?ns=1: ")), "{error}");
    let error = connect(&peer.url("ns=3")).err().unwrap();
    assert_eq!(error, Error::NoNamespace { name: "3".to_owned() });
    // Less than the patience of one call that waits, which is half a minute.
    assert!(began.elapsed() < Duration::from_secs(25));
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
    let named = NamespaceAttributes { name: Some("accounts".to_owned()), ..NamespaceAttributes::PLAIN };
    for error in [
        store.batch(&batch).unwrap_err(),
        store.create_namespace(named).err().unwrap(),
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
fn a_namespace_that_another_host_deletes_while_it_is_listed_is_left_out() {
    let peer = Peer::new(Behaviour { loses_namespaces: true, ..PLAIN }, |_, _| Act::Answer);
    let store = connect(&peer.url("")).unwrap();
    assert_eq!(store.namespaces().unwrap().len(), 2);
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
        let peer = Peer::new(Behaviour { r2t_bytes: 16384, data_bytes: 10_000, ..PLAIN }, |_, _| Act::Answer);
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
