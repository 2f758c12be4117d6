//! Iterators that come and go while a drive of a campaign works: what they keep must be nobody's after the cut. They are glanced at, too, on a
//! medium that gives up memory for what was seen: a glance sees what the command answers.

use super::life::{End, run_in};
use kvssd_ftl::Engine;
use kvssd_types::{Command, IteratorId, IteratorOptions, Key, KvError, NamespaceId, Nanos, Random, Reply};

/// Iterators at a time.
const ITERATORS_MAX: usize = 3;
/// Pairs that one takes at a time.
const PAIRS: u32 = 5;
/// One is sent to a key that begins with a number below this.
const NUMBERS: u64 = 4000;

/// The iterators of a life.
#[derive(Debug, Default)]
pub(super) struct OpenIterators {
    live: Vec<(NamespaceId, IteratorId)>,
}

impl OpenIterators {
    /// One comes to a namespace whose keys have an order, goes on or goes. Does nothing where there is no such namespace.
    pub(super) fn act(&mut self, engine: &mut Engine, clock: &mut Nanos, random: &mut Random) -> Result<(), End> {
        let namespaces = engine.namespaces();
        let ordered: Vec<NamespaceId> =
            namespaces.iter().filter(|namespace| namespace.is_ordered).map(|namespace| namespace.id).collect();
        // What a namespace had that was deleted is gone with it.
        self.live.retain(|(namespace, _)| ordered.contains(namespace));
        if ordered.is_empty() {
            return Ok(());
        }
        let number = (random.below(NUMBERS) as u16).to_be_bytes();
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
                (namespace, Command::Seek { iterator, key: Key::new(&number).ok(), pairs_max: PAIRS })
            }
            (live, _) => {
                let (namespace, iterator) = self.live[one_of(random, live)];
                (namespace, Command::Next { iterator, pairs_max: PAIRS })
            }
        };
        // Whoever is sent somewhere twice stands where he stood; one that went on by a glance does not go on once more.
        let seen = if random.below(2) == 0 { engine.glance(namespace, &command) } else { None };
        let reply = match seen {
            Some(seen) if matches!(command, Command::Seek { .. }) => {
                let reply = run_in(engine, clock, namespace, command);
                if reply.is_ok() && seen != reply {
                    return Err(End::Wrong(format!("a glance sees {seen:?}, and the command answers {reply:?}")));
                }
                reply
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
