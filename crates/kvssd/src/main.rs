//! `kvssd`, the program.

use kvssd_allocator as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    kvssd_cli::main()
}
