//! A target on a real socket, as hosts meet it: each command, each error, bytes in pieces of any size, and how known hosts
//! attach.

// The one that the program has: what a long run keeps of memory is to be what a service keeps.
use kvssd_allocator as _;

mod attach;
mod attachment;
mod authentication;
mod caches;
mod commands;
mod discovery;
mod extended;
mod host;
mod large;
mod metrics;
mod misbehaviour;
mod mooncake;
mod named;
mod nixl;
mod numbered;
mod partitions;
mod rates;
mod rights;
mod soak;
mod tls;
mod together;
