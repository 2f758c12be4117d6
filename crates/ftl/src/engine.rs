//! The engine: commands on pairs, over an index, a log and garbage collection.

use crate::address::Grain;
use crate::dram::DramUse;
use crate::gc::{Collector, GcCounters, STEP_SUPERBLOCKS};
use crate::index::{Growth, Index, IndexCounters, Position};
use crate::io::{Io, Media};
use crate::journal::Change;
use crate::log::NewRecord;
use crate::oob::{Kind, Stream};
use crate::record::{RecordHead, write_record};
use crate::recovery::{self, MountReport};
use kvssd_flash::rope::Rope;
use kvssd_flash::{Cause, Counters, Geometry, PageAddress};
use kvssd_types::{Command, Key, KvError, Nanos, Reply, StoreCondition, Value, ValueBuilder};

/// Superblocks that a step of the index's own work may open.
const GROWTH_SUPERBLOCKS: usize = 2;

/// How full the drive is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utilization {
    /// Pairs that are stored.
    pub pairs: u64,
    /// Bytes of their keys and values.
    pub pair_bytes: u64,
    /// Bytes of flash that their records take, in whole grains.
    pub record_bytes: u64,
    /// Bytes of flash that everything that lives takes, the index with it.
    pub live_bytes: u64,
    /// The most that may live.
    pub capacity_bytes: u64,
}

/// The limits that the engine was built with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Commands wait until more superblocks are free, beside those that garbage collection keeps for itself.
    pub(crate) high: usize,
    /// Grains that may live while no superblock is retired.
    pub(crate) capacity_grains: u64,
    pub(crate) value_bytes_max: u64,
    pub(crate) dram_bytes: u64,
}

impl Limits {
    /// Grains that may live.
    fn capacity_grains(&self, media: &Media) -> u64 {
        let retired = media.superblocks.retired() * media.packing.grains_per_superblock;
        self.capacity_grains.saturating_sub(retired)
    }
}

/// The firmware of one drive.
pub struct Engine {
    media: Media,
    index: Box<dyn Index>,
    collector: Collector,
    limits: Limits,
    utilization: Utilization,
    record: Rope,
    /// When the index has done what it did so far of its own work.
    grown: Nanos,
    /// Commands wait until then: the index works, and lets none in.
    closed_until: Nanos,
    /// What the other parts had of the DRAM when the index was told its share.
    dram_shared: u64,
}

/// A pair that a look-up found.
#[derive(Clone, Copy, Debug)]
struct Found {
    place: Grain,
    head: RecordHead,
}

impl Engine {
    pub(crate) fn new(media: Media, index: Box<dyn Index>, low: usize, limits: Limits) -> Self {
        let collector = Collector::new(&media, low);
        let mut engine = Engine {
            media,
            index,
            collector,
            limits,
            utilization: Utilization::default(),
            record: Rope::default(),
            grown: Nanos::ZERO,
            closed_until: Nanos::ZERO,
            dram_shared: 0,
        };
        engine.share_dram();
        engine
    }

    /// What a check looks at.
    pub(crate) fn parts(&mut self) -> (&mut Media, &dyn Index) {
        (&mut self.media, self.index.as_ref())
    }

    /// Makes an erased drive one that can be mounted.
    pub(crate) fn format(&mut self) -> Result<(), KvError> {
        self.checkpoint(false)
    }

    /// Brings the drive to where it was.
    pub(crate) fn mount(&mut self) -> Result<MountReport, KvError> {
        let (utilization, report) = recovery::mount(&mut self.media, self.index.as_mut())?;
        self.utilization = utilization;
        self.collector.clock = report.took;
        // The index was without a bound while changes were made again.
        self.dram_shared = 0;
        self.share_dram();
        Ok(report)
    }

    /// Ends the drive's life in order: the next mount finds everything at once.
    ///
    /// # Errors
    /// What the flash operations answer.
    pub fn close(mut self) -> Result<(), KvError> {
        while self.collector.is_busy() {
            self.collect()?;
        }
        if self.media.is_durable() { self.checkpoint(true) } else { Ok(()) }
    }

    fn checkpoint(&mut self, is_last: bool) -> Result<(), KvError> {
        let mut io = Io::new(&mut self.media, self.collector.clock, true);
        io.checkpoint(self.index.as_ref(), self.utilization.saved(), is_last)?;
        self.collector.clock = io.settle();
        Ok(())
    }

    /// What is done for the next mount after a command or a step of garbage collection that ended at `at`.
    fn pause(&mut self, at: Nanos) -> Result<(), KvError> {
        if !self.media.is_durable() {
            return Ok(());
        }
        let mut io = Io::new(&mut self.media, at, true);
        io.pause()?;
        if io.checkpoint_is_due() && !self.collector.is_busy() {
            io.checkpoint(self.index.as_ref(), self.utilization.saved(), false)?;
        }
        Ok(())
    }

    /// Has the medium make safe what it put off while it was told to ([`Backing::commit`](kvssd_flash::Backing::commit)).
    ///
    /// # Errors
    /// What the medium answers.
    pub fn commit(&mut self) -> Result<(), KvError> {
        self.pause(self.collector.clock)
    }

    /// Executes a command whose data is in the controller at `at`; gives when it is done, and the answer.
    pub fn execute(&mut self, command: Command<'_>, at: Nanos) -> (Nanos, Result<Reply, KvError>) {
        let mut at = at;
        let mut reply = self.finish_growth(&mut at).and_then(|()| self.wait_for_room(&command, &mut at));
        let mut io = Io::new(&mut self.media, at, false);
        io.cpu(io.costs().command_ns);
        if reply.is_ok() {
            reply = match command {
                Command::Store { key, value, condition } => {
                    let Engine { index, limits, utilization, record, .. } = self;
                    store(&mut io, index.as_mut(), limits, utilization, record, (key, &value, condition))
                }
                Command::Retrieve { key, offset_bytes, length_bytes } => {
                    retrieve(&mut io, self.index.as_mut(), key, offset_bytes, length_bytes)
                }
                Command::Delete { key } => delete(&mut io, self.index.as_mut(), &mut self.utilization, key),
                Command::Exist { key } => find(&mut io, self.index.as_mut(), key)
                    .and_then(|(_, found)| found.map(|_| Reply::Exists).ok_or(KvError::KeyNotFound)),
                Command::List { from, keys_max } => list(&mut io, self.index.as_mut(), from, keys_max),
                Command::Flush => io.flush().map(|drained| {
                    io.wait_until(drained);
                    Reply::Flushed
                }),
            };
        }
        let done = io.settle();
        if let Err(error) = self.pause(done) {
            reply = Err(error);
        }
        self.share_dram();
        (done, reply)
    }

    /// Lets background work go on until `now`; commands come with clocks from `now` on.
    ///
    /// # Errors
    /// What the flash operations answer.
    pub fn advance(&mut self, now: Nanos) -> Result<(), KvError> {
        loop {
            let collects = self.collector.clock < now && self.collector.is_wanted(&self.media);
            let grows = self.grown < now && self.index.growth() == Growth::Background && self.has_room_to_grow();
            if grows && (!collects || self.grown <= self.collector.clock) {
                self.media.advance(self.grown);
                self.grow()?;
            } else if collects {
                // The collector asks with its own clock, which lies behind.
                self.media.advance(self.collector.clock);
                if !self.collect()? {
                    break;
                }
            } else {
                break;
            }
        }
        self.collector.clock = self.collector.clock.max(now);
        self.grown = self.grown.max(now);
        self.media.advance(now);
        Ok(())
    }

    /// Commands on these keys will come soon. A hint to the memory of the machine that simulates the drive: it changes nothing,
    /// and takes no virtual time.
    pub fn expect(&mut self, keys: &[Key<'_>]) {
        self.index.expect(&Io::new(&mut self.media, Nanos::ZERO, false), keys);
    }

    /// How the flash is divided.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.media.geometry
    }

    /// The largest value that a store takes.
    #[must_use]
    pub fn value_bytes_max(&self) -> u64 {
        self.limits.value_bytes_max
    }

    /// How full the drive is.
    #[must_use]
    pub fn utilization(&self) -> Utilization {
        let grain_bytes = u64::from(self.media.packing.grain_bytes);
        Utilization {
            live_bytes: self.media.superblocks.live_grains() * grain_bytes,
            capacity_bytes: self.limits.capacity_grains(&self.media) * grain_bytes,
            ..self.utilization
        }
    }

    /// Operations on flash so far.
    #[must_use]
    pub fn flash_counters(&self) -> &Counters {
        self.media.flash.counters()
    }

    /// How often each block of the log was erased; the system superblock's are not.
    pub fn erases(&self) -> impl Iterator<Item = u32> {
        self.media.flash.erases().skip(self.media.geometry.dies() as usize)
    }

    /// What the index counted so far.
    #[must_use]
    pub fn index_counters(&self) -> IndexCounters {
        self.index.counters()
    }

    /// What garbage collection did so far.
    #[must_use]
    pub fn gc_counters(&self) -> GcCounters {
        self.collector.counters
    }

    /// Whether the index keeps keys in order.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.index.is_ordered()
    }

    /// DRAM by part.
    #[must_use]
    pub fn dram(&self) -> DramUse {
        let mut dram = DramUse::default();
        self.media.dram(&mut dram);
        self.index.dram(&mut dram);
        dram
    }

    /// The budget that [`Engine::dram`] keeps to.
    #[must_use]
    pub fn dram_budget_bytes(&self) -> u64 {
        self.limits.dram_bytes
    }

    /// Checks what must hold between commands.
    ///
    /// # Panics
    /// When it does not.
    pub fn check_invariants(&self) {
        let live: u64 = self.media.superblocks.all().iter().map(|superblock| superblock.live_grains).sum();
        assert_eq!(live, self.media.superblocks.live_grains(), "the sum of living grains is that of the superblocks");
        let geometry = &self.media.geometry;
        let programmed = self.media.flash.counters().programs.total();
        let dies: u64 = self.media.flash.counters().die_programs.iter().sum();
        assert_eq!(programmed, dies, "every program has a cause and a die");
        let pages_now = self.media.flash.pages_programmed();
        let erased = self.media.flash.pages_erased();
        let before = self.media.flash.pages_brought();
        assert_eq!(before + programmed, pages_now + erased, "every page that was programmed is there or was erased");
        assert!(pages_now <= geometry.pages());
    }

    /// One step of garbage collection; gives false when there is nothing to gain.
    fn collect(&mut self) -> Result<bool, KvError> {
        let step = self.collector.step(&mut self.media, self.index.as_mut());
        let gained = step.map_err(KvError::in_a_change)?;
        self.pause(self.collector.clock)?;
        self.share_dram();
        Ok(gained)
    }

    /// Whether a step of the index's own work leaves what commands and garbage collection may need.
    fn has_room_to_grow(&self) -> bool {
        self.media.superblocks.free() >= self.limits.high + STEP_SUPERBLOCKS + GROWTH_SUPERBLOCKS
    }

    /// One step of the index's own work.
    fn grow(&mut self) -> Result<(), KvError> {
        self.grown = self.grown.max(self.media.now);
        let mut io = Io::new(&mut self.media, self.grown, false);
        self.index.grow(&mut io).map_err(KvError::in_a_change)?;
        self.grown = io.settle();
        self.pause(self.grown)?;
        self.share_dram();
        Ok(())
    }

    /// Has the index finish work that lets no command in, and moves `at` behind it.
    fn finish_growth(&mut self, at: &mut Nanos) -> Result<(), KvError> {
        while self.index.growth() == Growth::Foreground {
            self.grown = self.grown.max(*at);
            if self.has_room_to_grow() {
                self.grow()?;
                self.closed_until = self.grown;
            } else {
                self.collector.clock = self.collector.clock.max(self.grown);
                if !self.collect()? {
                    break;
                }
                self.grown = self.collector.clock;
            }
        }
        *at = (*at).max(self.closed_until);
        Ok(())
    }

    /// Gives the index what the other parts leave of the DRAM, less a page for what these may grow by until the next time.
    fn share_dram(&mut self) {
        let taken = self.media.dram_bytes() + u64::from(self.media.geometry.page_bytes);
        if taken != self.dram_shared {
            self.dram_shared = taken;
            self.index.set_dram_budget(self.limits.dram_bytes.saturating_sub(taken));
        }
    }

    /// Waits for garbage collection while fewer superblocks are free than the command may need beside the reserve.
    fn wait_for_room(&mut self, command: &Command<'_>, at: &mut Nanos) -> Result<Reply, KvError> {
        let record_bytes = match command {
            Command::Store { value, .. } if value.len() as u64 > self.limits.value_bytes_max => {
                let value_bytes_max = self.limits.value_bytes_max;
                return Err(KvError::InvalidValueSize { value_bytes: value.len() as u64, value_bytes_max });
            }
            Command::Store { key, value, .. } => RecordHead::bytes_for(key.bytes().len()) + value.len(),
            _ => 0,
        };
        let superblock_bytes = self.media.geometry.superblock_bytes();
        let needed = self.limits.high + STEP_SUPERBLOCKS + (record_bytes as u64 / superblock_bytes) as usize;
        while self.media.superblocks.free() < needed {
            self.collector.clock = self.collector.clock.max(self.media.now);
            if !self.collect()? {
                break;
            }
            self.collector.counters.stall_ns += (self.collector.clock - *at).0;
            *at = (*at).max(self.collector.clock);
        }
        let is_store = matches!(command, Command::Store { .. });
        // Nothing to gain: deletes may use the reserve, stores may not.
        if is_store && self.media.superblocks.free() < needed {
            Err(KvError::CapacityExceeded)
        } else {
            Ok(Reply::Stored)
        }
    }
}

/// Looks `key` up; gives its position and the pair that was found there. A record on the way that cannot be read is an error only
/// when the key is found nowhere else: it may be the key's.
fn find(io: &mut Io<'_>, index: &mut dyn Index, key: Key<'_>) -> Result<(Position, Option<Found>), KvError> {
    let (mut found, mut unreadable) = (None, None);
    let position = index.locate(io, key, &mut |io, place| {
        let packing = io.packing();
        let (page, start) = (packing.page_of(place), packing.byte_in_page(place));
        io.read(page, Cause::User);
        io.cpu(io.costs().key_compare_ns);
        let page_bytes = io.media.geometry.page_bytes as usize;
        let head = io.data(page).map(|data| RecordHead::matching(data, start, page_bytes, key));
        found = match head {
            Err(error @ KvError::Unrecovered(_)) => {
                unreadable = Some(error);
                None
            }
            head => head?.map(|head| Found { place, head }),
        };
        Ok(found.is_some())
    })?;
    match unreadable.filter(|_| found.is_none()) {
        Some(error) => Err(error),
        None => Ok((position, found)),
    }
}

fn store(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    limits: &Limits,
    utilization: &mut Utilization,
    record: &mut Rope,
    (key, value, condition): (Key<'_>, &Value, StoreCondition),
) -> Result<Reply, KvError> {
    let (position, found) = find(io, index, key)?;
    match condition {
        StoreCondition::IfExists if found.is_none() => return Err(KvError::KeyNotFound),
        StoreCondition::IfAbsent if found.is_some() => return Err(KvError::KeyExists),
        _ => {}
    }
    let packing = io.packing();
    let head = RecordHead { key_bytes: key.bytes().len() as u32, value_bytes: value.len() as u32 };
    let grains = packing.grains_of(head.record_bytes());
    let freed = found.map_or(0, |found| packing.grains_of(found.head.record_bytes()));
    let taken = (utilization.record_bytes + index.footprint_bytes()) / u64::from(packing.grain_bytes);
    let wanted = taken + u64::from(grains) - u64::from(freed);
    // An overwrite that takes no more than it frees is always welcome.
    if position.tag == Position::FULL || (grains > freed && wanted > limits.capacity_grains(io.media)) {
        return Err(KvError::CapacityExceeded);
    }
    if found.is_none() {
        index.make_room(io, position)?;
    }
    record.clear();
    write_record(key, value, record);
    put(io, index, utilization, record, (position, head, found)).map_err(KvError::in_a_change)?;
    Ok(Reply::Stored)
}

/// Appends the record of a pair and binds its key to it.
fn put(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    utilization: &mut Utilization,
    record: &mut Rope,
    (position, head, found): (Position, RecordHead, Option<Found>),
) -> Result<(), KvError> {
    let packing = io.packing();
    let place = io.append(NewRecord {
        stream: Stream::User,
        kind: Kind::Pair,
        tag: position.tag,
        bytes: record,
        unbroken_bytes: head.bytes(),
        cause: Cause::User,
    })?;
    let Position { tag, probes, .. } = position;
    io.note(Change::Bound { tag, probes, pair: head.at(place), old: found.map(|old| old.head.at(old.place)) });
    if let Some(old) = found {
        let freed = packing.grains_of(old.head.record_bytes());
        io.pair_died(tag, old.place, freed)?;
        utilization.remove(&old.head, freed, packing.grain_bytes).expect("what is overwritten was counted");
    }
    index.bind(io, position, place)?;
    utilization.add(&head, packing.grains_of(head.record_bytes()), packing.grain_bytes);
    Ok(())
}

fn retrieve(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    key: Key<'_>,
    offset_bytes: u32,
    length_bytes: u32,
) -> Result<Reply, KvError> {
    let (_, found) = find(io, index, key)?;
    let Found { place, head } = found.ok_or(KvError::KeyNotFound)?;
    let page_bytes = io.media.geometry.page_bytes as usize;
    let packing = io.packing();
    let first = offset_bytes.min(head.value_bytes) as usize;
    let last = first + length_bytes.min(head.value_bytes - first as u32) as usize;
    // Bytes counted from the start of the record's first page, which look-up has read.
    let base = packing.byte_in_page(place) + head.bytes();
    let wanted = base + first..base + last;
    let mut pages: Vec<(PageAddress, usize)> = Vec::new();
    let mut page = packing.page_of(place);
    for number in 0..wanted.end.div_ceil(page_bytes) {
        if number > 0 {
            page = io.media.page_after(page);
        }
        if (number + 1) * page_bytes > wanted.start && !wanted.is_empty() {
            pages.push((page, number * page_bytes));
        }
    }
    let unread: Vec<PageAddress> = pages.iter().filter(|(_, start)| *start > 0).map(|(page, _)| *page).collect();
    io.read_all(&unread, Cause::User);
    let mut value = ValueBuilder::default();
    for (page, start) in pages {
        let range = wanted.start.max(start) - start..wanted.end.min(start + page_bytes) - start;
        io.data(page)?.push_to(range, &mut value);
    }
    Ok(Reply::Retrieved { value: value.build(), value_bytes: head.value_bytes })
}

fn delete(
    io: &mut Io<'_>,
    index: &mut dyn Index,
    utilization: &mut Utilization,
    key: Key<'_>,
) -> Result<Reply, KvError> {
    let (position, found) = find(io, index, key)?;
    let found = found.ok_or(KvError::KeyNotFound)?;
    let packing = io.packing();
    let grains = packing.grains_of(found.head.record_bytes());
    io.note(Change::Unbound { tag: position.tag, probes: position.probes, old: found.head.at(found.place) });
    let unbound = io.pair_died(position.tag, found.place, grains).and_then(|()| index.unbind(io, position));
    unbound.map_err(KvError::in_a_change)?;
    utilization.remove(&found.head, grains, packing.grain_bytes).expect("what is deleted was counted");
    Ok(Reply::Deleted)
}

fn list(io: &mut Io<'_>, index: &mut dyn Index, from: Option<Key<'_>>, keys_max: usize) -> Result<Reply, KvError> {
    let from = from.map(|key| find(io, index, key).map(|(position, _)| position)).transpose()?;
    let mut places = Vec::new();
    index.list(io, from, keys_max, &mut places)?;
    let packing = io.packing();
    let mut pages: Vec<PageAddress> = places.iter().map(|&place| packing.page_of(place)).collect();
    pages.sort_unstable();
    pages.dedup();
    io.read_all(&pages, Cause::User);
    let page_bytes = io.media.geometry.page_bytes as usize;
    let mut keys = Vec::with_capacity(places.len());
    for place in places {
        let data = io.data(packing.page_of(place))?;
        let start = packing.byte_in_page(place);
        let head = RecordHead::read(data, start, page_bytes)?;
        keys.push(head.key(data, start, &mut [0; 255]).into());
    }
    Ok(Reply::Listed(keys))
}

impl Utilization {
    /// What a checkpoint holds of it.
    pub(crate) fn saved(&self) -> (u64, u64, u64) {
        (self.pairs, self.pair_bytes, self.record_bytes)
    }

    pub(crate) fn from_saved((pairs, pair_bytes, record_bytes): (u64, u64, u64)) -> Self {
        Utilization { pairs, pair_bytes, record_bytes, ..Utilization::default() }
    }

    pub(crate) fn add(&mut self, head: &RecordHead, grains: u32, grain_bytes: u32) {
        self.pairs += 1;
        self.pair_bytes += u64::from(head.key_bytes) + u64::from(head.value_bytes);
        self.record_bytes += u64::from(grains) * u64::from(grain_bytes);
    }

    /// None, and no change, when there is not so much.
    pub(crate) fn remove(&mut self, head: &RecordHead, grains: u32, grain_bytes: u32) -> Option<()> {
        let pairs = self.pairs.checked_sub(1)?;
        let pair_bytes = self.pair_bytes.checked_sub(u64::from(head.key_bytes) + u64::from(head.value_bytes))?;
        let record_bytes = self.record_bytes.checked_sub(u64::from(grains) * u64::from(grain_bytes))?;
        *self = Utilization { pairs, pair_bytes, record_bytes, ..*self };
        Some(())
    }
}
