//! Reports to look at: tables and plots of runs, in one file of HTML that needs no network.
//!
//! ```text
//!   index.json and reports of a sweep, a report of a bench, claims      as JSON
//!     | study      groups: runs that differ in their seed alone; the axes on which groups differ
//!     | layout     which axis is along a plot, which gives colours, which gives plots of their own
//!     | charts     by axis, CDFs, parts of latency and of DRAM, over time, figures of papers: marks on two scales, and their data
//!     | draw       a chart -> SVG (plotters)
//!     v page       page.html, with its style and script
//! ```
//!
//! It reads and writes no file. The same reports give the same bytes.

mod chart;
mod charts;
mod draw;
mod layout;
mod page;
mod palette;
mod run;
mod scale;
mod study;
mod table;
mod text;

pub use page::html;
pub use study::{ROW, Study, StudyError};
