//! Work of the indexes' own, and commands that wait for it.

use super::{Engine, GROWTH_SUPERBLOCKS};
use crate::commands;
use crate::gc::STEP_SUPERBLOCKS;
use crate::index::{Growth, Uncompared};
use crate::io::Io;
use crate::io::lack::Lack;
use crate::namespace::Namespace;
use kvssd_flash::timing::{Actor, Lane};
use kvssd_types::{Command, KvError, NamespaceId, Nanos};

/// How often an index's own work kept out changes or all commands ([`Growth`](crate::index::Growth)), and for how long, whether any came or not:
/// tables that are all split at once, a full MemTable or a full local index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrowthCounters {
    /// How often such work was completed.
    pub closures: u64,
    /// How long it took in total, in nanoseconds; where a command waited, with the garbage collection that made room for it.
    pub closed_ns: u64,
}

impl GrowthCounters {
    /// Adds work that took `took` and is complete, or else waits for room.
    pub(crate) fn add(&mut self, took: Nanos, is_done: bool) {
        self.closed_ns += took.0;
        self.closures += u64::from(is_done);
    }
}

/// No index has so many steps of work between two commands of which none takes time.
const IDLE_STEPS_MAX: u32 = 1 << 24;

/// One step of an index's own work.
pub(super) fn grow(io: &mut Io<'_>, namespace: &mut Namespace) -> Result<(), KvError> {
    let grown = namespace.index.grow(io);
    io.count_replaced(&mut namespace.utilization);
    grown.map_err(KvError::in_a_change)
}

impl Engine {
    /// One step of an index's own work. If it keeps commands out, it does so since `begun`, when room was looked for.
    pub(super) fn grow(&mut self, namespace: NamespaceId, begun: Nanos) -> Result<(), KvError> {
        let (growth, before) = (self.growth_of(namespace), self.growth_clock);
        self.work_on(namespace, grow)?;
        self.idle_steps = if self.growth_clock == before { self.idle_steps + 1 } else { 0 };
        assert!(
            self.idle_steps < IDLE_STEPS_MAX,
            "Index::growth says {growth:?} of namespace {namespace}, and Index::grow does nothing, however often it is called"
        );
        if growth.keeps_out(true) {
            let is_done = !self.growth_of(namespace).keeps_out(true);
            if let Some(namespace) = self.namespaces.get_mut(namespace) {
                // A step in the reserve, while room was looked for, was counted.
                self.growth.add(self.growth_clock - begun.max(namespace.closed.1), is_done);
                namespace.closed = (growth, self.growth_clock);
            }
        }
        Ok(())
    }

    /// The first namespace whose index has work of its own to do.
    pub(super) fn growing(&self) -> Option<NamespaceId> {
        self.namespaces.growing(|growth| growth != Growth::None)
    }

    fn growth_of(&self, namespace: NamespaceId) -> Growth {
        self.namespaces.get(namespace).map_or(Growth::None, |namespace| namespace.index.growth())
    }

    /// Whether there are pairs that were not compared yet with those that they may have replaced. Until then both count.
    #[must_use]
    pub fn has_uncompared(&self) -> bool {
        self.namespaces.iter().any(|namespace| !namespace.index.uncompared().is_empty())
    }

    /// Compares all pairs of all namespaces with those that they may have replaced: from then on counts of pairs and bytes are
    /// exact. Returns when it is done.
    ///
    /// # Errors
    /// What the flash operations answer.
    pub fn compare(&mut self, at: Nanos) -> (Nanos, Result<(), KvError>) {
        self.administer(at, |engine| engine.compare_all(at))
    }

    /// Makes room for indexes to grow, in the background; returns whether there is some.
    pub(super) fn make_room_to_grow(&mut self) -> Result<bool, KvError> {
        self.make_room(Engine::has_room_to_grow)
    }

    /// The same for work that needs as much as `has_room` says.
    pub(super) fn make_room(&mut self, has_room: fn(&Engine) -> bool) -> Result<bool, KvError> {
        if has_room(self) {
            return Ok(true);
        }
        self.collector.clock = self.collector.clock.max(self.growth_clock);
        let is_made = self.reclaim_until(has_room)?;
        if is_made {
            self.growth_clock = self.collector.clock;
        }
        Ok(is_made)
    }

    /// Where collection alone does not come through, the index of a deleted namespace is taken apart, and one that keeps out changes grows, in the
    /// superblocks that collection keeps for itself: what is moved makes a tree larger, until its tables are merged.
    pub(super) fn grow_in_reserve(&mut self) -> Result<(), KvError> {
        while self.is_stuck() {
            self.growth_clock = self.growth_clock.max(self.collector.clock);
            let dying = self.namespaces.dying();
            if !dying.map_or(Ok(false), |namespace| self.remove_part(namespace))? {
                let Some(growing) = self.namespaces.growing(|growth| growth == Growth::Changes) else { break };
                self.grow(growing, self.growth_clock)?;
            }
            self.collector.clock = self.growth_clock;
        }
        Ok(())
    }

    /// Whether more lives than the drive has room for, or hardly a step of collection is left, and there is room for one of an index. A checkpoint
    /// that is due comes first, and with it the end of the victim that it waits for: growth would take all that collection frees, and the
    /// journal the drive.
    fn is_stuck(&self) -> bool {
        let free = self.media.space.superblocks.free();
        let waits = self.collector.is_busy() && self.media.durable.journal.is_long();
        (self.is_overfull() || free <= STEP_SUPERBLOCKS) && free >= GROWTH_SUPERBLOCKS && !waits
    }

    /// Whether more lives than the drive has room for.
    pub(super) fn is_overfull(&self) -> bool {
        let space = &self.media.space;
        space.superblocks.live_grains() > space.capacity_grains
    }

    /// The namespace that is to give DRAM back next.
    pub(super) fn owing(&self) -> Option<NamespaceId> {
        if self.dram_shared == 0 { self.namespaces.owing() } else { None }
    }

    /// A namespace that may not be used for long gives some DRAM back to the others.
    pub(super) fn shrink(&mut self, namespace: NamespaceId) -> Result<(), KvError> {
        self.work_on(namespace, |io, namespace| namespace.index.shrink(io))
    }

    /// Whether a command that was refused for lack of room may lack what [`Engine::find_room`] finds. A namespace at its quota gains nothing from
    /// the end of another one, and only a drive that is full from what was only looked at.
    pub(super) fn may_find_room(&self, namespace: NamespaceId, command: &Command<'_>) -> bool {
        let bytes = self.bytes_wanted(command).unwrap_or(0);
        let has_quota = self.namespaces.get(namespace).is_some_and(|namespace| namespace.has_quota_for(bytes));
        let is_full = self.lacks.iter().any(|lack| matches!(lack, Lack::OnDrive { .. }));
        let may_have_blank = is_full && self.namespaces.iter().any(|namespace| namespace.index.may_have_blank());
        may_have_blank || self.has_uncompared() || self.owing().is_some() || has_quota && self.is_removing()
    }

    /// Finds what a refused command may have lacked: room of what was only looked at, room and DRAM of deleted namespaces, DRAM that others keep,
    /// and what pairs take that were replaced. Returns when it is done.
    pub(super) fn find_room(&mut self, at: Nanos) -> (Nanos, Result<(), KvError>) {
        self.administer(at, |engine| {
            engine.namespaces.iter_mut().for_each(|namespace| namespace.index.drop_blank());
            let mut done = engine.remove_deleted(at)?;
            while let Some(namespace) = engine.owing() {
                engine.growth_clock = engine.growth_clock.max(done);
                if !engine.make_room_to_grow()? {
                    break;
                }
                engine.shrink(namespace)?;
                done = engine.growth_clock;
            }
            engine.compare_all(done)
        })
    }

    fn compare_all(&mut self, at: Nanos) -> Result<Nanos, KvError> {
        let ids: Vec<NamespaceId> = self.namespaces.iter().map(|namespace| namespace.id).collect();
        ids.into_iter().try_fold(at, |at, id| self.compare_in(id, at))
    }

    /// Compares the pairs of a namespace, as far as there is room for the sections that this may evict; returns when it is done.
    pub(super) fn compare_in(&mut self, id: NamespaceId, at: Nanos) -> Result<Nanos, KvError> {
        let left =
            |engine: &Engine| engine.namespaces.get(id).map_or(0, |namespace| namespace.index.uncompared().len());
        let mut done = at;
        let mut before = usize::MAX;
        while (1..before).contains(&left(self)) {
            before = left(self);
            self.growth_clock = self.growth_clock.max(done);
            if !self.make_room_to_grow()? {
                break;
            }
            self.work_on(id, |io, namespace| commands::compare(io, namespace, Uncompared::Some))?;
            done = self.growth_clock;
        }
        Ok(done)
    }

    /// Does background work on a namespace, and commits it.
    pub(super) fn work_on(
        &mut self,
        namespace: NamespaceId,
        work: impl FnOnce(&mut Io<'_>, &mut Namespace) -> Result<(), KvError>,
    ) -> Result<(), KvError> {
        self.work_uncommitted(namespace, work)?;
        self.commit_journal(self.growth_clock)?;
        self.share_dram();
        Ok(())
    }

    /// Does background work that is not whole yet: a commit may be a checkpoint, which would keep a half of it.
    pub(super) fn work_uncommitted(
        &mut self,
        namespace: NamespaceId,
        work: impl FnOnce(&mut Io<'_>, &mut Namespace) -> Result<(), KvError>,
    ) -> Result<(), KvError> {
        let begun = self.growth_clock.max(self.media.controller.now);
        // Collection may have made the room with a clock that is ahead.
        self.growth_clock = self.media.space.superblocks.free_from(self.free_to_grow(), begun).unwrap_or(begun);
        let caller = self.recording().work_for(Actor::Growth);
        let Engine { media, namespaces, growth_clock, .. } = self;
        let mut io = Io::new(media, *growth_clock, false).of(namespace).beside(namespaces.taken_bytes());
        if let Some(namespace) = namespaces.get_mut(namespace) {
            work(&mut io, namespace)?;
        }
        let (begun, until) = (*growth_clock, io.settle());
        self.growth_clock = until;
        self.recording().task(Lane::Growth, begun, until);
        self.recording().work_for(caller);
        Ok(())
    }

    pub(super) fn keeps_out(&self, namespace: NamespaceId, is_change: bool) -> bool {
        self.growth_of(namespace).keeps_out(is_change)
    }

    /// Finishes the index work that keeps such a command of its namespace out, and moves `at` to its end.
    pub(super) fn finish_growth(
        &mut self,
        namespace: NamespaceId,
        is_change: bool,
        at: &mut Nanos,
    ) -> Result<(), KvError> {
        while self.keeps_out(namespace, is_change) {
            let begun = self.growth_clock.max(*at);
            self.growth_clock = begun;
            if !self.make_room_to_grow()? {
                break;
            }
            self.grow(namespace, begun)?;
        }
        let (growth, closed_until) = self.namespaces.living(namespace)?.closed;
        if growth.keeps_out(is_change) {
            *at = (*at).max(closed_until);
        }
        Ok(())
    }
}
