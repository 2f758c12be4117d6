//! Whose turn it is: all actors, the time, and the dice.
//!
//! ```text
//!   who is next   1. one that was killed, to unwind before anybody sees the world without it
//!                 2. a random one of those that can go on
//!                 3. nobody can: the time of the next deadline comes
//!                 4. there is none: a deadlock
//! ```
//!
//! What it does not do: switch stacks.

use crate::actor::{Actor, ActorId, Life, Status};
use crate::coroutine::Job;
use crate::network::Network;
use crate::options::Options;
use crate::process::Process;
use crate::report::{Failure, Waiting};

use kvssd_runtime::machine::{Key, Wake};
use kvssd_types::{Random, mix64};
use std::collections::BTreeSet;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What a look at the clock takes, and a place where others may have a turn.
const LOOK_NS: u64 = 100;
/// What it takes to give away the turn where nobody wants it.
const IDLE_YIELD_NS: u64 = 1000;
/// Of so many times that the turn is given away, one goes to another program, which keeps the core for so long.
const OTHERS_ONE_IN: u64 = 200;
const OTHERS_NS: u64 = 300_000;

/// The state of a world.
pub(crate) struct Turns {
    pub(crate) now_ns: u64,
    pub(crate) random: Random,
    pub(crate) network: Network,
    pub(crate) failure: Option<Failure>,
    pub(crate) current: ActorId,
    pub(crate) actors: Vec<Actor>,
    /// Whom the one that had the turn has given it to.
    pub(crate) next: Option<ActorId>,
    /// Actors that are suspended in the middle of unwinding. One that never came to its end in a world before counts, too.
    pub(crate) suspended_unwinding: u32,
    pub(crate) turns: u64,
    pub(crate) hand_overs: u64,
    runnable: Vec<ActorId>,
    killed: BTreeSet<ActorId>,
    waiting: Vec<ActorId>,
    deadlines: BTreeSet<(u64, ActorId)>,
    trace: u64,
    options: Options,
}

impl Turns {
    pub(crate) fn new(options: Options) -> Turns {
        Turns {
            now_ns: 0,
            random: Random::new(options.seed),
            network: Network::new(options.network),
            failure: None,
            current: ActorId::MAIN,
            actors: Vec::new(),
            next: None,
            suspended_unwinding: u32::from(std::thread::panicking()),
            turns: 0,
            hand_overs: 0,
            runnable: Vec::new(),
            killed: BTreeSet::new(),
            waiting: Vec::new(),
            deadlines: BTreeSet::new(),
            trace: options.seed,
            options,
        }
    }

    /// Adds what has happened to the trace.
    pub(crate) fn trace(&mut self, what: u64) {
        self.trace = mix64(self.trace ^ what).wrapping_add(what);
    }

    pub(crate) fn trace_bytes(&mut self, bytes: &[u8]) {
        self.trace = xxh3_64_with_seed(bytes, self.trace);
    }

    pub(crate) fn traced(&self) -> u64 {
        self.trace
    }

    /// The moment, which is a little later with each look.
    pub(crate) fn look(&mut self) -> u64 {
        self.now_ns += LOOK_NS;
        self.now_ns
    }

    pub(crate) fn is_one_in(&mut self, count: u32) -> bool {
        count > 0 && self.random.below(count.into()) == 0
    }

    /// Whether who has the turn loses it at a place where that may be.
    pub(crate) fn loses_turn(&mut self) -> bool {
        let one_in = self.options.loses_turn_one_in;
        !self.runnable.is_empty() && self.is_one_in(one_in)
    }

    pub(crate) fn current(&mut self) -> &mut Actor {
        &mut self.actors[self.current.index()]
    }

    pub(crate) fn spawn(&mut self, process: Process, name: &str, job: Job) -> ActorId {
        let id = ActorId(u32::try_from(self.actors.len()).expect("a world has fewer than 2^32 actors"));
        self.actors.push(Actor::new(process, name, job));
        self.runnable.push(id);
        id
    }

    /// Puts who has the turn behind the others.
    pub(crate) fn step_back(&mut self) {
        if self.runnable.is_empty() {
            self.now_ns += IDLE_YIELD_NS;
        }
        if self.random.below(OTHERS_ONE_IN) == 0 {
            self.now_ns += OTHERS_NS;
        }
        self.step_aside();
    }

    /// Puts who has the turn among those that may have it.
    pub(crate) fn step_aside(&mut self) {
        self.now_ns += LOOK_NS;
        self.let_go_on(self.current);
    }

    /// Has who has the turn wait.
    pub(crate) fn wait(&mut self, key: Key, until_ns: Option<u64>) {
        let id = self.current;
        let actor = self.current();
        actor.status = Status::Waiting { key, until_ns };
        actor.was_woken = false;
        self.waiting.push(id);
        self.deadlines.extend(until_ns.map(|until_ns| (until_ns, id)));
    }

    /// Wakes one of those that wait for that key, or all.
    pub(crate) fn wake(&mut self, key: Key, wake: Wake) {
        let waits = |turns: &Turns, id: ActorId| matches!(turns.actors[id.index()].status, Status::Waiting { key: other, .. } if other == key);
        let mut woken: Vec<ActorId> = Vec::new();
        woken.extend(self.waiting.iter().filter(|id| waits(self, **id)));
        if wake == Wake::One && woken.len() > 1 {
            let one = self.random.below(woken.len() as u64) as usize;
            woken = vec![woken[one]];
        }
        for id in woken {
            self.rouse(id);
            self.actors[id.index()].was_woken = true;
        }
    }

    /// Ends the waiting of an actor.
    pub(crate) fn rouse(&mut self, id: ActorId) {
        if let Status::Waiting { until_ns, .. } = self.actors[id.index()].status {
            self.waiting.retain(|other| *other != id);
            if let Some(until_ns) = until_ns {
                self.deadlines.remove(&(until_ns, id));
            }
            self.let_go_on(id);
        }
    }

    fn let_go_on(&mut self, id: ActorId) {
        let actor = &mut self.actors[id.index()];
        actor.status = Status::Runnable;
        if actor.life == Life::Alive {
            self.runnable.push(id);
        } else {
            self.killed.insert(id);
        }
    }

    /// Who has the next turn; none when all have ended, or nobody can go on even after all were killed.
    pub(crate) fn pick(&mut self) -> Option<ActorId> {
        loop {
            if let Some(id) = self.killed.pop_first() {
                return Some(self.chosen(id));
            }
            while let Some(&(until_ns, id)) = self.deadlines.first()
                && until_ns <= self.now_ns
            {
                self.rouse(id);
            }
            if !self.runnable.is_empty() {
                if self.turns >= self.options.turns_max && self.failure.is_none() {
                    self.fail(Failure::Endless { turns: self.turns });
                    continue;
                }
                let index = self.random.below(self.runnable.len() as u64) as usize;
                let id = self.runnable.swap_remove(index);
                return Some(self.chosen(id));
            }
            if let Some(&(until_ns, _)) = self.deadlines.first() {
                self.now_ns = until_ns;
            } else if self.failure.is_none() && !self.waiting.is_empty() {
                let waiting = self.report();
                self.fail(Failure::Deadlock { waiting });
            } else {
                return None;
            }
        }
    }

    fn chosen(&mut self, id: ActorId) -> ActorId {
        self.turns += 1;
        self.trace(self.now_ns << 16 ^ u64::from(id.0));
        id
    }

    fn report(&self) -> Vec<Waiting> {
        let waiting = self.actors.iter().filter_map(|actor| match actor.status {
            Status::Waiting { key, .. } => {
                Some(Waiting { process: actor.process, actor: actor.name.clone(), what: key.kind })
            }
            _ => None,
        });
        waiting.collect()
    }

    /// Kills all for a reason; the first one is told.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
        self.kill(|_| true);
    }

    /// Has the actors of some processes unwind as soon as they have the turn, which they have before all others.
    pub(crate) fn kill(&mut self, is_killed: impl Fn(Process) -> bool) {
        for index in 0..self.actors.len() {
            let id = ActorId(index as u32);
            let actor = &mut self.actors[index];
            if actor.status == Status::Ended || actor.life != Life::Alive || !is_killed(actor.process) {
                continue;
            }
            actor.life = Life::Killed;
            match actor.status {
                Status::Waiting { .. } => self.rouse(id),
                Status::Runnable if id != self.current => {
                    self.runnable.retain(|other| *other != id);
                    self.killed.insert(id);
                }
                // It has the turn, and unwinds itself.
                Status::Runnable | Status::Ended => {}
            }
        }
    }

    /// Whether somebody of that process is there.
    pub(crate) fn is_alive(&self, process: Process) -> bool {
        self.actors.iter().any(|actor| actor.process == process && actor.status != Status::Ended)
    }
}
