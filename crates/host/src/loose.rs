//! Changes that were executed and are not on the disk yet. With `sync` a thread that reads one of them waits until it
//! is, so that nothing that was read can be lost.
//!
//! Keys are told apart by their hashes. Two keys of one hash wait for each other.

use kvssd_types::{Command, NamespaceId};
use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The most keys that are told apart. With more, every read waits.
const KEYS_MAX: usize = 4096;

/// Executed changes, by their tickets.
#[derive(Debug, Default)]
pub(crate) struct Loose {
    /// Those that the next commit makes safe.
    executed: Changes,
    /// Those of each commit that waits for the disk, by the last ticket, in the order in which they began.
    begun: VecDeque<(u64, Changes)>,
}

#[derive(Debug, Default)]
struct Changes {
    keys: BTreeMap<u64, u64>,
    /// The last change of any key.
    last: Option<u64>,
    /// The last change of something other than a key, or of a key beyond [`KEYS_MAX`].
    other: Option<u64>,
}

fn hash_of(namespace: NamespaceId, key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (namespace.0, key).hash(&mut hasher);
    hasher.finish()
}

impl Loose {
    /// A commit of all changes begins, up to that ticket.
    pub(crate) fn begin(&mut self, ticket: u64) {
        self.begun.push_back((ticket, std::mem::take(&mut self.executed)));
    }

    /// A commit has ended: what was executed up to that ticket is on the disk.
    pub(crate) fn end(&mut self, ticket: u64) {
        while self.begun.front().is_some_and(|(last, _)| *last <= ticket) {
            self.begun.pop_front();
        }
    }

    /// Forgets all changes: they are on the disk.
    pub(crate) fn clear(&mut self) {
        *self = Loose::default();
    }

    /// Notes a command that is executed under that ticket.
    pub(crate) fn note(&mut self, ticket: u64, namespace: NamespaceId, command: &Command<'_>) {
        self.executed.note(ticket, namespace, command);
    }

    /// Notes that pairs leave caches under that ticket: who finds none of a key waits for the last change of all.
    pub(crate) fn note_left(&mut self, ticket: u64) {
        self.executed.last = Some(ticket);
    }

    /// Notes that namespaces change under that ticket.
    pub(crate) fn note_other(&mut self, ticket: u64) {
        self.executed.note_other(ticket);
    }

    /// The ticket that a thread must wait for after that read, if any.
    pub(crate) fn seen_by(&self, namespace: NamespaceId, command: &Command<'_>) -> Option<u64> {
        self.changes().filter_map(|changes| changes.seen_by(namespace, command)).max()
    }

    /// The ticket that a thread must wait for after it read all namespaces.
    pub(crate) fn last(&self) -> Option<u64> {
        self.changes().filter_map(|changes| changes.last).max()
    }

    fn changes(&self) -> impl Iterator<Item = &Changes> {
        self.begun.iter().map(|(_, changes)| changes).chain([&self.executed])
    }
}

impl Changes {
    fn note(&mut self, ticket: u64, namespace: NamespaceId, command: &Command<'_>) {
        match command {
            Command::Store { key, .. } | Command::Delete { key } => self.note_key(ticket, namespace, key.bytes()),
            Command::Batch { changes } => {
                changes.iter().for_each(|change| self.note_key(ticket, change.namespace, change.key.bytes()));
            }
            // These change nothing that can be read.
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

    fn note_other(&mut self, ticket: u64) {
        (self.last, self.other) = (Some(ticket), Some(ticket));
    }

    fn seen_by(&self, namespace: NamespaceId, command: &Command<'_>) -> Option<u64> {
        // No change is uncommitted.
        self.last?;
        match command {
            Command::Retrieve { key, .. } | Command::Exist { key } => {
                self.keys.get(&hash_of(namespace, key.bytes())).copied().max(self.other)
            }
            // The thread has waited when the view was made.
            Command::Seek { .. } | Command::Next { .. } | Command::DestroyIterator { .. } => self.other,
            _ => self.last,
        }
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
    fn a_commit_that_waits_for_the_disk_is_not_safe_and_takes_nothing_with_it_that_came_later() {
        let mut loose = Loose::default();
        loose.note(1, ONE, &Command::Delete { key: Key::new(b"a").unwrap() });
        loose.note(2, ONE, &Command::Delete { key: Key::new(b"b").unwrap() });
        loose.begin(2);
        loose.note(3, ONE, &Command::Delete { key: Key::new(b"b").unwrap() });
        let seen = |loose: &Loose| ([b"a", b"b"].map(|key| loose.seen_by(ONE, &retrieve(key))), loose.last());
        assert_eq!(seen(&loose), ([Some(1), Some(3)], Some(3)));
        loose.end(2);
        assert_eq!(seen(&loose), ([None, Some(3)], Some(3)));
        loose.begin(3);
        assert_eq!(seen(&loose), ([None, Some(3)], Some(3)));
        loose.end(3);
        assert_eq!(seen(&loose), ([None, None], None));
    }

    #[test]
    fn commits_end_in_any_order_and_the_last_one_tells_of_all_before() {
        let mut loose = Loose::default();
        for (ticket, key) in (1..).zip([b"a", b"b", b"c"]) {
            loose.note(ticket, ONE, &Command::Delete { key: Key::new(key).unwrap() });
            loose.begin(ticket);
        }
        let seen = |loose: &Loose| [b"a", b"b", b"c"].map(|key| loose.seen_by(ONE, &retrieve(key)));
        assert_eq!(seen(&loose), [Some(1), Some(2), Some(3)]);
        loose.end(2);
        assert_eq!(seen(&loose), [None, None, Some(3)]);
        loose.end(1);
        assert_eq!((seen(&loose), loose.last()), ([None, None, Some(3)], Some(3)));
        loose.end(3);
        assert_eq!((seen(&loose), loose.last()), ([None; 3], None));
    }

    #[test]
    fn with_too_many_keys_all_wait() {
        let mut loose = Loose::default();
        for number in 0..KEYS_MAX as u64 + 1 {
            loose.note(number, ONE, &Command::Delete { key: Key::new(&number.to_le_bytes()).unwrap() });
        }
        assert_eq!(loose.seen_by(ONE, &retrieve(b"never")), Some(KEYS_MAX as u64));
        assert_eq!(loose.executed.keys.len(), KEYS_MAX);
    }
}
