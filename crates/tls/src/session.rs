//! A session: a handshake, then records in both directions.

use crate::binder;
use crate::client_hello::{self, Offer};
use crate::error::TlsError;
use crate::key::{Key, KeyHash};
use crate::pipe::Wired;
use s2n_tls::callbacks::{ClientHelloCallback, ConnectionFuture};
use s2n_tls::config::Config;
use s2n_tls::connection::Connection;
use s2n_tls::enums::{Blinding, Mode, PskHmac, Version};
use s2n_tls::error::Error;
use s2n_tls::psk::Psk;
use s2n_tls::security::Policy;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};

/// TLS 1.3 alone; the AES-GCM suites first; x25519, P-256, P-384, P-521.
const POLICY: &str = "AWS-CRT-SDK-TLSv1.3-2023";
/// Those that NVMe/TCP has. The policy knows ChaCha20-Poly1305 too, which no key of ours goes with.
const SUITES: [&str; 2] = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"];

/// A record with an alert in the clear, except for its two bytes.
const ALERT: [u8; 5] = [21, 3, 3, 0, 2];
/// The type of a ClientHello.
const CLIENT_HELLO: u8 = 1;
/// close_notify, which is all that the library says of most failures, and decrypt_error, the same for all of them: whether
/// the name or the key is wrong is nobody's business.
const CLOSE_NOTIFY: [u8; 2] = [1, 0];
const DECRYPT_ERROR: [u8; 2] = [2, 51];

/// Looks for the key of an identity, and gives it to `take`.
type Find = dyn Fn(&[u8], &mut dyn FnMut(Key<'_>)) + Send + Sync;

/// One side of a TLS connection.
pub struct Session {
    wired: Wired,
    is_established: bool,
    /// Nothing more is read or written.
    failure: Option<TlsError>,
}

/// What the callback of a server asks.
struct Known(Arc<Find>);

/// Adds the keys that a client has offered and the server knows, before the library looks for one.
struct Offered;

impl ClientHelloCallback for Offered {
    fn on_client_hello(&self, connection: &mut Connection) -> Result<Option<Pin<Box<dyn ConnectionFuture>>>, Error> {
        let Some(find) = connection.application_context::<Known>().map(|known| Arc::clone(&known.0)) else {
            return Ok(None);
        };
        let body = body(connection)?;
        let (offers, bound_bytes) = client_hello::offers(&body);
        let header = [&[CLIENT_HELLO][..], &(body.len() as u32).to_be_bytes()[1..]].concat();
        let bound = [&header, &body[..bound_bytes]].concat();
        let mut seen: Vec<&[u8]> = Vec::new();
        for Offer { identity, binder } in offers {
            if seen.contains(&identity) {
                continue;
            }
            seen.push(identity);
            // Of several keys the one that the client has; where it has none of them, the library says no to any.
            let (mut chosen, mut is_right) = (None, false);
            find(identity, &mut |key| {
                if !is_right && key.identity == identity {
                    is_right = binder::is_of(key, &bound, binder);
                    chosen = Some(psk(key));
                }
            });
            if let Some(psk) = chosen {
                connection.append_psk(&psk?)?;
            }
        }
        Ok(None)
    }
}

/// The ClientHello, without its header. The library gives it with zeros in the place of the random bytes.
fn body(connection: &Connection) -> Result<Vec<u8>, Error> {
    let hello = connection.client_hello()?;
    let (mut body, random) = (hello.raw_message()?, hello.random()?);
    if let Some(bytes) = body.get_mut(2..2 + random.len()) {
        bytes.copy_from_slice(&random);
    }
    Ok(body)
}

fn psk(key: Key<'_>) -> Result<Psk, Error> {
    let mut builder = Psk::builder()?;
    let hmac = match key.hash {
        KeyHash::Sha256 => PskHmac::SHA256,
        KeyHash::Sha384 => PskHmac::SHA384,
    };
    builder.set_identity(key.identity)?.set_secret(key.secret)?.set_hmac(hmac)?;
    builder.build()
}

/// The configuration of all sessions of a side.
fn config(mode: Mode) -> Result<Config, TlsError> {
    static CONFIGS: [OnceLock<Result<Config, TlsError>>; 2] = [OnceLock::new(), OnceLock::new()];
    let build = || -> Result<Config, Error> {
        let mut builder = Config::builder();
        builder.with_system_certs(false)?;
        builder.set_security_policy(&Policy::from_version(POLICY)?)?;
        // Alerts need not wait: GCM has no padding whose check takes a time that tells something.
        builder.set_max_blinding_delay(0)?;
        if mode == Mode::Server {
            builder.set_client_hello_callback(Offered)?;
        }
        builder.build()
    };
    let slot = &CONFIGS[usize::from(mode == Mode::Server)];
    slot.get_or_init(|| build().map_err(|error| TlsError::of(&error, None))).clone()
}

impl Session {
    /// The side that begins, with the keys that it offers; the first is its favourite.
    ///
    /// # Errors
    /// [`TlsError::Library`], as for a key that is too short.
    pub fn client(keys: &[Key<'_>]) -> Result<Session, TlsError> {
        let mut session = Session::new(Mode::Client)?;
        let append = |connection: &mut Connection| keys.iter().try_for_each(|key| connection.append_psk(&psk(*key)?));
        session.wired.with(append).map_err(|error| TlsError::of(&error, None))?;
        Ok(session)
    }

    /// The side that answers. `find` gives the key of an identity to its second argument, or the keys where there may be
    /// several, or calls it not at all.
    ///
    /// # Errors
    /// [`TlsError::Library`].
    pub fn server(find: impl Fn(&[u8], &mut dyn FnMut(Key<'_>)) + Send + Sync + 'static) -> Result<Session, TlsError> {
        let mut session = Session::new(Mode::Server)?;
        session.wired.with(|connection| connection.set_application_context(Known(Arc::new(find))));
        Ok(session)
    }

    fn new(mode: Mode) -> Result<Session, TlsError> {
        let config = config(mode)?;
        let mut connection = Connection::new(mode);
        let set = |connection: &mut Connection| -> Result<(), Error> {
            connection.set_config(config)?.set_blinding(Blinding::SelfService)?.prefer_throughput()?;
            // The library wants one beside a callback. Ours answers at once, and wakes nobody.
            connection.set_waker(Some(Waker::noop()))?;
            Ok(())
        };
        set(&mut connection).map_err(|error| TlsError::of(&error, None))?;
        Ok(Session { wired: Wired::new(connection)?, is_established: false, failure: None })
    }

    /// Takes bytes of the peer.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.wired.pipes().push(bytes);
    }

    /// Notes that no more bytes of the peer come.
    pub fn end_input(&mut self) {
        self.wired.pipes().close();
    }

    /// Goes on with the handshake as far as the peer's bytes go. Returns whether it is over, and both sides know it.
    ///
    /// # Errors
    /// Why there is no session.
    pub fn handshake(&mut self) -> Result<bool, TlsError> {
        self.check()?;
        if self.is_established {
            return Ok(true);
        }
        match self.wired.with(|connection| connection.poll_negotiate().map_ok(|_| ())) {
            Poll::Pending => Ok(false),
            Poll::Ready(Err(error)) => Err(self.fail(&error)),
            Poll::Ready(Ok(())) => {
                self.is_established = self.is_as_agreed();
                if self.is_established {
                    return Ok(true);
                }
                let why =
                    TlsError::Protocol("it has not taken a key, a version or a suite that was offered".to_owned());
                self.failure = Some(why.clone());
                Err(why)
            }
        }
    }

    /// Whether what was negotiated is what this crate is for. The library leaves no other way; a mistake here would let
    /// anybody in.
    fn is_as_agreed(&self) -> bool {
        let connection = self.wired.connection();
        let version = connection.actual_protocol_version();
        let suite = connection.cipher_suite();
        version.is_ok_and(|version| version == Version::TLS13)
            && suite.is_ok_and(|suite| SUITES.contains(&suite))
            && self.identity().is_some()
    }

    /// The identity of the key that both sides have shown to know; `None` before the handshake is over.
    #[must_use]
    pub fn identity(&self) -> Option<Vec<u8>> {
        let connection = self.wired.connection();
        let length = connection.negotiated_psk_identity_length().ok().filter(|length| *length > 0)?;
        let mut identity = vec![0; length];
        connection.negotiated_psk_identity(&mut identity).ok()?;
        Some(identity)
    }

    /// Reads what the peer has said. `None` when more of its bytes are needed, 0 when it has said its last.
    ///
    /// # Errors
    /// Why the session ended.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, TlsError> {
        self.check()?;
        let mut filled = 0;
        while filled < buffer.len() {
            match self.wired.with(|connection| connection.poll_recv(&mut buffer[filled..])) {
                Poll::Pending | Poll::Ready(Ok(0)) if filled > 0 => break,
                Poll::Pending => return Ok(None),
                Poll::Ready(Ok(0)) => return Ok(Some(0)),
                Poll::Ready(Ok(count)) => filled += count,
                // What came before is read first; the session fails again, or goes on to say why.
                Poll::Ready(Err(error)) => {
                    let why = self.fail(&error);
                    return if filled > 0 { Ok(Some(filled)) } else { Err(why) };
                }
            }
        }
        Ok(Some(filled))
    }

    /// Encrypts bytes for the peer; [`Session::take_output`] has them then.
    ///
    /// # Errors
    /// Why the session ended.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), TlsError> {
        self.check()?;
        while !bytes.is_empty() {
            match self.wired.with(|connection| connection.poll_send(bytes)) {
                Poll::Ready(Ok(count)) => bytes = &bytes[count..],
                Poll::Ready(Err(error)) => return Err(self.fail(&error)),
                // There is always room in memory.
                Poll::Pending => return Err(TlsError::Library("it waits for room that there is".to_owned())),
            }
        }
        Ok(())
    }

    /// Tells the peer that nothing more comes.
    pub fn close(&mut self) {
        if self.failure.is_none() {
            // Where that fails, the end of the stream says the same.
            let _ = self.wired.with(|connection| connection.poll_shutdown_send().map_ok(|_| ()));
        }
    }

    /// Moves the bytes for the peer to the end of `output`.
    pub fn take_output(&mut self, output: &mut Vec<u8>) {
        output.append(&mut self.wired.pipes().outgoing);
    }

    fn check(&self) -> Result<(), TlsError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Ends the session, and has the peer told why.
    fn fail(&mut self, error: &Error) -> TlsError {
        let why = TlsError::of(error, self.wired.connection().alert());
        let is_silent = self.wired.pipes().outgoing.is_empty();
        let _ = self.wired.with(|connection| connection.poll_shutdown_send().map_ok(|_| ()));
        let mut pipes = self.wired.pipes();
        if is_silent && !self.is_established && pipes.outgoing == [&ALERT[..], &CLOSE_NOTIFY].concat() {
            pipes.outgoing = [&ALERT[..], &DECRYPT_ERROR].concat();
        }
        drop(pipes);
        self.failure = Some(why.clone());
        why
    }
}
