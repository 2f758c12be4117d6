//! Where a side is on its way through an authentication.

use crate::failure::Failure;

/// How far an authentication has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Messages are still to be exchanged.
    UnderWay,
    /// All proofs that were wanted were given.
    Authenticated,
    /// It is over, and nothing was proved.
    Failed(Failure),
}

/// The state of a side, whose steps until the end are `Step`.
pub(crate) enum State<Step> {
    UnderWay(Step),
    Authenticated,
    /// The next message is of this failure.
    Failing(Failure),
    Failed(Failure),
}

impl<Step> State<Step> {
    pub(crate) fn progress(&self) -> Progress {
        match self {
            State::Authenticated => Progress::Authenticated,
            State::Failed(failure) => Progress::Failed(*failure),
            State::UnderWay(_) | State::Failing(_) => Progress::UnderWay,
        }
    }

    /// Takes the state out, to be replaced: until it is, nothing is proved.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, State::Failed(Failure::IncorrectMessage))
    }

    /// The state behind a message, which means nothing any more when it is over.
    pub(crate) fn followed(self, follow: impl FnOnce(Step) -> Result<Self, Failure>) -> Self {
        match self {
            State::UnderWay(step) => follow(step).unwrap_or_else(State::Failing),
            over => over,
        }
    }
}

impl<Step> From<Step> for State<Step> {
    fn from(step: Step) -> Self {
        State::UnderWay(step)
    }
}
