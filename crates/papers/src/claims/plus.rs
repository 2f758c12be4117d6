//! The claims of the Plus paper (section V, and the accounting of section IV).

mod drawn;
mod paper;
mod reckoned;

use self::drawn::Traffic;
use super::experiment::Context;
use crate::claims::{Assumption, Claim, Experiment, Findings, Verdict, scale_name};
use kvssd_flash::{Cause, Profile};
use kvssd_ftl::Design;
use kvssd_measure::Observer;
use kvssd_sim::Run;
use kvssd_sim::workload::{Distribution, PairShape, YcsbCore};
use kvssd_sim::{Bed, HostPlan, Session, Setup, SimError};

/// The paper's pairs and operations at full scale (section V-B).
const RECORDS: f64 = 100e6;
const OPERATIONS: f64 = 10e6;
/// Pairs of 50-byte values on a drive of a quarter of the size (section V-D).
const SMALL_RECORDS: f64 = 330e6;
const SMALL_DRIVE: f64 = 0.25;

/// A workload of the paper's Figure 2.
type Load = (YcsbCore, Distribution);

/// The runs that are compared between designs, on a drive that was filled and overwritten, in this order.
const COMPARED: [Load; 5] = [
    (YcsbCore::A, Distribution::Uniform),
    (YcsbCore::A, Distribution::Zipfian),
    (YcsbCore::B, Distribution::Uniform),
    (YcsbCore::C, Distribution::Uniform),
    (YcsbCore::C, Distribution::Zipfian),
];

/// The runs that are compared between sizes of values.
const LOADS: [Load; 8] = [
    (YcsbCore::A, Distribution::Uniform),
    (YcsbCore::A, Distribution::Zipfian),
    (YcsbCore::B, Distribution::Uniform),
    (YcsbCore::C, Distribution::Uniform),
    (YcsbCore::B, Distribution::Zipfian),
    (YcsbCore::C, Distribution::Zipfian),
    (YcsbCore::F, Distribution::Uniform),
    (YcsbCore::D, Distribution::Latest),
];

/// The runs of one design.
struct Runs(Vec<(Load, Run)>);

impl Runs {
    /// Fills and overwrites a drive, and runs the loads one after the other.
    fn of(setup: &Setup, loads: &[Load], scale: f64, observer: &mut dyn Observer) -> Result<Runs, SimError> {
        let operations = (OPERATIONS * scale) as u64;
        let mut session = Session::new(setup, operations)?;
        session.fill(observer)?;
        session.overwrite(setup.records, observer)?;
        let runs = loads.iter().map(|&(core, distribution)| {
            let run = session.run(core, Some(distribution), operations, observer)?;
            match run.report.failed_retrieves {
                0 => Ok(((core, distribution), run)),
                failed => Err(SimError::WrongValues(failed)),
            }
        });
        Ok(Runs(runs.collect::<Result<_, _>>()?))
    }

    fn under(&self, load: Load) -> &Run {
        let run = self.0.iter().find(|(other, _)| *other == load);
        &run.expect("every claim's load is run").1
    }

    fn throughput(&self, load: Load) -> f64 {
        self.under(load).report.throughput_ops_s
    }
}

/// What the emulator behind the paper does (docs/TESTBEDS.md). At 1/64 sections have 2 MiB.
const EMULATOR: &[Assumption] = &[
    Assumption::fact("128 MiB of DRAM for sections alone", &[("emulator.section_dram_bytes", "134217728")]),
    Assumption::fact("commands wait for the programs of what they evict", &[("emulator.evictions_wait", "true")]),
    Assumption::fact("dies first come, first served", &[("emulator.dies_first_come", "true")]),
    Assumption::fact("stores wait for the programs that they fill", &[("emulator.stores_wait", "true")]),
    Assumption::fact("21.5 us for each collision", &[("emulator.retry_ns", "21500")]),
    Assumption::fact("no read is shared with one that is under way", &[("emulator.reads_unshared", "true")]),
    Assumption::fact("victims are read in no time", &[("emulator.victims_unread", "true")]),
    Assumption::fact("one zipfian sequence for all threads", &[("emulator.one_sequence", "true")]),
    Assumption::fact("a zipfian law that is not scattered", &[("emulator.first_are_popular", "true")]),
    Assumption::fact(
        "collection from 14 free superblocks on, commands wait below 8",
        &[("design.gc_low_superblocks", "14"), ("design.gc_high_superblocks", "8")],
    ),
];

/// What plus.8 depends on most. The emulator's public code does so; the paper counts what collection writes of the table (figure 3), so that it
/// proves nothing of the paper's runs.
const OF_SMALL_VALUES: &[Assumption] =
    &[Assumption::guess("a pair that is moved dirties no section", &[("emulator.moves_dirty_nothing", "true")])];

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment::new(
        &["plus.1", "plus.2", "plus.3", "plus.4", "plus.5", "plus.6", "plus.7"],
        460,
        check,
        against_original,
    )
    .assuming(EMULATOR),
    Experiment::new(&["plus.8"], 180, check, small_values).assuming(OF_SMALL_VALUES),
    Experiment::new(&["plus.9"], 60, check, capacity),
    Experiment::new(&["plus.10", "plus.11", "plus.12"], 1, |_| Ok(()), |_, _| Ok(reckoned::claims().into())),
];

/// Builds every drive that will be run.
fn check(context: &Context) -> Result<(), SimError> {
    for design in designs(context)? {
        for scale in [context.scale, context.scale * SMALL_DRIVE] {
            Session::new(&setup(&design, &context.profile.scaled(scale)?, 1, 50, context.seed), 0)?;
        }
    }
    Ok(())
}

/// `original` and `plus`.
fn designs(context: &Context) -> Result<[Design; 2], SimError> {
    let mut designs = [kvssd_designs::named("original")?, kvssd_designs::named("plus")?];
    for design in &mut designs {
        context.parameters.iter().try_for_each(|(key, value)| design.set(key, value))?;
    }
    Ok(designs)
}

/// The paper's pairs of 1000 bytes on a drive.
fn pairs_1000(context: &Context) -> Result<[Setup; 2], SimError> {
    let (designs, scaled) = (designs(context)?, context.profile.scaled(context.scale)?);
    let records = ((RECORDS * context.scale) as u64).min(Setup::default_records(&designs, &scaled, 8, 1000));
    Ok(designs.map(|design| setup(&design, &scaled, records, 1000, context.seed)))
}

fn against_original(context: &Context, observer: &mut dyn Observer) -> Result<Findings, SimError> {
    let [original, plus] = pairs_1000(context)?;
    let original = Runs::of(&original, &COMPARED, context.scale, observer)?;
    let plus = Runs::of(&plus, &COMPARED, context.scale, observer)?;
    let mut claims = throughput_claims(&original, &plus, context.scale);
    claims.extend(traffic_claims(&original, &plus, context.scale));
    let ratios = COMPARED.map(|load| plus.throughput(load) / original.throughput(load));
    let figures = [drawn::throughput(ratios), drawn::traffic(&traffic(&original, &plus))];
    Ok(Findings::from(claims).with(figures))
}

fn setup(design: &Design, profile: &Profile, records: u64, value_bytes: u32, seed: u64) -> Setup {
    Setup {
        bed: Bed { design: design.clone(), profile: profile.clone(), seed },
        records,
        pairs: PairShape::constant(8, value_bytes),
        hosts: HostPlan::closed(20, 1),
    }
}

fn throughput_claims(original: &Runs, plus: &Runs, scale: f64) -> Vec<Claim> {
    let ratio = |load: Load| plus.throughput(load) / original.throughput(load);
    let shown = |ratio: f64| format!("{ratio:.2}x");
    let scale = format!("{}, as many overwrites as pairs", scale_name(scale));
    let a_uniform = ratio((YcsbCore::A, Distribution::Uniform));
    let a_zipfian = ratio((YcsbCore::A, Distribution::Zipfian));
    let b_uniform = ratio((YcsbCore::B, Distribution::Uniform));
    let c_uniform = ratio((YcsbCore::C, Distribution::Uniform));
    let c_zipfian = ratio((YcsbCore::C, Distribution::Zipfian));
    vec![
        Claim::new("plus.1", shown(a_uniform), Verdict::of(paper::A_UNIFORM, a_uniform, 1.0), scale.clone()),
        Claim::new("plus.2", shown(a_zipfian), Verdict::of(paper::A_ZIPFIAN, a_zipfian, 1.0), scale.clone()),
        Claim::new(
            "plus.3",
            format!("B {b_uniform:.2}x, C {c_uniform:.2}x"),
            Verdict::of(paper::READS_UNIFORM, b_uniform.max(c_uniform), 1.0),
            scale.clone(),
        ),
        Claim::new("plus.4", shown(c_zipfian), Verdict::within(0.92..=1.0, paper::C_ZIPFIAN, c_zipfian, 1.0), scale),
    ]
}

/// What moves under YCSB-A uniform.
fn traffic(original: &Runs, plus: &Runs) -> Traffic {
    let (original, plus) = (original.under(COMPARED[0]), plus.under(COMPARED[0]));
    let ratio = |of: &dyn Fn(&Run) -> u64| of(plus) as f64 / of(original).max(1) as f64;
    Traffic {
        pairs_read: ratio(&|run| run.flash.reads[Cause::User]),
        pairs_written: ratio(&|run| run.flash.programs[Cause::User]),
        table_pages: ratio(&|run| run.flash.reads[Cause::GcIndex] + run.flash.programs[Cause::GcIndex]),
        table_bytes: ratio(&|run| run.gc_index_bytes),
    }
}

fn traffic_claims(original: &Runs, plus: &Runs, scale: f64) -> Vec<Claim> {
    let Traffic { pairs_read, table_pages, table_bytes, .. } = traffic(original, plus);
    let [user_reads, gc_index, gc_index_bytes] = [pairs_read, table_pages, table_bytes].map(|ratio| ratio - 1.0);
    let shown = |change: f64| format!("{:+.0} %", change * 100.0);
    let plus = plus.under(COMPARED[0]);
    let invalid_mappings =
        plus.flash.programs[Cause::InvalidMappings] as f64 / plus.flash.programs.total().max(1) as f64;
    let scale = scale_name(scale);
    vec![
        Claim::new("plus.5", shown(user_reads), Verdict::of(paper::PAIRS_READ - 1.0, user_reads, 0.0), scale.clone()),
        Claim::new(
            "plus.6",
            format!("{} ({})", shown(gc_index), shown(gc_index_bytes)),
            Verdict::of(paper::TABLE_PAGES - 1.0, gc_index, 0.0),
            scale.clone(),
        ),
        Claim::new(
            "plus.7",
            format!("{:.2} %", invalid_mappings * 100.0),
            Verdict::at_most(0.001, invalid_mappings),
            scale,
        ),
    ]
}

fn small_values(context: &Context, observer: &mut dyn Observer) -> Result<Findings, SimError> {
    let Context { profile, scale, seed, .. } = context;
    let [_, large] = pairs_1000(context)?;
    let mut drive = profile.scaled(scale * SMALL_DRIVE)?;
    drive.memory.dram_bytes = large.bed.profile.memory.dram_bytes;
    drive.emulator.section_dram_bytes = large.bed.profile.emulator.section_dram_bytes;
    let small = setup(&large.bed.design, &drive, (SMALL_RECORDS * scale) as u64, 50, *seed);
    let large = Runs::of(&large, &LOADS, *scale, observer)?;
    let small = Runs::of(&small, &LOADS, *scale, observer)?;
    let left = LOADS.map(|load| (format!("{} {}", load.0, load.1), small.throughput(load) / large.throughput(load)));
    Ok(Findings::from(worst_drop(&large, &small, *scale)).with([drawn::small_values(&left)]))
}

fn worst_drop(large: &Runs, small: &Runs, scale: f64) -> Claim {
    let drops = LOADS.map(|load| (1.0 - small.throughput(load) / large.throughput(load), load));
    let (drop, (core, distribution)) =
        drops.into_iter().max_by(|left, right| left.0.total_cmp(&right.0)).expect("loads");
    Claim::new(
        "plus.8",
        format!("{:.0} % ({core}, {distribution})", drop * 100.0),
        Verdict::at_most(1.0 - paper::SMALL_VALUES, drop),
        format!("{}, the same DRAM", scale_name(scale)),
    )
}

fn capacity(context: &Context, observer: &mut dyn Observer) -> Result<Findings, SimError> {
    let scale = context.scale * SMALL_DRIVE;
    let drive = context.profile.scaled(scale)?;
    let mut fits = [0.0; 2];
    for (fits, design) in fits.iter_mut().zip(designs(context)?) {
        let grains = drive.geometry.raw_bytes() / u64::from(design.grain_bytes);
        *fits = Session::new(&setup(&design, &drive, grains, 40, context.seed), 0)?.fill_up(observer)? as f64;
    }
    Ok(pairs_that_fit(fits, scale).into())
}

fn pairs_that_fit([original, plus]: [f64; 2], scale: f64) -> Claim {
    let whole = |pairs: f64| format!("{:.0} M", pairs / scale / 1e6);
    let ratio = plus / original;
    Claim::new(
        "plus.9",
        format!("{} over {}, {ratio:.1}x", whole(plus), whole(original)),
        Verdict::worst([
            Verdict::of(8.0, ratio, 1.0),
            Verdict::of(2.1e9, plus / scale, 0.0),
            Verdict::of(260e6, original / scale, 0.0),
        ]),
        scale_name(scale),
    )
}
