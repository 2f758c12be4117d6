//! Designs of one's own with a mistake each: the check that is there for it tells, in one line.

use kvssd_conformance::{SUITE, power_cuts, run_check};
use kvssd_designs::SortedWords;
use kvssd_flash::{PowerLoss, RopeBacking};
use kvssd_ftl::index::{
    Growth, IndexEntry, PairChange, Parameters, Position, Room, SavedSections, Search, SectionIndex, SectionPlan, View,
};
use kvssd_ftl::{Design, Grain, IndexChoice};
use kvssd_measure::Quiet;
use kvssd_types::{Key, KvError};

const PLACE_BITS: u32 = 40;
const FINGERPRINT_BITS: u32 = 20;
/// Pairs of which a bucket is full by half.
const PAIRS_MAX: u64 = 60_000;

/// A parameter that `dram-hash` has, too.
const BYTES_PER_SLOT: u32 = 512;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    /// It is none that a change looks at its bucket before it edits it.
    LooksBeforeItChanges,
    TakesOneForAnother,
    RefusesSomeKeys,
    IsFullBehindMounts,
    CountsTooFewTags,
    HasSectionsOfTwoPages,
    ForgetsMovesBehindCuts,
    TrustsWhatItRestores,
    TrustsNotes,
    TrustsSplits,
    ListsAllFromAbsentKeys,
    ListsTooMany,
    OutgrowsItsForm,
    WorksForEver,
}

/// Buckets of words, as `examples/own-design` has two of for each key.
#[derive(Clone, Debug)]
struct Plan(Mistake, u32);

#[derive(Clone)]
struct Buckets {
    form: SortedWords,
    bits: u32,
    pairs: u64,
    is_mounted: bool,
    mistake: Mistake,
}

impl SectionPlan for Plan {
    type Index = Buckets;

    fn name(&self) -> &'static str {
        "buckets"
    }

    fn parameters(&mut self) -> Parameters<'_> {
        vec![("flash_bytes_per_slot", &mut self.1)]
    }

    fn index(&self, room: &Room) -> Result<Buckets, String> {
        assert_eq!(self.1, BYTES_PER_SLOT, "nobody else sets a parameter of this index");
        let pages = if self.0 == Mistake::HasSectionsOfTwoPages { 2 } else { 1 };
        let form = SortedWords { bytes: pages * room.page_bytes };
        let bits = (2 * PAIRS_MAX / form.slots() as u64).next_power_of_two().ilog2();
        Ok(Buckets { form, bits, pairs: 0, is_mounted: false, mistake: self.0 })
    }
}

impl Buckets {
    fn word(&self, tag: u64, place: Grain) -> u64 {
        (tag >> self.bits) << PLACE_BITS | place.0
    }

    fn places(&self, bucket: &[u8], tag: u64) -> impl Iterator<Item = Grain> {
        let [first, limit] = [0, (1 << PLACE_BITS) - 1].map(|place| self.word(tag, Grain(place)));
        SortedWords::words(bucket, first, limit).map(|word| Grain(word & ((1 << PLACE_BITS) - 1)))
    }
}

impl SectionIndex for Buckets {
    type Form = SortedWords;

    fn form(&self) -> SortedWords {
        self.form
    }

    fn sections(&self) -> u64 {
        1 << self.bits
    }

    fn tags(&self) -> u64 {
        1 << (if self.mistake == Mistake::CountsTooFewTags { FINGERPRINT_BITS } else { FINGERPRINT_BITS + self.bits })
    }

    fn section_of(&self, tag: u64) -> u64 {
        tag & (self.sections() - 1)
    }

    fn find(&self, bucket: &[u8], tag: u64, place: Grain) -> (bool, u32) {
        (self.places(bucket, tag).any(|other| other == place), SortedWords::comparisons(bucket))
    }

    fn place_of(&self, bucket: &[u8], tag: u64) -> Option<Grain> {
        self.places(bucket, tag).next()
    }

    fn entries(&self, number: u64, bucket: &[u8]) -> impl Iterator<Item = IndexEntry> {
        SortedWords::words(bucket, 0, u64::MAX).map(move |word| IndexEntry {
            tag: (word >> PLACE_BITS) << self.bits | number,
            place: Grain(word & ((1 << PLACE_BITS) - 1)),
            note: 0,
        })
    }

    fn first_tag(&self, hash: u64) -> u64 {
        hash >> (u64::BITS - FINGERPRINT_BITS - self.bits)
    }

    fn locate(&self, buckets: &mut impl Search<SortedWords>, _key: Key<'_>, hash: u64) -> Result<Position, KvError> {
        let tag = self.first_tag(hash);
        let ticket = buckets.search(self.section_of(tag))?;
        let places: Vec<Grain> = self.places(buckets.bytes(ticket), tag).collect();
        for place in places {
            let is_it = buckets.verify(place)?;
            if is_it || self.mistake == Mistake::TakesOneForAnother {
                return Ok(Position { tag, place: Some(place), hash, note: 0, value_bytes: None });
            }
        }
        let is_full = match self.mistake {
            Mistake::RefusesSomeKeys => !hash.is_multiple_of(4) && self.pairs > 500,
            Mistake::IsFullBehindMounts => self.is_mounted,
            _ => self.pairs >= PAIRS_MAX,
        };
        let tag = if is_full { Position::FULL } else { tag };
        Ok(Position { tag, place: None, hash, note: 0, value_bytes: None })
    }

    fn change(&mut self, view: &mut View<'_, '_, SortedWords>, change: &PairChange<'_>) -> Result<bool, KvError> {
        self.pairs = change.count(self.pairs);
        let section = self.section_of(change.tag());
        if self.mistake == Mistake::LooksBeforeItChanges {
            // Nobody changes a pair of a section that has none.
            if change.from().is_some() && view.is_nowhere(section) {
                return Ok(false);
            }
            view.load_all(&[section])?;
            let ticket = view.load(section)?;
            // Nor one that is not there; in a mount the section may have the change already.
            let old = change.from().map(|place| self.word(change.tag(), place));
            let is_there = |old: u64| SortedWords::words(view.bytes(ticket), old, old + 1).next().is_some();
            if !old.is_none_or(is_there) {
                return Ok(view.is_redo());
            }
        }
        if self.mistake == Mistake::ForgetsMovesBehindCuts
            && view.is_redo()
            && matches!(change, PairChange::Move { .. })
        {
            return Ok(true);
        }
        if let PairChange::Insert { note, .. } = change {
            assert!(*note == 0 || self.mistake != Mistake::TrustsNotes, "a note of its own");
        }
        assert!(change.tag() < self.tags(), "a tag of its own");
        let word = |place| self.word(change.tag(), place);
        let (old, new) = (change.from().map(word), change.to().map(word));
        let more_bytes = if self.mistake == Mistake::OutgrowsItsForm { 8 } else { 0 };
        view.edit(section, |form, bucket| SortedWords { bytes: form.bytes + more_bytes }.replace(bucket, old, new))
    }

    fn list(
        &mut self,
        view: &mut View<'_, '_, SortedWords>,
        from: Option<Position>,
        count: usize,
    ) -> Result<Vec<Grain>, KvError> {
        let from = from.filter(|from| from.place.is_some() || self.mistake != Mistake::ListsAllFromAbsentKeys);
        let order = |tag, place| (self.section_of(tag), tag, place);
        let first = from.map(|from| order(self.first_tag(from.hash), from.place.unwrap_or(Grain(0))));
        let mut listed = Vec::new();
        for section in 0..self.sections() {
            if view.is_nowhere(section) {
                continue;
            }
            let ticket = view.load(section)?;
            let entries = self.entries(section, view.bytes(ticket)).map(|entry| order(entry.tag, entry.place));
            listed.extend(entries.filter(|&entry| first.is_none_or(|first| entry >= first)));
        }
        listed.sort_unstable();
        listed.truncate(if self.mistake == Mistake::ListsTooMany { usize::MAX } else { count });
        Ok(listed.into_iter().map(|(.., place)| place).collect())
    }

    fn growth(&self) -> Growth {
        if self.mistake == Mistake::WorksForEver { Growth::Background } else { Growth::None }
    }

    fn redo_split(&mut self, number: u64) -> Option<[u64; 2]> {
        assert!(self.mistake != Mistake::TrustsSplits || number < self.sections(), "a section of its own");
        None
    }

    fn pairs(&self) -> Option<u64> {
        Some(self.pairs)
    }

    fn save(&self, buckets: SavedSections) -> Vec<u8> {
        postcard::to_allocvec(&(self.pairs, buckets)).expect("a directory is plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<SavedSections> {
        let restored = postcard::from_bytes(bytes).ok();
        assert!(restored.is_some() || self.mistake != Mistake::TrustsWhatItRestores, "it is what was saved");
        let (pairs, buckets) = restored?;
        (self.pairs, self.is_mounted) = (pairs, true);
        Some(buckets)
    }
}

fn design(mistake: Mistake) -> Design {
    let plan: &'static Plan = Box::leak(Box::new(Plan(mistake, BYTES_PER_SLOT)));
    Design { name: "buckets", index: IndexChoice::of(plan), ..kvssd_designs::RHIK }
}

/// What a check says of it.
fn told(check: &str, mistake: Mistake) -> Vec<String> {
    let check = SUITE.iter().find(|known| known.name == check).expect("a check of the suite");
    run_check(check, &design(mistake)).failures.iter().map(ToString::to_string).collect()
}

#[test]
fn each_mistake_is_told_by_its_check() {
    let one_tag = "keys_of_one_tag_are_told_apart";
    let full = "a_full_drive_serves_reads_and_deletes_and_takes_stores_again";
    let restored = "an_index_is_restored_from_any_bytes_or_refuses_them";
    let redone = "an_index_redoes_any_change_or_refuses_it";
    let listed = "a_list_names_every_key_once_in_a_stable_order_from_any_key_on";
    let written = "a_flush_puts_everything_into_flash";
    let closed = "a_drive_that_was_closed_takes_as_many_pairs";
    for (check, mistake, what) in [
        (one_tag, Mistake::TakesOneForAnother, ""),
        (one_tag, Mistake::CountsTooFewTags, "and SectionIndex::tags says that all are below 0x"),
        (full, Mistake::RefusesSomeKeys, "a full drive refuses every key"),
        (restored, Mistake::TrustsWhatItRestores, "it is what was saved"),
        (redone, Mistake::TrustsNotes, "a note of its own"),
        (redone, Mistake::TrustsSplits, "a section of its own"),
        (listed, Mistake::ListsAllFromAbsentKeys, "lists from an absent key are of all keys"),
        (listed, Mistake::ListsTooMany, "keys at the most has "),
        (written, Mistake::OutgrowsItsForm, " has 4104 bytes, and a section has 1 to 4096, says bytes_max"),
        (written, Mistake::WorksForEver, "and Index::grow does nothing, however often it is called"),
        (closed, Mistake::IsFullBehindMounts, " it was closed, and 0 fit behind a mount"),
    ] {
        let [sound, mistaken] = [Mistake::None, mistake].map(|mistake| told(check, mistake));
        assert_eq!(sound, [""; 0]);
        assert!(!mistaken.is_empty() && mistaken.iter().all(|line| line.contains(what)), "{mistake:?}: {mistaken:#?}");
    }
}

#[test]
fn a_section_larger_than_a_page_is_refused_in_one_line() {
    let profile = design(Mistake::None).tiny_profile(&[]).unwrap();
    let built = design(Mistake::HasSectionsOfTwoPages).build(&profile, Box::new(RopeBacking::new(profile.geometry)));
    let why = "buckets has sections of 8192 bytes: one lies in a page, of which it can take 1 to 4096 bytes";
    assert!(built.err().unwrap().to_string().ends_with(why));
}

/// What a design that looks loses on volatile drives, from that seed on.
fn losses(seed: u64, cuts: u32) -> Vec<power_cuts::Loss> {
    let (design, power_loss) = (design(Mistake::LooksBeforeItChanges), PowerLoss::Volatile);
    power_cuts::Campaign { design, power_loss, seed, cuts, media_faults: false }.run(&mut Quiet).unwrap().losses
}

/// A section that a checkpoint holds was as it lies in flash for who looked at it while a mount made a change again.
#[test]
fn a_change_may_look_at_its_section_before_it_edits_it() {
    for seed in [5, 9] {
        assert_eq!(losses(seed, 30), [], "seed {seed}");
    }
}

#[test]
fn a_parameter_of_somebody_elses_name_is_left_alone() {
    assert_eq!(told("mistake_9_everything_is_charged_to_one_budget", Mistake::None), [""; 0]);
}

#[test]
fn a_loss_is_a_line_however_much_is_lost() {
    let losses = power_cuts::survives(&design(Mistake::ForgetsMovesBehindCuts), 100).unwrap_err().to_string();
    assert!(losses.contains("the drive is not sound: ") && losses.contains(" findings more"), "{losses}");
    assert!(losses.lines().all(|line| line.starts_with("power_cuts: buckets, ")), "{losses}");
}

/// A mount kept all sections in DRAM that it had looked at. Garbage collection then changed them all, and the checkpoint behind it was many times
/// as large as what is kept for one.
#[test]
fn what_a_mount_has_only_looked_at_leaves_dram() {
    assert_eq!(losses(287, 10), []);
}
