//! The index of a namespace, written down: creating chooses it, a mount obeys.

use crate::design::{Design, IndexKind};
use crate::index::Parameter;
use serde::{Deserialize, Serialize};

/// Which index a namespace has, with all that was chosen of it: what attributes leave to the program, another program may choose otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedKind {
    /// [`IndexPlan::name`](crate::index::IndexPlan::name).
    pub name: String,
    /// All its parameters.
    pub parameters: Vec<(String, String)>,
    /// What its tags are below, which follows from these and the drive: a program that reckons otherwise would find nothing.
    pub tags: u64,
}

impl IndexKind {
    /// With all that was chosen of it.
    pub(super) fn saved(mut self, tags: u64) -> SavedKind {
        let name = self.plan().name().to_owned();
        let text = |(key, parameter): (&str, &mut dyn Parameter)| (key.to_owned(), parameter.text());
        SavedKind { name, parameters: self.plan_mut().parameters().into_iter().map(text).collect(), tags }
    }

    /// What was saved: nothing of it is left to what this program would choose.
    pub(super) fn of_saved(saved: &SavedKind, own: &Design) -> Result<IndexKind, String> {
        let mut kind = IndexKind::named(&saved.name, own)?;
        let known: Vec<&str> = kind.plan_mut().parameters().into_iter().map(|(key, _)| key).collect();
        if let Some(key) = known.iter().find(|key| !saved.parameters.iter().any(|(saved, _)| saved == *key)) {
            return Err(format!("nothing is said there of {key}, a parameter of {}", saved.name));
        }
        for (key, value) in &saved.parameters {
            kind.set(key, value)?;
        }
        kind.plan().check()?;
        Ok(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::DESIGNS;

    #[test]
    fn an_index_is_what_was_saved_whatever_this_program_would_choose() {
        for design in &DESIGNS {
            let mut chosen = design.index;
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
                assert_eq!(IndexKind::of_saved(&saved, own), Ok(chosen));
            }
            for missing in 0..saved.parameters.len() {
                let mut less = saved.clone();
                let (key, _) = less.parameters.remove(missing);
                assert!(IndexKind::of_saved(&less, design).unwrap_err().contains(&key));
            }
        }
    }
}
