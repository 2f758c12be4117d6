//! What is stored about large values: a manifest under the key, and a ledger beside the segments.
//!
//! ```text
//!   value of a pair   [0] value                                        it is in the record
//!                     [1] [id u64] [length u32] [segment bytes u32]    manifest, little endian
//!   segments          key: id u64, number u32, big endian              number 0 to length / segment bytes
//!   ledger            key: "ledger"                                    postcard
//! ```

use kvssd_types::{Key, KvError, Value};
use serde::{Deserialize, Serialize};

/// The tag of a value that is in the record.
const INLINE: u8 = 0;
/// The tag of a manifest.
const LARGE: u8 = 1;
/// Bytes of the tag before a value.
pub(super) const TAG_BYTES: u32 = 1;
/// Bytes of a manifest with its tag.
pub(super) const MANIFEST_BYTES: u32 = TAG_BYTES + 8 + 4 + 4;
/// The key of the ledger: shorter than that of any segment.
const LEDGER_KEY: &[u8] = b"ledger";

/// Where a large value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) id: u64,
    pub(super) value_bytes: u32,
    pub(super) segment_bytes: u32,
}

impl Manifest {
    /// The number of its segments.
    pub(super) fn segments(&self) -> u32 {
        self.value_bytes.div_ceil(self.segment_bytes)
    }

    /// The value of the pair.
    pub(super) fn encode(&self) -> Value {
        let mut bytes = vec![LARGE];
        bytes.extend(self.id.to_le_bytes());
        bytes.extend(self.value_bytes.to_le_bytes());
        bytes.extend(self.segment_bytes.to_le_bytes());
        Value::Bytes(bytes.into())
    }
}

/// What the value of a pair says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tagged {
    /// The value is behind the tag.
    Inline,
    /// It is elsewhere.
    Large(Manifest),
}

impl Tagged {
    /// Reads the begin of a pair's value: as much as a manifest has, or all.
    pub(super) fn read(value: &Value) -> Result<Tagged, KvError> {
        let bytes = value.slice(0..value.len().min(MANIFEST_BYTES as usize)).to_vec();
        let number =
            |at: usize| bytes.get(at..at + 4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        match (bytes.first(), number(1), number(5), number(9), number(13)) {
            (Some(&INLINE), ..) => Ok(Tagged::Inline),
            (Some(&LARGE), Some(low), Some(high), Some(value_bytes), Some(segment_bytes @ 1..)) => {
                let id = u64::from(high) << 32 | u64::from(low);
                Ok(Tagged::Large(Manifest { id, value_bytes, segment_bytes }))
            }
            _ => Err(KvError::Unrecovered("a pair's value has no tag of a drive of large values".to_owned())),
        }
    }

    /// The value of a pair that has `value` in it.
    pub(super) fn inline(value: &Value) -> Value {
        let mut bytes = Vec::with_capacity(1 + value.len());
        bytes.push(INLINE);
        match value {
            Value::Bytes(rest) => bytes.extend_from_slice(rest),
            described => bytes.extend(described.to_vec()),
        }
        Value::Bytes(bytes.into())
    }
}

pub(super) fn segment_key(id: u64, number: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&id.to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// The large values of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ledger {
    /// Greater than all ids that were used.
    pub(super) next_id: u64,
    /// Keys that have a large value.
    pub(super) values: u64,
    /// Ids that no key has, with their numbers of segments: they are being written, or to be deleted.
    pub(super) unowned: Vec<(u64, u32)>,
}

impl Ledger {
    pub(super) fn key() -> Key<'static> {
        Key::new(LEDGER_KEY).expect("six bytes are a key")
    }

    /// Its record.
    pub(super) fn encode(&self) -> Value {
        Value::Bytes(postcard::to_allocvec(self).expect("numbers can be written down").into())
    }

    pub(super) fn decode(value: &Value) -> Result<Ledger, KvError> {
        let damaged = |error: postcard::Error| KvError::Unrecovered(format!("the ledger of large values: {error}"));
        postcard::from_bytes(&value.to_vec()).map_err(damaged)
    }

    /// Notes that a key with the value `old` gets `new`.
    pub(super) fn replace(&mut self, old: Option<&Manifest>, new: Option<&Manifest>) {
        if let Some(new) = new {
            self.unowned.retain(|(id, _)| *id != new.id);
            self.values += 1;
        }
        if let Some(old) = old {
            self.unowned.push((old.id, old.segments()));
            self.values = self.values.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_reads_back() {
        let manifest = Manifest { id: u64::MAX - 7, value_bytes: 5_000_001, segment_bytes: 1 << 20 };
        assert_eq!(manifest.encode().len(), MANIFEST_BYTES as usize);
        assert_eq!(Tagged::read(&manifest.encode()).unwrap(), Tagged::Large(manifest));
        assert_eq!(manifest.segments(), 5);
        for value in [&b""[..], b"abc", &[1; 40]] {
            let tagged = Tagged::inline(&Value::from(value));
            assert_eq!((Tagged::read(&tagged).unwrap(), &tagged.to_vec()[1..]), (Tagged::Inline, value));
        }
        let ledger = Ledger { next_id: 9, values: 2, unowned: vec![(3, 4), (8, 1)] };
        assert_eq!(Ledger::decode(&ledger.encode()).unwrap(), ledger);
    }

    #[test]
    fn any_bytes_are_a_value_or_an_error() {
        for bytes in [&b""[..], &[1], &[1; 16], &[2; 30], &[1, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 0, 0, 0, 0]] {
            assert!(Tagged::read(&Value::from(bytes)).is_err(), "{bytes:?}");
        }
        assert!(Ledger::decode(&Value::from(&[255; 3][..])).is_err());
    }
}
