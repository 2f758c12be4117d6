//! What a person is told when something cannot be done, and the exit status.

use kvssd_flash::ProfileError;
use kvssd_ftl::DesignError;
use kvssd_lab::LabError;
use std::path::PathBuf;
use std::process::ExitCode;
use thiserror::Error;

/// Why the program ends without having done its work.
#[derive(Debug, Error)]
pub enum Failure {
    /// The experiment.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The output.
    #[error("{}: cannot be written: {why}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: std::io::Error,
    },
}

impl Failure {
    /// 2 for what the user can change, 130 for an interrupt, 1 for the rest.
    pub fn code(&self) -> ExitCode {
        match self {
            Failure::Lab(LabError::Interrupted) => ExitCode::from(130),
            Failure::Lab(LabError::Drive(_) | LabError::WrongValues(_) | LabError::Losses(_)) => ExitCode::from(1),
            Failure::Lab(_) | Failure::Output { .. } => ExitCode::from(2),
        }
    }
}

impl From<DesignError> for Failure {
    fn from(error: DesignError) -> Self {
        Failure::Lab(error.into())
    }
}

impl From<ProfileError> for Failure {
    fn from(error: ProfileError) -> Self {
        Failure::Lab(error.into())
    }
}
