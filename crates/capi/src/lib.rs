//! The C library: the SNIA key-value API with the names of Samsung's KVSSD host software, over a store of `kvssd_host`.
//!
//! ```text
//!   a C program      include/kvs_api.h
//!     |
//!   exports          the functions by their C names: take arguments apart, catch panics      abi: types as C has them
//!   pointers         memory of C's, read and written: unsafe, as plain and postprocess       handles: numbers, not addresses
//!     |
//!   operation        what is done to pairs: at once, or in the queue (queue.rs), whose workers call back
//!   key_spaces       namespaces by their names; key_space: one that is open;  group, iterators: keys by their first four bytes
//!   device           a store that is open, and the locks that make append and retrieve-and-delete one step
//!     |
//!   Store (kvssd_host)          an image, or a drive that is reached over NVMe/TCP
//! ```
//!
//! Beside it is a simulated drive to ask (asked.rs, include/kvssd_device.h), over `kvssd_device` alone.
//!
//! A handle that C holds is a number that is looked up, so that a stale one is an error and no crash. A panic is an error too
//! (`KVS_ERR_SYS_IO`): nothing unwinds into C.
//!
//! What it does not do: batches, transactions and snapshots, which that API has not.

mod abi;
mod asked;
mod device;
mod exports;
mod group;
mod handle;
mod handles;
mod iterators;
mod key_space;
mod key_spaces;
mod operation;
mod order;
mod plain;
mod pointers;
mod postprocess;
mod queue;
mod refusal;

pub use abi::*;
pub use asked::*;
pub use exports::*;
pub use handle::Handle;
pub use pointers::Place;
pub use postprocess::Postprocess;
pub use refusal::KvsResult;
