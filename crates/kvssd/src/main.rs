//! `kvssd`: run workloads on key-value SSD designs and see what they cost.

mod arguments;
mod bench;
mod catalogue;
mod crash;
mod fail;
mod output;
mod progress;
mod reproduce;

use arguments::{Action, Arguments};
use clap::Parser;
use fail::Failure;
use std::process::ExitCode;

/// A drive of a hundred million pairs is many small allocations; this allocator packs them without headers.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.action {
        Action::Bench(options) => bench::run(&options),
        Action::Reproduce(options) => reproduce::run(&options),
        Action::Crash(options) => crash::run(&options),
        Action::Designs => catalogue::designs(),
        Action::Profiles => catalogue::profiles(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("kvssd: {failure}");
            failure.code()
        }
    }
}

/// What an action gives back.
type Outcome = Result<(), Failure>;
