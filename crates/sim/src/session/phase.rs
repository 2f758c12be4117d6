//! A phase: the hosts work until a limit is reached.

use super::{DELETED, Session};
use crate::error::SimError;
use crate::host::{Hosts, Turn};
use crate::measured::Measured;
use crate::rounds::RoundLog;
use crate::series::Series;
use crate::workload::Operation;
use kvssd_measure::Observer;
use kvssd_types::{KEY_BYTES_MAX, Key, Nanos, Random, mix64};
use std::collections::VecDeque;
use std::time::Instant;

/// How often the observer is told, in operations.
const REPORT_EVERY: u64 = 1 << 12;

/// How many operations are drawn at a time.
const LOOK_AHEAD: u64 = 32;

/// When a phase ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// After so many operations.
    Operations(u64),
    /// After so much virtual time.
    Time(Nanos),
}

/// Which thread makes which operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sequences {
    /// There is one sequence, and whichever thread is ready takes the next one.
    Shared,
    /// Each thread makes the same as all the others ([`Emulator::one_sequence`](kvssd_flash::Emulator::one_sequence)).
    Same,
}

/// What is looked at beside the whole of a phase.
#[derive(Debug, Default)]
pub(super) struct Watch<'a> {
    /// Its rounds. The limit is that of the first.
    pub(super) rounds: Option<&'a mut RoundLog>,
    /// Its course over time.
    pub(super) series: Option<Box<Series>>,
}

/// The operations that are drawn ahead.
struct Draws {
    random: Random,
    /// Of each thread, where all make the same.
    randoms: Vec<Random>,
    upcoming: VecDeque<Operation>,
}

impl Draws {
    fn new(sequences: Sequences, threads: u32, seed: u64) -> Self {
        let own = if sequences == Sequences::Same { threads as usize } else { 0 };
        Draws { random: Random::new(seed), randoms: vec![Random::new(seed); own], upcoming: VecDeque::new() }
    }

    /// The next operation of a thread, of `left` that are left.
    fn next(
        &mut self,
        session: &mut Session,
        thread: u32,
        left: u64,
        next: &mut impl FnMut(&mut Random) -> Operation,
    ) -> Operation {
        if let Some(random) = self.randoms.get_mut(thread as usize) {
            self.upcoming.push_back(next(random));
        }
        if self.upcoming.is_empty() {
            self.upcoming.extend((0..left.min(LOOK_AHEAD)).map(|_| next(&mut self.random)));
            session.expect(self.upcoming.make_contiguous());
        }
        self.upcoming.pop_front().expect("operations were drawn just now")
    }
}

impl Session {
    /// Lets the hosts work until the limit is reached.
    pub(super) fn phase(
        &mut self,
        name: &str,
        limit: Limit,
        observer: &mut dyn Observer,
        next: impl FnMut(&mut Random) -> Operation,
    ) -> Result<Measured, SimError> {
        self.phase_of(Sequences::Shared, limit, Watch::default(), name, observer, next)
    }

    /// As [`Session::phase`], of these sequences, and watched so.
    pub(super) fn phase_of(
        &mut self,
        sequences: Sequences,
        limit: Limit,
        watch: Watch<'_>,
        name: &str,
        observer: &mut dyn Observer,
        mut next: impl FnMut(&mut Random) -> Operation,
    ) -> Result<Measured, SimError> {
        let start = self.clock;
        let (mut count, end, total) = match limit {
            Limit::Operations(count) => (count, Nanos(u64::MAX), count),
            Limit::Time(length) => (u64::MAX, start + length, length.0),
        };
        observer.begin(&format!("{} {name}", self.setup.bed.design.name), total);
        self.phases += 1;
        let seed = mix64(self.setup.bed.seed ^ self.phases << 32);
        let plan = self.setup.hosts;
        let mut draws = Draws::new(sequences, plan.threads, seed);
        let mut hosts = Hosts::new(plan.pace(), plan.threads, plan.queue_depth, self.clock, seed);
        let Watch { mut rounds, series } = watch;
        let mut measured = Measured::from(self.clock, series);
        let mut round_end = rounds.as_ref().map_or(u64::MAX, |_| count);
        let started = Instant::now();
        let mut begun = 0;
        let mut under_way = 0;
        while begun < count || under_way > 0 {
            let (at, turn) = hosts.pop();
            if let Some(series) = &mut measured.series {
                series.advance(at, &self.device)?;
            }
            match turn {
                Turn::Next { .. } if begun == count => hosts.end(),
                Turn::Next { .. } if at >= end => count = begun,
                Turn::Next { thread } => {
                    let operation = draws.next(self, thread, count - begun, &mut next);
                    begun += 1;
                    let goes_on = matches!(operation, Operation::ReadModifyWrite { .. } | Operation::Scan { .. });
                    under_way += u64::from(goes_on);
                    self.execute(operation, thread, at, &mut hosts, &mut measured)?;
                    if begun == round_end
                        && let Some(log) = &mut rounds
                    {
                        count += log.end_round(&mut measured, &self.device);
                        round_end = count;
                    }
                    if begun.is_multiple_of(REPORT_EVERY) {
                        observer.progress(if count == u64::MAX { (at - start).0 } else { begun });
                        if observer.is_interrupted() {
                            return Err(SimError::Interrupted);
                        }
                    }
                }
                Turn::GoOn { thread, scan } => {
                    let has_ended = self.go_on(scan, thread, at, &mut hosts, &mut measured)?;
                    under_way -= u64::from(has_ended);
                }
                Turn::WriteBack { thread, record } => {
                    under_way -= 1;
                    self.execute(Operation::Update { record }, thread, at, &mut hosts, &mut measured)?;
                }
            }
        }
        self.send_rest(&mut measured)?;
        observer.progress(total);
        self.clock = measured.end;
        measured.operations = if rounds.is_none() { begun } else { 0 };
        measured.wall = started.elapsed();
        Ok(measured)
    }

    /// Tells the drive's memory what will be wanted soon.
    fn expect(&mut self, upcoming: &[Operation]) {
        let mut rooms = [[0; KEY_BYTES_MAX]; LOOK_AHEAD as usize];
        let keys: Vec<Key<'_>> = upcoming
            .iter()
            .zip(&mut rooms)
            .map(|(operation, room)| self.keys.write(operation.record(), room))
            .collect();
        self.device.expect(&keys);
        let versions = upcoming.iter().filter_map(|operation| self.versions.get(operation.record() as usize));
        std::hint::black_box(versions.fold(0, |sum, version| sum ^ version));
    }

    /// Submits an operation's first command, at `at`, and gives the hosts their next turn.
    fn execute(
        &mut self,
        operation: Operation,
        thread: u32,
        at: Nanos,
        hosts: &mut Hosts,
        measured: &mut Measured,
    ) -> Result<(), SimError> {
        let done = match operation {
            Operation::Read { record } => self.retrieve(record, at, measured)?,
            Operation::ReadModifyWrite { record } => {
                let done = self.retrieve(record, at, measured)?;
                measured.end = measured.end.max(done);
                hosts.write_back(done, thread, record);
                return Ok(());
            }
            Operation::Update { record } if self.batches.are_wanted() => {
                self.update_together(record, thread, at, measured)?
            }
            Operation::Update { record } => {
                let version = &mut self.versions[record as usize];
                *version = (*version & !DELETED) + 1;
                self.store(record, at, measured)?
            }
            Operation::Insert { record } => {
                assert_eq!(record, self.versions.len() as u64, "records are inserted in their order");
                self.versions.push(0);
                self.store(record, at, measured)?
            }
            Operation::Delete { record } => self.delete(record, at, measured)?,
            Operation::Scan { record, length } => {
                let done = self.begin_scan(record, length, thread, at, hosts)?;
                measured.end = measured.end.max(done);
                return Ok(());
            }
        };
        measured.operation_ends(done);
        hosts.done(done, thread);
        Ok(())
    }
}
