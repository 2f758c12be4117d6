//! The engine: commands on pairs, over indexes, a log and garbage collection. [`build`] puts it together from a design.

mod administration;
mod batches;
pub(crate) mod build;
mod glance;
mod growth;
mod lifetime;
mod removal;
mod report;
mod requests;
mod room;
mod salvage;

use self::batches::{Phase, Share};
use self::glance::Glances;
pub use self::growth::GrowthCounters;
use self::room::GROWTH_SUPERBLOCKS;
use self::room::{FutileCollection, LastChange};
use crate::commands::batch::EntryLocks;
use crate::commands::limits::Limits;
use crate::commands::{self, batch, blocks};
use crate::gc::Collector;
use crate::io::Io;
use crate::io::lack::Lack;
use crate::io::media::Media;
use crate::io::spent::{Spent, SpentOn};
use crate::layout::packing::RecordLayout;
use crate::namespace::{Namespace, Namespaces};
use kvssd_flash::timing::{Actor, Lane};
use kvssd_types::{Command, Key, KvError, NamespaceId, Nanos, Reply, RequestId};

/// The firmware of one drive.
pub struct Engine {
    media: Media,
    namespaces: Namespaces,
    collector: Collector,
    limits: Limits,
    /// The clock of the indexes' own work.
    growth_clock: Nanos,
    growth: GrowthCounters,
    /// Steps of such work in a row that took no time, since the last command or moment came: where nothing is modelled, none takes any.
    idle_steps: u32,
    /// Set while collection has nothing to gain.
    futile: Option<FutileCollection>,
    last_change: LastChange,
    locks: EntryLocks,
    /// This engine's share of a batch over several engines, while that batch is in progress.
    share: Option<Share>,
    /// Where the time of the last command went.
    spent: Spent,
    /// The DRAM that the other parts took when the rest was last shared among the indexes; 0 to share it again.
    dram_shared: u64,
    /// DRAM that is kept beside all of this ([`Engine::keep_beside`]).
    beside_bytes: u64,
    glances: Glances,
    /// What the last command lacked that was refused with [`KvError::CapacityExceeded`].
    lacks: Vec<Lack>,
    /// Commits so far.
    commits: u64,
    /// A checkpoint follows every so many commits in any case; 0 for none ([`Engine::checkpoint_every`]).
    commits_per_checkpoint: u64,
    /// Why the flash, or what keeps it, takes no writes any more. From then on every call is refused, since DRAM may be ahead
    /// of the flash.
    failure: Option<KvError>,
}

impl Engine {
    pub(crate) fn new(media: Media, namespaces: Namespaces, collector: Collector, limits: Limits) -> Self {
        let mut engine = Engine {
            media,
            namespaces,
            collector,
            limits,
            growth_clock: Nanos::ZERO,
            growth: GrowthCounters::default(),
            idle_steps: 0,
            futile: None,
            last_change: LastChange::default(),
            locks: EntryLocks::default(),
            share: None,
            spent: Spent::default(),
            dram_shared: 0,
            beside_bytes: 0,
            glances: Glances::default(),
            lacks: Vec::new(),
            commits: 0,
            commits_per_checkpoint: 0,
            failure: None,
        };
        engine.share_dram();
        engine
    }

    /// A copy of the engine in its present state, independent from here on. `None` if the backing cannot be copied.
    #[must_use]
    pub fn snapshot(&self) -> Option<Engine> {
        Some(Engine {
            media: self.media.snapshot()?,
            namespaces: self.namespaces.clone(),
            collector: self.collector.clone(),
            limits: self.limits,
            growth_clock: self.growth_clock,
            growth: self.growth,
            idle_steps: self.idle_steps,
            futile: self.futile,
            last_change: self.last_change,
            locks: self.locks.clone(),
            share: self.share.clone(),
            spent: self.spent,
            dram_shared: self.dram_shared,
            beside_bytes: self.beside_bytes,
            glances: Glances::default(),
            lacks: self.lacks.clone(),
            commits: self.commits,
            commits_per_checkpoint: self.commits_per_checkpoint,
            failure: self.failure.clone(),
        })
    }

    /// What a check looks at.
    pub(crate) fn parts(&mut self) -> (&mut Media, &Namespaces) {
        (&mut self.media, &self.namespaces)
    }

    /// Refuses whatever is asked if the flash has failed before, or in the middle of a batch over several engines.
    fn check_available(&self) -> Result<(), KvError> {
        match &self.failure {
            None if self.share.is_some() => {
                Err(KvError::InvalidCommand("in the middle of a batch over several drives"))
            }
            None => Ok(()),
            Some(failure) => Err(failure.clone()),
        }
    }

    /// Remembers that the flash has failed, if `result` says so. It takes a reference because replies are large.
    fn note_failure<T>(&mut self, result: &Result<T, KvError>) {
        if let Err(error) = result
            && error.is_fatal()
            && self.failure.is_none()
        {
            self.failure = Some(error.clone());
        }
    }

    /// Executes a command of the first namespace, as [`Engine::execute_in`].
    pub fn execute(&mut self, command: Command<'_>, at: Nanos) -> (Nanos, Result<Reply, KvError>) {
        self.execute_in(NamespaceId::FIRST, command, at)
    }

    /// Executes a command of a namespace whose data is in the controller at `at`. Returns when it is done, and the
    /// answer.
    #[expect(clippy::needless_pass_by_value, reason = "a command is given away, and may be tried twice within")]
    pub fn execute_in(
        &mut self,
        namespace: NamespaceId,
        command: Command<'_>,
        at: Nanos,
    ) -> (Nanos, Result<Reply, KvError>) {
        self.run(None, Phase::All, namespace, &command, at)
    }

    /// Executes a command. `request` identifies a change that the host may send again and that was not made yet. A command refused for lack
    /// of room is retried once after what was deleted or replaced takes no room any more, and all DRAM is given back.
    fn run(
        &mut self,
        request: Option<RequestId>,
        phase: Phase,
        namespace: NamespaceId,
        command: &Command<'_>,
        at: Nanos,
    ) -> (Nanos, Result<Reply, KvError>) {
        self.spent = Spent::default();
        let (refused, reply) = self.attempt(request, phase, namespace, command, at);
        if reply != Err(KvError::CapacityExceeded) || !self.may_find_room(namespace, command) {
            return (refused, reply);
        }
        let (done, found) = self.find_room(refused);
        self.spent.add(SpentOn::Closed, done - refused);
        match found {
            Ok(()) => self.attempt(request, phase, namespace, command, done),
            Err(error) => (done, Err(error)),
        }
    }

    fn attempt(
        &mut self,
        request: Option<RequestId>,
        phase: Phase,
        namespace: NamespaceId,
        command: &Command<'_>,
        at: Nanos,
    ) -> (Nanos, Result<Reply, KvError>) {
        let mut at = at;
        if let Err(error) = self.check_available() {
            return (at, Err(error));
        }
        self.idle_steps = 0;
        let before = std::mem::take(&mut self.lacks);
        let ready = self.make_ready(namespace, command, &mut at);
        let was_growing = self.growing().is_some();
        let Engine { media, namespaces, limits, locks, share, .. } = self;
        let mut io = Io::new(media, at, false).of(namespace).beside(namespaces.taken_bytes());
        io.request = request;
        io.cpu(io.costs().command_ns);
        let mut reply = ready.and_then(|()| match *command {
            Command::Batch { changes } => {
                let reply = match phase {
                    Phase::All => batch::execute(&mut io, namespaces, limits, changes),
                    Phase::First => batch::prepare(&mut io, namespaces, limits, changes).map(|prepared| {
                        *share = Some(Share::Prepared(prepared));
                        Reply::Batched
                    }),
                };
                locks.lock(changes, io.settle());
                reply
            }
            Command::Flush => write_gathered(&mut io, namespaces).and_then(|()| io.flush()).map(|drained| {
                io.wait_until(drained.max(io.media.controller.behind.done_at()), SpentOn::Buffer);
                Reply::Flushed
            }),
            _ => {
                let limits = Limits { taken_bytes: namespaces.taken_beside(namespace), ..*limits };
                perform(&mut io, namespaces.living(namespace)?, &limits, command)
            }
        });
        let ((done, spent), settled, lacks) = (io.answered(), io.settle(), std::mem::take(&mut io.lacks));
        self.spent += spent;
        if !was_growing && self.growing().is_some() {
            self.growth_clock = self.growth_clock.max(settled);
        }
        match reply {
            Err(KvError::CapacityExceeded) => self.note_lacks(lacks, namespace),
            _ => self.lacks = before,
        }
        self.note_failure(&reply);
        // Behind a failure DRAM may be ahead of the flash: nothing of it may be written.
        if self.failure.is_none()
            && let Err(error) = self.end_command(settled)
        {
            reply = Err(error);
            self.note_failure(&reply);
        }
        (done, reply)
    }

    /// Takes a command that only carries a part of the next one. Returns when it is done, which is when the next one
    /// arrives.
    pub fn take_part(&mut self, at: Nanos) -> Nanos {
        let mut io = Io::new(&mut self.media, at, false);
        io.cpu(io.costs().command_ns);
        let (done, spent) = io.answered();
        self.spent = spent;
        done
    }

    /// Waits for all that must come before a command: growth, locks of batches, room. Moves `at` behind it.
    fn make_ready(&mut self, namespace: NamespaceId, command: &Command<'_>, at: &mut Nanos) -> Result<(), KvError> {
        let arrived = *at;
        let opened = self.wait_until_open(namespace, command, at);
        let open = *at;
        let ready = opened.and_then(|()| self.wait_for_room(command, at));
        self.spent.add(SpentOn::Closed, open - arrived);
        self.spent.add(SpentOn::Room, *at - open);
        self.recording().part(SpentOn::Closed.name(), arrived, open);
        self.recording().part(SpentOn::Room.name(), open, *at);
        ready
    }

    fn wait_until_open(
        &mut self,
        namespace: NamespaceId,
        command: &Command<'_>,
        at: &mut Nanos,
    ) -> Result<(), KvError> {
        match command {
            // A batch concerns the namespaces of its changes, not the one that it was sent to.
            Command::Batch { changes } => {
                batch::check(&self.media.space.geometry, &self.limits, changes)?;
                for change in *changes {
                    self.check_command(change.namespace, command)?;
                    self.touch(change.namespace, *at)?;
                    self.finish_growth(change.namespace, true, at)?;
                    *at = (*at).max(self.locks.until(change.namespace, change.key));
                }
            }
            _ => {
                self.check_command(namespace, command)?;
                self.touch(namespace, *at)?;
                self.finish_growth(namespace, is_change(command), at)?;
                *at = command.key().map_or(*at, |key| (*at).max(self.locks.until(namespace, key)));
                if let Command::List { .. } = command {
                    *at = self.compare_in(namespace, *at)?;
                }
            }
        }
        Ok(())
    }

    /// Marks a namespace as used. If it was idle, DRAM is shared anew, so that its index gets some.
    fn touch(&mut self, namespace: NamespaceId, at: Nanos) -> Result<(), KvError> {
        if self.namespaces.living(namespace)?.usage.touch(at) {
            self.dram_shared = 0;
            self.share_dram();
        }
        Ok(())
    }

    /// Refuses a command that the namespace cannot execute.
    fn check_command(&mut self, namespace: NamespaceId, command: &Command<'_>) -> Result<(), KvError> {
        let namespace = self.namespaces.living(namespace)?;
        let takes_blocks = self.media.space.packing.layout == RecordLayout::Blocks;
        if let Some(why) = namespace.index.refuses_changes().filter(|_| is_change(command)) {
            return Err(KvError::Unrecovered(why));
        }
        match command {
            Command::Flush => Ok(()),
            Command::Write { handle, .. } if takes_blocks && !self.media.log.has_handle(*handle) => {
                Err(KvError::InvalidCommand("it has no such placement handle"))
            }
            Command::Read { .. } | Command::Write { .. } | Command::Deallocate { .. } if takes_blocks => Ok(()),
            Command::Read { .. } | Command::Write { .. } | Command::Deallocate { .. } => {
                Err(KvError::InvalidCommand("it takes keys, and no blocks"))
            }
            _ if takes_blocks => Err(KvError::InvalidCommand("it takes blocks, and no keys")),
            Command::CreateIterator { .. } if !namespace.is_ordered => {
                Err(KvError::InvalidCommand("it keeps keys in no order"))
            }
            _ => Ok(()),
        }
    }

    /// Runs background work until `now`. No later command may arrive before `now`.
    ///
    /// # Errors
    /// What the flash operations answer.
    pub fn advance(&mut self, now: Nanos) -> Result<(), KvError> {
        self.check_available()?;
        self.idle_steps = 0;
        let worked = self.work_until(now);
        self.note_failure(&worked);
        worked
    }

    fn work_until(&mut self, now: Nanos) -> Result<(), KvError> {
        loop {
            let may_collect = self.collector.clock < now && self.collector.is_wanted(&self.media);
            // A checkpoint waits for the end of a victim.
            let collects = may_collect && (self.collector.is_busy() || !self.collection_rests());
            let grows = self.growth_clock < now && self.has_room_to_grow();
            let growing = if grows { self.growing() } else { None };
            let owing = if grows { self.owing() } else { None };
            let removes = self.growth_clock < now && self.has_room_to_remove();
            let dying = if removes { self.namespaces.dying() } else { None };
            let is_first = !collects || self.growth_clock <= self.collector.clock;
            if let Some(namespace) = growing.filter(|_| is_first) {
                self.media.advance(self.growth_clock);
                self.grow(namespace, self.growth_clock)?;
            } else if let Some(namespace) = owing.filter(|_| is_first) {
                self.media.advance(self.growth_clock);
                self.shrink(namespace)?;
            } else if let Some(namespace) = dying.filter(|_| is_first) {
                self.media.advance(self.growth_clock);
                self.remove_some(namespace)?;
            } else if collects {
                // The collector reserves time by its own clock, which is behind `now`.
                self.media.advance(self.collector.clock);
                if !self.collect()? {
                    break;
                }
            } else {
                break;
            }
        }
        self.collector.clock = self.collector.clock.max(now);
        self.growth_clock = self.growth_clock.max(now);
        self.media.advance(now);
        self.locks.advance(now);
        Ok(())
    }

    /// Commands on these keys of the first namespace will come soon. A hint to the memory of the machine that simulates
    /// the drive: it changes nothing and takes no virtual time.
    pub fn expect(&mut self, keys: &[Key<'_>]) {
        if let Some(first) = self.namespaces.get(NamespaceId::FIRST) {
            first.index.expect(&Io::new(&mut self.media, Nanos::ZERO, false), keys);
        }
    }

    /// Does one step of garbage collection. Returns false if there is nothing to gain.
    fn collect(&mut self) -> Result<bool, KvError> {
        self.grow_in_reserve()?;
        self.media.ahead.forget();
        let begun = self.collector.clock;
        let caller = self.recording().work_for(Actor::Collector);
        let step = self.collector.step(&mut self.media, &mut self.namespaces);
        let until = self.collector.clock;
        self.recording().task(Lane::Collector, begun, until);
        self.recording().work_for(caller);
        let gained = step.map_err(KvError::in_a_change)?;
        self.commit_journal(self.collector.clock)?;
        self.share_dram();
        Ok(gained)
    }

    /// Shares the DRAM that the other parts leave among the indexes. One page is kept back, since the other parts may grow
    /// until the next time.
    fn share_dram(&mut self) {
        let page_bytes = u64::from(self.media.space.packing.page_bytes());
        let taken = self.media.dram_bytes() + self.namespaces.prefetch_bytes() + self.beside_bytes + page_bytes;
        if taken != self.dram_shared {
            let left = match self.media.controller.emulator.section_dram_bytes {
                0 => self.limits.dram_bytes.saturating_sub(taken),
                alone => alone,
            };
            // While an index still has to give DRAM back, it is shared again.
            let is_settled = self.namespaces.share_dram(left, self.media.controller.now);
            self.dram_shared = if is_settled { taken } else { 0 };
        }
    }
}

/// Executes a command on a namespace's pairs, or on blocks.
fn perform(
    io: &mut Io<'_>,
    namespace: &mut Namespace,
    limits: &Limits,
    command: &Command<'_>,
) -> Result<Reply, KvError> {
    let Namespace { index, iterators, .. } = &mut *namespace;
    let index = index.as_mut();
    match *command {
        Command::Store { key, ref value, condition } => commands::store(io, namespace, limits, key, value, condition),
        Command::Retrieve { key, offset_bytes, length_bytes } => {
            commands::retrieve(io, index, key, offset_bytes, length_bytes)
        }
        Command::Delete { key } => commands::delete(io, namespace, key),
        Command::Exist { key } => commands::exist(io, index, key),
        Command::List { from, keys_max } => commands::list(io, index, from, keys_max),
        Command::CreateIterator { ref options } => iterators.create(io, index, options),
        Command::Seek { iterator, key, pairs_max } => iterators.seek(io, index, iterator, key, pairs_max),
        Command::Next { iterator, pairs_max } => iterators.next(io, index, iterator, pairs_max),
        Command::DestroyIterator { iterator } => iterators.destroy(io, index, iterator),
        Command::Read { offset_bytes, length_bytes } => blocks::read(io, index, offset_bytes, length_bytes),
        Command::Write { offset_bytes, ref value, handle } => {
            io.media.ahead.forget();
            io.handle = handle;
            blocks::write(io, namespace, offset_bytes, value)
        }
        Command::Deallocate { offset_bytes, length_bytes } => {
            io.media.ahead.forget();
            blocks::deallocate(io, namespace, offset_bytes, length_bytes)
        }
        Command::Batch { .. } | Command::Flush => unreachable!("they are not of one namespace"),
    }
}

/// Writes the blocks of which a part was gathered, if the drive is one of blocks.
fn write_gathered(io: &mut Io<'_>, namespaces: &mut Namespaces) -> Result<(), KvError> {
    if io.media.gathered.bytes() == 0 {
        return Ok(());
    }
    blocks::write_all(io, namespaces.living(NamespaceId::FIRST)?)
}

fn is_change(command: &Command<'_>) -> bool {
    matches!(
        command,
        Command::Store { .. }
            | Command::Delete { .. }
            | Command::Batch { .. }
            | Command::Write { .. }
            | Command::Deallocate { .. }
    )
}
