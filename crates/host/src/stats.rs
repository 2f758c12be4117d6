//! How full a store is, and what it did.

use kvssd_device::{FirmwareStats, Partitions};

/// How full a store is, with all its namespaces.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// The firmware; for a drive on the wire that is not kvssd, its model.
    pub design: String,
    /// Bytes of flash that live, in whole grains and with the index.
    pub live_bytes: u64,
    /// The most that may live.
    pub capacity_bytes: u64,
    /// The largest value.
    pub value_bytes_max: u64,
    /// The most bytes of keys and values of a batch; 0 on the wire, which has none.
    pub batch_bytes_max: u64,
    /// The largest value of a batch or a transaction; 0 on the wire, which has none.
    pub batch_value_bytes_max: u64,
    /// The most changes of a batch; 0 on the wire, which has none.
    pub batch_changes_max: usize,
    /// On the wire: commands that a call such as [`Namespace::store_each`](crate::Namespace::store_each) has under way at the most.
    pub queue_depth: Option<u16>,
    /// On the wire: whether the drive reports that it has failed, or that it is read-only. Its server knows why.
    pub has_failed: bool,
    /// Why each change of an image that need only outlive the process takes a system call, if so. Otherwise changes are copied to a part of the
    /// file that is mapped into memory.
    pub staging_note: Option<String>,
    /// The firmware's statistics; `None` for a drive on the wire that is not kvssd.
    pub firmware: Option<FirmwareStats>,
    /// What all hosts did since a drive on the wire is served; `None` for an image, which only this process uses, and for a host that does not see
    /// all namespaces.
    pub traffic: Option<TrafficStats>,
}

/// What hosts did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficStats {
    /// Stores and deletes. Here and below those that failed do not count: a delete of a key that is not there, say.
    pub changes: u64,
    /// Retrieves, exists and lists. Who found nothing has failed.
    pub lookups: u64,
    /// Bytes of values that were stored. Drives that are not kvssd count in units of 512 000.
    pub stored_bytes: u64,
    /// Bytes of values and lists that were read, as `stored_bytes`.
    pub retrieved_bytes: u64,
    /// Processor time that the service took so far, in nanoseconds; none where it does not say.
    pub processor_ns: Option<u64>,
}

impl Stats {
    /// Bytes of flash that were programmed for each byte of a value that hosts stored, since the drive is served; none where that is
    /// not known, or nothing was stored.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let stored_bytes = self.traffic.map(|traffic| traffic.stored_bytes).filter(|bytes| *bytes > 0)?;
        let firmware = self.firmware?;
        Some((firmware.pages_programmed * firmware.page_bytes) as f64 / stored_bytes as f64)
    }

    pub(crate) fn of(partitions: &Partitions<'_>) -> Self {
        let (first, utilization) = (partitions.first(), partitions.utilization());
        Stats {
            design: first.design().name.to_owned(),
            live_bytes: utilization.live_bytes,
            capacity_bytes: utilization.capacity_bytes,
            value_bytes_max: first.value_bytes_max(),
            batch_bytes_max: first.batch_bytes_max(),
            batch_value_bytes_max: first.batch_value_bytes_max(),
            batch_changes_max: first.engine().batch_changes_max(),
            queue_depth: None,
            has_failed: false,
            staging_note: partitions.staging_note().map(str::to_owned),
            firmware: Some(partitions.firmware_stats()),
            traffic: None,
        }
    }
}
