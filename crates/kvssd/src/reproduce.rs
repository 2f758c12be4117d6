//! `kvssd reproduce`: a paper's claims.

use crate::Outcome;
use crate::arguments::ReproduceOptions;

/// Runs the claims.
pub fn run(_options: &ReproduceOptions) -> Outcome {
    Ok(())
}
