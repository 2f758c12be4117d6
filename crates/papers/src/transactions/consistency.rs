//! What a check of a workload's tables found, and what was promised before.

use serde::Serialize;

/// Messages that are kept; the others are counted.
const EXAMPLES_MAX: usize = 8;

/// The commits that were answered: what a power cut must not take away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    kinds: usize,
    commits: Vec<u64>,
}

impl Acknowledged {
    /// None yet, of so many terminals and kinds of transactions.
    #[must_use]
    pub fn none(terminals: u32, kinds: usize) -> Self {
        Acknowledged { kinds, commits: vec![0; terminals as usize * kinds] }
    }

    /// The terminals.
    #[must_use]
    pub fn terminals(&self) -> u32 {
        (self.commits.len() / self.kinds.max(1)) as u32
    }

    /// The commits of a kind at a terminal.
    #[must_use]
    pub fn commits(&self, terminal: u32, kind: usize) -> u64 {
        self.commits[terminal as usize * self.kinds + kind]
    }

    /// The commits of a kind at all terminals.
    #[must_use]
    pub fn commits_of_kind(&self, kind: usize) -> u64 {
        (0..self.terminals()).map(|terminal| self.commits(terminal, kind)).sum()
    }

    /// Commits of a kind at a terminal were answered.
    pub(super) fn add(&mut self, terminal: u32, kind: usize, commits: u64) {
        self.commits[terminal as usize * self.kinds + kind] += commits;
    }

    /// Adds those of another run of as many terminals and kinds.
    ///
    /// # Panics
    /// When there are not as many.
    pub fn include(&mut self, other: &Acknowledged) {
        assert_eq!((self.kinds, self.commits.len()), (other.kinds, other.commits.len()));
        self.commits.iter_mut().zip(&other.commits).for_each(|(commits, more)| *commits += more);
    }
}

/// What was looked at and what was wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Consistency {
    /// Conditions that were verified.
    pub conditions: u64,
    /// Those that do not hold.
    pub violations: u64,
    /// The first of these.
    pub examples: Vec<String>,
}

impl Consistency {
    /// Whether everything holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.violations == 0
    }

    /// Counts a condition; `message` says what is wrong when it does not hold.
    pub fn verify(&mut self, holds: bool, message: impl FnOnce() -> String) {
        self.conditions += 1;
        if !holds {
            self.violations += 1;
            if self.examples.len() < EXAMPLES_MAX {
                self.examples.push(message());
            }
        }
    }

    /// Counts a condition of two numbers that must be equal.
    pub fn verify_equal(&mut self, what: impl FnOnce() -> String, found: i64, expected: i64) {
        self.verify(found == expected, || format!("{} is {found} and must be {expected}", what()));
    }
}
