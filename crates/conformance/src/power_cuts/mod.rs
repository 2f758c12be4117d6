//! The crash campaign: drives whose power goes, again and again, beside a model that says what must be on them.
//!
//! ```text
//!   format -> [ mount -> check every key -> work ... cut ] -> [ mount -> ... cut ] ...     a drive, many lives
//!               ^ the cut may come here as well
//! ```
//!
//! Three of eight drives, and every other full one, have three namespaces, of which two come and go, with indexes of all kinds in turn; some
//! changes are batches over all of them. Most drives hold up to a thousand pairs of all sizes; two of eight hold thousands of small ones, and
//! a `rhik` among those begins with one table and grows, in the background or while commands wait.
//!
//! A protected drive must hold every accepted write, and of the one in flight all or nothing. A volatile one must be in the
//! state that it was in at some moment since the last flush. The fault model is that of [`PowerCut`](kvssd_flash::PowerCut).

mod life;
mod model;
mod open_iterators;
mod spaces;
mod turn;

use crate::CampaignError;
use kvssd_flash::{FaultyMedium, PowerCut, PowerLoss, Profile};
use kvssd_ftl::Design;
use kvssd_measure::{Observer, Quiet};
use life::{Drive, Pairs};
use serde::Serialize;
use spaces::Spaces;
use std::any::Any;
use std::fmt;
use thiserror::Error;

/// Of so many drives in a row each is of another kind, or of the usual one.
const KINDS: u64 = 8;
/// A campaign that has found so much need not go on.
pub const FAILURES_MAX: usize = 10;

/// A campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The firmware.
    pub design: Design,
    /// What it does for the day when the power goes.
    pub power_loss: PowerLoss,
    /// Of the first drive; the next ones follow.
    pub seed: u64,
    /// How often the power goes.
    pub cuts: u32,
    /// Whether reads, programs and erases fail as well ([`FaultyMedium`](kvssd_flash::FaultyMedium)).
    pub media_faults: bool,
}

/// Something that a drive lost, invented or mixed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The drive: a campaign with this seed and as many cuts shows it again.
    pub seed: u64,
    /// The cut behind which it showed.
    pub cut: u32,
    /// What was wrong.
    pub what: String,
}

/// What a campaign saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CrashReport {
    /// The firmware.
    pub design: String,
    /// What it does for the day when the power goes.
    pub semantics: &'static str,
    /// Of the first drive.
    pub seed: u64,
    /// Whether reads, programs and erases failed as well.
    pub media_faults: bool,
    /// How often the power went.
    pub cuts: u64,
    /// Mounts that came to their end, and those that a cut ended.
    pub mounts: u64,
    /// Mounts in the middle of which the power went.
    pub mounts_cut: u64,
    /// Drives that were looked at as a whole before they were mounted ([`Design::check`]).
    pub checks: u64,
    /// Commands that were accepted.
    pub operations: u64,
    /// Changes that mounts made again.
    pub changes_redone: u64,
    /// Those of them that split a section of the index.
    pub splits_redone: u64,
    /// Those of them that wrote or moved a page of invalid mappings.
    pub spills_redone: u64,
    /// Mounts that found a batch cut in two, and passed over its first part.
    pub batches_torn: u64,
    /// Superblocks that garbage collection erased.
    pub superblocks_collected: u64,
    /// Those of them that it began with beside others.
    pub victims_beside: u64,
    /// Pairs that garbage collection moved.
    pub pairs_moved: u64,
    /// Programs and erases that were under way when the power went and did not come to their end.
    pub operations_broken: u64,
    /// Reads with flipped bits that the CRC caught.
    pub flips_caught: u64,
    /// Pages that could never be read again, and were rebuilt from the parity of their row.
    pub pages_rebuilt: u64,
    /// Blocks that were retired: a program or an erase failed, or a page was lost.
    pub blocks_retired: u64,
    /// Pairs that glances along iterators have given.
    pub pairs_glanced: u64,
    /// Those of them whose values were kept from a glance before.
    pub kept_values_shown: u64,
    /// The most reads of a block between two erases.
    pub block_reads_max: u64,
    /// Pairs or states that were lost: must be none.
    pub losses: Vec<Loss>,
}

impl Campaign {
    /// The firmware, the pairs and the namespaces of the drive with that seed.
    fn subject(&self, seed: u64) -> (Design, Pairs, Spaces) {
        let (mut design, turn) = (self.design.clone(), seed / KINDS);
        match seed % KINDS {
            // Many small pairs: sections split, and dead pairs fill pages.
            kind @ (0 | 6) => {
                design.index.begin_small();
                // A design that has this parameter grows in the background or while commands wait; another refuses it.
                let _ = design.set("incremental", &turn.is_multiple_of(2).to_string());
                (design, Pairs::Small, if kind == 0 { Spaces::one() } else { Spaces::many(false, turn) })
            }
            1 => (design, Pairs::OfAllSizes, Spaces::many(false, turn)),
            3 => (design, Pairs::InBatches, Spaces::one()),
            // Collection moves records that run over many pages.
            4 => (design, Pairs::Large, Spaces::one()),
            5 => {
                let has_many_logs = design.gc_victims_max > 1;
                (design, Pairs::OfAllSizes, Spaces::many(has_many_logs, turn))
            }
            7 => (design, Pairs::Full, if turn.is_multiple_of(2) { Spaces::one() } else { Spaces::many(false, turn) }),
            _ => (design, Pairs::OfAllSizes, Spaces::one()),
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// When the design does not fit the drive, or the observer interrupts. Losses are no errors: they are in the report.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<CrashReport, CampaignError> {
        if !self.design.takes_keys() {
            return Err(CampaignError::TakesBlocks(self.design.name.to_owned()));
        }
        let semantics = self.power_loss.name();
        observer.begin(&format!("{} {semantics}", self.design.name), self.cuts.into());
        let Campaign { seed, media_faults, .. } = *self;
        let design = self.design.name.to_owned();
        let mut report = CrashReport { design, semantics, seed, media_faults, ..CrashReport::default() };
        let (mut seeds, mut left) = (self.seed.., self.cuts);
        while let Some(seed) = seeds.next().filter(|_| left > 0) {
            let (mut design, pairs, spaces) = self.subject(seed);
            let profile = spaces.profile(&mut design, semantics)?;
            let mut drive = Drive::format(&design, &profile, pairs, spaces, self.media_faults, seed)?;
            let cuts = left.min(pairs.cuts());
            left -= cuts;
            for cut in 1..=cuts {
                if let Err(what) = drive.life(&mut report, &*observer) {
                    report.losses.push(Loss { seed, cut, what });
                    break;
                }
                observer.progress(report.cuts);
                if observer.is_interrupted() {
                    return Err(CampaignError::Interrupted);
                }
            }
            let faults = drive.faults();
            report.flips_caught += faults.flips_caught;
            report.pages_rebuilt += faults.pages_rebuilt;
            report.blocks_retired += faults.blocks_retired;
            report.block_reads_max = report.block_reads_max.max(faults.reads_max);
            if report.losses.len() >= FAILURES_MAX {
                break;
            }
        }
        Ok(report)
    }
}

/// What a campaign lost, a line each: the design, the semantics, the drive's seed and the cut; or why there is no campaign, or it proves nothing.
#[derive(Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Losses(String);

/// As it is read: `unwrap` prints this.
impl fmt::Debug for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

/// The first drive of [`survives`]. It is full, and one of many small pairs follows: both find much with few cuts.
const FIRST_SEED: u64 = 7;

/// Runs a campaign of so many cuts under each semantics, as a test does.
///
/// # Errors
/// [`Losses`].
pub fn survives(design: &Design, cuts: u32) -> Result<(), Losses> {
    let mut lines = Vec::new();
    for power_loss in [PowerLoss::Protected, PowerLoss::Volatile] {
        let campaign = Campaign { design: design.clone(), power_loss, seed: FIRST_SEED, cuts, media_faults: false };
        let report = campaign.run(&mut Quiet).map_err(|error| Losses(error.to_string()))?;
        let of = format!("power_cuts: {}, {}", report.design, report.semantics);
        if report.losses.is_empty() && report.splits_redone == 0 && design.index.plan().splits() {
            let instead = "ask for more cuts, or let SectionPlan::begin_small begin smaller";
            lines.push(format!("{of}: no mount had a split to make again: {instead}"));
        }
        let losses = report.losses.iter();
        lines.extend(losses.map(|Loss { seed, cut, what }| format!("{of}, seed {seed}, cut {cut}: {what}")));
    }
    if lines.is_empty() { Ok(()) } else { Err(Losses(lines.join("\n"))) }
}

/// Looks at a whole drive that nobody has mounted since its power went.
///
/// # Errors
/// What is wrong with it.
pub fn check(design: &Design, profile: &Profile, backing: PowerCut<FaultyMedium>) -> Result<(), String> {
    let report = design.check(profile, Box::new(backing));
    match &report.findings[..] {
        [] if report.is_clean() => Ok(()),
        [] => Err(format!("the drive is not sound: {report}")),
        [first, others @ ..] => {
            let more = others.len() as u64 + report.left_off;
            Err(format!("the drive is not sound: {first}; and {more} findings more"))
        }
    }
}

/// What a panic said.
#[must_use]
pub fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words")
}
