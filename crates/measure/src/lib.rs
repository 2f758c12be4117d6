//! What every experiment needs: latencies, text for people, and somebody who watches.
//!
//! ```text
//!   Latencies   a histogram -> LatencySummary, its figures
//!   columns     rows of cells -> a table; grouped, size: numbers as people read them
//!   Observer    told of phases and progress, asked whether to end; Quiet watches nothing
//! ```
//!
//! It has no clock: latencies are handed to it.

mod latency;
mod observer;
mod text;

pub use latency::{Latencies, LatencySummary};
pub use observer::{Observer, Quiet};
pub use text::{columns, grouped, size};
