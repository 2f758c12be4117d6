//! The I/O context: how firmware touches flash, with the clock of the request or task it runs for.

use crate::address::Grain;
use crate::clients::ClientTable;
use crate::dram::DramUse;
use crate::held::Held;
use crate::journal::{Change, Journal};
use crate::log::{Log, NewRecord};
use crate::oob::{Kind, OobFormat, Stream};
use crate::packing::Packing;
use crate::placement::{LogId, LogRoom, Placement};
use crate::planted::PlantedBug;
use crate::read_ahead::ReadAhead;
use crate::staging::Item;
use crate::superblock::Superblocks;
use crate::validity::{Spill, Validity};
use crate::victims::VictimPolicy;
use kvssd_flash::Blob;
use kvssd_flash::rope::{Rope, RopeRef};
use kvssd_flash::timing::Pool;
use kvssd_flash::{Cause, CoreCosts, Flash, Geometry, PageAddress, PageView, PowerLoss, Profile, SuperblockId};
use kvssd_types::{KvError, NamespaceId, Nanos, RequestId};
use std::ops::Range;

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
    oob_bytes: Vec<u8>,
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

    /// Nobody asks with a clock before `now` any more.
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

    /// What a log has room for: a record of so many bytes.
    fn room_of(&self, log: LogId, bytes: usize) -> LogRoom {
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
    fn each_run(&mut self, first: Grain, grains: u32, mut visit: impl FnMut(&mut Self, SuperblockId, Grain, u32)) {
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

/// Flash, log and cores, with the clock of whoever works.
///
/// Reads move the clock to when the data is there. Programs reserve their time and do not wait, but for room in the
/// write buffer. Work of the cores is gathered and reserved in one piece before the next flash operation.
pub struct Io<'a> {
    /// The shared machinery.
    pub(crate) media: &'a mut Media,
    /// The clock.
    pub clock: Nanos,
    /// Whether garbage collection works, and not a command.
    pub background: bool,
    /// Whose pairs and index it works on.
    pub(crate) namespace: NamespaceId,
    /// What the change is known by that it makes, if it may come again.
    pub(crate) request: Option<RequestId>,
    work: Nanos,
    answered: Option<Nanos>,
}

impl<'a> Io<'a> {
    pub(crate) fn new(media: &'a mut Media, clock: Nanos, background: bool) -> Self {
        let namespace = NamespaceId::FIRST;
        Io { media, clock, background, namespace, request: None, work: Nanos::ZERO, answered: None }
    }

    /// The same, on pairs and index of a namespace.
    pub(crate) fn of(self, namespace: NamespaceId) -> Self {
        Io { namespace, ..self }
    }

    /// How pages are divided into grains.
    #[must_use]
    pub fn packing(&self) -> Packing {
        self.media.packing
    }

    /// What the steps of the firmware cost.
    #[must_use]
    pub fn costs(&self) -> CoreCosts {
        self.media.costs
    }

    /// What flash operations on the index are counted under.
    #[must_use]
    pub fn index_cause(&self) -> Cause {
        if self.background { Cause::GcIndex } else { Cause::Index }
    }

    /// Firmware work of `nanoseconds` on one of the cores.
    pub fn cpu(&mut self, nanoseconds: u64) {
        self.work.0 += nanoseconds;
    }

    /// Waits until `moment`.
    pub fn wait_until(&mut self, moment: Nanos) {
        self.clock = self.clock.max(moment);
    }

    /// The command's answer is on its way; what is done from here on, nobody waits for. Gives the clock.
    pub fn answer(&mut self) -> Nanos {
        let now = self.settle();
        self.answered = Some(now);
        now
    }

    /// When the answer was on its way: now, unless that was said before.
    pub(crate) fn answered(&mut self) -> Nanos {
        let now = self.settle();
        self.answered.unwrap_or(now)
    }

    /// Waits until data that was asked for is there, as [`CoreCosts::waits_for_flash`] says.
    pub fn wait_for_flash(&mut self, ready: Nanos) {
        self.settle();
        let before = self.clock;
        self.wait_until(ready);
        self.hold_core(before);
    }

    /// A read has moved the clock here from `before`.
    fn hold_core(&mut self, before: Nanos) {
        if self.media.costs.waits_for_flash && self.clock > before {
            self.clock = self.media.cores.take(before, self.clock - before, self.media.now);
        }
    }

    /// Lets the cores do the work that was gathered; gives the clock after it.
    pub fn settle(&mut self) -> Nanos {
        if self.work > Nanos::ZERO {
            self.clock = self.media.cores.take(self.clock, self.work, self.media.now);
            self.work = Nanos::ZERO;
        }
        self.clock
    }

    /// Reads a page and waits for it. A page that is still gathered takes no flash operation. Gives whether there was one.
    pub fn read(&mut self, page: PageAddress, cause: Cause) -> bool {
        self.read_all(&[page], cause)
    }

    /// Reads pages side by side and waits for the last; none of them twice. Gives whether there was a flash operation.
    pub fn read_all(&mut self, pages: &[PageAddress], cause: Cause) -> bool {
        self.settle();
        let Media { flash, log, geometry, .. } = &mut *self.media;
        let before = self.clock;
        let mut last = before;
        for run in pages.chunk_by(|left, right| geometry.unit_of(*left) == geometry.unit_of(*right)) {
            if log.open_page(geometry, run[0]).is_none() {
                last = last.max(flash.read(run, cause, before));
            }
        }
        self.clock = last;
        self.hold_core(before);
        last > before
    }

    /// Reads the sectors that hold these bytes of pages, side by side, and waits for the last. Gives whether there was a flash
    /// operation.
    pub fn read_parts(&mut self, parts: &[(PageAddress, Range<usize>)], cause: Cause) -> bool {
        self.settle();
        let Media { flash, log, geometry, .. } = &mut *self.media;
        let before = self.clock;
        for run in parts.chunk_by(|(left, _), (right, _)| geometry.unit_of(*left) == geometry.unit_of(*right)) {
            if log.open_page(geometry, run[0].0).is_none() {
                self.clock = self.clock.max(flash.read_parts(run, cause, before));
            }
        }
        self.hold_core(before);
        self.clock > before
    }

    /// Has the sectors that hold these bytes of pages of one unit read, and gives the moment when they are in the controller.
    pub fn read_parts_without_waiting(&mut self, parts: &[(PageAddress, Range<usize>)], cause: Cause) -> Nanos {
        let Media { flash, log, geometry, .. } = &mut *self.media;
        match log.open_page(geometry, parts[0].0) {
            Some(_) => self.clock,
            None => flash.read_parts(parts, cause, self.clock),
        }
    }

    /// Has pages of one unit read, and gives the moment when they are in the controller.
    pub fn read_without_waiting(&mut self, pages: &[PageAddress], cause: Cause) -> Nanos {
        let Media { flash, log, geometry, .. } = &mut *self.media;
        match log.open_page(geometry, pages[0]) {
            Some(_) => self.clock,
            None => flash.read(pages, cause, self.clock),
        }
    }

    /// The records at these places will be looked at soon, one after the other: memory may begin to bring them closer. Costs
    /// the drive nothing.
    pub fn warm(&self, places: &[Grain]) {
        let packing = self.media.packing;
        let pages: Vec<_> = places.iter().map(|&place| (packing.page_of(place), packing.byte_in_page(place))).collect();
        self.media.flash.warm(&pages);
    }

    /// The records at these places will die soon: memory may begin to bring what is known of them closer.
    pub fn warm_fates(&self, places: &[Grain]) {
        self.media.validity.warm(places);
    }

    /// What memory has at hand of the record at `place`, to tell what to warm next: it has not been read.
    #[must_use]
    pub fn peek(&self, place: Grain) -> Option<&Blob> {
        let packing = self.media.packing;
        self.media.flash.peek(packing.page_of(place), packing.byte_in_page(place))
    }

    /// The data of a page that was read, or is still gathered.
    ///
    /// # Errors
    /// [`KvError::Unrecovered`] when the flash gives back something else than was written.
    pub fn data(&mut self, page: PageAddress) -> Result<RopeRef<'_>, KvError> {
        let Media { flash, log, geometry, .. } = &mut *self.media;
        match log.open_page(geometry, page) {
            Some(data) => Ok(data),
            None => written(flash, geometry, page).map(|view| view.data),
        }
    }

    /// The data of a page that was read, or is still gathered, on which the record at `place` goes on.
    ///
    /// # Errors
    /// As [`Io::data`], and when another record goes on there, or none.
    pub(crate) fn continued(&mut self, page: PageAddress, place: Grain) -> Result<RopeRef<'_>, KvError> {
        let Media { flash, log, geometry, .. } = &mut *self.media;
        let (continued, data) = match log.open_page(geometry, page) {
            Some(data) => (log.continued(geometry, page), data),
            None => {
                let PageView { oob, data } = written(flash, geometry, page)?;
                (OobFormat::continued(oob), data)
            }
        };
        if continued != Some(place) {
            return Err(KvError::Unrecovered(format!(
                "page {} belongs to another record than the one before it",
                page.0
            )));
        }
        Ok(data)
    }

    /// A page of a closed superblock that was read, with its out-of-band area.
    pub(crate) fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, KvError> {
        let Media { flash, geometry, .. } = &mut *self.media;
        written(flash, geometry, page)
    }

    /// Puts a record into the log; gives its first grain. Its grains live.
    ///
    /// # Errors
    /// [`KvError::Failed`] when the flash fails to take a unit.
    pub fn append(&mut self, record: NewRecord<'_>) -> Result<Grain, KvError> {
        let NewRecord { stream, kind, tag, bytes, unbroken_bytes, cause } = record;
        self.cpu(self.media.costs.append_ns);
        let page_bytes = self.media.packing.page_bytes() as usize;
        let grain_bytes = self.media.packing.grain_bytes as usize;
        let log = self.choose_log(stream, bytes.len());
        if self.media.log.get(log).must_turn_page(kind, unbroken_bytes, page_bytes) {
            self.stage(&Item::Turned(log), None)?;
            self.turn_page(log)?;
        }
        self.open(log, false)?;
        let packing = self.media.packing;
        let place = self.media.log.get_mut(log).begin(&packing, kind, (self.namespace, tag), cause);
        self.stage(&Item::Appended(stream, kind, (self.namespace.0, tag), place), Some(bytes))?;
        let length = bytes.len();
        let mut done = 0;
        while done < length {
            self.open(log, done > 0)?;
            let open = self.media.log.get_mut(log);
            if done > 0 {
                open.oob.kind = kind;
                open.oob.continues = Some(place);
                open.cause = cause;
            }
            let count = (page_bytes - open.data.len()).min(length - done);
            if count == length {
                open.data.push_rope(bytes);
            } else {
                open.data.push_slice(bytes.as_ref(), done..done + count);
            }
            done += count;
            let padding = open.data.len().next_multiple_of(grain_bytes) - open.data.len();
            open.data.push_zeros(padding);
            if open.data.len() == page_bytes {
                self.turn_page(log)?;
            }
        }
        self.occupy(place, packing.grains_of(length));
        Ok(place)
    }

    /// A record of `grains` grains lives at `place`.
    pub(crate) fn occupy(&mut self, place: Grain, grains: u32) {
        self.media.each_run(place, grains, |media, superblock, first, grains| {
            media.superblocks.add_live(superblock, grains.into());
            media.validity.add(first, grains);
        });
    }

    /// The record at `place`, of `grains` grains, is no more. What garbage collection leaves behind needs no invalid mapping.
    pub fn vacate(&mut self, place: Grain, grains: u32) {
        self.media.each_run(place, grains, |media, superblock, first, grains| {
            media.superblocks.remove_live(superblock, grains.into());
            media.validity.remove(first, grains);
        });
    }

    /// The record at `place`, of `grains` grains, is no more and nobody will read its bytes; memory may let go of them.
    pub fn discard(&mut self, place: Grain, grains: u32) {
        self.vacate(place, grains);
        self.forget(place);
    }

    /// Nobody will read the bytes of the record at `place` any more, though flash keeps them: memory may let go of them. Gives
    /// whether it was told; the bytes may still be gathered.
    pub fn forget(&mut self, place: Grain) -> bool {
        let is_flashed = self.is_flashed(place);
        if is_flashed {
            drop(self.take(place));
        }
        is_flashed
    }

    /// As [`Io::forget`], and gives the `length` bytes of the record, whose page was read.
    ///
    /// # Errors
    /// As [`Io::data`].
    pub fn take_last(&mut self, place: Grain, length: usize) -> Result<Blob, KvError> {
        let taken = if self.is_flashed(place) { self.take(place) } else { None };
        if let Some(bytes) = taken.filter(|bytes| bytes.len() == length) {
            return Ok(bytes);
        }
        let start = self.media.packing.byte_in_page(place);
        Ok(self.data(self.media.packing.page_of(place))?.blob(start..start + length))
    }

    fn is_flashed(&self, place: Grain) -> bool {
        self.media.log.open_page(&self.media.geometry, self.media.packing.page_of(place)).is_none()
    }

    fn take(&mut self, place: Grain) -> Option<Blob> {
        let (page, start) = (self.media.packing.page_of(place), self.media.packing.byte_in_page(place));
        self.media.flash.take(page, start)
    }

    /// The pair with `tag` at `place`, of `grains` grains, is not its key's pair any more. Its record stays while an iterator may want it;
    /// that it is dead is known from now on, as it will be to the next mount.
    ///
    /// # Errors
    /// As [`Io::append`]: a page of invalid mappings may have become full.
    pub(crate) fn pair_died(&mut self, tag: u64, place: Grain, grains: u32) -> Result<(), KvError> {
        let superblock_grains = self.media.packing.grains_per_superblock;
        if !self.media.held.die(place, grains, superblock_grains) {
            self.vacate(place, grains);
        }
        self.mapping_died(tag, place)
    }

    /// That the pair with `tag` is at `place` is no longer so.
    ///
    /// # Errors
    /// As [`Io::pair_died`].
    pub(crate) fn mapping_died(&mut self, tag: u64, place: Grain) -> Result<(), KvError> {
        match self.media.validity.pair_died(tag, place) {
            Some(spill) => self.write_spill(spill),
            None => Ok(()),
        }
    }

    /// The superblocks that are open for hosts' records, and where in each the next will lie at the earliest.
    pub(crate) fn user_frontier(&self) -> Vec<(SuperblockId, Grain)> {
        let packing = &self.media.packing;
        let frontier = |log| {
            let open = self.media.log.get(log);
            let index = open.data.len() / packing.grain_bytes as usize;
            Some((open.superblock?, Grain(packing.grain(open.page, 0).0 + index as u64)))
        };
        self.media.log.of(Stream::User).filter_map(frontier).collect()
    }

    /// The log that takes a record of so many bytes.
    pub(crate) fn choose_log(&self, stream: Stream, bytes: usize) -> LogId {
        let Media { placement, superblocks, .. } = &*self.media;
        placement.choose(stream, self.namespace, superblocks.free(), |log| self.media.room_of(log, bytes))
    }

    /// Writes a page of invalid mappings.
    pub(crate) fn write_spill(&mut self, spill: Spill) -> Result<(), KvError> {
        let mut bytes = Rope::default();
        bytes.push_blob(spill.bytes);
        let place = self.append(NewRecord {
            stream: Stream::User,
            kind: Kind::InvalidMappings,
            tag: spill.superblock.0.into(),
            unbroken_bytes: bytes.len(),
            bytes: &mut bytes,
            cause: Cause::InvalidMappings,
        })?;
        self.media.validity.spilled(spill.superblock, place);
        self.note(Change::Spilled { superblock: spill.superblock, place });
        Ok(())
    }

    /// Programs everything that a stream has gathered, padded to whole units.
    ///
    /// # Errors
    /// [`KvError::Failed`] when the flash fails to take a unit.
    pub(crate) fn flush_stream(&mut self, stream: Stream) -> Result<(), KvError> {
        for log in self.media.log.of(stream) {
            while {
                let open = self.media.log.get(log);
                !open.data.is_empty() || open.unit.pages() > 0
            } {
                self.open(log, false)?;
                self.stage(&Item::Turned(log), None)?;
                self.turn_page(log)?;
            }
        }
        Ok(())
    }

    /// Makes sure that a log has a page to write to and its unit a slot of the write buffer; `within` a record, a new
    /// superblock is the one where the record goes on.
    fn open(&mut self, log: LogId, within: bool) -> Result<(), KvError> {
        if self.media.log.get(log).superblock.is_none() {
            self.open_superblock(log, within)?;
        }
        let Media { log: logs, flash, .. } = &mut *self.media;
        let next = logs.sequence + 1;
        let open = logs.get_mut(log);
        if !open.buffered {
            open.slot_since = flash.buffer.take(self.clock);
            open.buffered = true;
        }
        self.clock = self.clock.max(open.slot_since);
        if open.data.is_empty() && open.oob.entries.is_empty() {
            open.oob.sequence = next;
            logs.sequence = next;
        }
        Ok(())
    }

    fn open_superblock(&mut self, log: LogId, within: bool) -> Result<(), KvError> {
        let stream = log.stream;
        let Media { log: logs, superblocks, geometry, flash, victims, .. } = &mut *self.media;
        if *victims != VictimPolicy::Greedy {
            superblocks.bring_forward(log.target, |superblock| flash.superblock_erases(superblock));
        }
        let open = logs.get_mut(log);
        let (superblock, mut erased, must_erase) =
            superblocks.open(stream, log.target).ok_or_else(|| KvError::Failed("no superblock is free".to_owned()))?;
        if must_erase {
            erased = flash.erase(superblock, self.clock)?;
        }
        let before = within.then(|| geometry.superblock_of(open.page));
        if let Some(before) = before {
            superblocks.link(before, superblock);
        }
        open.superblock = Some(superblock);
        open.erased = erased;
        open.page = geometry.first_page(superblock);
        if self.media.is_durable() {
            // A cut must not find it in use and half erased.
            self.wait_until(erased);
        }
        let generation = self.media.flash.generation(superblock);
        self.media.superblocks.set_generation(superblock, generation);
        if stream == Stream::User {
            self.media.held.opened(superblock);
        }
        self.note_of(stream, Change::Opened { stream, superblock, within: before, generation });
        self.stage(&Item::Opened(stream, superblock), None)
    }

    /// Finishes a log's open page; programs its unit when that was the last page of it.
    fn turn_page(&mut self, log: LogId) -> Result<(), KvError> {
        if self.media.log.get(log).data.is_empty() {
            self.skip_page(log);
        }
        let Media { log: logs, geometry, oob_bytes, .. } = &mut *self.media;
        let format = logs.format;
        let open = logs.get_mut(log);
        let unit_is_full = open.turn_page(geometry, format, oob_bytes);
        let page = open.page;
        let last = geometry.first_page(geometry.superblock_of(page)).0 + geometry.pages_per_superblock() - 1;
        if unit_is_full {
            self.program(log, page)?;
        }
        let Media { log: logs, superblocks, .. } = &mut *self.media;
        let open = logs.get_mut(log);
        if page.0 < last {
            open.page.0 += 1;
        } else if let Some(superblock) = open.superblock.take() {
            superblocks.close(superblock);
            self.note_of(log.stream, Change::Closed { superblock });
        }
        Ok(())
    }

    /// The open page will be programmed without a record: nothing will be left behind again when it is collected.
    fn skip_page(&mut self, log: LogId) {
        let Media { log: logs, geometry, packing, superblocks, .. } = &mut *self.media;
        let superblock = geometry.superblock_of(logs.get(log).page);
        superblocks.add_appended(superblock, packing.grains_per_page.into());
        self.note_of(log.stream, Change::Skipped { superblock });
    }

    fn program(&mut self, log: LogId, last: PageAddress) -> Result<(), KvError> {
        self.settle();
        let Media { log: logs, geometry, flash, placement, .. } = &mut *self.media;
        placement.turn(log.stream);
        let open = logs.get_mut(log);
        let at = self.clock.max(open.erased);
        flash.program(geometry.unit_of(last), open.unit.finish(), &open.causes, at)?;
        open.causes.clear();
        open.buffered = false;
        Ok(())
    }
}

/// What was read, or none when the flash cannot give it back.
pub(crate) fn readable<T>(read: Result<T, KvError>) -> Result<Option<T>, KvError> {
    match read {
        Err(KvError::Unrecovered(_)) => Ok(None),
        other => other.map(Some),
    }
}

/// A page of the flash. What asks for it may come from flash itself and be wrong.
pub(crate) fn written<'f>(
    flash: &'f mut Flash,
    geometry: &Geometry,
    page: PageAddress,
) -> Result<PageView<'f>, KvError> {
    if u64::from(page.0) >= geometry.pages() || !flash.is_programmed(page) {
        return Err(KvError::Unrecovered(format!("page {} is wanted and was never written", page.0)));
    }
    Ok(flash.page(page)?)
}
