//! What an experiment needs of the machine's memory, told beforehand.

use super::{Experiment, Work};
use crate::error::SimError;
use kvssd_ftl::RecordHead;

/// What a run takes before its first record.
const FIRST_BYTES: u64 = 48 << 20;
/// What memory keeps of a record that lies in flash, or of a page of it, dead ones included: pieces of the page, its entry out of
/// band and its share of the index.
const PLACE_BYTES: u64 = 72;
/// What the session keeps of a record beside that.
const RECORD_BYTES: u64 = 16;
/// Larger records lie in pieces.
const PIECE_BYTES: u64 = 4096;

impl Experiment {
    /// The memory that a run takes at the most, in bytes: an upper estimate, measured with the designs that come along.
    ///
    /// # Errors
    /// As [`Experiment::check`].
    pub fn memory_bytes(&self) -> Result<u64, SimError> {
        let bed = self.bed()?;
        let packing = bed.design.packing(&bed.profile.geometry);
        let of = |key_bytes: u32, value_bytes: u32| packing.bytes_charged(&RecordHead { key_bytes, value_bytes });
        let (records, charged) = match &self.work {
            Work::Ycsb(work) => {
                let of_size = |value_bytes| of(work.pairs.key_bytes as u32, value_bytes) as f64;
                (work.records, work.pairs.value_sizes(0)?.mean_of(of_size) as u64)
            }
            Work::DbBench(work) => (work.records, of(work.key_bytes as u32, work.value_bytes)),
            Work::Kvbench(work) => {
                let bench = work.parsed()?;
                (bench.records, of(bench.key_lengths.bytes_min(), bench.value_sizes.bytes_min()))
            }
        };
        let pieces = charged.div_ceil(PIECE_BYTES).max(1);
        let in_flash = bed.profile.geometry.raw_bytes() / charged.clamp(1, PIECE_BYTES);
        let written = records.max(self.work.operations()).saturating_mul(pieces);
        Ok(FIRST_BYTES + in_flash.min(written) * PLACE_BYTES + records * RECORD_BYTES)
    }
}
