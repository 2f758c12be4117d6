//! TLS 1.3 with external pre-shared keys, and nothing else of TLS: no certificates, no tickets, no early data, no older
//! versions. Without I/O: bytes of the peer in, bytes for the peer out.
//!
//! ```text
//!   Session::client(keys)                         Session::server(find)
//!     offers all keys by their identities  --->     find(identity) for each, in the client's order
//!     Finished                             <---     the first that is known, a fresh key by (EC)DHE, Finished
//!   receive(bytes of the peer), handshake, read, write, take_output(bytes for the peer): the same on both sides
//! ```
//!
//! The suites are TLS_AES_128_GCM_SHA256 and TLS_AES_256_GCM_SHA384; the hash of a key decides which. Key exchange is always
//! with (EC)DHE: who learns a key later reads nothing of what was said before.
//!
//! | module | |
//! |---|---|
//! | `session` | both sides |
//! | `client_hello`, `binder` | the keys that a client offers, and which of several with one identity it has |
//! | `key`, `error` | what is shared, and what goes wrong |
//! | `pipe` | what the library reads from and writes to. All unsafe code is here |
//!
//! The protocol is s2n-tls's, its ciphers AWS-LC's. Of libraries with Rust bindings it is the one that takes external keys
//! of both hashes by safe calls: rustls takes none, and `openssl` only what SHA-256 hashes. Randomness and the age of what is sent are the library's
//! own.
//!
//! What it does not do: sockets, timeouts, and knowing what an identity means.

mod binder;
mod client_hello;
mod error;
mod key;
mod pipe;
mod session;

pub use error::TlsError;
pub use key::{Key, KeyHash};
pub use session::Session;
