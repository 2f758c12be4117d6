//! Keys of record numbers.

use super::{Lengths, WorkloadError};
use kvssd_types::{KEY_BYTES_MAX, Key, Random, mix64, unmix64};

/// The bytes of a key that a hash fills at most. The others are [`FILL`].
const HASH_BYTES_MAX: usize = 8;

/// What long keys end in.
const FILL: u8 = b'.';

/// The keys of a store: of one length or several, one for each record number, in an order that has nothing to do with that of
/// the numbers (YCSB core property `insertorder=hashed`).
///
/// ```text
///   record --- bijection of 64 bits -----------> | 8 bytes, high end first | fill ...  |   key_bytes >= 8
///   record --- bijection of 8 * key_bytes bits -> | key_bytes, high end first |            key_bytes < 8
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyShape {
    lengths: Lengths,
    seed: u64,
}

impl KeyShape {
    /// Keys of `key_bytes` bytes each.
    ///
    /// # Errors
    /// [`WorkloadError::KeyBytes`] for none and for more than [`KEY_BYTES_MAX`].
    pub fn new(key_bytes: usize) -> Result<Self, WorkloadError> {
        KeyShape::varied(Lengths::fixed(key_bytes.min(u32::MAX as usize) as u32), 0)
    }

    /// Keys of several lengths; `seed` says which record has which.
    ///
    /// # Errors
    /// [`WorkloadError::KeyBytes`] for none and for more than [`KEY_BYTES_MAX`].
    pub fn varied(lengths: Lengths, seed: u64) -> Result<Self, WorkloadError> {
        for key_bytes in [lengths.bytes_min() as usize, lengths.bytes_max() as usize] {
            if !(1..=KEY_BYTES_MAX).contains(&key_bytes) {
                return Err(WorkloadError::KeyBytes { key_bytes });
            }
        }
        Ok(KeyShape { lengths, seed })
    }

    /// The length of the longest key in bytes.
    #[must_use]
    pub fn key_bytes_max(&self) -> usize {
        self.lengths.bytes_max() as usize
    }

    /// How many records can have keys of the shortest length n: 256^n, or `u64::MAX` where that is more.
    #[must_use]
    pub fn records_max(&self) -> u64 {
        let key_bytes = self.lengths.bytes_min() as usize;
        if key_bytes < HASH_BYTES_MAX { 1 << (8 * key_bytes) } else { u64::MAX }
    }

    /// Writes the key of `record` to the front of `buffer`. No two records have the same key.
    ///
    /// # Panics
    /// When `record` is not below [`KeyShape::records_max`].
    pub fn write<'buffer>(&self, record: u64, buffer: &'buffer mut [u8; KEY_BYTES_MAX]) -> Key<'buffer> {
        assert!(record < self.records_max(), "record {record} has no key of {} bytes", self.lengths.bytes_min());
        let key_bytes = self.lengths.draw(|| Random::stream(self.seed, record)) as usize;
        let key = &mut buffer[..key_bytes];
        if key_bytes < HASH_BYTES_MAX {
            let hash = mix_within(record, 8 * key_bytes as u32).to_be_bytes();
            key.copy_from_slice(&hash[HASH_BYTES_MAX - key_bytes..]);
        } else {
            let (front, rest) = key.split_at_mut(HASH_BYTES_MAX);
            front.copy_from_slice(&mix64(record).to_be_bytes());
            rest.fill(FILL);
        }
        Key::new(key).expect("a key shape has 1 to 255 bytes")
    }

    /// The record of a key, where the key is long enough to tell.
    #[must_use]
    pub fn record_of(&self, key: &[u8]) -> Option<u64> {
        key.first_chunk::<HASH_BYTES_MAX>().map(|front| unmix64(u64::from_be_bytes(*front)))
    }
}

/// A bijection of the numbers of `bits` bits, 2 to 63 of them: multiplying by an odd number and folding the upper half
/// onto the lower can both be undone.
fn mix_within(number: u64, bits: u32) -> u64 {
    let mask = (1 << bits) - 1;
    let round = |number: u64, odd: u64| {
        let product = number.wrapping_mul(odd) & mask;
        product ^ (product >> (bits / 2))
    };
    round(round(round(number, 0x9e37_79b9_7f4a_7c15), 0xbf58_476d_1ce4_e5b9), 0x94d0_49bb_1331_11eb)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const LENGTHS: [usize; 10] = [1, 2, 3, 4, 7, 8, 9, 16, 100, 255];

    fn key(key_bytes: usize, record: u64) -> Vec<u8> {
        let mut buffer = [0; KEY_BYTES_MAX];
        KeyShape::new(key_bytes).unwrap().write(record, &mut buffer).bytes().to_vec()
    }

    #[test]
    fn a_long_key_says_which_record_it_is_of() {
        let shape = KeyShape::new(8).unwrap();
        for record in (0..1000).chain([u64::MAX - 3, 1 << 40]) {
            assert_eq!(shape.record_of(&key(8, record)), Some(record));
        }
        assert_eq!(shape.record_of(&key(7, 5)), None);
    }

    #[test]
    fn lengths_out_of_range_are_refused() {
        assert_eq!(KeyShape::new(0), Err(WorkloadError::KeyBytes { key_bytes: 0 }));
        let message = KeyShape::new(256).unwrap_err().to_string();
        assert_eq!(message, "keys of 256 bytes: a key has 1 to 255");
    }

    #[test]
    fn short_keys_use_their_whole_space() {
        for key_bytes in 1..=3 {
            let shape = KeyShape::new(key_bytes).unwrap();
            let mut seen = vec![false; shape.records_max() as usize];
            let mut buffer = [0; KEY_BYTES_MAX];
            for record in 0..shape.records_max() {
                let bytes = shape.write(record, &mut buffer).bytes();
                let number = bytes.iter().fold(0, |number, &byte| number << 8 | usize::from(byte));
                assert!(!std::mem::replace(&mut seen[number], true), "{key_bytes} bytes, record {record}");
            }
        }
    }

    #[test]
    fn many_records_have_as_many_keys() {
        for key_bytes in LENGTHS {
            let records = 20_000.min(KeyShape::new(key_bytes).unwrap().records_max());
            let keys: BTreeSet<Vec<u8>> = (0..records).map(|record| key(key_bytes, record)).collect();
            assert_eq!(keys.len() as u64, records, "{key_bytes}");
        }
    }

    #[test]
    fn keys_of_several_lengths_are_as_many_as_records() {
        let shape = KeyShape::varied(Lengths::uniform(3, 20).unwrap(), 1).unwrap();
        let mut buffer = [0; KEY_BYTES_MAX];
        let keys: BTreeSet<Vec<u8>> =
            (0..50_000).map(|record| shape.write(record, &mut buffer).bytes().to_vec()).collect();
        assert_eq!(keys.len(), 50_000);
        let lengths: BTreeSet<usize> = keys.iter().map(Vec::len).collect();
        assert_eq!(lengths, (3..=20).collect());
    }

    #[test]
    fn the_order_of_records_is_not_that_of_keys() {
        for key_bytes in LENGTHS {
            let rising = (0..200).filter(|&record| key(key_bytes, record) < key(key_bytes, record + 1)).count();
            assert!((60..=140).contains(&rising), "{key_bytes} bytes: {rising} of 200 rise");
        }
    }

    #[test]
    fn consecutive_records_spread_over_the_first_byte() {
        for key_bytes in LENGTHS.into_iter().filter(|&key_bytes| key_bytes > 1) {
            let mut counts = [0u32; 256];
            for record in 0..25_600 {
                counts[usize::from(key(key_bytes, record)[0])] += 1;
            }
            assert!(counts.iter().all(|count| (30..=200).contains(count)), "{key_bytes}: {counts:?}");
        }
    }

    #[test]
    #[should_panic(expected = "record 256 has no key of 1 bytes")]
    fn a_record_beyond_the_space_has_no_key() {
        key(1, 256);
    }

    proptest! {
        #[test]
        fn two_records_have_two_keys(which in 0..LENGTHS.len(), one: u64, other: u64, near in 1u64..1000) {
            let key_bytes = LENGTHS[which];
            let records = KeyShape::new(key_bytes).unwrap().records_max();
            let one = one % records;
            for other in [other % records, one.wrapping_add(near) % records] {
                prop_assert_eq!(key(key_bytes, one) == key(key_bytes, other), one == other);
            }
            prop_assert_eq!(key(key_bytes, one).len(), key_bytes);
        }
    }
}
