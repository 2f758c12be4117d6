//! A figure by an axis: lines along numbers, bars for names.

use super::titled;
use crate::chart::{Chart, Data, Entry, Mark};
use crate::layout::{Layout, Panel};
use crate::palette::series;
use crate::run::{FIGURES, Figure};
use crate::scale::Scale;
use crate::study::{Axis, Estimate, Group};
use kvssd_measure::Unit;
use std::collections::{BTreeMap, BTreeSet};

/// A group in a chart.
struct Shown<'a> {
    colour: usize,
    name: String,
    group: &'a Group,
    estimate: Estimate,
}

/// A chart for each figure that is drawn, and each panel, if there is anything to compare.
pub fn charts(layout: &Layout<'_>) -> Vec<Chart> {
    let panels = layout.panels();
    // One group has nothing beside it.
    if panels.iter().map(|panel| panel.groups.len()).sum::<usize>() < 2 {
        return Vec::new();
    }
    let drawn = FIGURES.iter().filter(|figure| figure.is_drawn);
    drawn.flat_map(|figure| panels.iter().filter_map(|panel| chart(layout, panel, figure))).collect()
}

fn chart(layout: &Layout<'_>, panel: &Panel<'_>, figure: &Figure) -> Option<Chart> {
    let mut shown = Vec::new();
    for group in &panel.groups {
        let (colour, name) = layout.colour_of(group);
        shown.extend(group.estimate(figure).map(|estimate| Shown { colour, name, group, estimate }));
    }
    let most = shown.iter().map(|shown| shown.estimate.mean + shown.estimate.half_width.unwrap_or(0.0));
    let most = most.reduce(f64::max)?;
    let scale = Scale::from_zero("", most, figure.unit);
    let axis = layout.along_of(panel.groups[0]).map(|(axis, _)| axis);
    let mut chart = match axis.and_then(|axis| Some((axis, axis.numbers()?))) {
        Some((axis, numbers)) => lines(layout, &shown, axis, &numbers, scale),
        None => bars(layout, &shown, scale),
    };
    chart.title = titled(figure.name, &panel.name);
    chart.at = panel.at.clone();
    chart.is_coloured = layout.colour.is_some();
    chart.data = data(layout, &shown, figure);
    Some(chart)
}

fn empty(x: Scale, y: Scale, legend: Vec<Entry>) -> Chart {
    Chart {
        title: String::new(),
        about: String::new(),
        at: Vec::new(),
        is_coloured: false,
        x,
        y,
        legend,
        marks: Vec::new(),
        data: Data::default(),
    }
}

/// A line for each colour.
fn lines(layout: &Layout<'_>, shown: &[Shown<'_>], axis: &Axis, numbers: &[f64], y: Scale) -> Chart {
    let ticks: Vec<(f64, String)> = numbers.iter().copied().zip(axis.values.iter().cloned()).collect();
    let x = Scale::of_values(&axis.name, &ticks);
    let mut chart = empty(x, y, legend(layout, shown));
    let mut lines: BTreeMap<usize, Vec<(f64, Estimate)>> = BTreeMap::new();
    for Shown { colour, group, estimate, .. } in shown {
        let (_, number) = layout.along_of(group).expect("there is an axis along the plot");
        lines.entry(*colour).or_default().push((chart.x.place(numbers[number]), *estimate));
    }
    for (number, mut points) in lines {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let colour = series(number);
        for (x, Estimate { mean, half_width }) in &points {
            if let Some(half) = half_width {
                let (from, to) = ((*x, (mean - half).max(0.0)), (*x, mean + half));
                chart.marks.push(Mark::Interval { colour, from, to });
            }
            chart.marks.push(Mark::Dot { colour, at: (*x, *mean) });
        }
        let points = points.into_iter().map(|(x, estimate)| (x, estimate.mean)).collect();
        chart.marks.push(Mark::Line { colour, points });
    }
    chart
}

/// A bar for each name along the axis and each colour, one below the other.
fn bars(layout: &Layout<'_>, shown: &[Shown<'_>], x: Scale) -> Chart {
    let name_of = |shown: &Shown<'_>| match layout.along_of(shown.group) {
        Some((axis, number)) => (number, axis.values[number].clone()),
        None => (shown.colour, shown.name.clone()),
    };
    let rows: BTreeMap<usize, String> = shown.iter().map(name_of).collect();
    let row_of = |shown: &Shown<'_>| rows.keys().position(|row| *row == name_of(shown).0).unwrap_or(0);
    let colours: BTreeSet<usize> = shown.iter().map(|shown| shown.colour).collect();
    // Names that are colours at the same time have a bar each.
    let beside = if layout.along.is_some() { colours.len() } else { 1 };
    let legend = if layout.along.is_some() { legend(layout, shown) } else { Vec::new() };
    let mut chart = empty(x, Scale::of_names(&rows.values().cloned().collect::<Vec<_>>()), legend);
    let thick = 0.8 / beside as f64;
    for one in shown {
        let place = if beside == 1 { 0 } else { colours.iter().position(|colour| *colour == one.colour).unwrap_or(0) };
        let top = -(row_of(one) as f64) - 0.1 - place as f64 * thick;
        let Estimate { mean, half_width } = one.estimate;
        let colour = series(one.colour);
        chart.marks.push(Mark::Bar { colour, from: (0.0, top), to: (mean, top - thick * 0.9) });
        if let Some(half) = half_width {
            let middle = top - thick * 0.45;
            let (from, to) = (((mean - half).max(0.0), middle), (mean + half, middle));
            chart.marks.push(Mark::Interval { colour, from, to });
        }
    }
    chart
}

fn legend(layout: &Layout<'_>, shown: &[Shown<'_>]) -> Vec<Entry> {
    if layout.colour.is_none() {
        return Vec::new();
    }
    let names: BTreeMap<usize, &String> = shown.iter().map(|shown| (shown.colour, &shown.name)).collect();
    names.into_iter().map(|(number, name)| Entry::filled(series(number), name.clone())).collect()
}

fn data(layout: &Layout<'_>, shown: &[Shown<'_>], figure: &Figure) -> Data {
    let unit = match figure.unit {
        Unit::Time => "_ns",
        Unit::Bytes => "_bytes",
        Unit::BytesPerSecond => "_bytes_s",
        Unit::PerSecond | Unit::Share | Unit::Count | Unit::Plain => "",
    };
    let mut data = Data::new(["at", "runs", &format!("mean{unit}"), &format!("half_width_95{unit}")]);
    for Shown { group, estimate, .. } in shown {
        let half_width = estimate.half_width.map(|half| half.to_string()).unwrap_or_default();
        data.add([layout.place_of(group), group.runs.len().to_string(), estimate.mean.to_string(), half_width]);
    }
    data
}
