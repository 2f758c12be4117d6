//! A chart as SVG, by plotters.
//!
//! An SVG stands alone: its colours are attributes, which the style of a page overrides.

use crate::chart::{Chart, Mark};
use crate::palette::{Colour, GRID, INK, PAPER};
use crate::scale::Scale;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;

type Sheet<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plane<'a> = DrawingArea<SVGBackend<'a>, Cartesian2d<Axis, Axis>>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

// Places are whole numbers, so that a unit of an SVG is half a pixel of the page, about.
const WIDTH: u32 = 960;
/// Of what is not as high as its bars.
const HEIGHT: u32 = 560;
/// Of a line of text, and of its letters.
const LINE: u32 = 50;
const TEXT: u32 = 38;
/// How wide a letter is, about.
const LETTER: u32 = 17;
const MARGIN: u32 = 14;
/// How high a name with one bar is, and what each bar beside another takes.
const ROW: u32 = 60;
const BAR: u32 = 36;
const DOT: u32 = 8;
/// An interval is seen before its bar.
const BAR_OPACITY: f64 = 0.75;
const STROKE: u32 = 5;

/// The text of an SVG.
pub fn svg(chart: &Chart) -> String {
    let legend = legend_rows(&chart.legend);
    let above = (1 + legend.len() as u32) * LINE;
    let height = above + bars_height(chart).unwrap_or(HEIGHT) + label_height(chart) + 2 * MARGIN;
    let mut text = String::new();
    let sheet = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
    draw(chart, &legend, &sheet).expect("memory takes it");
    drop(sheet);
    text
}

/// How high all bars are together; none of a chart without.
fn bars_height(chart: &Chart) -> Option<u32> {
    let bars = chart.marks.iter().filter(|mark| matches!(mark, Mark::Bar { .. })).count() as u32;
    let names = chart.y.ticks.len() as u32;
    // Bars whose colours are values of an axis stand beside one another, others behind one another.
    let beside = if chart.is_coloured { bars.div_ceil(names.max(1)) } else { 1 };
    (bars > 0).then(|| names * ROW.max(beside * BAR))
}

fn label_height(chart: &Chart) -> u32 {
    if chart.x.title.is_empty() { LINE } else { 2 * LINE }
}

/// The numbers of the entries in each row of a legend, and where they begin.
fn legend_rows(legend: &[(Colour, String)]) -> Vec<Vec<(u32, usize)>> {
    let mut rows: Vec<Vec<(u32, usize)>> = Vec::new();
    let mut x = WIDTH;
    for (number, (_, name)) in legend.iter().enumerate() {
        let wide = 3 * TEXT + name.chars().count() as u32 * LETTER;
        if x + wide > WIDTH {
            rows.push(Vec::new());
            x = 2 * MARGIN;
        }
        rows.last_mut().expect("there is a row").push((x, number));
        x += wide;
    }
    rows
}

fn draw(chart: &Chart, legend: &[Vec<(u32, usize)>], sheet: &Sheet<'_>) -> Drawn {
    sheet.fill(&rgb(PAPER))?;
    let (title, rest) = sheet.split_vertically(LINE);
    let (above, below) = rest.split_vertically(legend.len() as u32 * LINE);
    draw_text(&title, (2 * MARGIN, LINE / 2), &chart.title, FontStyle::Bold)?;
    for (row, entries) in legend.iter().enumerate() {
        for (x, number) in entries {
            draw_entry(&above, (*x, row as u32 * LINE + LINE / 2), &chart.legend[*number])?;
        }
    }
    let mut builder = ChartBuilder::on(&below);
    let widest = chart.y.ticks.iter().map(|(_, text)| text.chars().count() as u32).max().unwrap_or(0);
    builder.margin(MARGIN).margin_right(2 * TEXT);
    builder.set_label_area_size(LabelAreaPosition::Left, (widest * LETTER + TEXT).min(WIDTH / 2));
    builder.set_label_area_size(LabelAreaPosition::Bottom, label_height(chart));
    let mut plot = builder.build_cartesian_2d(Axis(chart.x.clone()), Axis(chart.y.clone()))?;
    let mut mesh = plot.configure_mesh();
    mesh.bold_line_style(rgb(GRID).stroke_width(2)).axis_style(rgb(INK).stroke_width(2));
    let label = ("sans-serif", TEXT).into_font().color(&rgb(INK));
    mesh.label_style(label.clone()).axis_desc_style(label);
    if !chart.x.title.is_empty() {
        mesh.x_desc(chart.x.title.as_str());
    }
    if bars_height(chart).is_some() {
        mesh.disable_y_mesh();
    }
    mesh.draw()?;
    chart.marks.iter().try_for_each(|mark| draw_mark(plot.plotting_area(), mark))?;
    sheet.present()
}

/// A scale as plotters wants it: with its own ticks, and no lines between them.
struct Axis(Scale);

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, limit: (i32, i32)) -> i32 {
        RangedCoordf64::from(self.range()).map(place, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let is_light = hint.weight().allow_light_points();
        self.0.ticks.iter().map(|(place, _)| *place).filter(|_| !is_light).collect()
    }

    fn range(&self) -> Range<f64> {
        self.0.from..self.0.to
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, place: &f64) -> String {
        self.0.text_at(*place).to_owned()
    }
}

fn draw_mark(plane: &Plane<'_>, mark: &Mark) -> Drawn {
    match mark {
        Mark::Line { colour, points } => {
            plane.draw(&PathElement::new(points.clone(), rgb(*colour).stroke_width(STROKE)))
        }
        Mark::Dot { colour, at } => plane.draw(&Circle::new(*at, DOT, rgb(*colour).filled())),
        Mark::Interval { colour, from, to } => {
            let style = rgb(*colour).stroke_width(STROKE - 2);
            plane.draw(&PathElement::new(vec![*from, *to], style))?;
            // A stroke across each end.
            let across = if from.0 == to.0 { (DOT as i32, 0) } else { (0, DOT as i32) };
            let end = |at: (f64, f64)| {
                let stroke = PathElement::new(vec![(-across.0, -across.1), across], style);
                plane.draw(&(EmptyElement::at(at) + stroke))
            };
            end(*from)?;
            end(*to)
        }
        Mark::Bar { colour, from, to } => {
            plane.draw(&Rectangle::new([*from, *to], rgb(*colour).mix(BAR_OPACITY).filled()))
        }
    }
}

/// The text follows its mark: who hides that hides both.
fn draw_entry(area: &Sheet<'_>, (x, y): (u32, u32), (colour, name): &(Colour, String)) -> Drawn {
    let (left, middle, half) = (x as i32, y as i32, TEXT as i32 / 3);
    let corners = [(left, middle - half), (left + 2 * half, middle + half)];
    area.draw(&Rectangle::new(corners, rgb(*colour).filled()))?;
    draw_text(area, (x + TEXT, y), name, FontStyle::Normal)
}

fn draw_text(area: &Sheet<'_>, (x, y): (u32, u32), text: &str, style: FontStyle) -> Drawn {
    let font = ("sans-serif", TEXT, style).into_font().color(&rgb(INK)).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(text.to_owned(), (x as i32, y as i32), font))
}

fn rgb(colour: Colour) -> RGBColor {
    let part =
        |at: usize| u8::from_str_radix(&colour.light[at..at + 2], 16).expect("palettes have two hexadecimal digits");
    RGBColor(part(1), part(3), part(5))
}
