//! The consistency check: compares everything that flash and DRAM say about each other, and lists what is wrong.
//!
//! ```text
//!   index  --contents-->  what lives: pairs, sections, pages of invalid mappings
//!                          |  by place
//!   pages  --in order-->  each is read once: out-of-band area, heads, keys, tags      -> journal, orphans
//!                          |
//!   sums    <-------------'  grains by page and superblock, searches, duplicates      -> tables, counters
//! ```
//!
//! A check changes nothing, counts no operation and takes no virtual time. An unreadable page that nobody needs is what a
//! power cut leaves behind: the report counts it, but it is not a finding.

mod origins;
mod overlay;
mod pages;
mod sums;
mod tables;
mod walk;

use crate::design::{Design, DesignError};
use crate::engine::Engine;
use crate::journal::batch_sequence::BatchSequence;
use crate::layout::oob::Kind;
use crate::recovery::MountReport;
use kvssd_flash::{Backing, Profile};
use kvssd_types::named_enum;
use std::fmt;

named_enum! {
    /// What a finding means for the drive's user.
    #[derive(PartialOrd, Ord)]
    pub enum Harm: "harm" {
        /// Nothing is lost, and nothing will be.
        Harmless = "harmless",
        /// Space is marked as used, but nothing lives in it.
        SpaceLeaked = "space leaked",
        /// The drive may stop, or lose what it still has, when it goes on or is mounted again.
        DriveStops = "the drive may stop",
        /// A pair is gone, or cannot be read or found.
        PairLost = "pair lost",
        /// The drive cannot be mounted.
        NotMounted = "the drive cannot be mounted",
    }
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it means.
    pub harm: Harm,
    /// Where it is.
    pub place: String,
    /// What it is.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.harm.name(), self.place, self.what)
    }
}

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// The first findings, 1000 at the most.
    pub findings: Vec<Finding>,
    /// How many findings there were beyond these.
    pub left_off: u64,
    /// Pages that were read, by what lies in them, in the order of [`Kind::ALL`].
    pub pages: [u64; Kind::ALL.len()],
    /// Pages that were written and cannot be read, in superblocks that are not free.
    pub pages_unreadable: u64,
    /// Pairs that were read.
    pub pairs: u64,
    /// Bytes of their keys and values.
    pub pair_bytes: u64,
    /// Records in living pages that no key is bound to and no list of dead pairs names: a power cut lost the notes about them.
    pub orphans: u64,
    /// What the mount did, if there was one and it came through.
    pub mount: Option<MountReport>,
}

/// The most findings that a report holds; the rest are counted.
const FINDINGS_MAX: usize = 1000;

impl CheckReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// The worst that was found.
    #[must_use]
    pub fn worst(&self) -> Option<Harm> {
        self.findings.iter().map(|finding| finding.harm).max()
    }

    /// Pages of a kind that were read.
    #[must_use]
    pub fn pages_of(&self, kind: Kind) -> u64 {
        self.pages[kind as usize]
    }

    /// Sorts the findings, the worst first.
    pub fn sort(&mut self) {
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.harm));
    }

    /// Adds a finding.
    pub fn find(&mut self, harm: Harm, place: impl Into<String>, what: impl Into<String>) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { harm, place: place.into(), what: what.into() });
        } else {
            self.left_off += 1;
        }
    }
}

impl CheckReport {
    /// Merges the reports of a drive's partitions, given in their order. If there are several, each place names its partition.
    #[must_use]
    pub fn of_partitions(reports: Vec<CheckReport>) -> CheckReport {
        let is_only = reports.len() == 1;
        let mut all = CheckReport { mount: reports.first().and_then(|first| first.mount), ..CheckReport::default() };
        for (number, report) in reports.into_iter().enumerate() {
            all.left_off += report.left_off;
            all.pages_unreadable += report.pages_unreadable;
            all.pairs += report.pairs;
            all.pair_bytes += report.pair_bytes;
            all.orphans += report.orphans;
            all.pages.iter_mut().zip(report.pages).for_each(|(sum, pages)| *sum += pages);
            for Finding { harm, place, what } in report.findings {
                let place = if is_only { place } else { format!("partition {number}: {place}") };
                all.find(harm, place, what);
            }
        }
        all.sort();
        all
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        if self.left_off > 0 {
            writeln!(f, "and {} findings more", self.left_off)?;
        }
        let pages = Kind::ALL.map(|kind| format!("{} of {}", self.pages_of(kind), kind.name())).join(", ");
        writeln!(f, "pages: {pages}; {} unreadable", self.pages_unreadable)?;
        write!(f, "pairs: {}, {} bytes of keys and values", self.pairs, self.pair_bytes)
    }
}

impl Engine {
    /// Walks over the whole drive and says what is wrong with it. Changes nothing.
    pub fn check(&mut self) -> CheckReport {
        let utilization = self.utilization();
        let (media, namespaces) = self.parts();
        let mut walk = walk::Walk::new(media, namespaces);
        walk.all();
        let mut report = walk.settle(&utilization);
        report.sort();
        report
    }
}

impl Design {
    /// Checks a drive of `profile` that this design formatted and that nobody has mounted. `backing` is only read: what the
    /// check's own mount writes is kept in memory and dropped.
    pub fn check(&self, profile: &Profile, backing: Box<dyn Backing>) -> CheckReport {
        self.check_part(profile, backing, BatchSequence::default())
    }

    /// Like [`Design::check`], for a drive that is mounted with [`Design::mount_part`].
    pub fn check_part(&self, profile: &Profile, backing: Box<dyn Backing>, decided: BatchSequence) -> CheckReport {
        let backing = overlay::Overlay::new(profile.geometry, backing);
        let mut report = CheckReport::default();
        let drive = format!("drive of profile {}", profile.name);
        let mut engine = match self.assemble(profile, Box::new(backing)) {
            Ok(engine) => engine,
            Err(error) => {
                report.find(Harm::NotMounted, drive, error.to_string());
                return report;
            }
        };
        match engine.mount(decided) {
            Ok(mounted) => CheckReport { mount: Some(mounted), ..engine.check() },
            Err(error) => {
                report.find(Harm::NotMounted, drive, DesignError::from(error).to_string());
                let (media, namespaces) = engine.parts();
                walk::Walk::new(media, namespaces).count(&mut report);
                report
            }
        }
    }
}
