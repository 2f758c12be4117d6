//! What every design shares: flash, the log, the table of superblocks, validity, the journal and the cores.

use crate::address::Grain;
use crate::clients::ClientTable;
use crate::dram::DramUse;
use crate::held::Held;
use crate::journal::Journal;
use crate::log::Log;
use crate::oob::OobFormat;
use crate::packing::Packing;
use crate::placement::{LogId, LogRoom, Placement};
use crate::planted::PlantedBug;
use crate::read_ahead::ReadAhead;
use crate::superblock::Superblocks;
use crate::validity::Validity;
use crate::victims::VictimPolicy;
use kvssd_flash::timing::Pool;
use kvssd_flash::{CoreCosts, Emulator, Flash, Geometry, PageAddress, PowerLoss, Profile, SuperblockId};
use kvssd_types::Nanos;

/// The machinery that every design shares and every index works on, through an [`Io`].
pub struct Media {
    pub(crate) flash: Flash,
    pub(crate) geometry: Geometry,
    pub(crate) packing: Packing,
    pub(crate) superblocks: Superblocks,
    pub(crate) log: Log,
    pub(crate) placement: Placement,
    pub(crate) validity: Box<dyn Validity>,
    pub(crate) cores: Pool,
    pub(crate) costs: CoreCosts,
    pub(crate) emulator: Emulator,
    pub(crate) write_buffer_bytes: u64,
    pub(crate) now: Nanos,
    pub(crate) power_loss: PowerLoss,
    pub(crate) journal: Journal,
    pub(crate) planted: Option<PlantedBug>,
    pub(crate) victims: VictimPolicy,
    /// Bytes that the write buffer's memory holds.
    pub(crate) staged_bytes: u64,
    /// What iterators keep.
    pub(crate) held: Held,
    /// What clients have had made.
    pub(crate) clients: ClientTable,
    /// Room for an out-of-band area that is encoded.
    pub(crate) oob_bytes: Vec<u8>,
}

impl Media {
    pub(crate) fn new(
        flash: Flash,
        packing: Packing,
        format: OobFormat,
        validity: Box<dyn Validity>,
        profile: &Profile,
    ) -> Self {
        let costs = profile.core_costs;
        let geometry = *flash.geometry();
        Media {
            superblocks: Superblocks::new(geometry.superblocks(), geometry.targets()),
            placement: Placement::new(geometry.targets()),
            log: Log::new(&geometry, format),
            cores: Pool::new(costs.cores),
            flash,
            geometry,
            packing,
            validity,
            costs,
            emulator: profile.emulator,
            write_buffer_bytes: profile.memory.write_buffer_bytes,
            now: Nanos::ZERO,
            power_loss: profile.memory.power_loss,
            journal: Journal::default(),
            planted: None,
            victims: VictimPolicy::Greedy,
            staged_bytes: 0,
            held: Held::default(),
            clients: ClientTable::default(),
            oob_bytes: Vec::new(),
        }
    }

    /// The same once more, if what keeps the pages can be copied.
    pub(crate) fn snapshot(&self) -> Option<Media> {
        Some(Media {
            flash: self.flash.snapshot()?,
            geometry: self.geometry,
            packing: self.packing,
            superblocks: self.superblocks.clone(),
            log: self.log.clone(),
            placement: self.placement.clone(),
            validity: self.validity.clone(),
            cores: self.cores.clone(),
            costs: self.costs,
            emulator: self.emulator,
            write_buffer_bytes: self.write_buffer_bytes,
            now: self.now,
            power_loss: self.power_loss,
            journal: self.journal.clone(),
            planted: self.planted,
            victims: self.victims,
            staged_bytes: self.staged_bytes,
            held: self.held.clone(),
            clients: self.clients.clone(),
            oob_bytes: self.oob_bytes.clone(),
        })
    }

    /// No clock lies before `now` any more: calendars may forget what ended before.
    pub(crate) fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        self.flash.advance(now);
    }

    pub(crate) fn dram(&self, dram: &mut DramUse) {
        Superblocks::charge(self.superblocks.all().len() as u64, dram);
        dram.add("log", self.log.dram_bytes());
        // The pages that are gathered, programmed, and passed on by garbage collection.
        dram.add("write_buffer", self.write_buffer_bytes);
        ReadAhead::charge(&self.packing, dram);
        self.validity.dram(dram);
        if self.held.is_on() {
            dram.add("held_records", self.held.bytes());
        }
        self.clients.dram(dram);
    }

    /// The sum of [`Media::dram`], which is asked for after every command.
    pub(crate) fn dram_bytes(&self) -> u64 {
        let superblocks = self.superblocks.all().len() as u64;
        superblocks * Superblocks::ENTRY_BYTES
            + self.log.dram_bytes()
            + self.write_buffer_bytes
            + self.validity.dram_bytes()
            + self.held.bytes()
            + self.clients.dram_bytes()
    }

    /// The page behind `page` in the order of its stream.
    pub(crate) fn page_after(&self, page: PageAddress) -> PageAddress {
        let next = PageAddress(page.0 + 1);
        let superblock = self.geometry.superblock_of(page);
        if next.0 < self.geometry.first_page(superblock).0 + self.geometry.pages_per_superblock() {
            return next;
        }
        self.geometry.first_page(self.superblocks.get(superblock).next)
    }

    /// Whether a log has room for a record of so many bytes.
    pub(crate) fn room_of(&self, log: LogId, bytes: usize) -> LogRoom {
        let open = self.log.get(log);
        // It may begin on the next page, and its last may not be full.
        let pages = bytes as u64 / u64::from(self.packing.page_bytes()) + 2;
        let left = open.superblock.map_or(0, |superblock| {
            let end = self.geometry.first_page(superblock).0 + self.geometry.pages_per_superblock();
            u64::from(end - open.page.0)
        });
        match (left >= pages, self.superblocks.free_in(log.target) > 0) {
            (true, _) => LogRoom::Open,
            (false, true) => LogRoom::Free,
            (false, false) => LogRoom::None,
        }
    }

    /// Calls `visit` with each run of a record's grains that lies in one superblock.
    pub(crate) fn each_run(
        &mut self,
        first: Grain,
        grains: u32,
        mut visit: impl FnMut(&mut Self, SuperblockId, Grain, u32),
    ) {
        let (mut first, mut left) = (first, grains);
        while left > 0 {
            let superblock = self.packing.superblock_of(first);
            let room = self.packing.grains_per_superblock - first.0 % self.packing.grains_per_superblock;
            let count = u64::from(left).min(room) as u32;
            visit(self, superblock, first, count);
            left -= count;
            let next = self.superblocks.get(superblock).next;
            first = Grain(u64::from(next.0) * self.packing.grains_per_superblock);
        }
    }
}
