//! A target on a real socket, as hosts meet it: each command, each error, bytes in pieces of any size, and the ways that known
//! hosts go.

mod commands;
mod host;
mod large;
mod manners;
mod metrics;
mod numbered;
mod soak;
mod ways;

/// The one that the program has: what a long run keeps of memory is to be what a service keeps.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
