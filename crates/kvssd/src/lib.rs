//! The command line: run workloads on key-value SSD designs and see what they cost, or keep pairs in a drive that is a file.
//!
//! A library, so that somebody's own program can be the whole of it: `fn main() -> ExitCode { kvssd_cli::main_with([my_design()]) }`. What looks for
//! faults (`crash`, `world`) is in it with the feature `campaigns` only, and what the papers' experiments need (`reproduce`, databases) with
//! `papers`: who keeps pairs or runs a bench compiles neither.
//!
//! And what another program needs to do as `bench` and `sweep` do: [`experiments_of`] options, a [`Plan`] of a sweep, its [`Folder`], and the
//! [`Report`] of a run. The Python package is made of it.

mod arguments;
mod bench;
mod catalogue;
#[cfg(feature = "campaigns")]
mod crash;
mod estimate;
mod fail;
mod format;
mod image;
mod inputs;
mod kept;
mod manual;
mod matrix;
mod namespaces;
mod of_keys;
mod output;
mod page;
mod pairs;
mod program;
mod progress;
mod replay;
mod report;
#[cfg(feature = "papers")]
mod reproduce;
mod salvage;
mod serve;
mod signals;
mod stat;
mod sweep;
mod text;
mod transfer;
mod unnamed;
mod workers;
#[cfg(feature = "campaigns")]
mod world;

pub use fail::Failure;
pub use kept::Claim;
pub use program::Program;
pub use report::{Asked, Report};
pub use sweep::{Folder, Plan, Run, experiments_of};
pub use workers::Limits;

use arguments::{Action, Arguments};
use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use kvssd_ftl::Design;
use std::process::ExitCode;

/// As [`main`], with designs of one's own beside those that come with the program.
#[must_use]
pub fn main_with(designs: impl IntoIterator<Item = Design>) -> ExitCode {
    match designs.into_iter().try_for_each(kvssd_designs::add) {
        Ok(()) => main(),
        Err(error) => {
            output::say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Does what the command line says; gives the exit status.
#[must_use]
pub fn main() -> ExitCode {
    output::outlive_limits();
    let (arguments, matches) = match parsed() {
        Ok(parsed) => parsed,
        Err(error) if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            output::say(&one_line(&error.to_string()));
            return ExitCode::from(2);
        }
        Err(help) if help.use_stderr() => help.exit(),
        Err(help) => return ended(output::written(help.print())),
    };
    output::be_quiet(arguments.quiet);
    if let Err(failure) = inputs::refuse_replaced(&matches) {
        return ended(Err(failure));
    }
    ended(match arguments.action {
        Action::Bench(options) => bench::run(&options),
        Action::Estimate(options) => estimate::run(&options),
        Action::Sweep(options) => sweep::run(&options),
        Action::Matrix(options) => matrix::run(&options),
        Action::Report(options) => page::run(&options),
        Action::Replay(options) => replay::run(&options),
        #[cfg(feature = "papers")]
        Action::Reproduce(options) => reproduce::run(&options),
        #[cfg(not(feature = "papers"))]
        Action::Reproduce(_) => Err(Failure::without("reproduce", "papers")),
        #[cfg(feature = "campaigns")]
        Action::Crash(options) => crash::run(&options),
        #[cfg(feature = "campaigns")]
        Action::World(options) => world::run(&options),
        #[cfg(not(feature = "campaigns"))]
        Action::Crash(_) => Err(Failure::without("crash", "campaigns")),
        #[cfg(not(feature = "campaigns"))]
        Action::World(_) => Err(Failure::without("world", "campaigns")),
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
        Action::Completions { shell } => manual::completions(shell),
        Action::Man { folder } => manual::pages(&folder),
        Action::Namespace(action) => namespaces::run(&action),
    })
}

/// The command line, and what it was made of.
fn parsed() -> Result<(Arguments, ArgMatches), clap::Error> {
    let matches = Arguments::command().try_get_matches()?;
    let arguments = Arguments::from_arg_matches(&matches).map_err(|why| why.format(&mut Arguments::command()))?;
    Ok((arguments, matches))
}

/// Says why it failed, if it did; gives the exit status.
fn ended(result: Outcome) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::say(&failure.to_string());
            failure.code()
        }
    }
}

/// What the parser says, and what it proposes, before it goes on about usage.
fn one_line(text: &str) -> String {
    let paragraphs = text.trim_start_matches("error: ").split("\n\n");
    let said = paragraphs.take_while(|paragraph| !paragraph.starts_with("Usage") && !paragraph.starts_with("For more"));
    let said = said.map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    said.collect::<Vec<_>>().join("; ").replace("; tip: ", "; ")
}

/// What an action gives back.
type Outcome = Result<(), Failure>;
