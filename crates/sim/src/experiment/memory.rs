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
        let (records, key_bytes, value_bytes) = match &self.work {
            Work::Ycsb(work) => (work.records, work.key_bytes as u32, work.value_bytes),
            Work::DbBench(work) => (work.records, work.key_bytes as u32, work.value_bytes),
            Work::Kvbench(work) => {
                let bench = work.parsed()?;
                (bench.records, bench.key_lengths.bytes_min(), bench.value_sizes.bytes_min())
            }
        };
        let head = RecordHead { key_bytes, value_bytes };
        let charged = bed.design.packing(&bed.profile.geometry).bytes_charged(&head);
        let pieces = charged.div_ceil(PIECE_BYTES).max(1);
        let in_flash = bed.profile.geometry.raw_bytes() / charged.clamp(1, PIECE_BYTES);
        let written = records.max(self.work.operations()).saturating_mul(pieces);
        Ok(FIRST_BYTES + in_flash.min(written) * PLACE_BYTES + records * RECORD_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use crate::bench::Bench;

    /// The most resident memory of processes that ran it at 1/256, filled by a half and overwritten.
    const MEASURED: [(&str, u32, u64); 10] = [
        ("plus", 50, 301),
        ("plus", 1000, 62),
        ("plus", 65_536, 54),
        ("rhik", 50, 248),
        ("original", 50, 66),
        ("block", 4096, 50),
        ("multilevel", 16_384, 52),
        ("pink", 100, 290),
        ("iter", 1000, 72),
        ("kaml", 1000, 64),
    ];

    #[test]
    fn what_is_told_beforehand_is_enough_and_not_far_too_much() {
        for (design, value_bytes, mebibytes) in MEASURED {
            let designs = vec![design.to_owned()];
            let bench = Bench { designs, scale: 1.0 / 256.0, fill: 0.5, value_bytes, ..Bench::default() };
            let told = bench.experiments().unwrap()[0].memory_bytes().unwrap() >> 20;
            assert!((mebibytes..mebibytes * 3).contains(&told), "{design}, {value_bytes}: {told} MiB");
        }
    }
}
