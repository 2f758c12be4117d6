//! The claims of the RHIK paper (section V, and the sizes of section IV).

mod cluster;
mod doubling;
mod drawn;
mod failure;
mod growing;
mod miss;

use super::experiment::Context;
use crate::claims::{Assumption, Claim, Experiment, Findings, Verdict, scale_name};
use kvssd_designs::RecordTable;
use kvssd_flash::Profile;
use kvssd_ftl::index::SectionForm;
use kvssd_ftl::{Design, RecordLayout};
use kvssd_measure::Observer;
use kvssd_sim::workload::{Distribution, PairShape, YcsbCore};
use kvssd_sim::{Bed, HostPlan, Session, Setup, SimError};

/// The index is to be so many times as large as its cache (rhik.1).
const INDEX_OVER_CACHE: f64 = 20.0;
/// Look-ups at full scale, of rhik and of the multi-level index. That the first never takes two reads is to be seen ten million times on
/// the smallest drive that this is run on (1/64); the second shows that it takes more within a few.
const LOOKUPS: [f64; 2] = [640e6, 150e6];
/// The most reads of a look-up, of rhik and of the multi-level index ("up to 8").
const READS: [f64; 2] = [1.0, 8.0];
/// Bytes of a record in an index, and how full tables are on average, for the number of pairs only.
const RECORD_BYTES: u64 = 17;
const OCCUPANCY_PERCENT: u64 = 60;
/// Value sizes of rhik.7 and of rhik.8.
const VALUE_BYTES: [u32; 4] = [64, 1024, 4096, 32_768];
/// Values for which the real drive's limit comes before its space does on a drive with grains of 512 B.
const SMALL_VALUE_BYTES: u32 = 64;
/// Values of one size together (section V-B: "consolidating to 1GB").
const VALUES_BYTES: f64 = 1e9;
/// Commands under way in asynchronous runs (rhik.7).
const ASYNC_DEPTH: u32 = 64;
/// What counts as higher.
const HIGHER: f64 = 1.01;
/// Grains that leave room in the out-of-band area of 32 KiB pages.
const GRAIN_BYTES: u32 = 512;

/// The paper's emulator has its tables in the memory of the host.
const IN_MEMORY: Assumption = Assumption::fact(
    "tables are read and written in no time",
    &[
        ("nand.read_small_ns", "[100]"),
        ("nand.read_large_ns", "[100]"),
        ("nand.program_ns", "100"),
        ("nand.erase_ns", "100"),
        ("nand.channel_bytes_per_s", "1000000000000"),
    ],
);

/// Section IV-A3: a store finds out by the signature whether its key is there.
const BY_SIGNATURE: Assumption =
    Assumption::fact("stores trust signatures, and read no record", &[("emulator.signatures_trusted", "true")]);

/// Section IV-A2: commands wait in the submission queue while all tables are split.
const ALL_AT_ONCE: Assumption = Assumption::fact("all tables are split at once", &[("design.incremental", "false")]);

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment::new(&["rhik.1"], 45, check, |context, observer| Drives::new(context)?.flash_reads(observer)),
    Experiment::new(&["rhik.2"], 60, check, |context, observer| Drives::new(context)?.misses(observer)),
    Experiment::new(&["rhik.3"], 20, check, |context, observer| Drives::new(context)?.doubling(observer))
        .assuming(&[IN_MEMORY]),
    Experiment::new(
        &["rhik.4", "rhik.5", "rhik.6"],
        5,
        |_| Ok(()),
        |context, _| {
            let (by_occupancy, drawn_occupancy) = failure::by_occupancy(context.seed);
            let (by_key_size, drawn_key_size) = failure::by_key_size(context.seed);
            let claims = vec![by_occupancy, by_key_size, directory(&context.profile)];
            Ok(Findings::from(claims).with([drawn_occupancy, drawn_key_size]))
        },
    ),
    Experiment::new(&["rhik.7"], 60, check, |context, observer| Drives::new(context)?.throughput(observer))
        .assuming(&[BY_SIGNATURE]),
    Experiment::new(&["rhik.8"], 30, check, |context, observer| Ok(Drives::new(context)?.capacity(observer)?.into())),
    Experiment::new(&["rhik.9"], 150, check, |context, observer| Drives::new(context)?.growing(observer)).assuming(&[
        IN_MEMORY,
        BY_SIGNATURE,
        ALL_AT_ONCE,
    ]),
];

/// Builds every drive that will be run.
fn check(context: &Context) -> Result<(), SimError> {
    let drives = Drives::new(context)?;
    for design in [&drives.rhik, &drives.multilevel] {
        Session::new(&drives.setup(design, 1, VALUE_BYTES[0], 1), 0)?;
    }
    Ok(())
}

/// What every experiment runs on: both designs on the testbed.
struct Drives {
    profile: Profile,
    scale: f64,
    seed: u64,
    rhik: Design,
    multilevel: Design,
}

impl Drives {
    fn new(context: &Context) -> Result<Self, SimError> {
        let Context { profile, parameters, scale, seed } = context;
        let design = |name| -> Result<Design, SimError> {
            let mut design = kvssd_designs::named(name)?;
            design.grain_bytes = GRAIN_BYTES;
            // Only the index is compared: both pack records alike, and neither keeps keys for lists.
            design.layout = RecordLayout::Grains;
            let _ = design.set("iterators", "false");
            Ok(design)
        };
        let (mut rhik, mut multilevel) = (design("rhik")?, design("multilevel")?);
        for (key, value) in parameters {
            // What only one of the two has is set for that one.
            let has = |design: &Design| design.parameters().iter().any(|(known, _)| known == key);
            if has(&rhik) || !has(&multilevel) {
                rhik.set(key, value)?;
            }
            if has(&multilevel) {
                multilevel.set(key, value)?;
            }
        }
        Ok(Drives { profile: profile.scaled(*scale)?, scale: *scale, seed: *seed, rhik, multilevel })
    }

    fn both(&self) -> [&Design; 2] {
        [&self.rhik, &self.multilevel]
    }

    fn setup(&self, design: &Design, records: u64, value_bytes: u32, queue_depth: u32) -> Setup {
        Setup {
            bed: Bed { design: design.clone(), profile: self.profile.clone(), seed: self.seed },
            records,
            pairs: PairShape::constant(16, value_bytes),
            hosts: HostPlan::closed(1, queue_depth),
        }
    }

    /// Pairs whose index is so many times as large as the cache that it has.
    fn records_over_cache(&self, times: f64) -> u64 {
        let index_bytes = (times * self.profile.memory.dram_bytes as f64) as u64;
        index_bytes * OCCUPANCY_PERCENT / 100 / RECORD_BYTES
    }

    fn flash_reads(&self, observer: &mut dyn Observer) -> Result<Findings, SimError> {
        let records = self.records_over_cache(INDEX_OVER_CACHE);
        let lookups = LOOKUPS.map(|lookups| (lookups * self.scale) as u64);
        let mut most = [0; 2];
        let mut mean = [0.0; 2];
        for (number, design) in self.both().into_iter().enumerate() {
            let mut session = Session::new(&self.setup(design, records, 64, ASYNC_DEPTH), 0)?;
            session.fill(observer)?;
            let run = session.run(YcsbCore::C, Some(Distribution::Uniform), lookups[number], observer)?;
            let report = run.report;
            most[number] = report.index.flash_reads_per_lookup_max;
            mean[number] = report.index.flash_reads_per_lookup_mean;
        }
        let claim = Claim::new(
            "rhik.1",
            format!(
                "{} / {} (mean {:.2} / {:.2}, {records} pairs, {} / {} look-ups)",
                most[0], most[1], mean[0], mean[1], lookups[0], lookups[1]
            ),
            verdict_of_reads(most.map(|reads| reads as f64)),
            scale_name(self.scale),
        );
        let reads = [0, 1].map(|design| [most[design] as f64, mean[design]]);
        Ok(Findings::from(claim).with([drawn::flash_reads(reads)]))
    }

    /// Writes and reads of one value size in the order of the keys, 1 GB of values (section V-B) and a thousand at the least, as in figure 6:
    /// operations a second of virtual time.
    fn rates(
        &self,
        design: &Design,
        value_bytes: u32,
        queue_depth: u32,
        observer: &mut dyn Observer,
    ) -> Result<[f64; 2], SimError> {
        let records = ((VALUES_BYTES * self.scale) as u64 / u64::from(value_bytes)).max(1000);
        let mut session = Session::new(&self.setup(design, records, value_bytes, queue_depth), 0)?;
        session.fill(observer)?;
        let write = records as f64 / session.clock().as_seconds();
        let lookups = records / 4;
        let read = session.run(YcsbCore::C, Some(Distribution::Sequential), lookups, observer)?;
        Ok([write, read.report.throughput_ops_s])
    }

    fn throughput(&self, observer: &mut dyn Observer) -> Result<Findings, SimError> {
        let (mut shown, mut ahead, mut all) = (Vec::new(), 0, 0);
        let mut by_mode = [Vec::new(), Vec::new()];
        for (by_size, (mode, queue_depth)) in by_mode.iter_mut().zip([("async", ASYNC_DEPTH), ("sync", 1)]) {
            for value_bytes in VALUE_BYTES {
                let rhik = self.rates(&self.rhik, value_bytes, queue_depth, observer)?;
                let multilevel = self.rates(&self.multilevel, value_bytes, queue_depth, observer)?;
                let ratios = [rhik[0] / multilevel[0], rhik[1] / multilevel[1]];
                by_size.push(ratios);
                all += ratios.len();
                ahead += ratios.iter().filter(|&&ratio| ratio >= HIGHER).count();
                shown.push(format!("{mode} {value_bytes} B {:.2}x, {:.2}x", ratios[0], ratios[1]));
            }
        }
        let claim = Claim::new(
            "rhik.7",
            format!("{} ({ahead} of {all} higher)", shown.join("; ")),
            Verdict::if_true(ahead * 4 >= all * 3),
            scale_name(self.scale),
        );
        Ok(Findings::from(claim).with(drawn::throughput(&VALUE_BYTES, by_mode)))
    }

    /// A small part of the drive is filled with ever smaller values. The multi-level drive's limit is the paper's.
    fn capacity(&self, observer: &mut dyn Observer) -> Result<Claim, SimError> {
        let mut shown = Vec::new();
        let mut holds = true;
        for value_bytes in [4096, 1024, SMALL_VALUE_BYTES] {
            let room = self.profile.geometry.raw_bytes() / u64::from(value_bytes.max(GRAIN_BYTES));
            let fit = |design: &Design, observer: &mut dyn Observer| {
                Session::new(&self.setup(design, room, value_bytes, ASYNC_DEPTH), 0)?.fill_up(observer)
            };
            let (rhik, multilevel) = (fit(&self.rhik, observer)?, fit(&self.multilevel, observer)?);
            // Where space ends both, they keep the same within the house's 20 %; where the limit does, rhik goes on.
            let ratio = rhik as f64 / multilevel as f64;
            holds &= if value_bytes == SMALL_VALUE_BYTES { ratio > 1.0 } else { (0.8..=1.2).contains(&ratio) };
            shown.push(format!("{value_bytes} B {rhik} / {multilevel}"));
        }
        Ok(Claim::new("rhik.8", shown.join("; "), Verdict::if_true(holds).by_construction(), scale_name(self.scale)))
    }
}

/// The verdict on the most reads that a look-up took, of rhik and of the multi-level index. One that reads no more than rhik shows nothing.
fn verdict_of_reads([rhik, multilevel]: [f64; 2]) -> Verdict {
    let [bound, levels] = READS;
    Verdict::worst([Verdict::at_most(bound, rhik), Verdict::of(levels, multilevel, bound)])
}

/// DRAM of the directory for each key that its tables hold when they are about to be split.
fn directory(profile: &Profile) -> Claim {
    let form = RecordTable::new(profile.geometry.page_bytes, 64);
    let bytes_per_key = form.directory_entry_bytes() as f64 / (form.records() as f64 * 0.8);
    Claim::new(
        "rhik.6",
        format!("{bytes_per_key:.4} B"),
        Verdict::of(0.005, bytes_per_key, 1.0).by_construction(),
        "reckoned by the code's own accounting, tables at 80 %".to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_ups_read_as_often_as_the_paper_says_or_show_less() {
        assert_eq!(verdict_of_reads([1.0, 8.0]), Verdict::Reproduced);
        assert_eq!(verdict_of_reads([1.0, 6.0]), Verdict::Direction, "in no band of 20 %");
        assert_eq!(verdict_of_reads([1.0, 2.0]), Verdict::NotReproduced, "a seventh of the effect");
        assert_eq!(verdict_of_reads([2.0, 8.0]), Verdict::NotReproduced);
    }
}
