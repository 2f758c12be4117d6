//! Lives of drives: the real store over a [`SimulatedDisk`](kvssd_flash::SimulatedDisk), and what must be in it.
//!
//! ```text
//!   seed -> Acts ----> Program: Store -> Drive -> firmware -> image -> SimulatedDisk <- Strike: killed, stopped, failed
//!                         |                                                |              at the call that the seed says
//!                         +-- Model: what was answered, what is in doubt --+-- the next process looks at everything
//! ```
//!
//! A loss says its seed and life and the last steps before it, and the same seed shows it again.

mod act;
mod book;
mod caller;
mod campaign;
mod conditions;
mod excuses;
mod hardware;
mod history;
pub mod hosts;
mod image;
pub mod liar;
mod machine;
mod model;
pub mod owners;
mod program;
mod report;
mod scenario;
pub mod solo;
mod steps;
mod strikes;
pub mod sweep;
pub mod threads;

pub use act::{Act, Acts, Writing};
pub use book::{Book, SharedBook};
pub use campaign::{Campaign, Row};
pub use hardware::Hardware;
pub use history::History;
pub use image::PATH;
pub use machine::Machine;
pub use model::{Content, Model};
pub use program::{End, Program};
pub use report::{Loss, Report};
pub use scenario::{SCENARIOS, Scenario};

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What lives do; a panic is a loss.
fn caught<T>(lives: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let caught = catch_unwind(AssertUnwindSafe(lives));
    caught.unwrap_or_else(|panic| Err(format!("panic: {}", words_of(&*panic))))
}

/// What a panic said.
fn words_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words")
}
