//! The sweep: one scripted life, again and again, in which each single call of the disk fails once, in each way, and is killed once before,
//! within and after.
//!
//! ```text
//!   the script, undisturbed     call 0   1   2   3 ... n                                     traced: what each call is, and where
//!   the script, struck          call 0   1   2 x                                             x: one strike of one kind
//!   the next process                              open: look at everything, check, work on, close, open: look again
//! ```
//!
//! What was answered is there, what was under way is there as a whole or not, and what a disk has lost or misplaced is told.

use super::act::Act;
use super::caught;
use super::hardware::{Hardware, LARGE_VALUE_BYTES};
use super::image::{self, PATH};
use super::model::Content;
use super::program::{End, Program};
use super::report::{Loss, Report};
use kvssd_flash::{DiskCall, SimulatedDisk, Strike};
use kvssd_ftl::Design;
use kvssd_types::StoreCondition;
use std::path::Path;

/// Where the header of an image says that its table of blocks, its staging area and its pages begin.
const TABLE_OFFSET_AT: usize = 104;
const STAGING_OFFSET_AT: usize = 112;
const PAGES_OFFSET_AT: usize = 128;

/// The drives that live through the script: with sync or not, with large values or not, with small blocks or not.
const KINDS: [(bool, bool, bool); 3] = [(false, true, false), (true, false, true), (true, true, false)];

/// Strikes the call that the seed names, of each kind of drive in turn. Seeds from 0 to three times as many as the script has calls are the whole
/// sweep; behind those there is nothing to do.
///
/// # Errors
/// What was lost.
pub fn run(design: &Design, seed: u64, report: &mut Report) -> Result<(), Loss> {
    let (sync, is_large, is_small) = KINDS[(seed % KINDS.len() as u64) as usize];
    let hardware = Hardware::tiny(design, sync, is_large, is_small);
    let loss = |what: String, life, history| Loss { seed, life, what, history };
    let sweep = Sweep::new(hardware).map_err(|what| loss(what, 0, Vec::new()))?;
    let call = seed / KINDS.len() as u64;
    let Some(&(what, at, bytes)) = sweep.trace.get(call as usize) else { return Ok(()) };
    for (life, strike) in (1..).zip(sweep.strikes(call)) {
        let history =
            || vec![format!("{what:?} of {bytes} B at {at}, call {call} of {}: {strike:?}", sweep.trace.len())];
        let lived = caught(|| sweep.strike(call, strike, report));
        lived.map_err(|what| loss(what, life, history()))?;
    }
    report.drives += 1;
    Ok(())
}

/// The script: all that a store can do, on a drive that is nearly full of it.
fn script(has_large_values: bool) -> Vec<Act> {
    let mut seed = 0;
    let mut content = |bytes: usize| {
        seed += 1;
        Content { seed, bytes }
    };
    let mut acts: Vec<Act> = (0..24).map(|key| Act::Store(0, key, content(key * key * 13 % 9000))).collect();
    acts.extend([Act::CreateSpace(1), Act::CreateSpace(2), Act::Flush]);
    acts.extend((0..12).map(|key| Act::Store(1 + key % 2, key, content(300 + key * 700))));
    if has_large_values {
        acts.extend((0..2).map(|key| Act::Store(0, 70 + key, content(LARGE_VALUE_BYTES as usize / 3))));
        acts.push(Act::Store(0, 70, content(LARGE_VALUE_BYTES as usize / 4)));
    }
    acts.push(Act::Batch(vec![(0, 1, Some(content(100))), (1, 2, Some(content(5000))), (2, 3, None), (0, 40, None)]));
    acts.extend([Act::Close, Act::List(0), Act::Delete(0, 5), Act::Delete(0, 71), Act::Retrieve(0, 70)]);
    acts.push(Act::StoreIf(0, 6, content(50), StoreCondition::IfExists));
    acts.push(Act::StoreIf(0, 6, content(60), StoreCondition::IfAbsent));
    acts.extend([Act::DeleteSpace(1), Act::Store(2, 8, content(2000)), Act::Drop, Act::CreateSpace(1)]);
    acts.push(Act::Bulk(vec![(1, 1, Some(content(10))), (2, 1, Some(content(4000))), (0, 3, None)]));
    acts.extend((0..40).map(|key| Act::Store(0, key % 8, content(30_000 + key))));
    acts.extend([Act::Retrieve(0, 7), Act::Flush]);
    acts
}

/// The lives of one drive.
#[derive(Debug)]
struct Sweep {
    hardware: Hardware,
    script: Vec<Act>,
    trace: Vec<(DiskCall, u64, u64)>,
    /// From where to where the table of blocks lies, and where the pages begin.
    table: std::ops::Range<u64>,
    pages_offset: u64,
}

impl Sweep {
    /// Lives through the script once, undisturbed.
    ///
    /// # Errors
    /// What went wrong, though nothing was struck.
    fn new(hardware: Hardware) -> Result<Sweep, String> {
        let script = script(hardware.create.value_bytes_max.is_some());
        let disk = SimulatedDisk::new(0);
        disk.begin_trace();
        let mut program = Program::new(&hardware, disk);
        live(&mut program, &script).map_err(|end| format!("the script, undisturbed: {end:?}"))?;
        let trace = program.disk().trace();
        let image = program.disk().read(Path::new(PATH)).unwrap_or_default();
        let number = |at: usize| image[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        let table = number(TABLE_OFFSET_AT)..number(STAGING_OFFSET_AT);
        let pages_offset = number(PAGES_OFFSET_AT);
        drop(program);
        Ok(Sweep { hardware, script, trace, table, pages_offset })
    }

    /// What can be done to a call.
    fn strikes(&self, call: u64) -> Vec<Strike> {
        let (what, at, _) = self.trace[call as usize];
        let mut strikes = vec![Strike::KillBefore, Strike::KillAfter, Strike::Fail];
        if self.hardware.create.sync {
            strikes.push(Strike::PowerBefore);
        }
        match what {
            DiskCall::Write => strikes.extend([Strike::KillWithin, Strike::Full, Strike::Short]),
            DiskCall::Sync => strikes.push(Strike::KillWithin),
            _ => {}
        }
        let is_kept_twice = at < self.pages_offset && !self.table.contains(&at);
        if !is_kept_twice && what == DiskCall::Write {
            strikes.extend([Strike::Stale, Strike::Astray]);
        }
        if at >= self.pages_offset && what == DiskCall::Read {
            strikes.push(Strike::Stale);
        }
        strikes
    }

    /// Lives through the script with that call struck, and through what comes behind it.
    fn strike(&self, call: u64, strike: Strike, report: &mut Report) -> Result<(), String> {
        report.lives += 1;
        let disk = SimulatedDisk::new(call);
        disk.strike(call, strike);
        let mut program = Program::new(&self.hardware, disk);
        let is_silent = matches!(strike, Strike::Stale | Strike::Astray);
        if is_silent || matches!(strike, Strike::Fail | Strike::Full) {
            program.expect_failure();
        }
        match live(&mut program, &self.script) {
            Ok(()) => {}
            Err(End::Killed) => report.kills += 1,
            Err(End::Failed(_)) => {}
            Err(End::Wrong(what)) => return Err(what),
        }
        report.failures += program.disk().failures();
        report.power_losses += program.disk().stops();
        report.calls += program.disk().calls();
        program.begin_process();
        program.disk().kill();
        if is_silent {
            program.expect_failure();
            return self.told(&mut program, report);
        }
        if program.is_made() {
            image::check(program.disk())?;
        }
        let next = |end: End| match end {
            End::Wrong(what) | End::Failed(what) => what,
            End::Killed => "the process is dead".to_owned(),
        };
        program.open().map_err(next)?;
        for (number, key) in (1000..).zip([2, 50, 2]) {
            program.act(&Act::Store(0, key, Content { seed: number, bytes: 7000 })).map_err(next)?;
        }
        program.close().map_err(next)?;
        program.open().map_err(next)?;
        drop(program);
        Ok(())
    }

    /// The disk has lost or misplaced something: whatever is given is right, and what is not given is told.
    fn told(&self, program: &mut Program<'_>, report: &mut Report) -> Result<(), String> {
        match program.look_for_lies() {
            Ok(()) => Ok(()),
            Err(End::Wrong(what)) => Err(what),
            Err(End::Killed | End::Failed(_)) => {
                report.told += 1;
                Ok(())
            }
        }
    }
}

/// Opens the store, takes all steps and closes it.
fn live(program: &mut Program<'_>, script: &[Act]) -> Result<(), End> {
    program.open()?;
    script.iter().try_for_each(|act| program.act(act))?;
    program.close()
}
