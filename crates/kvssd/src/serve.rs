//! `kvssd serve`: hosts reach an image over NVMe/TCP.

mod config;
mod log;

use crate::Outcome;
use crate::arguments::serve::ServeOptions;
use crate::fail::Failure;
use crate::image::refuse_url;
use crate::output::{print, say};
use crate::signals::{end_on_orders, end_on_signals, reload_on_hangup};
use crate::text::refuse_pipe;
use crate::unnamed::Watched;
use config::{Config, Known};
use kvssd_device::{Drive, Partitions};
use kvssd_flash::{OpenOptions, Profile};
use kvssd_host::Error as StoreError;
use kvssd_nvme_target::{Rights, ServeError, Server, Subsystem, SubsystemOptions, serve_metrics};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often it is seen whether the file of rights is to be read anew.
const RELOAD_LOOK: Duration = Duration::from_millis(100);

/// Serves an image until it is told to stop.
pub fn run(options: &ServeOptions) -> Outcome {
    let ServeOptions { image, listen, nqn, data_digest, metrics, log, .. } = options;
    refuse_url(image, "served")?;
    log::log_to_stderr(log)?;
    check_metrics(options)?;
    let is_wanted = Arc::new(AtomicBool::new(false));
    if options.config.is_some() {
        // Also while the image is opened, before the file is read.
        reload_on_hangup(&is_wanted);
    }
    let mut drives = open(options)?;
    let watched = Watched::open(image)?;
    let mut subsystem_options = SubsystemOptions::new(nqn);
    let reload = Reload::new(options, &Partitions::new(&mut drives))?;
    subsystem_options.rights =
        reload.as_ref().map_or_else(|| rights_of(options), |reload| reload.config.rights.clone());
    check_proved(options, &subsystem_options.rights)?;
    let is_encrypted = subsystem_options.rights.are_encrypted();
    if let Some(max) = reload.as_ref().and_then(|reload| reload.config.connections_max) {
        subsystem_options.limits.connections_max = max;
    }
    subsystem_options.data_digest = *data_digest;
    subsystem_options.is_timed = options.timed.is_some();
    let subsystem = Arc::new(Subsystem::over(drives, subsystem_options));
    let stop = Arc::new(AtomicBool::new(false));
    match reload {
        Some(_) => end_on_orders(&stop),
        None => end_on_signals(&stop),
    }
    let server = Server::bind(Arc::clone(&subsystem), *listen)?;
    if !listen.ip().is_loopback() && !is_encrypted {
        warn_of_others(options);
    }
    let watcher = match metrics {
        Some(address) => Some(serve_metrics(Arc::clone(&subsystem), *address, Arc::clone(&stop))?),
        None => None,
    };
    let metrics_note =
        watcher.as_ref().map_or_else(String::new, |(address, _)| format!(", metrics on http://{address}/metrics"));
    let line = format!("serving {} on {} as {nqn}{metrics_note}\n", image.display(), server.address());
    let served = thread::scope(|scope| {
        let serve = || -> Outcome {
            if let Some(reload) = &reload {
                start(thread::Builder::new().spawn_scoped(scope, || reload.attend(&subsystem, &is_wanted, &stop)))?;
            }
            start(thread::Builder::new().spawn_scoped(scope, || watched.attend(&stop)))?;
            print(&line)?;
            server.serve(&stop);
            Ok(())
        };
        let served = serve();
        // The threads of this scope end by it.
        stop.store(true, Ordering::Relaxed);
        served
    });
    if let Some((_, thread)) = watcher {
        // One that panicked has said so.
        let _ = thread.join();
    }
    let failure = subsystem.failure();
    let closed = subsystem.close();
    served?;
    match (failure, closed) {
        (Some(why), _) => Err(failed(image, why)),
        (None, Err(error)) => Err(failed(image, error.to_string())),
        (None, Ok(())) => watched.check(),
    }
}

/// Says what other machines may do to a drive that is served to them without encryption.
fn warn_of_others(options: &ServeOptions) {
    let ServeOptions { listen, allow_hosts, config, insecure, .. } = options;
    let is_open = allow_hosts.is_empty() && config.is_none();
    let who = match insecure {
        false => "",
        true if is_open => ", and anybody who reaches it can change the drive",
        true => ", and anybody who knows an allowed name is taken for that host",
    };
    say(&format!("warning: {listen} is open to other machines, without encryption{who}"));
}

/// A thread, if the machine has one more.
fn start<T>(started: io::Result<T>) -> Outcome {
    started.map(drop).map_err(|why| ServeError::Thread { why: why.to_string() }.into())
}

/// Refuses to tell other machines what is on the drive: who asks for metrics proves nothing, whatever hosts prove.
fn check_metrics(options: &ServeOptions) -> Outcome {
    match options.metrics.filter(|address| !address.ip().is_loopback() && !options.insecure) {
        Some(address) => Err(Failure::OpenMetrics(address)),
        None => Ok(()),
    }
}

/// Refuses to listen wider than this machine where a host is whoever it says it is.
fn check_proved(options: &ServeOptions, rights: &Rights) -> Outcome {
    if options.listen.ip().is_loopback() || options.insecure || rights.are_proved() {
        return Ok(());
    }
    Err(Failure::Unproved(options.listen))
}

/// The rights without a file.
fn rights_of(options: &ServeOptions) -> Rights {
    match &options.allow_hosts[..] {
        [] => Rights::everybody(),
        hosts => Rights::only(hosts.iter().cloned()),
    }
}

/// The file of rights, which is read anew on SIGHUP.
struct Reload<'a> {
    options: &'a ServeOptions,
    path: &'a Path,
    config: Config,
}

impl<'a> Reload<'a> {
    /// Reads the file, if one is wanted.
    fn new(options: &'a ServeOptions, drive: &Partitions<'_>) -> Result<Option<Self>, Failure> {
        let Some(path) = &options.config else { return Ok(None) };
        let known: Vec<Known> = drive.namespaces().into_iter().map(|info| (info.id.0, info.attributes.name)).collect();
        let config = Config::load(path, &known)?;
        Ok(Some(Reload { options, path, config }))
    }

    /// Reads it again whenever that is wanted. A file that is wrong changes nothing.
    fn attend(&self, subsystem: &Subsystem, is_wanted: &AtomicBool, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(RELOAD_LOOK);
            if is_wanted.swap(false, Ordering::Relaxed) {
                match self.read_for(subsystem) {
                    Ok(()) => {
                        say(&format!("{}: the rights are as it says now", self.path.display()));
                    }
                    Err(failure) => say(&format!("{failure}: all rights stay as they were")),
                }
            }
        }
    }

    /// Reads it, for the namespaces that there are now.
    fn read_for(&self, subsystem: &Subsystem) -> Outcome {
        let wrong = |why: &str| Failure::Input { path: self.path.to_owned(), why: why.to_owned() };
        let known = subsystem.namespace_names().ok_or_else(|| wrong("the drive has failed"))?;
        let config = self.read(&known)?;
        if subsystem.set_rights_of(&known, config.rights) {
            return Ok(());
        }
        Err(wrong("namespaces came or went meanwhile; send SIGHUP again"))
    }

    fn read(&self, known: &[Known]) -> Result<Config, Failure> {
        let config = Config::load(self.path, known)?;
        if config.connections_max != self.config.connections_max {
            let why = "connections_max cannot change while the drive is served: end the service, and start it again";
            return Err(Failure::Input { path: self.path.to_owned(), why: why.to_owned() });
        }
        check_proved(self.options, &config.rights)?;
        Ok(config)
    }
}

/// The partitions of the drive; one, with the times of another testbed, where that is asked for.
fn open(options: &ServeOptions) -> Result<Vec<Drive>, Failure> {
    let ServeOptions { image, sync, cache, timed, .. } = options;
    let open = OpenOptions { sync: *sync, read_only: false, cache_bytes: *cache };
    match timed {
        Some(name) => {
            let path = Path::new(name);
            if path.exists() {
                refuse_pipe(path).map_err(Failure::of_input(path))?;
            }
            let drive = Drive::open_timed(image, open, &Profile::load(name, &[])?).map_err(Failure::of_store(image))?;
            Ok(vec![drive])
        }
        None => kvssd_host::open_partitions(image, open).map_err(Failure::of_store(image)),
    }
}

fn failed(image: &Path, why: String) -> Failure {
    Failure::Store { path: image.to_owned(), error: StoreError::Io { why } }
}
