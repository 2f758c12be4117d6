//! Where a block drive has the records of a microbenchmark.

use kvssd_device::Device;
use kvssd_sim::SimError;
use kvssd_types::{Command, Nanos, Pattern, PlacementHandle, Random, Value};

/// Bytes of the writes before the records. An estimate.
const WRITE_BYTES: u64 = 64 << 10;

/// The places of all records.
pub(super) struct Places {
    record_bytes: u64,
    /// The place of each record, or that they lie in their order.
    scattered: Option<Vec<u32>>,
}

impl Places {
    /// Record n is the nth.
    pub(super) fn in_order(record_bytes: u32) -> Self {
        Places { record_bytes: record_bytes.into(), scattered: None }
    }

    /// Record n may be any of `records`, each of which has a place of its own.
    pub(super) fn scattered(record_bytes: u32, records: u64, seed: u64) -> Self {
        let records = u32::try_from(records).expect("a microbenchmark has fewer records than that");
        let mut places: Vec<u32> = (0..records).collect();
        let mut random = Random::new(seed);
        for place in (1..places.len()).rev() {
            places.swap(place, random.below(place as u64 + 1) as usize);
        }
        Places { scattered: Some(places), ..Places::in_order(record_bytes) }
    }

    pub(super) fn offset_bytes(&self, record: u64) -> u64 {
        let place = self.scattered.as_ref().map_or(record, |places| places[record as usize].into());
        place * self.record_bytes
    }

    /// Writes all that scattered records may have, and waits until it is on flash; gives when.
    pub(super) fn write_before(&self, device: &mut Device, start: Nanos) -> Result<Nanos, SimError> {
        let records = self.scattered.as_ref().map_or(0, Vec::len) as u64;
        let mut clock = start;
        for number in 0..(records * self.record_bytes).div_ceil(WRITE_BYTES) {
            let value = Value::Pattern(Pattern { seed: number, offset: 0, length: WRITE_BYTES as u32 });
            let (offset_bytes, handle) = (number * WRITE_BYTES, PlacementHandle::DEFAULT);
            let written = device.submit(Command::Write { offset_bytes, value, handle }, clock);
            clock = written.success().map_err(SimError::Drive)?;
        }
        device.submit(Command::Flush, clock).success().map_err(SimError::Drive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_record_has_a_place_of_its_own() {
        for records in [1, 2, 7, 1000, 1024] {
            let scattered = Places::scattered(512, records, 3);
            for places in [Places::in_order(512), scattered] {
                let places: BTreeSet<u64> = (0..records).map(|record| places.offset_bytes(record) / 512).collect();
                assert!(places.len() as u64 == records && places.last() == Some(&(records - 1)));
            }
        }
    }
}
