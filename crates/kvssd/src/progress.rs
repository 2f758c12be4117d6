//! Progress bars and Ctrl-C.

use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use kvssd_measure::Observer;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Shows the phase that runs, its rate and the time left, on a terminal; ends it on Ctrl-C.
pub struct Progress {
    bar: ProgressBar,
    /// The bars of others that are shown at the same time.
    others: Option<MultiProgress>,
    interrupted: Arc<AtomicBool>,
}

impl Progress {
    /// No phase yet.
    pub fn new() -> Self {
        Progress { bar: ProgressBar::hidden(), others: None, interrupted: interrupted() }
    }

    /// No phase yet, beside what others do.
    pub fn among(others: &MultiProgress) -> Self {
        Progress { bar: ProgressBar::hidden(), others: Some(others.clone()), interrupted: interrupted() }
    }

    /// No phase yet, and Ctrl-C ends the program: for work that may be left at any moment, and may wait for a person's input.
    pub fn of_safe_work() -> Self {
        Progress { bar: ProgressBar::hidden(), others: None, interrupted: Arc::default() }
    }
}

/// Whether somebody pressed Ctrl-C, from the first call on.
fn interrupted() -> Arc<AtomicBool> {
    static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let set = || {
        let flag = Arc::new(AtomicBool::new(false));
        let on_signal = Arc::clone(&flag);
        // Where another handler is set, that one serves.
        let _ = ctrlc::set_handler(move || on_signal.store(true, Ordering::Relaxed));
        flag
    };
    Arc::clone(INTERRUPTED.get_or_init(set))
}

/// A bar of `total` operations, beside others if there are any.
pub fn bar(total: u64, name: &str, others: Option<&MultiProgress>) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:<24} {bar:40} {percent:>3} %  {rate:>12}  {eta_precise} left")
        .map(|style| style.with_key("rate", rate));
    let bar = ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let bar = match others {
        Some(others) => others.add(bar),
        None => bar,
    };
    bar.set_message(name.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// So many a second, in whole numbers.
fn rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // What cannot be written to a terminal need not be.
    let _ = write!(out, "{:.0}/s", state.per_sec());
}

impl Observer for Progress {
    fn begin(&mut self, phase: &str, total: u64) {
        self.bar.finish_and_clear();
        self.bar = bar(total, phase, self.others.as_ref());
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
