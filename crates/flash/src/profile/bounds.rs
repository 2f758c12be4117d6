//! What the values of a profile may be.

use super::Profile;
use crate::power::PowerLoss;

/// The largest write buffer: 16 GiB, far more than a drive has.
const WRITE_BUFFER_BYTES_MAX: u64 = 1 << 34;
/// The most DRAM: 64 TiB.
const DRAM_BYTES_MAX: u64 = 1 << 46;
/// Logs on each target, each of which may gather a program: of hosts, of garbage collection and of the index.
const STREAMS: u32 = 3;

fn between(key: &str, value: u64, low: u64, high: u64) -> Result<(), String> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(format!("{key} = {value} must lie between {low} and {high}"))
    }
}

impl Profile {
    /// What is wrong with the profile, with its key.
    pub(super) fn check(&self) -> Result<(), String> {
        let geometry = self.geometry;
        let positive = [
            ("geometry.channels", u64::from(geometry.channels)),
            ("geometry.dies_per_channel", u64::from(geometry.dies_per_channel)),
            ("geometry.blocks_per_die", u64::from(geometry.blocks_per_die)),
            ("geometry.pages_per_block", u64::from(geometry.pages_per_block)),
            ("geometry.pages_per_program", u64::from(geometry.pages_per_program)),
            ("nand.program_ns", self.nand.program_ns),
            ("nand.erase_ns", self.nand.erase_ns),
            ("nand.channel_bytes_per_s", self.nand.channel_bytes_per_s),
            ("nand.channel_transfer_bytes_max", u64::from(self.nand.channel_transfer_bytes_max)),
            ("link.bytes_per_s", self.link.bytes_per_s),
            ("core_costs.cores", u64::from(self.core_costs.cores)),
        ];
        if let Some((key, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(format!("{key} must be above 0"));
        }
        between("link.transfer_bytes_min", self.link.transfer_bytes_min.into(), 0, 1 << 20)?;
        between("geometry.channels", geometry.channels.into(), 1, 1024)?;
        between("geometry.dies_per_channel", geometry.dies_per_channel.into(), 1, 1024)?;
        between("geometry.pages_per_block", geometry.pages_per_block.into(), 1, 1 << 20)?;
        between("geometry.page_bytes", geometry.page_bytes.into(), 512, 65_536)?;
        between("geometry.oob_bytes", geometry.oob_bytes.into(), 32, 8_192)?;
        between("core_costs.cores", self.core_costs.cores.into(), 1, 1024)?;
        between("nand.channel_bytes_per_s", self.nand.channel_bytes_per_s, 1, 1 << 50)?;
        between("link.bytes_per_s", self.link.bytes_per_s, 1, 1 << 50)?;
        self.check_times()?;
        self.check_geometry()?;
        self.check_emulator()?;
        if !(0.0..=50.0).contains(&self.space.over_provisioning_percent) {
            return Err("space.over_provisioning_percent must lie between 0 and 50".to_owned());
        }
        self.check_memory()
    }

    fn check_times(&self) -> Result<(), String> {
        // More than an hour for a step is a slip of the unit, and would run virtual time out of its range.
        const STEP_NS_MAX: u64 = 3_600_000_000_000;
        let (firmware, costs) = (self.firmware, self.core_costs);
        let steps = [
            ("nand.program_ns", self.nand.program_ns),
            ("nand.erase_ns", self.nand.erase_ns),
            ("firmware.read_small_ns", firmware.read_small_ns),
            ("firmware.read_large_ns", firmware.read_large_ns),
            ("firmware.write_ns", firmware.write_ns),
            ("firmware.write_4k_ns", firmware.write_4k_ns),
            ("core_costs.command_ns", costs.command_ns),
            ("core_costs.hash_ns", costs.hash_ns),
            ("core_costs.section_ns", costs.section_ns),
            ("core_costs.comparison_ns", costs.comparison_ns),
            ("core_costs.key_compare_ns", costs.key_compare_ns),
            ("core_costs.append_ns", costs.append_ns),
            ("core_costs.gc_record_ns", costs.gc_record_ns),
            ("core_costs.range_lock_ns", costs.range_lock_ns),
            ("core_costs.new_entry_ns", costs.new_entry_ns),
            ("emulator.retry_ns", self.emulator.retry_ns),
        ];
        for (key, value) in steps {
            between(key, value, 0, STEP_NS_MAX)?;
        }
        for (key, levels) in
            [("nand.read_small_ns", &self.nand.read_small_ns), ("nand.read_large_ns", &self.nand.read_large_ns)]
        {
            if levels.is_empty() {
                return Err(format!("{key} must have a time for each level of a cell"));
            }
            levels.iter().try_for_each(|&level| between(key, level, 1, STEP_NS_MAX))?;
        }
        Ok(())
    }

    fn check_geometry(&self) -> Result<(), String> {
        let geometry = self.geometry;
        if !geometry.page_bytes.is_power_of_two() {
            return Err(format!("geometry.page_bytes = {} must be a power of two", geometry.page_bytes));
        }
        let read_bytes_min = geometry.read_bytes_min;
        if read_bytes_min != 0 && !read_bytes_min.is_power_of_two() {
            return Err(format!("geometry.read_bytes_min = {read_bytes_min} must be a power of two, or 0 for 4096"));
        }
        if !geometry.pages_per_block.is_multiple_of(geometry.pages_per_program) {
            return Err(format!(
                "geometry.pages_per_block = {} must be a multiple of geometry.pages_per_program = {}",
                geometry.pages_per_block, geometry.pages_per_program
            ));
        }
        between("geometry.pages_per_program", geometry.pages_per_program.into(), 1, 256)?;
        let width = geometry.target_dies();
        if !geometry.dies().is_multiple_of(width) {
            return Err(format!("geometry.superblock_dies = {width} must divide the {} dies", geometry.dies()));
        }
        let superblock_pages = u64::from(geometry.dies()) * u64::from(geometry.pages_per_block);
        if superblock_pages.saturating_mul(geometry.blocks_per_die.into()) >= u64::from(u32::MAX) {
            return Err("geometry has more than 2^32 - 2 pages".to_owned());
        }
        Ok(())
    }

    /// What is kept in the host's memory is gone when the power goes.
    fn check_emulator(&self) -> Result<(), String> {
        match self.emulator.moves_dirty_nothing && self.memory.power_loss != PowerLoss::Ignored {
            true => Err("emulator.moves_dirty_nothing needs memory.power_loss = \"ignored\"".to_owned()),
            false => Ok(()),
        }
    }

    /// More than these is a slip, or a description that was made up: it would be allocated.
    fn check_memory(&self) -> Result<(), String> {
        let most = [
            ("memory.write_buffer_bytes", self.memory.write_buffer_bytes, WRITE_BUFFER_BYTES_MAX),
            ("memory.dram_bytes", self.memory.dram_bytes, DRAM_BYTES_MAX),
            ("emulator.section_dram_bytes", self.emulator.section_dram_bytes, DRAM_BYTES_MAX),
        ];
        if let Some((key, bytes, most)) = most.iter().find(|(_, bytes, most)| bytes > most) {
            return Err(format!("{key} = {bytes} must be at most {most}"));
        }
        let geometry = self.geometry;
        let units_min = STREAMS * geometry.targets() + 1;
        if self.write_buffer_units() < units_min {
            return Err(format!(
                "memory.write_buffer_bytes = {} must hold at least {units_min} programs of {} bytes: one that each of the \
                 {STREAMS} streams gathers on each target, and one that is under way",
                self.memory.write_buffer_bytes,
                geometry.unit_bytes()
            ));
        }
        Ok(())
    }
}
