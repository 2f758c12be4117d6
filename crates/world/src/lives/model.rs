//! What must be on a drive: every pair of every namespace, and the one change of which it is not known whether it was made.

use kvssd_types::Random;
use std::collections::BTreeMap;
use std::iter;

/// A value by what it is made from, so that a model takes little room. Two are equal when their values are: of empty and very short ones nobody
/// can say which it is, and whoever compares takes any of them.
#[derive(Clone, Copy, Debug, Eq)]
pub struct Content {
    /// Never used twice.
    pub seed: u64,
    /// Bytes.
    pub bytes: usize,
}

impl Content {
    /// The value itself.
    #[must_use]
    pub fn value(self) -> Vec<u8> {
        let mut random = Random::new(self.seed);
        let mut value = Vec::with_capacity(self.bytes + 7);
        while value.len() < self.bytes {
            value.extend(random.bits().to_le_bytes());
        }
        value.truncate(self.bytes);
        value
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Content) -> bool {
        self.bytes == other.bytes && (self.seed == other.seed || self.value() == other.value())
    }
}

impl PartialEq<[u8]> for Content {
    fn eq(&self, value: &[u8]) -> bool {
        self.bytes == value.len() && self.value() == value
    }
}

/// The pairs of a namespace, by the numbers of their keys.
pub type Pairs = BTreeMap<usize, Content>;

/// All namespaces, by the numbers that the world gives them; 0 is the first, which is always there.
pub type Spaces = BTreeMap<usize, Pairs>;

/// A namespace, a key in it, and the value that it gets, or none.
pub type PairChange = (usize, usize, Option<Content>);

/// A change, as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Pairs(Vec<PairChange>),
    /// A namespace is made.
    Create(usize),
    /// A namespace is deleted.
    Delete(usize),
}

impl Change {
    fn apply(&self, spaces: &mut Spaces) {
        match self {
            Change::Pairs(changes) => {
                for &(space, key, content) in changes {
                    let Some(pairs) = spaces.get_mut(&space) else { continue };
                    match content {
                        Some(content) => drop(pairs.insert(key, content)),
                        None => drop(pairs.remove(&key)),
                    }
                }
            }
            Change::Create(space) => drop(spaces.insert(*space, Pairs::new())),
            Change::Delete(space) => drop(spaces.remove(space)),
        }
    }
}

/// What must be there.
#[derive(Clone, Debug)]
pub struct Model {
    /// What was answered.
    spaces: Spaces,
    /// What was asked for and not answered: there as a whole, each after the one before it, or not.
    doubtful: Vec<Change>,
}

impl Default for Model {
    fn default() -> Self {
        Model { spaces: Spaces::from([(0, Pairs::new())]), doubtful: Vec::new() }
    }
}

impl Model {
    /// What is known to be there.
    #[must_use]
    pub fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    /// A change was answered.
    pub fn made(&mut self, change: &Change) {
        change.apply(&mut self.spaces);
    }

    /// A change was asked for, and nobody knows whether it was made.
    pub fn doubts(&mut self, change: Change) {
        self.doubtful.push(change);
    }

    /// What the value of a key may have been made from.
    pub fn candidates(&self, space: usize, key: usize) -> impl Iterator<Item = Content> {
        let known = self.spaces.get(&space).and_then(|pairs| pairs.get(&key)).copied();
        let doubtful = self.doubtful.iter().filter_map(|change| match change {
            Change::Pairs(changes) => Some(changes),
            _ => None,
        });
        let of_key = move |&&(other, number, _): &&PairChange| (other, number) == (space, key);
        known.into_iter().chain(doubtful.flatten().filter(of_key).filter_map(|&(_, _, content)| content))
    }

    /// Whether a change is in doubt that removes a key, or its namespace.
    #[must_use]
    pub fn may_be_absent(&self, space: usize, key: usize) -> bool {
        let removes = |change: &Change| match change {
            Change::Pairs(changes) => changes.contains(&(space, key, None)),
            _ => false,
        };
        self.is_doubtful(space) || self.doubtful.iter().any(removes)
    }

    /// Whether it is in doubt that a namespace is there.
    #[must_use]
    pub fn is_doubtful(&self, space: usize) -> bool {
        self.doubtful
            .iter()
            .any(|change| matches!(change, Change::Create(other) | Change::Delete(other) if *other == space))
    }

    /// Takes what was found for what is there from now on.
    ///
    /// # Errors
    /// In which way it cannot be.
    pub fn settle(&mut self, found: Spaces) -> Result<(), String> {
        let mut state = self.spaces.clone();
        let mut closest = differences(&state, &found);
        for change in self.doubtful.drain(..) {
            if closest.is_empty() {
                break;
            }
            change.apply(&mut state);
            closest = iter::once(differences(&state, &found)).chain([closest]).min_by_key(Vec::len).unwrap_or_default();
        }
        if closest.is_empty() {
            self.spaces = found;
            return Ok(());
        }
        let shown: Vec<&str> = closest.iter().take(5).map(String::as_str).collect();
        Err(format!("{} differences: {}", closest.len(), shown.join("; ")))
    }
}

/// In what a drive that was found differs from what it should be.
fn differences(expected: &Spaces, found: &Spaces) -> Vec<String> {
    let mut all = Vec::new();
    for space in expected.keys().chain(found.keys()).collect::<std::collections::BTreeSet<_>>() {
        let (Some(expected), Some(found)) = (expected.get(space), found.get(space)) else {
            let what = if expected.contains_key(space) { "is lost" } else { "is there, and should not be" };
            all.push(format!("namespace {space} {what}"));
            continue;
        };
        for key in expected.keys().chain(found.keys()).collect::<std::collections::BTreeSet<_>>() {
            match (expected.get(key), found.get(key)) {
                (Some(_), None) => all.push(format!("key {key} of namespace {space} is lost")),
                (None, Some(_)) => all.push(format!("key {key} of namespace {space} has come back")),
                (Some(one), Some(other)) if one != other => {
                    all.push(format!("key {key} of namespace {space} has a value of another time"));
                }
                _ => {}
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pairs: &[(usize, Content)]) -> Spaces {
        Spaces::from([(0, pairs.iter().copied().collect())])
    }

    #[test]
    fn values_that_look_alike_are_taken_for_each_other_and_no_others() {
        let [old, new, other] = [1, 2, 3].map(|seed| Content { seed, bytes: 0 });
        let mut model = Model::default();
        model.made(&Change::Pairs(vec![(0, 1, Some(old))]));
        // Who looks finds the first of them that fits, which need not be that of the batch.
        model.doubts(Change::Pairs(vec![(0, 1, Some(new)), (0, 2, Some(other))]));
        let mut torn = model.clone();
        assert_eq!(model.settle(found(&[(1, old), (2, other)])), Ok(()));
        let long = Content { seed: 2, bytes: 20 };
        assert!(torn.settle(found(&[(1, long), (2, other)])).is_err());
        assert_ne!(long, Content { seed: 3, bytes: 20 });
    }
}
