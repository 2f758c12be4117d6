//! Iterators that come and go while a drive of a campaign works: what they keep must be nobody's after the cut. Those that read nothing ahead are
//! glanced at, too, on a medium that gives up a little memory for what was seen: a glance sees what the command answers, whether it looks at
//! pages or has values that were kept. The report counts both.

use super::CrashReport;
use super::turn::{End, run_in};
use kvssd_ftl::Engine;
use kvssd_types::{
    Command, IteratedPair, IteratorId, IteratorOptions, Key, KvError, NamespaceId, Nanos, Random, Reply,
};

/// Iterators at a time.
const ITERATORS_MAX: usize = 3;
/// Pairs that one takes at a time, at the most.
const PAIRS_MAX: u64 = 20;
/// So many places in the order of the keys one is sent to, again and again in a life, so that it comes to what was seen there before.
const PLACES: u64 = 4;
/// Of so many seeks one goes to the begin.
const BEGINS: u64 = 4;

/// The iterators of a life.
#[derive(Debug)]
pub(super) struct OpenIterators {
    live: Vec<(NamespaceId, IteratorId)>,
    /// Keys begin with a number below this.
    numbers: u64,
}

impl OpenIterators {
    /// None yet, on a drive whose keys begin with so many numbers.
    pub(super) fn new(numbers: usize) -> Self {
        OpenIterators { live: Vec::new(), numbers: numbers as u64 }
    }

    /// One comes to a namespace whose keys have an order, goes on or goes. Does nothing where there is no such namespace.
    pub(super) fn act(
        &mut self,
        engine: &mut Engine,
        clock: &mut Nanos,
        random: &mut Random,
        report: &mut CrashReport,
    ) -> Result<(), End> {
        let namespaces = engine.namespaces();
        let ordered: Vec<NamespaceId> =
            namespaces.iter().filter(|namespace| namespace.is_ordered).map(|namespace| namespace.id).collect();
        // What a namespace had that was deleted is gone with it.
        self.live.retain(|(namespace, _)| ordered.contains(namespace));
        if ordered.is_empty() {
            return Ok(());
        }
        let number = ((random.below(PLACES) * self.numbers / PLACES) as u16).to_be_bytes();
        let pairs_max = 1 + random.below(PAIRS_MAX) as u32;
        let one_of = |random: &mut Random, count: usize| random.below(count as u64) as usize;
        let (namespace, command) = match (self.live.len(), random.below(4)) {
            (0..ITERATORS_MAX, 0) | (0, _) => {
                let descending = random.below(2) == 0;
                let options = IteratorOptions { descending, ..IteratorOptions::default() };
                (ordered[one_of(random, ordered.len())], Command::CreateIterator { options })
            }
            (live, 1) => {
                let (namespace, iterator) = self.live.swap_remove(one_of(random, live));
                (namespace, Command::DestroyIterator { iterator })
            }
            (live, 2) => {
                let (namespace, iterator) = self.live[one_of(random, live)];
                let key = if random.below(BEGINS) > 0 { Key::new(&number).ok() } else { None };
                (namespace, Command::Seek { iterator, key, pairs_max })
            }
            (live, _) => {
                let (namespace, iterator) = self.live[one_of(random, live)];
                (namespace, Command::Next { iterator, pairs_max })
            }
        };
        let seen = if random.below(2) == 0 { engine.glance(namespace, &command) } else { None };
        let is_compared = matches!(command, Command::Seek { .. }) || random.below(2) == 0;
        let reply = match seen {
            Some(Ok(Reply::Pairs(pairs))) => {
                report.pairs_glanced += pairs.len() as u64;
                if is_compared { compared(engine, clock, namespace, command, pairs)? } else { Ok(Reply::Pairs(pairs)) }
            }
            Some(seen) => seen,
            None => run_in(engine, clock, namespace, command),
        };
        match reply {
            Ok(Reply::IteratorCreated(id)) => self.live.push((namespace, id)),
            Ok(_)
            | Err(KvError::TooManyIterators { .. } | KvError::IteratorExpired(_) | KvError::NoSuchIterator(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// What the drive answers where a glance has seen these pairs. Whoever is sent somewhere twice stands where he stood; one that went on by a
/// glance is sent to the first key that it gave, and stands where that has left it.
fn compared(
    engine: &mut Engine,
    clock: &mut Nanos,
    namespace: NamespaceId,
    command: Command<'_>,
    pairs: Vec<IteratedPair>,
) -> Result<Result<Reply, KvError>, End> {
    let again = match (command, pairs.first()) {
        (Command::Next { iterator, pairs_max }, Some((first, _))) => {
            Command::Seek { iterator, key: Key::new(first).ok(), pairs_max }
        }
        (command, _) => command,
    };
    let reply = run_in(engine, clock, namespace, again);
    let seen = Ok(Reply::Pairs(pairs));
    if reply.is_ok() && reply != seen {
        return Err(End::Wrong(format!("a glance sees {seen:?}, and the command answers {reply:?}")));
    }
    Ok(reply)
}
