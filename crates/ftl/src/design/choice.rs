//! An index, and what was chosen of it.

use crate::attributes::SavedKind;
use crate::design::Design;
use crate::index::IndexPlan;

/// An index, and what was chosen of it.
#[derive(Debug)]
pub struct IndexChoice(Plan);

#[derive(Debug)]
enum Plan {
    /// As a preset has it.
    Preset(&'static dyn IndexPlan),
    /// With other parameters, perhaps.
    Own(Box<dyn IndexPlan>),
}

impl Clone for IndexChoice {
    fn clone(&self) -> Self {
        match self.0 {
            Plan::Preset(plan) => IndexChoice(Plan::Preset(plan)),
            Plan::Own(ref plan) => IndexChoice(Plan::Own(plan.boxed())),
        }
    }
}

/// Of the same name, with the same parameters.
impl PartialEq for IndexChoice {
    fn eq(&self, other: &Self) -> bool {
        self.plan().name() == other.plan().name() && self.parameters() == other.parameters()
    }
}

impl Eq for IndexChoice {}

impl IndexChoice {
    /// The index of that plan.
    #[must_use]
    pub const fn of(plan: &'static dyn IndexPlan) -> Self {
        IndexChoice(Plan::Preset(plan))
    }

    /// How it is built.
    #[must_use]
    pub fn plan(&self) -> &dyn IndexPlan {
        match &self.0 {
            Plan::Preset(plan) => *plan,
            Plan::Own(plan) => &**plan,
        }
    }

    /// The same, to be chosen otherwise.
    pub(crate) fn plan_mut(&mut self) -> &mut dyn IndexPlan {
        if let Plan::Preset(plan) = self.0 {
            self.0 = Plan::Own(plan.boxed());
        }
        match &mut self.0 {
            Plan::Own(plan) => &mut **plan,
            Plan::Preset(_) => unreachable!("it was copied"),
        }
    }

    /// All that was chosen, by name.
    #[must_use]
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut plan = self.plan().boxed();
        plan.parameters().into_iter().map(|(key, parameter)| (key, parameter.text())).collect()
    }

    /// The index of that name, as `own` has it, or the first design whose index is one.
    pub(crate) fn named(name: &str, own: &Design) -> Result<IndexChoice, String> {
        find(own, |plan| plan.name() == name).ok_or_else(|| {
            let mut known: Vec<&str> =
                Design::all().filter(Design::takes_keys).map(|design| design.index.plan().name()).collect();
            known.dedup();
            format!("there is no index {name:?} (there are: {})", known.join(", "))
        })
    }

    /// One that keeps keys in order.
    pub(crate) fn ordered(own: &Design) -> IndexChoice {
        find(own, |plan| plan.is_ordered()).expect("there is a design with a tree")
    }

    /// Sets a parameter of it.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let name = self.plan().name();
        let mut parameters = self.plan_mut().parameters();
        let known: Vec<&str> = parameters.iter().map(|(key, _)| *key).collect();
        let found = parameters.iter_mut().find(|(known, _)| *known == key);
        let (_, parameter) =
            found.ok_or_else(|| format!("{name} has no parameter {key} (it has: {})", known.join(", ")))?;
        parameter.set(value)
    }

    /// With all that was chosen of it.
    pub(crate) fn saved(&self, tags: u64) -> SavedKind {
        let parameters = self.parameters().into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        SavedKind { name: self.plan().name().to_owned(), parameters, tags }
    }

    /// What was saved: nothing of it is left to what this program would choose.
    pub(crate) fn of_saved(saved: &SavedKind, own: &Design) -> Result<IndexChoice, String> {
        let mut choice = IndexChoice::named(&saved.name, own)?;
        let known = choice.parameters();
        if let Some((key, _)) = known.iter().find(|(key, _)| !saved.parameters.iter().any(|(saved, _)| saved == key)) {
            return Err(format!("nothing is said there of {key}, a parameter of {}", saved.name));
        }
        for (key, value) in &saved.parameters {
            choice.set(key, value)?;
        }
        choice.plan().check()?;
        Ok(choice)
    }
}

/// The index of `own`, or of the first design, that is one of those.
fn find(own: &Design, is_it: impl Fn(&dyn IndexPlan) -> bool) -> Option<IndexChoice> {
    let mut choices = std::iter::once(own.index.clone()).chain(Design::all().map(|design| design.index));
    choices.find(|choice| is_it(choice.plan()))
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
