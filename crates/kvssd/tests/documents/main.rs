//! Documents keep to what they speak of: the sources, and what the program prints.

mod overview;
mod reproduction;

use std::fs;
use std::path::{Path, PathBuf};

/// The repository's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate lies in crates/").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
