//! Files of text that a person wrote.

use std::path::Path;

/// Whether a file is one that can be read whole: who reads a pipe waits for somebody that writes to it.
pub fn refuse_pipe(path: &Path) -> Result<(), String> {
    let metadata = std::fs::metadata(path).map_err(|why| format!("cannot be read: {why}"))?;
    if metadata.is_file() { Ok(()) } else { Err("cannot be read: it is no regular file".to_owned()) }
}

/// What is wrong with a file of TOML, in a line.
pub fn one_line(error: &toml::de::Error) -> String {
    error.to_string().lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
