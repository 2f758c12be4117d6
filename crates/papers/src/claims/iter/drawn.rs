//! The paper's figures 7 to 11, of what was measured. Its text gives no value of any of them but ratios of the best cells.

use super::sweep::{DEGREES, Row, SCAN_LENGTHS, SweepCell, VALUE_BYTES};
use super::{THREAD_DEGREES, rows};
use crate::claims::size_name;
use kvssd_measure::figure::{Along, Kind, Values};
use kvssd_measure::{Figure, Latencies, Unit};

/// Values of the panels (a) to (d). The text names the first, the second and the last.
const PANEL_VALUE_BYTES: [u32; 4] = [VALUE_BYTES[0], VALUE_BYTES[2], VALUE_BYTES[3], VALUE_BYTES[4]];
/// The shares of figure 7's enlarged part begin here.
const TAIL_FROM: f64 = 0.99;
/// Shares of either part of figure 7.
const SHARES: u32 = 100;

/// Figures 8 to 10, after both orders.
pub(super) fn of_sweep(scattered: &[Row<'_>], ordered: &[Row<'_>]) -> Vec<Figure> {
    let panels = |letters: [&'static str; 4]| letters.into_iter().zip(PANEL_VALUE_BYTES);
    let rates = |number: &str, claims: &[u32], rows: &[Row<'_>], gain: &str| {
        let of = |(letter, bytes): (&str, u32)| throughput(&format!("{number}{letter}"), claims, bytes, rows, gain);
        panels(["a", "b", "c", "d"]).map(of).collect::<Vec<_>>()
    };
    let mut figures = rates("8", &[1, 7, 12, 14], scattered, "fillrandom; the paper's best gain is 4.13x");
    figures.extend(panels(["e", "f", "g", "h"]).map(|(letter, bytes)| time(&format!("8{letter}"), bytes, scattered)));
    figures.push(commands(scattered));
    figures.extend(rates("10", &[2, 14], ordered, "fillseq; the paper's best gain is 7.22x"));
    figures
}

fn by_degree(number: &str, claims: &[u32], caption: &str, values: Values) -> Figure {
    let along = Along::names("values read ahead", DEGREES);
    Figure::new("iter", number, claims, caption, Kind::Lines, along, values)
}

/// The rows of one size of values, by scan length.
fn of_size<'r, 'c>(rows: &'r [Row<'c>], value_bytes: u32) -> impl Iterator<Item = (String, &'r Row<'c>)> {
    let of_size = rows.iter().filter(move |row| row.cells[0].value_bytes == value_bytes);
    of_size.map(|row| (format!("ranges of {}", row.cells[0].scan_length), row))
}

fn throughput(number: &str, claims: &[u32], value_bytes: u32, rows: &[Row<'_>], gain: &str) -> Figure {
    let size = size_name(value_bytes);
    let caption = format!("Values of {size}: throughput of ranges by degree, after {gain} over all panels.");
    let values = Values::linear(&format!("range throughput, {size}"), Unit::BytesPerSecond);
    of_size(rows, value_bytes).fold(by_degree(number, claims, &caption, values), |figure, (name, row)| {
        figure.ours(&name, row.fixed().map(|cell| cell.bytes_s))
    })
}

fn time(number: &str, value_bytes: u32, rows: &[Row<'_>]) -> Figure {
    let size = size_name(value_bytes);
    let caption = format!(
        "Values of {size}: time of a range by degree, after fillrandom. The paper's 8e (128 B) and 8f (4 KB) are the same."
    );
    let values = Values::linear(&format!("time of a range, {size}"), Unit::Time);
    let ns = |cell: &SweepCell| f64::from(cell.scan_length) * f64::from(cell.value_bytes) / cell.bytes_s * 1e9;
    of_size(rows, value_bytes).fold(by_degree(number, &[11, 13], &caption, values), |figure, (name, row)| {
        figure.ours(&name, row.fixed().map(ns))
    })
}

/// Figure 9: both commands, values of 128 B.
fn commands(rows: &[Row<'_>]) -> Figure {
    let caption = "Values of 128 B: mean latency of Seek, which the paper finds the same at every degree, and of Next, which falls.";
    let figure = by_degree("9", &[4, 13], caption, Values::linear("mean latency", Unit::Time));
    of_size(rows, VALUE_BYTES[0]).fold(figure, |figure, (name, row)| {
        figure
            .ours(&format!("Seek, {name}"), row.fixed().map(|cell| cell.seek.mean))
            .ours(&format!("Next, {name}"), row.fixed().map(|cell| cell.next.mean))
    })
}

/// Figure 11: ranges side by side.
pub(super) fn threads(cells: &[SweepCell]) -> Figure {
    let caption = format!(
        "Ranges of {} values of 128 B after fillseq: throughput of all threads, which the paper finds to rise with both.",
        SCAN_LENGTHS[0]
    );
    let values = Values::linear("range throughput of all threads", Unit::BytesPerSecond);
    let along = Along::names("values read ahead", THREAD_DEGREES);
    let figure = Figure::new("iter", "11", &[5], &caption, Kind::Lines, along, values);
    rows(cells).iter().fold(figure, |figure, row| {
        let name = match row.cells[0].threads {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        figure.ours(&name, row.fixed().map(|cell| cell.bytes_s))
    })
}

/// Figure 7: latencies of Next without and with the index read ahead, and their tail enlarged.
pub(super) fn next_latencies(without: &Latencies, with: &Latencies) -> [Figure; 2] {
    [("7", 0.0, "Latency of Next, ranges of 200 k."), ("7 tail", TAIL_FROM, "The slowest hundredth of figure 7.")].map(
        |(number, from, what)| {
            let share = |step: u32| from + (1.0 - from) * f64::from(step) / f64::from(SHARES);
            let shares: Vec<f64> = (0..=SHARES).map(share).collect();
            let of = |latencies: &Latencies| {
                shares.iter().map(|&share| latencies.quantile_ns(share).max(1) as f64).collect::<Vec<f64>>()
            };
            let caption = format!("{what} The paper says that P99.9 is 3.6 times lower with the index read ahead.");
            let along = Along::numbers("commands", Unit::Share, shares.iter().copied());
            let values = Values::log("latency of Next", Unit::Time);
            Figure::new("iter", number, &[3], &caption, Kind::Cdf, along, values)
                .ours("nothing ahead (iter-b)", of(without))
                .ours("index ahead (iter-i)", of(with))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Paper;
    use crate::claims::experiment::assert_drawable;

    use kvssd_measure::LatencySummary;
    use kvssd_types::Nanos;

    fn latencies() -> Latencies {
        let mut latencies = Latencies::new();
        (1..=1000).for_each(|ns| latencies.add(Nanos(ns)));
        latencies
    }

    fn cells(order: &str, threads: u32) -> Vec<SweepCell> {
        let took: LatencySummary = latencies().summary();
        let cell = |value_bytes, scan_length, degree: String| SweepCell {
            order: order.to_owned(),
            value_bytes,
            scan_length,
            threads,
            degree,
            bytes_s: 1e6,
            seek: took.clone(),
            next: took.clone(),
            times_ns: (1, 1),
            wrong: 0,
        };
        let degrees = || DEGREES.map(|degree| degree.to_string()).into_iter().chain(["adaptive".to_owned()]);
        let lengths = VALUE_BYTES.into_iter().flat_map(|bytes| SCAN_LENGTHS.map(|length| (bytes, length)));
        lengths
            .flat_map(|(bytes, length)| degrees().map(move |degree| (bytes, length, degree)))
            .map(|(bytes, length, degree)| cell(bytes, length, degree))
            .collect()
    }

    #[test]
    fn figures_can_be_drawn_and_are_of_claims() {
        let (scattered, ordered) = (cells("fillrandom", 1), cells("fillseq", 1));
        let mut figures = of_sweep(&rows(&scattered), &rows(&ordered));
        assert_eq!(figures.len(), 4 + 4 + 1 + 4);
        let time = figures.iter().find(|figure| figure.number == "8e").unwrap();
        let of_a_range = 128.0 * 128.0 / 1e6 * 1e9;
        assert_eq!((time.series.len(), time.series[0].values[0]), (SCAN_LENGTHS.len(), Some(of_a_range)));
        figures.extend(next_latencies(&latencies(), &latencies()));
        let fixed = |cell: &SweepCell| THREAD_DEGREES.iter().any(|degree| degree.to_string() == cell.degree);
        let side_by_side: Vec<SweepCell> = cells("fillseq", 2)
            .into_iter()
            .filter(|cell| (cell.value_bytes, cell.scan_length) == (128, 128) && fixed(cell))
            .collect();
        figures.push(threads(&side_by_side));
        assert_drawable(&figures, &Paper::Iter.ids());
    }
}
