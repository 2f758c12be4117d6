//! Files that are written whole or not at all, and the standard output.

use crate::Outcome;
use crate::fail::Failure;
use kvssd_nvme_auth::masked;
use kvssd_sim::SimError;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write, stderr, stdout};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A JSON file that will be written when the work is done. That it can be is checked before the work begins.
pub struct JsonFile {
    path: Option<PathBuf>,
}

impl JsonFile {
    /// The file at `path`, if one is wanted; `-` is the standard output.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        if let Some(path) = path.filter(|path| !is_dash(path)) {
            let place = &target(path);
            refuse_image(place).map_err(Failure::of_output(path))?;
            let can_be_written = match fs::metadata(place) {
                Ok(found) if found.is_dir() => Err(std::io::Error::from(std::io::ErrorKind::IsADirectory)),
                Ok(_) if is_plain(place) => open_plain(place).map(|_| ()),
                // A draft will take its place.
                Ok(_) => open_plain(place).and_then(|_| draft(place)).map(|_| ()),
                Err(_) => draft(place).map(|_| ()),
            };
            can_be_written.map_err(Failure::of_output(path))?;
        }
        Ok(JsonFile { path: path.map(Path::to_owned) })
    }

    /// Writes the document: to a draft beside the file, which then takes its name. What is no regular file, such as a pipe, is
    /// written to as it is.
    pub fn write(&self, document: &Value) -> Outcome {
        self.write_bytes(format!("{document:#}\n").as_bytes())
    }

    /// As [`JsonFile::write`], of a document that is bytes already.
    pub fn write_bytes(&self, bytes: &[u8]) -> Outcome {
        let Some(path) = &self.path else { return Ok(()) };
        if is_dash(path) {
            return print_bytes(bytes);
        }
        let place = &target(path);
        let plain = || open_plain(place).and_then(|mut file| file.write_all(bytes));
        let written = if is_plain(place) { plain() } else { write_whole(place, bytes) };
        written.map_err(Failure::of_output(path))
    }

    /// Whether there will be one.
    pub fn is_wanted(&self) -> bool {
        self.path.is_some()
    }

    /// Whether tables would get in the way of the document.
    pub fn takes_stdout(&self) -> bool {
        self.path.as_deref().is_some_and(is_dash)
    }
}

/// Refuses outputs of options, each with its file, of which one would be written over another or between its lines.
pub fn refuse_one_place(outputs: &[(&str, Option<&Path>)]) -> Outcome {
    let wanted: Vec<(&str, &Path)> = outputs.iter().filter_map(|(option, path)| Some((*option, (*path)?))).collect();
    for (number, (option, path)) in wanted.iter().enumerate() {
        if let Some((other, _)) = wanted[..number].iter().find(|(_, other)| is_one_place(path, other)) {
            let place = if is_dash(path) { "the standard output".to_owned() } else { path.display().to_string() };
            let why = format!("{other} and {option} cannot both go to {place}: give one of them another file");
            return Err(SimError::Setup(why).into());
        }
    }
    Ok(())
}

fn is_one_place(path: &Path, other: &Path) -> bool {
    // What is no file, such as /dev/null, takes all that comes.
    let is_file = fs::metadata(path).ok().is_none_or(|found| found.is_file());
    let is_same = || place_of(path).is_some_and(|place| Some(place) == place_of(other));
    is_dash(path) == is_dash(other) && (is_dash(path) || (is_file && is_same()))
}

/// Where a file is or will be, whichever way it is named.
fn place_of(path: &Path) -> Option<PathBuf> {
    let in_folder = || Some(fs::canonicalize(folder_of(path)).ok()?.join(path.file_name()?));
    fs::canonicalize(path).ok().or_else(in_folder)
}

/// Writes to the file at `path` as [`JsonFile::write`] does, what `write` does; `-` is the standard output. A reader that has gone
/// away wants no more, and is no error.
pub fn write_to(path: &Path, write: impl FnOnce(&mut dyn Write) -> Outcome) -> Outcome {
    let (place, taken) = (&target(path), Failure::of_output(path));
    let written = if is_dash(path) {
        fill(path, &mut stdout().lock(), write)
    } else if is_plain(place) {
        refuse_image(place).map_err(&taken)?;
        fill(path, &mut open_plain(place).map_err(taken)?, write)
    } else {
        let mut draft = draft(place).map_err(&taken)?;
        // Its own errors would name it.
        fill(path, draft.as_file_mut(), write)?;
        return draft.persist(place).map(|_| ()).map_err(|error| taken(error.error));
    };
    match written {
        Err(Failure::Output { why, .. }) if why.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn fill(path: &Path, file: &mut dyn Write, write: impl FnOnce(&mut dyn Write) -> Outcome) -> Outcome {
    let mut file = BufWriter::new(file);
    write(&mut file)?;
    file.flush().map_err(Failure::of_output(path))
}

/// The file that a path means: that at the end of its links, which is written whole as any other. A device is none.
fn target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // As many as the system follows. Where /dev/stdout and its like lead to is open already.
    for _ in 0..40 {
        let is_open = fs::canonicalize(folder_of(&path)).is_ok_and(|folder| folder.starts_with("/proc"));
        match fs::read_link(&path) {
            Ok(to) if !is_open => path = folder_of(&path).join(to),
            _ => break,
        }
    }
    path
}

/// What is no regular file takes what comes; one that is open already, behind what it has.
fn open_plain(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}

/// Whether a path is `-`, which stands for the standard input or output.
pub fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether there is something that is no regular file, and is written to as it is.
fn is_plain(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_file())
}

/// Refuses to write over a drive. Whoever serves it would go on in a file that has no name any more, and lose all with the end of its process.
fn refuse_image(path: &Path) -> io::Result<()> {
    let mut begin = Vec::new();
    // What cannot be read is no drive of ours, and opening a pipe would wait for somebody.
    if fs::metadata(path).is_ok_and(|found| found.is_file())
        && let Ok(file) = File::open(path)
    {
        file.take(8).read_to_end(&mut begin)?;
    }
    match kvssd_flash::is_image(&begin) {
        true => Err(io::Error::other("it is the image of a drive: give another name, or remove it first")),
        false => Ok(()),
    }
}

/// Writes a file whole, or leaves what was there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let path = &target(path);
    let mut draft = draft(path)?;
    draft.as_file_mut().write_all(bytes)?;
    draft.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// A file beside the one at `path`, which takes its name when it is whole.
fn draft(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = folder_of(path);
    fs::metadata(folder)?;
    refuse_image(path)?;
    let draft = tempfile::Builder::new().permissions(readable()).tempfile_in(folder);
    // Its own name is no matter of the user's.
    draft.map_err(|why| why.kind().into())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Prints a text whole. A reader that has gone away wants no more, and is no error.
pub fn print(text: &str) -> Outcome {
    print_bytes(text.as_bytes())
}

/// As [`print`].
pub fn print_bytes(bytes: &[u8]) -> Outcome {
    written(stdout().write_all(bytes).and_then(|()| stdout().flush()))
}

/// What became of a text on standard output. A reader that has gone away is no error.
pub fn written(result: io::Result<()>) -> Outcome {
    match result {
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => Err(Failure::of_output(Path::new("-"))(why)),
        _ => Ok(()),
    }
}

/// A file that grows beyond what the process may write is an error of that write, not the end of the process.
pub fn outlive_limits() {
    #[cfg(unix)]
    {
        // Without the handler the process ends as kill -9 ends it, which is safe as well.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    }
}

/// So many of a noun.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A time as people say it.
pub fn time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..90 => format!("{seconds} s"),
        seconds @ 90..5400 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

/// Whether nothing is told on the way.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Has nothing told on the way, from now on.
pub fn be_quiet(is_quiet: bool) {
    IS_QUIET.store(is_quiet, Ordering::Relaxed);
}

/// Whether nothing is told on the way.
pub fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Tells the user how the work goes, unless that is not wanted.
pub fn note(text: &str) {
    if !is_quiet() {
        say(text);
    }
}

/// Tells the user on the standard error. That it cannot be told is no reason to stop.
pub fn say(text: &str) {
    let _ = writeln!(stderr(), "kvssd: {}", line(&masked(text)));
}

/// A text as one line, whatever the names in it have: what a terminal would obey is written as in a program.
fn line(text: &str) -> String {
    text.chars().fold(String::new(), |line, letter| match letter.is_control() {
        true => line + &letter.escape_default().to_string(),
        false => line + letter.encode_utf8(&mut [0; 4]),
    })
}

/// The permissions that a file made in the ordinary way has.
#[cfg(unix)]
fn readable() -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(0o644)
}
