//! Progress bars and Ctrl-C.

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use kvssd_measure::Observer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Shows the phase that runs, its rate and the time left, on a terminal; ends it on Ctrl-C.
pub struct Progress {
    bar: ProgressBar,
    interrupted: Arc<AtomicBool>,
}

impl Progress {
    /// No phase yet.
    pub fn new() -> Self {
        let interrupted = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&interrupted);
        // A second handler cannot be set; the first one serves then.
        let _ = ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed));
        Progress { bar: ProgressBar::hidden(), interrupted }
    }

    /// No phase yet, and Ctrl-C ends the program: for work that may be left at any moment, and may wait for a person's input.
    pub fn of_safe_work() -> Self {
        Progress { bar: ProgressBar::hidden(), interrupted: Arc::default() }
    }
}

/// So many a second, in whole numbers.
fn rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // What cannot be written to a terminal need not be.
    let _ = write!(out, "{:.0}/s", state.per_sec());
}

impl Observer for Progress {
    fn begin(&mut self, phase: &str, total: u64) {
        self.bar.finish_and_clear();
        let style = ProgressStyle::with_template("{msg:<24} {bar:40} {percent:>3} %  {rate:>12}  {eta_precise} left")
            .map(|style| style.with_key("rate", rate));
        self.bar = ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.set_message(phase.to_owned());
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    fn progress(&mut self, done: u64) {
        self.bar.set_position(done);
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
