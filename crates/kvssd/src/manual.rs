//! `kvssd completions` and `kvssd man`: what shells and `man` know of the command line.

use crate::Outcome;
use crate::arguments::Arguments;
use crate::fail::Failure;
use crate::output::{print_bytes, write_whole};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::io;
use std::path::Path;

/// Prints a script of completions.
pub fn completions(shell: Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "kvssd", &mut script);
    print_bytes(&script)
}

/// Writes a page for the program and for each of its commands.
pub fn pages(folder: &Path) -> Outcome {
    let mut program = Arguments::command().disable_help_subcommand(true);
    program.build();
    let write = || fs::create_dir_all(folder).and_then(|()| write_pages(&program, folder));
    write().map_err(Failure::of_output(folder))
}

fn write_pages(command: &Command, folder: &Path) -> io::Result<()> {
    command.get_subcommands().try_for_each(|command| write_pages(command, folder))?;
    // clap_mangen would fill the lines of examples, and break words.
    let manual = Man::new(command.clone().after_help(None::<&str>));
    let mut page = Vec::new();
    manual.render(&mut page)?;
    if let Some(help) = command.get_after_help() {
        let (help, mut examples) = (help.to_string(), Roff::new());
        examples.control("SH", ["EXAMPLES AND NOTES"]).control("nf", []);
        help.lines().for_each(|line| _ = examples.text([roman(line)]));
        examples.control("fi", []).to_writer(&mut page)?;
    }
    write_whole(&folder.join(manual.get_filename()), &page)
}
