//! Replay: the requests of a trace on a new drive, each answer checked against what the requests before it make it.
//!
//! ```text
//!   TraceReader -> Feed (a few requests ahead) -> Player ---- commands ----> Device
//!                                                   |    <--- answers -----
//!                     Hosts: closed loop,           |
//!                     or the trace's own times      +-> Model: what must be there now
//!                                                   +-> TraceReport: what came of the requests
//! ```
//!
//! # What requests become
//!
//! | request | commands | when the key is not there |
//! |---|---|---|
//! | get, gets | retrieve | a miss, which is counted and not filled: the trace has the store that followed, too |
//! | a read without a word about stores (oracleGeneral, IBM's GET, CSV without `op`) | retrieve, on a miss store | filled |
//! | a block of an LLM's request | exist, then retrieve or store; behind one that is missing what is there is left alone | filled |
//! | set | store | |
//! | add / replace, cas | store if absent / if it is there | (refused as it must be: counted) |
//! | append, prepend | retrieve, store all of the longer value: drives do not append | nothing is stored, counted |
//! | incr, decr | retrieve, store a value of the same size | nothing is stored, counted |
//! | delete, exist | the same | counted |
//!
//! The second command comes when the first one is answered, as a host would send it; others may come in between. Where
//! no host keeps a cache, times to live are counted and ignored: a drive keeps what it was given. Keys are those of [`crate::trace`].
//!
//! # Values
//!
//! Bytes that a seed describes, of the trace's size; what is above the drive's largest value is cut off, and counted. A host asks for as
//! many bytes as the pair has, or for the part that the trace names. A store that finds the drive full is counted, changes nothing, and
//! the replay goes on.
//!
//! # Blocks
//!
//! On a block drive ([`PairDrive`](pair_drive::PairDrive)) the host has a map of its own, writes by the placement handles that the drive has, and
//! tells it what is dead.
//!
//! # What is checked
//!
//! Every answer: that a retrieve gives just the bytes that were stored last, that a key is there or not as it must be, that conditions
//! hold. The model keeps 16 bytes for each pair that is on the drive (the hash of its key, the number of its store, its size) in a hash
//! map, which makes 20 to 39 bytes a pair. Keys are told apart by 64 bits: two of a hundred million have the same hash once in
//! four thousand replays, which would be reported as a wrong answer.
//!
//! # Time
//!
//! In a closed loop, each of threads x queue depth slots takes the next request when its last one is done. At the trace's pace, requests
//! arrive when the trace says, counted from its first. Most traces have clocks of a second; those of one tick are spread over it
//! as if there were as many as in the tick before (those of the first arrive together). One that goes back in time arrives with the
//! one before it. At most 65 536 requests wait for their second command; further arrivals wait until one goes on.
//!
//! A request has one command under way. The deletes of a cache, a store that finds the drive full and the one that is tried again arrive at
//! the drive with their request, so that no other waits for one that has not begun, and each is answered later by the time that those before
//! it took. A drive's own cache reckons so, too, when it tries again. This is exact as long as the drive is not busy.

mod feed;
mod handles;
mod host_cache;
mod model;
mod pair_drive;
mod pairs_on_blocks;
mod player;
mod prefixes;
mod runs;
mod summary;

pub use feed::Rounds;
pub use summary::TraceSummary;

use crate::baseline::Baseline;
use crate::error::SimError;
use crate::host::{Hosts, Pace, Turn};
use crate::report::{LifeReport, Run, RunReport, Subject};
use crate::setup::SECONDS_MAX;
use crate::trace::{InputBytes, TraceName, TraceReader};
use feed::Feed;
use kvssd_cache::CachePlan;
use kvssd_flash::{BLOCK_ERASES_MAX, Profile};
use kvssd_ftl::Design;
use kvssd_measure::Observer;
use kvssd_types::Nanos;
use player::Player;
use std::time::Instant;

/// How often the observer is told, in requests.
const REPORT_EVERY: u64 = 1 << 12;

/// Requests that wait for their second command, at most.
const WAITING_MAX: usize = 1 << 16;

/// What a trace is replayed on, and how.
#[derive(Clone, Debug)]
pub struct ReplaySetup {
    /// The firmware.
    pub design: Design,
    /// The hardware, scaled.
    pub profile: Profile,
    /// Host threads.
    pub threads: u32,
    /// Commands of a thread that are under way at once.
    pub queue_depth: u32,
    /// [`Pace::Closed`] or [`Pace::Trace`].
    pub pace: Pace,
    /// The trace's times go by so many times as fast.
    pub time_scale: f64,
    /// Who comes in and who leaves, if the drive holds a cache. Hosts keep it, unless `is_drives_cache`.
    pub cache: Option<CachePlan>,
    /// Whether the drive keeps that cache by itself, as an attribute of its namespace.
    pub is_drives_cache: bool,
    /// The largest value in bytes, where that is more than a record holds: such values are kept in segments, as on a drive in a file.
    pub value_bytes_max: Option<u32>,
    /// Requests behind which the figures begin.
    pub warm_up: u64,
    /// How often a block can be erased.
    pub block_erases_max: u32,
    /// Of the values.
    pub seed: u64,
}

/// A trace that is about to be replayed.
pub struct Trace<'a> {
    /// Its format.
    pub name: TraceName,
    /// Its requests.
    pub reader: TraceReader<'a>,
    /// The same once more, as often as it is to be repeated: each round begins a tick behind the one before.
    pub further: Rounds<'a>,
    /// How far its file was read.
    pub input: InputBytes,
    /// How large its file is, in bytes, as often as it is read; 0 when nobody knows.
    pub input_bytes: u64,
}

impl<'a> Trace<'a> {
    /// One that is replayed once, and of whose file nothing is known.
    #[must_use]
    pub fn once(name: TraceName, reader: TraceReader<'a>) -> Self {
        Trace { name, reader, further: Box::new(std::iter::empty()), input: InputBytes::default(), input_bytes: 0 }
    }
}

impl ReplaySetup {
    /// One command at a time on a drive that is no cache, each as soon as the one before is done.
    #[must_use]
    pub fn new(design: Design, profile: Profile, seed: u64) -> Self {
        ReplaySetup {
            design,
            profile,
            threads: 1,
            queue_depth: 1,
            pace: Pace::Closed,
            time_scale: 1.0,
            cache: None,
            is_drives_cache: false,
            value_bytes_max: None,
            warm_up: 0,
            block_erases_max: BLOCK_ERASES_MAX,
            seed,
        }
    }

    /// Replays a trace on a new drive.
    ///
    /// # Errors
    /// When the design does not fit the hardware, the trace cannot be read or has no times that it could be paced by, the drive fails a
    /// command for another reason than that it is full, or the observer interrupts.
    pub fn replay(&self, trace: Trace<'_>, observer: &mut dyn Observer) -> Result<RunReport, SimError> {
        if self.threads == 0 || self.queue_depth == 0 || self.threads.saturating_mul(self.queue_depth) > 1 << 16 {
            let why = "--threads and --queue-depth must be above 0, and at most 65536 commands under way";
            return Err(SimError::Setup(why.to_owned()));
        }
        let Trace { name, reader, further, input, input_bytes } = trace;
        observer.begin(&format!("{} {name}, bytes", self.design.name), input_bytes);
        if !(1e-6..=1e6).contains(&self.time_scale) {
            return Err(SimError::Setup("--time-scale is from 1e-6 to 1e6".to_owned()));
        }
        if self.time_scale != 1.0 && self.pace != Pace::Trace {
            return Err(SimError::Setup("--time-scale is for --pace trace: a closed loop has no times".to_owned()));
        }
        let mut player = Player::new(self)?;
        let mut baseline = Baseline::of(player.device());
        let started = Instant::now();
        let mut feed = Feed::new(reader, further);
        let took_ns = self.play(&mut player, &mut feed, &input, &mut baseline, observer)?;
        observer.progress(input.read());
        let (device, mut measured, mut counts) = player.end();
        measured.wall = started.elapsed();
        counts.format = name.name();
        counts.pace = if self.pace == Pace::Trace { "trace" } else { "closed" };
        [counts.lines, counts.bad_lines] = feed.lines();
        let subject = Subject {
            design: self.design.name,
            profile: &self.profile,
            seed: self.seed,
            workload: name.name(),
            distribution: "trace",
            records: 0,
        };
        let mut report = Run::new(&subject, &device, &baseline, &measured).report;
        let geometry = &self.profile.geometry;
        let programmed_bytes = report.flash.programs.values().sum::<u64>() * u64::from(geometry.page_bytes);
        let took_ns = took_ns.unwrap_or(report.simulated_ns);
        counts.life = LifeReport::of(
            measured.stored_bytes,
            programmed_bytes,
            geometry.raw_bytes(),
            took_ns,
            self.block_erases_max,
        );
        report.trace = Some(counts);
        Ok(report)
    }

    /// Gives how long what was measured took by the trace's clock, if it has one.
    fn play(
        &self,
        player: &mut Player,
        feed: &mut Feed<'_>,
        input: &InputBytes,
        baseline: &mut Baseline,
        observer: &mut dyn Observer,
    ) -> Result<Option<u64>, SimError> {
        let mut hosts = Hosts::new(self.pace, self.threads, self.queue_depth, Nanos::ZERO, self.seed);
        let mut clock = TraceClock::new(self.time_scale);
        let mut span = TraceSpan::default();
        if self.pace == Pace::Trace && self.is_ready(player, feed)? {
            hosts.arrive_at(clock.arrival(feed.peek().at_ns, feed.tick_ns())?);
        }
        let mut begun = 0u64;
        while hosts.next_at().is_some() {
            let (at, turn) = hosts.pop();
            match turn {
                Turn::WriteBack { thread, record } => {
                    let done = player.go_on(record, at)?;
                    hosts.done(done, thread);
                }
                Turn::GoOn { .. } => unreachable!("no request of a trace is a scan"),
                Turn::Next { .. } if !self.is_ready(player, feed)? => {}
                Turn::Next { thread } => {
                    if begun == self.warm_up && begun > 0 {
                        player.begin_measuring();
                        *baseline = Baseline::of(player.device());
                        span = TraceSpan::default();
                    }
                    let (request, key) = feed.next();
                    span.add(request.at_ns);
                    let (done, second) = player.begin(request, key, at)?;
                    match second {
                        Some(slot) => hosts.write_back(done, thread, slot),
                        None => hosts.done(done, thread),
                    }
                    if self.pace == Pace::Trace && self.is_ready(player, feed)? {
                        let due = clock.arrival(feed.peek().at_ns, feed.tick_ns())?.max(at);
                        let is_crowded = player.waiting() >= WAITING_MAX;
                        hosts.arrive_at(hosts.next_at().filter(|_| is_crowded).map_or(due, |first| due.max(first)));
                    }
                    begun += 1;
                    if begun.is_multiple_of(REPORT_EVERY) {
                        observer.progress(input.read());
                        if observer.is_interrupted() {
                            return Err(SimError::Interrupted);
                        }
                    }
                }
            }
        }
        if begun == 0 {
            return Err(feed.empty().into());
        }
        if begun <= self.warm_up && self.warm_up > 0 {
            return Err(SimError::Setup(format!("--warm-up {}: the trace has {begun} requests", self.warm_up)));
        }
        Ok(span.took_ns())
    }

    /// Whether there is another request. New ones are announced to the drive's memory.
    fn is_ready(&self, player: &mut Player, feed: &mut Feed<'_>) -> Result<bool, SimError> {
        if feed.is_empty() {
            feed.fill()?;
            player.expect(feed.requests());
        }
        Ok(!feed.is_empty())
    }
}

/// Turns the times of a trace into arrivals: its first is the beginning.
///
/// ```text
///   times of the trace    0 0 0 0          1 1 1 1 1          3
///   arrivals              0 0 0 0          1 1.25 1.5 1.75 2  3        the tick before had 4, so a quarter each
/// ```
#[derive(Debug)]
struct TraceClock {
    scale: f64,
    first_ns: Option<u64>,
    /// The tick that it is, from the first one on.
    tick_ns: u64,
    /// Requests of this tick so far, and of the one before.
    count: u64,
    count_before: u64,
    last: Nanos,
}

impl TraceClock {
    /// One that goes so many times as fast as the trace's.
    fn new(scale: f64) -> Self {
        TraceClock { scale, first_ns: None, tick_ns: 0, count: 0, count_before: 0, last: Nanos::ZERO }
    }

    fn arrival(&mut self, at_ns: Option<u64>, length_ns: u64) -> Result<Nanos, SimError> {
        let Some(first_ns) = self.first_ns.or(at_ns) else {
            let why = "--pace trace needs a trace with times, and the first request of this one has none";
            return Err(SimError::Setup(why.to_owned()));
        };
        self.first_ns = Some(first_ns);
        let tick_ns = at_ns.unwrap_or(0).saturating_sub(first_ns);
        let mut within_ns = 0;
        if tick_ns > self.tick_ns {
            self.count_before = std::mem::take(&mut self.count);
            self.tick_ns = tick_ns;
        } else if self.count_before > 0 {
            let share = self.count.min(self.count_before) as f64 / self.count_before as f64;
            within_ns = (length_ns as f64 * share) as u64;
        }
        self.count += 1;
        let due_ns = self.tick_ns.saturating_add(within_ns);
        let due_s = due_ns as f64 / 1e9;
        if due_s / self.scale > SECONDS_MAX {
            return Err(SimError::Setup(format!(
                "--pace trace: a request comes {due_s:.0} s after the first, which at --time-scale {} are {:.0} s, and virtual \
                 time is {SECONDS_MAX:.0} s (thirty years) at the most: ask for a larger --time-scale or a smaller --repeat",
                self.scale,
                due_s / self.scale
            )));
        }
        let scaled_ns = if self.scale == 1.0 { due_ns } else { (due_ns as f64 / self.scale) as u64 };
        self.last = self.last.max(Nanos(scaled_ns));
        Ok(self.last)
    }
}

/// The time from the first request with one to the last.
#[derive(Debug, Default)]
struct TraceSpan(Option<(u64, u64)>);

impl TraceSpan {
    fn add(&mut self, at_ns: Option<u64>) {
        if let Some(at_ns) = at_ns {
            let (first, last) = self.0.unwrap_or((at_ns, at_ns));
            self.0 = Some((first, last.max(at_ns)));
        }
    }

    fn took_ns(&self) -> Option<u64> {
        self.0.map(|(first, last)| last - first).filter(|took_ns| *took_ns > 0)
    }
}

#[cfg(test)]
mod tests;
