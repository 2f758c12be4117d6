//! What a drive must hold after a cut: the state that was accepted, or one of the states since.

use kvssd_types::{Pattern, Value};
use std::collections::VecDeque;

/// Seed and length of a key's value; none when the key is not there.
pub(crate) type Content = Option<(u64, u32)>;

/// The numbers of keys and what they were bound to, all at once.
pub(crate) type Step = Vec<(usize, Content)>;

/// The state that is certain, and the steps that may or may not have survived, in order.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    certain: Vec<Content>,
    steps: VecDeque<Step>,
    /// The state behind all steps.
    last: Vec<Content>,
}

impl Model {
    pub(crate) fn new(keys: usize) -> Self {
        Model { certain: vec![None; keys], steps: VecDeque::new(), last: vec![None; keys] }
    }

    /// What a key holds when nothing is lost.
    pub(crate) fn get(&self, key: usize) -> Content {
        self.last[key]
    }

    /// A command was executed, which may or may not survive, as a whole.
    pub(crate) fn step(&mut self, step: Step) {
        for &(key, content) in &step {
            self.last[key] = content;
        }
        self.steps.push_back(step);
    }

    /// Everything so far must survive.
    pub(crate) fn settle(&mut self) {
        for (key, content) in self.steps.drain(..).flatten() {
            self.certain[key] = content;
        }
    }

    /// Everything but the last step must survive.
    pub(crate) fn settle_all_but_last(&mut self) {
        while self.steps.len() > 1
            && let Some(step) = self.steps.pop_front()
        {
            for (key, content) in step {
                self.certain[key] = content;
            }
        }
    }

    /// The drive was mounted and holds `found`: makes that the state, or says what is wrong with it.
    pub(crate) fn adopt(&mut self, found: &[Option<Value>]) -> Result<(), String> {
        let mut state = self.certain.clone();
        let mut wrong = (0..state.len()).filter(|&key| !is_it(state[key], found[key].as_ref())).count();
        let mut taken = 0;
        while wrong > 0
            && let Some(step) = self.steps.get(taken)
        {
            for &(key, content) in step {
                let before = is_it(state[key], found[key].as_ref());
                let after = is_it(content, found[key].as_ref());
                state[key] = content;
                wrong = wrong + usize::from(before) - usize::from(after);
            }
            taken += 1;
        }
        if wrong > 0 {
            return Err(self.complaint(found));
        }
        self.steps.clear();
        self.certain.clone_from(&state);
        self.last = state;
        Ok(())
    }

    fn complaint(&self, found: &[Option<Value>]) -> String {
        let wrong: Vec<String> = (0..self.last.len())
            .filter(|&key| !is_it(self.last[key], found[key].as_ref()))
            .map(|key| {
                let wanted = self.last[key].map_or("none".to_owned(), |(seed, length)| format!("{length} B of {seed}"));
                let there = found[key].as_ref().map_or("none".to_owned(), |value| format!("{} B", value.len()));
                format!("key {key}: wanted {wanted}, found {there}")
            })
            .collect();
        format!(
            "{} of {} keys are in no state since the last flush: {}",
            wrong.len(),
            found.len(),
            wrong[..wrong.len().min(3)].join("; ")
        )
    }
}

fn is_it(content: Content, found: Option<&Value>) -> bool {
    match (content, found) {
        (None, None) => true,
        (Some((seed, length)), Some(value)) => *value == Value::Pattern(Pattern { seed, offset: 0, length }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(seed: u64) -> Option<Value> {
        Some(Value::Pattern(Pattern { seed, offset: 0, length: 9 }))
    }

    #[test]
    fn any_prefix_of_the_steps_is_a_state_and_nothing_else_is() {
        let mut model = Model::new(2);
        model.step(vec![(0, Some((1, 9)))]);
        model.settle();
        model.step(vec![(1, Some((2, 9)))]);
        model.step(vec![(0, None)]);
        for found in [[value(1), None], [value(1), value(2)], [None, value(2)]] {
            assert_eq!(model.clone().adopt(&found), Ok(()));
        }
        for found in [[None, None], [value(2), None], [value(1), value(1)]] {
            assert!(model.clone().adopt(&found).is_err(), "{found:?}");
        }
        model.settle_all_but_last();
        assert!(model.clone().adopt(&[value(1), None]).is_err());
        assert_eq!(model.adopt(&[value(1), value(2)]), Ok(()));
    }

    #[test]
    fn a_batch_is_there_as_a_whole_or_not_at_all() {
        let mut model = Model::new(2);
        model.step(vec![(0, Some((1, 9))), (1, Some((2, 9)))]);
        for found in [[None, None], [value(1), value(2)]] {
            assert_eq!(model.clone().adopt(&found), Ok(()));
        }
        for found in [[value(1), None], [None, value(2)]] {
            assert!(model.clone().adopt(&found).is_err(), "{found:?}");
        }
    }
}
