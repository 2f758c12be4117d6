//! A host's end of TLS, in a program of its own as it were: what comes to it in the clear goes on encrypted.

use kvssd_nvme_auth::{Hash, PresharedKey};
use kvssd_tls::{Key, KeyHash, Session, TlsError};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// An address at which bytes are taken that go through TLS to another. It lasts as long as the test.
pub struct Tunnel {
    pub address: SocketAddr,
}

impl Tunnel {
    pub fn new(to: SocketAddr, keys: Vec<PresharedKey>) -> Tunnel {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for clear in listener.incoming() {
                let clear = clear.unwrap();
                if let Ok((session, secure)) = shake(to, &keys) {
                    carry(clear, session, secure);
                }
            }
        });
        Tunnel { address }
    }
}

/// A client's side with those keys.
pub fn client(keys: &[PresharedKey]) -> Session {
    let offered: Vec<Key<'_>> = keys
        .iter()
        .map(|key| Key {
            identity: key.identity.as_bytes(),
            secret: &key.secret,
            hash: if key.hash == Hash::Sha256 { KeyHash::Sha256 } else { KeyHash::Sha384 },
        })
        .collect();
    Session::client(&offered).unwrap()
}

pub fn output(session: &mut Session) -> Vec<u8> {
    let mut bytes = Vec::new();
    session.take_output(&mut bytes);
    bytes
}

/// A session with the target, or why there is none: nothing where it just ended the connection.
pub fn shake(to: SocketAddr, keys: &[PresharedKey]) -> Result<(Session, TcpStream), Option<TlsError>> {
    let (mut session, mut socket) = (client(keys), TcpStream::connect(to).unwrap());
    socket.set_nodelay(true).unwrap();
    let mut buffer = [0; 4096];
    loop {
        let state = session.handshake();
        socket.write_all(&output(&mut session)).map_err(|_| None)?;
        if state.map_err(Some)? {
            return Ok((session, socket));
        }
        match socket.read(&mut buffer) {
            Ok(0) | Err(_) => return Err(None),
            Ok(count) => session.receive(&buffer[..count]),
        }
    }
}

/// Carries bytes in both directions until either side ends.
fn carry(clear: TcpStream, session: Session, secure: TcpStream) {
    clear.set_nodelay(true).unwrap();
    let session = Arc::new(Mutex::new(session));
    let (mut from, mut to) = (clear.try_clone().unwrap(), secure.try_clone().unwrap());
    let of_sender = Arc::clone(&session);
    thread::spawn(move || {
        let mut buffer = vec![0; 100_000];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let mut session = of_sender.lock().unwrap();
            if session.write(&buffer[..count]).is_err() {
                break;
            }
            let bytes = output(&mut session);
            drop(session);
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut from, mut to) = (secure, clear);
    thread::spawn(move || {
        let (mut buffer, mut heard) = (vec![0; 100_000], vec![0; 100_000]);
        'connection: while let Ok(count @ 1..) = from.read(&mut buffer) {
            session.lock().unwrap().receive(&buffer[..count]);
            loop {
                let read = session.lock().unwrap().read(&mut heard);
                match read {
                    Ok(None) => break,
                    Ok(Some(count @ 1..)) if to.write_all(&heard[..count]).is_ok() => {}
                    _ => break 'connection,
                }
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
