//! An index, and what was chosen of it.

use crate::index::IndexPlan;
use crate::journal::attributes::SavedKind;
use crate::parameters::{Chosen, first_named, texts};
use std::any::Any;

/// An index, and what was chosen of it.
#[derive(Clone, Debug)]
pub struct IndexChoice(Chosen<dyn IndexPlan>);

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
        IndexChoice(Chosen::of(plan))
    }

    /// The same of a `static`, for designs that many crates name: a constant is made anew in each of them, and what it refers to is
    /// compiled there, the whole index, where it is generic as all of sections are. A static is made once.
    #[must_use]
    pub const fn preset(plan: &'static &'static dyn IndexPlan) -> Self {
        IndexChoice(Chosen::Preset(plan))
    }

    /// How it is built.
    #[must_use]
    pub fn plan(&self) -> &dyn IndexPlan {
        self.0.get()
    }

    /// The same, to be chosen otherwise.
    pub(crate) fn plan_mut(&mut self) -> &mut dyn IndexPlan {
        self.0.get_mut()
    }

    /// Chooses that the index begins as small as it can.
    pub fn begin_small(&mut self) {
        self.plan_mut().begin_small();
    }

    /// All that was chosen, by name.
    #[must_use]
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        texts(dyn_clone::clone_box(self.plan()).parameters())
    }

    /// Whether the two have one name and are of different types: an image has the name alone.
    #[must_use]
    pub fn is_namesake(&self, other: &IndexChoice) -> bool {
        let type_of = |choice: &IndexChoice| (choice.plan() as &dyn Any).type_id();
        self.plan().name() == other.plan().name() && type_of(self) != type_of(other)
    }

    /// The first of that name.
    pub(crate) fn named(name: &str, choices: impl IntoIterator<Item = IndexChoice>) -> Result<IndexChoice, String> {
        first_named("index", name, choices, |choice| choice.plan().name())
    }

    /// The first that keeps keys in order.
    pub(crate) fn ordered(choices: impl IntoIterator<Item = IndexChoice>) -> Result<IndexChoice, String> {
        let first = choices.into_iter().find(|choice| choice.plan().is_ordered());
        first.ok_or_else(|| "there is no index that keeps keys in order".to_owned())
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
    pub(crate) fn of_saved(
        saved: &SavedKind,
        choices: impl IntoIterator<Item = IndexChoice>,
    ) -> Result<IndexChoice, String> {
        let mut choice = IndexChoice::named(&saved.name, choices)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dram::DramUse;
    use crate::index::{Index, Parameters, Room};

    /// A plan of two choices, which nobody builds.
    #[derive(Clone, Debug)]
    struct Plan {
        width: u32,
        is_deep: bool,
    }

    impl IndexPlan for Plan {
        fn name(&self) -> &'static str {
            "plan"
        }

        fn parameters(&mut self) -> Parameters<'_> {
            vec![("width", &mut self.width), ("is_deep", &mut self.is_deep)]
        }

        fn check(&self) -> Result<(), String> {
            if self.width > 9 { Err("width must be at most 9".to_owned()) } else { Ok(()) }
        }

        fn build(&self, _room: &Room) -> Result<Box<dyn Index>, String> {
            Err("nobody builds it".to_owned())
        }

        fn tags(&self, _room: &Room) -> u64 {
            1
        }

        fn charge(&self, _room: &Room, _dram: &mut DramUse) {}
    }

    const PRESET: IndexChoice = IndexChoice::of(&Plan { width: 4, is_deep: true });

    #[test]
    fn an_index_is_what_was_saved_whatever_this_program_would_choose() {
        let mut chosen = PRESET;
        chosen.set("width", "7").unwrap();
        chosen.set("is_deep", "false").unwrap();
        assert_ne!(chosen, PRESET);
        let saved = chosen.saved(77);
        assert_eq!(IndexChoice::of_saved(&saved, [PRESET]), Ok(chosen));
        for missing in 0..saved.parameters.len() {
            let mut less = saved.clone();
            let (key, _) = less.parameters.remove(missing);
            assert!(IndexChoice::of_saved(&less, [PRESET]).unwrap_err().contains(&key));
        }
        let other = |key: &str, value: &str| {
            let mut other = saved.clone();
            other.parameters.retain(|(known, _)| known != key);
            other.parameters.push((key.to_owned(), value.to_owned()));
            IndexChoice::of_saved(&other, [PRESET]).unwrap_err()
        };
        assert!(other("height", "1").contains("height") && other("width", "10").contains("at most 9"));
        // What a program does that knows no caches, and what this one does.
        let cache: kvssd_cache::CacheAttributes = "lru budget=100 asked=2".parse().unwrap();
        let cached = saved.clone().with_cache(Some(&cache));
        assert!(IndexChoice::of_saved(&cached, [PRESET]).unwrap_err().contains("cache"));
        assert_eq!((cached.split(), saved.split()), (Ok((saved.clone(), Some(cache))), Ok((saved.clone(), None))));
        let unknown = SavedKind { name: "cabbage".to_owned(), ..saved.clone() };
        assert!(IndexChoice::of_saved(&unknown, [PRESET]).unwrap_err().contains("cabbage"));
    }
}
