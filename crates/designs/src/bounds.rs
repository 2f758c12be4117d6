//! What the choices of an index may be.

use std::ops::RangeInclusive;

/// Refuses a choice that does not lie between these.
pub(crate) fn check(name: &str, value: u32, allowed: RangeInclusive<u32>) -> Result<(), String> {
    let (low, high) = (allowed.start(), allowed.end());
    allowed.contains(&value).then_some(()).ok_or_else(|| format!("design.{name} = {value}, and it is {low} to {high}"))
}
