//! The I/O context: how firmware touches flash, with the clock of the request or task it runs for.
//!
//! All parts share [`media`]; the code above changes it through an [`Io`]. Also below: pieces of
//! [`value`]s, where a command's time is [`spent`], and what a refused command [`lack`]s. It knows no index.

mod aside;
mod deaths;
mod heads;
pub(crate) mod lack;
pub(crate) mod media;
mod replaced;
pub(crate) mod spent;
pub(crate) mod value;
mod writes;

use self::aside::GoesOn;
use crate::io::lack::Lack;
use crate::io::media::Media;
use crate::io::spent::{Spent, SpentOn};
use crate::layout::address::Grain;
use crate::layout::oob::OobFormat;
use crate::layout::packing::Packing;
use crate::layout::record::{PairPlace, RecordHead};
use kvssd_flash::Blob;
use kvssd_flash::rope::RopeRef;
use kvssd_flash::timing::Work;
use kvssd_flash::{Cause, CoreCosts, Flash, PageAddress, PageView};
use kvssd_types::{KvError, NamespaceId, Nanos, OwnedKey, PlacementHandle, RequestId, ValueBuilder};
use std::ops::Range;

/// Flash, log and cores, with the clock of the command or task at work.
///
/// A read moves the clock to when the data is there. A program reserves its time; it waits only for room in the write
/// buffer. Work of the cores is gathered, and reserved in one piece before the next flash operation.
pub struct Io<'a> {
    /// The shared machinery.
    pub(crate) media: &'a mut Media,
    /// The clock.
    pub clock: Nanos,
    /// Whether this is work of garbage collection, not of a command.
    pub background: bool,
    /// The namespace whose pairs and index it works on.
    pub(crate) namespace: NamespaceId,
    /// Bytes of flash that may be taken before the drive is full, as the work began; 0 for work that no index grows in.
    free_bytes: u64,
    /// Whether an iterator may want the pairs that die: not those of a namespace that is removed.
    pub(crate) has_iterators: bool,
    /// The placement handle of what is stored: records with one handle are kept together.
    pub(crate) handle: PlacementHandle,
    /// Identifies the change, if the host may send it again.
    pub(crate) request: Option<RequestId>,
    work: Nanos,
    /// Where the time went.
    spent: Spent,
    /// When the command was answered, and what it had taken until then.
    answered: Option<(Nanos, Spent)>,
    /// Whether the command may turn out not to wait for the work.
    aside: bool,
    /// Work that goes on after the answer.
    goes_on: Option<GoesOn>,
    /// The heads of pairs that were found to be replaced, and that are still counted.
    replaced: Vec<RecordHead>,
    /// All that the command has no room for.
    pub(crate) lacks: Vec<Lack>,
}

impl<'a> Io<'a> {
    pub(crate) fn new(media: &'a mut Media, clock: Nanos, background: bool) -> Self {
        let namespace = NamespaceId::FIRST;
        Io {
            media,
            clock,
            background,
            namespace,
            free_bytes: 0,
            has_iterators: true,
            handle: PlacementHandle::DEFAULT,
            request: None,
            work: Nanos::ZERO,
            spent: Spent::default(),
            answered: None,
            aside: false,
            goes_on: None,
            replaced: Vec::new(),
            lacks: Vec::new(),
        }
    }

    /// The same, on pairs and index of a namespace.
    pub(crate) fn of(self, namespace: NamespaceId) -> Self {
        Io { namespace, ..self }
    }

    /// The same, on a drive whose namespaces take so many bytes of flash.
    pub(crate) fn beside(self, taken_bytes: u64) -> Self {
        Io { free_bytes: self.media.space.capacity_bytes().saturating_sub(taken_bytes), ..self }
    }

    /// Notes what the command lacks, and returns the error.
    pub(crate) fn refuse(&mut self, lack: Lack) -> KvError {
        self.lacks.push(lack);
        KvError::CapacityExceeded
    }

    /// How pages are divided into grains.
    #[must_use]
    pub fn packing(&self) -> Packing {
        self.media.space.packing
    }

    /// Bytes of flash that may be taken before the drive is full, as the command or the step of growth began; 0 where no index begins to grow:
    /// in garbage collection and in recovery.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.free_bytes
    }

    /// What the steps of the firmware cost.
    #[must_use]
    pub fn costs(&self) -> CoreCosts {
        self.media.controller.costs
    }

    /// What flash operations on the index are counted under.
    #[must_use]
    pub fn index_cause(&self) -> Cause {
        if self.background { Cause::GcIndex } else { Cause::Index }
    }

    /// Whether a change made now need not be written for its own sake ([`Emulator::moves_dirty_nothing`](kvssd_flash::Emulator)).
    pub(crate) fn moves_dirty_nothing(&self) -> bool {
        self.background && self.media.controller.emulator.moves_dirty_nothing
    }

    /// Firmware work of `nanoseconds` on one of the cores.
    pub fn cpu(&mut self, nanoseconds: u64) {
        self.work.0 += nanoseconds;
    }

    /// Waits until `moment`, and counts the time as `part`.
    pub fn wait_until(&mut self, moment: Nanos, part: SpentOn) {
        if moment > self.clock {
            self.spent.add(part, moment - self.clock);
            if self.media.flash.recording().is_on() {
                self.record(part, moment);
            }
            self.clock = moment;
        }
    }

    /// Work that nobody waits for is not recorded as a part of a command.
    #[cold]
    fn record(&mut self, part: SpentOn, until: Nanos) {
        if !self.background && !self.aside && self.answered.is_none() {
            self.media.flash.recording().part(part.name(), self.clock, until);
        }
    }

    /// Answers the command now: nobody waits for later work. Returns the clock.
    pub fn answer(&mut self) -> Nanos {
        let now = self.settle();
        self.answered = Some((now, self.spent));
        now
    }

    /// When the command was answered, and the time that it had taken until then. If it was not answered before, it is now.
    pub(crate) fn answered(&mut self) -> (Nanos, Spent) {
        let now = self.settle();
        self.leave_behind();
        self.answered.unwrap_or((now, self.spent))
    }

    /// Waits until data that was asked for is there, as [`CoreCosts::waits_for_flash`] says.
    pub fn wait_for_flash(&mut self, ready: Nanos, part: SpentOn) {
        self.settle();
        let before = self.clock;
        self.wait_until(ready, part);
        self.hold_core(before);
    }

    /// A read has moved the clock here from `before`: a core that waits for flash was busy all that time.
    fn hold_core(&mut self, before: Nanos) {
        if self.media.controller.costs.waits_for_flash && self.clock > before {
            let end = self.take_core(before, self.clock - before, Work::Wait);
            self.wait_until(end, SpentOn::CoreQueue);
        }
    }

    fn take_core(&mut self, at: Nanos, length: Nanos, work: Work) -> Nanos {
        let Media { flash, controller, .. } = &mut *self.media;
        controller.take(at, length, flash.recording(), work)
    }

    /// Lets the cores do the work that was gathered; returns the clock after it.
    #[inline]
    pub fn settle(&mut self) -> Nanos {
        if self.work > Nanos::ZERO {
            self.compute();
        }
        self.clock
    }

    fn compute(&mut self) {
        let end = self.take_core(self.clock, self.work, Work::Compute);
        self.wait_until(end - self.work, SpentOn::CoreQueue);
        self.wait_until(end, SpentOn::Core);
        self.work = Nanos::ZERO;
    }

    /// Reads a page and waits for it. A page that is still gathered takes no flash operation. Returns whether there was
    /// one.
    pub fn read(&mut self, page: PageAddress, cause: Cause) -> bool {
        self.read_all(&[page], cause)
    }

    /// Reads pages side by side and waits for the last; none of them twice. Returns whether there was a flash operation.
    pub fn read_all(&mut self, pages: &[PageAddress], cause: Cause) -> bool {
        self.read_runs(cause, |io| io.read_without_waiting(pages, cause))
    }

    /// Reads the sectors that hold these bytes of pages, side by side, and waits for the last. Returns whether there was
    /// a flash operation.
    pub fn read_parts(&mut self, parts: &[(PageAddress, Range<usize>)], cause: Cause) -> bool {
        let geometry = self.media.space.geometry;
        let runs = parts.chunk_by(|(left, _), (right, _)| geometry.unit_of(*left) == geometry.unit_of(*right));
        self.read_runs(cause, |io| runs.fold(io.clock, |last, run| last.max(io.read_parts_without_waiting(run, cause))))
    }

    /// Waits for what `read` reads. Returns whether there was a flash operation.
    fn read_runs(&mut self, cause: Cause, read: impl FnOnce(&mut Self) -> Nanos) -> bool {
        self.settle();
        let reads = self.media.flash.counters().reads.total();
        let ready = read(self);
        self.wait_for_flash(
            ready,
            if matches!(cause, Cause::User | Cause::Gc) { SpentOn::Record } else { SpentOn::Map },
        );
        self.media.flash.counters().reads.total() > reads
    }

    /// Has the sectors that hold these bytes of pages of one unit read, and returns the moment when they are in the
    /// controller.
    pub fn read_parts_without_waiting(&mut self, parts: &[(PageAddress, Range<usize>)], cause: Cause) -> Nanos {
        match self.gathered(parts[0].0, cause) {
            Some(since) => since,
            None => self.media.flash.read_parts(parts, cause, self.clock),
        }
    }

    /// Reads pages side by side without waiting. Returns when the last is in the controller. No page occurs twice, and the
    /// pages of a unit follow one another.
    pub fn read_without_waiting(&mut self, pages: &[PageAddress], cause: Cause) -> Nanos {
        let geometry = self.media.space.geometry;
        let runs = pages.chunk_by(|left, right| geometry.unit_of(*left) == geometry.unit_of(*right));
        runs.fold(self.clock, |last, run| match self.gathered(run[0], cause) {
            Some(since) => last.max(since),
            None => last.max(self.media.flash.read(run, cause, self.clock)),
        })
    }

    /// For a page that is still gathered, the time from which it is available, now or later.
    fn gathered(&mut self, page: PageAddress, cause: Cause) -> Option<Nanos> {
        let Media { flash, log, .. } = &mut *self.media;
        let since = log.open_since(flash.geometry(), page)?;
        flash.count_buffer_hit(cause);
        Some(flash.ready_or_read(page, since, self.clock))
    }

    /// Waits for data of a page that was read by `ready`, perhaps by a clock that is ahead of this one.
    pub fn wait_for_page(&mut self, page: PageAddress, ready: Nanos, part: SpentOn) {
        let ready = self.media.flash.ready_or_read(page, ready, self.clock);
        self.wait_until(ready, part);
    }

    /// The records at these places will be looked at soon, one after the other: memory may begin to bring them closer.
    /// A hint: it costs the drive nothing.
    pub fn warm(&self, places: &[Grain]) {
        self.media.warm(places);
    }

    /// The records at these places will die soon: memory may begin to bring what is known of them closer.
    pub fn warm_fates(&self, places: &[Grain]) {
        self.media.space.validity.warm(places);
    }

    /// The bytes of the record at `place`, if memory has them at hand. It is no read: it may only tell what to warm
    /// next.
    #[must_use]
    #[inline]
    pub fn peek(&self, place: Grain) -> Option<&Blob> {
        let (page, start) = self.media.space.packing.start_of(place);
        self.media.flash.backing().peek(page, start)
    }

    /// The data of a page that was read, or is still gathered.
    ///
    /// # Errors
    /// [`KvError::Unrecovered`] when the flash does not give back what was written.
    pub fn data(&mut self, page: PageAddress) -> Result<RopeRef<'_>, KvError> {
        let Media { flash, log, .. } = &mut *self.media;
        match log.open_page(flash.geometry(), page) {
            Some(data) => Ok(data),
            None => written(flash, page).map(|view| view.data),
        }
    }

    /// The pair and the key of the record at `place`, whose page was read.
    ///
    /// # Errors
    /// As [`Io::data`], and when there is no record.
    pub fn key_at(&mut self, place: Grain) -> Result<(PairPlace, OwnedKey), KvError> {
        let packing = self.packing();
        let (page, start) = packing.start_of(place);
        let data = self.data(page)?;
        let head = packing.head(data, start)?;
        Ok((head.at(place), head.key(data, start, &mut [0; 255]).into()))
    }

    /// The `bytes` bytes from `place` on, whose page was read; `None` if they run over its end.
    #[inline]
    pub(crate) fn blob_at(&mut self, place: Grain, bytes: u32) -> Result<Option<Blob>, KvError> {
        let (page, start) = self.packing().start_of(place);
        Ok(self.data(page)?.whole_blob(start..start + bytes as usize))
    }

    /// The data of a page that was read or is still gathered, and in which the record at `place` continues.
    ///
    /// # Errors
    /// As [`Io::data`], and if another record continues there, or none.
    pub(crate) fn continued(&mut self, page: PageAddress, place: Grain) -> Result<RopeRef<'_>, KvError> {
        let Media { flash, log, .. } = &mut *self.media;
        let (continued, data) = match log.open_page(flash.geometry(), page) {
            Some(data) => (log.continued(flash.geometry(), page), data),
            None => {
                let PageView { oob, data } = written(flash, page)?;
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

    /// Appends whole pages of a unit, in all of which the record at `place` continues, to `value`, straight from the medium. Returns whether it
    /// could.
    pub(crate) fn read_through(
        &mut self,
        run: &[(PageAddress, Range<usize>)],
        place: Grain,
        value: &mut ValueBuilder,
    ) -> bool {
        let Media { flash, log, .. } = &mut *self.media;
        let (first, page_bytes) = (run[0].0, flash.geometry().page_bytes as usize);
        let is_gathered = log.open_page(flash.geometry(), first).is_some();
        let is_whole = run.iter().all(|(_, bytes)| bytes.len() == page_bytes);
        if is_gathered || !is_whole || !flash.is_programmed(first) {
            return false;
        }
        let mut is_of_it = |oob: &[u8]| OobFormat::continued(oob) == Some(place);
        let backing = flash.backing_mut();
        value.push_filled(run.len() * page_bytes, |room| backing.read_through(first, room, &mut is_of_it))
    }

    /// A page of a closed superblock that was read, with its out-of-band area.
    pub(crate) fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, KvError> {
        written(&mut self.media.flash, page)
    }
}

/// The result of a read; `None` if the flash cannot return the data.
///
/// # Errors
/// Any other error of it.
pub fn readable<T>(read: Result<T, KvError>) -> Result<Option<T>, KvError> {
    match read {
        Err(KvError::Unrecovered(_)) => Ok(None),
        other => other.map(Some),
    }
}

/// A page of the flash. Its number may come from flash and be wrong: it is checked.
pub(crate) fn written<'f>(flash: &'f mut Flash, page: PageAddress) -> Result<PageView<'f>, KvError> {
    if u64::from(page.0) >= flash.geometry().pages() || !flash.is_programmed(page) {
        return Err(KvError::Unrecovered(format!("page {} is wanted and was never written", page.0)));
    }
    Ok(flash.page(page)?)
}
