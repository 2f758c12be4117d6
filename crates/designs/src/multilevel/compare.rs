//! How the local index finds out what its uncompared pairs have replaced: it compares their keys with those of the pairs that have
//! their signature.
//!
//! ```text
//!   store -> local index, uncompared -> answer            in between   the latest of its signature is looked at first
//!   merge: signature -> levels -> other pairs of it -> their keys from flash -> the pair before dies, its record is the new one's
//! ```
//!
//! The key of the later one is kept here until the merge. The real drive has it in its buffer: it programs a pair when it has merged it
//! (Study, section II).
//!
//! A record that can never be read is taken for the key's that its signature says, if it is the later one: a look-up must come to
//! an error, and not to what was there before.

use super::local::{LocalChange, REPLACED};
use super::{Buckets, MERGED_PER_STEP, Multilevel};
use crate::record_table::Signature;
use kvssd_ftl::index::SectionIndex;
use kvssd_ftl::{Grain, Io, PairPlace, readable};
use kvssd_types::{KvError, OwnedKey};
use std::collections::BTreeMap;

/// A pair that is older than an uncompared one.
struct Older {
    place: Grain,
    /// Its change, if it is here and not in the levels.
    change: Option<LocalChange>,
}

impl Multilevel {
    /// Compares the pairs with these signatures.
    pub(super) fn compare_all(
        &mut self,
        buckets: &mut Buckets<'_, '_>,
        signatures: &[Signature],
    ) -> Result<(), KvError> {
        let is_wanted = |tag: &Signature| self.local.of(*tag).iter().any(LocalChange::is_uncompared);
        let mut wanted: Vec<Signature> = signatures.iter().copied().filter(is_wanted).collect();
        wanted.sort_unstable();
        wanted.dedup();
        for some in wanted.chunks(buckets.at_once().min(MERGED_PER_STEP)) {
            let in_levels = self.in_levels(buckets, some)?;
            let mut to_read = Vec::new();
            for tag in some {
                let places =
                    self.local.places_of(*tag).into_iter().chain(in_levels.get(tag).into_iter().flatten().copied());
                let places: Vec<Grain> = places.collect();
                if places.len() > 1 {
                    to_read.extend(places.into_iter().filter(|&place| self.local.key_at(place).is_none()));
                }
            }
            buckets.io.read_heads(&to_read);
            for &tag in some {
                self.compare_one(buckets.io, tag, in_levels.get(&tag).map_or(&[], Vec::as_slice))?;
            }
        }
        Ok(())
    }

    /// The places that the levels have for these signatures, except for those that changes cover.
    fn in_levels(
        &self,
        buckets: &mut Buckets<'_, '_>,
        signatures: &[Signature],
    ) -> Result<BTreeMap<Signature, Vec<Grain>>, KvError> {
        let mut found: BTreeMap<Signature, Vec<Grain>> = BTreeMap::new();
        self.each_bucket(buckets, signatures, |this, tag, bucket| {
            let places: Vec<Grain> = this.places_in(bucket, tag).filter(|&place| !this.local.has(tag, place)).collect();
            if !places.is_empty() {
                found.entry(tag).or_default().extend(places);
            }
        })?;
        Ok(found)
    }

    /// Shows the buckets of these signatures in all levels that can be read.
    fn each_bucket(
        &self,
        buckets: &mut Buckets<'_, '_>,
        signatures: &[Signature],
        mut see: impl FnMut(&Self, Signature, &[u8]),
    ) -> Result<(), KvError> {
        for level in 0..self.levels {
            let numbers: Vec<u64> = signatures.iter().map(|&tag| self.section_at(tag, level)).collect();
            buckets.load_all(&numbers)?;
            for (&tag, number) in signatures.iter().zip(numbers) {
                buckets.look_up_directory();
                if !buckets.is_nowhere(number)
                    && let Some(ticket) = readable(buckets.load(number))?
                {
                    buckets.compare(self.form.comparisons(buckets.bytes(ticket), tag).into());
                    see(self, tag, buckets.bytes(ticket));
                }
            }
        }
        Ok(())
    }

    /// Compares the pairs of one signature, whose heads were read.
    fn compare_one(&mut self, io: &mut Io<'_>, tag: Signature, in_levels: &[Grain]) -> Result<(), KvError> {
        let changes = self.local.take(&[tag]).into_iter().map(|(_, change)| change);
        let (uncompared, mut kept): (Vec<LocalChange>, Vec<LocalChange>) =
            changes.partition(LocalChange::is_uncompared);
        let here = kept.extract_if(.., |change| change.place.is_some());
        let here = here.filter_map(|change| Some(Older { place: change.place?, change: Some(change) }));
        let mut older: Vec<Older> = here.collect();
        older.extend(in_levels.iter().map(|&place| Older { place, change: None }));
        for change in uncompared {
            let place = change.place.expect("an uncompared pair lies somewhere");
            let mut change = change.compared();
            let latest = if older.is_empty() { None } else { self.key_at(io, place)? };
            let mut left = Vec::with_capacity(older.len() + 1);
            for other in older {
                let before = self.key_at(io, other.place)?;
                let is_same = |(_, key): &(PairPlace, OwnedKey)| latest.as_ref().is_none_or(|(_, of)| of == key);
                let Some((pair, _)) = before.filter(is_same) else {
                    left.push(other);
                    continue;
                };
                io.pair_replaced(tag, REPLACED, pair)?;
                self.local.forget_key(other.place);
                self.records = self.records.saturating_sub(1);
                change.was.extend(other.change.map_or(vec![other.place], |before| before.was));
            }
            left.push(Older { place, change: Some(change) });
            older = left;
        }
        kept.extend(older.into_iter().filter_map(|older| older.change));
        self.local.put_back(tag, kept);
        Ok(())
    }

    /// The pair at `place`, whose head was read if its key is not kept here, and its key; none if it cannot be read.
    fn key_at(&self, io: &mut Io<'_>, place: Grain) -> Result<Option<(PairPlace, OwnedKey)>, KvError> {
        match self.local.key_at(place) {
            Some(kept) => Ok(Some(kept.clone())),
            None => {
                io.cpu(io.costs().key_compare_ns);
                readable(io.key_at(place))
            }
        }
    }

    /// After a mount has made all changes again: what the levels have was compared before it got there, whatever the changes say. The
    /// others stay uncompared and are given back by signature, for after the merge: a mount notes nothing.
    pub(super) fn take_uncompared(
        &mut self,
        buckets: &mut Buckets<'_, '_>,
    ) -> Result<Vec<(Signature, Vec<LocalChange>)>, KvError> {
        let mut left = Vec::new();
        for some in self.local.signatures_uncompared().chunks(buckets.at_once().min(MERGED_PER_STEP)) {
            let mut found: BTreeMap<Signature, Vec<Grain>> = BTreeMap::new();
            self.each_bucket(buckets, some, |this, tag, bucket| {
                let places = this.form.find(bucket, tag).map(|slot| this.form.place_at(bucket, slot));
                found.entry(tag).or_default().extend(places);
            })?;
            for &tag in some {
                let there = found.remove(&tag).unwrap_or_default();
                let is_new = |change: &mut LocalChange| {
                    change.is_uncompared() && !change.was.iter().chain(&change.place).any(|place| there.contains(place))
                };
                let changes = self.local.take(&[tag]).into_iter().map(|(_, change)| change);
                let mut changes: Vec<LocalChange> = changes.collect();
                let new: Vec<LocalChange> = changes.extract_if(.., is_new).collect();
                self.local.put_back(tag, changes.into_iter().map(LocalChange::compared).collect());
                left.push((tag, new.into_iter().map(|change| LocalChange { was: Vec::new(), ..change }).collect()));
            }
        }
        Ok(left)
    }
}
