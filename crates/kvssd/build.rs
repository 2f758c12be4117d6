//! Which sources, commit and compiler a program is of, for its reports. Without git, as in an unpacked archive, there is no commit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xxhash_rust::xxh3::xxh3_128;

/// All crates.
const CRATES: &str = "..";
const LOCK: &str = "../../Cargo.lock";

fn main() {
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let compiler = output_of(Command::new(compiler).arg("--version")).unwrap_or_default();
    let target = std::env::var("TARGET").unwrap_or_default();
    let changes = output_of(Command::new("git").args(["status", "--porcelain", "--untracked-files=no", CRATES]));
    let commit = output_of(Command::new("git").args(["rev-parse", "--short=12", "HEAD"])).unwrap_or_default();
    let changed = if changes.is_some_and(|changes| !changes.is_empty()) { "+changes" } else { "" };
    println!("cargo::rustc-env=KVSSD_COMMIT={commit}{changed}");
    println!("cargo::rustc-env=KVSSD_BUILD={:032x}", xxh3_128(&sources(&format!("{compiler}\n{target}\n"))));
    println!("cargo::rustc-env=KVSSD_COMPILER={compiler}");
    // That there are changes must be known of each.
    println!("cargo::rerun-if-changed={CRATES}");
    println!("cargo::rerun-if-changed={LOCK}");
    if let Some(head) = output_of(Command::new("git").args(["rev-parse", "--git-path", "logs/HEAD"])) {
        println!("cargo::rerun-if-changed={head}");
    }
}

/// All that a program is made of except for tests: the same for every program that is made of it, this one or the Python package.
fn sources(made_with: &str) -> Vec<u8> {
    let mut files = vec![PathBuf::from(LOCK)];
    add_files(Path::new(CRATES), &mut files);
    files.sort();
    let mut bytes = made_with.as_bytes().to_vec();
    for file in files {
        let text = fs::read(&file).unwrap_or_default();
        bytes.extend(format!("{} {}\n", file.display(), text.len()).into_bytes());
        bytes.extend(text);
    }
    bytes
}

fn add_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() && !path.ends_with("tests") {
            add_files(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "toml") {
            files.push(path);
        }
    }
}

/// What a command says when it succeeds.
fn output_of(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
