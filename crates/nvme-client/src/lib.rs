//! A client of NVMe/TCP drives with the Key Value command set.
//!
//! ```text
//!   client             what a program calls; the keep-alive
//!   link               the association that threads share: connected again, commands sent again
//!     pipeline         many commands of one thread
//!     retransmission   which command may be sent again, and which is in doubt
//!     serials          the serials of outstanding changes
//!   association        a controller: an admin queue, an I/O queue, limits of namespaces
//!     discovery        where the URL leads
//!     authentication   who the host is, and who the drive is
//!     admin_queue      Connect, enable, Identify, features, log pages, shutdown
//!     meant            which namespaces ids mean
//!     recognition      whether the drive recognizes changes by their serials
//!   connection         a queue pair over a socket, which threads share: who waits reads
//!     handshake        TCP, ICReq, ICResp
//!     channel          the socket in the clear, or TLS over it
//!     queue_pair       slots, R2T, data, digests: bytes in, bytes out, no I/O
//!   request            Command -> submission queue entry and data; completion -> reply or error
//!   report             Identify and log pages
//! ```
//!
//! ```no_run
//! use kvssd_nvme_client::{Client, DriveUrl};
//! use kvssd_types::{Command, Key, NamespaceId};
//!
//! let url: DriveUrl = "nvme+tcp://127.0.0.1:4420/nqn.2025-01.org.kvssd:drive".parse()?;
//! let client = Client::connect(&url, false)?;
//! let command = Command::Delete { key: Key::new(b"city/oslo")? };
//! let was_there = client.execute(NamespaceId::FIRST, &command)?.is_some();
//! client.shut_down()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Exactly once, or told.** A completion may be lost with its connection. A command that changes nothing is sent
//! again. A change is sent again to a drive that recognizes its serial (docs/NVME.md), which makes it once. Of any
//! other drive the caller is told [`Error::InDoubt`].
//!
//! Waits are those of `kvssd_runtime`: of the machine, or of a simulated world.
//!
//! TLS comes with the feature `tls`. What it does not do: several I/O queues, asynchronous events.

mod admin_queue;
mod association;
mod authentication;
mod channel;
mod client;
mod connection;
mod connection_lost;
mod discovery;
mod error;
mod failure;
mod handshake;
mod host_identity;
mod link;
mod meant;
mod namespaces;
mod pipeline;
mod queue_pair;
mod recognition;
mod report;
mod request;
mod retransmission;
mod serials;
mod time_left;
mod url;

pub use client::Client;
pub use error::Error;
pub use report::{Counters, DriveReport};
pub use time_left::give_up_when;
pub use url::{Digests, DriveUrl};
