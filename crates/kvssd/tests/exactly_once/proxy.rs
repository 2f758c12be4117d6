//! What lies between hosts and a service: it cuts connections in the ways that hurt.
//!
//! ```text
//!   host --- Link --- service       Cut::Both       both sides end at once
//!                                   Cut::Answers    what the host sends goes through, and no answer comes back, then both end
//!                                   Cut::Late       what the host sends is kept; its side ends; later it goes to the service, behind whatever
//!                                                   the host has sent again on another connection
//! ```

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::Duration;

/// Between two looks of a thread at what is to be done.
const LOOK: Duration = Duration::from_millis(5);

/// The type of the PDU that ends a command.
const CAPSULE_RESPONSE: u8 = 5;

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Both,
    Answers,
    Late,
}

impl Cut {
    pub const ALL: [Cut; 3] = [Cut::Both, Cut::Answers, Cut::Late];
}

/// A connection through the proxy.
struct Link {
    host: TcpStream,
    service: TcpStream,
    keeps_requests: AtomicBool,
    drops_answers: AtomicBool,
    /// Answers get lost, and what the service asks for on the way to them does not.
    drops_responses: AtomicBool,
    is_over: AtomicBool,
}

/// A proxy, until it is dropped.
pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    /// Where the service is now.
    service: Mutex<Option<SocketAddr>>,
    /// Nobody is let through.
    is_closed: AtomicBool,
    links: Mutex<Vec<Arc<Link>>>,
    is_ended: AtomicBool,
}

impl Proxy {
    pub fn new() -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            service: Mutex::default(),
            is_closed: AtomicBool::new(false),
            links: Mutex::default(),
            is_ended: AtomicBool::new(false),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for host in listener.incoming() {
                if serving.is_ended.load(Ordering::SeqCst) {
                    return;
                }
                let service = *serving.service.lock().unwrap();
                let is_open = !serving.is_closed.load(Ordering::SeqCst);
                if let (Ok(host), Some(Ok(service))) = (host, service.filter(|_| is_open).map(TcpStream::connect)) {
                    serving.join(host, service);
                }
            }
        });
        Proxy { address, shared }
    }

    /// Leads to the service there from now on, or nowhere.
    pub fn lead_to(&self, service: Option<SocketAddr>) {
        *self.shared.service.lock().unwrap() = service;
    }

    /// From now on no command is answered, and nobody new gets through. Nothing may be on its way.
    pub fn hush(&self) {
        self.shared.is_closed.store(true, Ordering::SeqCst);
        let links = self.shared.links.lock().unwrap();
        links.iter().for_each(|link| link.drops_responses.store(true, Ordering::SeqCst));
    }

    /// What was hushed ends, and hosts get through again.
    pub fn release(&self) {
        self.shared.is_closed.store(false, Ordering::SeqCst);
        let links = self.shared.links.lock().unwrap();
        links.iter().filter(|link| link.drops_responses.load(Ordering::SeqCst)).for_each(|link| link.end());
    }

    /// Connections that there are.
    pub fn links(&self) -> usize {
        let mut links = self.shared.links.lock().unwrap();
        links.retain(|link| !link.is_over.load(Ordering::SeqCst));
        links.len()
    }

    /// Cuts one of the connections; gives whether there was one.
    pub fn cut(&self, which: usize, how: Cut) -> bool {
        let count = self.links();
        let link = (count > 0).then(|| self.shared.links.lock().unwrap().get(which % count).cloned()).flatten();
        let Some(link) = link else { return false };
        match how {
            Cut::Both => {}
            Cut::Answers => {
                link.drops_answers.store(true, Ordering::SeqCst);
                sleep(LOOK);
            }
            Cut::Late => {
                link.drops_answers.store(true, Ordering::SeqCst);
                link.keeps_requests.store(true, Ordering::SeqCst);
                sleep(LOOK);
                // The other threads go on with what was kept.
                let _ = link.host.shutdown(Shutdown::Both);
                return true;
            }
        }
        link.end();
        true
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        self.shared.links.lock().unwrap().iter().for_each(|link| link.end());
    }
}

impl Shared {
    fn join(&self, host: TcpStream, service: TcpStream) {
        for socket in [&host, &service] {
            socket.set_nodelay(true).unwrap();
        }
        host.set_read_timeout(Some(LOOK)).unwrap();
        let flag = || AtomicBool::new(false);
        let (keeps_requests, drops_answers, drops_responses, is_over) = (flag(), flag(), flag(), flag());
        let link = Arc::new(Link { host, service, keeps_requests, drops_answers, drops_responses, is_over });
        self.links.lock().unwrap().push(Arc::clone(&link));
        let back = Arc::clone(&link);
        thread::spawn(move || link.carry_requests());
        thread::spawn(move || back.carry_answers());
    }
}

impl Link {
    fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = self.host.shutdown(Shutdown::Both);
        let _ = self.service.shutdown(Shutdown::Both);
    }

    fn carry_requests(&self) {
        let (mut bytes, mut kept) = (vec![0; 64 << 10], Vec::new());
        loop {
            match (&self.host).read(&mut bytes) {
                Ok(0) => break,
                Ok(count) if self.keeps_requests.load(Ordering::SeqCst) => kept.extend_from_slice(&bytes[..count]),
                Ok(count) => {
                    if (&self.service).write_all(&bytes[..count]).is_err() {
                        break;
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => break,
            }
        }
        if !kept.is_empty() {
            // Time for the host to connect again, to send the same again, and for others to go on.
            sleep(6 * LOOK);
            let _ = (&self.service).write_all(&kept);
            sleep(2 * LOOK);
        }
        self.end();
    }

    fn carry_answers(&self) {
        let (mut bytes, mut pdus) = (vec![0; 64 << 10], Vec::new());
        loop {
            match (&self.service).read(&mut bytes) {
                Ok(0) | Err(_) => break,
                Ok(_) if self.drops_answers.load(Ordering::SeqCst) => {}
                Ok(count) if self.drops_responses.load(Ordering::SeqCst) => {
                    pdus.extend_from_slice(&bytes[..count]);
                    let passed = without_responses(&mut pdus);
                    if (&self.host).write_all(&passed).is_err() {
                        break;
                    }
                }
                Ok(count) => {
                    if (&self.host).write_all(&bytes[..count]).is_err() {
                        break;
                    }
                }
            }
        }
        if !self.keeps_requests.load(Ordering::SeqCst) {
            self.end();
        }
    }
}

/// The whole PDUs that the bytes begin with, except for responses.
fn without_responses(bytes: &mut Vec<u8>) -> Vec<u8> {
    let mut passed = Vec::new();
    while let Some(length) = bytes.get(4..8) {
        let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
        if bytes.len() < length {
            break;
        }
        let pdu: Vec<u8> = bytes.drain(..length).collect();
        if pdu[0] != CAPSULE_RESPONSE {
            passed.extend(pdu);
        }
    }
    passed
}
