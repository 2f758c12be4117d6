//! Policies of one's own: of who leaves, and of who comes in.

use super::*;
use kvssd_cache::{Admission, AdmissionPolicy, Eviction, EvictionPolicy, NameError, PairId, check_eviction};
use kvssd_flash::OpenOptions;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Once;

/// Who is largest leaves first; of several, one of them.
#[derive(Debug, Default)]
struct Largest {
    order: BTreeSet<(Reverse<u64>, PairId)>,
    bytes_of: BTreeMap<PairId, u64>,
}

impl Eviction for Largest {
    fn insert(&mut self, pair: PairId, bytes: u64, _expires: Nanos) {
        self.order.insert((Reverse(bytes), pair));
        self.bytes_of.insert(pair, bytes);
    }

    fn hit(&mut self, _pair: PairId) {}

    fn put_back(&mut self, pair: PairId, bytes: u64, expires: Nanos) {
        self.insert(pair, bytes, expires);
    }

    fn remove(&mut self, pair: PairId) {
        let bytes = self.bytes_of.remove(&pair);
        bytes.map(|bytes| self.order.remove(&(Reverse(bytes), pair)));
    }

    fn evict(&mut self) -> Option<PairId> {
        let (_, pair) = self.order.pop_first()?;
        self.bytes_of.remove(&pair);
        Some(pair)
    }

    fn kept_bytes(&self) -> u64 {
        16 * self.order.len() as u64
    }
}

/// One of so many that are offered comes in, beginning with the first.
#[derive(Debug)]
struct OneIn {
    every: u64,
    offered: u64,
}

impl Admission for OneIn {
    fn admits(&mut self, pair: PairId, bytes: u64, now: Nanos) -> bool {
        let is_in = self.would_admit(pair, bytes, now);
        self.offered += 1;
        is_in
    }

    fn would_admit(&self, _pair: PairId, _bytes: u64, _now: Nanos) -> bool {
        self.offered.is_multiple_of(self.every)
    }
}

const LARGEST: EvictionPolicy =
    EvictionPolicy { name: "largest", counts_hits: false, build: || Box::<Largest>::default() };

const ONE_IN: AdmissionPolicy = AdmissionPolicy {
    name: "one-in",
    unit: "pairs",
    number_max: 1000,
    is_shared: false,
    build: |every, _| Box::new(OneIn { every, offered: 0 }),
};

pub(super) fn add() {
    static ADDED: Once = Once::new();
    ADDED.call_once(|| {
        LARGEST.add().unwrap();
        ONE_IN.add().unwrap();
    });
}

#[test]
fn a_policy_of_ones_own_is_in_images_as_those_that_come_along_are() {
    add();
    check_eviction(LARGEST, 1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let mut drive = create(&path, "plus", None);
    let id = create_cache(&mut drive, "own", "largest budget=1000 one-in=2");
    drive.close().unwrap();
    let mut drive = Drive::open(&path, OpenOptions::default()).unwrap();
    // Every second one is kept out: pairs of 101, 301 and 501 bytes come in, and of 401 for which the largest leaves.
    for (name, length) in [(0u8, 100), (1, 200), (2, 300), (3, 400), (4, 500), (5, 600), (6, 400)] {
        assert_eq!(store(&mut drive, id, &[name], &vec![name; length]), Ok(Reply::Stored));
    }
    assert_eq!(keys(&mut drive, id), [[0], [2], [6]]);
    assert_eq!(drive.cache(id).unwrap().counts, Counts { admitted: 4, kept_out: 3, evicted: 1, expired: 0 });
    drive.close().unwrap();
    assert_eq!(Drive::check(&path).unwrap().findings, []);
}

#[test]
fn names_that_cannot_be_are_refused_and_unknown_ones_are_told() {
    add();
    let refused = |name| EvictionPolicy { name, ..LARGEST }.add().unwrap_err();
    assert_eq!(refused("largest").to_string(), "there is a policy of eviction called \"largest\" already");
    assert_eq!(refused("lru"), NameError::Taken("policy of eviction", "lru"));
    for name in ["", "LRU", "a b", "a=1"] {
        assert_eq!(refused(name), NameError::Letters("policy of eviction", name));
    }
    for name in ["asked", "one-in", "budget", "ttl-ms"] {
        assert!(matches!(AdmissionPolicy { name, ..ONE_IN }.add(), Err(NameError::Taken(..))), "{name}");
    }
    let wrong = |text: &str| text.parse::<CacheAttributes>().unwrap_err().to_string();
    assert_eq!(
        wrong("mru budget=1"),
        "unknown policy of eviction \"mru\": choose one of fifo, lru, s3-fifo, ttl, largest"
    );
    assert_eq!(
        wrong("lru budget=1 one-in=1001"),
        "\"one-in=1001\" is no rule of admission: write asked=TIMES (to 255), at-most=BYTES, a-day=BYTES, one-in=PAIRS (to 1000)"
    );
}
