//! What an experiment is run on and with.

use crate::error::SimError;
use crate::host::HostPlan;
use crate::workload::{PairShape, ValueSizes};
use kvssd_flash::Profile;
use kvssd_ftl::index::Forecast;
use kvssd_ftl::{Design, RecordHead};
use kvssd_types::BLOCK_BYTES;

/// The most operations of a run: more than anyone waits for, and far from where numbers end.
const OPERATIONS_MAX: u64 = 1 << 40;
/// The longest open loop or paced replay, in seconds of virtual time, which counts nanoseconds in 64 bits.
pub(crate) const SECONDS_MAX: f64 = 1e9;

/// A drive, and what is random on it.
#[derive(Clone, Debug)]
pub struct Bed {
    /// The firmware.
    pub design: Design,
    /// The hardware, scaled.
    pub profile: Profile,
    /// Of everything that is random.
    pub seed: u64,
}

/// A drive, the pairs on it and the hosts before it.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The drive.
    pub bed: Bed,
    /// Pairs that are filled in.
    pub records: u64,
    /// What the pairs are like.
    pub pairs: PairShape,
    /// The hosts.
    pub hosts: HostPlan,
}

impl Setup {
    /// The part of the flash that pairs take after a fill, if nothing else is asked for: as the Plus paper fills its drive
    /// (section V-B), with 100 M pairs of 8 + 1000 bytes, which is 1 KiB with the head and padding, on 128 GiB.
    pub const FILL: f64 = 100e6 * 1024.0 / (128u64 << 30) as f64;

    /// The records that fill that part of a drive's flash, with all that a design gives to a record of a mean size. Where the reserves of
    /// garbage collection leave less, or the index takes no more pairs, they fill 90 % of what
    /// there is: the index takes some of it. Where it takes more than the rest, as of small pairs, there are as many as leave it room.
    #[must_use]
    pub fn records_of(fill: f64, design: &Design, profile: &Profile, key_bytes: usize, sizes: &ValueSizes) -> u64 {
        const SHARE_OF_CAPACITY: f64 = 0.9;
        let charged = Setup::bytes_charged(design, profile, key_bytes, sizes);
        let share = profile.geometry.raw_bytes() as f64 * fill / charged;
        let fits = design.capacity_bytes(profile) as f64 * SHARE_OF_CAPACITY / charged;
        let known = design.pairs_max(profile).map_or(f64::MAX, |pairs| pairs as f64 * SHARE_OF_CAPACITY);
        let records = (share.min(fits).min(known) as u64).max(1);
        Setup::with_room_for_index(records, charged, design, profile, key_bytes)
    }

    /// The bytes of flash that a record takes in the mean, with all that a design gives to it. On a block drive each has room for the largest.
    pub(crate) fn bytes_charged(design: &Design, profile: &Profile, key_bytes: usize, sizes: &ValueSizes) -> f64 {
        if !design.takes_keys() {
            return f64::from(sizes.bytes_max().max(1).next_multiple_of(BLOCK_BYTES));
        }
        let packing = design.packing(&profile.geometry);
        let key_bytes = key_bytes as u32;
        sizes.mean_of(|value_bytes| packing.bytes_charged(&RecordHead { key_bytes, value_bytes }) as f64)
    }

    /// At most `records`, so many that they and the index fit.
    fn with_room_for_index(records: u64, charged: f64, design: &Design, profile: &Profile, key_bytes: usize) -> u64 {
        // An estimate: the fullest drives took 98 %, and an index on paper is a few percent off.
        const SHARE_OF_CAPACITY: f64 = 0.976;
        let room = design.capacity_bytes(profile) as f64 * SHARE_OF_CAPACITY;
        let fits = |records: u64| {
            let index = design.forecast(profile, records, key_bytes as u32, None);
            let pieces = |index: &Forecast| index.visits.iter().map(|visit| visit.pieces).sum::<f64>();
            let index_bytes = index.map_or(0.0, |index| pieces(&index) * index.piece_bytes);
            records as f64 * charged + index_bytes <= room
        };
        if fits(records) {
            return records;
        }
        let (mut fitting, mut too_many) = (1, records);
        while too_many - fitting > 1 {
            let middle = fitting.midpoint(too_many);
            if fits(middle) { fitting = middle } else { too_many = middle }
        }
        fitting
    }

    /// The records of which each of several designs is filled as far as [`Setup::FILL`], or as it can.
    #[must_use]
    pub fn default_records(designs: &[Design], profile: &Profile, key_bytes: usize, value_bytes: u32) -> u64 {
        let sizes = ValueSizes::constant(value_bytes);
        let records = designs.iter().map(|design| Setup::records_of(Setup::FILL, design, profile, key_bytes, &sizes));
        records.min().unwrap_or(1)
    }

    /// Checks the numbers that no other part checks.
    ///
    /// # Errors
    /// [`SimError::Setup`], in one line.
    pub fn check(&self, operations: u64, inserts: bool) -> Result<(), SimError> {
        let fail = |why: String| Err(SimError::Setup(why));
        if self.records == 0 {
            return fail("--records must be above 0".to_owned());
        }
        let HostPlan { threads, queue_depth, rate_per_s } = self.hosts;
        let raw_bytes = self.bed.profile.geometry.raw_bytes();
        if self.records > raw_bytes / 16 {
            return fail(format!("--records {} cannot fit a drive of {raw_bytes} bytes", self.records));
        }
        if threads == 0 || queue_depth == 0 || threads.saturating_mul(queue_depth) > 1 << 16 {
            return fail(
                "--threads and --queue-depth must be above 0, and at most 65536 commands under way".to_owned(),
            );
        }
        if let Some(rate_per_s) = rate_per_s
            && !(rate_per_s.is_finite() && rate_per_s > 0.0 && self.records as f64 / rate_per_s <= SECONDS_MAX)
        {
            return fail(
                "--rate must be above 0 commands a second, and the records be filled in within thirty years".to_owned(),
            );
        }
        if operations > OPERATIONS_MAX {
            return fail(format!("--operations {operations} must be at most {OPERATIONS_MAX}"));
        }
        if let Some(rate_per_s) = rate_per_s
            && operations as f64 / rate_per_s > SECONDS_MAX
        {
            return fail(format!(
                "--rate {rate_per_s} would take more than thirty years: ask for more commands a second"
            ));
        }
        let keys = self.pairs.keys()?;
        let records = self.records.saturating_add(if inserts { operations } else { 0 });
        if records > keys.records_max() {
            return fail(format!("keys of {} bytes do not tell {records} records apart", self.pairs.key_bytes));
        }
        self.pairs.value_sizes(self.bed.seed)?;
        Ok(())
    }
}
