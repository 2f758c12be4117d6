//! Iterators that come and go while a drive of a campaign works: what they keep must be nobody's after the cut.

use super::life::run;
use kvssd_ftl::Engine;
use kvssd_types::{Command, IteratorId, IteratorOptions, KvError, Nanos, Random, Reply};

/// Iterators at a time.
const VISITORS_MAX: usize = 3;
/// Pairs that one takes at a time.
const PAIRS: u32 = 5;

/// The iterators of a life.
#[derive(Debug, Default)]
pub(super) struct Visitors {
    live: Vec<IteratorId>,
}

impl Visitors {
    /// One comes, goes on or goes.
    pub(super) fn act(&mut self, engine: &mut Engine, clock: &mut Nanos, random: &mut Random) -> Result<(), KvError> {
        let command = match (self.live.len(), random.below(4)) {
            (0..VISITORS_MAX, 0) | (0, _) => {
                let descending = random.below(2) == 0;
                Command::CreateIterator { options: IteratorOptions { descending, ..IteratorOptions::default() } }
            }
            (live, 1) => {
                Command::DestroyIterator { iterator: self.live.swap_remove(random.below(live as u64) as usize) }
            }
            (live, 2) => {
                let iterator = self.live[random.below(live as u64) as usize];
                Command::Seek { iterator, key: None, pairs_max: PAIRS }
            }
            (live, _) => Command::Next { iterator: self.live[random.below(live as u64) as usize], pairs_max: PAIRS },
        };
        match run(engine, clock, command) {
            Ok(Reply::IteratorCreated(id)) => self.live.push(id),
            Ok(_) | Err(KvError::TooManyIterators { .. } | KvError::IteratorExpired(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
