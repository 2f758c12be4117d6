//! A study as a page: `page.html` with its style and script, filled.

use crate::charts::{Section, sections};
use crate::draw::svg;
use crate::layout::Layout;
use crate::palette::{Colour, GRID, INK, PAPER, SERIES};
use crate::study::Study;
use crate::table::{Table, details, tables};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;
use std::collections::BTreeMap;

/// What the template is filled with.
#[derive(Serialize)]
struct Page<'a> {
    title: &'a str,
    facts: &'a [(String, String)],
    notes: &'a [String],
    filters: Vec<Filter<'a>>,
    tables: Vec<Table>,
    sections: Vec<Filled<'a>>,
    /// Tables that are longer than what most come for: below the figures.
    details: Vec<Table>,
    colours: Vec<Colour>,
    paper: Colour,
    style: &'static str,
    script: &'static str,
}

/// What chooses a value of an axis.
#[derive(Serialize)]
struct Filter<'a> {
    name: &'a str,
    choices: &'a [String],
    /// Of each value, where the axis gives colours.
    colours: Vec<&'static str>,
}

#[derive(Serialize)]
struct Filled<'a> {
    title: &'a str,
    about: &'static str,
    figures: Vec<Figure>,
    left_out: usize,
}

#[derive(Serialize)]
struct Figure {
    title: String,
    /// What is said below it.
    about: String,
    /// What its files are called.
    name: String,
    at: BTreeMap<usize, usize>,
    is_coloured: bool,
    svg: String,
    csv: String,
}

/// The page, whole: it needs no other file and no network.
#[must_use]
pub fn html(title: &str, study: &Study) -> String {
    let layout = Layout::of(study);
    let colours = |number| match layout.colour == Some(number) {
        true => SERIES.iter().cycle().take(study.axes[number].values.len()).map(|colour| colour.light).collect(),
        false => Vec::new(),
    };
    let axes = study.axes.iter().enumerate();
    let sections = sections(study);
    let page = Page {
        title,
        facts: &study.facts,
        notes: &study.notes,
        filters: axes
            .map(|(number, axis)| Filter { name: &axis.name, choices: &axis.values, colours: colours(number) })
            .collect(),
        tables: tables(study),
        sections: sections.iter().map(filled).collect(),
        details: details(study),
        colours: SERIES.into_iter().chain([INK, GRID]).collect(),
        paper: PAPER,
        style: include_str!("page.css"),
        script: include_str!("page.js"),
    };
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().expect("as it is"));
    templates.render_str(include_str!("page.html"), Serde(&page)).expect("the template fits the page")
}

fn filled(section: &Section) -> Filled<'_> {
    let figure = |chart: &crate::chart::Chart| Figure {
        title: chart.title.clone(),
        about: chart.about.clone(),
        name: file_name(&chart.title),
        at: chart.at.iter().copied().collect(),
        is_coloured: chart.is_coloured,
        svg: svg(chart),
        csv: chart.data.csv(),
    };
    let Section { title, about, charts, left_out } = section;
    Filled { title, about, figures: charts.iter().map(figure).collect(), left_out: *left_out }
}

/// Letters and digits of a title, in lower case, with a dash for all between them.
fn file_name(title: &str) -> String {
    let words = title.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}
