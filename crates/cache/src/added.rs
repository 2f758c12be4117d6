//! Policies by name: those that come along, and those that a program adds.

use kvssd_types::UnknownName;
use std::sync::{PoisonError, RwLock};
use thiserror::Error;

/// A policy that is chosen by its name.
pub(crate) trait Named: Copy {
    /// What it is, for who gets a name wrong.
    const WHAT: &'static str;

    fn name(&self) -> &'static str;
}

/// Why a policy was not added.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// There is another one.
    #[error("there is a {0} called {1:?} already")]
    Taken(&'static str, &'static str),
    /// It would be read as something else.
    #[error("a {0} is called by small letters, digits and - alone: {1:?}")]
    Letters(&'static str, &'static str),
}

/// What was added. It only grows, and no result depends on it but by the names that are asked for.
pub(crate) struct Added<T>(RwLock<Vec<T>>);

impl<T: Named> Added<T> {
    pub(crate) const fn new() -> Self {
        Added(RwLock::new(Vec::new()))
    }

    /// Those that come along, and those that were added.
    pub(crate) fn behind(&self, along: impl IntoIterator<Item = T>) -> Vec<T> {
        let added = self.0.read().unwrap_or_else(PoisonError::into_inner);
        along.into_iter().chain(added.iter().copied()).collect()
    }

    pub(crate) fn add(&self, policy: T, along: impl IntoIterator<Item = T>) -> Result<(), NameError> {
        let name = policy.name();
        let is_of_names = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        if name.is_empty() || !name.chars().all(is_of_names) {
            return Err(NameError::Letters(T::WHAT, name));
        }
        let mut added = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if along.into_iter().chain(added.iter().copied()).any(|known| known.name() == name) {
            return Err(NameError::Taken(T::WHAT, name));
        }
        added.push(policy);
        Ok(())
    }
}

pub(crate) fn named<T: Named>(name: &str, known: &[T]) -> Result<T, UnknownName> {
    let choices = || known.iter().map(Named::name).collect::<Vec<_>>().join(", ");
    known.iter().copied().find(|policy| policy.name() == name).ok_or_else(|| UnknownName {
        what: T::WHAT,
        name: name.to_owned(),
        choices: choices(),
    })
}
