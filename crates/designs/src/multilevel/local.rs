//! The local index: changes that the levels do not have yet.
//!
//! ```text
//!   signature -> [ was: places that the record may have in the levels | place: where its pair lies now, none when it was deleted ]
//! ```
//!
//! It covers what the levels say: a record there whose place is among those that one here `was` is none any more.
//!
//! A pair that was stored without being looked up is *uncompared*: it may have replaced another one of its signature. Such pairs
//! stay in the order in which they came; all other pairs of their signature, here and in the levels, came before them.

use super::iterator::Bucket;
use crate::record_table::Signature;
use kvssd_ftl::{Grain, PairPlace};
use kvssd_types::OwnedKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// DRAM of a change: signature, two places, and what finds them.
const CHANGE_BYTES: u64 = 24;
/// DRAM of a pair's key beside its bytes: the lengths of key and value.
const KEY_BYTES: u64 = 4;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LocalChange {
    pub(crate) was: Vec<Grain>,
    pub(crate) place: Option<Grain>,
    /// The iterator bucket of the key, where that is known: where it came, or went. With [`UNCOMPARED`], if it is.
    pub(crate) bucket: Option<Bucket>,
}

/// In the note of a change and in `bucket`: the pair was stored without being looked up.
pub(super) const UNCOMPARED: Bucket = 1 << 8;
/// In the note of a change: the pair goes, but not its key, and the iterators need not know.
pub(super) const REPLACED: Bucket = 1 << 9;

impl LocalChange {
    /// Whether its pair is uncompared.
    pub(super) fn is_uncompared(&self) -> bool {
        self.place.is_some() && self.bucket.is_some_and(|bucket| bucket & UNCOMPARED != 0)
    }

    /// The same, compared.
    pub(super) fn compared(self) -> LocalChange {
        LocalChange { bucket: self.bucket(), ..self }
    }

    /// The iterator bucket of the key, where that is known.
    pub(super) fn bucket(&self) -> Option<Bucket> {
        self.bucket.map(|bucket| bucket & !(UNCOMPARED | REPLACED))
    }
}

/// All of them. The managers of the paper's drive each have a part of these by signature, which makes no difference
/// where one core after the other works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LocalIndex {
    changes: BTreeMap<Signature, Vec<LocalChange>>,
    count: u64,
    /// The pairs with their keys that came uncompared, by place, until they are merged: their records are on the way to flash, where
    /// reads would wait for programs. After a mount they are read.
    #[serde(skip)]
    keys: BTreeMap<Grain, (PairPlace, OwnedKey)>,
    #[serde(skip)]
    key_bytes: u64,
}

impl LocalIndex {
    pub(crate) fn bytes(&self) -> u64 {
        self.count * CHANGE_BYTES + self.key_bytes
    }

    /// Whether it takes so many bytes, and has two changes at the least.
    pub(crate) fn takes(&self, bytes: u64) -> bool {
        self.count >= 2 && self.bytes() + CHANGE_BYTES > bytes
    }

    /// Keeps the key of a pair until it is merged.
    pub(crate) fn keep_key(&mut self, pair: PairPlace, key: &[u8]) {
        self.key_bytes += KEY_BYTES + key.len() as u64;
        self.keys.insert(pair.place, (pair, key.into()));
    }

    /// The pair at `place` and its key, if it is kept.
    pub(crate) fn key_at(&self, place: Grain) -> Option<&(PairPlace, OwnedKey)> {
        self.keys.get(&place)
    }

    /// The key of the pair at `place` is kept no longer.
    pub(crate) fn forget_key(&mut self, place: Grain) -> Option<(PairPlace, OwnedKey)> {
        let kept = self.keys.remove(&place)?;
        self.key_bytes -= KEY_BYTES + kept.1.len() as u64;
        Some(kept)
    }

    /// The pair at `from` goes, or lies at `to`.
    fn move_key(&mut self, from: Option<Grain>, to: Option<Grain>) {
        let kept = from.and_then(|from| self.forget_key(from));
        if let (Some((pair, key)), Some(place)) = (kept, to) {
            self.keep_key(PairPlace { place, ..pair }, &key);
        }
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
        self.move_key(from, to);
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
            came.filter_map(move |change| Some((change.bucket()?, signature)))
        })
    }

    /// The places of pairs with `signature`, the latest first of those that are uncompared, and these first of all.
    pub(crate) fn places_of(&self, signature: Signature) -> Vec<Grain> {
        let places = |uncompared: bool| {
            let some = self.of(signature).iter().filter(move |change| change.is_uncompared() == uncompared);
            some.filter_map(|change| change.place)
        };
        places(true).collect::<Vec<_>>().into_iter().rev().chain(places(false)).collect()
    }

    /// The places of all uncompared pairs.
    pub(crate) fn uncompared(&self) -> impl Iterator<Item = Grain> {
        self.changes.values().flatten().filter(|change| change.is_uncompared()).filter_map(|change| change.place)
    }

    /// The signatures of uncompared pairs.
    pub(crate) fn signatures_uncompared(&self) -> Vec<Signature> {
        let some = self.changes.iter().filter(|(_, changes)| changes.iter().any(LocalChange::is_uncompared));
        some.map(|(&signature, _)| signature).collect()
    }

    /// The first signatures, of `count` changes or one more.
    pub(crate) fn first(&self, count: usize) -> Vec<Signature> {
        let mut left = count;
        let is_more = |changes: &Vec<LocalChange>| {
            let is_more = left > 0;
            left = left.saturating_sub(changes.len());
            is_more
        };
        let mut is_more = is_more;
        self.changes.iter().take_while(|(_, changes)| is_more(changes)).map(|(&signature, _)| signature).collect()
    }

    /// Takes the changes of these signatures out, in their order; where a place was used again, what ends its earlier pair comes first.
    pub(crate) fn take(&mut self, signatures: &[Signature]) -> Vec<(Signature, LocalChange)> {
        let taken = signatures.iter().flat_map(|&signature| {
            let mut changes = self.changes.remove(&signature).unwrap_or_default();
            if is_any_place_used_again(&changes) {
                changes.sort_by_key(|change| change.place.is_some());
            }
            changes.into_iter().map(move |change| (signature, change))
        });
        let taken: Vec<_> = taken.collect();
        self.count -= taken.len() as u64;
        taken
    }

    /// Puts changes of a signature back that were taken out.
    pub(crate) fn put_back(&mut self, signature: Signature, changes: Vec<LocalChange>) {
        if !changes.is_empty() {
            self.count += changes.len() as u64;
            self.changes.insert(signature, changes);
        }
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

/// Whether a pair of a signature lies, or lay, where another one of it was that is no more.
fn is_any_place_used_again(changes: &[LocalChange]) -> bool {
    let (gone, living): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.place.is_none());
    let mut places = living.iter().flat_map(|change| change.was.iter().chain(&change.place));
    !gone.is_empty() && places.any(|place| gone.iter().any(|change| change.was.contains(place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its superblock was erased in between. The levels have the later pair already, or still the earlier one: it goes, and comes again.
    #[test]
    fn what_ends_the_earlier_pair_of_a_place_comes_before_the_later_pair() {
        let [place, between] = [Grain(7), Grain(9)];
        let mut local = LocalIndex::default();
        local.change_again(1, None, Some(between), None);
        local.change_again(1, Some(place), None, None);
        local.change_again(1, Some(between), Some(place), None);
        let order: Vec<Option<Grain>> = local.take(&[1]).into_iter().map(|(_, change)| change.place).collect();
        assert_eq!(order, [None, Some(place)]);
        local.change_again(1, None, Some(between), None);
        local.change_again(1, Some(place), None, None);
        let order: Vec<Option<Grain>> = local.take(&[1]).into_iter().map(|(_, change)| change.place).collect();
        assert_eq!(order, [Some(between), None], "else they keep their order");
    }
}
