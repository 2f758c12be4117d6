//! The charts of a study, in sections.

mod by_axis;
mod cdf;
mod of_papers;
mod over_time;
mod stacks;

use crate::chart::Chart;
use crate::layout::Layout;
use crate::study::Study;

/// Charts of one kind.
pub struct Section {
    pub title: String,
    /// What they show.
    pub about: &'static str,
    pub charts: Vec<Chart>,
    /// How many more there are, for which a page has no room.
    pub left_out: usize,
}

/// The most of a section: a page of a large sweep stays one that a browser shows at once.
pub const CHARTS_MAX: usize = 48;

/// All sections that have charts.
pub fn sections(study: &Study) -> Vec<Section> {
    let layout = Layout::of(study);
    let by_axis = by_axis::charts(&layout);
    let all = [
        (
            "Figures by axis",
            "The mean over seeds, and its confidence interval of 95 % (Student's t). One run has an interval when it was done in rounds.",
            by_axis,
        ),
        ("Latencies", "So many of the commands took at most so long; all seeds together.", cdf::charts(&layout)),
        (
            "Where the time went",
            "The mean latency of a command, by what it waited for or had done.",
            stacks::latency_charts(&layout),
        ),
        ("DRAM of the device", "By part, at the end of the run; the mean over seeds.", stacks::dram_charts(&layout)),
        (
            "Over time",
            "Of the first seed, since the run began. A point of a long run is the mean of several intervals.",
            over_time::charts(&layout),
        ),
    ];
    let section = |(title, about, mut charts): (&str, _, Vec<Chart>)| {
        let left_out = charts.len().saturating_sub(CHARTS_MAX);
        charts.truncate(CHARTS_MAX);
        Section { title: title.to_owned(), about, charts, left_out }
    };
    let of_papers = of_papers::sections(&study.figures);
    all.into_iter().map(section).filter(|section| !section.charts.is_empty()).chain(of_papers).collect()
}

/// A name, with that of its panel.
fn titled(name: &str, panel: &str) -> String {
    if panel.is_empty() { name.to_owned() } else { format!("{name}: {panel}") }
}
