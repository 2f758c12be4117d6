//! What can be chosen of a cache.

use crate::admission::AdmissionRule;
use crate::eviction::EvictionPolicy;

/// A cache: how much it holds, who leaves, and who comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePlan {
    /// Bytes of keys and values that it holds at the most.
    pub budget_bytes: u64,
    /// Who leaves when there is no room.
    pub eviction: EvictionPolicy,
    /// Who comes in: whom all of these let in.
    pub admission: Vec<AdmissionRule>,
}
