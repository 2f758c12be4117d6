//! Figures over virtual time: those of intervals, else of rounds.

use super::titled;
use crate::chart::{Chart, Data, Entry, Mark};
use crate::layout::{Layout, Panel};
use crate::palette::series;
use crate::scale::Scale;
use kvssd_measure::Unit;

/// Columns of a series that are drawn.
const COLUMNS: [(&str, &str, Unit); 5] = [
    ("throughput_ops_s", "throughput, op/s", Unit::PerSecond),
    ("retrieve_p99_ns", "retrieve p99", Unit::Time),
    ("store_p99_ns", "store p99", Unit::Time),
    ("write_amplification", "write amplification", Unit::Plain),
    ("free_superblocks", "free superblocks", Unit::Plain),
];

/// The most points of a line.
const POINTS_MAX: usize = 400;

/// A chart for each column and each panel.
pub fn charts(layout: &Layout<'_>) -> Vec<Chart> {
    let panels = layout.narrow_panels();
    let of_column = |column: &(&str, &str, Unit)| {
        panels.iter().filter_map(|panel| chart(layout, panel, *column)).collect::<Vec<_>>()
    };
    COLUMNS.iter().flat_map(of_column).collect()
}

/// Times and figures of a line.
type Points = Vec<(f64, f64)>;

fn chart(layout: &Layout<'_>, panel: &Panel<'_>, (column, name, unit): (&str, &str, Unit)) -> Option<Chart> {
    let points = |group: &crate::study::Group| -> Option<Points> {
        let run = group.runs.first()?;
        let points = run.column("end_ns")?.into_iter().zip(run.column(column)?);
        Some(points.filter_map(|(end, figure)| Some((end?, figure?))).collect())
    };
    let lines: Vec<(usize, String, Points)> = panel
        .groups
        .iter()
        .filter_map(|group| {
            let (colour, name) = layout.colour_of(group);
            Some((colour, name, points(group).filter(|points| points.len() > 1)?))
        })
        .collect();
    let all = || lines.iter().flat_map(|(_, _, points)| points);
    let end = all().map(|(end, _)| *end).reduce(f64::max)?;
    let most = all().map(|(_, figure)| *figure).reduce(f64::max)?;
    let mut chart = Chart {
        title: titled(name, &panel.name),
        about: String::new(),
        at: panel.at.clone(),
        is_coloured: layout.colour.is_some(),
        x: Scale::from_zero("time", end, Unit::Time),
        y: Scale::from_zero(name, most, unit),
        legend: Vec::new(),
        marks: Vec::new(),
        data: Data::new(["at", "end_ns", column]),
    };
    for (number, name, points) in lines {
        let colour = series(number);
        for (end, figure) in &points {
            chart.data.add([name.clone(), end.to_string(), figure.to_string()]);
        }
        chart.marks.push(Mark::Line { colour, points: thinned(&points) });
        if layout.colour.is_some() {
            chart.legend.push(Entry::filled(colour, name));
        }
    }
    Some(chart)
}

/// At most [`POINTS_MAX`], each the mean of as many as it takes, at the end of the last of them.
fn thinned(points: &[(f64, f64)]) -> Points {
    let together = points.len().div_ceil(POINTS_MAX).max(1);
    let mean = |part: &[(f64, f64)]| part.iter().map(|(_, figure)| figure).sum::<f64>() / part.len() as f64;
    points.chunks(together).map(|part| (part[part.len() - 1].0, mean(part))).collect()
}
