//! What is put over a profile and a design, as `key=value`.

/// What the names of a design's parameters begin with among keys of a profile.
const DESIGN_PREFIX: &str = "design.";

/// A key, and what it is set to.
pub type Assignment = (String, String);

/// What is to be put over the designs, without `design.` before it, and over the profile.
#[must_use]
pub fn split_overrides(overrides: &[Assignment]) -> (Vec<Assignment>, Vec<Assignment>) {
    let (mut for_designs, for_profile): (Vec<_>, Vec<_>) =
        overrides.iter().cloned().partition(|(key, _)| key.starts_with(DESIGN_PREFIX));
    for (key, _) in &mut for_designs {
        key.drain(..DESIGN_PREFIX.len());
    }
    (for_designs, for_profile)
}
