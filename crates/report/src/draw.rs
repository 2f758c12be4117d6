//! A chart as SVG, by plotters.
//!
//! An SVG stands alone: its colours are attributes, which the style of a page overrides.

use crate::chart::{Chart, Entry, Mark};
use crate::palette::{Colour, GRID, INK, PAPER};
use crate::scale::Scale;
use crate::text;
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
/// The smallest letters, and the widest names beside bars, of all.
const TEXT_MIN: u32 = 26;
const NAMES_MAX: u32 = WIDTH * 11 / 20;
const MARGIN: u32 = 14;
/// How high a name with one bar is, and what each bar beside another takes.
const ROW: u32 = 60;
const BAR: u32 = 36;
const DOT: u32 = 8;
const RING: u32 = 11;
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
    let thickness = |mark: &Mark| match mark {
        Mark::Bar { from, to, .. } | Mark::Frame { from, to, .. } => Some((from.1 - to.1).abs()),
        _ => None,
    };
    let thinnest = chart.marks.iter().filter_map(thickness).reduce(f64::min)?;
    // A bar alone takes most of its row.
    let beside = (0.72 / thinnest).round().max(1.0) as u32;
    Some(chart.y.ticks.len() as u32 * ROW.max(beside * BAR))
}

fn label_height(chart: &Chart) -> u32 {
    if chart.x.title.is_empty() { LINE } else { 2 * LINE }
}

/// The numbers of the entries in each row of a legend, and where they begin.
fn legend_rows(legend: &[Entry]) -> Vec<Vec<(u32, usize)>> {
    let mut rows: Vec<Vec<(u32, usize)>> = Vec::new();
    let mut x = WIDTH;
    for (number, entry) in legend.iter().enumerate() {
        let wide = 2 * TEXT + text::width(&entry.name, TEXT);
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
    let (size, words) = text::fitted(&chart.title, TEXT, TEXT_MIN, WIDTH - 4 * MARGIN);
    draw_text(&title, (2 * MARGIN, LINE / 2), &words, (size, FontStyle::Bold))?;
    for (row, entries) in legend.iter().enumerate() {
        for (x, number) in entries {
            draw_entry(&above, (*x, row as u32 * LINE + LINE / 2), &chart.legend[*number])?;
        }
    }
    let mut builder = ChartBuilder::on(&below);
    let (names, names_size) = names_that_fit(&chart.y);
    let widest = names.ticks.iter().map(|(_, name)| text::width(name, names_size)).max().unwrap_or(0);
    builder.margin(MARGIN).margin_right(2 * TEXT);
    builder.set_label_area_size(LabelAreaPosition::Left, widest + TEXT);
    builder.set_label_area_size(LabelAreaPosition::Bottom, label_height(chart));
    let room = WIDTH - widest - 3 * TEXT - 2 * MARGIN;
    let mut plot = builder.build_cartesian_2d(Axis(with_room(&chart.x, room)), Axis(names))?;
    let mut mesh = plot.configure_mesh();
    mesh.bold_line_style(rgb(GRID).stroke_width(2)).axis_style(rgb(INK).stroke_width(2));
    let label = |size| ("sans-serif", size).into_font().color(&rgb(INK));
    mesh.label_style(label(TEXT)).y_label_style(label(names_size)).axis_desc_style(label(TEXT));
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

/// A scale whose texts have room at the left, and the size of their letters: smaller for the longest, which is cut in the end.
fn names_that_fit(scale: &Scale) -> (Scale, u32) {
    let fitted = |name: &str, least: u32| text::fitted(name, TEXT, least, NAMES_MAX);
    let size = scale.ticks.iter().map(|(_, name)| fitted(name, TEXT_MIN).0).min().unwrap_or(TEXT);
    let mut scale = scale.clone();
    for (_, name) in &mut scale.ticks {
        *name = text::fitted(name, size, size, NAMES_MAX).1;
    }
    (scale, size)
}

/// A scale along the bottom whose texts do not run into one another: of those that have no room the marks remain.
fn with_room(scale: &Scale, room: u32) -> Scale {
    let middle = |tick: &(f64, String)| (tick.0 - scale.from) / (scale.to - scale.from) * f64::from(room);
    let half = |tick: &(f64, String)| f64::from(text::width(&tick.1, TEXT)) / 2.0;
    let is_apart = |pair: [&(f64, String); 2]| {
        middle(pair[1]) - middle(pair[0]) >= half(pair[0]) + half(pair[1]) + f64::from(TEXT) / 4.0
    };
    let fits = |every: &usize| {
        let shown: Vec<&(f64, String)> = scale.ticks.iter().step_by(*every).collect();
        shown.windows(2).all(|pair| is_apart([pair[0], pair[1]]))
    };
    let every = (1..scale.ticks.len()).find(fits).unwrap_or(1);
    let mut scale = scale.clone();
    let hidden = scale.ticks.iter_mut().enumerate().filter(|(number, _)| number % every != 0);
    hidden.for_each(|(_, (_, text))| text.clear());
    scale
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
        Mark::Ring { colour, at } => plane.draw(&Circle::new(*at, RING, rgb(*colour).stroke_width(STROKE - 1))),
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
        Mark::Frame { colour, from, to } => plane.draw(&frame(*from, *to, *colour)),
    }
}

/// A hollow rectangle. Those of plotters have strokes of one width only.
fn frame<T: Copy>(from: (T, T), to: (T, T), colour: Colour) -> PathElement<(T, T)> {
    let corners = vec![from, (to.0, from.1), to, (from.0, to.1), from];
    PathElement::new(corners, rgb(colour).stroke_width(STROKE - 1))
}

/// The text follows its mark: who hides that hides both.
fn draw_entry(area: &Sheet<'_>, (x, y): (u32, u32), Entry { colour, is_hollow, name }: &Entry) -> Drawn {
    let (left, middle, half) = (x as i32, y as i32, TEXT as i32 / 3);
    let corners = [(left, middle - half), (left + 2 * half, middle + half)];
    match is_hollow {
        true => area.draw(&frame(corners[0], corners[1], *colour))?,
        false => area.draw(&Rectangle::new(corners, rgb(*colour).filled()))?,
    }
    draw_text(area, (x + TEXT, y), name, (TEXT, FontStyle::Normal))
}

fn draw_text(area: &Sheet<'_>, (x, y): (u32, u32), text: &str, (size, style): (u32, FontStyle)) -> Drawn {
    let font = ("sans-serif", size, style).into_font().color(&rgb(INK)).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(text.to_owned(), (x as i32, y as i32), font))
}

fn rgb(colour: Colour) -> RGBColor {
    let part =
        |at: usize| u8::from_str_radix(&colour.light[at..at + 2], 16).expect("palettes have two hexadecimal digits");
    RGBColor(part(1), part(3), part(5))
}
