//! The network as who calls it has it: calls that wait, and what is listened on.

mod listener;
mod streams;

pub use listener::{Interest, Listener, Socket};
pub(crate) use listener::{connect, listen};
pub(crate) use streams::{read, shut_down, write};

use std::time::Duration;

/// How long somebody who does not wait for bytes lets pass, so that others can send some.
pub(crate) const AWAKE: Duration = Duration::from_micros(10);
