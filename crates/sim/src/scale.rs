//! The part of a testbed that a run has: `--scale`.

use crate::error::SimError;

/// Scales that are tried: 1, 1/2, 1/4 and so on.
const SCALES: u32 = 32;

/// Passes on what `check` says of a scale. If that is an error, the smallest larger one without is named with it.
///
/// # Errors
/// What `check` refuses the scale for.
pub fn check_scale(scale: f64, check: impl Fn(f64) -> Result<(), SimError>) -> Result<(), SimError> {
    let Err(why) = check(scale) else { return Ok(()) };
    let larger = (0..SCALES).rev().map(|log| 1u64 << log).filter(|&parts| 1.0 / parts as f64 > scale);
    let mut possible = larger.skip_while(|&parts| check(1.0 / parts as f64).is_err());
    Err(match possible.next() {
        Some(1) => SimError::Setup(format!("{why}; with --scale 1 there is room")),
        Some(parts) => SimError::Setup(format!("{why}; with --scale 1/{parts} there is room")),
        None => why,
    })
}
