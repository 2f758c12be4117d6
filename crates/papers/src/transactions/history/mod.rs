//! The history of a run, and whether it is serializable.
//!
//! ```text
//!   version    v1 ----ww----> v2 ----ww----> v3         of a row, in their order
//!               |              ^
//!              wr              |                         wr  who wrote -> who read
//!               v              |                         ww  who wrote -> who wrote the next version
//!             reader ----rw----+                         rw  who read  -> who wrote the next version
//! ```
//!
//! Source: Adya, "Weak Consistency: A Generalized Theory and Optimistic Implementations for Distributed Transactions", 1999: the direct
//! serialization graph of the committed transactions. Without a cycle, with no read of what was aborted (G1a) or of what its writer
//! changed again (G1b), the history is serializable. What each read saw is known from the stamps in the values, and nothing is taken
//! from the engine's word.
//!
//! The order of a row's versions is that which the transactions saw: who read version 1 and wrote version 2 put one behind the other
//! (Kingsbury and Alvaro, "Elle", VLDB 2020, section 4: traceable writes). Two who read the same version and wrote the next one have
//! lost an update. A version that was written without a read before has its place at the end, if the row has no other of this kind;
//! else nobody saw its place, and the edges that need it are left out and counted: what is accused is never innocent.
//!
//! It takes memory for each access, n log n time for sorting them, and linear time for the graph.
//!
//! What it does not do: look at deleted rows and at ranges; or at the order in real time (strict serializability).

mod graph;
mod verdict;
mod versions;

pub use graph::{Cycle, Dependency, DependencyKind};
pub use verdict::{Anomaly, Verdict};

use super::program::End;
use super::row::{RowId, Stamp};
use super::witness::{Access, Attempt, Witness};

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing was told of it.
    Unknown,
    Aborted,
    /// It committed, and has this number among those that did.
    Committed(u32),
}

/// What a committed transaction did to a row.
#[derive(Clone, Copy, Debug)]
struct Touch {
    row: RowId,
    transaction: u32,
    /// The version of another transaction that it saw first.
    saw: Option<Version>,
    /// The last that it wrote.
    wrote: Option<Stamp>,
}

/// What a read saw; none when the row was not there.
type Version = Option<Stamp>;

/// Records what committed transactions saw and wrote.
#[derive(Debug, Default)]
pub struct History {
    fates: Vec<Fate>,
    /// The attempts that committed.
    committed: Vec<u64>,
    touches: Vec<Touch>,
    /// What a transaction did wrong by itself.
    found: Verdict,
}

impl History {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        History::default()
    }

    /// Verifies all that was recorded.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let mut touches = self.touches.clone();
        touches.sort_by_key(|touch| (touch.row, touch.transaction));
        let mut verdict = self.found.clone();
        let mut graph = graph::Graph::new(self.committed.len());
        for of_row in touches.chunk_by(|left, right| left.row == right.row) {
            versions::connect(of_row, self, &mut graph, &mut verdict);
        }
        verdict.transactions = self.committed.len() as u64;
        verdict.reads = self.touches.iter().filter(|touch| touch.saw.is_some()).count() as u64;
        verdict.writes = self.touches.iter().filter(|touch| touch.wrote.is_some()).count() as u64;
        verdict.dependencies = graph.edges() as u64;
        verdict.cycle = graph.cycle();
        verdict
    }

    fn fate(&self, attempt: u64) -> Fate {
        self.fates.get(attempt as usize).copied().unwrap_or(Fate::Unknown)
    }

    fn set_fate(&mut self, attempt: u64, fate: Fate) {
        let at = attempt as usize;
        if self.fates.len() <= at {
            self.fates.resize(at + 1, Fate::Unknown);
        }
        self.fates[at] = fate;
    }

    /// Adds a read to what a transaction did to a row.
    fn read(&mut self, transaction: u64, touch: &mut Touch, saw: Version) {
        let (row, own) = (touch.row, touch.wrote);
        if own.is_some() {
            if saw != own {
                self.found.add(Anomaly::OwnWriteUnseen { row, transaction });
            }
        } else if touch.saw.is_some_and(|before| before != saw) {
            self.found.add(Anomaly::FuzzyRead { row, transaction });
        } else {
            touch.saw = Some(saw);
        }
    }
}

impl Witness for History {
    fn ended(&mut self, attempt: &Attempt<'_>) {
        if attempt.end != Some(End::Commit) {
            self.set_fate(attempt.number, Fate::Aborted);
            return;
        }
        let transaction = self.committed.len() as u32;
        self.set_fate(attempt.number, Fate::Committed(transaction));
        self.committed.push(attempt.number);
        let first = self.touches.len();
        for access in attempt.accesses {
            let row = access.row();
            let known = self.touches[first..].iter().position(|touch| touch.row == row);
            let at = known.map_or(self.touches.len(), |at| first + at);
            if known.is_none() {
                self.touches.push(Touch { row, transaction, saw: None, wrote: None });
            }
            let mut touch = self.touches[at];
            match *access {
                Access::Read { stamp, .. } => self.read(attempt.number, &mut touch, stamp),
                Access::Write { stamp, .. } => touch.wrote = Some(stamp),
            }
            self.touches[at] = touch;
        }
    }
}

#[cfg(test)]
mod tests;
