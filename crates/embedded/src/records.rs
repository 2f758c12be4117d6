//! What is put, and how a value that was read is told to be the right one.
//!
//! ```text
//!   key     mix of seed and number, number: 16 bytes that are spread at random, one for each record
//!   value   0  number u64    8  version u32    12  bytes from a pool of random ones, from where number and version say
//! ```
//!
//! Values do not compress, and cost no more to make than to copy. A record is changed by one thread, so a value that is read is
//! right when it is whole and its version is no older than the last that had returned before the read began.

use kvssd_types::{Random, mix64};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of every key.
pub(crate) const KEY_BYTES: usize = 16;
/// Bytes of a value before those from the pool.
pub(crate) const HEAD_BYTES: usize = 12;

/// Bytes of the pool beside a value: several times what a compressor of blocks would look back, and few enough that the cache of a core has
/// them: what it takes to make and to check values is nobody's work.
const POOL_BYTES: usize = 256 << 10;

/// The records of a run.
pub(crate) struct Records {
    seed: u64,
    value_bytes: usize,
    pool: Vec<u8>,
    /// All of them, in the order of their keys.
    in_order: Vec<u64>,
}

/// The last version of each record whose put has returned from a store; 0 where there is no such record.
pub(crate) struct Versions(Vec<AtomicU32>);

impl Records {
    pub(crate) fn new(seed: u64, value_bytes: usize, count: u64) -> Self {
        let mut random = Random::new(seed);
        let words = (POOL_BYTES + value_bytes).div_ceil(8);
        let pool = (0..words).flat_map(|_| random.bits().to_le_bytes()).collect();
        let mut in_order: Vec<u64> = (0..count).collect();
        in_order.sort_unstable_by_key(|&record| key_of(seed, record));
        Records { seed, value_bytes, pool, in_order }
    }

    pub(crate) fn key(&self, record: u64) -> [u8; KEY_BYTES] {
        key_of(self.seed, record)
    }

    /// The record whose key that is.
    pub(crate) fn record_of(&self, key: &[u8]) -> Option<u64> {
        let record = u64::from_be_bytes(key.get(8..)?.try_into().ok()?);
        (*key == self.key(record)).then_some(record)
    }

    /// The records from a key on, in the order of their keys, `count` at most.
    pub(crate) fn following(&self, key: &[u8; KEY_BYTES], count: usize) -> &[u64] {
        let begin = self.in_order.partition_point(|&record| self.key(record) < *key);
        let rest = &self.in_order[begin..];
        &rest[..rest.len().min(count)]
    }

    /// Makes the value of a version of a record.
    pub(crate) fn write_value(&self, record: u64, version: u32, value: &mut Vec<u8>) {
        value.clear();
        value.extend(record.to_le_bytes());
        value.extend(version.to_le_bytes());
        value.extend(self.tail(record, version));
    }

    /// The version of a value, if it is a whole value of that record.
    pub(crate) fn version_of(&self, record: u64, value: &[u8]) -> Option<u32> {
        let (head, tail) = value.split_at_checked(HEAD_BYTES)?;
        let version = u32::from_le_bytes(head[8..].try_into().ok()?);
        (head[..8] == record.to_le_bytes() && tail == self.tail(record, version)).then_some(version)
    }

    fn tail(&self, record: u64, version: u32) -> &[u8] {
        let mix = mix64(mix64(record ^ self.seed) ^ u64::from(version));
        let start = (mix % POOL_BYTES as u64) as usize;
        &self.pool[start..][..self.value_bytes - HEAD_BYTES]
    }
}

fn key_of(seed: u64, record: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&mix64(record ^ seed).to_be_bytes());
    key[8..].copy_from_slice(&record.to_be_bytes());
    key
}

impl Versions {
    /// No record is there.
    pub(crate) fn new(records: u64) -> Self {
        Versions((0..records).map(|_| AtomicU32::new(0)).collect())
    }

    pub(crate) fn get(&self, record: u64) -> u32 {
        self.0[record as usize].load(Ordering::Acquire)
    }

    /// Says that a put of that version has returned; 0 for a delete. Called by the one thread that changes the record.
    pub(crate) fn set(&self, record: u64, version: u32) {
        self.0[record as usize].store(version, Ordering::Release);
    }
}

/// What is wrong with what a read gave, if anything: the version of a whole value of the record (`Some(None)` for anything else),
/// or no value; between `before`, the record's version when the read began, and `after`, when it had ended.
pub(crate) fn fault(seen: Option<Option<u32>>, before: u32, after: u32) -> Option<&'static str> {
    match seen {
        None if before == 0 => None,
        None => Some("there is no value, and one was put"),
        Some(None) => Some("the value is not the one that was put"),
        Some(Some(version)) if version < before.max(1) => Some("the value is older than the last that was put"),
        // One put may be under way.
        Some(Some(version)) if version > after + 1 => Some("the value was never put"),
        Some(Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_value_is_told_from_any_other() {
        let records = Records::new(1, 100, 0);
        let mut value = Vec::new();
        records.write_value(7, 3, &mut value);
        assert_eq!((value.len(), records.version_of(7, &value)), (100, Some(3)));
        assert_eq!((records.version_of(8, &value), records.version_of(7, &value[..99])), (None, None));
        assert_eq!(records.version_of(7, b"short"), None);
        for byte in 0..100 {
            let mut other = value.clone();
            other[byte] ^= 1;
            assert_eq!(records.version_of(7, &other), None, "byte {byte}");
        }
    }

    #[test]
    fn the_seed_makes_the_keys_and_every_record_has_its_own() {
        let records = Records::new(1, 16, 0);
        let keys: BTreeSet<_> = (0..1000).map(|record| records.key(record)).collect();
        assert_eq!(keys.len(), 1000);
        assert_ne!(records.key(5), Records::new(2, 16, 0).key(5));
    }

    #[test]
    fn only_what_may_be_seen_is_right() {
        for (seen, before, after, is_right) in [
            (None, 0, 0, true),
            (None, 1, 1, false),
            (Some(None), 1, 1, false),
            (Some(Some(0)), 0, 0, false),
            (Some(Some(1)), 0, 0, true),
            (Some(Some(1)), 1, 1, true),
            (Some(Some(1)), 2, 2, false),
            (Some(Some(3)), 2, 2, true),
            (Some(Some(4)), 2, 2, false),
            (Some(Some(4)), 2, 5, true),
        ] {
            assert_eq!(fault(seen, before, after).is_none(), is_right, "{seen:?} {before} {after}");
        }
    }
}
