//! A drive on the wire: an NVMe/TCP target whose namespaces are those of a drive in a file.
//!
//! ```text
//!   host  ==TCP==  Server        a listener, a thread a connection                     server.rs: sockets of the machine
//!                    |
//!                  Door          in the clear or by TLS, with the feature `tls`         door.rs
//!                    |
//!                  attend        reads, timers, writes, close, over any Transport      transport.rs: of the machine or of a world
//!                    |
//!                  Connection    one queue pair: PDUs, R2T, digests, bursts            connection.rs: bytes and times in, bytes out
//!                    |
//!                  Controller    properties, features, events, keep-alive              controller.rs
//!                    |
//!                  Subsystem     one drive, its namespaces; Hosts: who may do what     subsystem.rs, hosts.rs
//!                    |
//!                  Drive (kvssd_device)
//! ```
//!
//! No change is completed before it is committed: what a host was told outlives the process, `kill -9` included.
//!
//! docs/NVME.md lists the commands, log pages and features that are served, with the bounds of [`limits`].
//!
//! What it does not do: NVMe's own creation of namespaces (they have names here), reservations, more than one path to a
//! queue.

mod admin;
mod attachments;
mod buffer;
mod clients;
mod command_kind;
mod completion;
mod connection;
mod controller;
mod controllers;
mod discovery;
#[cfg(feature = "tls")]
mod door;
mod execution;
mod hosts;
mod identify;
mod io_command;
mod iterators;
pub mod limits;
mod lock;
mod logs;
mod management;
mod memory;
mod metrics;
mod metrics_page;
mod metrics_server;
mod namespaces;
mod quota;
mod rate;
mod rights;
mod secured;
mod server;
mod status;
mod subsystem;
mod transport;
mod view;

pub use connection::Connection;
#[cfg(feature = "tls")]
pub use door::Door;
pub use kvssd_nvme_spec::fabrics::DISCOVERY_NQN;
pub use limits::Limits;
pub use metrics_page::metrics_page;
pub use metrics_server::serve_metrics;
pub use rate::Rate;
pub use rights::{HostRights, Namespaces, Quota, Rights};
pub use secured::Secured;
pub use server::{ServeError, Server};
pub use subsystem::{Subsystem, SubsystemOptions};
pub use transport::{Interest, Transport, attend};
