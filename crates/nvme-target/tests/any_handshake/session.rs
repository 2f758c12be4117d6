//! A connection by TLS as a string of bytes describes it, between a client that may have a key and a target that attends to
//! it as to any other: whatever the string, nothing panics, the connection ends, and who has no key has no session.
//!
//! ```text
//!   who | step | step | ...     a step: what becomes of what the client says next, and in which pieces it comes
//!                               as it is | a byte changed | cut off | in several records | what it said before, again |
//!                               any bytes | a record of any bytes | time goes by, or the client says a greeting
//! ```

use kvssd_device::{CreateDrive, Drive, image_design, image_profile};
use kvssd_nvme_auth::{Derivation, Hash, Parties, PresharedKey, TlsKey};
use kvssd_nvme_spec::pdu::{Framing, IcRequest, Pdu};
use kvssd_nvme_target::{Door, HostRights, Interest, Rights, Subsystem, SubsystemOptions, Transport, attend};
use kvssd_tls::{Key, KeyHash, Session};
use kvssd_types::Nanos;
use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::iter::Copied;
use std::path::Path;
use std::slice::Iter;
use std::sync::Arc;

const NQN: &str = "nqn.2025-01.org.kvssd:any";
const HOSTS: [&str; 2] = ["nqn.host:a", "nqn.host:b"];
/// Keys of both hashes, as they are in files; the last one is nobody's.
const KEYS: [&str; 3] = [
    "NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
    "NVMeTLSkey-1:02:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==:",
    "NVMeTLSkey-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
];
/// A record's header: type, version, length.
const RECORD_HEADER_BYTES: usize = 5;

/// A subsystem over a small new drive in `folder`, which lets two hosts in, each by its key.
pub fn subsystem(folder: &Path) -> Arc<Subsystem> {
    let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
    let drive = Drive::create(folder.join("drive.kv"), &profile, &design, CreateDrive::default()).unwrap();
    let mut options = SubsystemOptions::new(NQN);
    let rights = |text: &str| {
        let tls_key = Some(Arc::new(TlsKey::parse(text).unwrap()));
        HostRights { tls_key, ..HostRights::EVERYTHING }
    };
    let hosts = HOSTS.iter().zip(KEYS).map(|(host, key)| ((*host).to_owned(), rights(key)));
    options.rights = Rights::new(hosts.collect(), None);
    Arc::new(Subsystem::new(drive, options))
}

/// What a session came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client has seen that the target knows its key, which the target shows to who has it alone.
    Established,
    /// They have not.
    Refused,
}

/// Runs the session that `script` describes.
pub fn run(subsystem: &Arc<Subsystem>, script: &[u8]) -> End {
    let (&who, script) = script.split_first().unwrap_or((&0, &[]));
    let is_known = who % 4 < 2;
    let preshared = match who % 4 {
        known @ (0 | 1) => keys_of(KEYS[usize::from(known)], HOSTS[usize::from(known)]),
        2 => keys_of(KEYS[2], HOSTS[0]),
        _ => keys_of(KEYS[0], "nqn.stranger"),
    };
    let now = Cell::new(Nanos(1));
    let mut peer = Peer {
        client: client(&preshared),
        script: script.iter().copied(),
        now: &now,
        sent: Vec::new(),
        incoming: Vec::new(),
        piece_bytes: usize::MAX,
        is_over: false,
        end: End::Refused,
    };
    let mut door = Door::new(&mut peer, Arc::clone(subsystem));
    // It may break; it may not hang: the clock goes on with each wait.
    let _ = attend(Arc::clone(subsystem), "127.0.0.1:4420".parse().unwrap(), &mut door, || now.get(), || false);
    drop(door);
    assert!(is_known || peer.end == End::Refused, "who has no key has a session");
    peer.end
}

fn keys_of(text: &str, host: &str) -> Vec<PresharedKey> {
    let parties = Parties { host: host.to_owned(), subsystem: NQN.to_owned() };
    TlsKey::parse(text).unwrap().preshared_keys(&parties, Derivation::Standard)
}

fn client(preshared: &[PresharedKey]) -> Session {
    let offered = preshared.iter().map(|PresharedKey { identity, secret, hash }| Key {
        identity: identity.as_bytes(),
        secret,
        hash: if *hash == Hash::Sha256 { KeyHash::Sha256 } else { KeyHash::Sha384 },
    });
    Session::client(&offered.collect::<Vec<_>>()).unwrap()
}

/// What the target has at the other end of its socket.
struct Peer<'a> {
    client: Session,
    script: Copied<Iter<'a, u8>>,
    now: &'a Cell<Nanos>,
    /// What it said last.
    sent: Vec<u8>,
    /// What the target has not read yet.
    incoming: Vec<u8>,
    piece_bytes: usize,
    is_over: bool,
    end: End,
}

impl Peer<'_> {
    fn next(&mut self) -> usize {
        self.script.next().unwrap_or_default().into()
    }

    /// Does the next step; the end of the script is the end of the stream.
    fn step(&mut self) {
        let Some(step) = self.script.next() else {
            self.is_over = true;
            return;
        };
        if self.client.handshake() == Ok(true) {
            self.end = End::Established;
        }
        let mut said = Vec::new();
        self.client.take_output(&mut said);
        self.piece_bytes = if step & 0x80 == 0 { usize::MAX } else { 1 + self.next() };
        match step & 7 {
            1 if !said.is_empty() => {
                let at = (self.next() << 8 | self.next()) % said.len();
                said[at] ^= 1 << (step >> 4 & 7);
            }
            2 => {
                let length = (self.next() << 8 | self.next()) % (said.len() + 1);
                said.truncate(length);
            }
            3 if said.len() > RECORD_HEADER_BYTES => said = self.in_several_records(&said),
            4 => said.extend_from_slice(&self.sent),
            5 => {
                let length = self.next();
                said.extend(self.script.by_ref().take(length));
            }
            6 => {
                let (kind, length) = (20 + (step >> 3 & 7), self.next());
                let body: Vec<u8> = self.script.by_ref().take(length).collect();
                said.extend([kind, 3, 3, 0, body.len() as u8]);
                said.extend(body);
            }
            7 if self.end == End::Established => {
                let mut greeting = Vec::new();
                Pdu::IcRequest(IcRequest::new(false, false, 1)).encode(&Framing::INITIAL, &mut greeting);
                let _ = self.client.write(&greeting);
                self.client.take_output(&mut said);
            }
            7 => self.now.set(self.now.get() + Nanos(1 << (step >> 3 & 15) << 20)),
            _ => {}
        }
        self.incoming.extend_from_slice(&said);
        self.sent = said;
    }

    /// The first record's bytes in records of their own.
    fn in_several_records(&mut self, said: &[u8]) -> Vec<u8> {
        let (header, body) = said.split_at(RECORD_HEADER_BYTES);
        let (piece_bytes, mut records) = (1 + self.next(), Vec::new());
        for piece in body.chunks(piece_bytes) {
            records.extend_from_slice(&header[..3]);
            records.extend_from_slice(&(piece.len() as u16).to_be_bytes());
            records.extend_from_slice(piece);
        }
        records
    }
}

impl Transport for &mut Peer<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.incoming.is_empty() {
            return if self.is_over { Ok(0) } else { Err(ErrorKind::WouldBlock.into()) };
        }
        let count = self.incoming.len().min(buffer.len()).min(self.piece_bytes);
        buffer[..count].copy_from_slice(&self.incoming[..count]);
        self.incoming.drain(..count);
        Ok(count)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.client.receive(bytes);
        Ok(bytes.len())
    }

    fn wait(&mut self, interest: Interest, timeout: Nanos) -> bool {
        if self.incoming.is_empty() && !self.is_over && interest.read {
            self.step();
        }
        if self.incoming.is_empty() {
            self.now.set(self.now.get() + Nanos(1_000_000).min(timeout));
        }
        interest.read
    }

    fn end_output(&mut self) -> io::Result<()> {
        self.client.end_input();
        Ok(())
    }
}
