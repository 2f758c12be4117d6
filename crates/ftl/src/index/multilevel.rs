//! `multilevel`: the index of the drive that the Study paper measures: a hash table in levels (Study, section II; RHIK,
//! section III).
//!
//! ```text
//!   key -> signature -> local index -> Bloom filter -> level 0 -> level 1 -> ... level 7 -> place -> record
//!                       in DRAM        in DRAM         a bucket of each, in DRAM or one flash read
//! ```
//!
//! A bucket is a page of records. Level l has twice as many as level l - 1; a new record goes to the first level whose bucket has room
//! for it, and when none has, another level is opened. So the more pairs there are, the more levels are searched. Changes gather in the
//! local index and are merged into the levels, and into the buckets of the iterators, together. The number of pairs has a limit, as the real drive's has.
//!
//! How the real drive divides its levels is not published; sizes and the order of the search are estimates.

mod iterator;
mod local;
mod merge;
mod plan;

use self::iterator::{Bucket, IteratorBuckets, SavedIterators, Standing};
use self::local::LocalIndex;
use crate::address::Grain;
use crate::dram::DramUse;
use crate::index::bloom::Bloom;
use crate::index::lookups::Lookups;
use crate::index::plan::Room;
use crate::index::record_table::{HOPS, RecordTable, Signature};
use crate::index::sections::{SavedSections, SectionForm, Sections};
use crate::index::{Fate, Growth, Holds, Index, IndexCounters, IndexFault, Move, OwnRecord, Position, Seen, Survey};
use crate::io::{Io, readable};
use crate::journal::{Change, PairPlace};
use kvssd_types::{Key, KvError};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

pub use self::plan::MultilevelPlan;

/// Levels at the most (RHIK, section V: "8-level Multi-Level Hash Index").
const LEVELS_MAX: u32 = 8;
/// Levels that are opened when, against all odds, eight have no room for a record: nothing that was accepted is lost.
const LEVELS_EVER: u32 = 12;
/// Changes that a step merges. An estimate.
const MERGED_PER_STEP: usize = 32;
/// Bits of a signature: the drive hashes keys to a fixed length (Study, section II), which is not published.
const SIGNATURE_BITS: u32 = 64;
/// How full all levels together become at the most. An estimate: buckets differ, and none may overflow.
const OCCUPANCY_PERCENT: u64 = 70;
/// The share of the sections' DRAM that tables of iterator buckets take. An estimate.
const ITERATOR_SHARE: u64 = 4;
/// The local index is merged when it has this share of the DRAM budget. An estimate.
const LOCAL_SHARE: u64 = 32;
/// The drive of 3.84 TB takes 3.1 thousand million pairs (Study, section IV): one for so many bytes. Here of flash, as the RHIK paper's
/// drive of 150 GB has it.
const BYTES_PER_PAIR: u64 = 3_840_000_000_000 / 3_100_000_000;

/// The index.
pub struct Multilevel {
    buckets: Sections<RecordTable>,
    /// Levels that are open.
    levels: u32,
    /// log2 of the buckets of level 0.
    first_bits: u32,
    local: LocalIndex,
    bloom: Bloom,
    iterators: IteratorBuckets,
    plan: MultilevelPlan,
    records: u64,
    records_max: u64,
    budget_bytes: u64,
    lookups: Lookups,
}

/// What a checkpoint holds of it.
#[derive(Serialize, Deserialize)]
struct Saved {
    levels: u32,
    local: LocalIndex,
    bloom: Bloom,
    records: u64,
    buckets: SavedSections,
    /// None of a drive without iterators.
    iterators: Option<SavedIterators>,
}

impl Multilevel {
    fn new(plan: MultilevelPlan, room: &Room) -> Self {
        let Room { page_bytes, raw_bytes, .. } = *room;
        let form = RecordTable::new(page_bytes, SIGNATURE_BITS);
        let records_max = (raw_bytes / BYTES_PER_PAIR).max(1);
        let room = form.records() as u64 * ((1 << LEVELS_MAX) - 1) * OCCUPANCY_PERCENT / 100;
        let first_bits = records_max.div_ceil(room).next_power_of_two().ilog2();
        Multilevel {
            buckets: Sections::new(form, first_of_level(first_bits, 1), page_bytes),
            levels: 1,
            first_bits,
            local: LocalIndex::default(),
            bloom: Bloom::new(records_max * u64::from(plan.bloom_bits)),
            iterators: IteratorBuckets::new(page_bytes),
            plan,
            records: 0,
            records_max,
            budget_bytes: u64::MAX,
            lookups: Lookups::default(),
        }
    }

    fn charge_tables(&self, dram: &mut DramUse) {
        let buckets = first_of_level(self.first_bits, self.levels);
        dram.add("index_directory", buckets * self.form().directory_entry_bytes());
        dram.add("index_bloom_filter", self.bloom.bytes());
    }

    fn form(&self) -> RecordTable {
        *self.buckets.form()
    }

    fn signature(&self, key: Key<'_>) -> Signature {
        self.form().signature_of(key)
    }

    /// The bucket of a level that a signature belongs to: as many of its mixed bits, from the highest on, as the level has.
    fn bucket(&self, signature: Signature, level: u32) -> u64 {
        first_of_level(self.first_bits, level) + prefix(mixed(signature), self.first_bits + level)
    }

    /// Whether the record of `tag` whose pair lies at one of `places` is in a bucket; if so, at which slot.
    fn slot_in(
        &mut self,
        io: &mut Io<'_>,
        bucket: u64,
        tag: Signature,
        places: &[Grain],
    ) -> Result<Option<usize>, KvError> {
        io.cpu(io.costs().section_ns);
        if self.buckets.is_nowhere(bucket) {
            return Ok(None);
        }
        let ticket = self.buckets.load(io, bucket)?;
        let (form, bytes) = (self.form(), self.buckets.bytes(ticket));
        io.cpu(u64::from(form.comparisons(bytes, tag)) * io.costs().comparison_ns);
        Ok(form.find(bytes, tag).find(|&slot| places.contains(&form.place_at(bytes, slot))))
    }

    /// Looks through the levels for the record with `tag` whose pair lies at `place`.
    fn find(&mut self, io: &mut Io<'_>, tag: Signature, place: Grain) -> Result<Option<(u64, usize)>, KvError> {
        for level in 0..self.levels {
            let bucket = self.bucket(tag, level);
            if let Some(slot) = self.slot_in(io, bucket, tag, &[place])? {
                return Ok(Some((bucket, slot)));
            }
        }
        Ok(None)
    }

    fn change_record(
        &mut self,
        io: &mut Io<'_>,
        (bucket, slot): (u64, usize),
        place: Option<Grain>,
    ) -> Result<(), KvError> {
        self.buckets.change(io, bucket, |form, bytes| match place {
            Some(place) => form.set_place(bytes, slot, place),
            None => form.remove(bytes, slot),
        })?;
        self.buckets.keep_to_budget(io)
    }

    /// The pairs with a signature, wherever they are known.
    fn places_of(&mut self, io: &mut Io<'_>, tag: Signature) -> Result<Vec<Grain>, KvError> {
        let mut places: Vec<Grain> = self.local.of(tag).iter().filter_map(|change| change.place).collect();
        for level in 0..self.levels {
            let bucket = self.bucket(tag, level);
            if !self.buckets.is_nowhere(bucket) {
                let ticket = self.buckets.load(io, bucket)?;
                let (form, bytes) = (self.form(), self.buckets.bytes(ticket));
                let found = form.find(bytes, tag).map(|slot| form.place_at(bytes, slot));
                places.extend(found.filter(|&place| !self.local.covers(tag, place)));
            }
        }
        places.sort_unstable();
        Ok(places)
    }

    /// Changes that the local index takes before it is merged.
    fn local_max(&self) -> u64 {
        LocalIndex::changes_max(self.budget_bytes / LOCAL_SHARE).max(2)
    }

    /// Gives the buckets what the others leave of the budget.
    fn share_budget(&mut self) {
        let mut tables = DramUse::default();
        self.charge_tables(&mut tables);
        let taken = tables.total_bytes() + self.budget_bytes / LOCAL_SHARE + self.iterators.pending_bytes();
        let sections_bytes = self.budget_bytes.saturating_sub(taken);
        let for_iterators = if self.plan.iterators { sections_bytes / ITERATOR_SHARE } else { 0 };
        self.iterators.set_dram_budget(for_iterators);
        self.buckets.set_budget(sections_bytes - for_iterators);
    }
}

/// The number of the first bucket of a level, which is that of all buckets before it.
fn first_of_level(first_bits: u32, level: u32) -> u64 {
    ((1 << level) - 1) << first_bits
}

/// A signature with its bits mixed, so that the highest depend on all.
fn mixed(signature: Signature) -> u64 {
    let mixed = (signature ^ signature >> 32).wrapping_mul(0x9fb2_1c65_1e98_df25);
    mixed ^ mixed >> 29
}

/// The highest `bits` of a mixed signature.
fn prefix(mixed: u64, bits: u32) -> u64 {
    mixed.checked_shr(64 - bits).unwrap_or(0)
}

impl Index for Multilevel {
    fn locate(&mut self, io: &mut Io<'_>, key: Key<'_>, holds: &mut Holds<'_>) -> Result<Position, KvError> {
        self.lookups.begin(self.buckets.counters());
        self.buckets.wear_off_surplus();
        self.iterators.wear_off_surplus();
        io.cpu(io.costs().hash_ns + io.costs().section_ns);
        let (hash, tag) = (xxh3_64(key.bytes()), self.signature(key));
        // It probes nothing: what the journal keeps for that is the key's iterator bucket.
        let mut position =
            Position { tag, place: None, hash, probes: IteratorBuckets::bucket_of(key), value_bytes: None };
        let local: Vec<Grain> = self.local.of(tag).iter().filter_map(|change| change.place).collect();
        let mut same = self.hold_first(io, &local, holds, &mut position)?;
        let mut level = if position.place.is_none() && self.bloom.may_have(tag) { 0 } else { self.levels };
        while level < self.levels && position.place.is_none() {
            let bucket = self.bucket(tag, level);
            level += 1;
            io.cpu(io.costs().section_ns);
            if self.buckets.is_nowhere(bucket) {
                continue;
            }
            self.lookups.access();
            let ticket = self.buckets.load(io, bucket)?;
            let (form, bytes) = (self.form(), self.buckets.bytes(ticket));
            io.cpu(u64::from(form.comparisons(bytes, tag)) * io.costs().comparison_ns);
            let places = form.find(bytes, tag).map(|slot| form.place_at(bytes, slot));
            let places: Vec<Grain> = places.filter(|&place| !self.local.covers(tag, place)).collect();
            same += self.hold_first(io, &places, holds, &mut position)?;
        }
        if position.place.is_none() && (same >= HOPS || self.records >= self.records_max) {
            position.tag = Position::FULL;
        }
        self.lookups.end(self.buckets.counters());
        Ok(position)
    }

    fn bind(&mut self, _io: &mut Io<'_>, _key: Key<'_>, position: Position, pair: PairPlace) -> Result<(), KvError> {
        self.local.change(position.tag, position.place, Some(pair.place), Some(position.probes));
        self.bloom.add(position.tag);
        self.records += u64::from(position.place.is_none());
        Ok(())
    }

    fn unbind(&mut self, _io: &mut Io<'_>, _key: Key<'_>, position: Position) -> Result<(), KvError> {
        self.local.change(position.tag, position.place, None, Some(position.probes));
        self.records = self.records.saturating_sub(1);
        Ok(())
    }

    /// What garbage collection moves is a change like any other: it gathers in the local index.
    fn relocate(&mut self, io: &mut Io<'_>, moves: &mut [Move]) -> Result<(), KvError> {
        let pairs: Vec<(u64, Grain)> = moves.iter().map(|pair| (pair.tag, pair.from)).collect();
        for (pair, is_bound) in moves.iter_mut().zip(self.are_bound(io, &pairs)?) {
            pair.fate = match is_bound {
                Some(true) => Fate::Moved,
                Some(false) => Fate::Dead,
                None => Fate::Unreadable,
            };
            if pair.fate == Fate::Moved {
                let Move { tag, from, to, grains, .. } = *pair;
                io.note(Change::Moved { tag, from, to, grains });
                self.local.change(tag, Some(from), Some(to), None);
            }
        }
        Ok(())
    }

    fn is_bound(&mut self, io: &mut Io<'_>, tag: u64, place: Grain) -> Result<bool, KvError> {
        if self.local.has(tag, place) || self.local.covers(tag, place) {
            return Ok(self.local.has(tag, place));
        }
        Ok(self.find(io, tag, place)?.is_some())
    }

    fn are_bound(&mut self, io: &mut Io<'_>, pairs: &[(u64, Grain)]) -> Result<Vec<Option<bool>>, KvError> {
        let in_local = |&(tag, place): &(u64, Grain)| match self.local.has(tag, place) {
            true => Some(true),
            false => self.local.covers(tag, place).then_some(false),
        };
        let known: Vec<Option<bool>> = pairs.iter().map(in_local).collect();
        let mut bound: Vec<Option<bool>> = known.iter().map(|known| Some(known.unwrap_or(false))).collect();
        let mut pending: Vec<usize> = (0..pairs.len()).filter(|&number| known[number].is_none()).collect();
        for level in 0..self.levels {
            pending.sort_unstable_by_key(|&number| self.bucket(pairs[number].0, level));
            let mut left = Vec::new();
            for numbers in pending.chunks(self.buckets.at_once(io)) {
                let buckets: Vec<u64> = numbers.iter().map(|&number| self.bucket(pairs[number].0, level)).collect();
                self.buckets.load_all(io, &buckets)?;
                for (&number, bucket) in numbers.iter().zip(buckets) {
                    let (tag, place) = pairs[number];
                    match readable(self.slot_in(io, bucket, tag, &[place]))? {
                        Some(Some(_)) => bound[number] = Some(true),
                        Some(None) => left.push(number),
                        // It may be there; another level will not tell.
                        None => bound[number] = None,
                    }
                }
            }
            pending = left;
        }
        Ok(bound)
    }

    fn relocate_own(&mut self, io: &mut Io<'_>, number: u64, from: Grain) -> Result<(), KvError> {
        if IteratorBuckets::has(number) {
            return self.iterators.relocate_own(io, number, from);
        }
        self.buckets.relocate_own(io, number, from)
    }

    fn growth(&self) -> Growth {
        match self.local.count() {
            count if count >= self.local_max() => Growth::Foreground,
            count if count >= self.local_max() / 2 => Growth::Background,
            _ => self.iterators.growth(),
        }
    }

    fn grow(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        if self.local.count() < self.local_max() / 2 {
            return self.iterators.grow(io);
        }
        let count = self.buckets.at_once(io).min(MERGED_PER_STEP);
        self.merge(io, count, false)
    }

    fn list(
        &mut self,
        io: &mut Io<'_>,
        from: Option<Position>,
        count: usize,
        places: &mut Vec<Grain>,
    ) -> Result<(), KvError> {
        if !self.plan.iterators {
            return Err(KvError::InvalidCommand("it was built without iterators"));
        }
        // Bucket by bucket of the iterators, with the keys that these have not been told of.
        let order = |(bucket, tag): (Bucket, Signature)| (IteratorBuckets::order(bucket, tag), tag);
        let start = from.map(|from| order((from.probes, self.form().signature(from.hash))));
        let newcomers = self.local.newcomers().chain(self.iterators.newcomers());
        let newcomers: Vec<_> = newcomers.map(order).collect();
        let mut next = Some(start.map_or((0, Grain(0)), |(first, _)| first));
        while places.len() < count
            && let Some(first) = next
        {
            let mut listed = self.iterators.list(io, first, count)?;
            let last = listed.last().filter(|_| listed.len() == count).map(|&(order, _)| order);
            let is_next = |order: Standing| order >= first && last.is_none_or(|last| order <= last);
            listed.extend(newcomers.iter().filter(|(order, _)| is_next(*order)));
            listed.sort_unstable();
            listed.dedup();
            for (_, tag) in listed {
                if places.len() >= count {
                    break;
                }
                // Of the signature that was asked for, from that key on.
                let begin = from.filter(|_| start.is_some_and(|(_, first)| first == tag)).and_then(|from| from.place);
                let found = self.places_of(io, tag)?;
                places.extend(found.into_iter().filter(|&place| begin.is_none_or(|begin| place >= begin)));
            }
            next = last.map(|(reversed, rest)| (reversed, Grain(rest.0 + 1)));
        }
        places.truncate(count);
        Ok(())
    }

    fn own_records(&self) -> Vec<OwnRecord> {
        self.buckets.own_records().chain(self.iterators.own_records()).collect()
    }

    fn survey(&self, io: &mut Io<'_>) -> Survey {
        let mut survey = Survey::default();
        let form = self.form();
        self.buckets.survey(io, &mut survey, |number, bytes, survey| {
            for (_, tag, place) in form.records_from(bytes, 0) {
                if !self.local.covers(tag, place) {
                    survey.seen.push(Seen { tag, place, passes: 0 });
                }
                if (0..self.levels).all(|level| self.bucket(tag, level) != number) {
                    let why = "it has a record that belongs to another bucket".to_owned();
                    survey.faults.push(IndexFault { number, place, why, loses_pairs: true });
                }
            }
        });
        let local = self.local.places().map(|(tag, place)| Seen { tag, place, passes: 0 });
        survey.seen.extend(local);
        self.iterators.survey(io, &mut survey);
        survey.seen.sort_unstable_by_key(|seen| (seen.tag, seen.place));
        survey
    }

    fn tag_of(&self, key: Key<'_>) -> Option<u64> {
        Some(self.signature(key))
    }

    fn way_to(&self, key: Key<'_>, tag: u64, _way: &mut Vec<u64>) -> bool {
        self.signature(key) == tag
    }

    fn set_dram_budget(&mut self, bytes: u64) {
        self.budget_bytes = bytes;
        self.share_budget();
    }

    fn dram(&self, dram: &mut DramUse) {
        self.charge_tables(dram);
        dram.add("index_local", self.local.bytes());
        self.buckets.dram(dram);
        self.iterators.dram(dram);
    }

    fn footprint_bytes(&self) -> u64 {
        self.buckets.footprint_bytes() + self.iterators.footprint_bytes()
    }

    fn counters(&self) -> IndexCounters {
        let (mut counters, iterators) = (self.lookups.counters(self.buckets.counters()), self.iterators.counters());
        for side in 0..2 {
            counters.bytes_read[side] += iterators.bytes_read[side];
            counters.bytes_written[side] += iterators.bytes_written[side];
        }
        counters
    }

    fn save(&self) -> Vec<u8> {
        let (local, bloom, buckets) = (self.local.clone(), self.bloom.clone(), self.buckets.save());
        let iterators = self.plan.iterators.then(|| self.iterators.save());
        let saved = Saved { levels: self.levels, local, bloom, records: self.records, buckets, iterators };
        postcard::to_allocvec(&saved).expect("a directory is plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        let Saved { levels, local, bloom, records, buckets, iterators } = postcard::from_bytes(bytes).ok()?;
        let is_ours = records <= 1 << 48
            && (1..=LEVELS_EVER).contains(&levels)
            && bloom.bytes() == self.bloom.bytes()
            && local.is_sound()
            && iterators.is_some() == self.plan.iterators;
        if !is_ours {
            return None;
        }
        (self.levels, self.local, self.bloom, self.records) = (levels, local, bloom, records);
        self.buckets.grow(first_of_level(self.first_bits, self.levels));
        if let Some(iterators) = iterators {
            self.iterators.restore(iterators)?;
        }
        self.buckets.restore(buckets)
    }

    fn redo_own(&mut self, change: &Change, position: usize) -> Option<()> {
        match *change {
            Change::Own { number, .. } | Change::Split { number, .. } if IteratorBuckets::has(number) => {
                self.iterators.redo_own(change, position)
            }
            Change::Own { number, place, bytes, .. } => {
                while number >= first_of_level(self.first_bits, self.levels) {
                    if self.levels == LEVELS_EVER {
                        return None;
                    }
                    self.open_level();
                }
                self.buckets.redo_written(number, place, bytes, position)
            }
            Change::Split { .. } => None,
            _ => Some(()),
        }
    }

    /// The levels may have any of the changes, in any of their places. All are put into the local index, which knows the places.
    fn redo(&mut self, _io: &mut Io<'_>, change: &Change, _position: usize) -> Result<(), KvError> {
        match *change {
            Change::Bound { tag, pair, old, probes } => {
                self.records += u64::from(old.is_none());
                self.bloom.add(tag);
                self.local.change_again(tag, old.map(|old| old.place), Some(pair.place), Some(probes));
            }
            Change::Unbound { tag, old, probes } => {
                self.records = self.records.saturating_sub(1);
                self.local.change_again(tag, Some(old.place), None, Some(probes));
            }
            Change::Moved { tag, from, to, .. } => self.local.change_again(tag, Some(from), Some(to), None),
            _ => {}
        }
        Ok(())
    }

    fn end_redo(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        self.buckets.end_redo(io)?;
        self.iterators.end_redo(io)?;
        while self.local.count() > 0 {
            let batch = self.buckets.at_once(io);
            self.merge(io, batch, true)?;
        }
        self.iterators.recount(self.records);
        self.buckets.end_redo(io)
    }
}

impl Multilevel {
    /// Asks of each place, in order, whether it holds the key, until one does; gives how many were asked.
    fn hold_first(
        &mut self,
        io: &mut Io<'_>,
        places: &[Grain],
        holds: &mut Holds<'_>,
        position: &mut Position,
    ) -> Result<usize, KvError> {
        for &place in places {
            if holds(io, place)? {
                position.place = Some(place);
                break;
            }
            self.lookups.collide();
        }
        Ok(places.len())
    }
}
