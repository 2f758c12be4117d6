//! `two-choice`: a hash index in which each key has two buckets, and is known there by a fingerprint.
//!
//! ```text
//!   key -> hash -> bucket a, fingerprint -> bucket b: a turned by the fingerprint     a new key goes where there is more room
//!
//!   bucket    a page: words in ascending order, then zeros
//!   word      [fingerprint u23 | in b u1 | place u40]
//!   tag       fingerprint and bucket a: it follows from a word and the number of its bucket
//! ```
//!
//! At most two flash reads find a word, and one more the record. The number of pairs has a limit, which keeps buckets from overflowing.

use kvssd_designs::SortedWords;
use kvssd_ftl::index::{
    Forecast, IndexEntry, Outlook, PairChange, Parameters, Position, Room, SavedSections, Search, SectionForm,
    SectionIndex, SectionPlan, View, Visit,
};
use kvssd_ftl::{Design, Grain, IndexChoice};
use kvssd_types::{Key, KvError};

/// Bits of a place.
const PLACE_BITS: u32 = 40;
/// Bits of a fingerprint.
const FINGERPRINT_BITS: u32 = 23;

#[derive(Clone, Debug)]
pub struct TwoChoicePlan {
    /// A slot for each so many bytes of flash.
    pub flash_bytes_per_slot: u32,
    /// The share of the slots that pairs may take.
    pub load_percent_max: u32,
}

/// The design: this index, and of `rhik` what else a drive needs.
pub fn design() -> Design {
    Design {
        name: "two-choice",
        description: "hash index with two buckets a key and fingerprints, an example of a design of one's own",
        index: IndexChoice::of(&TwoChoicePlan { flash_bytes_per_slot: 512, load_percent_max: 90 }),
        ..kvssd_designs::RHIK
    }
}

#[derive(Clone)]
pub struct TwoChoice {
    form: SortedWords,
    bucket_bits: u32,
    pairs: u64,
    pairs_max: u64,
}

impl SectionPlan for TwoChoicePlan {
    type Index = TwoChoice;

    fn name(&self) -> &'static str {
        "two-choice"
    }

    fn parameters(&mut self) -> Parameters<'_> {
        vec![("flash_bytes_per_slot", &mut self.flash_bytes_per_slot), ("load_percent_max", &mut self.load_percent_max)]
    }

    fn index(&self, room: &Room) -> Result<TwoChoice, String> {
        if room.grains >= 1 << PLACE_BITS || self.flash_bytes_per_slot < 8 || self.load_percent_max > 95 {
            return Err("two-choice takes 2^40 grains, slots of 8 bytes at least, and 95 % of these".to_owned());
        }
        let form = SortedWords { bytes: room.page_bytes };
        let buckets = (room.raw_bytes / u64::from(self.flash_bytes_per_slot)).div_ceil(form.slots() as u64);
        let bucket_bits = buckets.next_power_of_two().max(2).ilog2();
        let pairs_max = ((form.slots() as u64) << bucket_bits) * u64::from(self.load_percent_max) / 100;
        Ok(TwoChoice { form, bucket_bits, pairs: 0, pairs_max })
    }

    /// Half of the pairs are in the second of their buckets.
    fn forecast(&self, index: &TwoChoice, outlook: &Outlook) -> Option<Forecast> {
        let (buckets, form) = (index.sections(), index.form());
        let directory_bytes = buckets * form.directory_entry_bytes();
        let mut forecast = Forecast::of_sections(outlook, buckets, form.bytes.into(), directory_bytes);
        forecast.visits.push(Visit { reached: 0.5, ..forecast.visits[0] });
        Some(forecast)
    }
}

/// The place that a word names.
fn place_of(word: u64) -> Grain {
    Grain(word & ((1 << PLACE_BITS) - 1))
}

impl TwoChoice {
    /// The other bucket of a key that has this one. It is its own inverse.
    fn other(&self, bucket: u64, fingerprint: u64) -> u64 {
        let turn = fingerprint.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - self.bucket_bits);
        bucket ^ (turn | 1)
    }

    /// The word of a pair in its bucket a (level 0) or b (level 1).
    fn word(&self, tag: u64, level: u32, place: Grain) -> u64 {
        (tag >> self.bucket_bits << 1 | u64::from(level)) << PLACE_BITS | place.0
    }

    /// The places of pairs with that tag in their bucket of a level.
    fn places(&self, bucket: &[u8], tag: u64, level: u32) -> impl Iterator<Item = Grain> {
        let [first, limit] = [0, (1 << PLACE_BITS) - 1].map(|place| self.word(tag, level, Grain(place)));
        SortedWords::words(bucket, first, limit).map(place_of)
    }
}

impl SectionIndex for TwoChoice {
    type Form = SortedWords;

    fn form(&self) -> SortedWords {
        self.form
    }

    fn sections(&self) -> u64 {
        1 << self.bucket_bits
    }

    fn tags(&self) -> u64 {
        1 << (FINGERPRINT_BITS + self.bucket_bits)
    }

    fn section_of(&self, tag: u64) -> u64 {
        tag & (self.sections() - 1)
    }

    fn levels(&self) -> u32 {
        2
    }

    fn section_at(&self, tag: u64, level: u32) -> u64 {
        let a = self.section_of(tag);
        if level == 0 { a } else { self.other(a, tag >> self.bucket_bits) }
    }

    fn find(&self, bucket: &[u8], tag: u64, place: Grain) -> (bool, u32) {
        let is_there = (0..2).any(|level| self.places(bucket, tag, level).any(|other| other == place));
        (is_there, SortedWords::comparisons(bucket))
    }

    fn place_of(&self, bucket: &[u8], tag: u64) -> Option<Grain> {
        self.places(bucket, tag, 0).next()
    }

    fn entries(&self, number: u64, bucket: &[u8]) -> impl Iterator<Item = IndexEntry> {
        SortedWords::words(bucket, 0, u64::MAX).map(move |word| {
            let (fingerprint, in_b) = (word >> (PLACE_BITS + 1), word >> PLACE_BITS & 1 == 1);
            let a = if in_b { self.other(number, fingerprint) } else { number };
            IndexEntry { tag: fingerprint << self.bucket_bits | a, place: place_of(word), note: 0 }
        })
    }

    /// The note is the level where the key is, or would be put.
    fn locate(&self, buckets: &mut impl Search<SortedWords>, _key: Key<'_>, hash: u64) -> Result<Position, KvError> {
        let tag = self.first_tag(hash);
        let mut taken = [0; 2];
        for level in 0..2 {
            buckets.look_up_directory();
            let ticket = buckets.search(self.section_at(tag, level))?;
            let places: Vec<Grain> = self.places(buckets.bytes(ticket), tag, level).collect();
            taken[level as usize] = SortedWords::count(buckets.bytes(ticket));
            buckets.compare(SortedWords::comparisons(buckets.bytes(ticket)).into());
            for place in places {
                if buckets.verify(place)? {
                    return Ok(Position { tag, place: Some(place), hash, note: level, value_bytes: None });
                }
            }
        }
        let level = u32::from(taken[1] < taken[0]);
        let is_full = self.pairs >= self.pairs_max || taken[level as usize] == self.form.slots();
        let tag = if is_full { Position::FULL } else { tag };
        Ok(Position { tag, place: None, hash, note: level, value_bytes: None })
    }

    fn change(&mut self, view: &mut View<'_, '_, SortedWords>, change: &PairChange<'_>) -> Result<bool, KvError> {
        self.pairs = change.count(self.pairs);
        let tag = change.tag();
        let levels = match *change {
            PairChange::Insert { note, .. } => note.min(1)..note.min(1) + 1,
            _ => 0..2,
        };
        let mut is_done = false;
        for level in levels {
            let word = |place| self.word(tag, level, place);
            let (old, new) = (change.from().map(word), change.to().map(word));
            is_done |= view.edit(self.section_at(tag, level), |form, bucket| form.replace(bucket, old, new))?;
            // A mount is told of a bucket that was written behind the change that it was done there: the pair may be in the other.
            if is_done && !view.is_redo() {
                break;
            }
        }
        Ok(is_done)
    }

    fn first_tag(&self, hash: u64) -> u64 {
        hash >> (u64::BITS - FINGERPRINT_BITS - self.bucket_bits)
    }

    fn pairs(&self) -> Option<u64> {
        Some(self.pairs)
    }

    fn save(&self, buckets: SavedSections) -> Vec<u8> {
        postcard::to_allocvec(&(self.pairs, buckets)).expect("a directory is plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<SavedSections> {
        let (pairs, buckets) = postcard::from_bytes(bytes).ok()?;
        self.pairs = pairs;
        Some(buckets)
    }
}
