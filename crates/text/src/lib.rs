//! Pairs as text: what people and other programs read and write.
//!
//! | file | what it knows |
//! |---|---|
//! | `bytes.rs` | bytes as text, and back |
//! | `pairs.rs` | lines of CSV and JSON |

mod bytes;
mod pairs;

pub use bytes::{Bytes, decode, field, line};
pub use pairs::{MaybePair, PairReader, PairWriter};
