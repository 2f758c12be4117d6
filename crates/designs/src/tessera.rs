//! `tessera`: small sections of packed fingerprints, which split as they fill.
//!
//! ```text
//!   key -> tag -> low bits -> directory -> section: [place, fingerprint] of a few bits each -> record
//!                             in DRAM      in DRAM or one flash read                            its key is compared
//! ```
//!
//! DRAM is what an index of a key-value drive has too little of. So a section has no slot that is empty, no bit that its
//! number tells, and of the hash only what tells its own pairs apart: about five bytes a pair. Where the fingerprint of a new
//! key is not there, no record is read; where it is, the whole key is compared, so that keys of one fingerprint are all kept.
//! A section is an eighth of a page at most and grows by 16 B: one that is changed costs no page.
//!
//! It grows by splitting a section that is full, by itself, as extendible hashing does (Fagin, 1979). The fingerprints give
//! a bit of theirs to the sections' numbers: no pair is read.

mod packed;
mod plan;

use self::packed::PackedSections;
use crate::directory::{Directory, depth_of, halves_of, low_of};
use kvssd_ftl::index::{IndexEntry, PairChange, Position, SavedSections, Search, SectionForm, SectionIndex, View};
use kvssd_ftl::{DramUse, Grain};
use kvssd_types::{Key, KvError};
use serde::{Deserialize, Serialize};

pub use self::plan::TesseraPlan;

/// The index.
#[derive(Clone)]
pub struct Tessera {
    form: PackedSections,
    directory: Directory,
    pairs: u64,
}

/// What a checkpoint holds of it.
#[derive(Serialize, Deserialize)]
struct Saved {
    depths: Vec<u8>,
    pairs: u64,
    sections: SavedSections,
}

type Sections<'v, 'm> = View<'v, 'm, PackedSections>;

impl Tessera {
    pub(crate) fn new(form: PackedSections) -> Self {
        Tessera { form, directory: Directory::new(form.depth_min()), pairs: 0 }
    }

    fn depth(&self, tag: u64) -> u32 {
        depth_of(self.directory.section_of(tag))
    }

    /// Replaces a section by its halves.
    fn split(&mut self, view: &mut Sections<'_, '_>, section: u64) -> Result<(), KvError> {
        let ticket = view.load(section)?;
        check_depth(view.bytes(ticket), depth_of(section))?;
        view.compare(packed::count(view.bytes(ticket)) as u64);
        let halves = self.form.split(view.bytes(ticket), depth_of(section));
        self.directory.split(section);
        view.resize(self.sections(), self.cache_bytes_max(view.budget_bytes()));
        view.split(section, halves_of(section), halves)
    }
}

/// Refuses a section that is not as deep as the directory says.
fn check_depth(section: &[u8], depth: u32) -> Result<(), KvError> {
    let is_it = packed::count(section) == 0 || packed::depth(section) == depth;
    is_it.then_some(()).ok_or_else(|| KvError::Unrecovered("a section is not as deep as the directory says".to_owned()))
}

impl SectionIndex for Tessera {
    type Form = PackedSections;

    const SPLITS: bool = true;

    fn form(&self) -> PackedSections {
        self.form
    }

    fn sections(&self) -> u64 {
        self.directory.numbers()
    }

    fn tags(&self) -> u64 {
        1 << self.form.tag_bits
    }

    fn section_of(&self, tag: u64) -> u64 {
        self.directory.section_of(tag)
    }

    fn find(&self, section: &[u8], tag: u64, place: Grain) -> (bool, u32) {
        let is_there = self.form.places(section, tag).any(|found| found == place);
        (is_there, self.form.comparisons(section, tag))
    }

    fn place_of(&self, section: &[u8], tag: u64) -> Option<Grain> {
        self.form.places(section, tag).next()
    }

    fn entries(&self, number: u64, section: &[u8]) -> impl Iterator<Item = IndexEntry> {
        self.form.entries(section, low_of(number)).map(|(tag, place)| IndexEntry { tag, place, note: 0 })
    }

    fn locate(
        &self,
        sections: &mut impl Search<PackedSections>,
        _key: Key<'_>,
        hash: u64,
    ) -> Result<Position, KvError> {
        let tag = self.first_tag(hash);
        let mut position = Position { tag, place: None, hash, note: 0, value_bytes: None };
        sections.look_up_directory();
        let section = self.directory.section_of(tag);
        let ticket = sections.search(section)?;
        sections.compare(self.form.comparisons(sections.bytes(ticket), tag).into());
        let depth = depth_of(section);
        check_depth(sections.bytes(ticket), depth)?;
        for number in 0.. {
            let place = self.form.places(sections.bytes(ticket), tag).nth(number);
            let Some(place) = place else { break };
            if sections.verify(place)? {
                return Ok(Position { place: Some(place), ..position });
            }
        }
        if depth == self.form.depth_max && !self.form.has_room(sections.bytes(ticket), tag, depth) {
            position.tag = Position::FULL;
        }
        Ok(position)
    }

    fn reserve(&mut self, view: &mut Sections<'_, '_>, tag: u64) -> Result<(), KvError> {
        loop {
            let section = self.directory.section_of(tag);
            let ticket = view.load(section)?;
            if self.form.has_room(view.bytes(ticket), tag, depth_of(section)) {
                return Ok(());
            }
            if depth_of(section) == self.form.depth_max {
                return Err(KvError::CapacityExceeded);
            }
            self.split(view, section)?;
        }
    }

    fn change(&mut self, view: &mut Sections<'_, '_>, change: &PairChange<'_>) -> Result<bool, KvError> {
        let depth = self.depth(change.tag());
        self.pairs = change.count(self.pairs);
        view.edit(self.directory.section_of(change.tag()), |form, section| form.edit(section, change, depth))
    }

    fn list(
        &mut self,
        view: &mut Sections<'_, '_>,
        from: Option<Position>,
        count: usize,
    ) -> Result<Vec<Grain>, KvError> {
        let start = from.map(|from| Directory::order(self.first_tag(from.hash), from.place.unwrap_or(Grain(0))));
        let first = start.unwrap_or((0, Grain(0)));
        let pairs = self
            .directory
            .pairs_from(view, first, count, |number, section| self.form.entries(section, low_of(number)).collect())?;
        Ok(pairs.into_iter().map(|(_, place)| place).collect())
    }

    fn first_tag(&self, hash: u64) -> u64 {
        hash & (self.tags() - 1)
    }

    fn pairs(&self) -> Option<u64> {
        Some(self.pairs)
    }

    fn dram(&self, dram: &mut DramUse) {
        dram.add("index_directory", self.directory.numbers() / 2 * self.form.directory_entry_bytes());
    }

    fn save(&self, sections: SavedSections) -> Vec<u8> {
        let saved = Saved { depths: self.directory.depths().to_vec(), pairs: self.pairs, sections };
        postcard::to_allocvec(&saved).expect("a directory is plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<SavedSections> {
        let Saved { depths, pairs, sections } = postcard::from_bytes(bytes).ok()?;
        let is_possible = |&depth: &u8| (self.form.depth_min()..=self.form.depth_max).contains(&depth.into());
        let are_possible = depths.iter().all(is_possible) && pairs <= 1 << self.form.place_bits;
        self.directory = Directory::from_depths(depths).filter(|_| are_possible)?;
        self.pairs = pairs;
        Some(sections)
    }

    fn redo_section(&mut self, number: u64) -> bool {
        self.directory.has(number)
    }

    fn redo_split(&mut self, number: u64) -> Option<[u64; 2]> {
        let can_be = self.directory.has(number) && depth_of(number) < self.form.depth_max;
        can_be.then(|| {
            self.directory.split(number);
            halves_of(number)
        })
    }
}
