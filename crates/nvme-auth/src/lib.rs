//! DH-HMAC-CHAP, the in-band authentication of NVMe: a host proves to a controller that it knows a secret, and a
//! controller to a host, without saying it. Without I/O: messages in, messages out, randomness as an argument.
//!
//! ```text
//!   HostSide                                   ControllerSide
//!   Negotiate: hashes, groups        ------>
//!                                    <------   Challenge: hash, group, C1, g^y
//!   Reply: response to C1, g^x, C2   ------>   wrong: Failure1
//!                                    <------   Success1: response to C2, if it was asked for
//!   Success2, or Failure2            ------>   both are sure, where both wanted to be
//! ```
//!
//! | module | |
//! |---|---|
//! | `secret`, `secret_file` | what is kept: `DHHC-1:hh:base64(secret, CRC-32):`, as nvme-cli writes it |
//! | `hash`, `group` | SHA-256, 384, 512; no group, or ffdhe2048 to ffdhe8192 |
//! | `message` | the layouts of all messages |
//! | `proof` | what a response is computed from |
//! | `host_side`, `controller_side` | who may say what when |
//!
//! Sources: NVM Express Base Specification 2.0, 8.13.5 (8.3.4.5 in later ones), as Linux (`drivers/nvme/common/auth.c`,
//! `host/auth.c`, `target/fabrics-cmd-auth.c`) and SPDK (`lib/nvmf/auth.c`) read it; RFC 2104, RFC 7919.
//!
//! What it does not do: secure channel concatenation (keys for TLS), and authentication again on a queue that has it.

mod controller_side;
mod failure;
mod group;
mod hash;
mod host_side;
mod message;
mod parties;
mod proof;
mod randomness;
mod secret;
mod secret_file;

pub use controller_side::ControllerSide;
pub use failure::Failure;
pub use group::Group;
pub use hash::Hash;
pub use host_side::{HostSide, Offer};
pub use message::MESSAGE_BYTES_MAX;
pub use parties::{Credentials, Parties};
pub use randomness::{RANDOMNESS_BYTES, Randomness};
pub use secret::{Secret, SecretError};
pub use secret_file::read_secret;

/// How far an authentication has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Messages are still to be exchanged.
    UnderWay,
    /// All proofs that were wanted were given.
    Authenticated,
    /// It is over, and nothing was proved.
    Failed(Failure),
}
