//! One simulated world for the whole program: hosts, network, target and drive run in one thread of the machine, on one seed, and the same
//! seed gives the same run to the last byte.
//!
//! ```text
//!   World::run(options, main)
//!     |
//!   actors     main   host 1: kvssd_host ...   keep-alive   service: accepts   a connection: kvssd_nvme_target ...   coroutine.rs
//!     |          \_____________ one runs at a time: the code is the same as on threads ______________/
//!   turns      at each lock, wait, read, write and point(): a random one of those that can go on               turns.rs
//!     |        nobody can: the time jumps to the next deadline; there is none: a deadlock, with names
//!   network    bytes in pieces, delays, little room; cut, stalled and refused as `NetworkFaults` says          network/, sockets/
//!   kill       every actor of a process unwinds where it waits; its connections break                          world.rs
//! ```
//!
//! Actors are coroutines, each with a stack of its own, and not threads of the machine: to hand over the turn costs some tens of
//! nanoseconds in place of microseconds, and as many worlds run side by side as the machine has cores, one in each thread.
//!
//! ```
//! use kvssd_runtime::{sync::{Arc, Mutex}, thread, time::{Duration, Instant}};
//! use kvssd_world::{Options, World};
//!
//! let run = World::run(Options::of_seed(7), |_world| {
//!     let (sum, begin) = (Arc::new(Mutex::new(0)), Instant::now());
//!     let threads: Vec<_> = (0..4)
//!         .map(|number| {
//!             let sum = sum.clone();
//!             thread::spawn(move || {
//!                 thread::sleep(Duration::from_secs(3600 * number));
//!                 *sum.lock().unwrap() += number;
//!             })
//!         })
//!         .collect();
//!     threads.into_iter().for_each(|thread| thread.join().unwrap());
//!     assert!(begin.elapsed() >= Duration::from_secs(3 * 3600));   // but no time of yours
//!     *sum.lock().unwrap()
//! });
//! assert_eq!(run.result.unwrap(), 6);
//! ```
//!
//! # Rules for what runs in a world
//! - What is held where the turn may go to another is held in a lock of `kvssd_runtime`. A std lock may be used between two such places only;
//!   who finds it taken hangs. What several processes of a world share (a history of calls) is held like that, or in a `RefCell`.
//! - Who waits without a call of `kvssd_runtime` waits for ever, but that each [`kvssd_runtime::time::Instant::now`] takes 100 ns.
//! - A process is killed by unwinding: destructors run, but find a machine that does nothing any more. They must not undo on the disk what
//!   a killed process leaves there; a virtual disk asks [`is_unwinding`].
//! - `thread_local!` is one for all actors of a world.
//!
//! [`lives`] are the scenarios: drives over a disk that fails at the call that a seed says, checked against what was promised.
//!
//! What it does not do: memory orders (one actor runs at a time), and code that waits on its own sockets or
//! threads.

mod actor;
mod coroutine;
pub mod linear;
mod links;
pub mod lives;
mod machine;
mod network;
mod options;
mod process;
mod report;
pub mod service;
mod shared;
mod sockets;
mod turns;
mod world;

pub use network::NetworkFaults;
pub use options::Options;
pub use process::Process;
pub use report::{Failure, Run, Waiting};
pub use sockets::{Interest, Listener, Socket};
pub use world::{Handle, World, is_unwinding, point};
