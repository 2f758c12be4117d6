//! A change of one pair, as an index makes it, and makes it again when a mount redoes it.

use crate::journal::PairPlace;
use crate::layout::address::Grain;
use kvssd_types::Key;

/// A change of one pair.
#[derive(Clone, Copy, Debug)]
pub enum PairChange<'k> {
    /// A new key.
    Insert {
        /// The pair's tag.
        tag: u64,
        /// What [`SectionIndex::locate`](crate::index::SectionIndex::locate) noted.
        note: u32,
        /// The key; `None` when a mount redoes the change and [keys are not noted](crate::index::SectionIndex::notes_keys).
        key: Option<Key<'k>>,
        /// The pair.
        pair: PairPlace,
    },
    /// Another value for a key.
    Update {
        /// The pair's tag.
        tag: u64,
        /// As of [`PairChange::Insert`].
        note: u32,
        /// Where the pair was.
        from: Grain,
        /// The pair.
        pair: PairPlace,
    },
    /// The key goes.
    Remove {
        /// The pair's tag.
        tag: u64,
        /// As of [`PairChange::Insert`].
        note: u32,
        /// Where the pair was.
        from: Grain,
    },
    /// Garbage collection copied the pair.
    Move {
        /// The pair's tag.
        tag: u64,
        /// Where the pair was.
        from: Grain,
        /// Where its copy is.
        to: Grain,
    },
}

impl PairChange<'_> {
    /// The pair's tag.
    #[must_use]
    pub fn tag(&self) -> u64 {
        let (PairChange::Insert { tag, .. }
        | PairChange::Update { tag, .. }
        | PairChange::Remove { tag, .. }
        | PairChange::Move { tag, .. }) = *self;
        tag
    }

    /// Where the pair was.
    #[must_use]
    pub fn from(&self) -> Option<Grain> {
        match *self {
            PairChange::Insert { .. } => None,
            PairChange::Update { from, .. } | PairChange::Remove { from, .. } | PairChange::Move { from, .. } => {
                Some(from)
            }
        }
    }

    /// Where the pair is; none when it goes.
    #[must_use]
    pub fn to(&self) -> Option<Grain> {
        match *self {
            PairChange::Insert { pair, .. } | PairChange::Update { pair, .. } => Some(pair.place),
            PairChange::Move { to, .. } => Some(to),
            PairChange::Remove { .. } => None,
        }
    }

    /// How many pairs there are after the change, where there were `pairs`.
    #[must_use]
    pub fn count(&self, pairs: u64) -> u64 {
        match self {
            PairChange::Insert { .. } => pairs + 1,
            PairChange::Remove { .. } => pairs.saturating_sub(1),
            PairChange::Update { .. } | PairChange::Move { .. } => pairs,
        }
    }
}
