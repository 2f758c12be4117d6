//! Tables: of the figures of groups, of claims.

use crate::charts::CHARTS_MAX;
use crate::layout::Layout;
use crate::run::{FIGURES, Figure};
use crate::study::{Estimate, Study};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub struct Table {
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<Row>,
    /// How many more of the kind there are behind this one, for which a page has no room.
    pub left_out: usize,
}

/// A row, with as many cells as there are columns.
#[derive(Serialize)]
pub struct Row {
    /// The numbers of the values of axes that it is of.
    pub at: BTreeMap<usize, usize>,
    pub cells: Vec<Cell>,
}

#[derive(Default, Serialize)]
pub struct Cell {
    pub text: String,
    /// By which it is sorted, and what is saved; a text has none.
    pub number: Option<f64>,
    /// The interval.
    pub half_width: Option<String>,
    /// Of a verdict: how it is shown.
    pub class: Option<&'static str>,
    /// Of a heat map: per cent of the highest of its row.
    pub heat_percent: Option<u32>,
}

/// All tables that have rows.
pub fn tables(study: &Study) -> Vec<Table> {
    let all = heat_maps(study).into_iter().chain([figures(study), claims(&study.claims)]);
    all.filter(|table| !table.rows.is_empty()).collect()
}

/// The tables behind those, which are long.
pub fn details(study: &Study) -> Vec<Table> {
    std::iter::once(ablations(&study.claims)).filter(|table| !table.rows.is_empty()).collect()
}

/// Throughput by two axes of names, a map for each combination of values of the other axes.
fn heat_maps(study: &Study) -> Vec<Table> {
    let layout = Layout::of(study);
    let Some((along, across)) = layout.map_axes() else { return Vec::new() };
    let figure = &FIGURES[0];
    let of_panel = |panel: &crate::layout::Panel<'_>| {
        let name = if panel.name.is_empty() { String::new() } else { format!(": {}", panel.name) };
        let heading = std::iter::once(study.axes[along].name.clone());
        let rows = study.axes[along].values.iter().enumerate().map(|(row, name)| {
            let of_row = panel.groups.iter().copied().filter(|group| group.at[along] == row);
            let at = panel.at.iter().copied().chain([(along, row)]).collect();
            Row { at, cells: heat_row(name, study.axes[across].values.len(), across, of_row, figure) }
        });
        Table {
            title: format!("{} by {}{name}", figure.name, study.axes[along].name),
            columns: heading.chain(study.axes[across].values.iter().cloned()).collect(),
            rows: rows.collect(),
            left_out: 0,
        }
    };
    let panels = layout.panels_but(&[Some(along), Some(across)]);
    let mut maps: Vec<Table> = panels.iter().take(CHARTS_MAX).map(of_panel).collect();
    maps.last_mut().into_iter().for_each(|last| last.left_out = panels.len().saturating_sub(CHARTS_MAX));
    maps
}

fn heat_row<'a>(
    name: &str,
    columns: usize,
    across: usize,
    groups: impl Iterator<Item = &'a crate::study::Group>,
    figure: &Figure,
) -> Vec<Cell> {
    let mut means = vec![None; columns];
    for group in groups {
        means[group.at[across]] = group.estimate(figure).map(|estimate| estimate.mean);
    }
    let highest = means.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
    let cell = |mean: Option<f64>| match mean {
        None => Cell { text: "–".to_owned(), ..Cell::default() },
        Some(mean) => {
            let heat_percent = Some((100.0 * mean / highest).round() as u32);
            Cell { text: figure.unit.text(mean), number: Some(mean), heat_percent, ..Cell::default() }
        }
    };
    let first = Cell { text: name.to_owned(), ..Cell::default() };
    std::iter::once(first).chain(means.into_iter().map(cell)).collect()
}

/// A row for each group, a column for each axis and each figure that any has.
fn figures(study: &Study) -> Table {
    let is_there = |figure: &&crate::run::Figure| study.groups.iter().any(|group| group.estimate(figure).is_some());
    let shown: Vec<_> = FIGURES.iter().filter(is_there).collect();
    let names = study.axes.iter().map(|axis| axis.name.clone());
    let columns = names.chain(["runs".to_owned()]).chain(shown.iter().map(|figure| figure.name.to_owned())).collect();
    let row = |group: &crate::study::Group| {
        let at = group.at.iter().copied().enumerate().collect();
        let places = study.axes.iter().zip(&group.at).map(|(axis, value)| {
            let text = axis.values[*value].clone();
            Cell { number: axis.numbers().map(|numbers| numbers[*value]), text, ..Cell::default() }
        });
        let count = group.runs.len();
        let count = Cell { text: count.to_string(), number: Some(count as f64), ..Cell::default() };
        let figures = shown.iter().map(|figure| match group.estimate(figure) {
            None => Cell { text: "–".to_owned(), ..Cell::default() },
            Some(Estimate { mean, half_width }) => Cell {
                text: figure.unit.text(mean),
                number: Some(mean),
                half_width: half_width.map(|half| figure.unit.text(half)),
                ..Cell::default()
            },
        });
        Row { at, cells: places.chain([count]).chain(figures).collect() }
    };
    let rows = study.groups.iter().map(row).collect();
    Table { title: "Figures".to_owned(), columns, rows, left_out: 0 }
}

fn claims(claims: &[Value]) -> Table {
    const FIELDS: [&str; 8] = ["id", "claim", "paper", "ours", "scale", "verdict", "cause", "lost_with"];
    let rows = claims.iter().map(|claim| row(FIELDS.map(|field| cell(field, &claim[field])))).collect();
    Table { title: "Claims".to_owned(), columns: names(FIELDS), rows, left_out: 0 }
}

/// What came out under assumptions of the paper's testbed.
fn ablations(claims: &[Value]) -> Table {
    const FIELDS: [&str; 3] = ["assumed", "ours", "verdict"];
    let of_claim = |claim: &Value| {
        let id = cell("id", &claim["id"]).text;
        let rows = claim["ablation"].as_array().into_iter().flatten().map(move |ablation| {
            let id = Cell { text: id.clone(), ..Cell::default() };
            row(std::iter::once(id).chain(FIELDS.map(|field| cell(field, &ablation[field]))))
        });
        rows.collect::<Vec<_>>()
    };
    let rows = claims.iter().flat_map(of_claim).collect();
    Table {
        title: "Claims under assumptions of the testbed".to_owned(),
        columns: names(["id", "assumed", "ours", "verdict"]),
        rows,
        left_out: 0,
    }
}

fn names<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

fn row(cells: impl IntoIterator<Item = Cell>) -> Row {
    Row { at: BTreeMap::new(), cells: cells.into_iter().collect() }
}

fn cell(field: &str, value: &Value) -> Cell {
    let text = value.as_str().unwrap_or_default().to_owned();
    let class = (field == "verdict").then_some(match text.as_str() {
        "reproduced" | "proven" | "by construction" => "good",
        "direction" => "half",
        _ => "bad",
    });
    Cell { text, class, ..Cell::default() }
}
