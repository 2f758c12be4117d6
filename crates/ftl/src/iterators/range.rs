//! Which keys an iterator returns, and where a Seek among them begins.

use kvssd_types::{IteratorOptions, OwnedKey};

/// The keys that an iterator goes along.
#[derive(Clone, Debug)]
pub(super) struct Range {
    prefix: OwnedKey,
    first: OwnedKey,
    end: Option<OwnedKey>,
    descending: bool,
}

impl Range {
    pub(super) fn of(options: &IteratorOptions<'_>) -> Self {
        let IteratorOptions { prefix, first, end, descending, .. } = *options;
        Range { prefix: prefix.into(), first: first.into(), end: end.map(Into::into), descending }
    }

    pub(super) fn has(&self, key: &[u8]) -> bool {
        // Comparing zero bytes is slow on some processors: they look for the page of a masked load at the address of nothing.
        (self.prefix.is_empty() || key.starts_with(&self.prefix))
            && (self.first.is_empty() || *key >= *self.first)
            && self.end.as_ref().is_none_or(|end| *key < **end)
    }

    /// The key to seek to for the first pair from `key` on; none for the end of all keys.
    pub(super) fn begin(&self, key: Option<&[u8]>) -> Option<Vec<u8>> {
        let least: &[u8] = (&*self.prefix).max(&*self.first);
        if !self.descending {
            return Some(key.map_or(least, |key| key.max(least)).to_vec());
        }
        // The first key behind all keys with the prefix: its last byte below 0xff is incremented, and those behind it are cut off.
        let behind = self.prefix.iter().rposition(|&byte| byte < u8::MAX).map(|last| {
            let mut behind = self.prefix[..=last].to_vec();
            behind[last] += 1;
            behind
        });
        [key.map(<[u8]>::to_vec), behind, self.end.as_ref().map(|end| end.to_vec())].into_iter().flatten().min()
    }

    /// Whether a key outside of the range lies before it, in the cursor's direction.
    pub(super) fn is_before(&self, key: &[u8]) -> bool {
        self.descending
            && (self.end.as_ref().is_some_and(|end| *key >= **end)
                || *key > *self.prefix && !key.starts_with(&self.prefix))
    }
}
