//! Where a check has come to: what a failure names.

use kvssd_types::Command;
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

/// Where a check is: shared with the drives that it made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Position(Rc<Cell<Place>>);

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    seed: Option<u64>,
    step: u64,
    command: &'static str,
}

impl Position {
    /// A new drive: its first command comes.
    pub(crate) fn begin(&self) {
        self.0.set(Place { step: 0, command: "", ..self.0.get() });
    }

    pub(crate) fn seed(&self, seed: u64) {
        self.0.set(Place { seed: Some(seed), ..self.0.get() });
    }

    /// Commands so far.
    pub(crate) fn steps(&self) -> u64 {
        self.0.get().step
    }

    /// A command is about to be executed.
    pub(crate) fn step(&self, command: &Command<'_>) {
        let place = self.0.get();
        self.0.set(Place { step: place.step + 1, command: command.name(), ..place });
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { seed, step, command } = self.0.get();
        if let Some(seed) = seed {
            write!(f, "seed {seed}, ")?;
        }
        write!(f, "step {step}")?;
        if command.is_empty() { Ok(()) } else { write!(f, " ({command})") }
    }
}
