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
//! | `secret` | what is kept: `DHHC-1:hh:base64(secret, CRC-32):`, as nvme-cli writes it |
//! | `tls_key` | the keys of TLS: `NVMeTLSkey-1:hh:base64(key, CRC-32):`, identities, and what is derived of them |
//! | `interchange`, `private_file`, `files` | how both are written, and kept in files that nobody else may read |
//! | `masking` | texts that somebody put one in by mistake are shown without it |
//! | `hash`, `group` | SHA-256, 384, 512; no group, or ffdhe2048 to ffdhe8192 |
//! | `message` | the layouts of all messages |
//! | `proof` | what a response is computed from |
//! | `host_side`, `controller_side`, `state` | who may say what when |
//!
//! Sources: NVM Express Base Specification 2.0, 8.13.5 (8.3.4.5 in later ones), as Linux (`drivers/nvme/common/auth.c`,
//! `host/auth.c`, `target/fabrics-cmd-auth.c`) and SPDK (`lib/nvmf/auth.c`) read it; RFC 2104, RFC 7919.
//!
//! The keys of TLS: NVMe/TCP Transport Specification 1.0 and TP 8018, as libnvme (`src/nvme/linux.c`), SPDK (`nvme_tcp.h`) and
//! Linux (`drivers/nvme/common/{auth,keyring}.c`) read them; RFC 5869, RFC 8446.
//!
//! What it does not do: TLS itself (crate `kvssd-tls`), secure channel concatenation (keys for TLS out of an authentication),
//! and authentication again on a queue that has it.

mod controller_side;
mod failure;
mod files;
mod group;
mod hash;
mod host_side;
mod interchange;
mod masking;
mod message;
mod parties;
mod private_file;
mod proof;
mod randomness;
mod secret;
mod state;
mod tls_key;

pub use controller_side::ControllerSide;
pub use failure::Failure;
pub use files::{read_secret, read_tls_key};
pub use group::Group;
pub use hash::Hash;
pub use host_side::{HostSide, Offer};
pub use masking::{has_secret, masked};
pub use message::MESSAGE_BYTES_MAX;
pub use parties::{Credentials, Parties};
pub use private_file::FileError;
pub use randomness::{RANDOMNESS_BYTES, Randomness};
pub use secret::{Secret, SecretError};
pub use state::Progress;
pub use tls_key::{Derivation, PresharedKey, TlsKey, TlsKeyError, parties_of};
