//! What a person is told when something cannot be done, and the exit status.

#[cfg(feature = "campaigns")]
use kvssd_conformance::CampaignError;
use kvssd_embedded::EmbeddedError;
use kvssd_flash::ProfileError;
use kvssd_ftl::DesignError;
use kvssd_host::{DriveUrl, Error as StoreError, NamespaceId};
use kvssd_nvme_target::ServeError;
use kvssd_sim::SimError;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use thiserror::Error;

/// Why the program ends without having done its work.
#[derive(Debug, Error)]
pub enum Failure {
    /// The experiment.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The experiment behind some claims.
    #[cfg(feature = "papers")]
    #[error("{ids}: {why}")]
    Claims {
        /// Their numbers.
        ids: String,
        /// Why it failed.
        why: Box<Failure>,
    },
    /// The campaign of power cuts.
    #[cfg(feature = "campaigns")]
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// Drives lost something when the power went.
    #[cfg(feature = "campaigns")]
    #[error("{0} drives were not what they must be after a power cut: this is a bug of the design")]
    Losses(u64),
    /// It is not in this program.
    #[cfg(not(all(feature = "campaigns", feature = "papers")))]
    #[error("{what}: this program was built without it: build it with --features {feature}")]
    Without {
        /// What was asked for.
        what: &'static str,
        /// What it is in.
        feature: &'static str,
    },
    /// The measurement of embedded stores.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// The output.
    #[error("{}: cannot be written: {why}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// The input.
    #[error("{}: {why}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file that can be made again.
    #[error("{why}; {remedy}")]
    Damaged {
        /// What is wrong with it.
        why: Box<Failure>,
        /// How it is made again.
        remedy: &'static str,
    },
    /// The image, or what was asked of it.
    #[error("{}", of_image(path, &error.to_string()))]
    Store {
        /// The image.
        path: PathBuf,
        /// What is wrong.
        error: StoreError,
    },
    /// A load that stopped in the middle.
    #[error("{why}; {}, and all of them can be loaded again", loaded_of(*loaded, behind))]
    Load {
        /// Why it stopped.
        why: Box<Failure>,
        /// Pairs whose batches were stored whole.
        loaded: u64,
        /// Those of the batch that was not.
        behind: Behind,
    },
    /// What was made, and cannot be told.
    #[error("{why}; namespace {number} is made")]
    Untold {
        /// Why it cannot.
        why: Box<Failure>,
        /// The namespace.
        number: NamespaceId,
    },
    /// The service.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// What is to be logged.
    #[error("--log {filter}: {why}; write it as warn, info, or kvssd_nvme_target=debug")]
    LogFilter {
        /// As it was given.
        filter: String,
        /// What is wrong with it.
        why: String,
    },
    /// Anybody could change the drive.
    #[error(
        "--listen {0}: other machines reach it, and not every host must prove who it is: name a secret_file or a \
         tls_key_file for each in the file of --config, or add --insecure"
    )]
    Unproved(std::net::SocketAddr),
    /// Anybody could read what there is on the drive.
    #[error(
        "--metrics {0}: other machines reach it, and it tells whoever asks the drive's namespaces, names and sizes: give it an \
         address of this machine, as 127.0.0.1:{port}, or add --insecure", port = .0.port()
    )]
    OpenMetrics(std::net::SocketAddr),
    /// There is no such key.
    #[error("{}: there is no key {key}", name_of(path))]
    NoKey {
        /// The image.
        path: PathBuf,
        /// The key, as text.
        key: String,
    },
    /// Pairs cannot be read.
    #[error("{}: {}", name_of(path), lost_of(*pairs, keys, *others))]
    Lost {
        /// The image.
        path: PathBuf,
        /// How many there are.
        pairs: u64,
        /// Some of the keys that are known and cannot be read, as text.
        keys: Vec<String>,
        /// How many more of these there are.
        others: u64,
    },
    /// A check found something.
    #[error("image {}: findings: {count}", path.display())]
    Inconsistent {
        /// The image.
        path: PathBuf,
        /// How many things are wrong.
        count: u64,
    },
    /// The user wants it to end.
    #[error("interrupted")]
    Interrupted,
}

/// Pairs of which some may be loaded: a batch is not stored all or none.
#[derive(Debug)]
pub struct Behind {
    /// How many there are.
    pub pairs: u64,
    /// How many of them are in the drive, if it could say so.
    pub there: Option<u64>,
}

fn loaded_of(loaded: u64, behind: &Behind) -> String {
    let first = match loaded {
        0 => "no pair is loaded".to_owned(),
        1 => "the first pair is loaded".to_owned(),
        _ => format!("the first {loaded} pairs are loaded"),
    };
    let of = match behind.there {
        Some(0) => return first,
        Some(there) => there.to_string(),
        None => "perhaps some".to_owned(),
    };
    match loaded {
        0 => format!("{of} of the first {} pairs are loaded", behind.pairs),
        _ => format!("{first}, {of} of the {} behind as well", behind.pairs),
    }
}

fn lost_of(pairs: u64, keys: &[String], others: u64) -> String {
    let lie = if pairs == 1 { "1 pair lies".to_owned() } else { format!("{pairs} pairs lie") };
    let of_keys = match (keys, others) {
        ([], _) => String::new(),
        (_, 0) => format!("; keys that cannot be read: {}", keys.join(", ")),
        _ => format!("; keys that cannot be read: {} and {others} more", keys.join(", ")),
    };
    format!("{lie} on pages that cannot be read, and not in the output{of_keys}")
}

/// What is wrong, with the image's name where that does not name it.
pub fn of_image(path: &Path, why: &str) -> String {
    let name = name_of(path);
    // A URL is said whole, with what it does not say itself.
    if why.contains(&name) || why.starts_with("nvme+tcp://") { why.to_owned() } else { format!("{name}: {why}") }
}

/// Whether there is no room for a file.
fn is_full(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

fn name_of(path: &Path) -> String {
    if is_url(path) { path.display().to_string() } else { format!("image {}", path.display()) }
}

/// Whether it is a drive on the wire that a person means.
pub fn is_url(path: &Path) -> bool {
    path.to_str().and_then(DriveUrl::of).is_some()
}

impl Failure {
    /// That something is not in this program.
    #[cfg(not(all(feature = "campaigns", feature = "papers")))]
    pub fn without(what: &'static str, feature: &'static str) -> Failure {
        Failure::Without { what, feature }
    }

    /// That something is wrong with an image.
    pub fn of_store<E: Into<StoreError>>(path: &Path) -> impl Fn(E) -> Failure {
        move |error| Failure::Store { path: path.to_owned(), error: error.into() }
    }

    /// That a file cannot be written, or the standard output, which is `-`.
    pub fn of_output(path: &Path) -> impl Fn(io::Error) -> Failure {
        let path = if path == Path::new("-") { Path::new("standard output") } else { path };
        move |why| Failure::Output { path: path.to_owned(), why }
    }

    /// That something is wrong with a file, or the standard input, which is `-`.
    pub fn of_input(path: &Path) -> impl Fn(String) -> Failure {
        let path = if path == Path::new("-") { Path::new("standard input") } else { path };
        move |why| Failure::Input { path: path.to_owned(), why }
    }

    /// 1 for an answer that is no, 3 for what failed, 4 for an image that another process has, which may be tried again, 130 for an interrupt, 2
    /// for the rest: what the user can change.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Load { why, .. } | Failure::Untold { why, .. } => return why.code(),
            #[cfg(feature = "papers")]
            Failure::Claims { why, .. } => return why.code(),
            #[cfg(feature = "campaigns")]
            Failure::Campaign(CampaignError::Interrupted) => 130,
            Failure::Sim(SimError::Interrupted)
            | Failure::Embedded(EmbeddedError::Interrupted)
            | Failure::Interrupted => 130,
            #[cfg(feature = "campaigns")]
            Failure::Losses(_) => 1,
            Failure::Sim(SimError::WrongValues(_) | SimError::WrongAnswers(_))
            | Failure::Embedded(EmbeddedError::WrongValue { .. })
            | Failure::NoKey { .. }
            | Failure::Lost { .. }
            | Failure::Inconsistent { .. } => 1,
            Failure::Sim(SimError::Drive(_))
            | Failure::Embedded(EmbeddedError::Store { .. } | EmbeddedError::Wire { .. } | EmbeddedError::Thread(_))
            | Failure::Serve(ServeError::Thread { .. }) => 3,
            Failure::Store {
                error:
                    StoreError::Full
                    | StoreError::QuotaFull
                    | StoreError::Io { .. }
                    | StoreError::Failed { .. }
                    | StoreError::Unreachable { .. }
                    | StoreError::InDoubt { .. },
                ..
            } => 3,
            Failure::Output { why, .. } if is_full(why) => 3,
            Failure::Store { error: StoreError::Locked { .. }, .. } => 4,
            _ => 2,
        })
    }
}

impl From<DesignError> for Failure {
    fn from(error: DesignError) -> Self {
        Failure::Sim(error.into())
    }
}

impl From<ProfileError> for Failure {
    fn from(error: ProfileError) -> Self {
        Failure::Sim(error.into())
    }
}
