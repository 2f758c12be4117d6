//! How latencies are distributed: a line for each colour, from all seeds together.

use super::titled;
use crate::chart::{Chart, Data, Entry, Mark};
use crate::layout::{Layout, Panel};
use crate::palette::series;
use crate::scale::Scale;
use crate::study::Group;
use kvssd_measure::Latencies;
use kvssd_measure::Unit;
use std::collections::BTreeSet;

/// Shares of the commands, in parts of this: those of a line.
const STEPS: u32 = 200;
/// And those at its end.
const TAIL: [f64; 3] = [0.999, 0.9999, 1.0];

/// Shares of the commands, and how many nanoseconds they took at most.
type Steps = Vec<(f64, u64)>;

/// A chart for each kind of command and each panel.
pub fn charts(layout: &Layout<'_>) -> Vec<Chart> {
    let panels = layout.narrow_panels();
    let runs = panels.iter().flat_map(|panel| &panel.groups).flat_map(|group| &group.runs);
    let commands: BTreeSet<&str> = runs.flat_map(|run| run.commands()).collect();
    commands.iter().flat_map(|command| panels.iter().filter_map(|panel| chart(layout, panel, command))).collect()
}

fn chart(layout: &Layout<'_>, panel: &Panel<'_>, command: &str) -> Option<Chart> {
    let lines: Vec<(usize, String, Steps)> = panel
        .groups
        .iter()
        .filter_map(|group| {
            let (colour, name) = layout.colour_of(group);
            Some((colour, name, steps(&merged(group, command)?)))
        })
        .collect();
    let least = lines.iter().filter_map(|(_, _, steps)| steps.first()).map(|(_, latency)| *latency).min()?;
    let most = lines.iter().filter_map(|(_, _, steps)| steps.last()).map(|(_, latency)| *latency).max()?;
    let mut chart = Chart {
        title: titled(&format!("{command} latency"), &panel.name),
        about: String::new(),
        at: panel.at.clone(),
        is_coloured: layout.colour.is_some(),
        x: Scale::log("latency", least.max(1) as f64, most as f64, Unit::Time),
        y: Scale::from_zero("commands", 0.98, Unit::Share),
        legend: Vec::new(),
        marks: Vec::new(),
        data: Data::new(["at", "share", "latency_ns"]),
    };
    for (number, name, steps) in lines {
        let colour = series(number);
        let points = steps.iter().map(|(share, latency)| (chart.x.place(*latency as f64), *share)).collect();
        chart.marks.push(Mark::Line { colour, points });
        for (share, latency) in steps {
            chart.data.add([name.clone(), share.to_string(), latency.to_string()]);
        }
        if layout.colour.is_some() {
            chart.legend.push(Entry::filled(colour, name));
        }
    }
    Some(chart)
}

fn merged(group: &Group, command: &str) -> Option<Latencies> {
    let latencies = group.runs.iter().filter_map(|run| run.latencies(command));
    let all = latencies.reduce(|mut all, one| {
        all.merge(&one);
        all
    });
    all.filter(|all| !all.is_empty())
}

fn steps(latencies: &Latencies) -> Steps {
    let shares = (0..STEPS).map(|step| f64::from(step) / f64::from(STEPS)).chain(TAIL);
    shares.map(|share| (share, latencies.quantile_ns(share))).collect()
}
