//! What can be chosen of `multilevel`, and how it is built.

use super::iterator::IteratorBuckets;
use super::{LEVELS_MAX, Multilevel};
use crate::bounds;
use kvssd_ftl::DramUse;
use kvssd_ftl::index::{Parameters, Room, SectionPlan};

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultilevelPlan {
    /// Bits of the Bloom filter for each pair that the drive may hold, 1 to 64. An estimate.
    pub bloom_bits: u32,
    /// Whether keys are kept a second time, for lists, as on the real drive (Study, section II).
    pub iterators: bool,
}

impl SectionPlan for MultilevelPlan {
    type Index = Multilevel;

    fn name(&self) -> &'static str {
        "multilevel"
    }

    fn parameters(&mut self) -> Parameters<'_> {
        vec![("bloom_bits", &mut self.bloom_bits), ("iterators", &mut self.iterators)]
    }

    fn check(&self) -> Result<(), String> {
        bounds::check("bloom_bits", self.bloom_bits, 1..=64)
    }

    fn pairs_max(&self, room: &Room) -> Option<u64> {
        Some(Multilevel::records_max(room))
    }

    fn index(&self, room: &Room) -> Result<Multilevel, String> {
        Ok(Multilevel::new(*self, room))
    }

    /// The directory, with all levels open, and the filter.
    fn charge(&self, index: &Multilevel, room: &Room, dram: &mut DramUse) {
        index.charge_levels(LEVELS_MAX, dram);
        if self.iterators {
            IteratorBuckets::charge(room, index.records_max, dram);
        }
    }
}
