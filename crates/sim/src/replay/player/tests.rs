//! What a player makes of a drive's answers, on one that has few places and takes fixed times.

use super::*;
use kvssd_cache::EvictionPolicy;
use kvssd_types::OwnedKey;
use std::collections::BTreeSet;

const STORE: Nanos = Nanos(100);
const REFUSAL: Nanos = Nanos(50);
const OTHER: Nanos = Nanos(30);

struct SmallDrive {
    keys: BTreeSet<OwnedKey>,
    places: usize,
    /// Who leaves by the drive's own policy when a store is refused.
    leaves: Option<OwnedKey>,
    left: Vec<OwnedKey>,
    beneath: Box<dyn PairDrive>,
}

impl PairDrive for SmallDrive {
    fn submit(&mut self, command: Command<'_>, _stream: Option<u64>, at: Nanos) -> Completion {
        let is_there = command.key().is_some_and(|key| self.keys.contains(key.bytes()));
        let (took, reply) = match command {
            Command::Store { .. } if !is_there && self.keys.len() == self.places => {
                let left = self.leaves.take().filter(|key| self.keys.remove(key));
                self.left.extend(left);
                (REFUSAL, Err(KvError::CapacityExceeded))
            }
            Command::Store { key, .. } => {
                self.keys.insert(key.bytes().into());
                (STORE, Ok(Reply::Stored))
            }
            Command::Delete { key } if self.keys.remove(key.bytes()) => (OTHER, Ok(Reply::Deleted)),
            _ => (OTHER, Err(KvError::KeyNotFound)),
        };
        Completion { done: at + took, reply }
    }

    fn take_left(&mut self) -> Vec<OwnedKey> {
        std::mem::take(&mut self.left)
    }

    fn value_bytes_max(&self) -> u64 {
        self.beneath.value_bytes_max()
    }

    fn device(&self) -> &Device {
        self.beneath.device()
    }

    fn into_device(self: Box<Self>) -> Device {
        self.beneath.into_device()
    }
}

/// A player on such a drive, with a cache that is never full before the drive is.
fn player(places: usize, is_drives_cache: bool, leaves: Option<OwnedKey>) -> Player {
    let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 512.0).unwrap();
    let plan = CachePlan { budget_bytes: 1 << 40, eviction: EvictionPolicy::FIFO, admission: Vec::new() };
    let design = kvssd_designs::ORIGINAL;
    let plain = ReplaySetup::new(design.clone(), profile.clone(), 1);
    let mut player = Player::new(&ReplaySetup { cache: Some(plan), is_drives_cache, ..plain }).unwrap();
    let beneath = drive(&design, &profile, None, None).unwrap();
    let (keys, left) = (BTreeSet::new(), Vec::new());
    player.drive = Box::new(SmallDrive { keys, places, leaves, left, beneath });
    player
}

/// When a request is done that comes at `at`.
fn begin(player: &mut Player, key: &str, action: Action, at: Nanos) -> Nanos {
    let mut requests = Requests::new();
    requests.push(key.as_bytes(), 1, Request::new(action, 1000));
    let request = &requests.list()[0];
    player.begin(request, requests.key(request), at).unwrap().0
}

/// A host knows of a refusal when it is answered, and has room when its deletes are.
#[test]
fn a_refused_store_is_sent_again_when_the_refusal_and_the_deletes_are_answered() {
    let mut player = player(1000, false, None);
    let mut at = Nanos::ZERO;
    for number in 0..1000 {
        let done = begin(&mut player, &format!("k{number}"), Action::Set, at);
        assert_eq!(done, at + STORE, "there is room");
        at = done;
    }
    let done = begin(&mut player, "last", Action::Set, at);
    let (_, measured, counts) = player.end();
    let deletes = 1001 - counts.pairs;
    assert!(deletes > 0 && counts.refused_full == 0, "{deletes} left");
    assert_eq!(done, at + REFUSAL + Nanos(deletes * OTHER.0) + STORE);
    assert_eq!(measured.end, done);
}

/// Who is too old is deleted before his key is asked for.
#[test]
fn a_request_waits_for_the_delete_of_a_pair_that_it_finds_too_old() {
    let mut player = player(10, false, None);
    let mut requests = Requests::new();
    let (mut set, mut get) = (Request::new(Action::Set, 1000), Request::new(Action::Get, 0));
    (set.at_ns, set.ttl_ns, get.at_ns) = (Some(0), Some(5), Some(7));
    requests.push(b"k", 1, set);
    requests.push(b"k", 1, get);
    let [set, get] = [0, 1].map(|index| &requests.list()[index]);
    let (at, _) = player.begin(set, requests.key(set), Nanos::ZERO).unwrap();
    let (done, _) = player.begin(get, requests.key(get), at).unwrap();
    assert_eq!(done, at + OTHER + OTHER, "its delete, and the retrieve that misses");
}

/// A drive may evict some for a store that it refuses in the end.
#[test]
fn who_left_for_a_refused_store_is_a_miss_and_no_wrong_answer() {
    let mut player = player(1, true, Some(b"a"[..].into()));
    begin(&mut player, "a", Action::Set, Nanos(0));
    begin(&mut player, "b", Action::Set, Nanos(100));
    begin(&mut player, "a", Action::Get, Nanos(200));
    let (_, measured, counts) = player.end();
    assert_eq!((counts.refused_full, counts.misses, measured.failed_retrieves, counts.pairs), (1, 1, 0, 0));
}
