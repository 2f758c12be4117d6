//! A way to a service on which a bit of what a host says first is changed.

use std::io::{Read, Write, copy};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Where the bit is: within the random bytes that a ClientHello begins with, which its key must confirm (RFC 8446, 4.1.2).
const AT: usize = 20;

pub struct Damaged {
    pub address: String,
    /// So many connections are damaged that come next.
    next: Arc<AtomicUsize>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Damaged {
    /// The way to a service at `address`, for as long as the test lives.
    pub fn new(address: &str) -> Damaged {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let way = Damaged {
            address: listener.local_addr().unwrap().to_string(),
            next: Arc::default(),
            streams: Arc::default(),
        };
        let (address, next, streams) = (address.to_owned(), way.next.clone(), way.streams.clone());
        thread::spawn(move || {
            for mut host in listener.incoming().map_while(Result::ok) {
                let Ok(mut service) = TcpStream::connect(&address) else { return };
                streams.lock().unwrap().extend([host.try_clone().unwrap(), service.try_clone().unwrap()]);
                let (mut to_host, mut of_service) = (host.try_clone().unwrap(), service.try_clone().unwrap());
                thread::spawn(move || {
                    let _ = copy(&mut of_service, &mut to_host);
                    let _ = to_host.shutdown(Shutdown::Both);
                });
                let is_damaged =
                    next.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
                thread::spawn(move || {
                    let mut first = [0; AT + 1];
                    if host.read_exact(&mut first).is_ok() {
                        first[AT] ^= u8::from(is_damaged);
                        let _ = service.write_all(&first).and_then(|()| copy(&mut host, &mut service));
                    }
                    let _ = service.shutdown(Shutdown::Both);
                });
            }
        });
        way
    }

    /// Cuts all connections, and damages so many of those that come then.
    pub fn cut(&self, damaged: usize) {
        self.next.store(damaged, Ordering::SeqCst);
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
