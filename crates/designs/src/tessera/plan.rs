//! What can be chosen of `tessera`, and how it is built.

use super::Tessera;
use super::packed::{BUCKET_BITS, PackedSections};
use crate::bounds;
use kvssd_ftl::DramUse;
use kvssd_ftl::index::{Forecast, Outlook, Parameters, Room, SectionForm, SectionPlan, SplitDirectory, SplitIndex};

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TesseraPlan {
    /// The least bits of a fingerprint, beside those of its bucket: what an entry has on a drive with a pair in every grain.
    pub fingerprint_bits: u32,
    /// A section that would become longer is split.
    pub section_bytes: u32,
}

impl TesseraPlan {
    fn form(&self, room: &Room) -> PackedSections {
        let place_bits = room.grains.next_power_of_two().ilog2().max(1);
        let entry_bits = u64::from(place_bits + self.fingerprint_bits);
        // Sections are three quarters full on average.
        let pairs = u64::from(self.section_bytes) * 6 / entry_bits;
        let depth_max = room.grains.div_ceil(pairs).next_power_of_two().ilog2().min(SplitDirectory::DEPTH_MAX);
        let tag_bits = depth_max + self.fingerprint_bits + BUCKET_BITS;
        let Room { page_bytes, .. } = *room;
        PackedSections { place_bits, tag_bits, depth_max, section_bytes: self.section_bytes, page_bytes }
    }
}

impl SectionPlan for TesseraPlan {
    type Index = Tessera;

    fn name(&self) -> &'static str {
        "tessera"
    }

    fn parameters(&mut self) -> Parameters<'_> {
        vec![("fingerprint_bits", &mut self.fingerprint_bits), ("section_bytes", &mut self.section_bytes)]
    }

    fn begin_small(&mut self) {
        self.section_bytes = 128;
    }

    fn check(&self) -> Result<(), String> {
        let TesseraPlan { fingerprint_bits, section_bytes } = *self;
        bounds::check("fingerprint_bits", fingerprint_bits, 1..=16)?;
        if !(128..=65536).contains(&section_bytes) || !section_bytes.is_multiple_of(64) {
            return Err(format!("design.section_bytes = {section_bytes}, and it is 128 to 65536 and a multiple of 64"));
        }
        Ok(())
    }

    fn index(&self, room: &Room) -> Result<Tessera, String> {
        if self.section_bytes > room.page_bytes {
            let (section_bytes, page_bytes) = (self.section_bytes, room.page_bytes);
            return Err(format!("design.section_bytes = {section_bytes}, and a page has {page_bytes}"));
        }
        Ok(Tessera::new(self.form(room)))
    }

    /// The directory of a drive with a pair in every grain.
    fn charge(&self, index: &Tessera, _room: &Room, dram: &mut DramUse) {
        let form = index.form();
        dram.add("index_directory", (1 << form.depth_max) * form.directory_entry_bytes());
    }

    fn forecast(&self, index: &Tessera, outlook: &Outlook) -> Option<Forecast> {
        let form = index.form();
        let (sections, section_bytes, deepest) = form.sections_of(outlook.pairs);
        let directory_bytes = (1 << deepest) * form.directory_entry_bytes();
        // Its own, and others of its bucket.
        let comparisons = 1.0 + outlook.pairs as f64 / sections / f64::from(1u32 << BUCKET_BITS);
        let forecast = Forecast::of_sections(outlook, sections.ceil() as u64, section_bytes, directory_bytes);
        Some(Forecast { comparisons, ..forecast })
    }
}
