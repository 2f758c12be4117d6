//! Serves the metrics over HTTP: one thread, and a few connections at a time.
//!
//! ```text
//!   GET /metrics  ->  Scrape: the head of a request -> the page -> closed
//!                     16 at a time; one more replaces the oldest; 5 s for each
//! ```
//!
//! A scrape is done in a moment: a connection that stays wants something else. `httparse` reads requests.
//!
//! What it does not do: keep a connection for another request, or read a request's body.

use crate::metrics_page::metrics_page;
use crate::server::{STOP_LOOK, ServeError, timespec};
use crate::subsystem::Subsystem;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The most connections at a time.
const SCRAPES_MAX: usize = 16;
/// The longest head of a request.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// The most header fields of a request.
const FIELDS_MAX: usize = 100;
/// How long a connection may take.
const TIMEOUT: Duration = Duration::from_secs(5);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves the metrics of `subsystem` over HTTP on `address`, until `stop` is set. Returns the address with its port.
///
/// # Errors
/// When the address cannot be listened on, or there is no thread for it.
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
        let mut scrapes: Vec<Scrape> = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let has_come = wait(&listener, &scrapes);
            scrapes.retain_mut(|scrape| scrape.advance(&subsystem).unwrap_or(false));
            if has_come {
                accept(&listener, &mut scrapes);
            }
        }
    };
    let spawned = thread::Builder::new().name("metrics".to_owned()).spawn(body);
    Ok((bound, spawned.map_err(|why| ServeError::Thread { why: why.to_string() })?))
}

/// Waits for connections, requests, room to write, or [`STOP_LOOK`]. Returns whether there is a connection to accept: without open files left
/// to try it would fail though nobody asks.
fn wait(listener: &TcpListener, scrapes: &[Scrape]) -> bool {
    let mut polled = vec![PollFd::new(listener, PollFlags::IN)];
    polled.extend(scrapes.iter().map(|scrape| {
        let wanted = if scrape.response.is_empty() { PollFlags::IN } else { PollFlags::OUT };
        PollFd::new(&scrape.stream, wanted)
    }));
    // An interrupted wait counts as one that is over.
    let _ = poll(&mut polled, Some(&timespec(STOP_LOOK)));
    !polled[0].revents().is_empty()
}

/// Accepts a few connections; the others wait in the system's queue.
fn accept(listener: &TcpListener, scrapes: &mut Vec<Scrape>) {
    for _ in 0..SCRAPES_MAX {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            Err(error) => {
                // As a rule there are too many open files: others may end.
                tracing::error!(%error, "one who asks for metrics cannot be accepted");
                return thread::sleep(STOP_LOOK);
            }
        };
        if scrapes.len() >= SCRAPES_MAX {
            scrapes.remove(0);
        }
        if stream.set_nonblocking(true).is_ok() {
            let (request, response) = (Vec::new(), Vec::new());
            scrapes.push(Scrape { stream, accepted: Instant::now(), request, response, has_responded: false });
        }
    }
}

/// One request, and its connection.
struct Scrape {
    stream: TcpStream,
    accepted: Instant,
    request: Vec<u8>,
    /// Bytes that are not sent yet.
    response: Vec<u8>,
    has_responded: bool,
}

impl Scrape {
    /// Reads and writes without waiting. Returns whether the connection goes on.
    fn advance(&mut self, subsystem: &Subsystem) -> io::Result<bool> {
        if self.accepted.elapsed() > TIMEOUT {
            return Ok(false);
        }
        if self.response.is_empty() && !self.read_request()? {
            return Ok(false);
        }
        if self.response.is_empty()
            && !self.has_responded
            && let Some(response) = response(&self.request, || metrics_page(subsystem))
        {
            self.response = response;
            self.has_responded = true;
        }
        while !self.response.is_empty() {
            match self.stream.write(&self.response) {
                Ok(count) => drop(self.response.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.response.is_empty() {
                // The peer reads to the end, and closes.
                self.stream.shutdown(Shutdown::Write)?;
            }
        }
        Ok(true)
    }

    /// Reads what there is. Returns whether more may come.
    fn read_request(&mut self) -> io::Result<bool> {
        let mut piece = [0; 1024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(false),
                Ok(count) if self.has_responded || self.request.len() + count > REQUEST_BYTES_MAX => {
                    return Ok(self.has_responded && count < piece.len());
                }
                Ok(count) => self.request.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The response to a request; `None` while its head is not complete.
fn response(request: &[u8], page: impl FnOnce() -> String) -> Option<Vec<u8>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    let is_valid = match parsed.parse(request) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => true,
        Err(_) => false,
    };
    let method = parsed.method.filter(|_| is_valid);
    let (status, kind, body) = match method {
        None => ("400 Bad Request", "text/plain", String::new()),
        Some("GET" | "HEAD") => ("200 OK", OPEN_METRICS, page()),
        Some(_) => ("405 Method Not Allowed\r\nAllow: GET, HEAD", "text/plain", String::new()),
    };
    let bytes = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n");
    let mut response = head.into_bytes();
    if method != Some("HEAD") {
        response.extend_from_slice(body.as_bytes());
    }
    Some(response)
}
