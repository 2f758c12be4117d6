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
//! It grows by splitting a section that is full, by itself ([`SplitDirectory`]). The fingerprints give a bit of theirs to the
//! sections' numbers: no pair is read.

mod packed;
mod plan;

use self::packed::{PackedSections, check_depth};
use kvssd_ftl::Grain;
use kvssd_ftl::index::{IndexEntry, PairChange, Position, Search, SplitDirectory, SplitForm, SplitIndex, View};
use kvssd_types::{Key, KvError};

pub use self::plan::TesseraPlan;

/// The index.
#[derive(Clone)]
pub struct Tessera {
    form: PackedSections,
    directory: SplitDirectory,
}

type Sections<'v, 'm> = View<'v, 'm, PackedSections>;

impl Tessera {
    pub(crate) fn new(form: PackedSections) -> Self {
        Tessera { form, directory: SplitDirectory::new(form.depth_min()) }
    }

    fn depth(&self, tag: u64) -> u32 {
        SplitDirectory::depth_of(self.directory.section_of(tag))
    }
}

impl SplitIndex for Tessera {
    type Form = PackedSections;

    fn form(&self) -> PackedSections {
        self.form
    }

    fn directory(&self) -> &SplitDirectory {
        &self.directory
    }

    fn directory_mut(&mut self) -> &mut SplitDirectory {
        &mut self.directory
    }

    fn tags(&self) -> u64 {
        1 << self.form.tag_bits
    }

    fn find(&self, section: &[u8], tag: u64, place: Grain) -> (bool, u32) {
        let is_there = self.form.places(section, tag).any(|found| found == place);
        (is_there, self.form.comparisons(section, tag))
    }

    fn place_of(&self, section: &[u8], tag: u64) -> Option<Grain> {
        self.form.places(section, tag).next()
    }

    fn entries(&self, number: u64, section: &[u8]) -> impl Iterator<Item = IndexEntry> {
        let entries = self.form.entries(section, SplitDirectory::low_of(number));
        entries.map(|(tag, place)| IndexEntry { tag, place, note: 0 })
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
        let depth = SplitDirectory::depth_of(section);
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

    fn change_section(&mut self, view: &mut Sections<'_, '_>, change: &PairChange<'_>) -> Result<bool, KvError> {
        let depth = self.depth(change.tag());
        view.edit(self.directory.section_of(change.tag()), |form, section| form.edit(section, change, depth))
    }
}
