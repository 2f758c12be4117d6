//! The mutants apply still: patches that plant a fault each, which `mutants/run.sh` has the world find.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// So many joints have a fault of their own.
const MUTANTS_MIN: usize = 30;

#[test]
fn every_mutant_says_who_finds_it_and_applies_to_the_tree() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = fs::read_dir(here.join("mutants")).unwrap();
    let paths = folder.map(|entry| entry.unwrap().path());
    let patches: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "patch")).collect();
    assert!(patches.len() >= MUTANTS_MIN, "{} mutants", patches.len());
    for patch in &patches {
        let text = fs::read_to_string(patch).unwrap();
        assert!(text.starts_with("Joint: ") && text.contains("\nFinder: "), "{} says too little", patch.display());
    }
    if Command::new("git").arg("--version").output().is_err() {
        println!("there is no git here: nobody has looked whether the mutants apply");
        return;
    }
    for patch in &patches {
        let applied =
            Command::new("git").current_dir(here.join("../..")).args(["apply", "--check"]).arg(patch).output().unwrap();
        assert!(applied.status.success(), "{}: {}", patch.display(), String::from_utf8_lossy(&applied.stderr));
    }
}
