//! Figures of papers: ours filled, the paper's values hollow beside them.

use super::Section;
use crate::chart::{Chart, Data, Entry, Mark};
use crate::palette::series;
use crate::scale::Scale;
use kvssd_measure::figure::{self, Kind, Places, Source};
use kvssd_measure::{Figure, Unit};

/// What of a row its bars take together, and what of its part a bar takes.
const ROW: f64 = 0.8;
const BAR: f64 = 0.9;
/// What lies beyond the least and the largest on a logarithmic scale, as a factor.
const LOG_MARGIN: f64 = 1.15;

/// A section for each paper.
pub fn sections(figures: &[Figure]) -> Vec<Section> {
    let of_paper = |figures: &[Figure]| Section {
        title: format!("Figures of {}", figures[0].paper),
        about: "What claims rest on, as the paper draws it. Filled is ours; hollow are the paper's values, where its text tells them.",
        charts: figures.iter().map(chart).collect(),
        left_out: 0,
    };
    figures.chunk_by(|left, right| left.paper == right.paper).map(of_paper).collect()
}

fn chart(figure: &Figure) -> Chart {
    let values = value_scale(figure);
    let (x, y) = match figure.kind {
        Kind::Bars => (values, along_scale(figure)),
        Kind::Lines => (along_scale(figure), values),
        Kind::Cdf => (values, along_scale(figure)),
    };
    let entries = figure.series.iter().map(|series| Entry {
        colour: colour(figure, series),
        is_hollow: is_hollow(series),
        name: series.label(),
    });
    let mut chart = Chart {
        title: format!("{} figure {}: {}", figure.paper, figure.number, figure.values.title),
        about: format!("{} ({})", figure.caption, figure.claims.join(", ")),
        at: Vec::new(),
        is_coloured: false,
        x,
        y,
        legend: if figure.series.len() > 1 { entries.collect() } else { Vec::new() },
        marks: Vec::new(),
        data: data(figure),
    };
    chart.marks = match figure.kind {
        Kind::Bars => bars(figure, &chart.x),
        Kind::Lines => figure.series.iter().flat_map(|series| line(figure, &chart.x, &chart.y, series)).collect(),
        Kind::Cdf => figure.series.iter().map(|series| cdf(figure, &chart.x, series)).collect(),
    };
    chart
}

/// A thing has the same colour whoever measured it.
fn colour(figure: &Figure, of: &figure::Series) -> crate::palette::Colour {
    let mut names: Vec<&str> = Vec::new();
    for series in &figure.series {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    series(names.iter().position(|name| *name == of.name).unwrap_or(0))
}

fn is_hollow(series: &figure::Series) -> bool {
    series.source != Source::Ours
}

fn value_scale(figure: &Figure) -> Scale {
    // The title of a chart says what its values are; that of a CDF is along it as well.
    let title = if figure.kind == Kind::Cdf { figure.values.title.as_str() } else { "" };
    let (least, most) =
        figure.all().fold((f64::MAX, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
    match figure.values.scale {
        figure::Scale::Linear => Scale::from_zero(title, most, figure.values.unit),
        figure::Scale::Log => Scale::log(title, least / LOG_MARGIN, most * LOG_MARGIN, figure.values.unit),
    }
}

fn along_scale(figure: &Figure) -> Scale {
    let along = &figure.along;
    match (&along.places, figure.kind) {
        (Places::Names(names), Kind::Bars) => Scale::of_names(names),
        (Places::Names(names), _) => {
            let ticks: Vec<(f64, String)> =
                names.iter().enumerate().map(|(at, name)| (at as f64, name.clone())).collect();
            Scale::of_values(&along.title, &ticks)
        }
        // Of parts of a whole none is drawn larger than another.
        (Places::Numbers(shares), _) if figure.kind == Kind::Cdf || along.unit == Unit::Share => {
            Scale::between(&along.title, shares[0], shares[shares.len() - 1], along.unit)
        }
        (Places::Numbers(numbers), _) => {
            let ticks: Vec<(f64, String)> =
                numbers.iter().map(|number| (*number, along.unit.tick(rounded(*number)))).collect();
            Scale::of_values(&along.title, &ticks)
        }
    }
}

/// With three digits.
fn rounded(number: f64) -> f64 {
    format!("{number:.2e}").parse().unwrap_or(number)
}

/// Where the places are on their scale.
fn places(figure: &Figure, scale: &Scale) -> Vec<f64> {
    match &figure.along.places {
        Places::Names(names) => (0..names.len()).map(|at| at as f64).collect(),
        Places::Numbers(numbers) => numbers.iter().map(|number| scale.place(*number)).collect(),
    }
}

/// The bars of a row stand without gaps, in the middle of it: where the paper says nothing, nothing is left free.
fn bars(figure: &Figure, x: &Scale) -> Vec<Mark> {
    let rows = figure.series[0].values.len();
    let bars_of = |row: usize| {
        let all = figure.series.iter().filter_map(move |series| Some((series, series.values[row]?)));
        all.collect::<Vec<_>>()
    };
    let thick = ROW / (0..rows).map(|row| bars_of(row).len()).max().unwrap_or(0).max(1) as f64;
    let marks_of = |row: usize| {
        let bars = bars_of(row);
        let first = -(row as f64) - (1.0 - bars.len() as f64 * thick) / 2.0;
        let mark = |(number, (series, value)): (usize, (&figure::Series, f64))| {
            let (colour, top) = (colour(figure, series), first - number as f64 * thick);
            let (from, to) = ((x.from, top), (x.place(value), top - thick * BAR));
            if is_hollow(series) { Mark::Frame { colour, from, to } } else { Mark::Bar { colour, from, to } }
        };
        bars.into_iter().enumerate().map(mark).collect::<Vec<_>>()
    };
    (0..rows).flat_map(marks_of).collect()
}

/// Ours are joined; the paper's are single points of what it draws.
fn line(figure: &Figure, x: &Scale, y: &Scale, series: &figure::Series) -> Vec<Mark> {
    let colour = colour(figure, series);
    let all = places(figure, x).into_iter().zip(&series.values);
    let points: Vec<(f64, f64)> = all.filter_map(|(at, value)| Some((at, y.place((*value)?)))).collect();
    if is_hollow(series) {
        return points.into_iter().map(|at| Mark::Ring { colour, at }).collect();
    }
    let dots = points.iter().map(|&at| Mark::Dot { colour, at });
    dots.chain([Mark::Line { colour, points: points.clone() }]).collect()
}

fn cdf(figure: &Figure, x: &Scale, series: &figure::Series) -> Mark {
    let shares = places(figure, &Scale::between("", 0.0, 1.0, figure.along.unit));
    let points = series.values.iter().zip(shares).filter_map(|(value, share)| Some((x.place((*value)?), share)));
    Mark::Line { colour: colour(figure, series), points: points.collect() }
}

fn data(figure: &Figure) -> Data {
    let unit = match figure.values.unit {
        Unit::Time => "value_ns",
        Unit::Bytes => "value_bytes",
        Unit::BytesPerSecond => "value_bytes_s",
        Unit::PerSecond => "value_per_s",
        Unit::Share | Unit::Count | Unit::Plain => "value",
    };
    let places: Vec<String> = match &figure.along.places {
        Places::Names(names) => names.clone(),
        Places::Numbers(numbers) => numbers.iter().map(f64::to_string).collect(),
    };
    let mut data = Data::new([figure.along.title.as_str(), "series", unit]);
    for series in &figure.series {
        for (place, value) in places.iter().zip(&series.values) {
            if let Some(value) = value {
                data.add([place.clone(), series.label(), value.to_string()]);
            }
        }
    }
    data
}
