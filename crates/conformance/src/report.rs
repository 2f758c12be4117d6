//! What became of the checks of a design.

use crate::drive::Medium;
use std::fmt;

/// A check that failed, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The check.
    pub check: &'static str,
    /// The design.
    pub design: String,
    /// What kept the pages.
    pub medium: Medium,
    /// The seed, the number of the drive's command that was the last, and what that was.
    pub place: String,
    /// What was said.
    pub what: String,
}

/// What became of a design.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Checks that came to their end, each counted once for each medium.
    pub passed: u32,
    /// Those that did not: must be none.
    pub failures: Vec<Failure>,
}

impl Report {
    /// Whether nothing failed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty()
    }

    /// Ends a test, with a line for each failure, if there is one.
    ///
    /// # Panics
    /// When something failed.
    pub fn assert_clean(&self) {
        assert!(self.is_clean(), "{self}");
    }

    pub(crate) fn add(&mut self, other: Report) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} checks passed, {} failed", self.passed, self.failures.len())?;
        self.failures.iter().try_for_each(|failure| write!(f, "\n{failure}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { check, design, medium, place, what } = self;
        write!(f, "{check}: {design} on {medium}, {place}: {what}")
    }
}
