//! Documents keep to what they speak of: the sources, and what the program prints.

mod files;
mod overview;
mod report;
mod reproduction;
mod url;

use std::fs;
use std::path::{Path, PathBuf};

/// The repository's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate lies in crates/").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files in a folder that end so, but what was built.
fn files_in(folder: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let is_source = |path: &PathBuf| path.extension().is_some_and(|extension| ends.iter().any(|end| *end == extension));
    paths
        .flat_map(|path| match path.is_dir() {
            true if path.ends_with("target") || path.ends_with(".git") => Vec::new(),
            true => files_in(&path, ends),
            false => Some(path).filter(is_source).into_iter().collect(),
        })
        .collect()
}
