//! What must be on the drive.

use kvssd_types::{Pattern, mix64};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What is known of a pair that the drive holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// Tells the values of a key apart.
    version: u32,
    /// The size of the value.
    pub(super) bytes: u32,
}

/// Every pair that the drive holds, by the hash of its key: 16 bytes each, 20 to 39 with the map's own.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pairs: HashMap<u64, Held, BuildHasherDefault<AlreadyHashed>>,
    seed: u64,
    stores: u32,
}

impl Model {
    pub(super) fn new(seed: u64) -> Self {
        Model { pairs: HashMap::default(), seed, stores: 0 }
    }

    /// The next value for a key, which is not on the drive yet.
    pub(super) fn draft(&mut self, bytes: u32) -> Held {
        self.stores = self.stores.wrapping_add(1);
        Held { version: self.stores, bytes }
    }

    /// The bytes of a value.
    pub(super) fn pattern(&self, hash: u64, held: Held) -> Pattern {
        // Seeds of 48 bits take less memory, as in a session.
        let seed = mix64(mix64(self.seed ^ hash).wrapping_add(held.version.into())) >> 16;
        Pattern { seed, offset: 0, length: held.bytes }
    }

    pub(super) fn get(&self, hash: u64) -> Option<Held> {
        self.pairs.get(&hash).copied()
    }

    pub(super) fn put(&mut self, hash: u64, held: Held) {
        self.pairs.insert(hash, held);
    }

    pub(super) fn remove(&mut self, hash: u64) {
        self.pairs.remove(&hash);
    }

    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Brings what is known of these keys into the machine's caches, side by side instead of one after the other.
    pub(super) fn expect(&self, hashes: impl Iterator<Item = u64>) {
        let sum = hashes.fold(0, |sum, hash| sum ^ self.get(hash).map_or(0, |held| held.version));
        std::hint::black_box(sum);
    }
}

/// Hashes what is a hash.
#[derive(Clone, Copy, Debug, Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only hashes of 64 bits are hashed");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
