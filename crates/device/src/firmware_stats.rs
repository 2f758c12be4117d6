//! What the firmware of a drive says of what it holds and did.

use crate::drive::Drive;
use kvssd_flash::BLOCK_ERASES_MAX;
use serde::Serialize;

/// What the firmware of this project says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FirmwareStats {
    /// Pairs that are stored.
    pub pairs: u64,
    /// Bytes of their keys and values; on a drive of large values with what tells whole ones from segments.
    pub pair_bytes: u64,
    /// Bytes of all flash.
    pub flash_bytes: u64,
    /// Bytes of memory that the firmware's tables take.
    pub dram_bytes: u64,
    /// The most that they may take.
    pub dram_bytes_max: u64,
    /// Bytes of a page of flash.
    pub page_bytes: u64,
    /// Pages of flash that were read since it was opened.
    pub pages_read: u64,
    /// Pages of flash that were programmed since it was opened.
    pub pages_programmed: u64,
    /// Pairs that garbage collection moved since it was opened.
    pub pairs_moved: u64,
    /// Erases of all blocks in the life of the drive.
    pub erases: u64,
    /// Blocks.
    pub blocks: u64,
    /// Erases of the block that was erased most.
    pub erases_max: u64,
}

impl FirmwareStats {
    /// The part of the blocks' life that is used, in per cent: the mean of all erases over what a block bears.
    #[must_use]
    pub fn used_percent(&self) -> u64 {
        self.erases * 100 / (self.blocks.max(1) * u64::from(BLOCK_ERASES_MAX))
    }

    /// The sums of both, which must have pages of the same size.
    #[must_use]
    pub fn plus(&self, other: &FirmwareStats) -> FirmwareStats {
        FirmwareStats {
            pairs: self.pairs + other.pairs,
            pair_bytes: self.pair_bytes + other.pair_bytes,
            flash_bytes: self.flash_bytes + other.flash_bytes,
            dram_bytes: self.dram_bytes + other.dram_bytes,
            dram_bytes_max: self.dram_bytes_max + other.dram_bytes_max,
            page_bytes: self.page_bytes,
            pages_read: self.pages_read + other.pages_read,
            pages_programmed: self.pages_programmed + other.pages_programmed,
            pairs_moved: self.pairs_moved + other.pairs_moved,
            erases: self.erases + other.erases,
            blocks: self.blocks + other.blocks,
            erases_max: self.erases_max.max(other.erases_max),
        }
    }
}

impl Drive {
    /// What its firmware says.
    #[must_use]
    pub fn firmware_stats(&self) -> FirmwareStats {
        let (engine, utilization) = (self.engine(), self.utilization());
        let (flash, geometry) = (engine.flash_counters(), engine.geometry());
        let none = (0, 0, 0);
        let (blocks, erases, erases_max) = engine
            .erases()
            .map(u64::from)
            .fold(none, |(blocks, sum, most), erases| (blocks + 1, sum + erases, most.max(erases)));
        FirmwareStats {
            pairs: utilization.pairs,
            pair_bytes: utilization.pair_bytes,
            flash_bytes: geometry.raw_bytes(),
            dram_bytes: engine.dram().total_bytes(),
            dram_bytes_max: engine.dram_budget_bytes(),
            page_bytes: geometry.page_bytes.into(),
            pages_read: flash.reads.total() + engine.pages_glanced(),
            pages_programmed: flash.programs.total(),
            pairs_moved: engine.gc_counters().pairs_moved,
            erases,
            blocks,
            erases_max,
        }
    }
}
