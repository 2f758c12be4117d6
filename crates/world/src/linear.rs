//! Linearizability of one key: whether what hosts have seen of it can be explained by each call taking effect at one moment between its begin and its end.
//!
//! ```text
//!   host 1    |-- store 1 --|          |-- get: 2 --|
//!   host 2          |------ store 2 ------|              |-- get: 1 --|      no: 1 was there, and cannot come again
//!   host 3    |-- store 3 ...                                                in doubt: it takes effect once at any later moment, or never
//! ```
//!
//! A pure function over a history, without threads, sockets or clocks. A pass over the begins and ends keeps all **configurations** that explain what has
//! ended: the state of the key, and which of the calls under way have taken effect. When a call ends that has not, those under way take effect before
//! it in every order that there is (Lowe, "Testing for linearizability", 2017: just in time). Calls in doubt stay under way; of those that cannot be
//! told apart one is tried, and only where something is different afterwards, so that hundreds of them are no more work than a few.
//!
//! Values are numbers, each stored once; who checks names them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a key has: a value, or nothing.
pub type Content = Option<u64>;

/// What a call found, as far as it has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It did not look, or its answer was lost.
    Anything,
    /// The key was there.
    Something,
    /// That was there, or nothing.
    Exactly(Content),
}

/// A call on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it began.
    pub began: u64,
    /// When its answer was there; none when it is in doubt whether it took effect, or ever will.
    pub ended: Option<u64>,
    /// What it found when it took effect.
    pub found: Found,
    /// What the key has since then, if that was changed.
    pub left: Option<Content>,
}

impl Call {
    /// A store that was done.
    #[must_use]
    pub fn store(value: u64, began: u64, ended: u64) -> Call {
        Call { began, ended: Some(ended), found: Found::Anything, left: Some(Some(value)) }
    }

    /// A retrieve that gave that.
    #[must_use]
    pub fn retrieve(content: Content, began: u64, ended: u64) -> Call {
        Call { began, ended: Some(ended), found: Found::Exactly(content), left: None }
    }

    /// A delete that says whether the key was there.
    #[must_use]
    pub fn delete(was_there: bool, began: u64, ended: u64) -> Call {
        let found = if was_there { Found::Something } else { Found::Exactly(None) };
        Call { began, ended: Some(ended), found, left: was_there.then_some(None) }
    }

    /// The same call, whose answer was lost for good: it takes effect once at any later moment, or never. Nobody knows what it found: a delete in
    /// doubt is one that may have found the key.
    #[must_use]
    pub fn in_doubt(self) -> Call {
        Call { ended: None, found: Found::Anything, ..self }
    }

    fn can_follow(&self, content: Content) -> bool {
        match self.found {
            Found::Anything => true,
            Found::Something => content.is_some(),
            Found::Exactly(wanted) => content == wanted,
        }
    }
}

/// A call that nothing explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its number in the history.
    pub call: usize,
    /// The calls that were under way when it ended, itself with them.
    pub under_way: Vec<usize>,
    /// What the key could have had before they took effect.
    pub contents: Vec<Content>,
}

/// What explains all that has ended so far.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Configuration {
    content: Content,
    /// Those under way that have taken effect.
    done: BTreeSet<usize>,
}

/// Checks the history of one key, which has nothing at first.
///
/// # Errors
/// The first call that ended and that nothing explains.
pub fn check(history: &[Call]) -> Result<(), Violation> {
    let mut checker = Checker::new(history);
    let mut events: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * history.len());
    for (number, call) in history.iter().enumerate() {
        events.push((call.began, false, number));
        events.extend(call.ended.map(|ended| (ended, true, number)));
    }
    // What begins at the moment in which another ends may be before it.
    events.sort_unstable();
    for (_, is_end, number) in events {
        if is_end {
            checker.end(number)?;
        } else {
            checker.begin(number);
        }
    }
    Ok(())
}

struct Checker<'h> {
    history: &'h [Call],
    /// Values that somebody has seen.
    seen: BTreeSet<u64>,
    /// Stands for all others.
    unseen: u64,
    under_way: BTreeSet<usize>,
    configurations: BTreeSet<Configuration>,
}

/// Calls in doubt of which none can be told from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// They store what nobody has seen.
    Unseen,
    Delete,
    /// Unlike all others.
    Only(usize),
}

impl<'h> Checker<'h> {
    fn new(history: &'h [Call]) -> Self {
        let seen =
            history.iter().filter_map(|call| if let Found::Exactly(content) = call.found { content } else { None });
        let seen: BTreeSet<u64> = seen.collect();
        let unseen = (0..).find(|value| !seen.contains(value)).expect("there are fewer calls than numbers");
        let first = Configuration { content: None, done: BTreeSet::new() };
        Checker { history, seen, unseen, under_way: BTreeSet::new(), configurations: BTreeSet::from([first]) }
    }

    /// What the key has after a call, where it had `content`.
    fn after(&self, call: &Call, content: Content) -> Content {
        let left = call.left.unwrap_or(content);
        left.map(|value| if self.seen.contains(&value) { value } else { self.unseen })
    }

    /// Whether a call can take effect, and nothing is left out where it does not: one in doubt that changes nothing, or stores what nobody has
    /// seen over something, explains nothing.
    fn is_worth_it(&self, number: usize, content: Content) -> bool {
        let call = &self.history[number];
        let is_vain = match self.likeness(number) {
            Likeness::Delete => content.is_none(),
            Likeness::Unseen => content.is_some(),
            Likeness::Only(_) => false,
        };
        call.can_follow(content) && !is_vain
    }

    /// Whether another one can do all that this can, and has more left.
    fn is_dominated(&self, one: &Configuration, others: &[Configuration]) -> bool {
        let is_in_doubt = |number: &usize| self.history[*number].ended.is_none();
        others.iter().any(|other| {
            other.content == one.content
                && other.done.is_subset(&one.done)
                && one.done.difference(&other.done).all(is_in_doubt)
        })
    }

    fn likeness(&self, number: usize) -> Likeness {
        match self.history[number] {
            Call { ended: None, left: Some(None), .. } => Likeness::Delete,
            Call { ended: None, left: Some(Some(value)), .. } if !self.seen.contains(&value) => Likeness::Unseen,
            _ => Likeness::Only(number),
        }
    }

    fn begin(&mut self, number: usize) {
        // What is in doubt and changes nothing has told nobody anything.
        if self.history[number].ended.is_none() && self.history[number].left.is_none() {
            return;
        }
        self.under_way.insert(number);
        let before = std::mem::take(&mut self.configurations);
        self.configurations = before.into_iter().map(|one| self.with_reads(one)).collect();
    }

    /// Reads that can take effect do: nothing is different afterwards.
    fn with_reads(&self, mut one: Configuration) -> Configuration {
        for &number in &self.under_way {
            let call = &self.history[number];
            if call.left.is_none() && call.can_follow(one.content) {
                one.done.insert(number);
            }
        }
        one
    }

    /// A call has ended: it has taken effect, and others may have before.
    fn end(&mut self, number: usize) -> Result<(), Violation> {
        let (mut explained, mut looked_at) = (Vec::new(), Vec::new());
        let before = std::mem::take(&mut self.configurations);
        // Those of which less has taken effect come first.
        let mut open: VecDeque<Configuration> = before.iter().cloned().collect();
        while let Some(one) = open.pop_front() {
            if one.done.contains(&number) {
                if !self.is_dominated(&one, &explained) {
                    explained.push(one);
                }
                continue;
            }
            if self.is_dominated(&one, &looked_at) {
                continue;
            }
            let mut tried = BTreeSet::new();
            for &next in self.under_way.difference(&one.done) {
                if self.is_worth_it(next, one.content) && tried.insert(self.likeness(next)) {
                    let mut done = one.done.clone();
                    done.insert(next);
                    let content = self.after(&self.history[next], one.content);
                    open.push_back(self.with_reads(Configuration { content, done }));
                }
            }
            looked_at.push(one);
        }
        if explained.is_empty() {
            let contents: BTreeSet<Content> = before.iter().map(|one| one.content).collect();
            let under_way = self.under_way.iter().copied().collect();
            return Err(Violation { call: number, under_way, contents: contents.into_iter().collect() });
        }
        self.configurations = explained.into_iter().collect();
        self.forget(number);
        Ok(())
    }

    /// What has ended, and what is in doubt and has taken effect in every case, is under way no more.
    fn forget(&mut self, number: usize) {
        let mut over = vec![number];
        let is_over = |&doubted: &usize| {
            self.history[doubted].ended.is_none() && self.configurations.iter().all(|one| one.done.contains(&doubted))
        };
        over.extend(self.under_way.iter().copied().filter(is_over));
        over.iter().for_each(|number| {
            self.under_way.remove(number);
        });
        let before = std::mem::take(&mut self.configurations);
        self.configurations = before
            .into_iter()
            .map(|mut one| {
                over.iter().for_each(|number| {
                    one.done.remove(number);
                });
                one
            })
            .collect();
    }
}

/// Checks the histories of many keys; gives the first violation of each that has one, and how many calls were checked.
#[must_use]
pub fn check_all<K: Ord + Clone>(calls: &[(K, Call)]) -> (Vec<(K, Vec<Call>, Violation)>, usize) {
    let mut histories: BTreeMap<&K, Vec<Call>> = BTreeMap::new();
    for (key, call) in calls {
        histories.entry(key).or_default().push(*call);
    }
    let found = histories.into_iter().filter_map(|(key, history)| {
        let violation = check(&history).err()?;
        Some((key.clone(), history, violation))
    });
    (found.collect(), calls.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_after_the_other_each_sees_the_last() {
        let mut history = vec![
            Call::retrieve(None, 0, 1),
            Call::store(1, 2, 3),
            Call::retrieve(Some(1), 4, 5),
            Call::delete(true, 6, 7),
            Call::delete(false, 8, 9),
            Call::retrieve(None, 10, 11),
        ];
        assert_eq!(check(&history), Ok(()));
        history.push(Call::retrieve(Some(1), 12, 13));
        let violation = check(&history).unwrap_err();
        assert_eq!((violation.call, &violation.under_way[..], &violation.contents[..]), (6, &[6][..], &[None][..]));
    }

    /// Each is what a fault of a drive or a host looks like.
    #[test]
    fn planted_violations_are_found() {
        let long = Call::store(1, 0, 100);
        for (what, history) in [
            (
                "made again behind a newer one",
                vec![long, Call::retrieve(Some(1), 5, 6), Call::store(2, 10, 20), Call::retrieve(Some(1), 50, 60)],
            ),
            ("a store that is lost", vec![Call::store(1, 0, 1), Call::retrieve(None, 2, 3)]),
            ("an old value", vec![Call::store(1, 0, 1), Call::store(2, 2, 3), Call::retrieve(Some(1), 4, 5)]),
            ("a value of nobody", vec![Call::store(1, 0, 1), Call::retrieve(Some(9), 2, 3)]),
            ("a value before it is stored", vec![Call::retrieve(Some(1), 0, 1), Call::store(1, 2, 3)]),
            (
                "a delete that is undone",
                vec![Call::store(1, 0, 1), Call::delete(true, 2, 3), Call::retrieve(Some(1), 4, 5)],
            ),
            (
                "a delete that is made twice",
                vec![
                    Call::store(1, 0, 1),
                    Call::delete(true, 2, 30),
                    Call::retrieve(None, 4, 5),
                    Call::store(2, 6, 7),
                    Call::retrieve(None, 8, 9),
                ],
            ),
            (
                "two deletes of one value",
                vec![Call::store(1, 0, 1), Call::delete(true, 2, 9), Call::delete(true, 2, 9)],
            ),
            (
                "two readers that see two orders",
                vec![
                    Call::store(1, 0, 10),
                    Call::store(2, 0, 10),
                    Call::retrieve(Some(1), 11, 12),
                    Call::retrieve(Some(2), 13, 14),
                ],
            ),
            (
                "what is in doubt taking effect twice",
                vec![
                    Call::store(1, 0, 1).in_doubt(),
                    Call::retrieve(Some(1), 2, 3),
                    Call::store(2, 4, 5),
                    Call::retrieve(Some(1), 6, 7),
                ],
            ),
        ] {
            assert!(check(&history).is_err(), "{what}");
        }
    }

    #[test]
    fn what_is_in_doubt_takes_effect_late_or_never() {
        let doubted = Call::store(1, 0, 1).in_doubt();
        let (mut with, mut without) = (vec![doubted], vec![doubted]);
        for round in 1..50 {
            let began = round * 10;
            let calls =
                [Call::store(round + 1, began, began + 1), Call::retrieve(Some(round + 1), began + 2, began + 3)];
            with.extend(calls);
            without.extend(calls);
        }
        with.push(Call::retrieve(Some(1), 1000, 1001));
        assert_eq!((check(&with), check(&without)), (Ok(()), Ok(())));
        // Many of them are no more work than a few.
        let mut many: Vec<Call> = (0..400).map(|value| Call::store(value + 1000, value, 1).in_doubt()).collect();
        many.extend((0..400).map(|began| Call::delete(true, began, 1).in_doubt()));
        many.extend([Call::retrieve(None, 500, 501), Call::delete(true, 502, 503), Call::delete(false, 504, 505)]);
        assert_eq!(check(&many), Ok(()));
    }

    #[test]
    fn keys_have_histories_of_their_own() {
        let calls = [("a", Call::store(1, 0, 1)), ("b", Call::retrieve(None, 2, 3)), ("a", Call::retrieve(None, 2, 3))];
        let (found, count) = check_all(&calls);
        assert_eq!((found.len(), found[0].0, found[0].2.call, count), (1, "a", 1, 3));
    }

    /// Whether there is an order, all of which are tried.
    fn explained(history: &[Call], left: &[usize], content: Content) -> bool {
        if left.iter().all(|&number| history[number].ended.is_none()) {
            return true;
        }
        // One that began behind the end of another is not before it.
        let end = left.iter().filter_map(|&number| history[number].ended).min().unwrap_or(u64::MAX);
        left.iter().any(|&next| {
            let call = &history[next];
            let rest: Vec<usize> = left.iter().copied().filter(|&number| number != next).collect();
            call.began <= end && call.can_follow(content) && explained(history, &rest, call.left.unwrap_or(content))
        })
    }

    fn calls() -> impl Strategy<Value = Vec<Call>> {
        let one = (0..12u64, 0..8u64, 0..6u8, prop::option::of(0..5u64));
        prop::collection::vec(one, 0..7).prop_map(|raw| {
            let call = |(number, (began, length, kind, content)): (usize, (u64, u64, u8, Content))| match kind {
                0 => Call::store(number as u64, began, began + length),
                1 => Call::store(number as u64, began, began + length).in_doubt(),
                2 => Call::delete(content.is_some(), began, began + length),
                3 => Call::delete(true, began, began + length).in_doubt(),
                _ => Call::retrieve(content, began, began + length),
            };
            raw.into_iter().enumerate().map(call).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn the_answer_is_that_of_trying_every_order(history in calls()) {
            let all: Vec<usize> = (0..history.len()).collect();
            prop_assert_eq!(check(&history).is_ok(), explained(&history, &all, None));
        }
    }
}
