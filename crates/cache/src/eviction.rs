//! Who leaves.

mod recency;
mod s3_fifo;
mod time_to_live;

use crate::pair::PairId;
use kvssd_types::{Nanos, named_enum};
use std::fmt::Debug;

/// Chooses who leaves. It is told of everything that happens to the pairs of a cache.
pub(crate) trait Eviction: Debug + Send + Sync {
    /// A pair came, of so many bytes, for so long.
    fn insert(&mut self, pair: PairId, bytes: u64, expires: Nanos);

    /// A pair that is there got another value.
    fn replace(&mut self, pair: PairId, bytes: u64, expires: Nanos) {
        self.remove(pair);
        self.insert(pair, bytes, expires);
    }

    /// A pair was asked for, and there.
    fn hit(&mut self, pair: PairId);

    /// A pair that left is there all the same: it is the first to leave again.
    fn put_back(&mut self, pair: PairId, bytes: u64, expires: Nanos);

    /// A pair went for another reason: it was deleted, or too old.
    fn remove(&mut self, pair: PairId);

    /// Chooses a pair, which is gone then; none when there is none.
    fn evict(&mut self) -> Option<PairId>;

    /// Bytes of memory that a drive would keep for it, beside what it keeps of each pair anyway: links of 4 bytes. An estimate.
    fn kept_bytes(&self) -> u64;
}

/// A link to another pair. An estimate: they are numbered.
const LINK_BYTES: u64 = 4;

named_enum! {
    /// Who leaves when there is no room.
    pub enum EvictionKind: "eviction" {
        /// Who came first.
        Fifo = "fifo",
        /// Whom nobody has asked for the longest.
        Lru = "lru",
        /// New ones that nobody asked for again soon, before others (Yang et al., SOSP 2023).
        S3Fifo = "s3-fifo",
        /// Who would expire first; those that never do in the order in which they came, last.
        TimeToLive = "ttl",
    }
}

impl EvictionKind {
    /// Whether it matters who is asked for.
    #[must_use]
    pub fn counts_hits(self) -> bool {
        matches!(self, EvictionKind::Lru | EvictionKind::S3Fifo)
    }

    pub(crate) fn build(self) -> Box<dyn Eviction> {
        match self {
            EvictionKind::Fifo | EvictionKind::Lru => Box::new(recency::Recency::new(self.counts_hits())),
            EvictionKind::S3Fifo => Box::<s3_fifo::S3Fifo>::default(),
            EvictionKind::TimeToLive => Box::<time_to_live::TimeToLive>::default(),
        }
    }
}
