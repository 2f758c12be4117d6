//! Who leaves.

mod recency;
mod s3_fifo;
mod time_to_live;

use crate::added::{Added, NameError, Named, named};
use crate::pair::PairId;
use kvssd_types::{Nanos, UnknownName};
use std::fmt::{self, Debug};
use std::str::FromStr;

/// Chooses who leaves. It is told of all that happens to the pairs of a cache. An engine that mounts an image tells it of the pairs that are
/// there, in any order: what it knew of their past is gone.
///
/// ```
/// use kvssd_cache::{Eviction, EvictionPolicy, PairId, PairQueue};
/// use kvssd_types::Nanos;
/// use std::collections::BTreeSet;
///
/// /// First in, first out, but who was asked for since goes round once more.
/// #[derive(Debug, Default)]
/// struct SecondChance {
///     queue: PairQueue,
///     asked: BTreeSet<PairId>,
/// }
///
/// impl Eviction for SecondChance {
///     fn insert(&mut self, pair: PairId, _bytes: u64, _expires: Nanos) {
///         self.queue.push(pair);
///     }
///
///     fn hit(&mut self, pair: PairId) {
///         self.asked.insert(pair);
///     }
///
///     fn put_back(&mut self, pair: PairId, _bytes: u64, _expires: Nanos) {
///         self.queue.put_back(pair);
///     }
///
///     fn remove(&mut self, pair: PairId) {
///         self.queue.remove(pair);
///         self.asked.remove(&pair);
///     }
///
///     fn evict(&mut self) -> Option<PairId> {
///         while let Some(pair) = self.queue.pop() {
///             if !self.asked.remove(&pair) {
///                 return Some(pair);
///             }
///             self.queue.push(pair);
///         }
///         None
///     }
///
///     fn kept_bytes(&self) -> u64 {
///         9 * self.queue.len() as u64
///     }
/// }
///
/// let policy = EvictionPolicy { name: "second-chance", counts_hits: true, build: || Box::<SecondChance>::default() };
/// policy.add().unwrap();
/// assert_eq!("second-chance".parse(), Ok(policy));
/// ```
pub trait Eviction: Debug + Send + Sync {
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

    /// Chooses a pair of those that are there, which is gone then; none when there is none.
    fn evict(&mut self) -> Option<PairId>;

    /// Bytes of memory that a drive would keep for it, beside what it keeps of each pair anyway: links of 4 bytes. An estimate.
    fn kept_bytes(&self) -> u64;
}

/// A link to another pair. An estimate: they are numbered.
const LINK_BYTES: u64 = 4;

/// A policy of who leaves when there is no room.
#[derive(Clone, Copy, Debug)]
pub struct EvictionPolicy {
    /// Its name, on command lines and in images.
    pub name: &'static str,
    /// Whether it matters who is asked for: a drive then tells it, which costs each retrieve a little.
    pub counts_hits: bool,
    /// One that knows of no pair.
    pub build: fn() -> Box<dyn Eviction>,
}

/// Those that were added.
static ADDED: Added<EvictionPolicy> = Added::new();

impl EvictionPolicy {
    /// Who came first.
    pub const FIFO: EvictionPolicy =
        EvictionPolicy { name: "fifo", counts_hits: false, build: || Box::new(recency::Recency::new(false)) };

    /// Whom nobody has asked for the longest.
    pub const LRU: EvictionPolicy =
        EvictionPolicy { name: "lru", counts_hits: true, build: || Box::new(recency::Recency::new(true)) };

    /// New ones that nobody asked for again soon, before others (Yang et al., SOSP 2023).
    pub const S3_FIFO: EvictionPolicy =
        EvictionPolicy { name: "s3-fifo", counts_hits: true, build: || Box::<s3_fifo::S3Fifo>::default() };

    /// Who would expire first; those that never do in the order in which they came, last.
    pub const TIME_TO_LIVE: EvictionPolicy =
        EvictionPolicy { name: "ttl", counts_hits: false, build: || Box::<time_to_live::TimeToLive>::default() };

    /// Those that come along.
    pub const ALL: [EvictionPolicy; 4] =
        [EvictionPolicy::FIFO, EvictionPolicy::LRU, EvictionPolicy::S3_FIFO, EvictionPolicy::TIME_TO_LIVE];

    /// [`EvictionPolicy::ALL`], and those that were added.
    #[must_use]
    pub fn known() -> Vec<EvictionPolicy> {
        ADDED.behind(EvictionPolicy::ALL)
    }

    /// From now on it is found by its name: on command lines, and in images that have caches.
    ///
    /// # Errors
    /// [`NameError`] when there is another one of that name, or it is none that can stand in a text.
    pub fn add(self) -> Result<(), NameError> {
        ADDED.add(self, EvictionPolicy::ALL)
    }
}

impl Named for EvictionPolicy {
    const WHAT: &'static str = "policy of eviction";

    fn name(&self) -> &'static str {
        self.name
    }
}

/// Names are unique.
impl PartialEq for EvictionPolicy {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for EvictionPolicy {}

impl fmt::Display for EvictionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl FromStr for EvictionPolicy {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        named(name, &EvictionPolicy::known())
    }
}
