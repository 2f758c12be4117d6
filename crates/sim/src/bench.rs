//! A bench: designs side by side under one YCSB workload, as somebody asks for it.
//!
//! ```text
//!   Bench  names, numbers, overrides -> an Experiment for each design -> fill -> overwrite -> run -> a report for each
//! ```

pub use kvssd_designs::{Assignment, split_overrides};

use crate::error::SimError;
use crate::experiment::{Check, Experiment, Work, YcsbWork};
use crate::host::HostPlan;
use crate::report::RunReport;
use crate::rounds::Rounds;
use crate::scale::check_scale;
use crate::setup::Setup;
use crate::workload::{Distribution, PairShape, YcsbCore};
use kvssd_flash::Profile;
use kvssd_ftl::{Design, DesignError};
use kvssd_measure::Observer;
use kvssd_types::Nanos;

/// Host threads, if nothing else is asked for.
pub const THREADS: u32 = 20;
/// Bytes of a value, if nothing else is asked for.
pub const VALUE_BYTES: u32 = 1000;

/// What is compared unless something else is asked for: the Plus paper's two.
pub const DEFAULT_DESIGNS: [&str; 2] = ["original", "plus"];

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Bench {
    /// Designs by name; none for the Plus paper's two.
    pub designs: Vec<String>,
    /// The testbed: a name, or the path of a file.
    pub profile: String,
    /// The part of its capacity and DRAM.
    pub scale: f64,
    /// Pairs that every drive is filled with; none to fill each as far as `fill` says.
    pub records: Option<u64>,
    /// The part of the flash that pairs take after the fill ([`Setup::records_of`]).
    pub fill: f64,
    /// Random overwrites before the run; none for as many as records.
    pub overwrites: Option<u64>,
    /// Operations of the run, or of each of its rounds; none for a tenth of the records.
    pub operations: Option<u64>,
    /// When the run ends.
    pub rounds: Rounds,
    /// The intervals of virtual time into which the report cuts the run's course, if that is wanted.
    pub series: Option<Nanos>,
    /// Which operations.
    pub workload: YcsbCore,
    /// How their keys are chosen; none for the workload's own way.
    pub distribution: Option<Distribution>,
    /// The hosts.
    pub hosts: HostPlan,
    /// Updates of a thread that go as one atomic batch; 1 for each alone.
    pub batch_pairs: u32,
    /// What the pairs are like.
    pub pairs: PairShape,
    /// Of everything that is random.
    pub seed: u64,
    /// Keys of the profile and parameters of the designs (`design.name`), with what they are set to.
    pub overrides: Vec<Assignment>,
}

impl Default for Bench {
    fn default() -> Self {
        Bench {
            designs: Vec::new(),
            profile: "kvvirt".to_owned(),
            scale: 1.0 / 64.0,
            records: None,
            fill: Setup::FILL,
            overwrites: None,
            operations: None,
            rounds: Rounds::ONE,
            series: None,
            workload: YcsbCore::A,
            distribution: None,
            hosts: HostPlan::closed(THREADS, 1),
            batch_pairs: 1,
            pairs: PairShape::constant(8, VALUE_BYTES),
            seed: 1,
            overrides: Vec::new(),
        }
    }
}

impl Bench {
    /// Runs it on one design after the other; gives a report for each, also where values were wrong
    /// ([`RunReport::failed_retrieves`]).
    ///
    /// # Errors
    /// When a design, the profile or a number is impossible, before the first is run; when a drive is full, or the observer interrupts.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<Vec<RunReport>, SimError> {
        let runs: Result<Vec<_>, _> =
            self.experiments(Experiment::check)?.iter().map(|one| one.run(observer)).collect();
        Ok(runs?.into_iter().flatten().collect())
    }

    /// An experiment for each design, so that what is wrong with any of them is said before the first runs.
    ///
    /// # Errors
    /// When a design, the profile or a number is impossible.
    pub fn experiments(&self, check: Check) -> Result<Vec<Experiment>, SimError> {
        if !(self.fill > 0.0 && self.fill <= 1.0) {
            return Err(SimError::Setup(format!("--fill {} must be above 0 and at most 1", self.fill)));
        }
        let testbed = Testbed::load(&self.designs, &self.profile, self.scale, &self.overrides)?;
        // The same for all seeds: as many records.
        let sizes = self.pairs.value_sizes(0)?;
        let work = |design: &Design| {
            let fitting = || Setup::records_of(self.fill, design, &testbed.scaled, self.pairs.key_bytes, &sizes);
            let records = self.records.unwrap_or_else(fitting);
            Work::Ycsb(YcsbWork {
                workload: self.workload,
                distribution: self.distribution.unwrap_or(self.workload.default_distribution()),
                records,
                overwrites: self.overwrites.unwrap_or(records),
                operations: self.operations.unwrap_or(records.div_ceil(10)),
                rounds: self.rounds,
                series_ns: self.series.map(|interval| interval.0),
                hosts: self.hosts,
                batch_pairs: self.batch_pairs,
                pairs: self.pairs,
            })
        };
        testbed.experiments(self.seed, work, check)
    }
}

/// Designs and the drive that they are compared on.
#[derive(Clone, Debug)]
pub struct Testbed {
    /// The designs.
    pub designs: Vec<Design>,
    /// The whole testbed.
    pub profile: Profile,
    /// The part of its capacity and DRAM.
    pub scale: f64,
    /// That part of it.
    pub scaled: Profile,
}

impl Testbed {
    /// The designs of these names, or the default ones, on that part of a testbed, with overrides put over both.
    ///
    /// # Errors
    /// When there is no such design or profile, an override is impossible, or a design does not fit.
    pub fn load(designs: &[String], profile: &str, scale: f64, overrides: &[Assignment]) -> Result<Self, SimError> {
        let (for_designs, for_profile) = split_overrides(overrides);
        let profile = Profile::load(profile, &for_profile)?;
        let designs = self::designs(designs, &for_designs)?;
        // Sizes of a drive that cannot be mean nothing.
        check_scale(scale, |scale| {
            let scaled = profile.scaled(scale)?;
            Ok(designs.iter().try_for_each(|design| design.check_parameters(&scaled))?)
        })?;
        let scaled = profile.scaled(scale)?;
        Ok(Testbed { designs, profile, scale, scaled })
    }

    /// What is done with each of the designs.
    ///
    /// # Errors
    /// As the check says.
    pub fn experiments(
        &self,
        seed: u64,
        work: impl Fn(&Design) -> Work,
        check: Check,
    ) -> Result<Vec<Experiment>, SimError> {
        let experiment = |design: &Design| {
            let (table, profile) = (design.table(), self.profile.clone());
            let experiment = Experiment { design: table, profile, scale: self.scale, seed, work: work(design) };
            check(&experiment).map(|()| experiment)
        };
        self.designs.iter().map(experiment).collect()
    }
}

/// The designs of these names, or the default ones, with parameters put over those that have them.
///
/// # Errors
/// When there is no such design, or none of them has such a parameter.
pub fn designs(names: &[String], parameters: &[Assignment]) -> Result<Vec<Design>, DesignError> {
    let mut designs = if names.is_empty() {
        DEFAULT_DESIGNS.iter().map(|name| kvssd_designs::named(name)).collect::<Result<Vec<_>, _>>()?
    } else {
        names.iter().map(|name| kvssd_designs::named(name)).collect::<Result<Vec<_>, _>>()?
    };
    for (key, value) in parameters {
        let mut is_known = false;
        for design in designs.iter_mut().filter(|design| has(design, key)) {
            design.set(key, value)?;
            is_known = true;
        }
        match &mut designs[..] {
            _ if is_known => {}
            // It says which it has.
            [design] => design.set(key, value)?,
            several => {
                let names: Vec<&str> = several.iter().map(|design| design.name).collect();
                let known: Vec<&str> = several[0].parameters().into_iter().map(|(key, _)| key).collect();
                let (first, known) = (names[0], known.join(", "));
                let why = format!("none of {} has such a parameter ({first} has: {known})", names.join(", "));
                return Err(DesignError::Parameter { key: key.clone(), why });
            }
        }
    }
    Ok(designs)
}

fn has(design: &Design, key: &str) -> bool {
    Design::PARTS.contains(&key) || design.parameters().iter().any(|(known, _)| *known == key)
}
