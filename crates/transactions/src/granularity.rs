//! What a lock is on: a record, several neighbours, or a page.
//!
//! ```text
//!   keys of 8 bytes, 4 records a lock     0 1 2 3 | 4 5 6 7 | 8 ...        number = key / 4
//!   other keys                            hash of the key                  number = hash mod (records expected / 4)
//! ```
//!
//! Two records of one lock wait for each other without need, and that is all: a lock that is too coarse is slow, never wrong.

use kvssd_types::{Key, NamespaceId, mix64};

/// Names a lock. What its number stands for is up to the engine: a record, a range of them, a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockName {
    /// Whose records it protects.
    pub namespace: NamespaceId,
    /// Which of them.
    pub number: u64,
}

/// How many records a lock protects (KAML, section V-D: 1 and 16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granularity {
    /// Neighbouring keys of 8 bytes that share a lock, at least 1.
    pub records_per_lock: u64,
    /// Keys of other lengths have no neighbours. So many are expected in a namespace: `records_per_lock` of them share a lock on
    /// average when they are there. Not used with one record a lock, which is the whole hash's.
    pub hashed_records: u64,
}

impl Default for Granularity {
    /// A lock a record.
    fn default() -> Self {
        Granularity::records(1)
    }
}

impl Granularity {
    /// `records_per_lock` neighbours a lock, for keys of 8 bytes or namespaces of about a million other keys.
    #[must_use]
    pub const fn records(records_per_lock: u64) -> Self {
        Granularity { records_per_lock, hashed_records: 1 << 20 }
    }

    /// The lock of a record.
    ///
    /// # Panics
    /// When a lock is to protect no record.
    #[must_use]
    pub fn lock_of(&self, namespace: NamespaceId, key: Key<'_>) -> LockName {
        assert!(self.records_per_lock > 0, "a lock protects records");
        let number = match <[u8; 8]>::try_from(key.bytes()) {
            Ok(number) => u64::from_be_bytes(number) / self.records_per_lock,
            Err(_) if self.records_per_lock == 1 => hash(namespace, key),
            Err(_) => hash(namespace, key) % (self.hashed_records / self.records_per_lock).max(1),
        };
        LockName { namespace, number }
    }
}

/// Spreads keys: words of them are mixed one into the other, the length first.
pub(crate) fn hash(namespace: NamespaceId, key: Key<'_>) -> u64 {
    let bytes = key.bytes();
    let seed = mix64((u64::from(namespace.0) << 32) | bytes.len() as u64);
    bytes.chunks(8).fold(seed, |state, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix64(state.rotate_left(23) ^ u64::from_le_bytes(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn lock_of(granularity: Granularity, key: &[u8]) -> LockName {
        granularity.lock_of(NamespaceId::FIRST, Key::new(key).unwrap())
    }

    #[test]
    fn neighbouring_numbers_share_a_lock() {
        let locks = |records| {
            let granularity = Granularity::records(records);
            (0..64u64).map(|key| lock_of(granularity, &key.to_be_bytes())).collect::<BTreeSet<_>>().len()
        };
        assert_eq!((locks(1), locks(16), locks(64)), (64, 4, 1));
    }

    #[test]
    fn other_keys_share_as_many_locks_as_their_number_asks_for() {
        let keys: Vec<String> = (0..1600).map(|number| format!("customer {number}")).collect();
        let locks = |granularity| keys.iter().map(|key| lock_of(granularity, key.as_bytes())).collect::<BTreeSet<_>>();
        assert_eq!(locks(Granularity::default()).len(), keys.len());
        assert_eq!(locks(Granularity { records_per_lock: 16, hashed_records: 1600 }).len(), 100);
    }

    #[test]
    fn namespaces_have_locks_of_their_own() {
        let key = Key::new(b"key").unwrap();
        let lock = |namespace| Granularity::default().lock_of(NamespaceId(namespace), key);
        assert_ne!(lock(1), lock(2));
    }
}
