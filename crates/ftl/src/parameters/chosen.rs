//! A part of a design with what was chosen of it: a constant until somebody chooses otherwise.

use dyn_clone::DynClone;
use std::fmt;

/// A part behind a trait, as it was given or with other parameters.
pub(crate) enum Chosen<P: ?Sized + 'static> {
    /// As it was given.
    Given(&'static P),
    /// As a preset has it.
    Preset(&'static &'static P),
    /// With other parameters, perhaps.
    Own(Box<P>),
}

impl<P: ?Sized + DynClone> Chosen<P> {
    pub(crate) const fn of(part: &'static P) -> Self {
        Chosen::Given(part)
    }

    pub(crate) fn get(&self) -> &P {
        match self {
            Chosen::Given(part) => part,
            Chosen::Preset(part) => part,
            Chosen::Own(part) => part,
        }
    }

    /// The part, to be chosen otherwise: the first time it is copied.
    pub(crate) fn get_mut(&mut self) -> &mut P {
        if let Chosen::Given(_) | Chosen::Preset(_) = self {
            *self = Chosen::Own(dyn_clone::clone_box(self.get()));
        }
        match self {
            Chosen::Own(part) => part,
            Chosen::Given(_) | Chosen::Preset(_) => unreachable!("it was copied"),
        }
    }
}

/// The first of that name.
///
/// # Errors
/// Which there are.
pub(crate) fn first_named<C>(
    kind: &str,
    name: &str,
    choices: impl IntoIterator<Item = C>,
    name_of: impl Fn(&C) -> &'static str,
) -> Result<C, String> {
    let mut known = Vec::new();
    for choice in choices {
        match name_of(&choice) {
            other if other == name => return Ok(choice),
            other if known.contains(&other) => {}
            other => known.push(other),
        }
    }
    Err(format!("there is no {kind} {name:?} (there are: {})", known.join(", ")))
}

impl<P: ?Sized + DynClone> Clone for Chosen<P> {
    fn clone(&self) -> Self {
        match self {
            Chosen::Given(part) => Chosen::Given(part),
            Chosen::Preset(part) => Chosen::Preset(part),
            Chosen::Own(part) => Chosen::Own(dyn_clone::clone_box(&**part)),
        }
    }
}

impl<P: ?Sized + DynClone + fmt::Debug> fmt::Debug for Chosen<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.get(), formatter)
    }
}
