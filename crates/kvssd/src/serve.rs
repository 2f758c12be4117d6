//! `kvssd serve`: hosts reach an image over NVMe/TCP.

use crate::Outcome;
use crate::arguments::serve::ServeOptions;
use crate::fail::Failure;
use crate::output::{print, say};
use kvssd_device::Drive;
use kvssd_flash::{OpenOptions, Profile};
use kvssd_host::Error as StoreError;
use kvssd_nvme_target::{Server, Subsystem, SubsystemOptions, serve_metrics};
use std::io::stderr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Serves an image until it is told to stop.
pub fn run(options: &ServeOptions) -> Outcome {
    let ServeOptions { image, listen, nqn, allow_hosts, data_digest, metrics, log, .. } = options;
    log_to_stderr(log)?;
    let drive = open(options)?;
    let mut subsystem_options = SubsystemOptions::new(nqn);
    subsystem_options.allowed_hosts.clone_from(allow_hosts);
    subsystem_options.data_digest = *data_digest;
    subsystem_options.is_timed = options.timed.is_some();
    let subsystem = Arc::new(Subsystem::new(drive, subsystem_options));
    let stop = Arc::new(AtomicBool::new(false));
    let on_signal = Arc::clone(&stop);
    // Without a handler the service ends as kill -9 ends it, which is safe as well.
    let _ = ctrlc::set_handler(move || on_signal.store(true, Ordering::Relaxed));
    let server = Server::bind(Arc::clone(&subsystem), *listen)?;
    if !listen.ip().is_loopback() {
        let who = if allow_hosts.is_empty() { "anybody who reaches it" } else { "anybody who knows an allowed name" };
        say(&format!(
            "warning: {listen} is open to other machines, without encryption, and {who} can change the drive"
        ));
    }
    let watcher = match metrics {
        Some(address) => Some(serve_metrics(Arc::clone(&subsystem), *address, Arc::clone(&stop))?),
        None => None,
    };
    let metrics_note =
        watcher.as_ref().map_or_else(String::new, |(address, _)| format!(", metrics on http://{address}/metrics"));
    print(&format!("serving {} on {} as {nqn}{metrics_note}\n", image.display(), server.address()))?;
    server.serve(&stop);
    if let Some((_, thread)) = watcher {
        // One that panicked has said so.
        let _ = thread.join();
    }
    let failure = subsystem.failure();
    let closed = subsystem.close();
    match (failure, closed) {
        (Some(why), _) => Err(failed(image, why)),
        (None, Err(error)) => Err(failed(image, error.to_string())),
        (None, Ok(())) => Ok(()),
    }
}

/// The drive, with the times of another testbed where that is asked for.
fn open(options: &ServeOptions) -> Result<Drive, Failure> {
    let open = OpenOptions { sync: options.sync, read_only: false, cache_bytes: options.cache };
    let drive = match &options.timed {
        Some(name) => Drive::open_timed(&options.image, open, &Profile::load(name, &[])?),
        None => Drive::open(&options.image, open),
    };
    drive.map_err(Failure::of_drive(&options.image))
}

fn failed(image: &Path, why: String) -> Failure {
    Failure::Store { path: image.to_owned(), error: StoreError::Io { why } }
}

fn log_to_stderr(filter: &str) -> Outcome {
    let targets: Targets = filter
        .parse()
        .map_err(|error: ParseError| Failure::LogFilter { filter: filter.to_owned(), why: error.to_string() })?;
    let lines = tracing_subscriber::fmt::layer().with_writer(stderr).with_ansi(false);
    tracing_subscriber::registry().with(lines).with(targets).init();
    Ok(())
}
