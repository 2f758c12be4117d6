//! The metrics over HTTP: one thread, and a few askers at a time.
//!
//! ```text
//!   GET /metrics  ->  asker: request, to its empty line -> the page -> closed
//!                     16 at a time; one more takes the place of the one that has been there for longest; 5 s for each
//! ```
//!
//! Who asks for metrics is done in a moment, so that one who is there for long wants something else.
//!
//! What it does not do: keep a connection for another request, or read what comes with one.

use crate::metrics::metrics_page;
use crate::server::{STOP_LOOK, ServeError, timespec};
use crate::subsystem::Subsystem;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Connections at a time.
const ASKERS_MAX: usize = 16;
/// Bytes of a request.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// How long a connection lives.
const PATIENCE: Duration = Duration::from_secs(5);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Gives the metrics of `subsystem` to whoever asks over HTTP on `address`, until `stop` is set. Gives the address with its port.
///
/// # Errors
/// When the address cannot be listened on.
pub fn serve_metrics(
    subsystem: Arc<Subsystem>,
    address: SocketAddr,
    stop: Arc<AtomicBool>,
) -> Result<(SocketAddr, JoinHandle<()>), ServeError> {
    let fail = |why: io::Error| ServeError::Listen { address, why: why.to_string() };
    let listener = TcpListener::bind(address).map_err(fail)?;
    listener.set_nonblocking(true).map_err(fail)?;
    let bound = listener.local_addr().map_err(fail)?;
    let body = move || {
        let mut askers: Vec<Asker> = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            wait(&listener, &askers);
            askers.retain_mut(|asker| asker.go_on(&subsystem).unwrap_or(false));
            welcome(&listener, &mut askers);
        }
    };
    let spawned = thread::Builder::new().name("metrics".to_owned()).spawn(body);
    Ok((bound, spawned.map_err(fail)?))
}

/// Waits until somebody comes, says or takes something, or it is time to look.
fn wait(listener: &TcpListener, askers: &[Asker]) {
    let mut waited = vec![PollFd::new(listener, PollFlags::IN)];
    waited.extend(
        askers.iter().map(|asker| {
            PollFd::new(&asker.stream, if asker.answer.is_empty() { PollFlags::IN } else { PollFlags::OUT })
        }),
    );
    // An interrupted wait is as good as one that is over.
    let _ = poll(&mut waited, Some(&timespec(STOP_LOOK)));
}

/// Takes in who has come, a few at a time: the others wait in the system's queue.
fn welcome(listener: &TcpListener, askers: &mut Vec<Asker>) {
    for _ in 0..ASKERS_MAX {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            Err(error) => {
                // As a rule there are too many open files: others may end.
                tracing::error!(%error, "one who asks for metrics cannot be accepted");
                return thread::sleep(STOP_LOOK);
            }
        };
        if askers.len() >= ASKERS_MAX {
            askers.remove(0);
        }
        if stream.set_nonblocking(true).is_ok() {
            askers.push(Asker {
                stream,
                came: Instant::now(),
                request: Vec::new(),
                answer: Vec::new(),
                is_told: false,
            });
        }
    }
}

/// A connection.
struct Asker {
    stream: TcpStream,
    came: Instant,
    request: Vec<u8>,
    /// What is to be sent still.
    answer: Vec<u8>,
    is_told: bool,
}

impl Asker {
    /// Reads and writes what can be now; gives whether more is to come.
    fn go_on(&mut self, subsystem: &Subsystem) -> io::Result<bool> {
        if self.came.elapsed() > PATIENCE {
            return Ok(false);
        }
        if self.answer.is_empty() && !self.listen()? {
            return Ok(false);
        }
        if self.answer.is_empty() && !self.is_told && self.has_asked() {
            self.answer = answer_to(&self.request, || metrics_page(subsystem));
            self.is_told = true;
        }
        while !self.answer.is_empty() {
            match self.stream.write(&self.answer) {
                Ok(count) => drop(self.answer.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.answer.is_empty() {
                // The peer reads to the end, and closes.
                self.stream.shutdown(Shutdown::Write)?;
            }
        }
        Ok(true)
    }

    /// Reads what there is; gives whether there may be more.
    fn listen(&mut self) -> io::Result<bool> {
        let mut piece = [0; 1024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(false),
                Ok(count) if self.is_told || self.request.len() + count > REQUEST_BYTES_MAX => {
                    return Ok(self.is_told && count < piece.len());
                }
                Ok(count) => self.request.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn has_asked(&self) -> bool {
        self.request.windows(4).any(|bytes| bytes == b"\r\n\r\n")
            || self.request.windows(2).any(|bytes| bytes == b"\n\n")
    }
}

/// The answer to a request.
fn answer_to(request: &[u8], page: impl FnOnce() -> String) -> Vec<u8> {
    let line = request.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
    let method = line.split(|byte| *byte == b' ').next().unwrap_or_default();
    let (status, kind, body) = match method {
        _ if !line.windows(7).any(|bytes| bytes == b" HTTP/1") => ("400 Bad Request", "text/plain", String::new()),
        b"GET" | b"HEAD" => ("200 OK", OPEN_METRICS, page()),
        _ => ("405 Method Not Allowed\r\nAllow: GET, HEAD", "text/plain", String::new()),
    };
    let bytes = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n");
    let mut answer = head.into_bytes();
    if method != b"HEAD" {
        answer.extend_from_slice(body.as_bytes());
    }
    answer
}
