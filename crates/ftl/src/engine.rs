//! The engine: commands on pairs, over an index, a log and garbage collection.

use crate::blocks::ReadAhead;
use crate::dram::DramUse;
use crate::gc::{Collector, GcCounters, STEP_SUPERBLOCKS};
use crate::growth::GrowthCounters;
use crate::index::{Growth, Index, IndexCounters, RangeIndex};
use crate::io::{Io, Media};
use crate::iterators::{IteratorPlan, Iterators};
use crate::packing::RecordLayout;
use crate::record::RecordHead;
use crate::recovery::{self, MountReport};
use crate::utilization::Utilization;
use crate::{blocks, commands};
use kvssd_flash::rope::Rope;
use kvssd_flash::{Counters, Geometry};
use kvssd_types::{Command, Key, KvError, Nanos, Reply};

/// Superblocks that a step of the index's own work may open.
const GROWTH_SUPERBLOCKS: usize = 2;

/// The part of the DRAM that what is kept for iterators may take. An estimate.
const HELD_SHARE: u64 = 64;

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
    pub(crate) fn capacity_grains(&self, media: &Media) -> u64 {
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
    ahead: ReadAhead,
    /// When the index has done what it did so far of its own work.
    grown: Nanos,
    /// Commands wait until then: the index works, and lets none in.
    closed_until: Nanos,
    growth: GrowthCounters,
    is_ordered: bool,
    iterators: Iterators,
    /// The living grains when collection had nothing to gain, and the programs after which it is tried again.
    in_vain: Option<(u64, u64)>,
    /// What the other parts had of the DRAM when the index was told its share.
    dram_shared: u64,
}

impl Engine {
    pub(crate) fn new(
        media: Media,
        mut index: Box<dyn Index>,
        iterators: Iterators,
        low: usize,
        limits: Limits,
    ) -> Self {
        let is_ordered = index.ranges().is_some();
        let collector = Collector::new(&media, low);
        let mut engine = Engine {
            media,
            index,
            collector,
            limits,
            utilization: Utilization::default(),
            record: Rope::default(),
            ahead: ReadAhead::default(),
            grown: Nanos::ZERO,
            closed_until: Nanos::ZERO,
            growth: GrowthCounters::default(),
            is_ordered,
            iterators,
            in_vain: None,
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
        while self.expire()? {}
        while self.collector.is_busy() {
            self.collect()?;
        }
        if self.media.is_durable() { self.checkpoint(true) } else { Ok(()) }
    }

    fn checkpoint(&mut self, is_last: bool) -> Result<(), KvError> {
        let mut io = Io::new(&mut self.media, self.collector.clock, true);
        io.checkpoint(self.index.as_mut(), self.utilization.saved(), is_last)?;
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
            io.checkpoint(self.index.as_mut(), self.utilization.saved(), false)?;
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
        let ready = self.knows(&command).and_then(|()| self.finish_growth(&mut at));
        let ready = ready.and_then(|()| self.wait_for_room(&command, &mut at));
        let Engine { media, index, limits, utilization, record, ahead, iterators, .. } = self;
        let (mut io, index) = (Io::new(media, at, false), index.as_mut());
        io.cpu(io.costs().command_ns);
        let mut reply = ready.and_then(|()| match command {
            Command::Store { key, value, condition } => {
                commands::store(&mut io, index, limits, utilization, record, (key, &value, condition))
            }
            Command::Retrieve { key, offset_bytes, length_bytes } => {
                commands::retrieve(&mut io, index, key, offset_bytes, length_bytes)
            }
            Command::Delete { key } => commands::delete(&mut io, index, utilization, key),
            Command::Exist { key } => commands::exist(&mut io, index, key),
            Command::List { from, keys_max } => commands::list(&mut io, index, from, keys_max),
            Command::CreateIterator { options } => iterators.create(&mut io, index, &options),
            Command::Seek { iterator, key, pairs_max } => iterators.seek(&mut io, index, iterator, (key, pairs_max)),
            Command::Next { iterator, pairs_max } => iterators.next(&mut io, index, iterator, pairs_max),
            Command::Batch { .. } => Err(KvError::InvalidCommand("it makes no batches")),
            Command::DestroyIterator { iterator } => iterators.destroy(&mut io, index, iterator),
            Command::Read { offset_bytes, length_bytes } => {
                blocks::read(&mut io, index, limits, ahead, (offset_bytes, length_bytes))
            }
            Command::Write { offset_bytes, value } => {
                ahead.forget();
                blocks::write(&mut io, index, limits, utilization, record, (offset_bytes, &value))
            }
            Command::Flush => io.flush().map(|drained| {
                io.wait_until(drained);
                Reply::Flushed
            }),
        });
        let (done, settled) = (io.answered(), io.settle());
        if let Err(error) = self.pause(settled).and_then(|()| self.bound_held()) {
            reply = Err(error);
        }
        self.share_dram();
        (done, reply)
    }

    /// A command that brings a part of the next one, which arrives when it is done.
    pub fn take_part(&mut self, at: Nanos) -> Nanos {
        let mut io = Io::new(&mut self.media, at, false);
        io.cpu(io.costs().command_ns);
        io.settle()
    }

    /// Whether the drive has such commands.
    fn knows(&self, command: &Command<'_>) -> Result<(), KvError> {
        let takes_blocks = self.media.packing.layout == RecordLayout::Blocks;
        let changes = matches!(command, Command::Store { .. } | Command::Delete { .. });
        if let Some(why) = self.index.refuses_changes().filter(|_| changes) {
            return Err(KvError::Unrecovered(why));
        }
        match command {
            Command::Flush => Ok(()),
            Command::Read { .. } | Command::Write { .. } if takes_blocks => Ok(()),
            Command::Read { .. } | Command::Write { .. } => {
                Err(KvError::InvalidCommand("it takes keys, and no blocks"))
            }
            _ if takes_blocks => Err(KvError::InvalidCommand("it takes blocks, and no keys")),
            Command::CreateIterator { .. } if !self.is_ordered => {
                Err(KvError::InvalidCommand("it keeps keys in no order"))
            }
            _ => Ok(()),
        }
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

    /// What the index's own work kept commands waiting for so far.
    #[must_use]
    pub fn growth_counters(&self) -> GrowthCounters {
        self.growth
    }

    /// Whether the index keeps keys in order.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// Iterators read ahead so from their next command on, as far as the design has memory for it.
    pub fn set_iterator_plan(&mut self, plan: IteratorPlan) {
        self.iterators.set_plan(plan);
    }

    /// The times that iterators measured last: of a read of a value, and of what lies between one pair and the next beside that
    /// (IterKVSSD, section 4.5: T_d, and T_A + T_e + T_wait).
    #[must_use]
    pub fn iterator_times(&self) -> (Nanos, Nanos) {
        self.iterators.times()
    }

    /// Iterators that live.
    #[must_use]
    pub fn iterators(&self) -> usize {
        self.iterators.count()
    }

    /// DRAM by part.
    #[must_use]
    pub fn dram(&self) -> DramUse {
        let mut dram = DramUse::default();
        self.media.dram(&mut dram);
        self.index.dram(&mut dram);
        if self.iterators.dram_bytes() > 0 {
            dram.add("prefetch_buffer", self.iterators.dram_bytes());
        }
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
        self.ahead.forget();
        let step = self.collector.step(&mut self.media, self.index.as_mut());
        let gained = step.map_err(KvError::in_a_change)?;
        self.pause(self.collector.clock)?;
        self.share_dram();
        Ok(gained)
    }

    /// Collects until there is room; gives whether there is. When as many superblocks as the drive has were collected in vain, what
    /// is moved takes what is freed.
    /// It is tried again when something died, or so much was written that there is more to gain.
    fn collect_until(&mut self, has_room: impl Fn(&Engine) -> bool) -> Result<bool, KvError> {
        let (live, programs) = (self.media.superblocks.live_grains(), self.flash_counters().programs.total());
        if self.in_vain.is_some_and(|(then, until)| live >= then && programs < until) {
            return Ok(false);
        }
        let most = self.collector.counters.superblocks + u64::from(self.media.geometry.superblocks());
        while !has_room(self) {
            if self.collector.counters.superblocks >= most || !self.collect()? {
                let programs = self.flash_counters().programs.total();
                self.in_vain = Some((live, programs + u64::from(self.media.geometry.pages_per_superblock())));
                return Ok(false);
            }
        }
        self.in_vain = None;
        Ok(true)
    }

    /// Ends the oldest iterator. Gives whether there was one.
    fn expire(&mut self) -> Result<bool, KvError> {
        let Engine { media, index, iterators, collector, .. } = self;
        let mut io = Io::new(media, collector.clock, true);
        iterators.expire(&mut io, index.as_mut())
    }

    /// What is kept for iterators has a part of the DRAM: the oldest are ended when it is more.
    fn bound_held(&mut self) -> Result<(), KvError> {
        while self.media.held.bytes() > self.limits.dram_bytes / HELD_SHARE && self.expire()? {}
        Ok(())
    }

    /// As [`Engine::collect_until`]; what iterators keep is given up for it, the oldest first.
    fn make_room(&mut self, has_room: impl Fn(&Engine) -> bool) -> Result<bool, KvError> {
        loop {
            if self.collect_until(&has_room)? {
                return Ok(true);
            }
            let keeps_tables = |ranges: &mut dyn RangeIndex| !ranges.kept_for_cursors().is_empty();
            let keeps_flash = self.media.held.keeps_flash() || self.index.ranges().is_some_and(keeps_tables);
            if !keeps_flash || !self.expire()? {
                return Ok(false);
            }
            self.in_vain = None;
        }
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
        let begun = self.grown.max(*at);
        while self.index.growth() == Growth::Foreground {
            self.grown = self.grown.max(*at);
            if !self.has_room_to_grow() {
                self.collector.clock = self.collector.clock.max(self.grown);
                if !self.make_room(|engine| engine.has_room_to_grow())? {
                    break;
                }
                self.grown = self.collector.clock;
            }
            self.grow()?;
            self.closed_until = self.grown;
        }
        if self.closed_until > begun {
            self.growth.add(self.closed_until - begun, self.index.growth() != Growth::Foreground);
        }
        *at = (*at).max(self.closed_until);
        Ok(())
    }

    /// Gives the index what the other parts leave of the DRAM, less a page for what these may grow by until the next time.
    fn share_dram(&mut self) {
        let taken = self.media.dram_bytes() + self.iterators.dram_bytes() + u64::from(self.media.packing.page_bytes());
        if taken != self.dram_shared {
            self.dram_shared = taken;
            self.index.set_dram_budget(self.limits.dram_bytes.saturating_sub(taken));
        }
    }

    /// Waits for garbage collection while fewer superblocks are free than the command may need beside the reserve.
    fn wait_for_room(&mut self, command: &Command<'_>, at: &mut Nanos) -> Result<(), KvError> {
        let record_bytes = match command {
            Command::Store { value, .. } | Command::Write { value, .. }
                if value.len() as u64 > self.limits.value_bytes_max =>
            {
                let value_bytes_max = self.limits.value_bytes_max;
                return Err(KvError::InvalidValueSize { value_bytes: value.len() as u64, value_bytes_max });
            }
            Command::Store { key, value, .. } => {
                let (key_bytes, value_bytes) = (key.bytes().len() as u32, value.len() as u32);
                self.media.packing.bytes_charged(&RecordHead { key_bytes, value_bytes })
            }
            Command::Write { value, .. } => value.len() as u64,
            _ => 0,
        };
        let superblocks = (record_bytes / self.media.packing.superblock_bytes()) as usize;
        let needed = self.limits.high + STEP_SUPERBLOCKS + superblocks;
        if self.media.superblocks.free() >= needed {
            return Ok(());
        }
        self.collector.clock = self.collector.clock.max(self.media.now);
        let has_room = self.make_room(|engine| engine.media.superblocks.free() >= needed)?;
        self.collector.counters.stall_ns += self.collector.clock.0.saturating_sub(at.0);
        *at = (*at).max(self.collector.clock);
        let is_store = matches!(command, Command::Store { .. } | Command::Write { .. });
        // Nothing to gain: deletes may use the reserve, stores may not.
        if is_store && !has_room { Err(KvError::CapacityExceeded) } else { Ok(()) }
    }
}
