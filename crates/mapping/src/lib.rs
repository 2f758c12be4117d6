//! Short writes to a file by a copy to its pages in memory: no call of the system each, and what was copied outlives the process.
//!
//! ```text
//!   region    |.............[ held: 256 KiB ].....................|      mapped whole, once
//!                            ^ blocks are taken, pages are there, writable and locked
//!   write     within what is held: a copy      behind it: let go of that, hold what is there, then a copy
//! ```
//!
//! A copy to a page of a file that the system cannot give is answered by a signal, which ends the process. So whatever could fail
//! is done before, by calls that answer with an error: who gets one writes by a call of the system, which says what is wrong.
//!
//! | what could fail | when it is decided |
//! |---|---|
//! | the disk is full | blocks are taken (`fallocate`) when a part is held |
//! | a page cannot be read, or made writable | it is (`MADV_POPULATE_WRITE`) when a part is held |
//! | the page has left memory, and the disk fails | it does not: it is locked (`mlock`) |
//! | pages that were written out are made writable again | on file systems of [`place`] that needs nothing which could fail |
//! | somebody cuts the file short | not at all: whoever does that to the file of a running process ends it |
//!
//! The last row is what every mapped file has. An image is locked against other programs of this project.
//!
//! | module | |
//! |---|---|
//! | `mapping` | what is held |
//! | `place` | file systems on which a prepared page stays writable |
//! | `memory` | mapped memory. All unsafe code is here |
//!
//! What it does not do: make anything durable (that is the file's `sync`), or read.

mod mapping;
mod memory;
mod place;

pub use mapping::Mapping;
