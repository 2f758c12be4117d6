//! A check of a design on a medium, and where it has come to.

use crate::drive::{Drive, Medium};
use crate::namespaced::NamespacedDrive;
use kvssd_flash::Profile;
use kvssd_ftl::Design;
use kvssd_types::{Command, Random};
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

/// What a check gets: the design, the medium, and who takes note of where it is.
#[derive(Debug)]
pub struct Trial {
    design: Design,
    medium: Medium,
    position: Position,
}

/// Where a check is: shared with the drives that it made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Position(Rc<Cell<Place>>);

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    seed: Option<u64>,
    step: u64,
    command: &'static str,
}

impl Trial {
    /// The beginning of one.
    #[must_use]
    pub fn new(design: &Design, medium: Medium) -> Self {
        Trial { design: design.clone(), medium, position: Position::default() }
    }

    /// The same on that medium.
    pub(crate) fn on(&self, medium: Medium) -> Trial {
        Trial { design: self.design.clone(), medium, position: self.position.clone() }
    }

    /// The design.
    #[must_use]
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// What keeps the pages.
    #[must_use]
    pub fn medium(&self) -> Medium {
        self.medium
    }

    /// The design with a parameter set, where it has that parameter.
    #[must_use]
    pub fn design_with(&self, parameter: &str, value: &str) -> Design {
        let mut design = self.design.clone();
        let _ = design.set(parameter, value);
        design
    }

    /// Whether its keys have an order, so that there are iterators.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.design.parameters().iter().any(|(name, _)| *name == "prefetch_degree")
    }

    /// A random generator; a failure names its seed.
    #[must_use]
    pub fn random(&self, seed: u64) -> Random {
        self.position.seed(seed);
        Random::new(seed)
    }

    /// That stream of a seed; a failure names the seed.
    #[must_use]
    pub fn stream(&self, seed: u64, stream: u64) -> Random {
        self.position.seed(seed);
        Random::stream(seed, stream)
    }

    /// An empty tiny drive.
    #[must_use]
    pub fn drive(&self) -> Drive {
        self.drive_of(&self.design, &[])
    }

    /// An empty tiny drive of a variant of the design, with overrides of its profile.
    #[must_use]
    pub fn drive_of(&self, design: &Design, overrides: &[(&str, &str)]) -> Drive {
        self.position.begin();
        Drive::of(design, self.medium, overrides).noted(self.position.clone())
    }

    /// An empty drive for namespaces.
    #[must_use]
    pub fn namespaced(&self, drive: (Design, Profile)) -> NamespacedDrive {
        self.position.begin();
        NamespacedDrive::of(drive, self.medium).noted(self.position.clone())
    }

    pub(crate) fn position(&self) -> &Position {
        &self.position
    }
}

impl Position {
    /// A new drive: its first command comes.
    pub(crate) fn begin(&self) {
        self.0.set(Place { step: 0, command: "", ..self.0.get() });
    }

    fn seed(&self, seed: u64) {
        self.0.set(Place { seed: Some(seed), ..self.0.get() });
    }

    /// A command is about to be executed.
    pub(crate) fn step(&self, command: &Command<'_>) {
        let place = self.0.get();
        self.0.set(Place { step: place.step + 1, command: name_of(command), ..place });
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

fn name_of(command: &Command<'_>) -> &'static str {
    match command {
        Command::Store { .. } => "store",
        Command::Retrieve { .. } => "retrieve",
        Command::Delete { .. } => "delete",
        Command::Exist { .. } => "exist",
        Command::List { .. } => "list",
        Command::Batch { .. } => "batch",
        Command::Flush => "flush",
        Command::CreateIterator { .. } => "create an iterator",
        Command::Seek { .. } => "seek",
        Command::Next { .. } => "next",
        Command::DestroyIterator { .. } => "destroy an iterator",
        Command::Read { .. } => "read",
        Command::Write { .. } => "write",
    }
}
