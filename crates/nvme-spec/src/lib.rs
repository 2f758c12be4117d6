//! The layouts of NVMe that a target and a host both read and write.
//!
//! ```text
//!   pdu          IcRequest, CommandCapsule, HostData, ReadyToTransfer, ...    bytes <-> PDU, with digests and limits
//!     command      SubmissionEntry, 64 B    fabrics, admin, kv: typed commands <-> entry
//!     completion   CompletionEntry, 16 B    status: a closed list of codes
//!     identify, log_page, features          data structures, 64 B to 4096 B
//! ```
//!
//! Every layout can be written as well as read. Its types carry the byte order, so that a structure *is* its bytes on
//! any machine, and its size is checked at compile time. Numbers are little-endian.
//!
//! Sources: NVM Express Base Specification 2.0, NVMe/TCP Transport Specification 1.0, Key Value Command Set
//! Specification 1.0, as public hosts read them.
//!
//! What it does not do: I/O, state, or decisions. Others find out that a PDU is out of sequence, or that a drive does
//! not do what a command asks for.

#![no_std]

extern crate alloc;

pub mod admin;
pub mod attachment;
pub mod command;
pub mod completion;
pub mod extended;
pub mod fabrics;
pub mod features;
pub mod identify;
pub mod kv;
pub mod list;
pub mod log_page;
pub mod named;
pub mod numbered;
pub mod pdu;
pub mod statistics;
pub mod status;
mod structure;
mod text;

pub use command::{DataPointer, SubmissionEntry};
pub use completion::CompletionEntry;
pub use status::Status;
pub use text::{read_text, write_padded, write_text};
