//! Who watches an experiment.

/// Watches the progress of long work, and may end it.
pub trait Observer {
    /// A phase begins that has `total` operations.
    fn begin(&mut self, phase: &str, total: u64);

    /// `done` operations of the phase are done.
    fn progress(&mut self, done: u64);

    /// Of several things that are made, one is.
    fn item_done(&mut self) {}

    /// Whether the work is to end now.
    fn is_interrupted(&self) -> bool;
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Observer for Quiet {
    fn begin(&mut self, _phase: &str, _total: u64) {}

    fn progress(&mut self, _done: u64) {}

    fn is_interrupted(&self) -> bool {
        false
    }
}
