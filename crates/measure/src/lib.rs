//! What every experiment needs: latencies, text for people, and somebody who watches.
//!
//! ```text
//!   Latencies   a histogram -> LatencySummary, its figures
//!   Figure      a figure of a paper: ours, and what the paper's text says, in a Unit
//!   columns     rows of cells -> a table; grouped, size: numbers as people read them
//!   Observer    told of phases and progress, asked whether to end; Quiet watches nothing
//! ```
//!
//! It has no clock: latencies are handed to it.

pub mod figure;
mod latency;
mod observer;
mod text;
mod unit;

pub use figure::Figure;
pub use latency::{Latencies, LatencySummary};
pub use observer::{Observer, Quiet};
pub use text::{columns, grouped, size};
pub use unit::Unit;
