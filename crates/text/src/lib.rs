//! Pairs as text: what people and other programs read and write.
//!
//! | file | what it knows |
//! |---|---|
//! | `bytes.rs` | bytes as text, and back |
//! | `counted.rs` | how far an input was read |
//! | `pairs.rs` | lines of CSV and JSON |

mod bytes;
mod counted;
mod pairs;

pub use bytes::{Bytes, decode, field, line};
pub use counted::{Counted, InputBytes};
pub use pairs::{MaybePair, PairReader, PairWriter};
