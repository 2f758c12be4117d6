//! The flash as the firmware sees it: content and time of every operation, and a count of it.

use crate::timing::{Clockwork, Recording, WriteBuffer};
use crate::under_way::{Extent, ReadsUnderWay, UnderWay};
use crate::{
    Backing, BlockAddress, Cause, Counters, DieId, Geometry, MediaError, Nand, PageAddress, PageView, Profile, Span,
    SuperblockId, UnitAddress, UnitImage,
};
use kvssd_types::Nanos;
use std::collections::VecDeque;
use std::ops::Range;

/// The most units of one die that are remembered as in flight. Older ones have ended before anybody asks for them.
const IN_FLIGHT_MAX: usize = 64;
/// A unit whose program has not ended.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    unit: UnitAddress,
    /// Since when all of its data is in the buffer.
    issued: Nanos,
    /// When its program ends.
    lands: Nanos,
}

/// Array, timing, write buffer and counters of one drive.
///
/// Each operation takes the caller's clock and returns when it is done; nothing waits by itself.
pub struct Flash {
    nand: Nand,
    clockwork: Clockwork,
    /// The write buffer's slots, one for each unit that is gathered or programmed.
    pub buffer: WriteBuffer,
    /// Units whose program has not ended, by die: their data is still in the buffer.
    in_flight: Vec<VecDeque<InFlight>>,
    /// Reads in flight, by die: a later request for the same data shares them.
    under_way: Vec<ReadsUnderWay>,
    /// Whether reads are not shared.
    reads_unshared: bool,
    counters: Counters,
    pages_erased: u64,
    /// Pages that were programmed before the last mount, or restored by it.
    pages_brought: u64,
}

impl Flash {
    /// A drive of `profile`, its pages kept by `backing`.
    #[must_use]
    pub fn new(profile: &Profile, backing: Box<dyn Backing>) -> Self {
        let geometry = profile.geometry;
        let counters = Counters {
            channel_programs: vec![0; geometry.channels as usize],
            die_programs: vec![0; geometry.dies() as usize],
            ..Counters::default()
        };
        let nand = Nand::new(geometry, backing);
        let clockwork = match profile.emulator.dies_first_come {
            true => Clockwork::first_come(&geometry, &profile.nand),
            false => Clockwork::new(&geometry, &profile.nand),
        };
        Flash {
            pages_brought: nand.pages_programmed(),
            nand,
            clockwork,
            buffer: WriteBuffer::new(profile.write_buffer_units()),
            in_flight: vec![VecDeque::new(); geometry.dies() as usize],
            under_way: vec![ReadsUnderWay::default(); geometry.dies() as usize],
            reads_unshared: profile.emulator.reads_unshared,
            counters,
            pages_erased: 0,
        }
    }

    /// A copy of the flash at this time, if the backing can be copied.
    #[must_use]
    pub fn snapshot(&self) -> Option<Flash> {
        Some(Flash {
            nand: self.nand.snapshot()?,
            clockwork: self.clockwork.clone(),
            buffer: self.buffer.clone(),
            in_flight: self.in_flight.clone(),
            under_way: self.under_way.clone(),
            reads_unshared: self.reads_unshared,
            counters: self.counters.clone(),
            pages_erased: self.pages_erased,
            pages_brought: self.pages_brought,
        })
    }

    /// How the flash is divided.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        self.nand.geometry()
    }

    /// What was done so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// See [`Clockwork::busy`].
    #[must_use]
    pub fn busy(&self) -> (Vec<Nanos>, Vec<Nanos>) {
        self.clockwork.busy()
    }

    /// The recorder of what dies, channels and other resources are used for.
    pub fn recording(&mut self) -> &mut Recording {
        &mut self.clockwork.recording
    }

    /// Pages that are programmed and not erased.
    #[must_use]
    pub fn pages_programmed(&self) -> u64 {
        self.nand.pages_programmed()
    }

    /// Pages that were programmed and then erased.
    #[must_use]
    pub fn pages_erased(&self) -> u64 {
        self.pages_erased
    }

    /// How often a superblock was erased.
    #[must_use]
    pub fn superblock_erases(&self, superblock: SuperblockId) -> u32 {
        self.nand.superblock_erases(superblock)
    }

    /// See [`Nand::generation`].
    #[must_use]
    pub fn generation(&self, superblock: SuperblockId) -> u64 {
        self.nand.generation(superblock)
    }

    /// How often each block was erased.
    pub fn erases(&self) -> impl Iterator<Item = u32> {
        self.nand.erases()
    }

    /// Counts a page that was found in a unit which is still being gathered.
    pub fn count_buffer_hit(&mut self, cause: Cause) {
        self.counters.buffer_hits[cause] += 1;
    }

    /// No operation has a clock before `now` any more.
    #[inline]
    pub fn advance(&mut self, now: Nanos) {
        self.clockwork.advance(now);
    }

    /// Reads `pages` into the controller, side by side if they lie on different dies; neighbours in a unit are sensed at once.
    /// A page still in the write buffer takes no time, unless the caller's clock is before that of the write
    /// ([`Flash::ready_or_read`]). Returns when the last one is there; [`Flash::page`] has the content.
    pub fn read(&mut self, pages: &[PageAddress], cause: Cause, at: Nanos) -> Nanos {
        let geometry = *self.nand.geometry();
        let sectors_per_page = geometry.sectors_per_page();
        let is_next = |left: &PageAddress, right: &PageAddress| {
            right.0 == left.0.wrapping_add(1) && geometry.unit_of(*left) == geometry.unit_of(*right)
        };
        let runs = pages.chunk_by(is_next);
        runs.fold(at, |done, run| {
            let pages = run.len() as u32;
            self.nand.backing_mut().fetch(run[0], pages);
            let extent = Extent { page: run[0], pages, sector: 0, sectors: pages * sectors_per_page, is_run: true };
            done.max(self.read_extent(extent, cause, at))
        })
    }

    /// As [`Flash::read`], of the sectors of pages of one unit that hold these bytes.
    pub fn read_parts(&mut self, parts: &[(PageAddress, Range<usize>)], cause: Cause, at: Nanos) -> Nanos {
        let geometry = *self.nand.geometry();
        let sector_bytes = geometry.sector_bytes() as usize;
        let sectors = parts.iter().map(|(_, bytes)| {
            let end = bytes.end.max(bytes.start + 1).div_ceil(sector_bytes);
            (end - bytes.start / sector_bytes) as u32
        });
        let ((page, bytes), pages, sectors) = (&parts[0], parts.len() as u32, sectors.sum());
        let is_without_gap = parts[parts.len() - 1].0.0 == page.0 + pages - 1;
        if is_without_gap {
            self.nand.backing_mut().fetch(*page, pages);
        }
        let is_whole = sectors == pages * geometry.sectors_per_page();
        let is_run = pages == 1 || is_without_gap && is_whole;
        let sector = (bytes.start / sector_bytes) as u32;
        self.read_extent(Extent { page: *page, pages, sector, sectors, is_run }, cause, at)
    }

    /// When data is available that a clock ahead of `at` read or wrote at `ready`: then, or when the caller's own read would
    /// be done, whichever is first. That read is not reserved: in the order of clocks it came first, and the other one found
    /// it done.
    #[must_use]
    #[inline]
    pub fn ready_or_read(&self, page: PageAddress, ready: Nanos, at: Nanos) -> Nanos {
        if ready <= at {
            return at;
        }
        let geometry = self.nand.geometry();
        let line = geometry.word_line_of(geometry.unit_of(page));
        ready.min(at + self.clockwork.read_time(line, geometry.sectors_per_page()))
    }

    /// Reads sectors into the controller.
    fn read_extent(&mut self, extent: Extent, cause: Cause, at: Nanos) -> Nanos {
        let Extent { page, pages, sectors, .. } = extent;
        self.clockwork.recording.because(Some(cause));
        let geometry = self.nand.geometry();
        let unit = geometry.unit_of(page);
        let (block, _) = geometry.block_of(unit);
        let line = geometry.word_line_of(unit);
        let die = block.die.0 as usize;
        let mut in_flight = self.in_flight[die].iter();
        if let Some(flying) = in_flight.find(|flying| flying.unit == unit && flying.lands > at) {
            self.counters.buffer_hits[cause] += u64::from(pages);
            let issued = flying.issued;
            return self.ready_or_read(page, issued, at);
        }
        if let Some(done) = self.shared(extent, block.die, at) {
            self.counters.shared_reads[cause] += u64::from(pages);
            return done;
        }
        self.counters.reads[cause] += u64::from(pages);
        let (sensed, done) = self.clockwork.read_sectors(block.die, line, sectors, at);
        self.remember(block.die, UnderWay { extent, asked: at, sensed, done });
        done
    }

    /// When sectors are there that a read in flight brings, or whose page it senses completely.
    fn shared(&mut self, extent: Extent, die: DieId, at: Nanos) -> Option<Nanos> {
        if self.reads_unshared || !extent.is_run {
            return None;
        }
        let under_way = &self.under_way[die.0 as usize];
        let is_same = |read: &&UnderWay| read.extent == extent && read.asked <= at && at < read.done;
        if let Some(same) = under_way.of_page(extent.page).find(is_same) {
            return Some(same.done);
        }
        let is_one_page = |read: &&UnderWay| (read.extent.pages, extent.pages) == (1, 1);
        let is_sensing = |read: &&UnderWay| is_one_page(read) && read.asked <= at && at < read.sensed;
        // The last of those that share the sense: their transfers go one after the other.
        let UnderWay { sensed, done, .. } = *under_way.of_page(extent.page).rfind(is_sensing)?;
        let done = self.clockwork.bring(die, extent.sectors, done)?;
        self.remember(die, UnderWay { extent, asked: at, sensed, done });
        Some(done)
    }

    fn remember(&mut self, die: DieId, read: UnderWay) {
        self.under_way[die.0 as usize].remember(read, self.clockwork.now());
    }

    /// The content of a page that was read just now.
    ///
    /// # Errors
    /// [`MediaError`] when it is not what was written.
    #[inline]
    pub fn page(&mut self, page: PageAddress) -> Result<PageView<'_>, MediaError> {
        self.nand.page(page)
    }

    /// Shows a page to `see`, which takes no virtual time and is not counted ([`Backing::look`]).
    pub fn look(&self, page: PageAddress, see: &mut dyn FnMut(PageView<'_>)) -> bool {
        u64::from(page.0) < self.nand.geometry().pages() && self.nand.look(page, see)
    }

    /// The page `first` will be looked at now, and those behind it in its unit, `pages` in all ([`Backing::bring`]).
    pub fn bring(&self, first: PageAddress, pages: u32) {
        let geometry = self.nand.geometry();
        let pages_left = geometry.pages_per_program - first.0 % geometry.pages_per_program;
        if u64::from(first.0) < geometry.pages() && self.nand.is_programmed(first) {
            self.nand.backing().bring(first, pages.min(pages_left));
        }
    }

    /// Programs a unit, and gives its slot of the write buffer back. Returns when the unit is in flash.
    ///
    /// # Errors
    /// [`MediaError`] when the medium fails.
    pub fn program(
        &mut self,
        unit: UnitAddress,
        content: UnitImage,
        causes: &[Cause],
        at: Nanos,
    ) -> Result<Nanos, MediaError> {
        let (block, _) = self.geometry().block_of(unit);
        let channel = self.geometry().channel_of(block.die);
        for &cause in causes {
            self.counters.programs[cause] += 1;
        }
        self.counters.channel_programs[channel as usize] += causes.len() as u64;
        self.counters.die_programs[block.die.0 as usize] += causes.len() as u64;
        // The units of a block are programmed in order, even if a clock that is behind asks for the next one.
        let mut in_flight = self.in_flight[block.die.0 as usize].iter().rev();
        let before = in_flight.find(|flying| self.nand.geometry().block_of(flying.unit).0 == block);
        let at = before.map_or(at, |flying| at.max(flying.lands));
        self.clockwork.recording.because(causes.first().copied());
        let done = self.clockwork.program(block.die, at);
        self.nand.program(unit, content, Span { issued: at, end: done })?;
        self.buffer.give_back(done);
        let in_flight = &mut self.in_flight[block.die.0 as usize];
        while in_flight.len() > IN_FLIGHT_MAX
            || in_flight.front().is_some_and(|flying| flying.lands <= self.clockwork.now())
        {
            in_flight.pop_front();
        }
        in_flight.push_back(InFlight { unit, issued: at, lands: done });
        Ok(done)
    }

    /// Erases the blocks of a superblock side by side; returns the moment when the last one is erased.
    ///
    /// # Errors
    /// [`MediaError`] when the medium fails.
    pub fn erase(&mut self, superblock: SuperblockId, at: Nanos) -> Result<Nanos, MediaError> {
        let mut done = at;
        self.clockwork.recording.because(None);
        for die in self.geometry().dies_of(superblock) {
            self.counters.erases += 1;
            let landed = self.in_flight[die.0 as usize]
                .iter()
                .filter(|flying| self.nand.geometry().block_of(flying.unit).0.superblock == superblock)
                .fold(at, |landed, flying| landed.max(flying.lands));
            let end = self.clockwork.erase(die, landed);
            self.pages_erased += self.nand.erase(BlockAddress { superblock, die }, Span { issued: at, end })?;
            done = done.max(end);
        }
        Ok(done)
    }

    /// See [`Nand::restore`].
    ///
    /// # Errors
    /// [`MediaError`] when the medium fails.
    pub fn restore(&mut self, unit: UnitAddress, content: UnitImage) -> Result<(), MediaError> {
        let before = self.nand.pages_programmed();
        self.nand.restore(unit, content)?;
        self.pages_brought += self.nand.pages_programmed() - before;
        Ok(())
    }

    /// Pages that were programmed before the last mount, or restored by it from the write buffer.
    #[must_use]
    pub fn pages_brought(&self) -> u64 {
        self.pages_brought
    }

    /// See [`Nand::warm`].
    #[inline]
    pub fn warm(&self, places: &[(PageAddress, usize)]) {
        self.nand.warm(places);
    }

    /// See [`Nand::is_programmed`].
    #[must_use]
    #[inline]
    pub fn is_programmed(&self, page: PageAddress) -> bool {
        self.nand.is_programmed(page)
    }

    /// What keeps the pages, for its other services: hints to memory.
    #[must_use]
    #[inline]
    pub fn backing(&self) -> &dyn Backing {
        self.nand.backing()
    }

    /// The same, to be changed: staging and committing.
    #[inline]
    pub fn backing_mut(&mut self) -> &mut dyn Backing {
        self.nand.backing_mut()
    }
}
