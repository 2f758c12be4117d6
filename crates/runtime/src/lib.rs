//! What a program needs of the machine beside files: time, threads, locks and connections. On a thread that belongs to a simulated
//! world they are that world's, and the program is the same.
//!
//! ```text
//!   program    Instant::now   sleep   thread::spawn, park   Mutex, Condvar, RwLock   TcpStream   random_u64
//!                 |
//!              is this thread in a world?                 one flag of the thread
//!                 | no            | yes
//!              std             Machine                    machine.rs: the seam; the world behind it is the crate `kvssd-world`
//! ```
//!
//! Names, errors and poisoning are those of std, so that code moves from one to the other by its imports. Atomics and `Arc` stay std's:
//! nobody waits for them.
//!
//! A lock, a stream, a thread or a moment of a world is of use within that world only. What is dropped outside of it does nothing.
//!
//! What it does not do: files, and sockets that listen (who serves has an event loop of its own).

mod doubt;
pub mod machine;
pub mod net;
mod patience;
mod random;
pub mod sync;
pub mod thread;
pub mod time;

pub use doubt::Doubt;
pub use patience::Patience;
pub use random::random_u64;
