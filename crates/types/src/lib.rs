//! What every floor of the house speaks: keys, values, commands, replies, errors, virtual time and the
//! deterministic random generator.
//!
//! ```text
//!   host program, benchmark            Command ->            <- Reply | KvError
//!   ------------------------------------------------------------------------------
//!   device, firmware, flash            Key, Value, Nanos, Random
//! ```
//!
//! Nothing here does I/O, reads a clock or knows how a drive works.

mod blob;
mod command;
mod error;
mod iterator;
mod key;
mod named;
mod namespace;
mod random;
mod request;
mod time;
mod value;

pub use blob::{Blob, touch};
pub use command::{BLOCK_BYTES, Command, PlacementHandle, Reply, StoreCondition};
pub use error::KvError;
pub use iterator::{IteratedPair, IteratorId, IteratorOptions};
pub use key::{KEY_BYTES_MAX, Key, OwnedKey};
pub use named::UnknownName;
pub use namespace::{BatchChange, NamespaceId};
pub use random::{Random, mix64, unmix64};
pub use request::{ClientId, RequestId};
pub use time::Nanos;
pub use value::{Pattern, VALUE_BYTES_MAX, Value, ValueBuilder};
