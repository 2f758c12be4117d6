//! Rows: what a record of a workload holds, and how it lies in a value.
//!
//! ```text
//!   key     | number 8, high end first |            of the table, a namespace
//!
//!   value   | stamp | word | word | ... | the pattern that the stamp names, to the end |
//!             8       8 each
//! ```
//!
//! A value is the [`Pattern`] of its stamp, with the row's words written over its bytes from the ninth on. No two values that
//! are written have the same stamp, so that what a transaction reads says who wrote it, in the first bytes; that the last ones
//! are of the same stamp says that the value is whole. A row without words is a pattern and nothing else, and takes no memory.
//!
//! What it does not do: hold the text columns of the benchmarks. Nobody computes with them, and their room is in the padding.

use super::engine::RecordId;
use kvssd_sim::SimError;
use kvssd_types::{Key, NamespaceId, Pattern, Value, mix64, unmix64};
use std::fmt;

/// Bits of a row's number: the bits of a stamp without its table.
const NUMBER_BITS: u32 = 56;
/// Bits of the number of a write within its attempt.
const WRITE_BITS: u32 = 10;
/// Of stamps of loaded rows.
const LOADED: u64 = 1 << 63;
const WORD_BYTES: usize = 8;

/// Names a row: a record whose key is a number below 2^56. There are at most 127 tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId {
    /// The table.
    pub table: NamespaceId,
    /// The number.
    pub number: u64,
}

impl RowId {
    /// Row `number` of the table of `R`.
    #[must_use]
    pub fn of<R: Row>(number: u64) -> RowId {
        RowId { table: R::TABLE, number }
    }

    /// The bytes of its key: in the order of the numbers.
    #[must_use]
    pub fn key_bytes(self) -> [u8; 8] {
        assert!(self.number >> NUMBER_BITS == 0 && self.table.0 < 128, "{self} has no stamp of its own");
        self.number.to_be_bytes()
    }

    /// The record, given the bytes of its key.
    pub(super) fn record(self, key_bytes: &[u8; 8]) -> RecordId<'_> {
        RecordId { table: self.table, key: Key::new(key_bytes).expect("eight bytes are a key") }
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{:x}", self.table, self.number)
    }
}

/// Names a version of a row: who wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u64);

impl Stamp {
    /// Of a row that was loaded.
    #[must_use]
    pub fn loaded(row: RowId) -> Stamp {
        Stamp(LOADED | u64::from(row.table.0) << NUMBER_BITS | row.number)
    }

    /// Of the write of that number in an attempt to run a transaction.
    #[must_use]
    pub fn written(attempt: u64, write: u64) -> Stamp {
        assert!(attempt < LOADED >> WRITE_BITS && write >> WRITE_BITS == 0, "the stamps are used up");
        Stamp(attempt << WRITE_BITS | write)
    }

    /// The attempt that wrote it; none when it was loaded.
    #[must_use]
    pub fn attempt(self) -> Option<u64> {
        (self.0 & LOADED == 0).then_some(self.0 >> WRITE_BITS)
    }

    /// Of a value that a row was given; none when the value is not whole.
    #[must_use]
    pub fn of(value: &Value) -> Option<Stamp> {
        match value {
            Value::Pattern(Pattern { seed, offset: 0, .. }) => Some(Stamp(*seed)),
            Value::Pattern(_) => None,
            Value::Bytes(bytes) => {
                let first = u64::from_le_bytes(*bytes.first_chunk()?);
                let stamp = Stamp(unmix64(first).wrapping_sub(mix64(0)));
                let mut last = [0; WORD_BYTES];
                let from = bytes.len() - WORD_BYTES;
                stamp.pattern(bytes.len() as u32).fill(from..bytes.len(), &mut last);
                (last == bytes[from..]).then_some(stamp)
            }
        }
    }

    /// The value of a row without words.
    #[must_use]
    pub fn filler(self, value_bytes: u32) -> Value {
        Value::Pattern(self.pattern(value_bytes))
    }

    fn pattern(self, value_bytes: u32) -> Pattern {
        Pattern { seed: self.0, offset: 0, length: value_bytes }
    }
}

/// What a record of a table holds.
pub trait Row: Sized {
    /// The table.
    const TABLE: NamespaceId;
    /// The size of its values.
    const VALUE_BYTES: u32;

    /// Gives its words one after the other.
    fn encode(&self, words: &mut Vec<i64>);

    /// The row of these words; where there are none left, zeros.
    fn decode(words: &mut dyn FnMut() -> i64) -> Self;

    /// Its value.
    ///
    /// # Panics
    /// When it has more words than the value has room for beside the stamps.
    fn to_value(&self, stamp: Stamp) -> Value {
        let mut words = Vec::new();
        self.encode(&mut words);
        let length = Self::VALUE_BYTES as usize;
        assert!((words.len() + 2) * WORD_BYTES <= length, "the row has no room in its value");
        let mut bytes = vec![0; length];
        stamp.pattern(Self::VALUE_BYTES).fill(0..length, &mut bytes);
        for (room, word) in bytes[WORD_BYTES..].chunks_exact_mut(WORD_BYTES).zip(words) {
            room.copy_from_slice(&word.to_le_bytes());
        }
        Value::Bytes(bytes.into())
    }

    /// The row that a value was made of; none when it is not whole.
    fn of_value(value: &Value) -> Option<Self> {
        let Value::Bytes(bytes) = value else { return None };
        if bytes.len() != Self::VALUE_BYTES as usize {
            return None;
        }
        Stamp::of(value)?;
        let mut words = bytes[WORD_BYTES..].chunks_exact(WORD_BYTES);
        let mut next = || words.next().map_or(0, |word| i64::from_le_bytes(word.try_into().expect("a word")));
        Some(Self::decode(&mut next))
    }
}

/// Makes rows of words: each field is an `i64`.
macro_rules! rows {
    ($($(#[$doc:meta])* $name:ident: table $table:literal, $bytes:literal bytes { $($(#[$field_doc:meta])* $field:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: i64,)*
        }

        impl $crate::transactions::Row for $name {
            const TABLE: kvssd_types::NamespaceId = kvssd_types::NamespaceId($table);
            const VALUE_BYTES: u32 = $bytes;

            fn encode(&self, words: &mut Vec<i64>) {
                words.extend([$(self.$field),*]);
            }

            fn decode(words: &mut dyn FnMut() -> i64) -> Self {
                $(let $field = words();)*
                $name { $($field),* }
            }
        }
    )*};
}
pub(super) use rows;

/// Reads a row of a store, wherever that is: an engine, or a drive that came back after a power cut.
pub type ReadValue<'r> = dyn FnMut(RowId) -> Result<Option<Value>, SimError> + 'r;

/// Rows of a store, read one by one outside of the benchmark.
pub struct Rows<'r>(pub &'r mut ReadValue<'r>);

impl Rows<'_> {
    /// Row `number` of the table of `R`, if it is there.
    ///
    /// # Errors
    /// When the store fails, or the value is none of such a row.
    pub fn find<R: Row>(&mut self, number: u64) -> Result<Option<R>, SimError> {
        let Some(value) = (self.0)(RowId::of::<R>(number))? else { return Ok(None) };
        R::of_value(&value).map(Some).ok_or(SimError::WrongValues(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    rows! {
        /// A row.
        Pair: table 3, 64 bytes {
            /// One.
            left,
            /// Other.
            right,
        }
    }

    proptest! {
        #[test]
        fn a_row_comes_back_from_its_value_and_so_does_its_stamp(left: i64, right: i64, attempt in 0u64..1 << 40, write in 0u64..1000) {
            let stamp = Stamp::written(attempt, write);
            let row = Pair { left, right };
            let value = row.to_value(stamp);
            prop_assert_eq!(value.len(), 64);
            prop_assert_eq!(Pair::of_value(&value), Some(row));
            prop_assert_eq!(Stamp::of(&value), Some(stamp));
            prop_assert_eq!(stamp.attempt(), Some(attempt));
        }

        #[test]
        fn a_value_of_two_halves_is_told(left: u64, right: u64) {
            prop_assume!(left != right);
            let [mut torn, other] = [left, right].map(|stamp| Pair { left: 1, right: 2 }.to_value(Stamp(stamp)).to_vec());
            torn[32..].copy_from_slice(&other[32..]);
            prop_assert_eq!(Pair::of_value(&Value::Bytes(torn.into())), None);
        }
    }

    #[test]
    fn a_filler_has_a_stamp_as_pattern_and_as_bytes() {
        let row = RowId { table: NamespaceId(2), number: 77 };
        let filler = Stamp::loaded(row).filler(100);
        let bytes = Value::Bytes(filler.to_vec().into());
        assert_eq!([Stamp::of(&filler), Stamp::of(&bytes)], [Some(Stamp::loaded(row)); 2]);
        assert_eq!(Stamp::loaded(row).attempt(), None);
    }
}
