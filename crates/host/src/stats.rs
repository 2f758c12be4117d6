//! How full a store is, and what it did.

use kvssd_device::Drive;

/// How full a store is, with all its namespaces, and what it did since it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The firmware.
    pub design: String,
    /// Pairs that are stored.
    pub pairs: u64,
    /// Bytes of their keys and values.
    pub pair_bytes: u64,
    /// Bytes of flash that live, in whole grains and with the index.
    pub live_bytes: u64,
    /// The most that may live.
    pub capacity_bytes: u64,
    /// Bytes of all flash.
    pub flash_bytes: u64,
    /// The largest value, and the most bytes of keys and values of a batch.
    pub value_bytes_max: u64,
    /// The most changes of a batch.
    pub batch_changes_max: usize,
    /// Bytes of memory that the firmware's tables take.
    pub dram_bytes: u64,
    /// The most that they may take.
    pub dram_bytes_max: u64,
    /// Pages of flash that were read since it was opened.
    pub pages_read: u64,
    /// Pages of flash that were programmed since it was opened.
    pub pages_programmed: u64,
    /// Pairs that garbage collection moved since it was opened.
    pub pairs_moved: u64,
}

impl Stats {
    pub(crate) fn of(drive: &Drive) -> Self {
        let engine = drive.engine();
        let (utilization, flash) = (engine.utilization(), engine.flash_counters());
        Stats {
            design: drive.design().name.to_owned(),
            pairs: utilization.pairs,
            pair_bytes: utilization.pair_bytes,
            live_bytes: utilization.live_bytes,
            capacity_bytes: utilization.capacity_bytes,
            flash_bytes: engine.geometry().raw_bytes(),
            value_bytes_max: engine.value_bytes_max(),
            batch_changes_max: engine.batch_changes_max(),
            dram_bytes: engine.dram().total_bytes(),
            dram_bytes_max: engine.dram_budget_bytes(),
            pages_read: flash.reads.total(),
            pages_programmed: flash.programs.total(),
            pairs_moved: engine.gc_counters().pairs_moved,
        }
    }
}
