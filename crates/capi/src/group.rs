//! Key groups: the keys whose first four bytes have a pattern, and the way along them.
//!
//! ```text
//!   no order      all keys of the key space, those of the group picked out
//!   ascending     from the group's least key up to the first one behind the group
//!   descending    from the group's greatest key down
//! ```

use crate::abi::{KEY_BYTES_MAX, KvsKeyGroupFilter};
use crate::order::Order;
use crate::refusal::{KvsResult, Refusal};
use kvssd_host::{KeyCursor, Namespace};
use std::cmp::Ordering;

/// Keys that are asked for at a time where they are met backwards.
const PAGE_KEYS: u32 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyGroup {
    mask: u32,
    pattern: u32,
}

impl KeyGroup {
    /// The group of a filter. The set bits of its mask must be the first ones, as on a real drive.
    pub(crate) fn of(filter: &KvsKeyGroupFilter) -> Result<KeyGroup, Refusal> {
        let mask = u32::from_be_bytes(filter.bitmask);
        if mask.leading_ones() != mask.count_ones() {
            let why = format!("the set bits of bit mask {mask:08x} are not its first ones");
            return Err(Refusal::new(KvsResult::IteratorFilterInvalid, why));
        }
        Ok(KeyGroup { mask, pattern: u32::from_be_bytes(filter.bit_pattern) & mask })
    }

    /// Where a key lies: before the group, in it or behind it. What a key of less than four bytes has not is 0.
    fn side(self, key: &[u8]) -> Ordering {
        let mut first = [0; 4];
        let bytes = key.len().min(4);
        first[..bytes].copy_from_slice(&key[..bytes]);
        (u32::from_be_bytes(first) & self.mask).cmp(&self.pattern)
    }

    /// The least key that can be in it, if it has more than the empty one before it.
    fn first(self) -> Option<Vec<u8>> {
        let mut key = self.pattern.to_be_bytes().to_vec();
        // A shorter key, which others may have stored, is less than the same with zeros behind it.
        while key.last() == Some(&0) {
            key.pop();
        }
        (!key.is_empty()).then_some(key)
    }

    /// The greatest key that can be in it.
    fn last(self) -> Vec<u8> {
        let mut key = (self.pattern | !self.mask).to_be_bytes().to_vec();
        key.resize(KEY_BYTES_MAX.into(), u8::MAX);
        key
    }
}

/// How far somebody has come along the keys of a group.
#[derive(Debug)]
pub(crate) struct GroupCursor {
    group: KeyGroup,
    position: Position,
    is_at_end: bool,
}

#[derive(Debug)]
enum Position {
    NoOrder(KeyCursor),
    Ascending(KeyCursor),
    Descending {
        last: Box<[u8]>,
        /// Whether that key was met; before the first page it is the greatest that can be.
        is_met: bool,
    },
}

impl GroupCursor {
    /// Before the first key.
    pub(crate) fn new(group: KeyGroup, order: Order) -> Self {
        let position = match order {
            Order::None => Position::NoOrder(KeyCursor::default()),
            Order::Ascending => Position::Ascending(KeyCursor::new(group.first().as_deref())),
            Order::Descending => Position::Descending { last: group.last().into(), is_met: false },
        };
        GroupCursor { group, position, is_at_end: false }
    }

    /// Whether there are no more keys.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Some of the keys that come next; none may be before the end, too.
    pub(crate) fn next_page(&mut self, pairs: Namespace<'_>) -> Result<Vec<Box<[u8]>>, Refusal> {
        let (mut keys, beyond) = match &mut self.position {
            Position::NoOrder(cursor) => (cursor.next_page(pairs)?, None),
            Position::Ascending(cursor) => (cursor.next_page(pairs)?, Some(Ordering::Greater)),
            Position::Descending { last, is_met } => {
                let mut keys = pairs.list_descending(Some(last), PAGE_KEYS)?;
                if *is_met {
                    keys.retain(|key| key != last);
                }
                if let Some(key) = keys.last() {
                    (*last, *is_met) = (key.clone(), true);
                }
                (keys, Some(Ordering::Less))
            }
        };
        let group = self.group;
        self.is_at_end = keys.last().is_none_or(|last| Some(group.side(last)) == beyond);
        keys.retain(|key| group.side(key).is_eq());
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_host::NamespaceAttributes;

    #[test]
    fn keys_of_the_largest_values_are_all_met_from_the_greatest_down() {
        let folder = tempfile::tempdir().unwrap();
        let store = kvssd_host::Store::open(folder.path().join("drive.kv"), Default::default()).unwrap();
        let attributes = NamespaceAttributes { is_ordered: true, ..NamespaceAttributes::PLAIN };
        let pairs = store.create_namespace(attributes).unwrap();
        let value = vec![7; usize::try_from(store.stats().unwrap().value_bytes_max).unwrap()];
        (0..5u8).for_each(|number| pairs.store(&[number], &value).unwrap());
        let all = KeyGroup::of(&KvsKeyGroupFilter { bitmask: [0; 4], bit_pattern: [0; 4] }).unwrap();
        let (mut cursor, mut met) = (GroupCursor::new(all, Order::Descending), Vec::new());
        while !cursor.is_at_end() {
            met.extend(cursor.next_page(pairs).unwrap());
        }
        assert_eq!(met, [4, 3, 2, 1, 0].map(|number| Box::from([number])));
    }

    #[test]
    fn a_group_is_told_by_the_first_bits_of_a_key() {
        let group = |bitmask, bit_pattern| KeyGroup::of(&KvsKeyGroupFilter { bitmask, bit_pattern });
        let has = |group: KeyGroup, key: &[u8]| group.side(key).is_eq();
        let keys = group([0xff, 0xff, 0, 0], *b"ab??").unwrap();
        assert!(has(keys, b"abxy") && has(keys, b"abcdefgh") && has(keys, b"ab"));
        assert_eq!((keys.side(b"acxy"), keys.side(b"a")), (Ordering::Greater, Ordering::Less));
        assert_eq!((keys.first().unwrap(), &keys.last()[..5]), (b"ab".to_vec(), &b"ab\xff\xff\xff"[..]));
        let all = group([0; 4], *b"abcd").unwrap();
        assert!(has(all, b"any key") && all.first().is_none());
        assert!(has(group([0xff; 4], *b"abcd").unwrap(), b"abcde"));
        assert!(
            has(group([0xf0, 0, 0, 0], [0x6f, 0, 0, 0]).unwrap(), b"a") && group([0xff, 0, 0xff, 0], [0; 4]).is_err()
        );
    }
}
