//! A drive as the model sees it: times of its parts, sizes of its records, what its index does.

use crate::load::Load;
use crate::{EstimateError, Mix};
use kvssd_flash::Profile;
use kvssd_ftl::index::{Changes, Forecast, Visit};
use kvssd_ftl::{Design, RecordHead, RecordLayout, ValidityKind};
use std::cell::Cell;

/// The part of a unit of a victim that lives. An estimate.
const NEIGHBOURS_SHARE: f64 = 0.75;

/// The part of the flash behind which something was collected. An estimate.
const COLLECTED_SHARE: f64 = 0.8;

/// Records that are laid one behind the other to see how they lie.
const RECORDS_LAID: u32 = 512;

/// Everything that the model knows. Times are nanoseconds, sizes pages.
#[derive(Clone, Debug)]
pub(crate) struct Drive {
    pub(crate) forecast: Forecast,
    pub(crate) validity: ValidityKind,
    pub(crate) dies: f64,
    pub(crate) channels: f64,
    pub(crate) cores: f64,
    pub(crate) core_waits: bool,
    pub(crate) superblocks: f64,
    pub(crate) superblock_pages: f64,
    /// Free superblocks below which garbage collection works.
    pub(crate) free_low: f64,
    /// Those that it keeps for itself, and those that stores wait for.
    free_least: f64,
    free_high: f64,
    /// The pages that a step of garbage collection reads while stores wait for it.
    pub(crate) step_pages: f64,
    /// And the most that it ever does.
    pub(crate) step_pages_max: f64,
    pub(crate) unit_pages: f64,
    /// A read that a command makes: sense and transfer.
    pub(crate) read_ns: f64,
    /// A read of a page of the index, which is read whole.
    pub(crate) index_read_ns: f64,
    /// A read of whole pages: sense, and transfer of one.
    pub(crate) sense_ns: f64,
    pub(crate) page_transfer_ns: f64,
    pub(crate) transfer_ns: f64,
    pub(crate) program_ns: f64,
    pub(crate) erase_ns: f64,
    pub(crate) record: Record,
    pub(crate) times: Times,
    /// Whether what a store reads is read behind its answer.
    pub(crate) stores_behind: bool,
    pub(crate) prefetches: bool,
    /// How much was reckoned.
    pub(crate) work: Work,
}

/// A count of the steps of an estimate, whose number a test bounds: each takes a fraction of a microsecond, at any scale.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work(Cell<u64>);

impl Work {
    pub(crate) fn add(&self, steps: u64) {
        self.0.set(self.0.get() + steps);
    }

    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        self.0.get()
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// Pages that it takes.
    pub(crate) pages: f64,
    /// Pages that a store programs: of a block drive a whole block, however small the value.
    pub(crate) stored_pages: f64,
    /// Pages of what the index has an entry for: a record, or a block.
    pub(crate) entry_pages: f64,
    /// Records that a page has a part of.
    pub(crate) of_page: f64,
    /// Pages that it lies in, on average.
    pub(crate) reads: f64,
    /// Whether all of them are read side by side: no first one says whose record it is.
    pub(crate) is_read_at_once: bool,
    /// Reads of a store of a part of a block, before or behind its answer.
    pub(crate) store_reads: f64,
    /// Bytes of key and value.
    pub(crate) user_bytes: f64,
    pub(crate) page_bytes: f64,
}

/// What commands take beside flash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) retrieve_ns: f64,
    pub(crate) store_ns: f64,
    pub(crate) retrieve_core_ns: f64,
    pub(crate) store_core_ns: f64,
    /// Of both, what a command takes that comes alone or as a batch.
    pub(crate) command_ns: f64,
    /// Of that, what comes before the answer of a store whose key is looked up behind it.
    pub(crate) append_core_ns: f64,
    /// Of garbage collection for each pair that it asks about, and for each that it moves.
    pub(crate) ask_core_ns: f64,
    pub(crate) move_core_ns: f64,
    pub(crate) link_ns: f64,
}

impl Drive {
    pub(crate) fn new(profile: &Profile, design: &Design, load: &Load) -> Result<Self, EstimateError> {
        let record = Record::new(profile, design, load);
        let forecast = design.forecast(profile, load.pairs, load.key_bytes, known_changes(profile, &record, load));
        let forecast = forecast.ok_or(EstimateError::Unforeseen { index: design.index.plan().name() })?;
        let (geometry, nand) = (&profile.geometry, &profile.nand);
        // Rows take turns in the levels of a cell, over all blocks and dies.
        let mean = |times: &[u64]| times.iter().sum::<u64>() as f64 / times.len() as f64;
        let transfer = |bytes: f64| bytes * 1e9 / nand.channel_bytes_per_s as f64;
        let page_bytes = f64::from(geometry.page_bytes);
        let sector_bytes = page_bytes.min(4096.0);
        let kept = design.kept_free(geometry);
        let (low, high) = (f64::from(kept.low), f64::from(kept.high));
        let unit_pages = f64::from(geometry.pages_per_program);
        let wide = 2.0 * f64::from(geometry.channels) * unit_pages;
        let in_hand = profile.memory.write_buffer_bytes as f64 / 2.0 / page_bytes;
        let sense_ns = if page_bytes > 4096.0 { mean(&nand.read_large_ns) } else { mean(&nand.read_small_ns) };
        let step_pages_max = wide.min(f64::from(geometry.pages_per_superblock())).min(in_hand.max(1.0));
        Ok(Drive {
            validity: design.validity,
            dies: f64::from(geometry.channels * geometry.dies_per_channel),
            channels: f64::from(geometry.channels),
            cores: f64::from(profile.core_costs.cores),
            core_waits: profile.core_costs.waits_for_flash,
            superblocks: f64::from(geometry.superblocks()),
            superblock_pages: f64::from(geometry.pages_per_superblock()),
            free_low: low + f64::from(kept.collector),
            free_least: kept.collector.into(),
            free_high: high + f64::from(kept.collector),
            // While stores wait one is missing, and then none.
            step_pages: step_pages_max * ((low - high + 0.5) / low).clamp(1.0 / low, 1.0),
            step_pages_max,
            unit_pages,
            read_ns: mean(&nand.read_small_ns) + transfer(sector_bytes),
            index_read_ns: sense_ns + transfer(page_bytes),
            sense_ns,
            page_transfer_ns: transfer(page_bytes),
            transfer_ns: transfer(sector_bytes),
            program_ns: nand.program_ns as f64,
            erase_ns: nand.erase_ns as f64,
            record,
            times: Times::new(profile, design, &forecast, load),
            stores_behind: design.stores_behind_max > 0 || design.gathers(profile),
            prefetches: !design.iterators.prefetch_degree.is_none(),
            work: Work::default(),
            forecast,
        })
    }

    /// Pages of all pieces of the index.
    pub(crate) fn index_pages(&self) -> f64 {
        self.forecast.visits.iter().map(|visit| visit.pieces).sum::<f64>() * self.piece_pages()
    }

    /// Free superblocks where a collector that reads so many pages a step comes to rest: it is as much wider as more is gone.
    pub(crate) fn free_at(&self, step_pages: f64) -> f64 {
        let rests = self.free_low - (self.free_low - self.free_least) * (step_pages / self.step_pages_max).min(1.0);
        rests.max(self.free_high)
    }

    /// Pages of a unit that a step of so many pages reads at once.
    pub(crate) fn neighbours(&self, step_pages: f64) -> f64 {
        (NEIGHBOURS_SHARE * self.unit_pages).min(step_pages).max(1.0)
    }

    /// The share of visits to pieces on flash that make a read of their own: of few pieces, another client's is often under way.
    pub(crate) fn alone(&self, visit: &Visit, clients: u32) -> f64 {
        let visits = self.forecast.visits.iter();
        let chain: f64 = 1.0 + visits.map(|visit| visit.reached * (1.0 - visit.in_dram)).sum::<f64>();
        1.0 / (1.0 + f64::from(clients) * visit.reached / chain / visit.pieces)
    }

    pub(crate) fn piece_pages(&self) -> f64 {
        self.forecast.piece_bytes / self.record.page_bytes
    }

    /// Whether changes come to flash with the pieces that they are made in.
    pub(crate) fn changes_in_place(&self) -> bool {
        self.forecast.changes == Changes::InPlace
    }
}

/// Changes before the run, where that makes none and nothing was collected.
fn known_changes(profile: &Profile, record: &Record, load: &Load) -> Option<u64> {
    let changes = load.pairs + load.overwrites;
    let pages = changes as f64 * record.stored_pages;
    let (_, stores) = load.points();
    (stores == 0.0 && pages < COLLECTED_SHARE * profile.geometry.pages() as f64).then_some(changes)
}

impl Record {
    fn new(profile: &Profile, design: &Design, load: &Load) -> Self {
        let Load { key_bytes, value_bytes, .. } = *load;
        let page_bytes = f64::from(profile.geometry.page_bytes);
        let user_bytes = f64::from(key_bytes + value_bytes);
        let packing = design.packing(&profile.geometry);
        if design.layout == RecordLayout::Blocks {
            return Record::of_blocks(packing.grain_bytes, load, page_bytes);
        }
        let head = RecordHead { key_bytes, value_bytes };
        let (page_grains, unbroken) = (packing.grains_per_page, packing.unbroken_bytes(&head));
        let grains = packing.grains_of_record(&head);
        let (mut at, mut touched) = (0u32, 0u32);
        for _ in 0..RECORDS_LAID {
            // As the log does: the rest of a page that has no room for what must lie in one is left.
            let in_page = at % page_grains;
            if in_page as usize * packing.grain_bytes as usize + unbroken > packing.page_bytes() as usize {
                at += page_grains - in_page;
            }
            touched += (at % page_grains + grains).div_ceil(page_grains);
            at += grains;
        }
        let pages = f64::from(at) / f64::from(page_grains) / f64::from(RECORDS_LAID);
        let reads = f64::from(touched) / f64::from(RECORDS_LAID);
        // Of a page full of records, those that run on over its end are in two.
        let of_page = reads / pages;
        Record {
            pages,
            stored_pages: pages,
            entry_pages: pages,
            of_page,
            reads,
            is_read_at_once: false,
            store_reads: 0.0,
            user_bytes,
            page_bytes,
        }
    }

    /// A value on a block drive that maps so many bytes at once: values lie one behind the other, wherever that is.
    fn of_blocks(mapped_bytes: u32, load: &Load, page_bytes: f64) -> Self {
        let (mapped_bytes, value_bytes) = (u64::from(mapped_bytes), u64::from(load.value_bytes.max(1)));
        let (mut touched, mut whole) = (0, 0);
        for start in (0..u64::from(RECORDS_LAID)).map(|number| number * value_bytes) {
            let end = start + value_bytes;
            touched += end.div_ceil(mapped_bytes) - start / mapped_bytes;
            whole += (end / mapped_bytes).saturating_sub(start.div_ceil(mapped_bytes));
        }
        let of_value = |blocks: u64| blocks as f64 / f64::from(RECORDS_LAID);
        let block_pages = mapped_bytes as f64 / page_bytes;
        Record {
            pages: value_bytes as f64 / page_bytes,
            stored_pages: of_value(touched) * block_pages,
            entry_pages: block_pages,
            of_page: 1.0 / block_pages,
            // Blocks that were written together share pages.
            reads: 1.0 + (of_value(touched) - 1.0) * block_pages,
            is_read_at_once: true,
            // A store of a part of a block reads the rest.
            store_reads: of_value(touched - whole),
            user_bytes: f64::from(load.key_bytes + load.value_bytes),
            page_bytes,
        }
    }
}

impl Times {
    fn new(profile: &Profile, design: &Design, forecast: &Forecast, load: &Load) -> Self {
        let (firmware, costs) = (&profile.firmware, &profile.core_costs);
        let value_bytes = f64::from(load.value_bytes);
        let visits: f64 = forecast.visits.iter().map(|visit| visit.reached.max(1.0)).sum();
        let has_directory = forecast.changes == Changes::InPlace && !forecast.visits.is_empty();
        let directory_ns = if has_directory { costs.section_ns as f64 } else { 0.0 };
        let search_ns = visits.max(1.0) * (directory_ns + forecast.comparisons * costs.comparison_ns as f64);
        let look_up_ns = costs.hash_ns as f64 + search_ns;
        let verify_ns =
            if forecast.knows_keys { 0.0 } else { (1.0 + forecast.strangers) * costs.key_compare_ns as f64 };
        // A key that a command has no room for comes with one before.
        let is_long = design.layout != RecordLayout::Blocks && load.key_bytes > profile.link.command_key_bytes;
        let long_ns = if is_long { firmware.write_ns as f64 } else { 0.0 };
        let long_core_ns = if is_long { costs.command_ns as f64 } else { 0.0 };
        let lock_ns = if design.layout == RecordLayout::Blocks { costs.range_lock_ns as f64 } else { 0.0 };
        let command_ns = costs.command_ns as f64 + long_core_ns + lock_ns + look_up_ns + verify_ns;
        let read_ns = if value_bytes > 4096.0 { firmware.read_large_ns } else { firmware.read_small_ns } as f64;
        let write_ns = firmware.write_ns as f64 + (value_bytes / 4096.0).ceil().max(1.0) * firmware.write_4k_ns as f64;
        Times {
            retrieve_ns: read_ns + long_ns,
            store_ns: write_ns + long_ns,
            retrieve_core_ns: command_ns,
            store_core_ns: command_ns + costs.append_ns as f64,
            command_ns: costs.command_ns as f64,
            append_core_ns: (costs.command_ns + costs.append_ns) as f64 + long_core_ns + lock_ns,
            ask_core_ns: costs.gc_record_ns as f64 + search_ns,
            move_core_ns: costs.append_ns as f64 + search_ns,
            link_ns: profile.link_time(load.value_bytes.into()).0 as f64,
        }
    }
}

impl Load {
    /// Retrieves and stores for each operation.
    pub(crate) fn points(&self) -> (f64, f64) {
        match self.mix {
            Mix::Points { retrieves, stores, .. } => (retrieves, stores),
            Mix::Ranges { .. } => (0.0, 0.0),
        }
    }

    /// Stores that look their key up anew: a piece of an index that the retrieve before brought is still in DRAM.
    pub(crate) fn look_up_stores(&self, drive: &Drive) -> f64 {
        match self.mix {
            Mix::Points { modifies: true, .. } if drive.changes_in_place() => 0.0,
            _ => self.points().1,
        }
    }
}
