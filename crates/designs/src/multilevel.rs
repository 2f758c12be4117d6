//! `multilevel`: the index of the drive that the Study paper measures: a hash table in levels (Study, section II; RHIK,
//! section III).
//!
//! ```text
//!   key -> signature -> local index -> Bloom filter -> level 0 -> level 1 -> ... level 7 -> place -> record
//!                       in DRAM        in DRAM         a bucket of each, in DRAM or one flash read
//! ```
//!
//! A bucket is a page of records. Level l has twice as many as level l - 1; a new record goes to the first level whose
//! bucket has room for it, and when none has, another level is opened. So the more pairs there are, the more levels are
//! searched. Changes gather in the local index and are merged into the levels, and into the buckets of the iterators,
//! together. The number of pairs has a limit, as the real drive's has.
//!
//! Where the design compares later, a store is not looked up: whether it has replaced a pair is found at the merge, as on the real
//! drive (`compare.rs`).
//!
//! How the real drive divides its levels is not published; sizes and the order of the search are estimates.

mod compare;
mod iterator;
mod local;
mod merge;
mod plan;

use self::iterator::{Bucket, IteratorBuckets, SavedIterators, SortKey};
use self::local::{LocalIndex, REPLACED, UNCOMPARED};
use crate::bloom::Bloom;
use crate::record_table::{HOPS, RecordTable, Signature};
use kvssd_ftl::index::{
    Growth, Index, IndexContents, IndexEntry, PairChange, Position, Room, SavedSections, Search, SectionForm,
    SectionIndex, View,
};
use kvssd_ftl::{DramUse, Grain};
use kvssd_types::{Key, KvError};
use serde::{Deserialize, Serialize};

pub use self::plan::MultilevelPlan;

/// Levels at the most (RHIK, section V: "8-level Multi-Level Hash Index").
const LEVELS_MAX: u32 = 8;
/// Levels that are opened when, against all odds, eight have no room for a record: nothing that was accepted is lost.
const LEVELS_EVER: u32 = 12;
/// Changes that a step merges. An estimate.
const MERGED_PER_STEP: usize = 32;
/// Uncompared pairs of one signature at the most. An estimate: a key that is stored again and again between two merges.
const UNCOMPARED_MAX: usize = 16;
/// Bits of a signature: the drive hashes keys to a fixed length (Study, section II), which is not published.
const SIGNATURE_BITS: u32 = 64;
/// How full all levels together become at the most. An estimate: buckets differ, and none may overflow.
const OCCUPANCY_PERCENT: u64 = 70;
/// The share of the sections' DRAM that tables of iterator buckets take. An estimate.
const ITERATOR_SHARE: u64 = 4;
/// The local index is merged when it has this share of the DRAM budget. An estimate.
const LOCAL_SHARE: u64 = 32;
/// The drive of 3.84 TB takes 3.1 thousand million pairs (Study, section IV): one for so many bytes, here of flash.
const BYTES_PER_PAIR: u64 = 3_840_000_000_000 / 3_100_000_000;

/// The index.
#[derive(Clone)]
pub struct Multilevel {
    form: RecordTable,
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

type Buckets<'v, 'm> = View<'v, 'm, RecordTable>;

impl Multilevel {
    fn new(plan: MultilevelPlan, room: &Room) -> Self {
        let (page_bytes, records_max) = (room.page_bytes, Multilevel::records_max(room));
        let form = RecordTable::new(page_bytes, SIGNATURE_BITS);
        let room = form.records() as u64 * ((1 << LEVELS_MAX) - 1) * OCCUPANCY_PERCENT / 100;
        let first_bits = records_max.div_ceil(room).next_power_of_two().ilog2();
        Multilevel {
            form,
            levels: 1,
            first_bits,
            local: LocalIndex::default(),
            bloom: Bloom::new(records_max * u64::from(plan.bloom_bits)),
            iterators: IteratorBuckets::new(page_bytes),
            plan,
            records: 0,
            records_max,
            budget_bytes: u64::MAX,
        }
    }

    /// The pairs that a drive may hold.
    fn records_max(room: &Room) -> u64 {
        (room.raw_bytes / BYTES_PER_PAIR).max(1)
    }

    /// Charges the directory of so many levels, and the filter.
    fn charge_levels(&self, levels: u32, dram: &mut DramUse) {
        dram.add("index_directory", first_of_level(self.first_bits, levels) * self.form.directory_entry_bytes());
        dram.add("index_bloom_filter", self.bloom.bytes());
    }

    /// The pairs with a signature, wherever they are known.
    fn places_of(&self, buckets: &mut Buckets<'_, '_>, tag: Signature) -> Result<Vec<Grain>, KvError> {
        let mut places = self.local.places_of(tag);
        for level in 0..self.levels {
            let bucket = self.section_at(tag, level);
            if !buckets.is_nowhere(bucket) {
                let ticket = buckets.load(bucket)?;
                places.extend(self.places_in(buckets.bytes(ticket), tag));
            }
        }
        places.sort_unstable();
        Ok(places)
    }

    /// The pairs with a signature in a bucket that no change covers.
    fn places_in<'b>(&'b self, bucket: &'b [u8], tag: Signature) -> impl Iterator<Item = Grain> + 'b {
        let places = self.form.find(bucket, tag).map(|slot| self.form.place_at(bucket, slot));
        places.filter(move |&place| !self.local.covers(tag, place))
    }

    /// The first of some places at which the key is.
    fn first_verified(buckets: &mut impl Search<RecordTable>, places: &[Grain]) -> Result<Option<Grain>, KvError> {
        for &place in places {
            if buckets.verify(place)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Whether there is no pair with that signature.
    fn is_first(&self, tag: Signature) -> bool {
        self.local.of(tag).is_empty() && !self.bloom.may_have(tag)
    }

    /// DRAM that the local index takes before it is merged.
    fn local_bytes_max(&self) -> u64 {
        self.budget_bytes / LOCAL_SHARE
    }
}

/// The number of the first bucket of a level: the count of the buckets in the levels before it.
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

impl SectionIndex for Multilevel {
    type Form = RecordTable;

    fn form(&self) -> RecordTable {
        self.form
    }

    fn sections(&self) -> u64 {
        first_of_level(self.first_bits, self.levels)
    }

    fn tags(&self) -> u64 {
        self.form.signatures()
    }

    fn section_of(&self, tag: u64) -> u64 {
        self.section_at(tag, 0)
    }

    fn levels(&self) -> u32 {
        self.levels
    }

    /// The bucket is the highest bits of the mixed signature, as many as the level has bits of buckets.
    fn section_at(&self, tag: u64, level: u32) -> u64 {
        first_of_level(self.first_bits, level) + prefix(mixed(tag), self.first_bits + level)
    }

    fn known(&self, tag: u64, place: Grain) -> Option<bool> {
        let is_here = self.local.has(tag, place);
        (is_here || self.local.covers(tag, place)).then_some(is_here)
    }

    fn find(&self, bucket: &[u8], tag: u64, place: Grain) -> (bool, u32) {
        (self.form.slot_of(bucket, tag, place).is_some(), self.form.comparisons(bucket, tag))
    }

    fn place_of(&self, bucket: &[u8], tag: u64) -> Option<Grain> {
        self.places_in(bucket, tag).next()
    }

    fn entries(&self, _number: u64, bucket: &[u8]) -> impl Iterator<Item = IndexEntry> {
        let records = self.form.records_from(bucket, 0).filter(|&(_, tag, place)| !self.local.covers(tag, place));
        records.map(|(_, tag, place)| IndexEntry { tag, place, note: 0 })
    }

    fn prepare(&mut self, _buckets: &mut Buckets<'_, '_>) -> Result<(), KvError> {
        self.iterators.begin_command();
        Ok(())
    }

    fn locate(&self, buckets: &mut impl Search<RecordTable>, key: Key<'_>, hash: u64) -> Result<Position, KvError> {
        buckets.look_up_directory();
        let tag = self.form.signature(hash);
        let local = self.local.places_of(tag);
        let mut place = Self::first_verified(buckets, &local)?;
        let (mut same, mut unread) = (local.len(), None);
        let mut level = if place.is_none() && self.bloom.may_have(tag) { 0 } else { self.levels };
        while level < self.levels && place.is_none() {
            let bucket = self.section_at(tag, level);
            level += 1;
            buckets.look_up_directory();
            if buckets.is_nowhere(bucket) {
                continue;
            }
            let ticket = match buckets.search(bucket) {
                // A merge has put what came later into a deeper level.
                Err(error @ KvError::Unrecovered(_)) => {
                    unread = Some(error);
                    continue;
                }
                ticket => ticket?,
            };
            let bytes = buckets.bytes(ticket);
            let (places, comparisons): (Vec<Grain>, _) =
                (self.places_in(bytes, tag).collect(), self.form.comparisons(bytes, tag));
            buckets.compare(comparisons.into());
            place = Self::first_verified(buckets, &places)?;
            same += places.len();
        }
        if let Some(error) = unread.filter(|_| place.is_none()) {
            return Err(error);
        }
        let is_refused = place.is_none() && (same >= HOPS || self.records >= self.records_max);
        let tag = if is_refused { Position::FULL } else { tag };
        Ok(Position { tag, place, hash, note: IteratorBuckets::bucket_of(key), value_bytes: None })
    }

    /// Not when there are as many pairs as there may be, or a list of them would be too long.
    fn position_uncompared(&self, key: Key<'_>, hash: u64) -> Option<Position> {
        let tag = self.form.signature(hash);
        let has_room = self.records < self.records_max && self.local.of(tag).len() < UNCOMPARED_MAX;
        let note = IteratorBuckets::bucket_of(key) | UNCOMPARED;
        has_room.then_some(Position { tag, place: None, hash, note, value_bytes: None })
    }

    fn compare(&mut self, buckets: &mut Buckets<'_, '_>, tags: Option<&[u64]>) -> Result<(), KvError> {
        match tags {
            Some(tags) => self.compare_all(buckets, tags),
            None => {
                let most = buckets.superblock_pages() / self.levels as usize;
                let signatures = self.local.signatures_uncompared();
                self.compare_all(buckets, &signatures[..signatures.len().min(most.clamp(1, MERGED_PER_STEP))])
            }
        }
    }

    fn uncompared(&self) -> Vec<Grain> {
        self.local.uncompared().collect()
    }

    /// All changes gather in the local index, those of garbage collection, too. The note is the key's iterator bucket.
    /// When a mount redoes them, the levels may have some of them already: the local index keeps every place that a
    /// record has had.
    fn change(&mut self, buckets: &mut Buckets<'_, '_>, change: &PairChange<'_>) -> Result<bool, KvError> {
        let (tag, from, to) = (change.tag(), change.from(), change.to());
        let bucket = match *change {
            PairChange::Move { .. } => None,
            // What no pair of its signature came before has replaced none.
            PairChange::Insert { note, .. } if !buckets.is_redo() && self.is_first(tag) => Some(note & !UNCOMPARED),
            PairChange::Insert { note, .. } => Some(note & !REPLACED),
            PairChange::Update { note, .. } => Some(note & !(UNCOMPARED | REPLACED)),
            PairChange::Remove { note, .. } => Some(note & !UNCOMPARED).filter(|note| note & REPLACED == 0),
        };
        self.records = change.count(self.records);
        if let PairChange::Insert { .. } | PairChange::Update { .. } = change {
            self.bloom.add(tag);
        }
        if let PairChange::Update { from, .. } = *change {
            // Its value has another length now.
            self.local.forget_key(from);
        }
        if buckets.is_redo() {
            self.local.change_again(tag, from, to, bucket);
        } else {
            self.local.change(tag, from, to, bucket);
            if let PairChange::Insert { key: Some(key), pair, .. } = *change
                && bucket.is_some_and(|bucket| bucket & UNCOMPARED != 0)
            {
                self.local.keep_key(pair, key.bytes());
            }
        }
        Ok(true)
    }

    fn growth(&self) -> Growth {
        match self.local_bytes_max() {
            most if self.local.takes(most) => Growth::Foreground,
            most if self.local.takes(most / 2) => Growth::Background,
            _ => self.iterators.growth(),
        }
    }

    fn grow(&mut self, buckets: &mut Buckets<'_, '_>) -> Result<(), KvError> {
        if !self.local.takes(self.local_bytes_max() / 2) {
            return self.iterators.grow(buckets.io);
        }
        let count = buckets.at_once().min(MERGED_PER_STEP);
        self.merge(buckets, count, false)
    }

    fn list(
        &mut self,
        buckets: &mut Buckets<'_, '_>,
        from: Option<Position>,
        count: usize,
    ) -> Result<Vec<Grain>, KvError> {
        if !self.plan.iterators {
            return Err(KvError::InvalidCommand("it was built without iterators"));
        }
        // Bucket by bucket of the iterators, with the keys that these have not been told of.
        let order = |(bucket, tag): (Bucket, Signature)| (IteratorBuckets::order(bucket, tag), tag);
        let start = from.map(|from| order((from.note, self.form.signature(from.hash))));
        let newcomers = self.local.newcomers().chain(self.iterators.newcomers());
        let newcomers: Vec<_> = newcomers.map(order).collect();
        let mut places = Vec::new();
        let mut next = Some(start.map_or((0, Grain(0)), |(first, _)| first));
        while places.len() < count
            && let Some(first) = next
        {
            let mut listed = self.iterators.list(buckets.io, first, count)?;
            let last = listed.last().filter(|_| listed.len() == count).map(|&(order, _)| order);
            let is_next = |order: SortKey| order >= first && last.is_none_or(|last| order <= last);
            listed.extend(newcomers.iter().filter(|(order, _)| is_next(*order)));
            listed.sort_unstable();
            listed.dedup();
            for (_, tag) in listed {
                if places.len() >= count {
                    break;
                }
                // Of the signature that was asked for, from that key on.
                let begin = from.filter(|_| start.is_some_and(|(_, first)| first == tag)).and_then(|from| from.place);
                let found = self.places_of(buckets, tag)?;
                places.extend(found.into_iter().filter(|&place| begin.is_none_or(|begin| place >= begin)));
            }
            next = last.map(|(reversed, rest)| (reversed, Grain(rest.0 + 1)));
        }
        places.truncate(count);
        Ok(places)
    }

    fn first_tag(&self, hash: u64) -> u64 {
        self.form.signature(hash)
    }

    fn contents(&self, contents: &mut IndexContents) {
        contents.entries.extend(self.local.places().map(|(tag, place)| IndexEntry { tag, place, note: 0 }));
    }

    /// Gives the buckets what the others leave of the budget.
    fn cache_bytes_max(&mut self, budget_bytes: u64) -> u64 {
        self.budget_bytes = budget_bytes;
        let mut tables = DramUse::default();
        self.charge_levels(self.levels, &mut tables);
        let taken = tables.total_bytes() + budget_bytes / LOCAL_SHARE + self.iterators.pending_bytes();
        let sections_bytes = budget_bytes.saturating_sub(taken);
        let for_iterators = if self.plan.iterators { sections_bytes / ITERATOR_SHARE } else { 0 };
        self.iterators.set_dram_budget(for_iterators);
        sections_bytes - for_iterators
    }

    fn dram(&self, dram: &mut DramUse) {
        self.charge_levels(self.levels, dram);
        dram.add("index_local", self.local.bytes() + self.iterators.pending_bytes());
    }

    fn second(&self) -> Option<&dyn Index> {
        Some(self.iterators.records())
    }

    fn second_mut(&mut self) -> Option<&mut dyn Index> {
        Some(self.iterators.records_mut())
    }

    fn save(&self, buckets: SavedSections) -> Vec<u8> {
        let iterators = self.plan.iterators.then(|| self.iterators.save());
        let (local, bloom) = (self.local.clone(), self.bloom.clone());
        let saved = Saved { levels: self.levels, local, bloom, records: self.records, buckets, iterators };
        postcard::to_allocvec(&saved).expect("a directory is plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<SavedSections> {
        let Saved { levels, local, bloom, records, buckets, iterators } = postcard::from_bytes(bytes).ok()?;
        let is_ours = records <= 1 << 48
            && (1..=LEVELS_EVER).contains(&levels)
            && bloom.bytes() == self.bloom.bytes()
            && local.is_sound()
            && iterators.is_some() == self.plan.iterators;
        is_ours.then_some(())?;
        (self.levels, self.local, self.bloom, self.records) = (levels, local, bloom, records);
        if let Some(iterators) = iterators {
            self.iterators.restore(iterators)?;
        }
        Some(buckets)
    }

    fn redo_section(&mut self, number: u64) -> bool {
        while number >= self.sections() && self.levels < LEVELS_EVER {
            self.levels += 1;
        }
        number < self.sections()
    }

    fn end_redo(&mut self, buckets: &mut Buckets<'_, '_>) -> Result<(), KvError> {
        let uncompared = self.take_uncompared(buckets)?;
        while self.local.count() > 0 {
            let batch = buckets.at_once();
            self.merge(buckets, batch, true)?;
        }
        let left: usize = uncompared.iter().map(|(_, changes)| changes.len()).sum();
        uncompared.into_iter().for_each(|(tag, changes)| self.local.put_back(tag, changes));
        self.iterators.recount(self.records - self.records.min(left as u64));
        Ok(())
    }
}
