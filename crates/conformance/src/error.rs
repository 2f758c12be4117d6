//! Why a campaign cannot be run.

use kvssd_flash::ProfileError;
use kvssd_ftl::DesignError;
use thiserror::Error;

/// Why a campaign was not run to its end. What it finds is no error: it is in its report.
#[derive(Debug, Error)]
pub enum CampaignError {
    /// The design does not fit the drive.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// The drive cannot be.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The design has no keys.
    #[error("--design {0}: a campaign stores keys, and it takes blocks")]
    TakesBlocks(String),
    /// The user wants it to end.
    #[error("interrupted")]
    Interrupted,
}
