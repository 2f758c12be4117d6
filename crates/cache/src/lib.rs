//! A cache on a drive: who comes in, and who leaves. Policies say what is to be done; whoever has the drive does it.
//!
//! ```text
//!   look(pair, now)  -> is it there?           time to live
//!   admit(pair, ..)  -> is it worth a write?   admission: every rule must agree
//!   insert(pair, ..) -> who must leave first   eviction: FIFO, LRU, S3-FIFO, or who would expire first
//!   shrink()         -> who leaves so that a drive that is fuller than it was thought takes more
//! ```
//!
//! A pair is known by 64 bits, such as a hash of its key. Time comes as an argument. Same calls, same answers.
//!
//! A policy of one's own implements [`Eviction`] or [`Admission`] and is added by [`EvictionPolicy::add`] or [`AdmissionPolicy::add`]: replays, drives,
//! command lines and images then take its name.

mod added;
mod admission;
mod attributes;
mod cache;
mod contract;
mod eviction;
mod keyed;
mod pair;
mod plan;
mod queue;

pub use added::NameError;
pub use admission::{Admission, AdmissionPolicy, AdmissionRule, RuleError};
pub use attributes::{AttributesError, CacheAttributes};
pub use cache::{Cache, Counts};
pub use contract::check_eviction;
pub use eviction::{Eviction, EvictionPolicy};
pub use keyed::{KeyedCache, LeavingPair};
pub use pair::PairId;
pub use plan::CachePlan;
pub use queue::PairQueue;
