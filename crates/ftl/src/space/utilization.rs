//! How full a drive is.

use crate::layout::packing::Packing;
use crate::layout::record::RecordHead;
use serde::{Deserialize, Serialize};

/// How full the drive is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utilization {
    /// Pairs that are stored.
    pub pairs: u64,
    /// Bytes of their keys and values; on a drive of large values with what tells whole ones from segments.
    pub pair_bytes: u64,
    /// Bytes of flash that their records take in whole grains, with the space that they make unusable for others.
    pub record_bytes: u64,
    /// Bytes of flash that everything that lives takes, the index with it.
    pub live_bytes: u64,
    /// The most that may live.
    pub capacity_bytes: u64,
}

/// What a checkpoint holds of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct SavedUtilization {
    pairs: u64,
    pair_bytes: u64,
    record_bytes: u64,
}

impl SavedUtilization {
    /// Whether a namespace can have had such counts.
    pub(crate) fn is_possible(&self) -> bool {
        let SavedUtilization { pairs, pair_bytes, record_bytes } = *self;
        pairs <= pair_bytes && pair_bytes <= record_bytes && record_bytes < 1 << 56
    }
}

impl Utilization {
    /// What a checkpoint holds of it.
    pub(crate) fn saved(&self) -> SavedUtilization {
        SavedUtilization { pairs: self.pairs, pair_bytes: self.pair_bytes, record_bytes: self.record_bytes }
    }

    /// What a checkpoint held.
    pub(crate) fn from_saved(saved: SavedUtilization) -> Self {
        let SavedUtilization { pairs, pair_bytes, record_bytes } = saved;
        Utilization { pairs, pair_bytes, record_bytes, ..Utilization::default() }
    }

    /// The sums of both.
    #[must_use]
    pub fn plus(&self, other: &Utilization) -> Utilization {
        Utilization {
            pairs: self.pairs + other.pairs,
            pair_bytes: self.pair_bytes + other.pair_bytes,
            record_bytes: self.record_bytes + other.record_bytes,
            live_bytes: self.live_bytes + other.live_bytes,
            capacity_bytes: self.capacity_bytes + other.capacity_bytes,
        }
    }

    pub(crate) fn add(&mut self, head: &RecordHead, packing: &Packing) {
        self.pairs += 1;
        self.pair_bytes += u64::from(head.key_bytes) + u64::from(head.value_bytes);
        self.record_bytes += packing.bytes_charged(head);
    }

    /// Removes a pair. `None`, and no change, if the counts are too low for it.
    pub(crate) fn remove(&mut self, head: &RecordHead, packing: &Packing) -> Option<()> {
        let pairs = self.pairs.checked_sub(1)?;
        let pair_bytes = self.pair_bytes.checked_sub(u64::from(head.key_bytes) + u64::from(head.value_bytes))?;
        let record_bytes = self.record_bytes.checked_sub(packing.bytes_charged(head))?;
        *self = Utilization { pairs, pair_bytes, record_bytes, ..*self };
        Some(())
    }
}
