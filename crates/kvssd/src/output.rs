//! JSON files, written whole or not at all.

use crate::Outcome;
use crate::fail::Failure;
use serde_json::Value;
use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

/// A JSON file that will be written when the work is done. That it can be is checked before the work begins.
pub struct JsonFile {
    path: Option<PathBuf>,
}

impl JsonFile {
    /// The file at `path`, if one is wanted; `-` is the standard output.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        if let Some(path) = path.filter(|path| !is_stdout(path)) {
            let draft = draft_of(path);
            fs::write(&draft, b"").and_then(|()| fs::remove_file(&draft)).map_err(|why| fail(path, why))?;
        }
        Ok(JsonFile { path: path.map(Path::to_owned) })
    }

    /// Writes the document: to a draft beside the file, which then takes its name.
    pub fn write(&self, document: &Value) -> Outcome {
        let Some(path) = &self.path else { return Ok(()) };
        let text = format!("{document:#}\n");
        if is_stdout(path) {
            return stdout().write_all(text.as_bytes()).map_err(|why| fail(path, why));
        }
        let draft = draft_of(path);
        let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, path));
        written.map_err(|why| {
            // The draft is of no use; that it may stay behind is the lesser trouble.
            let _ = fs::remove_file(&draft);
            fail(path, why)
        })
    }

    /// Whether tables would get in the way of the document.
    pub fn takes_stdout(&self) -> bool {
        self.path.as_deref().is_some_and(is_stdout)
    }
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

fn draft_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

fn fail(path: &Path, why: std::io::Error) -> Failure {
    Failure::Output { path: path.to_owned(), why }
}
