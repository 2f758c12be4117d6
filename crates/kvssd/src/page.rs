//! `kvssd report`, and `--html` of others: what was run as a page to look at.

use crate::Outcome;
use crate::arguments::ReportOptions;
use crate::fail::Failure;
use crate::output::{JsonFile, say};
use kvssd_report::{Study, StudyError, html};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// What helps where a run of a sweep is damaged.
const RUN_REMEDY: &str = "the page is without it: remove it and run the sweep again, which makes it anew";
/// What helps where the index is.
const INDEX_REMEDY: &str =
    "if it was damaged, remove it and run the sweep again, which takes over the runs that are there";

/// Writes the page of a sweep's folder or of a report.
pub fn run(options: &ReportOptions) -> Outcome {
    let path = options.results.as_path();
    let wrong = |path: &Path, why: String| Failure::Input { path: path.to_owned(), why };
    let of_study = |why: StudyError| wrong(path, why.to_string());
    if !path.exists() {
        let why = "there is no such folder or file: give the folder of kvssd sweep --out, or what --json wrote";
        return Err(wrong(path, why.to_owned()));
    }
    let page = JsonFile::open(Some(&options.out))?;
    let mut damaged = Vec::new();
    let study = if path.is_dir() {
        let index_path = path.join("index.json");
        if !index_path.exists() {
            return Err(wrong(path, "there is no index.json in it: give the folder of a kvssd sweep".to_owned()));
        }
        let index = read(&index_path).map_err(|why| Failure::Damaged { why: Box::new(why), remedy: INDEX_REMEDY })?;
        let study = Study::of_sweep(&index, |report| {
            run_of_sweep(&path.join(report)).unwrap_or_else(|why| {
                damaged.push(Failure::Damaged { why: Box::new(why), remedy: RUN_REMEDY });
                None
            })
        });
        // Where all are damaged, that none is done is no news.
        study.map_err(|why| damaged.pop().unwrap_or_else(|| of_study(why)))?
    } else {
        Study::of_report(&read(path)?).map_err(of_study)?
    };
    let title = fs::canonicalize(path).ok().and_then(|path| Some(path.file_stem()?.to_string_lossy().into_owned()));
    page.write_bytes(html(&title.unwrap_or_else(|| "kvssd".to_owned()), &study).as_bytes())?;
    // The page shows the others: it may take days until a sweep has all of them again.
    let last = damaged.pop();
    damaged.iter().for_each(|why| say(&why.to_string()));
    last.map_or(Ok(()), Err)
}

/// The report of a run in the folder of a sweep; none if it was not run yet.
pub fn run_of_sweep(path: &Path) -> Result<Option<Value>, Failure> {
    if fs::symlink_metadata(path).is_err_and(|why| why.kind() == ErrorKind::NotFound) {
        return Ok(None);
    }
    let run = read(path)?;
    let wrong = |why: &str| Err(Failure::of_input(path)(why.to_owned()));
    match run["experiments"].as_array().map(Vec::as_slice) {
        // A file has the name of what it is of.
        Some([asked]) if asked["hash"].as_str().map(OsStr::new) == path.file_stem() => Ok(Some(run)),
        Some(_) => wrong("it is the report of another run"),
        None => wrong("it is no report of a run"),
    }
}

/// Writes the page of a document that was just made, if one is wanted.
pub fn write(file: &JsonFile, title: &str, document: &Value) -> Outcome {
    if !file.is_wanted() {
        return Ok(());
    }
    let study = Study::of_report(document).expect("it is a report of this program, with runs or claims");
    file.write_bytes(html(title, &study).as_bytes())
}

fn read(path: &Path) -> Result<Value, Failure> {
    let wrong = Failure::of_input(path);
    let bytes = fs::read(path).map_err(|why| wrong(format!("cannot be read: {why}")))?;
    serde_json::from_slice(&bytes).map_err(|why| wrong(format!("it is no JSON: {why}")))
}
