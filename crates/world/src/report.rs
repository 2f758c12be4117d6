//! How a run has ended.

use crate::process::Process;
use std::fmt;
use std::time::Duration;

/// A world that has ended.
#[derive(Clone, Debug)]
pub struct Run<T> {
    /// What its main actor gave.
    pub result: Result<T, Failure>,
    /// A hash of all turns, moments, and bytes on the network.
    pub trace: u64,
    /// How long it took, in the world.
    pub time: Duration,
    /// How often somebody was given the turn.
    pub turns: u64,
    /// How often that was another than who had it.
    pub hand_overs: u64,
}

/// Why a run did not end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody can ever go on.
    Deadlock {
        /// All actors, and what they wait for.
        waiting: Vec<Waiting>,
    },
    /// An actor panicked.
    Panic {
        /// Which.
        actor: String,
        /// With what words.
        message: String,
    },
    /// It had more turns than it may.
    Endless {
        /// So many.
        turns: u64,
    },
    /// The main actor was killed.
    Killed,
}

/// An actor that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its process.
    pub process: Process,
    /// Its name.
    pub actor: String,
    /// What for.
    pub what: &'static str,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Deadlock { waiting } => {
                f.write_str("deadlock:")?;
                waiting.iter().try_for_each(|Waiting { process, actor, what }| {
                    write!(f, "\n  {actor:?} of process {} waits for {what}", process.0)
                })
            }
            Failure::Panic { actor, message } => write!(f, "{actor:?} panicked: {message}"),
            Failure::Endless { turns } => write!(f, "it has not ended within {turns} turns"),
            Failure::Killed => f.write_str("the main actor was killed"),
        }
    }
}

impl std::error::Error for Failure {}
