//! The files that a command reads, which none of its outputs may replace.

use crate::Outcome;
use crate::fail::Failure;
use clap::ArgMatches;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Options by which a command is told a file to write.
const OUTPUTS: [&str; 5] = ["json", "html", "csv", "trace_out", "out"];
/// Those of a file, or of the folder of a sweep, to read.
const INPUTS: [&str; 7] = ["trace", "from", "kvbench", "against", "results", "profile", "experiment"];

/// Refuses an output that would replace what the command reads, however the two are called.
///
/// # Errors
/// When one does.
pub fn refuse_replaced(matches: &ArgMatches) -> Outcome {
    let mut command = matches;
    while let Some((_, within)) = command.subcommand() {
        command = within;
    }
    let inputs: Vec<PathBuf> = given(command, &INPUTS).into_iter().flat_map(read_of).collect();
    for output in given(command, &OUTPUTS) {
        if let Some(input) = inputs.iter().find(|input| is_one_file(&output, input)) {
            let why = format!("it is what is read as {}: give another name", input.display());
            return Err(Failure::of_output(&output)(io::Error::other(why)));
        }
    }
    Ok(())
}

/// What these options are given, as far as a command has them.
fn given(command: &ArgMatches, options: &[&str]) -> Vec<PathBuf> {
    let values = options.iter().filter_map(|option| command.try_get_raw(option).ok().flatten());
    values.flatten().map(PathBuf::from).collect()
}

/// The files that are read at a path: of a sweep's folder its index and runs.
fn read_of(path: PathBuf) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path];
    }
    let runs = fs::read_dir(path.join("runs")).into_iter().flatten();
    runs.filter_map(|entry| Some(entry.ok()?.path())).chain([path.join("index.json")]).collect()
}

/// Whether two paths lead to one regular file. What is none, such as /dev/null, is replaced by nobody.
fn is_one_file(one: &Path, other: &Path) -> bool {
    let file = |path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|found| (found.dev(), found.ino()));
    file(one).is_some_and(|one| Some(one) == file(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::{Command, CommandFactory};
    use std::any::TypeId;

    /// Images, which no output replaces, and what is not written whole over a file that is there.
    const OTHERS: [&str; 5] = ["image", "file", "store", "config", "folder"];

    fn paths(command: &Command) -> Vec<String> {
        let is_path = |arg: &&clap::Arg| arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        let own = command.get_arguments().filter(is_path).map(|arg| arg.get_id().to_string());
        own.chain(command.get_subcommands().flat_map(paths)).collect()
    }

    #[test]
    fn every_option_that_takes_a_path_is_known_as_read_or_written() {
        let known = [&OUTPUTS[..], &INPUTS, &OTHERS].concat();
        let unknown: Vec<String> =
            paths(&Arguments::command()).into_iter().filter(|path| !known.contains(&path.as_str())).collect();
        assert_eq!(unknown, [""; 0]);
    }
}
