//! Traces: what others asked of their stores, read from their files.
//!
//! ```text
//!   file   plain | gzip | zstd          input.rs      told by its first bytes, counted as it is read
//!     |
//!   bytes  lines | records of n bytes   reader.rs     numbers them, stops at or skips the bad ones
//!     |
//!   one line or record                  formats/      TraceFormat: bytes in, requests out; no I/O, no allocation
//!     |
//!   Requests                            request.rs    action, key, size, time
//!     |
//!   replay (crate::replay)
//! ```
//!
//! A new format is a file in `formats/` that implements [`TraceFormat`], and a row in [`TraceName`] (`format.rs`).
//!
//! # Keys
//!
//! A drive takes keys of 1 to 255 bytes. The key of a request is what the trace writes, with these exceptions:
//!
//! - numbers (oracleGeneral, Mooncake) become 8 bytes, high end first;
//! - where the trace says that the key was longer than what it writes in its stead (Twitter, Meta, `key_size` of CSV), full stops fill
//!   it up to that length, 255 bytes at most, so that the drive sees keys as long as they were;
//! - keys of more than 255 bytes, and empty ones, become the 32 hexadecimal digits of their 128-bit XXH3 hash. They are counted.

mod fields;
mod format;
mod formats;
mod input;
mod reader;
mod request;

pub use fields::BadRecord;
pub use format::{Framing, TraceFormat, TraceName, table};
pub use formats::ColumnName;
pub use input::{InputBytes, decoded};
pub use reader::{BadLines, SAMPLE_BYTES, TraceError, TraceReader};
pub use request::{Action, Block, Request, Requests};
