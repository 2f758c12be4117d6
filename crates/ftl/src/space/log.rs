//! The logs: streams of pages, each with a log for each target, which writes to a superblock of its own.
//!
//! ```text
//!   append -> open page (grains) -> open unit (pages) -> program -> next unit ... -> superblock closed -> next free one
//!             in DRAM               a slot of the write buffer
//! ```
//!
//! A record starts at a grain and runs on over pages, and over the end of a superblock into the one that its stream
//! goes on to.

use crate::layout::address::Grain;
use crate::layout::oob::{Entry, Kind, Oob, OobFormat, Stream};
use crate::layout::packing::Packing;
use crate::space::placement::{LogId, Placement};
use kvssd_flash::rope::{Rope, RopeRef};
use kvssd_flash::{Cause, Geometry, PageAddress, PageView, SuperblockId, UnitBuilder};
use kvssd_types::{NamespaceId, Nanos, PlacementHandle};

/// What [`Io::append`](crate::Io::append) puts into the log.
#[derive(Debug)]
pub(crate) struct NewRecord<'a> {
    /// The log.
    pub(crate) stream: Stream,
    /// What it is.
    pub(crate) kind: Kind,
    /// What its owner finds it by.
    pub(crate) tag: u64,
    /// Its bytes, which may be moved out.
    pub(crate) bytes: &'a mut Rope,
    /// How many of them, from the first on, must lie in one page.
    pub(crate) unbroken_bytes: usize,
    /// What the pages that it fills are counted under.
    pub(crate) cause: Cause,
}

impl<'a> NewRecord<'a> {
    /// The record of a pair that a command writes.
    pub(crate) fn pair(tag: u64, bytes: &'a mut Rope, unbroken_bytes: usize) -> Self {
        NewRecord { stream: Stream::User, kind: Kind::Pair, tag, bytes, unbroken_bytes, cause: Cause::User }
    }
}

/// The logs and what they are gathering.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    /// By stream, then by target; behind them those of users' other placement handles.
    logs: Vec<OpenLog>,
    targets: u32,
    placement_handles: u32,
    pub(crate) format: OobFormat,
    pub(crate) sequence: u64,
    pub(crate) placement: Placement,
    /// Reused memory for encoding an out-of-band area.
    oob_bytes: Vec<u8>,
}

/// A log's open superblock, unit and page.
#[derive(Clone, Debug)]
pub(crate) struct OpenLog {
    pub(crate) superblock: Option<SuperblockId>,
    /// When the erase of the superblock ends.
    pub(crate) erased: Nanos,
    /// The page that is gathered.
    pub(crate) page: PageAddress,
    pub(crate) data: Rope,
    pub(crate) oob: Oob,
    /// When the last record was put on it.
    pub(crate) since: Nanos,
    /// The finished pages of the unit, what each is counted under, and when the last record was put on each.
    pub(crate) unit: UnitBuilder,
    pub(crate) causes: Vec<Cause>,
    pub(crate) unit_since: Vec<Nanos>,
    /// What the gathered page is counted under: the cause of its first record.
    pub(crate) cause: Cause,
    /// Whether the unit has its slot of the write buffer.
    pub(crate) buffered: bool,
    /// Since when the unit has it.
    pub(crate) slot_since: Nanos,
}

impl Log {
    pub(crate) fn new(geometry: &Geometry, format: OobFormat, placement_handles: u32) -> Self {
        let open = |stream| OpenLog {
            superblock: None,
            erased: Nanos::ZERO,
            page: PageAddress(0),
            data: Rope::default(),
            oob: Oob { kind: Kind::Padding, stream, sequence: 0, continues: None, entries: Vec::new() },
            since: Nanos::ZERO,
            unit: UnitBuilder::new(geometry.pages_per_program as usize),
            causes: Vec::new(),
            unit_since: Vec::new(),
            cause: Cause::Padding,
            buffered: false,
            slot_since: Nanos::ZERO,
        };
        let targets = geometry.targets();
        let of_handles = (1..placement_handles).map(|_| Stream::User);
        let rows = Stream::ALL.into_iter().chain(of_handles);
        let logs = rows.flat_map(|stream| (0..targets).map(move |_| open(stream))).collect();
        let placement = Placement::new(targets);
        Log { logs, targets, placement_handles, format, sequence: 0, placement, oob_bytes: Vec::new() }
    }

    /// [`OpenLog::turn_page`] of a log.
    pub(crate) fn turn_page(&mut self, log: LogId, geometry: &Geometry) -> bool {
        let index = self.index(log);
        self.logs[index].turn_page(geometry, self.format, &mut self.oob_bytes)
    }

    pub(crate) fn get(&self, log: LogId) -> &OpenLog {
        &self.logs[self.index(log)]
    }

    pub(crate) fn get_mut(&mut self, log: LogId) -> &mut OpenLog {
        let index = self.index(log);
        &mut self.logs[index]
    }

    /// A log, and the sequence number that all of them share.
    pub(crate) fn get_with_sequence(&mut self, log: LogId) -> (&mut OpenLog, &mut u64) {
        let index = self.index(log);
        (&mut self.logs[index], &mut self.sequence)
    }

    fn index(&self, LogId { stream, number }: LogId) -> usize {
        let row = if number < self.targets { stream as u32 } else { Stream::ALL.len() as u32 - 1 };
        (row * self.targets + number) as usize
    }

    /// The target that a log writes to.
    pub(crate) fn target_of(&self, log: LogId) -> u32 {
        log.number % self.targets
    }

    /// Whether there is such a log.
    pub(crate) fn has(&self, log: LogId) -> bool {
        log.number < self.rows_of(log.stream) * self.targets
    }

    /// Whether users have logs for such a handle.
    pub(crate) fn has_handle(&self, handle: PlacementHandle) -> bool {
        u32::from(handle.0) < self.placement_handles
    }

    fn rows_of(&self, stream: Stream) -> u32 {
        if stream == Stream::User { self.placement_handles } else { 1 }
    }

    /// All logs, in the order in which they are kept.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &OpenLog> {
        self.logs.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut OpenLog> {
        self.logs.iter_mut()
    }

    /// Their names, in the same order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = LogId> + use<> {
        let (targets, all) = (self.targets, self.logs.len() as u32);
        let own = move |stream: Stream| (0..targets).map(move |number| LogId { stream, number });
        let of_handles = (targets..all - (Stream::ALL.len() as u32 - 1) * targets)
            .map(|number| LogId { stream: Stream::User, number });
        Stream::ALL.into_iter().flat_map(own).chain(of_handles)
    }

    pub(crate) fn of(&self, stream: Stream) -> impl Iterator<Item = LogId> + use<> {
        (0..self.rows_of(stream) * self.targets).map(move |number| LogId { stream, number })
    }

    /// The log that gathers the unit of a page.
    fn gathering(&self, geometry: &Geometry, page: PageAddress) -> Option<&OpenLog> {
        let superblock = geometry.superblock_of(page);
        let target = geometry.target_of(superblock) as usize;
        let mut logs = (target..self.logs.len()).step_by(self.targets as usize).map(|number| &self.logs[number]);
        logs.find(|log| log.superblock == Some(superblock) && geometry.unit_of(log.page) == geometry.unit_of(page))
    }

    /// The data of a page that is still being gathered.
    pub(crate) fn open_page(&self, geometry: &Geometry, page: PageAddress) -> Option<RopeRef<'_>> {
        let log = self.gathering(geometry, page).filter(|log| page <= log.page)?;
        Some(log.page_data(page))
    }

    /// When a page that is still being gathered got its last record.
    pub(crate) fn open_since(&self, geometry: &Geometry, page: PageAddress) -> Option<Nanos> {
        let log = self.gathering(geometry, page).filter(|log| page <= log.page)?;
        let back = (log.page.0 - page.0) as usize;
        Some(if back == 0 { log.since } else { log.unit_since[log.unit_since.len() - back] })
    }

    /// The record that goes on in a page that is still being gathered.
    pub(crate) fn continued(&self, geometry: &Geometry, page: PageAddress) -> Option<Grain> {
        match self.gathered_page(geometry, page) {
            Some(view) => OobFormat::continued(view.oob),
            None => self.gathering(geometry, page)?.oob.continues,
        }
    }

    /// A page that is finished, whose unit is still being gathered.
    pub(crate) fn gathered_page(&self, geometry: &Geometry, page: PageAddress) -> Option<PageView<'_>> {
        let log = self.gathering(geometry, page).filter(|log| page < log.page)?;
        Some(log.unit.page(log.unit.pages() - (log.page.0 - page.0) as usize))
    }

    /// Bytes of DRAM beside the write buffer: the superblock, page and sequence of each log.
    pub(crate) fn dram_bytes(&self) -> u64 {
        let rows: u32 = Stream::RECORDS.into_iter().map(|stream| self.rows_of(stream)).sum();
        u64::from(rows) * u64::from(self.targets) * 32
    }
}

impl OpenLog {
    /// Whether the open page is of another kind, or has not room for `unbroken_bytes`.
    pub(crate) fn must_turn_page(&self, kind: Kind, unbroken_bytes: usize, page_bytes: usize) -> bool {
        !self.data.is_empty() && (self.oob.kind != kind || page_bytes - self.data.len() < unbroken_bytes)
    }

    /// Marks the start of a record; returns its first grain.
    pub(crate) fn begin(
        &mut self,
        packing: &Packing,
        kind: Kind,
        (namespace, tag): (NamespaceId, u64),
        cause: Cause,
    ) -> Grain {
        if self.data.is_empty() {
            self.oob.kind = kind;
            self.cause = cause;
        }
        let grain = (self.data.len() / packing.grain_bytes as usize) as u32;
        self.oob.entries.push(Entry { grain, namespace, tag });
        packing.grain(self.page, grain)
    }

    /// Fills the rest of the page with zeros and adds it to the unit; returns whether the unit is full.
    pub(crate) fn turn_page(&mut self, geometry: &Geometry, format: OobFormat, oob_bytes: &mut Vec<u8>) -> bool {
        self.data.push_zeros(geometry.page_bytes as usize - self.data.len());
        oob_bytes.clear();
        format.encode(&self.oob, oob_bytes);
        self.unit.push(oob_bytes, &mut self.data);
        self.causes.push(self.cause);
        self.unit_since.push(std::mem::take(&mut self.since));
        self.oob.kind = Kind::Padding;
        self.oob.continues = None;
        self.oob.entries.clear();
        self.cause = Cause::Padding;
        self.unit.pages() == geometry.pages_per_program as usize
    }

    fn page_data(&self, page: PageAddress) -> RopeRef<'_> {
        let back = (self.page.0 - page.0) as usize;
        if back == 0 {
            return self.data.as_ref();
        }
        let view: PageView<'_> = self.unit.page(self.unit.pages() - back);
        view.data
    }
}
