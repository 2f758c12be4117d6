//! The overview keeps to the sources: every function in the two drawings of `docs/ARCHITECTURE.md` exists, and it stays an overview.

use crate::{files_in, read, root};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const WORDS_MAX: usize = 1500;

#[test]
fn every_function_of_the_descents_exists() {
    let overview = overview();
    let section = overview.split("\n## ").find(|section| section.starts_with("One descent")).expect("the two drawings");
    let words = section.split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':'));
    let names: BTreeSet<(&str, &str)> = words.filter_map(|word| word.trim_end_matches(':').split_once("::")).collect();
    assert!(names.len() > 40, "only {} names found: the drawings are not read as they are written", names.len());
    let sources: Vec<(PathBuf, String)> = files_in(&root().join("crates"), &["rs"])
        .into_iter()
        .filter(|path| path.components().any(|part| part.as_os_str() == "src"))
        .map(|path| (path.clone(), read(&path)))
        .collect();
    let exists =
        |owner: &str, name: &str| sources.iter().any(|(path, text)| has(path, text, owner) && defines(text, name));
    let missing: Vec<_> = names.iter().filter(|(owner, name)| !exists(owner, name)).collect();
    assert!(missing.is_empty(), "docs/ARCHITECTURE.md names what there is not: {missing:?}");
}

#[test]
fn the_overview_is_short() {
    let words = overview().split_whitespace().count();
    assert!(words <= WORDS_MAX, "docs/ARCHITECTURE.md has {words} words: what is above {WORDS_MAX} belongs to a crate");
}

/// Whether a file is that module, or has that type or something that is implemented for it.
fn has(path: &Path, text: &str, owner: &str) -> bool {
    if owner.starts_with(char::is_lowercase) {
        return path.file_stem().is_some_and(|stem| stem == owner);
    }
    let declares = |line: &&str| ["impl", "struct ", "enum ", "trait "].iter().any(|word| line.contains(word));
    let mut lines = text.lines().filter(declares);
    lines.any(|line| line.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')).any(|word| word == owner))
}

fn defines(text: &str, function: &str) -> bool {
    text.contains(&format!("fn {function}(")) || text.contains(&format!("fn {function}<"))
}

fn overview() -> String {
    read(&root().join("docs/ARCHITECTURE.md"))
}
