//! How KVbench opens RocksDB, with the paper's cache: OpenMPDK/KVSSD, `application/kvbench/wrappers/couch_rocksdb.cc`, and the
//! `bench_config.ini` beside it. What they leave alone is RocksDB's default.

/// Levels, the first of which holds flushed MemTables (`num_levels`).
pub(super) const LEVELS: usize = 6;
/// Each level holds so many times as much as the one before (`max_bytes_for_level_multiplier`).
pub(super) const LEVEL_FACTOR: u64 = 10;
/// Tables in level 0 that make a compaction (`level0_file_num_compaction_trigger`).
pub(super) const LEVEL0_COMPACTS: usize = 8;
/// Tables in level 0 that slow writes down (`level0_slowdown_writes_trigger`).
pub(super) const LEVEL0_SLOWS: usize = 16;
/// Tables in level 0 that stop writes (`level0_stop_writes_trigger`).
pub(super) const LEVEL0_STOPS: usize = 24;
/// Bytes a second of writes that are slowed down (`delayed_write_rate`). RocksDB changes it as it goes on; here it stays.
pub(super) const SLOW_BYTES_PER_S: u64 = 8 << 20;
/// Compactions under way at a time (`max_background_compactions`). There is one flush: of two MemTables one is filled.
pub(super) const COMPACTIONS_MAX: usize = 8;
/// One key in so many that a table has not passes its filter (`bloom_bits_per_key` = 10).
pub(super) const FILTER_PASSES_ONE_OF: u64 = 100;
/// A data block is closed when it has so many bytes (`block_size`).
pub(super) const BLOCK_BYTES: u64 = 4096;
/// What is read at a time in a compaction, and read ahead. Estimate: between the kernel's 128 KiB and RocksDB's 2 MiB.
pub(super) const PIECE_BYTES: u64 = 256 << 10;
/// How large levels may be (`level_compaction_dynamic_level_bytes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelSizes {
    /// Level 1 has its size, and each below ten times that of the one above: KVbench's. Of the last level but one all may be
    /// bound anew in the last.
    FromFirst,
    /// The last level is as large as it is, each above it a tenth of the one below, and level 0 goes to the first whose size is at most that
    /// of level 1. A store takes 1.11 times its pairs at most, as the paper says of it (Study, figure 7).
    FromLast,
}

/// The sizes that follow the size of an experiment, and how levels are sized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsmOptions {
    /// Bytes of a MemTable (`wbs_init_MB`). There are two at most (`max_write_buffer_number`): one is filled while the other is flushed.
    /// KVbench opens the store anew for what follows the population, with 4 MB (`wbs_bench_MB`), of which a 64th would be 16 pairs: here
    /// it stays.
    pub write_buffer_bytes: u64,
    /// Bytes of a table (`target_file_size_base`).
    pub table_bytes: u64,
    /// Bytes of level 1 (`max_bytes_for_level_base`).
    pub level_base_bytes: u64,
    /// And those of the others.
    pub level_sizes: LevelSizes,
    /// Bytes of the block cache (Study, section IV: 10 MB).
    pub cache_bytes: u64,
    /// Bytes that are still to be compacted when writes slow down (`soft_pending_compaction_bytes_limit`).
    pub pending_slows_bytes: u64,
    /// The same when writes stop (`hard_pending_compaction_bytes_limit`).
    pub pending_stops_bytes: u64,
}

impl LsmOptions {
    /// KVbench's, and the paper's cache.
    pub const DEFAULT: LsmOptions = LsmOptions {
        write_buffer_bytes: 64 << 20,
        table_bytes: 128 << 20,
        level_base_bytes: 1 << 30,
        level_sizes: LevelSizes::FromFirst,
        cache_bytes: 10_000_000,
        pending_slows_bytes: 64 << 30,
        pending_stops_bytes: 128 << 30,
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
            level_sizes: self.level_sizes,
            cache_bytes: of(self.cache_bytes, scale),
            pending_slows_bytes: of(self.pending_slows_bytes, scale),
            pending_stops_bytes: of(self.pending_stops_bytes, scale),
        }
    }
}
