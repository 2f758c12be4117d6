//! How things lie in flash: records in pages, pages with their out-of-band areas.
//!
//! ```text
//!   page   | record | record | record, which runs on ...        packing: what a page takes, where a record may begin
//!   oob    | kind, stream | tag of each record |                oob
//!          ^ grain: the smallest piece that has an address      address, record
//! ```
//!
//! Bytes and arithmetic. It imports nothing of the firmware but how `parameters` are named.

pub(crate) mod address;
pub(crate) mod oob;
pub(crate) mod packing;
pub(crate) mod record;
