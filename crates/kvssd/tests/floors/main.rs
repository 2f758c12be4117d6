//! The order of the house: which crate may stand on which, what the firmware may not know, and how long a file may be.
//!
//! ```text
//!   8  py                    the Python package, on the command line's plans and folders
//!   7  kvssd                 the command line
//!   6  papers                claims, databases; whoever depends on it does so for a feature of its own
//!      embedded  capi        the embedded store measured, the C library
//!      world                 hosts, network, target and drive on one seed
//!      report                tables and plots of runs as a page
//!   5  sim  host  nvme-target
//!   4  device  conformance  model
//!   3  designs               every index, on the firmware's public seam
//!   2  ftl                   knows no NVMe and no design
//!   1  flash  transactions   0 to 4: no wall clock, no threads, no order of hash maps, so that a seed tells everything
//!      measure  cache  text
//!      nvme-client           waits by way of the runtime, and is no part of the drive
//!   0  types  nvme-spec  nvme-auth  tls
//!      mapping               pages of a file as memory: the unsafe code of an image
//!      allocator             of programs
//!      runtime               time, threads, locks, connections: of the machine or of a world; for the client, and 5 and above
//! ```

mod imports;

use imports::Imports;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Every crate's directory and floor; imports point down only.
const FLOORS: [(&str, u32); 28] = [
    ("runtime", 0),
    ("allocator", 0),
    ("mapping", 0),
    ("types", 0),
    ("nvme-spec", 0),
    ("nvme-auth", 0),
    ("tls", 0),
    ("nvme-client", 1),
    ("flash", 1),
    ("text", 1),
    ("transactions", 1),
    ("measure", 1),
    ("cache", 1),
    ("ftl", 2),
    ("designs", 3),
    ("device", 4),
    ("conformance", 4),
    ("model", 4),
    ("sim", 5),
    ("host", 5),
    ("nvme-target", 5),
    ("capi", 6),
    ("embedded", 6),
    ("world", 6),
    ("papers", 6),
    ("report", 6),
    ("kvssd", 7),
    ("py", 8),
];

/// The highest floor whose results depend on the seed and the options alone.
const DETERMINISTIC_FLOOR_MAX: u32 = 4;

/// What would let the machine or the moment into a result.
const NOT_DETERMINISTIC: [&str; 6] = ["Instant", "SystemTime", "thread::", "HashMap", "HashSet", "kvssd_runtime"];

/// Beside the drive on its floors: the way to the machine, and who waits by it.
const BESIDE_THE_DRIVE: [&str; 2] = ["runtime", "nvme-client"];

/// What runs in a world: who waits there for the machine stops the world.
const IN_A_WORLD: [&str; 3] = ["host/src", "nvme-client/src", "nvme-target/src"];
/// But for who serves sockets of the machine.
const ON_SOCKETS: [&str; 2] = ["nvme-target/src/server.rs", "nvme-target/src/metrics_server.rs"];
/// What waits for the machine, or differs from run to run.
const OF_THE_MACHINE: [&str; 9] = [
    "std::time::Instant",
    "std::time::{",
    "SystemTime",
    "std::thread",
    "std::net::Tcp",
    "std::sync::{Arc, Mutex",
    "std::sync::Mutex",
    "HashMap",
    "RandomState",
];

const LINES_MAX: usize = 500;

#[test]
fn every_crate_has_a_floor() {
    let mut directories: Vec<String> = entries(&crates()).iter().map(|path| name(path)).collect();
    let mut floors = FLOORS.map(|(directory, _)| directory.to_owned());
    directories.sort();
    floors.sort();
    assert_eq!(directories, floors);
}

#[test]
fn a_crate_stands_on_lower_floors_only() {
    let mut arrows = 0;
    for (directory, floor) in FLOORS {
        let manifest = read(&crates().join(directory).join("Cargo.toml"));
        for other in crates_named_in(&manifest).filter(|other| *other != directory) {
            let below = FLOORS.iter().find(|(directory, _)| *directory == other).expect("a crate has a floor").1;
            assert!(below < floor, "{directory} on floor {floor} must not depend on {other} on floor {below}");
            arrows += 1;
        }
    }
    assert!(arrows >= FLOORS.len() - 1, "only {arrows} arrows found: the manifests are not read as they are written");
}

#[test]
fn the_firmware_knows_no_nvme() {
    let offences = offences(&["ftl"], |code| code.to_lowercase().contains("nvme"));
    assert!(offences.is_empty(), "{offences:#?}");
}

#[test]
fn the_seed_alone_decides_what_a_drive_does() {
    let offences = offences(&drive(), |code| NOT_DETERMINISTIC.iter().any(|word| code.contains(word)));
    assert!(offences.is_empty(), "{offences:#?}");
}

#[test]
fn the_drive_does_not_reach_for_the_machine() {
    for directory in drive() {
        let manifest = read(&crates().join(directory).join("Cargo.toml"));
        assert!(crates_named_in(&manifest).all(|other| !BESIDE_THE_DRIVE.contains(&other)), "{directory}");
    }
}

/// The crates that a drive is made of.
fn drive() -> Vec<&'static str> {
    let is_drive =
        |(name, floor): &&(&'static str, u32)| *floor <= DETERMINISTIC_FLOOR_MAX && !BESIDE_THE_DRIVE.contains(name);
    FLOORS.iter().filter(is_drive).map(|(directory, _)| *directory).collect()
}

#[test]
fn what_runs_in_a_world_waits_there_only() {
    let files = IN_A_WORLD.iter().flat_map(|directory| source_files(&crates().join(directory)));
    let served = |file: &PathBuf| ON_SOCKETS.iter().any(|name| file.ends_with(name));
    let files: Vec<PathBuf> = files.filter(|file| !served(file)).collect();
    assert!(files.len() > 30, "only {} source files found", files.len());
    let program = |file: &PathBuf| read(file).split("#[cfg(test)]").next().map(str::to_owned).unwrap_or_default();
    let offences: Vec<String> =
        files.iter().flat_map(|file| offences_in(file, &program(file), is_of_the_machine)).collect();
    assert!(offences.is_empty(), "{offences:#?}");
}

fn is_of_the_machine(code: &str) -> bool {
    OF_THE_MACHINE.iter().any(|word| code.contains(word))
}

/// A module and its children are one; what tests import does not count.
#[test]
fn modules_import_one_way() {
    for (name, _) in FLOORS {
        assert_one_way(name, imports::of_modules(&crates().join(name).join("src")));
    }
}

/// Nor do files, wherever they lie, but for what a module and those within it have of each other.
#[test]
fn files_import_one_way() {
    let mut files = 0;
    for (name, _) in FLOORS {
        let imports = imports::of_files(&crates().join(name).join("src"));
        files += imports.values().filter(|imported| !imported.is_empty()).count();
        assert_one_way(name, imports);
    }
    assert!(files > 500, "only {files} files import others");
}

fn assert_one_way(name: &str, imports: Imports) {
    let circle = imports::circle(imports);
    assert!(circle.is_none(), "a circle in {name}: {circle:#?}");
}

/// `lib.rs` shows the modules of the firmware, each above what it imports.
#[test]
fn the_firmware_is_drawn_as_it_is() {
    let text = read(&crates().join("ftl/src/lib.rs"));
    let picture = text.split("```").nth(1).expect("lib.rs has a picture");
    let drawn: Vec<&str> = picture.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
    let imports = imports::of_modules(&crates().join("ftl/src"));
    assert_eq!(drawn.iter().copied().collect::<BTreeSet<_>>(), imports.keys().map(|module| &*module[0]).collect());
    let module = |name: &str| vec![name.to_owned()];
    for (at, name) in drawn.iter().enumerate() {
        let imported = &imports[&module(name)];
        let above: Vec<_> = drawn[..at].iter().filter(|above| imported.contains(&module(above))).collect();
        assert!(above.is_empty(), "{name} imports {above:?}, which are drawn above it");
    }
}

/// To look for them in each crate takes longer than to run them.
#[test]
fn examples_in_the_documentation_are_run() {
    for krate in entries(&crates()).iter().filter(|krate| read(&krate.join("Cargo.toml")).contains("doctest = false")) {
        let is_example = |file: &PathBuf| {
            let text = read(file);
            let fences = text
                .lines()
                .filter_map(|line| line.trim_start().strip_prefix("//")?.get(1..)?.trim().strip_prefix("```"));
            // Every other one ends a block.
            fences.step_by(2).any(|language| language.is_empty() || language == "no_run" || language == "rust")
        };
        let found: Vec<_> = source_files(&krate.join("src")).into_iter().filter(is_example).collect();
        assert!(found.is_empty(), "{krate:?} does not run its examples: {found:?}");
    }
}

#[test]
fn no_source_file_is_too_long() {
    let files = source_files(&crates());
    assert!(files.len() > FLOORS.len(), "only {} source files found", files.len());
    for file in files {
        let lines = read(&file).lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines: split it before {LINES_MAX}", file.display());
    }
}

/// The directories of all crates of this project that a manifest names. Every mention counts, so that no way of writing a
/// dependency slips through, except for what the crate and its library are called themselves.
fn crates_named_in(manifest: &str) -> impl Iterator<Item = &str> {
    manifest
        .lines()
        .filter(|line| !line.starts_with("name = "))
        .flat_map(|line| line.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-')))
        .filter_map(|word| word.strip_prefix("kvssd-").or((word == "kvssd").then_some(word)))
}

/// Where code of these crates, comments apart, is such as it must not be.
fn offences(directories: &[&str], is_offence: impl Fn(&str) -> bool) -> Vec<String> {
    let files: Vec<_> =
        directories.iter().flat_map(|directory| source_files(&crates().join(directory).join("src"))).collect();
    assert!(files.len() >= directories.len(), "only {} source files found", files.len());
    files.iter().flat_map(|file| offences_in(file, &read(file), &is_offence)).collect()
}

/// Where the text of that file, comments apart, is such as it must not be.
fn offences_in(file: &Path, text: &str, is_offence: impl Fn(&str) -> bool) -> Vec<String> {
    let mut offences = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if is_offence(code) {
            offences.push(format!("{}:{}: {}", file.display(), index + 1, code.trim()));
        }
    }
    offences
}

fn source_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in entries(directory) {
        if path.is_dir() {
            files.extend(source_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate lies beside the others").to_owned()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    entries.map(|entry| entry.expect("an entry can be read").path()).collect()
}

fn name(path: &Path) -> String {
    path.file_name().expect("an entry has a name").to_string_lossy().into_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
