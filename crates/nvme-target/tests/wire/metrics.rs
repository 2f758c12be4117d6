//! The metrics over HTTP, asked for as they should be and as they should not.

use crate::host::{Host, PATIENCE, Target};
use kvssd_nvme_target::serve_metrics;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const HALF: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: half";

struct Metrics {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Metrics {
    fn of(target: &Target) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let served = serve_metrics(Arc::clone(&target.subsystem), "127.0.0.1:0".parse().unwrap(), Arc::clone(&stop));
        let (address, thread) = served.unwrap();
        Metrics { address, stop, thread: Some(thread) }
    }

    fn say(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    }

    fn ask(&self, request: &str) -> String {
        let mut response = String::new();
        self.say(request.as_bytes()).read_to_string(&mut response).unwrap();
        response
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

#[test]
fn half_sent_requests_take_no_threads_and_lock_nobody_out() {
    let target = Target::new();
    let metrics = Metrics::of(&target);
    let before = threads();
    // Who waited for one of them to be sent away would wait for 5 s each time; a busy machine may be slow once.
    let is_quick = (0..3).any(|_| {
        let half: Vec<TcpStream> = (0..400).map(|_| metrics.say(HALF)).collect();
        let begin = Instant::now();
        let page = metrics.ask("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("# EOF\n"), "{page}");
        let took = begin.elapsed();
        // Other tests run beside this one.
        assert!(threads() < before + 200, "{} threads, {before} before", threads());
        drop(half);
        took < Duration::from_secs(4)
    });
    assert!(is_quick, "it waits for those that say nothing more");
}

#[test]
fn a_request_is_answered_with_what_it_asks_for() {
    let target = Target::new();
    let metrics = Metrics::of(&target);
    let head = metrics.ask("HEAD / HTTP/1.0\r\n\r\n");
    assert!(head.contains("Content-Length: ") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(metrics.ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(metrics.ask("hello\r\n\r\n").starts_with("HTTP/1.1 400 "));
    // Byte by byte, and in one go with what nobody wants.
    let mut slow = metrics.say(b"");
    for byte in b"GET /metrics HTTP/1.1\r\n\r\n" {
        slow.write_all(&[*byte]).unwrap();
    }
    let mut page = String::new();
    slow.read_to_string(&mut page).unwrap();
    assert!(page.contains("kvssd_pairs 0"), "{page}");
    let mut long = metrics.say(&[b'x'; 9000]);
    let mut response = Vec::new();
    // It is closed, with bytes of ours unread.
    let _ = long.read_to_end(&mut response);
    assert!(response.is_empty());
}

#[test]
fn who_says_half_of_it_is_sent_away() {
    let target = Target::new();
    let metrics = Metrics::of(&target);
    let mut half = metrics.say(HALF);
    // In order or not; that nothing comes until the patience ends is no end.
    let ended = half.read(&mut [0; 10]).or_else(|error| match error.kind() {
        ErrorKind::ConnectionReset => Ok(0),
        _ => Err(error),
    });
    assert_eq!(ended.expect("it is sent away"), 0);
}

#[test]
fn a_program_that_is_started_inherits_no_socket() {
    let target = Target::new();
    let (_metrics, _host) = (Metrics::of(&target), Host::new(&target));
    let mut ls = Command::new("ls");
    let listed = ls.args(["-l", "/proc/self/fd"]).stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(!listed.contains("socket:") && !listed.contains("drive.kv"), "{listed}");
}
