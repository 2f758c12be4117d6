//! A drive on the wire: the client of NVMe/TCP with the Key Value command set.
//!
//! ```text
//!   remote      Backend: commands, sent again where that is safe; connects again
//!     session     a controller: connect, identify, features, log pages, keep-alive, shutdown
//!       channel     a queue over a socket, which threads share: who waits reads
//!         queue       slots, R2T, data, digests: bytes in, bytes out, no I/O
//!     request     Command <-> entry and data; status -> Error
//!   url         where, and how
//! ```
//!
//! What it does not do: TLS, authentication, several I/O queues, or wait for events.

mod channel;
mod queue;
mod remote;
mod request;
mod said;
mod session;
mod url;

pub(crate) use remote::Remote;
pub use url::{Digests, DriveUrl};
