//! How a connection begins: in the clear or by TLS, as its first byte tells.
//!
//! ```text
//!   00h  ICReq         in the clear: bytes pass as they are
//!   16h  ClientHello   a handshake; then what comes is decrypted, and what goes encrypted
//! ```
//!
//! The key is found by the identity that the peer offers: it names a host and a subsystem, and the rights of that host have
//! the key. Whether a host may come in the clear at all is a question of Connect. A handshake has the time of ICReq and
//! Connect, and the memory of one message (64 KiB) and its records; it runs on the thread of its connection.

use crate::lock::lock;
use crate::secured::Secured;
use crate::subsystem::Subsystem;
use crate::transport::{Interest, Transport};
use kvssd_nvme_auth::{Derivation, Hash, parties_of};
use kvssd_nvme_spec::fabrics::DISCOVERY_NQN;
use kvssd_runtime::sync::{Arc, Mutex};
use kvssd_tls::{Key, KeyHash, Session, TlsError};
use kvssd_types::Nanos;
use std::io::{self, ErrorKind, IoSlice};

/// The type of a record that begins a handshake.
const HANDSHAKE: u8 = 22;
/// The most bytes that are read, or encrypted, at once.
const PART_BYTES: usize = 64 << 10;
/// How much of an identity goes into the log.
const SHOWN_CHARS: usize = 300;

/// A transport in the clear or by TLS.
pub struct Door<T> {
    inner: T,
    subsystem: Arc<Subsystem>,
    way: Way,
    secured: Option<Secured>,
    /// Bytes of records for the peer, of which `sent` are sent.
    unsent: Vec<u8>,
    sent: usize,
}

enum Way {
    Unknown,
    Clear,
    Secure(Box<Secure>),
    /// The handshake failed, or the session has ended.
    Failed,
}

struct Secure {
    session: Session,
    /// What the peer has offered.
    offer: Arc<Mutex<Offer>>,
    is_established: bool,
    /// Whether there may be something to read before the peer sends another byte.
    has_more: bool,
    buffer: Vec<u8>,
}

#[derive(Default)]
struct Offer {
    /// The first identity, for the log.
    first: Option<String>,
    known: Vec<(String, Secured)>,
}

impl<T: Transport> Door<T> {
    /// A transport over a connection that was just accepted.
    pub fn new(inner: T, subsystem: Arc<Subsystem>) -> Door<T> {
        Door { inner, subsystem, way: Way::Unknown, secured: None, unsent: Vec::new(), sent: 0 }
    }

    /// Tells by the first bytes whether the peer uses TLS.
    fn open(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes[0] != HANDSHAKE {
            self.way = Way::Clear;
            return Ok(());
        }
        let offer = Arc::<Mutex<Offer>>::default();
        let (subsystem, offered) = (Arc::clone(&self.subsystem), Arc::clone(&offer));
        let session = Session::server(move |identity, take| find(&subsystem, &offered, identity, take));
        let mut session = session.map_err(io::Error::other)?;
        session.receive(bytes);
        let secure = Secure { session, offer, is_established: false, has_more: true, buffer: vec![0; PART_BYTES] };
        self.way = Way::Secure(Box::new(secure));
        Ok(())
    }

    /// Reads by TLS, as [`Transport::read`].
    fn read_secure(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Way::Secure(secure) = &mut self.way else { return Ok(0) };
            let read = secure.read(buffer, &mut self.secured);
            secure.session.take_output(&mut self.unsent);
            self.flush()?;
            match read {
                Ok(Some(count)) => return Ok(count),
                Ok(None) => {}
                Err(why) => return Ok(self.fail(&why)),
            }
            let Way::Secure(secure) = &mut self.way else { return Ok(0) };
            match self.inner.read(&mut secure.buffer)? {
                0 => return Ok(0),
                count => secure.session.receive(&secure.buffer[..count]),
            }
        }
    }

    /// Tells the peer why, and ignores what it still sends: the stream ends.
    fn fail(&mut self, why: &TlsError) -> usize {
        if let Way::Secure(secure) = &self.way {
            self.subsystem.metrics.faults.inc();
            if secure.is_established {
                tracing::warn!(%why, "a connection by TLS broke");
            } else {
                lock(&secure.offer).log_failure(why);
            }
        }
        self.way = Way::Failed;
        0
    }
}

impl Offer {
    /// The library knows of certificates too, and its words for a wrong key are about those.
    fn log_failure(&self, why: &TlsError) {
        match (&self.first, why) {
            (None, TlsError::Closed) => tracing::debug!("a peer ended a TLS handshake before it said who it is"),
            (Some(identity), TlsError::Protocol(library)) => {
                let why = match self.known.is_empty() {
                    true => "no host of this drive has a key of that identity",
                    false => "the key of that host is another one, or what it sent makes no sense",
                };
                tracing::warn!(why, identity, library, "a TLS handshake failed");
            }
            (identity, why) => tracing::warn!(%why, identity, "a TLS handshake failed"),
        }
    }
}

impl Secure {
    fn read(&mut self, buffer: &mut [u8], secured: &mut Option<Secured>) -> Result<Option<usize>, TlsError> {
        if !self.is_established {
            self.is_established = self.session.handshake()?;
            if !self.is_established {
                self.has_more = false;
                return Ok(None);
            }
            let identity = self.session.identity().unwrap_or_default();
            let known = std::mem::take(&mut lock(&self.offer).known);
            // A session without one of these keys cannot be; without what it shows, Connect takes it for one in the clear.
            *secured = known.into_iter().find(|(name, _)| name.as_bytes() == identity).map(|(_, secured)| secured);
            if let Some(Secured { parties, .. }) = secured {
                tracing::info!(host = parties.host, "a TLS session has begun");
            }
        }
        let read = self.session.read(buffer)?;
        self.has_more = read.is_some_and(|count| count > 0);
        Ok(read)
    }
}

/// The key of an identity, if it names a host with a key, and this subsystem or discovery.
fn find(subsystem: &Subsystem, offer: &Mutex<Offer>, identity: &[u8], take: &mut dyn FnMut(Key<'_>)) {
    let text = String::from_utf8_lossy(identity);
    let mut offer = lock(offer);
    offer.first.get_or_insert_with(|| text.chars().take(SHOWN_CHARS).collect());
    let Some(parties) = parties_of(&text) else { return };
    if parties.subsystem != subsystem.options.nqn && parties.subsystem != DISCOVERY_NQN {
        return;
    }
    let Some(key) = subsystem.hosts.tls_key(&parties.host) else { return };
    let derived = [Derivation::Standard, Derivation::Libnvme].into_iter();
    for preshared in derived.flat_map(|derivation| key.preshared_keys(&parties, derivation)) {
        let hash = match preshared.hash {
            Hash::Sha256 => KeyHash::Sha256,
            Hash::Sha384 | Hash::Sha512 => KeyHash::Sha384,
        };
        if preshared.identity.as_bytes() == identity {
            take(Key { identity, secret: &preshared.secret, hash });
            offer.known.push((preshared.identity, Secured { parties: parties.clone(), key: Arc::clone(&key) }));
        }
    }
}

impl<T: Transport> Transport for Door<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.way {
            Way::Clear | Way::Failed => self.inner.read(buffer),
            Way::Secure(_) => self.read_secure(buffer),
            Way::Unknown => {
                let count = self.inner.read(buffer)?;
                if count == 0 {
                    return Ok(0);
                }
                self.open(&buffer[..count])?;
                if matches!(self.way, Way::Clear) { Ok(count) } else { self.read_secure(buffer) }
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if matches!(self.way, Way::Unknown | Way::Clear) {
            return self.inner.write(bytes);
        }
        let is_flushed = self.flush()?;
        match &mut self.way {
            Way::Secure(secure) if secure.is_established && is_flushed => {
                let part = &bytes[..bytes.len().min(PART_BYTES)];
                secure.session.write(part).map_err(io::Error::other)?;
                secure.session.take_output(&mut self.unsent);
                self.flush()?;
                Ok(part.len())
            }
            Way::Secure(_) => Err(ErrorKind::WouldBlock.into()),
            _ => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    fn write_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.way {
            Way::Unknown | Way::Clear => self.inner.write_parts(parts),
            _ => self.write(parts.first().map_or(&[], |part| part)),
        }
    }

    fn wait(&mut self, interest: Interest, timeout: Nanos) -> bool {
        if interest.read && matches!(&self.way, Way::Secure(secure) if secure.has_more) {
            return true;
        }
        let has_unsent = self.sent < self.unsent.len();
        self.inner.wait(Interest { write: interest.write || has_unsent, ..interest }, timeout)
    }

    fn end_output(&mut self) -> io::Result<()> {
        if let Way::Secure(secure) = &mut self.way {
            secure.session.close();
            secure.session.take_output(&mut self.unsent);
            // If there is no room for the alert, the end of the stream says the same.
            self.flush()?;
        }
        self.inner.end_output()
    }

    fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.unsent.len() {
            match self.inner.write(&self.unsent[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.unsent.clear();
        self.sent = 0;
        Ok(true)
    }

    fn take_secured(&mut self) -> Option<Secured> {
        self.secured.take()
    }
}
