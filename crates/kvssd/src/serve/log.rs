//! The log of `serve`. Peers that nobody knows can cause lines as fast as they connect, so each place in the code writes a few in a second; the
//! next one says how many were left out.

use crate::Outcome;
use crate::fail::Failure;
use std::collections::HashMap;
use std::fmt;
use std::io::stderr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// The most lines of a place in the code in a second. An estimate: more than hosts that are meant to come cause.
const LINES_MAX: u32 = 20;
const SECOND: Duration = Duration::from_secs(1);

/// Writes what `filter` lets through to standard error.
pub(super) fn log_to_stderr(filter: &str) -> Outcome {
    let targets = targets_of(filter).map_err(|why| Failure::LogFilter { filter: filter.to_owned(), why })?;
    let bounded = |format| Bounded { format, recent: Mutex::default() };
    let lines = tracing_subscriber::fmt::layer().with_writer(stderr).with_ansi(false).map_event_format(bounded);
    tracing_subscriber::registry().with(lines).with(targets).init();
    Ok(())
}

/// What a filter lets through. A word that is no level is the name of a module: of one of this program's own, as no other one writes lines.
fn targets_of(filter: &str) -> Result<Targets, String> {
    let targets: Targets = filter.parse().map_err(|error: ParseError| error.to_string())?;
    let is_own = |name: &str| name.starts_with("kvssd") && !name.contains(|letter| !is_of_name(letter));
    match targets.iter().find(|(name, _)| !is_own(name)) {
        Some((name, _)) => Err(format!("{name:?} is no level, and no module of this program")),
        None => Ok(targets),
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == ':'
}

/// A format that leaves out lines behind the first few of a second. Lines for debugging are all written.
struct Bounded<F> {
    format: F,
    recent: Mutex<HashMap<tracing::callsite::Identifier, Recent>>,
}

impl<S, N, F> FormatEvent<S, N> for Bounded<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO {
            return self.format.format_event(context, out, event);
        }
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let left_out = recent.entry(metadata.callsite()).or_default().count(Instant::now());
        drop(recent);
        match left_out {
            None => Ok(()),
            Some(0) => self.format.format_event(context, out, event),
            Some(left_out) => {
                let mut line = String::new();
                self.format.format_event(context, Writer::new(&mut line), event)?;
                writeln!(out, "{} left_out={left_out}", line.trim_end())
            }
        }
    }
}

/// The lines of a place in the code.
#[derive(Default)]
struct Recent {
    second_began: Option<Instant>,
    /// Lines written in that second.
    written: u32,
    /// Lines left out since the last one was written.
    left_out: u64,
}

impl Recent {
    /// Counts a line. `None` if it is left out, or else how many were before it.
    fn count(&mut self, now: Instant) -> Option<u64> {
        if self.second_began.is_none_or(|began| now.duration_since(began) >= SECOND) {
            (self.second_began, self.written) = (Some(now), 0);
        }
        if self.written == LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_a_few_lines_and_the_next_one_says_how_many_were_left_out() {
        let (mut recent, began) = (Recent::default(), Instant::now());
        assert!((0..LINES_MAX).all(|_| recent.count(began) == Some(0)));
        assert!((0..500).all(|_| recent.count(began + SECOND / 2).is_none()));
        assert_eq!(recent.count(began + SECOND), Some(500));
        assert_eq!(recent.count(began + SECOND), Some(0));
    }
}
