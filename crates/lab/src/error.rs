//! What can be wrong with an experiment.

use crate::trace::TraceError;
use crate::workload::WorkloadError;
use kvssd_flash::ProfileError;
use kvssd_ftl::DesignError;
use kvssd_types::{KvError, Reply};
use thiserror::Error;

/// Why an experiment was not run to its end.
#[derive(Debug, Error)]
pub enum LabError {
    /// The design is unknown or does not fit.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// The profile is unknown or impossible.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The workload is unknown or impossible.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
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
    #[error(
        "the drive of design {design} is full after {stored} of {records} records: ask for fewer --records, smaller values or a larger --scale"
    )]
    Full {
        /// The design.
        design: String,
        /// The records that fitted.
        stored: u64,
        /// The records that were wanted.
        records: u64,
    },
    /// The drive has no memory for so many iterators.
    #[error(
        "the drive has DRAM for {iterators} iterators at a time: ask for fewer --threads, a larger --scale or memory.dram_bytes"
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
    #[error("{0} answers were not what the requests before them make them: this is a bug of the design")]
    WrongAnswers(u64),
    /// Drives lost something when the power went.
    #[error("{0} drives were not what they must be after a power cut: this is a bug of the design")]
    Losses(u64),
    /// Transactions wait for each other, and nobody ends it.
    #[error("{0} transactions wait, and nothing is left that could wake them: this is a bug of the engine")]
    AllWait(u64),
    /// A row is not there that must be, or its value is not one that was written.
    #[error("row {0} is lost or damaged: this is a bug of the engine or the drive")]
    BrokenRow(String),
    /// The user wants it to end.
    #[error("interrupted")]
    Interrupted,
}

impl LabError {
    /// Of a command that the drive refused.
    pub(crate) fn of_drive(error: KvError) -> LabError {
        match error {
            KvError::TooManyIterators { iterators } => LabError::TooManyIterators { iterators },
            other => LabError::Drive(other),
        }
    }

    /// Of an iterator that answered with something else than was asked for.
    pub(crate) fn of_reply(reply: &Reply) -> LabError {
        LabError::Drive(KvError::Failed(format!("an iterator was answered by {reply:?}")))
    }
}
