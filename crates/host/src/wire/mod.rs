//! A drive on the wire: the client of NVMe/TCP with the Key Value command set.
//!
//! ```text
//!   remote      Backend: a command, sent again where that is safe; connects again
//!     pipeline    many commands of one thread
//!     copies      what is sent again when an answer was lost, and what is in doubt then
//!     serials     the numbers of changes that are not answered yet
//!     session     a controller: connect, identify, features, log pages, keep-alive, shutdown
//!       memory      whether the drive knows changes again, by their numbers
//!       channel     a queue over a socket, which threads share: who waits reads
//!         queue       slots, R2T, data, digests: bytes in, bytes out, no I/O
//!     request     Command <-> entry and data; status -> Error
//!   url         where, and how
//! ```
//!
//! What it does not do: TLS, authentication, several I/O queues, or wait for events.

mod channel;
mod copies;
mod memory;
mod pipeline;
mod queue;
mod remote;
mod request;
mod said;
mod serials;
mod session;
mod url;

pub(crate) use remote::Remote;
pub use url::{Digests, DriveUrl};
