//! `kvssd`: run workloads on key-value SSD designs and see what they cost, or keep pairs in a drive that is a file.

mod arguments;
mod bench;
mod catalogue;
mod crash;
mod fail;
mod image;
mod namespaces;
mod output;
mod pairs;
mod progress;
mod replay;
mod reproduce;
mod serve;
mod stat;
mod text;
mod transfer;
mod world;

use arguments::{Action, Arguments};
use clap::Parser;
use clap::error::ErrorKind;
use fail::Failure;
use std::process::ExitCode;

/// A drive of a hundred million pairs is many small allocations; this allocator packs them without headers.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            eprintln!("kvssd: {}", one_line(&error.to_string()));
            return ExitCode::from(2);
        }
        Err(help) => help.exit(),
    };
    let result = match arguments.action {
        Action::Bench(options) => bench::run(&options),
        Action::Replay(options) => replay::run(&options),
        Action::Reproduce(options) => reproduce::run(&options),
        Action::Crash(options) => crash::run(&options),
        Action::World(options) => world::run(&options),
        Action::Designs => catalogue::designs(),
        Action::Profiles => catalogue::profiles(),
        Action::Create(options) => image::create(&options),
        Action::Info(options) => image::info(&options.image),
        Action::Check(options) => image::check(&options.image),
        Action::Put(options) => pairs::put(&options),
        Action::Get(options) => pairs::get(&options),
        Action::Delete(options) => pairs::delete(&options),
        Action::Exist(options) => pairs::exist(&options),
        Action::List(options) => pairs::list(&options),
        Action::Stat(options) => stat::run(&options),
        Action::Load(options) => transfer::load(&options),
        Action::Dump(options) => transfer::dump(&options),
        Action::Serve(options) => serve::run(&options),
        Action::Namespace(action) => namespaces::run(&action),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("kvssd: {failure}");
            failure.code()
        }
    }
}

/// What the parser says before it goes on about usage.
fn one_line(text: &str) -> String {
    let said = text.split("\n\nUsage").next().unwrap_or(text).trim_start_matches("error: ");
    said.split("\n\nFor more").next().unwrap_or(said).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What an action gives back.
type Outcome = Result<(), Failure>;
