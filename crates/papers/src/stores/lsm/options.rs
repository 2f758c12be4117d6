//! How RocksDB is opened: its defaults (`include/rocksdb/options.h`, `advanced_options.h`, release 9), and the paper's cache.

/// Levels, the first of which holds flushed MemTables (`num_levels`).
pub(super) const LEVELS: usize = 7;
/// Each level holds so many times as much as the one before (`max_bytes_for_level_multiplier`).
pub(super) const LEVEL_FACTOR: u64 = 10;
/// Tables in level 0 that make a compaction (`level0_file_num_compaction_trigger`).
pub(super) const LEVEL0_COMPACTS: usize = 4;
/// Tables in level 0 that slow writes down (`level0_slowdown_writes_trigger`).
pub(super) const LEVEL0_SLOWS: usize = 20;
/// Tables in level 0 that stop writes (`level0_stop_writes_trigger`).
pub(super) const LEVEL0_STOPS: usize = 36;
/// Bytes a second of writes that are slowed down (`delayed_write_rate`). RocksDB changes it as it goes on; here it stays.
pub(super) const SLOW_BYTES_PER_S: u64 = 16 << 20;
/// A data block is closed when it has so many bytes (`block_size`).
pub(super) const BLOCK_BYTES: u64 = 4096;
/// What is read at a time in a compaction, and read ahead. Estimate: between the kernel's 128 KiB and RocksDB's 2 MiB.
pub(super) const PIECE_BYTES: u64 = 256 << 10;
/// What the kernel writes of a log at a time. Estimate.
pub(super) const LOG_WRITE_BYTES: u64 = 128 << 10;

/// The sizes that follow the size of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsmOptions {
    /// Bytes of a MemTable (`write_buffer_size`). There are two at most: one is filled while the other is flushed.
    pub write_buffer_bytes: u64,
    /// Bytes of a table (`target_file_size_base`).
    pub table_bytes: u64,
    /// Bytes of the first level below level 0 (`max_bytes_for_level_base`).
    pub level_base_bytes: u64,
    /// Bytes of the block cache (Study, section IV: 10 MB).
    pub cache_bytes: u64,
    /// Bytes that are still to be compacted when writes slow down (`soft_pending_compaction_bytes_limit`).
    pub pending_slows_bytes: u64,
    /// The same when writes stop (`hard_pending_compaction_bytes_limit`).
    pub pending_stops_bytes: u64,
}

impl LsmOptions {
    /// The defaults, and the paper's cache.
    pub const DEFAULT: LsmOptions = LsmOptions {
        write_buffer_bytes: 64 << 20,
        table_bytes: 64 << 20,
        level_base_bytes: 256 << 20,
        cache_bytes: 10_000_000,
        pending_slows_bytes: 64 << 30,
        pending_stops_bytes: 256 << 30,
    };

    /// The same for a part of the data. Tables, and with them MemTables and the first level, stay at 1/64: smaller ones, of less than a
    /// MiB, would be measured by the latency of their first page.
    #[must_use]
    pub fn scaled(self, scale: f64) -> LsmOptions {
        let of = |bytes: u64, scale: f64| ((bytes as f64 * scale) as u64).max(1);
        let of_tables = |bytes| of(bytes, scale.max(1.0 / 64.0));
        LsmOptions {
            write_buffer_bytes: of_tables(self.write_buffer_bytes),
            table_bytes: of_tables(self.table_bytes),
            level_base_bytes: of_tables(self.level_base_bytes),
            cache_bytes: of(self.cache_bytes, scale),
            pending_slows_bytes: of(self.pending_slows_bytes, scale),
            pending_stops_bytes: of(self.pending_stops_bytes, scale),
        }
    }
}
