//! What all programs of a world have seen of all keys: who asked what, when, and what was answered.
//!
//! ```text
//!   begin(place, what it leaves) -> number     end(number, what it found)     cancel: it has no effect     neither: it is in doubt for ever
//!   check: each key by itself, over all programs and all their lives (linear.rs)
//! ```
//!
//! Values say who they are, so that one of another key, or of nobody, is known at once.

use super::model::Content;
use super::report::{Loss, Report};
use crate::Run;
use crate::linear::{self, Call, Found, check_all};
use kvssd_flash::SimulatedDisk;
use kvssd_host::NamespaceId;
use std::cell::RefCell;
use std::rc::Rc;

/// A namespace, and a key in it.
pub type Place = (u32, usize);

/// Where the book has which namespaces there are, by their numbers.
pub(super) const EXISTS: u32 = 1000;

/// Whether a place is a key of a cache, where there are caches: those of all namespaces but the first.
fn is_cached(place: Place) -> bool {
    place.0 != NamespaceId::FIRST.0 && place.0 < EXISTS
}

/// Steps of a key that are told when something was wrong with it.
const STEPS: usize = 40;
/// The last calls: those in doubt from lives before are not among them for long.
const RECENT: usize = 16;
/// Bytes that name a value.
const NAME_BYTES: usize = 8;

/// The number of a call in the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line(usize);

/// A book that all programs of a world write in.
pub type SharedBook = Rc<RefCell<Book>>;

/// What was asked and answered.
#[derive(Debug, Default)]
pub struct Book {
    clock: u64,
    calls: Vec<(Place, Call)>,
    /// Where each value belongs, and how long it is.
    values: Vec<(Place, usize)>,
    wrong: Option<String>,
    /// Whether pairs of caches may leave.
    pub(super) has_caches: bool,
    /// Lives that have begun.
    pub lives: u64,
}

impl Book {
    /// The world has come to its end: reports what took place, and whether all of it can have been.
    ///
    /// # Errors
    /// What was lost.
    pub(super) fn conclude(
        &mut self,
        run: Run<()>,
        disk: &SimulatedDisk,
        seed: u64,
        report: &mut Report,
    ) -> Result<(), Loss> {
        let (trace, calls) = (run.trace, disk.calls());
        *report += Report { trace, calls, doubts: self.doubts(), acts: self.calls(), ..Report::default() };
        if let Err(failure) = run.result {
            self.fail(failure.to_string());
        }
        self.check(seed)?;
        report.drives += 1;
        Ok(())
    }

    /// A value that nobody has had, of so many bytes, or a few more.
    pub fn new_value(&mut self, place: Place, bytes: usize) -> (u64, Vec<u8>) {
        let number = self.values.len() as u64;
        let bytes = bytes.max(NAME_BYTES);
        self.values.push((place, bytes));
        (number, value_of(number, bytes))
    }

    /// Which value that is.
    ///
    /// # Errors
    /// When it is none, or of another place.
    pub fn number_of(&self, place: Place, value: &[u8]) -> Result<u64, String> {
        let name = value.get(..NAME_BYTES).and_then(|name| name.try_into().ok()).map(u64::from_le_bytes);
        let known = name.and_then(|number| Some((number, self.values.get(usize::try_from(number).ok()?)?)));
        match known {
            Some((number, &(of, bytes))) if of == place && value == value_of(number, bytes) => Ok(number),
            Some((number, (of, _))) if *of != place => Err(format!("{place:?} has value {number} of {of:?}")),
            _ => Err(format!("{place:?} has a value of {} B that nobody stored", value.len())),
        }
    }

    /// A call begins that leaves that, if it is made.
    pub fn begin(&mut self, place: Place, found: Found, left: Option<linear::Content>) -> Line {
        self.clock += 1;
        let call = Call { began: self.clock, ended: None, found, left };
        if self.has_caches && is_cached(place) && matches!(left, Some(Some(_))) {
            // It leaves some time.
            self.calls.push((place, Call { found: Found::Anything, left: Some(None), ..call }));
        }
        self.calls.push((place, call));
        Line(self.calls.len() - 1)
    }

    /// It was answered, as it was begun.
    pub fn end(&mut self, line: Line) {
        self.clock += 1;
        self.calls[line.0].1.ended = Some(self.clock);
    }

    /// It was answered, and has found that.
    pub fn end_with(&mut self, line: Line, found: Found, left: Option<linear::Content>) {
        self.end(line);
        let call = &mut self.calls[line.0].1;
        (call.found, call.left) = (found, left);
    }

    /// It has no effect.
    pub fn cancel(&mut self, line: Line) {
        let call = &mut self.calls[line.0].1;
        *call = Call { began: call.began, ended: None, found: Found::Anything, left: None };
    }

    /// When a call began.
    #[must_use]
    pub fn began(&self, line: Line) -> u64 {
        self.calls[line.0].1.began
    }

    /// When the store of a value was answered, if it was.
    #[must_use]
    pub fn stored(&self, value: u64) -> Option<u64> {
        let stores = self.calls.iter().filter(|(_, call)| call.left == Some(Some(value)));
        stores.filter_map(|(_, call)| call.ended).min()
    }

    /// Where one of the last calls changes something and was not answered yet.
    #[must_use]
    pub fn under_way(&self) -> Option<Place> {
        let is_under_way =
            |(place, call): &&(Place, Call)| place.0 != EXISTS && call.ended.is_none() && call.left.is_some();
        self.calls.iter().rev().take(RECENT).find(is_under_way).map(|(place, _)| *place)
    }

    /// Changes that are in doubt.
    #[must_use]
    pub fn doubts(&self) -> u64 {
        self.calls.iter().filter(|(_, call)| call.ended.is_none() && call.left.is_some()).count() as u64
    }

    /// Calls that there were.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.len() as u64
    }

    /// Something cannot be. The first is told.
    pub fn fail(&mut self, what: impl Into<String>) {
        self.wrong.get_or_insert(what.into());
    }

    /// Something must be as it should.
    pub fn must(&mut self, looked: Result<(), String>) {
        if let Err(what) = looked {
            self.fail(what);
        }
    }

    /// Whether something was wrong.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.wrong.is_some()
    }

    /// Whether all that was seen can be.
    ///
    /// # Errors
    /// What cannot.
    pub fn check(&self, seed: u64) -> Result<(), Loss> {
        let loss = |what: String, history| Err(Loss { seed, life: self.lives, what, history });
        if let Some(what) = &self.wrong {
            return loss(what.clone(), self.last_of(|_| true, u64::MAX));
        }
        let (found, _) = check_all(&self.calls);
        let Some((place, calls, violation)) = found.first() else { return Ok(()) };
        let call = calls[violation.call];
        let what = format!(
            "key {place:?}: nothing explains {}; it had {:?}; under way were {}; {} keys of that kind",
            told(&call),
            violation.contents,
            violation.under_way.iter().map(|number| told(&calls[*number])).collect::<Vec<_>>().join(", "),
            found.len()
        );
        loss(what, self.last_of(|of| of == place, call.ended.unwrap_or(u64::MAX)))
    }

    /// The last calls of some keys that began before a moment.
    fn last_of(&self, is_told: impl Fn(&Place) -> bool, until: u64) -> Vec<String> {
        let of = |(place, call): &&(Place, Call)| is_told(place) && call.began <= until;
        let mut calls: Vec<_> = self.calls.iter().filter(of).collect();
        calls.drain(..calls.len().saturating_sub(STEPS));
        calls.iter().map(|(place, call)| format!("{place:?} {}", told(call))).collect()
    }
}

fn value_of(number: u64, bytes: usize) -> Vec<u8> {
    let mut value = number.to_le_bytes().to_vec();
    value.extend(Content { seed: number, bytes: bytes - NAME_BYTES }.value());
    value
}

fn told(call: &Call) -> String {
    let ended = call.ended.map_or("in doubt".to_owned(), |ended| ended.to_string());
    let did = match call.left {
        Some(Some(value)) => format!("store {value}"),
        Some(None) => "delete".to_owned(),
        None => "look".to_owned(),
    };
    let found = match call.found {
        Found::Anything => "",
        Found::Something => " found something",
        Found::Exactly(None) => " found nothing",
        Found::Exactly(Some(value)) => return format!("[{}..{ended}] {did} found {value}", call.began),
    };
    format!("[{}..{ended}] {did}{found}", call.began)
}
