//! Iterators that come and go while a drive of a campaign works: what they keep must be nobody's after the cut.

use super::life::run_in;
use kvssd_ftl::Engine;
use kvssd_types::{Command, IteratorId, IteratorOptions, KvError, NamespaceId, Nanos, Random, Reply};

/// Iterators at a time.
const ITERATORS_MAX: usize = 3;
/// Pairs that one takes at a time.
const PAIRS: u32 = 5;

/// The iterators of a life.
#[derive(Debug, Default)]
pub(super) struct OpenIterators {
    live: Vec<(NamespaceId, IteratorId)>,
}

impl OpenIterators {
    /// One comes to a namespace whose keys have an order, goes on or goes. Does nothing where there is no such namespace.
    pub(super) fn act(&mut self, engine: &mut Engine, clock: &mut Nanos, random: &mut Random) -> Result<(), KvError> {
        let namespaces = engine.namespaces();
        let ordered: Vec<NamespaceId> =
            namespaces.iter().filter(|namespace| namespace.is_ordered).map(|namespace| namespace.id).collect();
        // What a namespace had that was deleted is gone with it.
        self.live.retain(|(namespace, _)| ordered.contains(namespace));
        if ordered.is_empty() {
            return Ok(());
        }
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
                (namespace, Command::Seek { iterator, key: None, pairs_max: PAIRS })
            }
            (live, _) => {
                let (namespace, iterator) = self.live[one_of(random, live)];
                (namespace, Command::Next { iterator, pairs_max: PAIRS })
            }
        };
        match run_in(engine, clock, namespace, command) {
            Ok(Reply::IteratorCreated(id)) => self.live.push((namespace, id)),
            Ok(_)
            | Err(KvError::TooManyIterators { .. } | KvError::IteratorExpired(_) | KvError::NoSuchIterator(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
