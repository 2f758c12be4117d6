//! `kvssd completions` and `kvssd man`: what shells and `man` know of the command line.

use crate::Outcome;
use crate::arguments::Arguments;
use crate::fail::Failure;
use crate::output::print_bytes;
use clap::CommandFactory;
use clap_complete::Shell;
use std::fs;
use std::path::Path;

/// Prints a script of completions.
pub fn completions(shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "kvssd", &mut script);
    print_bytes(&script)
}

/// Writes a page for the program and for each of its commands.
pub fn pages(folder: &Path) -> Outcome {
    let write = || fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Arguments::command(), folder));
    write().map_err(|why| Failure::Output { path: folder.to_owned(), why })
}
