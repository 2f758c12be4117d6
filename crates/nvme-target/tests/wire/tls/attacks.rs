//! What somebody does who has no key, or sits in between.

use super::tunnel::{Tunnel, client, output, shake};
use super::{KEYS, own_keys, rights, target};
use crate::host::{HOST_NQN, Host, NQN, PATIENCE, Target, admin_connect, value};
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::fabrics::{CONTROLLER_ANY, ConnectData, FabricsCommand};
use kvssd_nvme_spec::pdu::{Framing, IcRequest, Pdu};
use kvssd_nvme_spec::{Status, SubmissionEntry};
use kvssd_types::Nanos;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;

/// What the target says until it ends the connection.
fn last_words(mut stream: TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut words = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return words,
            Ok(count) => words.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return words,
            Err(error) => panic!("it keeps the connection: {error}"),
        }
    }
}

fn is_served(target: &Target) -> bool {
    let tunnel = Tunnel::new(target.address, own_keys(KEYS[1]));
    Host::with_digests(tunnel.address, false, false).store(b"k", b"v") == Status::Success
}

/// A greeting and a Connect, as they are in the clear.
fn connect_bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    Pdu::IcRequest(IcRequest::new(false, false, 1)).encode(&Framing::INITIAL, &mut bytes);
    let data = ConnectData::new([7; 16], CONTROLLER_ANY, NQN, HOST_NQN);
    let pointer = DataPointer::InCapsule { offset_bytes: 0, length_bytes: 1024 };
    let entry = SubmissionEntry::from(FabricsCommand::Connect(admin_connect(0))).with_data(pointer);
    Pdu::Command { entry, data: data.as_bytes() }.encode(&Framing::INITIAL, &mut bytes);
    bytes
}

#[test]
fn a_handshake_that_ends_at_any_byte_leaves_nothing_behind() {
    let target = Target::with(|options| {
        options.rights = rights(KEYS[1]);
        options.limits.connections_max = 24;
    });
    let mut session = client(&own_keys(KEYS[1]));
    let _ = session.handshake();
    let hello = output(&mut session);
    for length in 0..hello.len() {
        let mut stream = TcpStream::connect(target.address).unwrap();
        stream.write_all(&hello[..length]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // A target that says nothing, or an alert; never more than a few bytes.
        assert!(last_words(stream).len() < 100, "{length}");
    }
    // The rest of the handshake, in the same way.
    for length in [0, 1, 5, 6, 30, 57] {
        let mut session = client(&own_keys(KEYS[1]));
        let _ = session.handshake();
        let mut stream = TcpStream::connect(target.address).unwrap();
        stream.write_all(&output(&mut session)).unwrap();
        let mut buffer = [0; 4096];
        while session.handshake() == Ok(false) {
            let count = stream.read(&mut buffer).unwrap();
            session.receive(&buffer[..count]);
        }
        let finished = output(&mut session);
        stream.write_all(&finished[..length.min(finished.len() - 1)]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        last_words(stream);
    }
    assert!(is_served(&target));
}

#[test]
fn who_takes_too_long_loses_the_connection() {
    let target = Target::with(|options| {
        options.rights = rights(KEYS[1]);
        options.limits.connect_ns = Nanos(600_000_000);
    });
    let mut session = client(&own_keys(KEYS[1]));
    let _ = session.handshake();
    let hello = output(&mut session);
    let mut stream = TcpStream::connect(target.address).unwrap();
    let began = Instant::now();
    // A byte now and then is no progress.
    for byte in &hello {
        if stream.write_all(&[*byte]).is_err() || began.elapsed() > Duration::from_secs(10) {
            break;
        }
        sleep(Duration::from_millis(40));
    }
    assert!(began.elapsed() < Duration::from_secs(9));
    last_words(stream);
    // Who has shaken hands and says nothing more.
    let (_session, stream) = shake(target.address, &own_keys(KEYS[1])).unwrap();
    last_words(stream);
    assert!(is_served(&target));
}

#[test]
fn an_old_version_and_garbage_are_refused() {
    let target = target(KEYS[1]);
    // A ClientHello of TLS 1.2 with a suite of pre-shared keys, as in the tests of the crate `tls`.
    let body = [&[3, 3][..], &[9; 32], &[0], &[0, 4, 0, 0xae, 0, 0xff], &[1, 0]].concat();
    let hello = [&[22, 3, 1, 0, body.len() as u8 + 4, 1, 0, 0, body.len() as u8][..], &body].concat();
    let mut stream = TcpStream::connect(target.address).unwrap();
    stream.write_all(&hello).unwrap();
    assert_eq!(last_words(stream)[5..], [2, 70], "protocol version");
    for bytes in [[22; 300], [0x16, 3, 1, 2, 0].repeat(60).try_into().unwrap(), [0xff; 300]] {
        let mut stream = TcpStream::connect(target.address).unwrap();
        stream.write_all(&bytes).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        last_words(stream);
    }
    // In the clear behind a handshake.
    let (_session, mut stream) = shake(target.address, &own_keys(KEYS[1])).unwrap();
    stream.write_all(&connect_bytes()).unwrap();
    last_words(stream);
    assert!(is_served(&target));
}

#[test]
fn what_was_recorded_opens_nothing() {
    let target = target(KEYS[1]);
    let mut session = client(&own_keys(KEYS[1]));
    let _ = session.handshake();
    let mut recorded = output(&mut session);
    let mut stream = TcpStream::connect(target.address).unwrap();
    stream.write_all(&recorded).unwrap();
    let mut buffer = [0; 4096];
    while session.handshake() == Ok(false) {
        let count = stream.read(&mut buffer).unwrap();
        session.receive(&buffer[..count]);
    }
    session.write(&connect_bytes()).unwrap();
    let rest = output(&mut session);
    stream.write_all(&rest).unwrap();
    recorded.extend_from_slice(&rest);
    // The answers to both are more than a handshake's.
    let mut heard = 0;
    while heard < 128 + 24 {
        let count = stream.read(&mut buffer).unwrap();
        session.receive(&buffer[..count]);
        heard += session.read(&mut [0; 4096]).unwrap().unwrap_or(0);
    }
    let mut again = TcpStream::connect(target.address).unwrap();
    again.write_all(&recorded).unwrap();
    let words = last_words(again);
    // The answer to the ClientHello, which only its writer can go on from, and no answer to a command.
    assert!(words.len() < 400, "{} bytes", words.len());
}

#[test]
fn a_record_that_is_cut_off_or_changed_executes_nothing() {
    let target = target(KEYS[1]);
    for change in [None, Some(5), Some(700), Some(1180)] {
        let (mut session, mut stream) = shake(target.address, &own_keys(KEYS[1])).unwrap();
        session.write(&connect_bytes()).unwrap();
        let mut records = output(&mut session);
        match change {
            None => records.truncate(records.len() - 1),
            Some(at) => records[at] ^= 1,
        }
        stream.write_all(&records).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert!(last_words(stream).len() < 100, "{change:?}");
    }
    // A store that is cut off in the middle of its records: nobody was told that it was made, and it was not.
    let tunnel = Tunnel::new(target.address, own_keys(KEYS[1]));
    let mut host = Host::with_digests(tunnel.address, false, false);
    assert_eq!(host.store(b"k", b"old"), Status::Success);
    for _ in 0..20 {
        let mut host = Host::with_digests(tunnel.address, false, false);
        let command = kvssd_nvme_spec::kv::KvCommand::Store {
            key: crate::host::key(b"k"),
            value_bytes: 8000,
            options: kvssd_nvme_spec::kv::StoreOptions::default(),
        };
        let pointer = DataPointer::InCapsule { offset_bytes: 0, length_bytes: 8000 };
        let data = value(1, 8000);
        let bytes = host.io.bytes(&Pdu::Command { entry: command.entry(1).with_data(pointer), data: &data });
        host.io.write(&bytes[..bytes.len() - 1]);
        host.io.stream.shutdown(Shutdown::Both).unwrap();
    }
    assert_eq!(host.retrieve(b"k", 10).unwrap().0, b"old");
}
