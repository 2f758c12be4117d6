//! What experiments found, kept in a folder: a file for each, which says what it was run with and by which program.

use super::workers::{Found, Job};
use crate::fail::Failure;
use crate::output::JsonFile;
use kvssd_papers::claims::{Cell, Claim, Findings};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

/// The folder.
pub struct Kept {
    folder: PathBuf,
    /// Which program this is.
    program: u64,
}

/// What a file says.
#[derive(Debug, Serialize, Deserialize)]
struct Kind {
    program: u64,
    conditions: String,
    seconds: f64,
    claims: Vec<Claim>,
    cells: Vec<Cell>,
}

impl Kept {
    /// The folder, which is made.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(folder).map_err(|why| Failure::Output { path: folder.to_owned(), why })?;
        // Another build may find something else.
        let program = std::env::current_exe().and_then(fs::read).map_or(0, |bytes| hash_of(&bytes));
        Ok(Kept { folder: folder.to_owned(), program })
    }

    /// The file of an experiment under its conditions: others have files of their own.
    fn path(&self, job: &Job) -> PathBuf {
        let of_conditions = hash_of(conditions(job).as_bytes()) & 0xffff_ffff;
        self.folder.join(format!("{}-{of_conditions:08x}.json", job.experiment.ids[0]))
    }

    /// What this program found before under the same conditions.
    pub fn found(&self, job: &Job) -> Option<Found> {
        let text = fs::read(self.path(job)).ok()?;
        let kind: Kind = serde_json::from_slice(&text).ok()?;
        let is_same = kind.program == self.program && kind.conditions == conditions(job);
        is_same.then_some(Found {
            ids: job.experiment.ids,
            findings: Findings { claims: kind.claims, cells: kind.cells },
            seconds: kind.seconds,
        })
    }

    /// Keeps what was found.
    pub fn keep(&self, job: &Job, found: &Found) -> Result<(), Failure> {
        let Findings { claims, cells } = found.findings.clone();
        let kind = Kind { program: self.program, conditions: conditions(job), seconds: found.seconds, claims, cells };
        JsonFile::open(Some(&self.path(job)))?.write(&json!(kind))
    }

    /// Writes the document of all; gives where.
    pub fn write_document(&self, text: &str) -> Result<PathBuf, Failure> {
        let path = self.folder.join("reproduction.md");
        fs::write(&path, text).map_err(|why| Failure::Output { path: path.clone(), why })?;
        Ok(path)
    }
}

fn conditions(job: &Job) -> String {
    format!("{:?}", job.conditions)
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
