//! What something is made of: a bar for each group, its parts one behind the other.

use super::titled;
use crate::chart::{Chart, Data, Entry, Mark};
use crate::layout::{Layout, Panel};
use crate::palette::{SERIES, series};
use crate::run::Run;
use crate::scale::Scale;
use kvssd_measure::Unit;

/// Commands whose time is split.
const COMMANDS: [&str; 2] = ["retrieve", "store"];

/// Of the mean latency of a command.
pub fn latency_charts(layout: &Layout<'_>) -> Vec<Chart> {
    let panels = layout.panels();
    let of_command = |command: &'static str| {
        let parts = format!("/spent_ns/{command}");
        let mean = {
            let parts = parts.clone();
            move |run: &Run, spent: f64| {
                let all: f64 = run.numbers(&parts).iter().map(|(_, spent)| spent).sum();
                if all > 0.0 { spent / all * mean_ns(run, command) } else { 0.0 }
            }
        };
        let title = format!("mean {command} latency");
        panels.iter().filter_map(|panel| chart(layout, panel, &title, Unit::Time, &parts, &mean)).collect::<Vec<_>>()
    };
    COMMANDS.into_iter().flat_map(of_command).collect()
}

/// The mean latency of a command, those that found nothing with it, which a replay counts by themselves. It is no sum of what was spent over
/// their number: a value in segments takes several commands of the drive side by side.
fn mean_ns(run: &Run, command: &str) -> f64 {
    let names = if command == "retrieve" { &["retrieve", "miss"][..] } else { &[command] };
    let of = |name: &&str| {
        let figure = |figure: &str| run.number(&format!("/latency_ns/{name}/{figure}"));
        figure("count").zip(figure("mean"))
    };
    let found: Vec<(f64, f64)> = names.iter().filter_map(of).collect();
    let count: f64 = found.iter().map(|(count, _)| count).sum();
    found.iter().map(|(count, mean)| count * mean).sum::<f64>() / count.max(1.0)
}

/// Of the DRAM that the device takes.
pub fn dram_charts(layout: &Layout<'_>) -> Vec<Chart> {
    let panels = layout.panels();
    let of_panel = |panel| chart(layout, panel, "device DRAM", Unit::Bytes, "/dram/parts", &|_, bytes| bytes);
    panels.iter().filter_map(of_panel).collect()
}

/// `parts` is where a run has them; `share` makes of one what is shown.
fn chart(
    layout: &Layout<'_>,
    panel: &Panel<'_>,
    title: &str,
    unit: Unit,
    parts: &str,
    share: &dyn Fn(&Run, f64) -> f64,
) -> Option<Chart> {
    let names = names(panel, parts, share);
    let figure = |group: &crate::study::Group, name: &str| {
        group.mean(|run| run.number(&format!("{parts}/{name}")).map_or(0.0, |part| share(run, part)))
    };
    let mut groups = panel.groups.clone();
    // What is compared stands one below the other: all colours of a value along the axis.
    groups.sort_by_key(|group| layout.along_of(group).map(|(_, number)| number));
    let bars: Vec<Vec<f64>> =
        groups.iter().map(|group| names.iter().map(|name| figure(group, name)).collect()).collect();
    let most = bars.iter().map(|bar| bar.iter().sum::<f64>()).reduce(f64::max).filter(|most| *most > 0.0)?;
    let places: Vec<String> = groups.iter().map(|group| layout.name_in_panel(group)).collect();
    // The largest have colours of their own, the others share the last.
    let own = if names.len() > SERIES.len() { SERIES.len() - 1 } else { names.len() };
    let mut legend: Vec<_> =
        names[..own].iter().enumerate().map(|(number, name)| Entry::filled(series(number), words(name))).collect();
    if own < names.len() {
        legend.push(Entry::filled(series(own), "other".to_owned()));
    }
    let mut chart = Chart {
        title: titled(title, &panel.name),
        about: String::new(),
        at: panel.at.clone(),
        is_coloured: false,
        x: Scale::from_zero("", most, unit),
        y: Scale::of_names(&places),
        legend,
        marks: Vec::new(),
        data: Data::new(["at", "part", if unit == Unit::Time { "mean_ns" } else { "bytes" }]),
    };
    for (row, (bar, place)) in bars.iter().zip(places).enumerate() {
        let mut end = 0.0;
        for (number, (part, name)) in bar.iter().zip(&names).enumerate() {
            let (begin, top) = (end, -(row as f64) - 0.12);
            end += part;
            if *part > 0.0 {
                let colour = series(number.min(own));
                chart.marks.push(Mark::Bar { colour, from: (begin, top), to: (end, top - 0.76) });
            }
            chart.data.add([place.clone(), name.clone(), part.to_string()]);
        }
    }
    Some(chart)
}

/// The names of parts that are more than nothing, the largest in all groups first.
fn names(panel: &Panel<'_>, parts: &str, share: &dyn Fn(&Run, f64) -> f64) -> Vec<String> {
    let mut sums: Vec<(String, f64)> = Vec::new();
    for run in panel.groups.iter().flat_map(|group| &group.runs) {
        for (name, part) in run.numbers(parts) {
            let part = share(run, part);
            match sums.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += part,
                None => sums.push((name.to_owned(), part)),
            }
        }
    }
    sums.retain(|(_, sum)| *sum > 0.0);
    sums.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sums.into_iter().map(|(name, _)| name).collect()
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}
