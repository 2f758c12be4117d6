//! The index of a namespace, written down: creating chooses it, a mount obeys.

use serde::{Deserialize, Serialize};

/// Which index a namespace has, with all that was chosen of it: what attributes leave to the program, another program
/// may choose otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedKind {
    /// [`IndexPlan::name`](crate::index::IndexPlan::name).
    pub name: String,
    /// All its parameters.
    pub parameters: Vec<(String, String)>,
    /// What its tags are below, which follows from these and the drive: a program that reckons otherwise would find
    /// nothing.
    pub tags: u64,
}

#[cfg(test)]
mod tests {
    use crate::design::{DESIGNS, IndexChoice};

    #[test]
    fn an_index_is_what_was_saved_whatever_this_program_would_choose() {
        for design in &DESIGNS {
            let mut chosen = design.index.clone();
            for (key, parameter) in chosen.plan_mut().parameters() {
                // Another number than the preset's, where there is another that can be.
                let other = match (key, parameter.text().as_str()) {
                    (_, "true") => "false",
                    ("signature_bits", _) => "32",
                    ("table_pages", _) => "2",
                    _ => continue,
                };
                parameter.set(other).unwrap();
            }
            let saved = chosen.saved(77);
            for own in &DESIGNS {
                assert_eq!(IndexChoice::of_saved(&saved, own), Ok(chosen.clone()));
            }
            for missing in 0..saved.parameters.len() {
                let mut less = saved.clone();
                let (key, _) = less.parameters.remove(missing);
                assert!(IndexChoice::of_saved(&less, design).unwrap_err().contains(&key));
            }
        }
    }
}
