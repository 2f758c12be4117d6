//! The local index: changes that the levels do not have yet.
//!
//! ```text
//!   signature -> [ was: places that the record may have in the levels | place: where its pair lies now, none when it was deleted ]
//! ```
//!
//! It covers what the levels say: a record there whose place is among those that one here `was` is none any more.

use super::iterator::Bucket;
use crate::record_table::Signature;
use kvssd_ftl::Grain;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// DRAM of a change: signature, two places, and what finds them.
const CHANGE_BYTES: u64 = 24;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LocalChange {
    pub(crate) was: Vec<Grain>,
    pub(crate) place: Option<Grain>,
    /// The iterator bucket of the key, where that is known: where it came, or went.
    pub(crate) bucket: Option<Bucket>,
}

/// All of them. The managers of the paper's drive each have a part of these by signature, which makes no difference
/// where one core after the other works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LocalIndex {
    changes: BTreeMap<Signature, Vec<LocalChange>>,
    count: u64,
}

impl LocalIndex {
    pub(crate) fn bytes(&self) -> u64 {
        self.count * CHANGE_BYTES
    }

    /// The most changes that fit into so many bytes.
    pub(crate) fn changes_max(bytes: u64) -> u64 {
        bytes / CHANGE_BYTES
    }

    /// The number of changes.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The changes of records with `signature`.
    pub(crate) fn of(&self, signature: Signature) -> &[LocalChange] {
        self.changes.get(&signature).map_or(&[], Vec::as_slice)
    }

    /// Whether a record at `place` in the levels is none any more.
    pub(crate) fn covers(&self, signature: Signature, place: Grain) -> bool {
        self.of(signature).iter().any(|change| change.was.contains(&place))
    }

    /// Whether a pair lies at `place` by one of the changes.
    pub(crate) fn has(&self, signature: Signature, place: Grain) -> bool {
        self.of(signature).iter().any(|change| change.place == Some(place))
    }

    /// The record whose pair lay at `from`, here or in the levels, has it at `to`; none for the record of a new key, or
    /// one that is no more.
    pub(crate) fn change(
        &mut self,
        signature: Signature,
        from: Option<Grain>,
        to: Option<Grain>,
        bucket: Option<Bucket>,
    ) {
        let changes = self.changes.entry(signature).or_default();
        let known = changes.iter().position(|change| from.is_some() && change.place == from);
        match known {
            Some(index) => {
                let change = &mut changes[index];
                change.place = to;
                change.bucket = change.bucket.or(bucket);
                if to.is_none() && change.was.is_empty() {
                    changes.remove(index);
                    self.count -= 1;
                }
            }
            None => {
                changes.push(LocalChange { was: from.into_iter().collect(), place: to, bucket });
                self.count += 1;
            }
        }
        if changes.is_empty() {
            self.changes.remove(&signature);
        }
    }

    /// As [`LocalIndex::change`], while nobody knows which of the places the levels have.
    pub(crate) fn change_again(
        &mut self,
        signature: Signature,
        from: Option<Grain>,
        to: Option<Grain>,
        bucket: Option<Bucket>,
    ) {
        let changes = self.changes.entry(signature).or_default();
        match changes.iter_mut().find(|change| from.is_some() && change.place == from) {
            Some(change) => {
                change.was.extend(from);
                change.place = to;
                change.bucket = change.bucket.or(bucket);
            }
            None => {
                changes.push(LocalChange { was: from.into_iter().collect(), place: to, bucket });
                self.count += 1;
            }
        }
    }

    /// The keys that came by one of the changes, with their buckets.
    pub(crate) fn newcomers(&self) -> impl Iterator<Item = (Bucket, Signature)> {
        self.changes.iter().flat_map(|(&signature, changes)| {
            let came = changes.iter().filter(|change| change.was.is_empty() && change.place.is_some());
            came.filter_map(move |change| Some((change.bucket?, signature)))
        })
    }

    /// Takes up to `count` changes out, in the order of their signatures; more when one signature has more.
    pub(crate) fn take(&mut self, count: usize) -> Vec<(Signature, LocalChange)> {
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count
            && let Some((signature, changes)) = self.changes.pop_first()
        {
            taken.extend(changes.into_iter().map(|change| (signature, change)));
        }
        self.count -= taken.len() as u64;
        taken
    }

    /// The pairs that lie somewhere by one of the changes.
    pub(crate) fn places(&self) -> impl Iterator<Item = (Signature, Grain)> {
        self.changes.iter().flat_map(|(&signature, changes)| {
            changes.iter().filter_map(move |change| change.place.map(|place| (signature, place)))
        })
    }

    /// Whether it counts what it holds, for bytes from flash.
    pub(crate) fn is_sound(&self) -> bool {
        self.count == self.changes.values().map(|changes| changes.len() as u64).sum::<u64>()
    }
}
