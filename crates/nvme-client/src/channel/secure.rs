//! TLS 1.3 over a socket.

use crate::Error;
use crate::connection_lost::ConnectionLost;
use crate::failure::Failure;
use crate::time_left::{Deadline, is_timeout};
use kvssd_nvme_auth::{Hash, PresharedKey};
use kvssd_runtime::net::TcpStream;
use kvssd_runtime::sync::{Mutex, MutexGuard, PoisonError};
use kvssd_tls::{Key, KeyHash, Session, TlsError};
use std::io::{self, Read, Write};

/// The most bytes that are read, or encrypted, at once.
const PART_BYTES: usize = 256 << 10;

/// A session, and what is on its way to and from it.
pub(super) struct Secure {
    session: Mutex<Session>,
    /// Where records are read to; of the thread that reads.
    incoming: Mutex<Vec<u8>>,
    /// Records that are not sent yet; of the thread that writes.
    unsent: Mutex<Unsent>,
}

#[derive(Default)]
struct Unsent {
    bytes: Vec<u8>,
    sent: usize,
}

impl Unsent {
    /// Sends all of it, or fails.
    fn flush(&mut self, mut socket: &TcpStream) -> io::Result<()> {
        while self.sent < self.bytes.len() {
            self.sent += socket.write(&self.bytes[self.sent..])?;
        }
        self.bytes.clear();
        self.sent = 0;
        Ok(())
    }
}

impl Secure {
    /// Does the handshake, by the deadline.
    pub(super) fn open(socket: &TcpStream, keys: &[PresharedKey], deadline: &Deadline) -> Result<Secure, Failure> {
        let key = |key: &'_ PresharedKey| -> (Vec<u8>, KeyHash) {
            let hash = if key.hash == Hash::Sha256 { KeyHash::Sha256 } else { KeyHash::Sha384 };
            (key.identity.clone().into_bytes(), hash)
        };
        let names: Vec<_> = keys.iter().map(key).collect();
        let offered = names.iter().zip(keys);
        let offered: Vec<Key<'_>> =
            offered.map(|((identity, hash), key)| Key { identity, secret: &key.secret, hash: *hash }).collect();
        if offered.is_empty() {
            return Err(Error::Refused("the names of host and subsystem are too long for TLS".to_owned()).into());
        }
        let mut session = Session::client(&offered).map_err(|why| failed(&why))?;
        let (mut incoming, mut unsent) = (vec![0; PART_BYTES], Unsent::default());
        loop {
            let state = session.handshake();
            session.take_output(&mut unsent.bytes);
            while let Err(error) = unsent.flush(socket) {
                if !is_timeout(&error) || deadline.is_over() {
                    return Err(ConnectionLost::from(error).into());
                }
            }
            if state.map_err(|why| failed(&why))? {
                break;
            }
            socket.set_read_timeout(Some(deadline.wait_max())).map_err(ConnectionLost::from)?;
            match (&mut &*socket).read(&mut incoming) {
                Ok(0) => return Err(ConnectionLost::turned_away("within the TLS handshake").into()),
                Ok(count) => session.receive(&incoming[..count]),
                Err(error) if !is_timeout(&error) => return Err(ConnectionLost::from(error).into()),
                Err(_) if deadline.is_over() => {
                    return Err(ConnectionLost::new("it does not answer within the TLS handshake").into());
                }
                Err(_) => deadline.ask(),
            }
        }
        Ok(Secure { session: Mutex::new(session), incoming: Mutex::new(incoming), unsent: Mutex::new(unsent) })
    }

    /// Reads what the peer has said. `fill` reads the socket, waiting or not.
    pub(super) fn read(
        &self,
        buffer: &mut [u8],
        mut fill: impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut incoming = lock(&self.incoming);
        loop {
            if let Some(count) = lock(&self.session).read(buffer).map_err(io::Error::other)? {
                return Ok(count);
            }
            match fill(&mut incoming)? {
                0 => return Ok(0),
                count => lock(&self.session).receive(&incoming[..count]),
            }
        }
    }

    /// Encrypts from the front of `bytes` and sends it. Returns whether all is sent.
    pub(super) fn write(&self, socket: &TcpStream, bytes: &mut &[u8]) -> io::Result<bool> {
        let mut unsent = lock(&self.unsent);
        unsent.flush(socket)?;
        if !bytes.is_empty() {
            let (part, rest) = bytes.split_at(bytes.len().min(PART_BYTES));
            let mut session = lock(&self.session);
            session.write(part).map_err(io::Error::other)?;
            session.take_output(&mut unsent.bytes);
            drop(session);
            // It is taken: what the socket has no room for goes out first the next time.
            *bytes = rest;
            unsent.flush(socket)?;
        }
        Ok(bytes.is_empty())
    }
}

/// What a failed handshake means to who wants to connect.
fn failed(why: &TlsError) -> Failure {
    match why {
        TlsError::Closed => ConnectionLost::turned_away("within the TLS handshake").into(),
        TlsError::Alert(_) => {
            Error::Refused(format!("the drive and this host have no key for TLS in common, or other names: {why}"))
                .into()
        }
        TlsError::Protocol(_) | TlsError::Library(_) => {
            Error::Refused(format!("there is no TLS 1.3 with the drive: {why}")).into()
        }
    }
}

/// A panic leaves them whole, so poison is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
