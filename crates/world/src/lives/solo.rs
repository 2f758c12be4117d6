//! One program and its drive, life after life: killed at any call of the disk, its machine stopped, its disk failing.

use super::act::{Act, Acts};
use super::hardware::Hardware;
use super::history::History;
use super::program::{End, PATH, Program};
use super::report::{Loss, Report};
use kvssd_device::Drive;
use kvssd_flash::{DiskCall, SimulatedDisk, Strike};
use kvssd_ftl::Design;
use kvssd_types::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Lives of a drive before there is another one.
pub const LIVES_PER_DRIVE: u64 = 32;
/// Steps of a life at the most, and where much is written.
const ACTS: u64 = 60;
const HEAVY_ACTS: u64 = 240;
/// The next call that is struck is among so many: those of an open, of a few steps, of a life.
const HORIZONS: [u64; 3] = [60, 400, 2000];
/// The first few calls behind an open.
const FIRST_CALLS: u64 = 12;
/// A close makes about so many calls.
const CLOSE_CALLS: u64 = 90;
/// Before one of so many lives the whole drive is checked.
const CHECKS: u64 = 8;

/// The lives of one drive.
struct Lives<'a> {
    program: Program<'a>,
    acts: Acts,
    random: Random,
    history: History,
    sync: bool,
}

/// Lets the drive with that seed live.
///
/// # Errors
/// What was lost.
pub fn run(design: &Design, seed: u64, report: &mut Report) -> Result<(), Loss> {
    // Designs that differ little do not live the same lives.
    let mut random = Random::stream(seed, design.name.bytes().map(u64::from).sum());
    let (sync, is_large, is_small) = (random.below(2) == 0, random.below(4) == 0, random.below(3) == 0);
    let hardware = Hardware::tiny(design, sync, is_large, is_small).expect("every design fits the drives of the world");
    let program = Program::new(&hardware, SimulatedDisk::new(random.bits()));
    let acts = Acts::new(random.bits() >> 24, is_large);
    live(Lives { program, acts, random, history: History::default(), sync }, seed, report)
}

/// Lets an image live that somebody else has made, of a version of before perhaps, and that lies on the disk.
///
/// # Errors
/// What was lost, of that which was there before, too.
pub fn run_over(design: &Design, disk: SimulatedDisk, seed: u64, report: &mut Report) -> Result<(), Loss> {
    let mut random = Random::new(seed);
    let sync = random.below(2) == 0;
    let mut hardware = Hardware::tiny(design, sync, false, false).expect("every design fits the drives of the world");
    // What fits beside it depends on who has made it; another of its own does.
    hardware.indexes = hardware.indexes.map(|_| design.index.plan().name());
    let program = Program::over(&hardware, disk);
    let acts = Acts::new(random.bits() >> 24, false);
    live(Lives { program, acts, random, history: History::default(), sync }, seed, report)
}

fn live(mut lives: Lives<'_>, seed: u64, report: &mut Report) -> Result<(), Loss> {
    let disk = lives.program.disk().clone();
    let begun = (disk.calls(), disk.stops(), disk.failures());
    for life in 0..LIVES_PER_DRIVE {
        let lived = catch_unwind(AssertUnwindSafe(|| lives.live(report)));
        let lived = lived.unwrap_or_else(|panic| Err(format!("panic: {}", super::words_of(&*panic))));
        report.lives += 1;
        lived.map_err(|what| Loss { seed, life, what, history: lives.history.lines() })?;
    }
    report.drives += 1;
    report.calls += disk.calls() - begun.0;
    report.power_losses += disk.stops() - begun.1;
    report.failures += disk.failures() - begun.2;
    Ok(())
}

impl Lives<'_> {
    fn live(&mut self, report: &mut Report) -> Result<(), String> {
        self.program.begin_process();
        self.program.disk().kill();
        if self.random.below(CHECKS) == 0 {
            self.check(report)?;
        }
        if self.random.below(8) > 0 {
            // Who writes much is to come far.
            let horizon = if self.acts.is_heavy() { 2 } else { self.random.below(3) };
            let horizon = HORIZONS[horizon as usize];
            self.plan(horizon);
        }
        match self.try_live(report) {
            Ok(()) => Ok(()),
            Err(End::Killed) => {
                report.kills += 1;
                self.history.push("-- killed");
                Ok(())
            }
            Err(End::Failed(why)) => {
                self.history.push(format!("-- failed: {why}"));
                Ok(())
            }
            Err(End::Wrong(what)) => Err(what),
        }
    }

    fn try_live(&mut self, report: &mut Report) -> Result<(), End> {
        self.history.push("open");
        self.program.open().inspect_err(|end| report.kills_in_open += u64::from(*end == End::Killed))?;
        if self.random.below(8) == 0 {
            // What it has read must be as safe as what it will write.
            self.plan(FIRST_CALLS);
        }
        let acts = if self.acts.is_heavy() { HEAVY_ACTS } else { ACTS };
        for _ in 0..self.random.below(acts) {
            let act = self.acts.next_act();
            self.history.push(act.to_string());
            if act == Act::Close && self.random.below(2) == 0 {
                self.plan(CLOSE_CALLS);
            }
            self.program.act(&act)?;
            report.acts += 1;
        }
        if self.random.below(2) == 0 {
            if self.random.below(3) > 0 {
                self.plan(CLOSE_CALLS);
            }
            self.history.push("close");
            self.program.close().inspect_err(|end| report.kills_in_close += u64::from(*end == End::Killed))?;
            report.closes += 1;
        }
        Ok(())
    }

    /// Has something happen to one of the next calls.
    fn plan(&mut self, horizon: u64) {
        let random = &mut self.random;
        let call = self.program.disk().calls() + random.below(horizon);
        let strike = match random.below(12) {
            0..2 => Strike::KillBefore,
            2..5 => Strike::KillWithin,
            5..7 => Strike::KillAfter,
            7..10 if self.sync => Strike::PowerBefore,
            7..10 => Strike::KillWithin,
            10 => [Strike::Fail, Strike::Full][random.below(2) as usize],
            _ => Strike::Short,
        };
        if matches!(strike, Strike::Fail | Strike::Full | Strike::Short) {
            self.program.expect_failure();
        }
        let disk = self.program.disk();
        disk.spare();
        let is_aimed = self.sync && self.random.below(3) == 0;
        if is_aimed {
            disk.strike_next(call, DiskCall::Sync, strike);
        } else {
            disk.strike(call, strike);
        }
        let what = if is_aimed { "the next sync from" } else { "at" };
        self.history.push(format!("-- {strike:?} {what} call {call}, now {}", disk.calls()));
    }

    fn check(&mut self, report: &mut Report) -> Result<(), String> {
        if !self.program.is_made() {
            return Ok(());
        }
        report.checks += 1;
        let checked = Drive::check_in(&self.program.disk().files(), Path::new(PATH));
        let checked = checked.map_err(|error| format!("the check says: {error}"))?;
        if checked.is_clean() { Ok(()) } else { Err(format!("the check says: {checked}")) }
    }
}
