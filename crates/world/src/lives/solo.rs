//! One program and its drive, life after life: killed at any call of the disk, its machine stopped, its disk failing.

use super::act::{Act, Acts, Writing};
use super::caught;
use super::hardware::Hardware;
use super::history::History;
use super::image;
use super::program::{End, Program};
use super::report::{Loss, Report};
use super::strikes::Strikes;
use kvssd_flash::SimulatedDisk;
use kvssd_ftl::Design;
use kvssd_types::Random;

/// Lives of a drive before there is another one.
pub const LIVES_PER_DRIVE: u64 = 32;
/// Steps of a life at the most, and where much is written.
const ACTS: u64 = 60;
const HEAVY_ACTS: u64 = 240;
/// The next call that is struck is among so many: those of an open, of a few steps, of a life.
const HORIZONS: [u64; 3] = [60, 400, 2000];
const HEAVY_HORIZON: u64 = 8000;
/// The first few calls behind an open.
const FIRST_CALLS: u64 = 12;
/// A close makes about so many calls.
const CLOSE_CALLS: u64 = 90;
/// How often everything is written at the most before the first life.
const FILLS_MAX: u64 = 4;
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
    let hardware = Hardware::tiny(design, sync, is_large, is_small);
    let hardware = hardware.cached_or_not(&mut random).with_indexes(&mut random).in_partitions(&mut random);
    let program = Program::new(&hardware, SimulatedDisk::new(random.bits()));
    let seed_of_acts = random.bits() >> 24;
    let acts = Acts::new(seed_of_acts, Writing::of(seed_of_acts, is_large));
    live(Lives { program, acts, random, history: History::default(), sync }, seed, report)
}

/// Lets an image live that somebody else has made, of a version of before perhaps, and that lies on the disk.
///
/// # Errors
/// What was lost, of that which was there before, too.
pub fn run_over(design: &Design, disk: SimulatedDisk, seed: u64, report: &mut Report) -> Result<(), Loss> {
    let mut random = Random::new(seed);
    let sync = random.below(2) == 0;
    let mut hardware = Hardware::tiny(design, sync, false, false);
    // What fits beside it depends on who has made it; another of its own does.
    hardware.indexes = hardware.indexes.map(|_| design.index.plan().name());
    let program = Program::over(&hardware, disk);
    let seed_of_acts = random.bits() >> 24;
    let acts = Acts::new(seed_of_acts, Writing::of(seed_of_acts, false));
    live(Lives { program, acts, random, history: History::default(), sync }, seed, report)
}

fn live(mut lives: Lives<'_>, seed: u64, report: &mut Report) -> Result<(), Loss> {
    let disk = lives.program.disk().clone();
    let begun = (disk.calls(), disk.stops(), disk.failures());
    for life in 0..LIVES_PER_DRIVE {
        let lived = caught(|| {
            if life == 0 {
                lives.fill()?;
            }
            lives.live(report)
        });
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
    /// What there is before anything happens: where much is written so much that it is collected from the first life on.
    fn fill(&mut self) -> Result<(), String> {
        let writing = self.acts.writing();
        let mut filled = if writing.fills() { self.program.open() } else { return Ok(()) };
        for _ in 0..if writing == Writing::Much { FILLS_MAX } else { 1 } {
            if self.program.has_collected() {
                break;
            }
            let acts = self.acts.fill();
            filled = filled.and_then(|()| acts.iter().try_for_each(|act| self.program.act(act)));
        }
        filled.map_err(|end| format!("the fill, undisturbed: {end:?}"))
    }

    fn live(&mut self, report: &mut Report) -> Result<(), String> {
        self.program.begin_process();
        self.program.disk().kill();
        if self.random.below(CHECKS) == 0 {
            self.check(report)?;
        }
        if self.random.below(8) > 0 {
            // Who writes much is to come far.
            let horizon =
                if self.acts.writing().fills() { HEAVY_HORIZON } else { HORIZONS[self.random.below(3) as usize] };
            self.plan(horizon);
        }
        let lived = self.try_live(report);
        report.collections += u64::from(self.program.has_collected());
        match lived {
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
        let acts = if self.acts.writing().fills() { HEAVY_ACTS } else { ACTS };
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
        let planned = Strikes { sync: self.sync, fails_one_in: 6 }.plan(self.program.disk(), &mut self.random, horizon);
        if planned.is_failure() {
            self.program.expect_failure();
        }
        self.history.push(format!("-- {planned}, now {}", self.program.disk().calls()));
    }

    fn check(&mut self, report: &mut Report) -> Result<(), String> {
        if !self.program.is_made() {
            return Ok(());
        }
        report.checks += 1;
        image::check(self.program.disk())
    }
}
