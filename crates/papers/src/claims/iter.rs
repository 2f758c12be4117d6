//! The claims of the IterKVSSD paper: versions, and what reading ahead gains.
//!
//! All drives are the paper's board; `iter-b` is `iter` with nothing read ahead, `iter-i` with the index alone, `iter-p` with values too.

mod drawn;
mod figures;
mod sweep;
mod versions;

pub use self::sweep::SweepCell;

use self::sweep::{Bench, DEGREES, Row, SCAN_LENGTHS, VALUE_BYTES, cell, plan, ranges, rows};
use super::experiment::Context;
use super::{Assumption, Cell, Claim, Experiment, Findings, Verdict, scale_name};
use kvssd_ftl::{IteratorPlan, PrefetchDegree};
use kvssd_measure::{Figure, Latencies, Observer};
use kvssd_sim::SimError;
use kvssd_sim::dbbench::DbBenchmark;

/// The scan length that shows reads of the index (section 5.2).
const LONG_SCAN: u32 = 200_000;
/// A table has so many pairs (section 4.2): one Next in as many crosses to the next table and reads it, and these are the slowest. This is
/// the middle one of them.
const CROSSING: f64 = 1.0 - 0.5 / 4096.0;
/// The threads of figure 11.
const THREADS: [u32; 5] = [1, 2, 4, 8, 16];
/// And the degrees.
const THREAD_DEGREES: [u32; 4] = [1, 4, 16, 64];
/// What counts as no difference: 5 %.
const EQUAL: f64 = 0.05;

/// What is known of the board beside its profile.
const WHOLE_PAGES: Assumption = Assumption::fact("reads of whole pages", &[("geometry.read_bytes_min", "16384")]);

/// What iter.1 and iter.2 hang on. One thread waits for the flash in each Next that has nothing read ahead, and for one pass of a Next
/// otherwise: the way through the controller, of which the paper has no figure, and the core. So the best gain is about the latency of the
/// flash over that pass, plus one. Whether the core waits for flash (`core_costs.waits_for_flash`) changes nothing: there is no second command.
const PIPELINE: Assumption = Assumption::guess(
    "30 us through the controller for reads",
    &[("firmware.read_small_ns", "30000"), ("firmware.read_large_ns", "30000")],
);

const OF_SWEEP: &[Assumption] = &[WHOLE_PAGES, PIPELINE];
const OF_THREADS: &[Assumption] = &[WHOLE_PAGES];

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment::new(
        &["iter.1", "iter.2", "iter.4", "iter.7", "iter.10", "iter.11", "iter.12", "iter.13", "iter.14"],
        300,
        check,
        |context, observer| {
            let bench = Bench::new(context)?;
            let mut cells = bench.sweep(DbBenchmark::FillRandom, observer)?;
            let random = cells.len();
            cells.extend(bench.sweep(DbBenchmark::FillSeq, observer)?);
            let claims = bench.claims_of_sweep(&cells, random);
            let figures = drawn::of_sweep(&rows(&cells[..random]), &rows(&cells[random..]));
            Ok(Findings { claims, cells: cells.into_iter().map(Cell::Iter).collect(), figures })
        },
    )
    .assuming(OF_SWEEP)
    .with_cells(),
    Experiment::new(&["iter.3"], 20, check, |context, observer| {
        let bench = Bench::new(context)?;
        let (found, figures) = bench.index_alone(observer)?;
        Ok(Findings::from(bench.claim("iter.3", found)).with(figures))
    }),
    Experiment::new(&["iter.5"], 20, check, |context, observer| {
        let bench = Bench::new(context)?;
        let cells = bench.threads(observer)?;
        let claim = bench.claim("iter.5", by_threads(&rows(&cells)));
        let figures = vec![drawn::threads(&cells)];
        Ok(Findings { claims: vec![claim], cells: cells.into_iter().map(Cell::Iter).collect(), figures })
    })
    .assuming(OF_THREADS)
    .with_cells(),
    Experiment::new(&["iter.6", "iter.8"], 60, check, |context, observer| {
        let bench = Bench::new(context)?;
        let (ours, verdict) = bench.summary(observer)?;
        let summary = bench.claim("iter.6", (ours, verdict.by_construction()));
        Ok(vec![summary, bench.claim("iter.8", bench.consistency(observer)?)].into())
    }),
    Experiment::new(&["iter.9"], 20, check, |context, observer| {
        let bench = Bench::new(context)?;
        Ok(bench.claim("iter.9", bench.pinned(observer)?).into())
    }),
];

/// Builds every drive that will be run.
fn check(context: &Context) -> Result<(), SimError> {
    let bench = Bench::new(context)?;
    ["iter", "pink"].into_iter().try_for_each(|design| bench.new_drive(design, VALUE_BYTES[0]).map(|_| ()))
}

impl Bench<'_> {
    /// The claims that are read from the sweep, of which the first `random` cells are after fillrandom.
    fn claims_of_sweep(&self, cells: &[SweepCell], random: usize) -> Vec<Claim> {
        let (scattered, ordered) = (rows(&cells[..random]), rows(&cells[random..]));
        let all: Vec<Row<'_>> = rows(cells);
        vec![
            self.claim("iter.1", gain(&scattered, 4.13)),
            self.claim("iter.2", gain(&ordered, 7.22)),
            self.claim("iter.4", latencies(&scattered)),
            self.claim("iter.7", knees(&scattered)),
            self.claim("iter.10", adaptive(&all)),
            self.claim("iter.11", figures::small_values(&scattered)),
            self.claim("iter.12", figures::rises(&scattered)),
            self.claim("iter.13", figures::seeks(&scattered)),
            self.claim("iter.14", figures::orders(&scattered, &ordered)),
        ]
    }

    fn claim(&self, id: &str, (ours, verdict): (String, Verdict)) -> Claim {
        Claim::new(id, ours, verdict, scale_name(self.scale))
    }

    fn sweep(&self, order: DbBenchmark, observer: &mut dyn Observer) -> Result<Vec<SweepCell>, SimError> {
        let mut cells = Vec::new();
        for value_bytes in VALUE_BYTES {
            let mut session = self.filled("iter", order, value_bytes, observer)?;
            for scan_length in SCAN_LENGTHS {
                let degrees = DEGREES.map(PrefetchDegree::Fixed).into_iter().chain([PrefetchDegree::Adaptive]);
                for degree in degrees {
                    let what = (value_bytes, scan_length, 1);
                    cells.push(cell(&mut session, order, what, plan(degree), observer)?);
                }
            }
        }
        Ok(cells)
    }

    /// As in figure 11: values of 128 B in order, ranges of 128.
    fn threads(&self, observer: &mut dyn Observer) -> Result<Vec<SweepCell>, SimError> {
        let (order, value_bytes) = (DbBenchmark::FillSeq, VALUE_BYTES[0]);
        let mut session = self.filled("iter", order, value_bytes, observer)?;
        let mut cells = Vec::new();
        for threads in THREADS {
            for degree in THREAD_DEGREES {
                let what = (value_bytes, SCAN_LENGTHS[0], threads);
                cells.push(cell(&mut session, order, what, plan(PrefetchDegree::Fixed(degree)), observer)?);
            }
        }
        Ok(cells)
    }

    fn index_alone(&self, observer: &mut dyn Observer) -> Result<((String, Verdict), [Figure; 2]), SimError> {
        let (order, value_bytes) = (DbBenchmark::FillRandom, VALUE_BYTES[0]);
        let mut session = self.filled("iter", order, value_bytes, observer)?;
        let mut run = |index_prefetch| {
            let plan = IteratorPlan { index_prefetch, ..IteratorPlan::NONE };
            let report = ranges(&mut session, LONG_SCAN, 1, plan, observer)?;
            let next = Latencies::from_base64(&report.latency_histograms["next"]).expect("a report has histograms");
            Ok::<_, SimError>((report.latency_ns["next"].clone(), next))
        };
        let ((without, all_without), (with, all_with)) = (run(false)?, run(true)?);
        let figures = drawn::next_latencies(&all_without, &all_with);
        let (tail, mean) = (without.p999 as f64 / with.p999 as f64, with.mean / without.mean);
        let is_unchanged = Verdict::if_true((1.0 - mean).abs() <= EQUAL);
        let crossing = [&all_without, &all_with].map(|all| all.quantile_ns(CROSSING) as f64 / 1e3);
        let ours = format!(
            "{tail:.2}x ({:.0} us over {:.0} us); {mean:.3}x; the Nexts that cross a table, the slowest 4096th, in its middle: {:.2}x ({:.0} us over {:.0} us), the longest {:.2}x",
            without.p999 as f64 / 1e3,
            with.p999 as f64 / 1e3,
            crossing[0] / crossing[1],
            crossing[0],
            crossing[1],
            without.max as f64 / with.max as f64
        );
        Ok(((ours, Verdict::worst([Verdict::of(3.6, tail, 1.0), is_unchanged])), figures))
    }

    fn pinned(&self, observer: &mut dyn Observer) -> Result<(String, Verdict), SimError> {
        let (order, value_bytes) = (DbBenchmark::FillRandom, VALUE_BYTES[2]);
        let mut ratios = Vec::new();
        let mut pink = self.filled("pink", order, value_bytes, observer)?;
        let mut iter = self.filled("iter", order, value_bytes, observer)?;
        for scan_length in SCAN_LENGTHS {
            let what = (value_bytes, scan_length, 1);
            let pinned = cell(&mut pink, order, what, IteratorPlan::NONE, observer)?;
            let plain = cell(&mut iter, order, what, IteratorPlan::NONE, observer)?;
            ratios.push(pinned.bytes_s / plain.bytes_s);
        }
        let is_equal = ratios.iter().all(|ratio| (1.0 - ratio).abs() <= EQUAL);
        let shown: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.3}x")).collect();
        let verdict = Verdict::if_true(is_equal);
        Ok((
            format!(
                "{} at scan lengths {}",
                shown.join(", "),
                SCAN_LENGTHS.map(|length| length.to_string()).join(", ")
            ),
            verdict,
        ))
    }
}

fn gain(rows: &[Row<'_>], paper: f64) -> (String, Verdict) {
    let best = rows.iter().max_by(|left, right| left.gain().total_cmp(&right.gain()));
    let Some(best) = best else { return ("nothing was run".to_owned(), Verdict::NotReproduced) };
    let (low, high) =
        rows.iter().map(Row::gain).fold((f64::MAX, 0.0f64), |(low, high), gain| (low.min(gain), high.max(gain)));
    let at = best.cells[0];
    let ours = format!("{high:.2}x at values of {} B, ranges of {} (least {low:.2}x)", at.value_bytes, at.scan_length);
    (ours, Verdict::of(paper, high, 1.0))
}

fn latencies(rows: &[Row<'_>]) -> (String, Verdict) {
    let (mut seek, mut next) = (1.0f64, f64::MAX);
    // Those of figure 9.
    for row in rows.iter().filter(|row| row.cells[0].value_bytes == VALUE_BYTES[0]) {
        // Where nothing is read ahead, the index is not either.
        let means: Vec<f64> = row.fixed().skip(1).map(|cell| cell.seek.mean).collect();
        let (least, most) =
            means.iter().fold((f64::MAX, 0.0f64), |(least, most), &mean| (least.min(mean), most.max(mean)));
        seek = seek.max(most / least);
        let mean = |degree: u32| row.degree(&degree.to_string()).map_or(1.0, |cell| cell.next.mean);
        next = next.min(mean(DEGREES[0]) / mean(DEGREES[DEGREES.len() - 1]));
    }
    let verdict = Verdict::if_true(seek <= 1.2 && next > 1.0);
    (format!("{seek:.2}x; {next:.2}x"), verdict)
}

fn by_threads(rows: &[Row<'_>]) -> (String, Verdict) {
    let rate = |row: &Row<'_>, degree: u32| row.degree(&degree.to_string()).map_or(0.0, |cell| cell.bytes_s);
    let (Some(alone), Some(all)) = (rows.first(), rows.last()) else {
        return ("nothing was run".to_owned(), Verdict::NotReproduced);
    };
    let gains = THREAD_DEGREES.map(|degree| rate(all, degree) / rate(alone, degree));
    let degrees = rate(all, THREAD_DEGREES[3]) / rate(all, THREAD_DEGREES[0]);
    let shown: Vec<String> =
        THREAD_DEGREES.iter().zip(gains).map(|(degree, gain)| format!("degree {degree} {gain:.2}x")).collect();
    let top = rows.iter().flat_map(|row| row.fixed()).map(|cell| cell.bytes_s).fold(0.0, f64::max) / 1e6;
    let ours = format!("{}; at 16 threads degree 64 over 1 {degrees:.2}x; at most {top:.1} MB/s", shown.join(", "));
    // Where it has come to the top it stays, except for noise.
    let rises = |before: f64, after: f64| after >= (1.0 - EQUAL) * before;
    let by_threads = rows
        .windows(2)
        .all(|pair| THREAD_DEGREES.iter().all(|&degree| rises(rate(&pair[0], degree), rate(&pair[1], degree))));
    let by_degree =
        rows.iter().all(|row| THREAD_DEGREES.windows(2).all(|pair| rises(rate(row, pair[0]), rate(row, pair[1]))));
    let gains_enough =
        gains.iter().all(|&gain| gain > 1.2) && rate(alone, THREAD_DEGREES[3]) > rate(alone, THREAD_DEGREES[0]);
    // Flash is what is to be busy when nothing rises any more: where degrees gain nothing with all threads, it is the core.
    let verdict = match by_threads && by_degree && gains_enough {
        true if degrees > 1.0 + EQUAL => Verdict::Reproduced,
        true => Verdict::Direction,
        false => Verdict::NotReproduced,
    };
    (ours, verdict)
}

/// The knee of each row against D_opt, in steps of the sweep, for values that lie in one page.
fn knees(rows: &[Row<'_>]) -> (String, Verdict) {
    let step_of = |degree: f64| DEGREES.iter().position(|&step| f64::from(step) >= degree).unwrap_or(DEGREES.len() - 1);
    let (mut shown, mut worst) = (Vec::new(), 0);
    for row in rows.iter().filter(|row| row.cells[0].value_bytes <= 4096) {
        let best = row.best();
        let knee = row.fixed().position(|cell| cell.bytes_s >= (1.0 - EQUAL) * best).unwrap_or(0);
        // Where one value is read ahead nothing queues: the read takes what it takes.
        let times = row.degree("1").map(|cell| cell.times_ns).filter(|(read, _)| *read > 0);
        let Some((read, interval)) = times.filter(|_| row.gain() > 1.0) else { continue };
        let optimal = (read as f64 / interval.max(1) as f64).ceil();
        worst = worst.max(knee.abs_diff(step_of(optimal)));
        let at = row.cells[0];
        shown.push(format!("{} B x {}: {} / {optimal:.0}", at.value_bytes, at.scan_length, DEGREES[knee]));
    }
    let verdict = Verdict::if_true(worst <= 1 && !shown.is_empty());
    (format!("{}; {worst} steps apart at most", shown.join(", ")), verdict)
}

fn adaptive(rows: &[Row<'_>]) -> (String, Verdict) {
    let ratio = |row: &Row<'_>| row.degree("adaptive").map_or(0.0, |cell| cell.bytes_s) / row.best();
    let worst = rows.iter().min_by(|left, right| ratio(left).total_cmp(&ratio(right)));
    let Some(worst) = worst else { return ("nothing was run".to_owned(), Verdict::NotReproduced) };
    let at = worst.cells[0];
    let ours = format!(
        "{:.3}x (after {}, values of {} B, ranges of {}); {} cells",
        ratio(worst),
        at.order,
        at.value_bytes,
        at.scan_length,
        rows.len()
    );
    let gains = rows.iter().all(|row| row.gain() > 1.0);
    (ours, Verdict::if_true(gains && ratio(worst) >= 1.0 - EQUAL))
}
