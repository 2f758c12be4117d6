//! Puts stamps behind values, and takes them off.

use super::Caches;
use super::clock::stamp_next;
use kvssd_types::{Command, KvError, NamespaceId, Nanos, Pattern, Reply, Value};

/// Bytes of a stamp: nanoseconds, little endian, of the clock that the drive is told.
pub(crate) const STAMP_BYTES: u32 = 8;

impl Caches {
    /// A pair is stored in a cache now: it gets the next stamp. Returns when it will be too old.
    pub(super) fn stamp(&mut self, namespace: NamespaceId) -> Nanos {
        let now = self.clock.now();
        let cache = self.all.get_mut(&namespace).expect("it is a cache");
        cache.stamp = stamp_next(now, cache.stamp);
        cache.attributes.expires(cache.stamp)
    }

    /// When a pair with this stamp will be too old. One whose age is not known is too old from the first, where there is a time to live.
    pub(super) fn expires_of(&mut self, namespace: NamespaceId, stamp: Nanos) -> Nanos {
        let attributes = &self.all[&namespace].attributes;
        let has_known_age = self.clock.knows(stamp) || attributes.time_to_live_ms.is_none();
        if has_known_age { attributes.expires(stamp) } else { Nanos::ZERO }
    }

    /// A value with the last stamp of its cache behind it.
    pub(super) fn stamped(&self, namespace: NamespaceId, value: &Value) -> Value {
        match value {
            Value::Pattern(pattern) if self.is_measured => {
                Value::Pattern(Pattern { length: pattern.length + STAMP_BYTES, ..*pattern })
            }
            value => {
                let mut bytes = Vec::with_capacity(value.len() + STAMP_BYTES as usize);
                match value {
                    Value::Bytes(held) => bytes.extend_from_slice(held),
                    described @ Value::Pattern(_) => bytes.extend(described.to_vec()),
                }
                bytes.extend(self.all[&namespace].stamp.0.to_le_bytes());
                Value::Bytes(bytes.into())
            }
        }
    }
}

/// Which part of a value a command asks for, if its answer brings values.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    offset_bytes: u32,
}

impl Asked {
    pub(super) fn of(command: &Command<'_>) -> Self {
        match *command {
            Command::Retrieve { offset_bytes, .. } => Asked { offset_bytes },
            _ => Asked { offset_bytes: 0 },
        }
    }

    /// An answer without stamps.
    pub(super) fn without_stamp(self, reply: Reply) -> Result<Reply, KvError> {
        let short = || KvError::Unrecovered("a pair of a cache has no stamp behind its value".to_owned());
        match reply {
            Reply::Retrieved { value, value_bytes } => {
                let value_bytes = value_bytes.checked_sub(STAMP_BYTES).ok_or_else(short)?;
                let end = value.len().min(value_bytes.saturating_sub(self.offset_bytes) as usize);
                Ok(Reply::Retrieved { value: value.slice(0..end), value_bytes })
            }
            Reply::Pairs(pairs) => {
                let cut = |value: Value| -> Result<Value, KvError> {
                    let end = value.len().checked_sub(STAMP_BYTES as usize).ok_or_else(short)?;
                    Ok(value.slice(0..end))
                };
                let pairs = pairs.into_iter().map(|(key, value)| Ok((key, value.map(cut).transpose()?)));
                pairs.collect::<Result<Vec<_>, KvError>>().map(Reply::Pairs)
            }
            other => Ok(other),
        }
    }
}
