//! Progress and Ctrl-C: a bar on a terminal, elsewhere a line now and then.

use crate::output::{is_quiet, note, time};
use crate::signals::end_on_signals;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use kvssd_measure::Observer;
use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

/// How often a line is printed where there is no terminal.
pub const LINE_EVERY: Duration = Duration::from_secs(20);

/// Shows the phase that runs, its rate and the time left, on a terminal; ends it on Ctrl-C.
pub struct Progress {
    bar: ProgressBar,
    /// Where there is no terminal, and nobody else says how far all is.
    lines: Option<Lines>,
    /// The bars of others that are shown at the same time.
    others: Option<MultiProgress>,
    interrupted: Arc<AtomicBool>,
}

impl Progress {
    /// No phase yet.
    pub fn new() -> Self {
        Progress::of(Lines::new(), None, interrupted())
    }

    /// No phase yet, beside what others do.
    pub fn among(others: &MultiProgress) -> Self {
        Progress::of(None, Some(others.clone()), interrupted())
    }

    /// No phase yet, and Ctrl-C ends the program: for work that may be left at any moment, and may wait for a person's input.
    pub fn of_safe_work() -> Self {
        Progress::of(Lines::new(), None, Arc::default())
    }

    fn of(lines: Option<Lines>, others: Option<MultiProgress>, interrupted: Arc<AtomicBool>) -> Self {
        Progress { bar: ProgressBar::hidden(), lines, others, interrupted }
    }
}

/// Says now and then how far a phase is.
struct Lines {
    phase: String,
    total: u64,
    begun: Instant,
    last_line: Instant,
}

impl Lines {
    fn new() -> Option<Lines> {
        let now = Instant::now();
        let lines = || Lines { phase: String::new(), total: 0, begun: now, last_line: now };
        (!stderr().is_terminal() && !is_quiet()).then(lines)
    }

    fn begin(&mut self, phase: &str, total: u64) {
        (self.phase, self.total, self.begun) = (phase.to_owned(), total, Instant::now());
    }

    fn progress(&mut self, done: u64) {
        if done == 0 || self.last_line.elapsed() < LINE_EVERY {
            return;
        }
        self.last_line = Instant::now();
        let left = time_left(self.begun, done, self.total);
        note(&format!("{}: {} %, about {left} left", self.phase, done.saturating_mul(100) / self.total.max(1)));
    }
}

/// Whether somebody pressed Ctrl-C, from the first call on.
fn interrupted() -> Arc<AtomicBool> {
    static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| {
        let flag = Arc::default();
        end_on_signals(&flag);
        flag
    });
    Arc::clone(&INTERRUPTED)
}

/// A bar of `total` operations, beside others if there are any.
pub fn bar(total: u64, name: &str, others: Option<&MultiProgress>) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:<24} {bar:40} {percent:>3} %  {rate:>12}  {eta_precise} left")
        .map(|style| style.with_key("rate", rate));
    let target = if is_quiet() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(total), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let bar = match others {
        Some(others) => others.add(bar),
        None => bar,
    };
    bar.set_message(name.to_owned());
    // A bar that ticks by itself takes a thread, and panics where there is none: is there one more?
    if !bar.is_hidden() && thread::Builder::new().spawn(|| ()).is_ok_and(|thread| thread.join().is_ok()) {
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}

/// How long the rest will take, in words, when `done` of `total` took since `begun`.
pub fn time_left(begun: Instant, done: u64, total: u64) -> String {
    time(begun.elapsed().mul_f64(total.saturating_sub(done) as f64 / done as f64))
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
        if let Some(lines) = &mut self.lines {
            lines.begin(phase, total);
        }
    }

    fn progress(&mut self, done: u64) {
        self.bar.set_position(done);
        if let Some(lines) = &mut self.lines {
            lines.progress(done);
        }
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
