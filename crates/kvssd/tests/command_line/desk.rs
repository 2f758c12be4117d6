//! A folder in which the program is run, and how to read what it reports.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A drive so small and full that garbage collection runs in the measured phase of both designs.
pub const NEARLY_FULL: &str = "--scale 1/512 --records 100000 --operations 60000";

/// Enough to see that something works.
pub const TINY: &str = "--scale 1/512 --records 5000 --operations 3000";

/// Runs the program in an empty folder.
pub struct Desk {
    folder: TempDir,
}

impl Desk {
    /// A new folder.
    pub fn new() -> Self {
        Desk { folder: TempDir::new().expect("a folder can be made") }
    }

    /// A new folder in memory, where there is one: for what waits for the disk thousands of times, and is not about its speed.
    pub fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
        Desk { folder: folder.expect("a folder can be made") }
    }

    /// Puts a file into the folder.
    pub fn put(&self, file: &str, text: &str) {
        fs::write(self.folder.path().join(file), text).expect("the folder takes files");
    }

    /// Where a file of the folder is.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// The text of a file in the folder.
    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.path().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// The names of the files in the folder.
    pub fn files(&self) -> Vec<String> {
        self.files_in(".")
    }

    /// The names of the files in a folder within it.
    pub fn files_in(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).expect("the folder can be read");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry can be read").file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program with arguments, to be started.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvssd"));
        command.current_dir(self.folder.path()).args(arguments.split_whitespace());
        // Programs that live for a blink would take more time to clear huge pages than to work: half of the system's share of these tests.
        command.env("MIMALLOC_ALLOW_THP", "0");
        command
    }

    pub fn run(&self, arguments: &str) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    /// What the program prints when it does as it is told.
    pub fn prints(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "kvssd {arguments}: {output:?}");
        // On a machine that is busy anything may take so long that its progress is said.
        let is_progress =
            |line: &str| line.starts_with("kvssd: ") && (line.ends_with(" left") || line.ends_with(" done"));
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(messages.lines().all(is_progress), "kvssd {arguments}: {output:?}");
        String::from_utf8(output.stdout).expect("output is text")
    }

    /// What is wrong with how the program refuses to work; it has to say in one line what cannot be, and to leave no file.
    pub fn wrong_with_refusal(&self, arguments: &str, names: &[&str]) -> Option<String> {
        let before = self.files();
        let output = self.run(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        let is_line = message.starts_with("kvssd: ") && message.lines().count() == 1;
        let wrong = if output.status.code() != Some(2) {
            format!("{}", output.status)
        } else if !output.stdout.is_empty() {
            "it printed something".to_owned()
        } else if !is_line {
            "its message is not one line".to_owned()
        } else if let Some(name) = names.iter().find(|name| !message.contains(**name)) {
            format!("its message does not name {name}")
        } else if self.files() != before {
            format!("it left {:?}", self.files())
        } else {
            return None;
        };
        Some(format!("kvssd {arguments}: {wrong}: {message}"))
    }

    /// Asserts that the program refuses to work as it should.
    pub fn refuses(&self, arguments: &str, names: &[&str]) {
        assert_eq!(self.wrong_with_refusal(arguments, names), None);
    }
}

/// The runs of a bench that must succeed.
pub fn bench(arguments: &str) -> Vec<Value> {
    runs(&Desk::new().prints(&format!("bench --json - {arguments}")))
}

/// The runs in a report.
pub fn runs(document: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(document).expect("the document is JSON");
    document["runs"].as_array().expect("there are runs").clone()
}

/// The number at a JSON pointer.
pub fn number(run: &Value, pointer: &str) -> f64 {
    run.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer} is no number in {run:#}"))
}
