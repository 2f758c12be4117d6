//! `kvssd`, the program.

use std::process::ExitCode;

/// A drive of a hundred million pairs is many small allocations; this allocator packs them without headers.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kvssd_cli::main()
}
