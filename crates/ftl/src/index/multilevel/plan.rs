//! What can be chosen of `multilevel`, and how it is built.

use super::iterator::IteratorBuckets;
use super::{LEVELS_MAX, Multilevel, SIGNATURE_BITS};
use crate::dram::DramUse;
use crate::index::plan::{IndexPlan, Parameters, Room};
use crate::index::record_table::RecordTable;
use crate::index::{Index, Sectioned};

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultilevelPlan {
    /// Bits of the Bloom filter for each pair that the drive may hold, 1 to 64. An estimate.
    pub bloom_bits: u32,
    /// Whether keys are kept a second time for lists, as on the real drive (Study, section II). Without, there are no lists.
    pub iterators: bool,
}

impl IndexPlan for MultilevelPlan {
    fn name(&self) -> &'static str {
        "multilevel"
    }

    fn parameters(&mut self) -> Parameters<'_> {
        vec![("bloom_bits", &mut self.bloom_bits), ("iterators", &mut self.iterators)]
    }

    fn check(&self) -> Result<(), String> {
        let bloom_bits = self.bloom_bits;
        let can_be = (1..=64).contains(&bloom_bits);
        can_be.then_some(()).ok_or(format!("design.bloom_bits = {bloom_bits}, and it is 1 to 64"))
    }

    fn build(&self, room: &Room) -> Result<Box<dyn Index>, String> {
        Ok(Box::new(Sectioned::new(Multilevel::new(*self, room), room.page_bytes)))
    }

    fn tags(&self, room: &Room) -> u64 {
        RecordTable::new(room.page_bytes, SIGNATURE_BITS).signatures()
    }

    fn has_tags_of_keys(&self) -> bool {
        true
    }

    /// The directory, with all levels open, and the filter.
    fn charge(&self, room: &Room, dram: &mut DramUse) {
        let mut index = Multilevel::new(*self, room);
        index.levels = LEVELS_MAX;
        index.charge_tables(dram);
        if self.iterators {
            IteratorBuckets::charge(room, index.records_max, dram);
        }
    }
}
