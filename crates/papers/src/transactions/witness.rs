//! Who is told what each transaction saw and wrote.

use super::program::End;
use super::row::{RowId, Stamp};

/// What a transaction did to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It read the version of that stamp; none when the row was not there.
    Read {
        /// The row.
        row: RowId,
        /// What it saw.
        stamp: Option<Stamp>,
    },
    /// It wrote a version.
    Write {
        /// The row.
        row: RowId,
        /// What it wrote.
        stamp: Stamp,
    },
}

impl Access {
    /// The row.
    #[must_use]
    pub fn row(self) -> RowId {
        match self {
            Access::Read { row, .. } | Access::Write { row, .. } => row,
        }
    }
}

/// One attempt to run a transaction, from its beginning to its end.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// Its number: [`Stamp::attempt`] of what it wrote.
    pub number: u64,
    /// Where.
    pub terminal: u32,
    /// The transaction's kind.
    pub kind: usize,
    /// How the transaction ended; none when the engine refused it.
    pub end: Option<End>,
    /// What it did, in this order.
    pub accesses: &'a [Access],
}

/// Sees attempts end. Of one that was under way when all was stopped it is not told.
pub trait Witness {
    /// An attempt has ended.
    fn ended(&mut self, attempt: &Attempt<'_>);
}

/// Nobody.
impl Witness for () {
    fn ended(&mut self, _attempt: &Attempt<'_>) {}
}
