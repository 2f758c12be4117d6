//! The last steps before something went wrong, for whoever reads of it.

use std::collections::VecDeque;

/// Steps that are kept.
const STEPS: usize = 40;

/// Steps in words, the last ones.
#[derive(Clone, Debug, Default)]
pub struct History {
    steps: VecDeque<String>,
}

impl History {
    /// One more.
    pub fn push(&mut self, step: impl Into<String>) {
        if self.steps.len() == STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back(step.into());
    }

    /// All that are kept.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.steps.iter().cloned().collect()
    }
}
