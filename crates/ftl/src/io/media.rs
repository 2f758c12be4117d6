//! What every design shares, in parts that each own their state.
//!
//! | part | owns |
//! |---|---|
//! | [`Flash`] | content, time and counters of the flash |
//! | [`Space`] | what lives where: superblocks and validity |
//! | [`Log`] | what is gathered, and which log takes what |
//! | [`Durable`] | what a mount will read: journal, clients, the write buffer's memory |
//! | [`Controller`] | the cores, and how much the write buffer holds |
//! | [`Held`] | what iterators keep |
//! | [`Heads`] | whose records lie where, as far as the host's memory has room |
//! | [`Values`] | small values in the order of their keys, likewise |
//! | [`Gathered`] | blocks of which a part has come |
//! | [`ReadAhead`] | pages that were read ahead of a host of blocks |

use crate::controller::Controller;
use crate::controller::gathered::Gathered;
use crate::controller::heads::Heads;
use crate::controller::held::Held;
use crate::controller::read_ahead::ReadAhead;
use crate::controller::values::Values;
use crate::dram::DramUse;
use crate::journal::durable::Durable;
use crate::layout::address::Grain;
use crate::layout::oob::OobFormat;
use crate::layout::packing::Packing;
use crate::shared::Shared;
use crate::space::Space;
use crate::space::log::Log;
use crate::space::placement::{LogId, LogRoom};
use crate::space::superblock::Superblocks;
use crate::space::validity::Validity;
use kvssd_flash::rope::Rope;
use kvssd_flash::{Flash, Profile};
use kvssd_types::Nanos;

/// The machinery that every design shares and every index works on, through an [`Io`](crate::Io).
pub struct Media {
    pub(crate) flash: Flash,
    pub(crate) space: Space,
    pub(crate) log: Log,
    pub(crate) durable: Durable,
    pub(crate) controller: Controller,
    pub(crate) held: Shared<Held>,
    pub(crate) heads: Heads,
    pub(crate) values: Shared<Values>,
    pub(crate) gathered: Gathered,
    pub(crate) ahead: ReadAhead,
    /// Memory for a record that is being put together; the next record uses it again.
    pub(crate) scratch: Option<Box<Rope>>,
}

impl Media {
    pub(crate) fn new(
        flash: Flash,
        packing: Packing,
        format: OobFormat,
        validity: Box<dyn Validity>,
        profile: &Profile,
        placement_handles: u32,
    ) -> Self {
        let geometry = *flash.geometry();
        Media {
            heads: Heads::new(flash.backing().heads_bytes()),
            values: Shared::default(),
            flash,
            space: Space::new(geometry, packing, validity),
            log: Log::new(&geometry, format, placement_handles),
            durable: Durable::new(profile),
            controller: Controller::new(profile),
            held: Shared::default(),
            gathered: Gathered::default(),
            ahead: ReadAhead::default(),
            scratch: None,
        }
    }

    /// A copy; `None` if the backing cannot be copied.
    pub(crate) fn snapshot(&self) -> Option<Media> {
        Some(Media {
            flash: self.flash.snapshot()?,
            space: self.space.clone(),
            log: self.log.clone(),
            durable: self.durable.clone(),
            controller: self.controller.clone(),
            held: self.held.clone(),
            heads: self.heads.clone(),
            values: Shared::default(),
            gathered: self.gathered.clone(),
            ahead: self.ahead.clone(),
            scratch: None,
        })
    }

    /// The life of the superblock that a place is in.
    pub(crate) fn generation_of(&self, place: Grain) -> u64 {
        self.space.superblocks.get(self.space.packing.superblock_of(place)).generation
    }

    /// Memory for a record; the caller puts it back into [`Media::scratch`].
    #[inline]
    pub(crate) fn take_scratch(&mut self) -> Box<Rope> {
        let mut scratch = self.scratch.take().unwrap_or_default();
        scratch.clear();
        scratch
    }

    /// All clocks have reached `now`: calendars may forget what ended before.
    pub(crate) fn advance(&mut self, now: Nanos) {
        self.controller.now = self.controller.now.max(now);
        self.flash.advance(now);
    }

    pub(crate) fn dram(&self, dram: &mut DramUse) {
        Superblocks::charge(self.space.superblocks.all().len() as u64, dram);
        dram.add("log", self.log.dram_bytes());
        // The pages that are gathered, programmed, and passed on by garbage collection.
        dram.add("write_buffer", self.controller.write_buffer_bytes);
        ReadAhead::charge(&self.space.packing, dram);
        self.space.validity.dram(dram);
        if self.held.look().is_on() {
            dram.add("held_records", self.held.look().bytes());
        }
        self.durable.clients.dram(dram);
        self.controller.behind.dram(dram);
        self.gathered.dram(dram);
    }

    /// The sum of [`Media::dram`], which is asked for after every command.
    pub(crate) fn dram_bytes(&self) -> u64 {
        let superblocks = self.space.superblocks.all().len() as u64;
        superblocks * Superblocks::ENTRY_BYTES
            + self.log.dram_bytes()
            + self.controller.write_buffer_bytes
            + self.space.validity.dram_bytes()
            + self.held.look().bytes()
            + self.durable.clients.dram_bytes()
            + self.controller.behind.dram_bytes()
            + self.gathered.dram_bytes()
    }

    /// Whether a log has room for a record of so many bytes.
    pub(crate) fn room_of(&self, log: LogId, bytes: usize) -> LogRoom {
        let Space { geometry, packing, superblocks, .. } = &self.space;
        let open = self.log.get(log);
        // The record may begin on the next page, and its last page may not be full.
        let pages = bytes as u64 / u64::from(packing.page_bytes()) + 2;
        let left = open.superblock.map_or(0, |superblock| {
            let end = geometry.first_page(superblock).0 + geometry.pages_per_superblock();
            u64::from(end - open.page.0)
        });
        match (left >= pages, superblocks.free_in(self.log.target_of(log)) > 0) {
            (true, _) => LogRoom::Open,
            (false, true) => LogRoom::Free,
            (false, false) => LogRoom::None,
        }
    }
}
