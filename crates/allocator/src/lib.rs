//! The allocator of programs that hold large drives: a program has it once it names this crate, `use kvssd_allocator as _;`.
//!
//! It is a crate, since the way to it is made where it is declared, and programs are built without optimisation (`Cargo.toml`).

/// A drive of a hundred million pairs is many small allocations; this allocator packs them without headers.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
