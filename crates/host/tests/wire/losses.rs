//! Connections that are lost, and the changes that were outstanding.

use crate::peer::{Act, Behaviour, NUMBERED, Numbers, PLAIN, Peer};
use crate::{misbehaving, numbered, value};
use kvssd_host::{Batch, CachePlan, Error, EvictionPolicy, PairCache, StoreCondition, connect};
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::kv::KvCommand;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::Instant;

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
fn the_first_connection_is_made_again_too_when_it_is_cut() {
    let peer = |resets| Peer::new(Behaviour { resets, ..PLAIN }, |_, _| Act::Answer);
    for resets in 1..4 {
        let cut = peer(resets);
        let store = connect(&cut.url("")).unwrap();
        store.store(b"a", b"1").unwrap();
        assert_eq!(cut.value(1, b"a").unwrap(), b"1");
    }
    let began = Instant::now();
    let error = connect(&peer(usize::MAX).url("timeout=1")).err().unwrap();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!((1..10).contains(&began.elapsed().as_secs()), "no longer than it may take: {:?}", began.elapsed());
}

#[test]
fn a_host_that_is_turned_away_comes_again_for_a_while() {
    let peer = |turned_away| Peer::new(Behaviour { turned_away, ..PLAIN }, |_, _| Act::Answer);
    for turned_away in 1..4 {
        connect(&peer(turned_away).url("")).unwrap().store(b"a", b"1").unwrap();
    }
    let began = Instant::now();
    let error = connect(&peer(usize::MAX).url("timeout=30")).err().unwrap();
    assert!(error.to_string().contains("it may have too many connections, or be something else"), "{error}");
    assert!((5..15).contains(&began.elapsed().as_secs()), "not as long as it may take: {:?}", began.elapsed());
}

/// One of the threads connects anew, to a drive that keeps silent by then, and the others wait for it until they may wait no longer.
#[test]
fn who_waits_for_another_thread_that_connects_says_why_there_was_no_connection() {
    let peer = Peer::new(Behaviour { silent_from: 2, ..PLAIN }, |_, _| Act::EndBefore);
    let store = connect(&peer.url("timeout=2")).unwrap();
    let errors: Vec<String> = scope(|scope| {
        let calls: Vec<_> = (0..4).map(|_| scope.spawn(|| store.exist(b"a").unwrap_err().to_string())).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let why: Vec<&str> = errors.iter().filter_map(|error| Some(error.rsplit_once(": ")?.1)).collect();
    assert!(why.iter().all(|why| why.len() > 5) && why.len() == 4, "{errors:?}");
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
    for behaviour in [PLAIN, Behaviour { numbers: Numbers::Forgotten, ..PLAIN }] {
        let peer = numbered(behaviour, Act::EndBehindNewer, 0);
        let store = connect(&peer.url("")).unwrap();
        let error = store.store(b"a", b"old").unwrap_err();
        assert!(matches!(&error, Error::InDoubt { why } if why.contains("not known whether")), "{error}");
        assert_eq!((peer.value(1, b"a").unwrap(), peer.commands()), (b"newer".to_vec(), 1));
    }
    for (behaviour, is_told) in [(PLAIN, true), (NUMBERED, false)] {
        let peer = numbered(behaviour, Act::EndBehindNewer, 0);
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

/// The host has lost its right meanwhile: that is all that the drive says, whether it has made the first copy or not.
#[test]
fn a_change_that_is_refused_when_it_comes_again_is_in_doubt() {
    for is_made in [false, true] {
        let first = if is_made { Act::EndAfter } else { Act::EndBefore };
        let refused = Act::Status(Status::NamespaceWriteProtected);
        let refusing = || Peer::new(NUMBERED, move |_, count| if count == 0 { first } else { refused });
        let (peer, bulk_peer) = (refusing(), refusing());
        let store = connect(&peer.url("")).unwrap();
        let bulk_store = connect(&bulk_peer.url("")).unwrap();
        let mut batch = Batch::new();
        batch.store(b"a", b"1");
        for (error, peer) in [(store.store(b"a", b"1"), &peer), (bulk_store.bulk(&batch), &bulk_peer)] {
            assert!(matches!(error, Err(Error::InDoubt { .. })), "{error:?}");
            assert_eq!((peer.value(1, b"a").is_some(), peer.commands()), (is_made, 2));
        }
        // One that comes for the first time is not made.
        assert!(matches!(store.store(b"a", b"2"), Err(Error::Refused { .. })));
    }
}

/// Another call has lost the connection, and waited in vain for a new one, when the pipeline comes to know of it.
#[test]
fn a_change_on_a_connection_that_another_call_has_lost_is_in_doubt() {
    let decide = |command: &KvCommand, _| match command.key() {
        Some(key) if key.bytes() == b"silent" => Act::Silence,
        _ => Act::Answer,
    };
    let peer = Peer::new(NUMBERED, decide);
    let store = connect(&peer.url("timeout=1")).unwrap();
    let mut peer = Some(peer);
    let error = store.own_namespace().store_each([(&b"silent"[..], &b"1"[..]), (b"answered", b"1")], |_| {
        drop(peer.take());
        // The first may still be answered.
        let lost = [store.exist(b"a"), store.exist(b"a")];
        assert!(matches!(lost[1], Err(Error::Unreachable { .. })), "{lost:?}");
    });
    assert!(matches!(error, Err(Error::InDoubt { .. })), "{error:?}");
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

/// Those that leave a cache while the drive is not reached leave it later: they would be in nobody's budget.
#[test]
fn a_cache_keeps_to_its_budget_when_the_drive_was_not_reached() {
    let is_away = Arc::new(AtomicBool::new(false));
    let away = Arc::clone(&is_away);
    let decide = move |command: &KvCommand, _| match command {
        KvCommand::Delete { .. } if away.load(Ordering::SeqCst) => Act::EndBefore,
        _ => Act::Answer,
    };
    let peer = Peer::new(PLAIN, decide);
    let store = connect(&peer.url("")).unwrap();
    let plan = CachePlan { budget_bytes: 3 * 101, eviction: EvictionPolicy::FIFO, admission: Vec::new() };
    let cache = PairCache::open(store.own_namespace(), &plan).unwrap();
    let put = |key: u8| cache.store(&store, &[key], &[key; 100]);
    for round in 0..3u8 {
        for key in 0..4 {
            assert_eq!(put(10 * round + key), Ok(true));
        }
        is_away.store(true, Ordering::SeqCst);
        for key in 4..7 {
            assert!(matches!(put(10 * round + key), Err(Error::InDoubt { .. })));
        }
        assert!(matches!(cache.delete(&store, &[10 * round + 3]), Err(Error::InDoubt { .. })));
        is_away.store(false, Ordering::SeqCst);
        assert_eq!(put(10 * round + 7), Ok(true));
        let keys: Vec<_> = store.keys(None).map(Result::unwrap).collect();
        assert!(keys.len() <= 3 && keys.iter().all(|key| cache.contains(key)), "{keys:?}, {:?}", cache.stats());
        assert_eq!(keys.len() as u64, cache.stats().pairs);
    }
}
