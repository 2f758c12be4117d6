//! Changes that were executed and are not on the disk yet. Who reads one of them waits until it is, with `sync`: what was shown is not lost.
//!
//! A key is known by its hash: of two that have the same, one waits for the other.

use kvssd_types::{Command, NamespaceId};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Keys that are told apart at the most; with more, who reads anything waits.
const KEYS_MAX: usize = 4096;

/// Changes, by the tickets of those who made them.
#[derive(Debug, Default)]
pub(crate) struct Loose {
    keys: BTreeMap<u64, u64>,
    /// The last change of any key.
    last: Option<u64>,
    /// The last change of what is no key, or of one too many.
    other: Option<u64>,
}

fn hash_of(namespace: NamespaceId, key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (namespace.0, key).hash(&mut hasher);
    hasher.finish()
}

impl Loose {
    /// That command is to be executed under that ticket.
    pub(crate) fn note(&mut self, ticket: u64, namespace: NamespaceId, command: &Command<'_>) {
        match command {
            Command::Store { key, .. } | Command::Delete { key } => self.note_key(ticket, namespace, key.bytes()),
            Command::Batch { changes } => {
                changes.iter().for_each(|change| self.note_key(ticket, change.namespace, change.key.bytes()));
            }
            // It changes nothing that can be read.
            Command::Flush => {}
            _ => self.note_other(ticket),
        }
    }

    fn note_key(&mut self, ticket: u64, namespace: NamespaceId, key: &[u8]) {
        self.last = Some(ticket);
        if self.keys.len() >= KEYS_MAX {
            return self.note_other(ticket);
        }
        self.keys.insert(hash_of(namespace, key), ticket);
    }

    /// Something else is changed under that ticket: which namespaces there are.
    pub(crate) fn note_other(&mut self, ticket: u64) {
        (self.last, self.other) = (Some(ticket), Some(ticket));
    }

    /// Everything is on the disk.
    pub(crate) fn clear(&mut self) {
        *self = Loose::default();
    }

    /// Which ticket who has read that waits for, if any.
    pub(crate) fn seen_by(&self, namespace: NamespaceId, command: &Command<'_>) -> Option<u64> {
        // Between two changes there are none.
        self.last?;
        match command {
            Command::Retrieve { key, .. } | Command::Exist { key } => {
                self.keys.get(&hash_of(namespace, key.bytes())).copied().max(self.other)
            }
            // A view was waited for when it was made.
            Command::Seek { .. } | Command::Next { .. } | Command::DestroyIterator { .. } => self.other,
            _ => self.last,
        }
    }

    /// The same, of who has seen which namespaces there are, and what they hold.
    pub(crate) fn last(&self) -> Option<u64> {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_types::{BatchChange, Key, Value};

    const ONE: NamespaceId = NamespaceId::FIRST;
    const TWO: NamespaceId = NamespaceId(2);

    fn retrieve(key: &[u8]) -> Command<'_> {
        Command::Retrieve { key: Key::new(key).unwrap(), offset_bytes: 0, length_bytes: 9 }
    }

    #[test]
    fn who_reads_a_change_waits_for_it_and_nobody_else() {
        let mut loose = Loose::default();
        assert_eq!(loose.seen_by(ONE, &retrieve(b"a")), None);
        loose.note(3, ONE, &Command::Delete { key: Key::new(b"a").unwrap() });
        let value = Some(Value::from(&b"1"[..]));
        let change = BatchChange { namespace: TWO, key: Key::new(b"b").unwrap(), value };
        loose.note(4, ONE, &Command::Batch { changes: &[change] });
        let seen =
            [(ONE, b"a"), (ONE, b"b"), (TWO, b"a"), (TWO, b"b")].map(|(id, key)| loose.seen_by(id, &retrieve(key)));
        assert_eq!(seen, [Some(3), None, None, Some(4)]);
        assert_eq!(loose.seen_by(ONE, &Command::List { from: None, keys_max: 1 }), Some(4));
        loose.note_other(5);
        assert_eq!((loose.seen_by(ONE, &retrieve(b"c")), loose.last()), (Some(5), Some(5)));
        loose.clear();
        assert_eq!((loose.seen_by(TWO, &retrieve(b"b")), loose.last()), (None, None));
    }

    #[test]
    fn with_too_many_keys_all_wait() {
        let mut loose = Loose::default();
        for number in 0..KEYS_MAX as u64 + 1 {
            loose.note(number, ONE, &Command::Delete { key: Key::new(&number.to_le_bytes()).unwrap() });
        }
        assert_eq!(loose.seen_by(ONE, &retrieve(b"never")), Some(KEYS_MAX as u64));
        assert_eq!(loose.keys.len(), KEYS_MAX);
    }
}
