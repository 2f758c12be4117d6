//! Both drives under the microbenchmarks (section V-B, figures 5 to 7).

use super::cell::{Bench, THREADS};
use super::{drawn, paper};
use crate::claims::{Claim, Verdict};
use crate::transactions::{MicroBench, MicroKind, MicroReport};
use kvssd_sim::SimError;

/// Load factors at which reads are compared: the third stands for "above 0.7" and is as far above as the table lets pairs in. All are
/// reached with as many records, by tables of several sizes.
const LOAD_FACTORS: [f64; 3] = [0.1, 0.4, 0.74];
/// Records of the reads: the smallest and the largest of figure 5.
const READ_RECORD_BYTES: [u32; 2] = [512, 4096];
/// Records of figures 5 and 6. The last is what a block drive maps.
const RECORD_BYTES: [u32; 4] = [512, 1024, 2048, 4096];
/// How many of these are small.
const SMALL: usize = 3;
/// The load factor of updates and inserts (figure 6).
const LOAD_FACTOR: f64 = 0.4;
/// That of a full namespace (figure 7).
const FULL: f64 = 0.7;
/// Pairs of a batch (figure 7).
const BATCH: u32 = 4;
/// Records of figure 7, of which the paper does not tell the size. An estimate.
const BATCH_RECORD_BYTES: u32 = 512;
/// Records that a measurement takes with all threads, and with one. Estimates: many more than the write buffer holds.
const PAIRS: u64 = 100_000;
const PAIRS_ALONE: u64 = 20_000;

/// Reads by load factor (kaml.1).
pub(super) fn load_factors(bench: &mut Bench<'_>) -> Result<Claim, SimError> {
    let records = (bench.slots() as f64 * LOAD_FACTORS[0]) as u64;
    let mut ratios = [[0.0; READ_RECORD_BYTES.len()]; LOAD_FACTORS.len()];
    let mut measured = LOAD_FACTORS;
    for (size, record_bytes) in READ_RECORD_BYTES.into_iter().enumerate() {
        let mut fetch = |slots: Option<u64>, setting: f64| -> Result<(f64, f64), SimError> {
            let mut drive = bench.micro(slots, record_bytes, records)?;
            drive.run(MicroKind::Insert, records, bench.observer)?;
            let report = drive.run(MicroKind::Fetch, PAIRS, bench.observer)?;
            let index = drive.device().engine().index_counters();
            let load = index.slots_taken as f64 / index.slots.max(1) as f64;
            Ok((bench.keep("kaml.1", ("load_factor", setting.to_string()), &report), load))
        };
        let (blocks, _) = fetch(None, 0.0)?;
        for (number, load) in LOAD_FACTORS.into_iter().enumerate() {
            let (keys, load) = fetch(Some((records as f64 / load) as u64), load)?;
            ratios[number][size] = keys / blocks;
            measured[number] = load;
        }
    }
    bench.figures.push(drawn::load_factors(&measured, &READ_RECORD_BYTES, &ratios));
    let [low, middle, high] = ratios.map(|[small, large]| [small.min(large), small.max(large)]);
    let is_same = middle.iter().all(|ratio| (0.8..=1.2).contains(ratio));
    let verdicts = [Verdict::of(paper::READS, low[1], 1.0), Verdict::if_true(is_same), Verdict::if_true(high[1] < 1.0)];
    let shown =
        ratios.iter().zip(measured).map(|([small, large], load)| format!("{load:.2}: {small:.3}x, {large:.3}x"));
    Ok(Claim::new(
        "kaml.1",
        shown.collect::<Vec<_>>().join("; "),
        Verdict::worst(verdicts),
        format!("{}, {records} records", bench.scale_name()),
    ))
}

/// What a drive does with records of one size.
#[derive(Default)]
struct OneSide {
    insert: f64,
    update: f64,
    fetch_latency: f64,
    update_latency: f64,
    insert_latency: f64,
}

/// What both drives do; of the key drive also in batches.
#[derive(Default)]
struct Row {
    keys: OneSide,
    blocks: OneSide,
    batched: f64,
}

impl Row {
    /// Of the key drive over the block drive.
    fn ratio(&self, of: fn(&OneSide) -> f64) -> f64 {
        of(&self.keys) / of(&self.blocks)
    }

    /// In batches over one by one.
    fn batch_ratio(&self) -> f64 {
        self.batched / self.keys.update
    }
}

/// Refuses a scale at which what is to be inserted does not fit.
pub(super) fn check_records(bench: &Bench<'_>) -> Result<u64, SimError> {
    let records = (bench.slots() as f64 * LOAD_FACTOR) as u64;
    records.checked_sub(PAIRS_ALONE + PAIRS).ok_or_else(|| {
        let pairs = PAIRS_ALONE + PAIRS;
        SimError::Setup(format!("the drive takes {records} pairs, and {pairs} are inserted: ask for a larger --scale"))
    })
}

/// Reads, inserts and updates by record size (kaml.2 to .4, .10 and .11).
pub(super) fn small_records(bench: &mut Bench<'_>) -> Result<[Claim; 5], SimError> {
    let rows = RECORD_BYTES.map(|record_bytes| row(bench, record_bytes));
    let rows: Vec<Row> = rows.into_iter().collect::<Result<_, _>>()?;
    let scale = format!("{}, load factor {LOAD_FACTOR}", bench.scale_name());
    let ratios = |of: fn(&OneSide) -> f64| rows.iter().map(|row| row.ratio(of)).collect::<Vec<_>>();
    bench.figures.extend(drawn::bandwidths(&RECORD_BYTES, ratios(|side| side.update), ratios(|side| side.insert)));
    let latencies =
        [ratios(|side| side.fetch_latency), ratios(|side| side.update_latency), ratios(|side| side.insert_latency)];
    bench.figures.extend(drawn::latencies(&RECORD_BYTES, latencies));
    bench.figures.push(drawn::batches(&RECORD_BYTES, rows.iter().map(Row::batch_ratio).collect()));
    let of = |claim: fn(&[Row], &str) -> Claim| claim(&rows, &scale);
    Ok([of(updates), of(self::latencies), of(batches), of(inserts), of(fetches)])
}

fn row(bench: &mut Bench<'_>, record_bytes: u32) -> Result<Row, SimError> {
    let slots = bench.slots();
    let records = (slots as f64 * LOAD_FACTOR) as u64;
    let loaded = check_records(bench)?;
    let mut row = Row::default();
    for slots in [Some(slots), None] {
        let side = if slots.is_some() { &mut row.keys } else { &mut row.blocks };
        let mut drive = bench.micro(slots, record_bytes, records)?;
        let setting = || ("batch_pairs", "1".to_owned());
        drive.run(MicroKind::Insert, loaded, bench.observer)?;
        let report = drive.run(MicroKind::Insert, PAIRS, bench.observer)?;
        side.insert = bench.keep("kaml.10", setting(), &report);
        let report = drive.run(MicroKind::Update, PAIRS, bench.observer)?;
        side.update = bench.keep("kaml.2", setting(), &report);
        let mut alone = |drive: &mut MicroBench, kind, claim| -> Result<f64, SimError> {
            drive.set(1, 1)?;
            let report: MicroReport = drive.run(kind, PAIRS_ALONE, bench.observer)?;
            bench.keep(claim, setting(), &report);
            Ok(report.latency_ns.mean)
        };
        side.insert_latency = alone(&mut drive, MicroKind::Insert, "kaml.3")?;
        side.update_latency = alone(&mut drive, MicroKind::Update, "kaml.3")?;
        side.fetch_latency = alone(&mut drive, MicroKind::Fetch, "kaml.11")?;
        if slots.is_some() {
            drive.set(THREADS, BATCH)?;
            let report = drive.run(MicroKind::Update, PAIRS, bench.observer)?;
            row.batched = bench.keep("kaml.4", ("batch_pairs", BATCH.to_string()), &report);
        }
    }
    Ok(row)
}

/// The least and the largest.
fn range(ratios: impl Iterator<Item = f64>) -> [f64; 2] {
    ratios.fold([f64::INFINITY, 0.0], |[least, largest], ratio| [least.min(ratio), largest.max(ratio)])
}

fn shown(ratios: impl Iterator<Item = f64>) -> String {
    let shown = RECORD_BYTES.iter().zip(ratios).map(|(bytes, ratio)| format!("{bytes} B {ratio:.2}x"));
    shown.collect::<Vec<_>>().join(", ")
}

/// Of the least and the largest.
fn of_range(paper: [f64; 2], ours: [f64; 2]) -> Verdict {
    Verdict::worst([0, 1].map(|end: usize| Verdict::of(paper[end], ours[end], 1.0)))
}

fn updates(rows: &[Row], scale: &str) -> Claim {
    let ratios = || rows.iter().map(|row| row.ratio(|side| side.update));
    let [least, largest] = range(ratios().take(SMALL));
    let ours = format!("{least:.1}x to {largest:.1}x ({})", shown(ratios()));
    Claim::new("kaml.2", ours, of_range(paper::UPDATES, [least, largest]), scale)
}

fn latencies(rows: &[Row], scale: &str) -> Claim {
    let updates = || rows.iter().map(|row| row.ratio(|side| side.update_latency));
    let inserts = || rows.iter().map(|row| row.ratio(|side| side.insert_latency));
    let update = updates().take(SMALL).sum::<f64>() / SMALL as f64;
    let [least, largest] = range(inserts().take(SMALL));
    let large = rows[SMALL].ratio(|side| side.insert_latency);
    let papers = [
        (paper::UPDATE_LATENCY, update),
        (paper::INSERT_LATENCY[0], least),
        (paper::INSERT_LATENCY[1], largest),
        (paper::INSERT_LATENCY_4_KIB, large),
    ];
    Claim::new(
        "kaml.3",
        format!(
            "{update:.2}x; {least:.2}x to {largest:.2}x; {large:.2}x (Update {}; Insert {})",
            shown(updates()),
            shown(inserts())
        ),
        Verdict::worst(papers.map(|(paper, ours)| Verdict::of(paper, ours, 1.0))),
        scale,
    )
}

fn batches(rows: &[Row], scale: &str) -> Claim {
    let ratios = || rows.iter().map(Row::batch_ratio);
    let [least, largest] = range(ratios());
    let ours = format!("{least:.2}x to {largest:.2}x ({})", shown(ratios()));
    Claim::new("kaml.4", ours, of_range(paper::BATCHES, [least, largest]), scale)
}

fn inserts(rows: &[Row], scale: &str) -> Claim {
    let ratios = || rows.iter().map(|row| row.ratio(|side| side.insert));
    let [least, largest] = range(ratios().take(SMALL));
    let large = rows[SMALL].ratio(|side| side.insert);
    let is_behind = Verdict::if_true(large < 1.0);
    Claim::new(
        "kaml.10",
        format!("{least:.2}x to {largest:.2}x; {large:.2}x ({})", shown(ratios())),
        Verdict::worst([of_range(paper::INSERTS, [least, largest]), is_behind]),
        scale,
    )
}

fn fetches(rows: &[Row], scale: &str) -> Claim {
    let ratios = || rows.iter().map(|row| row.ratio(|side| side.fetch_latency));
    let [least, largest] = range(ratios());
    let is_same = |ratio: f64| Verdict::if_true((0.8..=1.2).contains(&ratio));
    Claim::new(
        "kaml.11",
        format!("{least:.2}x to {largest:.2}x ({})", shown(ratios())),
        Verdict::worst([is_same(least), is_same(largest)]),
        scale,
    )
}

/// An empty namespace is filled (kaml.5).
pub(super) fn filling(bench: &mut Bench<'_>) -> Result<Claim, SimError> {
    let slots = bench.slots();
    let records = (slots as f64 * FULL) as u64;
    let mut seconds = |batch: u32| -> Result<f64, SimError> {
        let mut drive = bench.micro(Some(slots), BATCH_RECORD_BYTES, records)?;
        drive.set(THREADS, batch)?;
        let report = drive.run(MicroKind::Insert, records, bench.observer)?;
        bench.keep("kaml.5", ("batch_pairs", batch.to_string()), &report);
        Ok(report.seconds)
    };
    let change = -(1.0 - seconds(BATCH)? / seconds(1)?);
    bench.figures.push(drawn::filling(1.0 + change));
    Ok(Claim::new(
        "kaml.5",
        format!("{:+.0} %", change * 100.0),
        Verdict::of(paper::FILLING - 1.0, change, 0.0),
        format!("{}, {records} records", bench.scale_name()),
    ))
}
