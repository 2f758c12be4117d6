//! Linearizability of one key: whether what hosts have seen of it can be explained by each call taking effect at one moment between its begin and its
//! end.
//!
//! ```text
//!   host 1    |-- store 1 --|          |-- get: 2 --|
//!   host 2          |------ store 2 ------|              |-- get: 1 --|      no: 1 was there, and cannot come again
//!   host 3    |-- store 3 ...                                                in doubt: it takes effect once at any later moment, or never
//! ```
//!
//! A pure function over a history, without threads, sockets or clocks. A pass over the begins and ends keeps all **configurations** that explain what
//! has
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
mod tests;
