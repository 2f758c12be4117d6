//! A check of a design on a medium.

use crate::drive::{Drive, Medium};
use crate::namespaced::NamespacedDrive;
use crate::position::Position;
use kvssd_flash::Profile;
use kvssd_ftl::{Design, Engine};
use kvssd_types::Random;

/// What a check gets: the design, the medium, and who takes note of where it is.
#[derive(Debug)]
pub struct Trial {
    design: Design,
    medium: Medium,
    position: Position,
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
        self.design.index.plan().is_ordered()
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

    /// A drive around an engine that has nothing.
    pub(crate) fn around(&self, engine: Engine) -> Drive {
        self.position.begin();
        Drive::around(engine).noted(self.position.clone())
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
