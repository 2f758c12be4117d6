//! What can be wrong with an experiment.

use crate::trace::TraceError;
use crate::workload::WorkloadError;
use kvssd_flash::ProfileError;
use kvssd_ftl::{DesignError, Lack};
use kvssd_model::EstimateError;
use kvssd_types::{KvError, Reply, UnknownName};
use thiserror::Error;

/// Why an experiment was not run to its end.
#[derive(Debug, Error)]
pub enum SimError {
    /// The design is unknown or does not fit.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// The profile is unknown or impossible.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The workload is unknown or impossible.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A name that stands for nothing.
    #[error(transparent)]
    Name(#[from] UnknownName),
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// It is none that can be reckoned.
    #[error("no estimate: {0}")]
    Estimate(#[from] EstimateError),
    /// A number that it cannot be.
    #[error("{0}")]
    Setup(String),
    /// Ranges were asked of an index without order.
    #[error(
        "workload {workload} scans ranges, and the index of design {design} has no order: choose another workload or design"
    )]
    NoRanges {
        /// The workload.
        workload: String,
        /// The design.
        design: String,
    },
    /// The drive is too small for the records.
    #[error("the {} of design {design} is full after {stored} of {records} records: ask for {}", what.name(), what.remedy())]
    Full {
        /// What of it is full.
        what: Exhausted,
        /// The design.
        design: String,
        /// The records that fitted.
        stored: u64,
        /// The records that were wanted.
        records: u64,
    },
    /// The drive has no memory for so many iterators.
    #[error(
        "the drive had DRAM for {iterators} iterators when another was wanted, one for each thread: use fewer threads, a larger --scale or more memory.dram_bytes"
    )]
    TooManyIterators {
        /// Those that it has.
        iterators: u32,
    },
    /// The drive failed a command that it should have done.
    #[error("the drive failed: {0}")]
    Drive(KvError),
    /// The drive gave back something else than was stored.
    #[error("{0} retrieves did not give back what was stored: this is a bug of the design")]
    WrongValues(u64),
    /// The drive did not answer as it must after what a trace did before.
    #[error("{0} answers contradict the requests before them: this is a bug of the design")]
    WrongAnswers(u64),
    /// What runs on the drive, such as a database, broke a rule of its own.
    #[error("{0}")]
    Broken(String),
    /// The user wants it to end.
    #[error("interrupted")]
    Interrupted,
}

/// What a full drive has no more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// Flash.
    Flash,
    /// Places for keys in its index.
    Index,
}

impl Exhausted {
    /// Of what the last command lacked, which was refused with [`KvError::CapacityExceeded`].
    #[must_use]
    pub fn of(lacks: &[Lack]) -> Self {
        let is_index = !lacks.is_empty() && lacks.iter().all(|lack| matches!(lack, Lack::InNamespace(_)));
        if is_index { Exhausted::Index } else { Exhausted::Flash }
    }

    fn name(self) -> &'static str {
        match self {
            Exhausted::Flash => "drive",
            Exhausted::Index => "index",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Exhausted::Flash => "fewer records, smaller values or a larger --scale",
            Exhausted::Index => "fewer records, more of memory.dram_bytes or a larger --scale",
        }
    }
}

impl SimError {
    /// Of a command that the drive refused.
    #[must_use]
    pub fn of_drive(error: KvError) -> SimError {
        match error {
            KvError::TooManyIterators { iterators } => SimError::TooManyIterators { iterators },
            other => SimError::Drive(other),
        }
    }

    /// Of an iterator that answered with something else than was asked for.
    #[must_use]
    pub fn of_reply(reply: &Reply) -> SimError {
        SimError::Drive(KvError::Failed(format!("an iterator was answered by {reply:?}")))
    }
}
