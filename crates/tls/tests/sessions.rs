//! Both sides against each other in memory, and against what an attacker between them does.

use kvssd_tls::{Key, KeyHash, Session, TlsError};
use proptest::prelude::*;

const IDENTITY: &[u8] = b"NVMe1R01 nqn.host nqn.subsystem digest";
const SECRET: [u8; 48] = *b"0123456789abcdef0123456789abcdef0123456789abcdef";
const HASHES: [(KeyHash, usize); 2] = [(KeyHash::Sha256, 32), (KeyHash::Sha384, 48)];

fn key(hash: KeyHash, secret: &[u8]) -> Key<'_> {
    Key { identity: IDENTITY, secret, hash }
}

fn client(hash: KeyHash, length: usize) -> Session {
    Session::client(&[key(hash, &SECRET[..length])]).unwrap()
}

/// A server that knows the key by its identity.
fn server(hash: KeyHash, length: usize) -> Session {
    Session::server(move |identity, take| {
        if identity == IDENTITY {
            take(key(hash, &SECRET[..length]));
        }
    })
    .unwrap()
}

fn output(session: &mut Session) -> Vec<u8> {
    let mut bytes = Vec::new();
    session.take_output(&mut bytes);
    bytes
}

/// Hands bytes over until neither says more; gives how each handshake stands.
fn shake(client: &mut Session, server: &mut Session) -> (Result<bool, TlsError>, Result<bool, TlsError>) {
    let mut states = (client.handshake(), server.handshake());
    for _ in 0..8 {
        server.receive(&output(client));
        states.1 = server.handshake();
        client.receive(&output(server));
        states.0 = client.handshake();
    }
    states
}

fn established() -> (Session, Session) {
    let (mut client, mut server) = (client(KeyHash::Sha256, 32), server(KeyHash::Sha256, 32));
    assert_eq!(shake(&mut client, &mut server), (Ok(true), Ok(true)));
    (client, server)
}

#[test]
fn who_has_the_key_is_understood_and_nobody_else_reads_it() {
    for (hash, length) in HASHES {
        let (mut client, mut server) = (client(hash, length), server(hash, length));
        assert_eq!(shake(&mut client, &mut server), (Ok(true), Ok(true)), "{hash:?}");
        assert_eq!(client.identity().as_deref(), Some(IDENTITY));
        assert_eq!(server.identity().as_deref(), Some(IDENTITY));
        // Large enough for many records, in both directions.
        let value: Vec<u8> = (0..5_000_000u32).map(|n| (n >> 7) as u8).collect();
        for is_from_client in [true, false] {
            let (from, to) = if is_from_client { (&mut client, &mut server) } else { (&mut server, &mut client) };
            from.write(&value).unwrap();
            let sent = output(from);
            assert!(sent.len() > value.len() && !sent.windows(64).any(|part| part == &value[4096..4160]));
            let (mut heard, mut buffer) = (Vec::new(), vec![0; 100_000]);
            for part in sent.chunks(70_001) {
                to.receive(part);
                while let Some(count) = to.read(&mut buffer).unwrap() {
                    heard.extend_from_slice(&buffer[..count]);
                }
            }
            assert!(heard == value);
        }
        client.close();
        server.receive(&output(&mut client));
        assert_eq!(server.read(&mut [0; 10]), Ok(Some(0)));
    }
}

#[test]
fn of_several_keys_the_first_that_the_server_knows_is_taken() {
    let other = Key { identity: b"unknown", ..key(KeyHash::Sha256, &SECRET[..32]) };
    let mut client = Session::client(&[other, key(KeyHash::Sha256, &SECRET[..32])]).unwrap();
    let mut server = server(KeyHash::Sha256, 32);
    assert_eq!(shake(&mut client, &mut server), (Ok(true), Ok(true)));
    assert_eq!(server.identity().as_deref(), Some(IDENTITY));
}

/// Two ways to derive a key may give two secrets for one identity.
#[test]
fn of_several_keys_with_one_identity_the_one_that_the_client_has_is_taken() {
    for (hash, length) in HASHES {
        for (own, is_known) in [(0, true), (1, true), (2, true), (3, false)] {
            let secrets = [[1u8; 48], [2; 48], [3; 48], [4; 48]];
            let mut client = Session::client(&[key(hash, &secrets[own][..length])]).unwrap();
            let mut server = Session::server(move |identity, take| {
                if identity == IDENTITY {
                    (0..3).for_each(|known| take(key(hash, &secrets[known][..length])));
                }
            })
            .unwrap();
            let (of_client, of_server) = shake(&mut client, &mut server);
            assert_eq!((of_client == Ok(true), of_server == Ok(true)), (is_known, is_known), "{hash:?} {own}");
        }
    }
}

#[test]
fn who_has_another_key_name_or_hash_has_no_session_and_is_told() {
    let wrong = [7; 32];
    for (mut client, what) in [
        (Session::client(&[key(KeyHash::Sha256, &wrong)]).unwrap(), "secret"),
        (Session::client(&[Key { identity: b"nobody", ..key(KeyHash::Sha256, &SECRET[..32]) }]).unwrap(), "name"),
        (Session::client(&[key(KeyHash::Sha384, &SECRET[..32])]).unwrap(), "hash"),
        (Session::client(&[]).unwrap(), "no key"),
    ] {
        let mut server = server(KeyHash::Sha256, 32);
        let (of_client, of_server) = shake(&mut client, &mut server);
        assert_eq!(of_client, Err(TlsError::Alert(51)), "{what}");
        assert!(matches!(of_server, Err(TlsError::Protocol(_) | TlsError::Library(_))), "{what}: {of_server:?}");
        assert!(server.write(b"value").is_err() && server.read(&mut [0; 9]).is_err());
        assert!(client.write(b"value").is_err());
    }
}

#[test]
fn a_handshake_cut_at_any_byte_waits_for_more_and_ends_with_the_stream() {
    let (mut client_whole, mut server_whole) = (client(KeyHash::Sha256, 32), server(KeyHash::Sha256, 32));
    assert_eq!(client_whole.handshake(), Ok(false));
    let hello = output(&mut client_whole);
    for length in 0..hello.len() {
        let mut server = server(KeyHash::Sha256, 32);
        server.receive(&hello[..length]);
        assert_eq!(server.handshake(), Ok(false), "{length}");
        server.end_input();
        assert_eq!(server.handshake(), Err(TlsError::Closed), "{length}");
    }
    // Byte by byte the handshake goes on as ever, in both directions.
    for byte in &hello {
        assert_eq!(server_whole.handshake(), Ok(false));
        server_whole.receive(&[*byte]);
    }
    assert_eq!(server_whole.handshake(), Ok(false));
    let answer = output(&mut server_whole);
    for byte in &answer[..answer.len() - 1] {
        client_whole.receive(&[*byte]);
        assert_eq!(client_whole.handshake(), Ok(false));
    }
    client_whole.receive(&answer[answer.len() - 1..]);
    assert_eq!(client_whole.handshake(), Ok(true));
}

#[test]
fn what_was_recorded_is_of_no_use_to_who_plays_it_again() {
    let (mut client, mut server_first) = (client(KeyHash::Sha256, 32), server(KeyHash::Sha256, 32));
    assert_eq!(client.handshake(), Ok(false));
    let hello = output(&mut client);
    server_first.receive(&hello);
    assert_eq!(server_first.handshake(), Ok(false));
    client.receive(&output(&mut server_first));
    assert_eq!(client.handshake(), Ok(true));
    client.write(b"delete everything").unwrap();
    let rest = output(&mut client);
    let mut again = server(KeyHash::Sha256, 32);
    again.receive(&hello);
    assert_eq!(again.handshake(), Ok(false), "a ClientHello alone proves nothing");
    again.receive(&rest);
    assert!(matches!(again.handshake(), Err(TlsError::Protocol(_))));
    // Within a session, too: each record has its number.
    let (mut client, mut server) = established();
    client.write(b"once").unwrap();
    let record = output(&mut client);
    server.receive(&record);
    assert_eq!(server.read(&mut [0; 10]), Ok(Some(4)));
    server.receive(&record);
    assert!(server.read(&mut [0; 10]).is_err());
    // What is sent back to its sender.
    let (mut client, _) = established();
    client.write(b"mine").unwrap();
    let record = output(&mut client);
    client.receive(&record);
    assert!(client.read(&mut [0; 10]).is_err());
}

#[test]
fn another_version_and_what_is_no_tls_is_refused() {
    // A ClientHello of TLS 1.2, as `openssl s_client -tls1_2 -psk` sends one: suites with PSK, no supported_versions.
    let body = [&[3, 3][..], &[9; 32], &[0], &[0, 4, 0, 0xae, 0, 0xff], &[1, 0]].concat();
    let hello = [&[22, 3, 1, 0, body.len() as u8 + 4, 1, 0, 0, body.len() as u8][..], &body].concat();
    let mut server_old = server(KeyHash::Sha256, 32);
    server_old.receive(&hello);
    assert!(matches!(server_old.handshake(), Err(TlsError::Protocol(_))));
    // Alert 70, protocol version.
    assert_eq!(output(&mut server_old).last_chunk::<2>(), Some(&[2, 70]));
    for bytes in [&[0; 128][..], b"GET / HTTP/1.1\r\n\r\n", &[22, 3, 1, 0xff, 0xff, 9, 9, 9], &[21, 3, 3, 0, 2, 2, 40]]
    {
        let (mut server, mut client) = (server(KeyHash::Sha256, 32), client(KeyHash::Sha256, 32));
        let _ = client.handshake();
        for session in [&mut server, &mut client] {
            session.receive(bytes);
            session.end_input();
            assert!(session.handshake().is_err(), "{bytes:?}");
        }
    }
}

#[test]
fn an_alert_says_what_it_is() {
    let mut client = client(KeyHash::Sha256, 32);
    let _ = client.handshake();
    client.receive(&[21, 3, 3, 0, 2, 2, 51]);
    let why = client.handshake().unwrap_err();
    assert_eq!(why, TlsError::Alert(51));
    assert!(why.to_string().contains("decrypt error"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// A handshake of which one byte is changed on its way does not come about, and nothing stops.
    #[test]
    fn a_changed_byte_ends_it(from_client: bool, at: prop::sample::Index, change in 1u8..=255) {
        let (mut client, mut server) = (client(KeyHash::Sha384, 48), server(KeyHash::Sha384, 48));
        prop_assert_eq!(client.handshake(), Ok(false));
        let mut bytes = output(&mut client);
        if from_client {
            let at = at.index(bytes.len());
            bytes[at] ^= change;
        }
        server.receive(&bytes);
        let heard = server.handshake();
        let mut bytes = output(&mut server);
        if !from_client {
            let at = at.index(bytes.len());
            bytes[at] ^= change;
        }
        client.receive(&bytes);
        client.end_input();
        let answered = client.handshake();
        server.receive(&output(&mut client));
        let ended = server.handshake();
        // The version in a record's header is nobody's business (RFC 8446, 5.1); all else is.
        let is_well = heard.is_ok() && answered == Ok(true) && ended == Ok(true);
        let is_version = (from_client && matches!(at.index(5), 1 | 2)) || is_well;
        prop_assert!(!is_well || is_version);
        prop_assert!(!(is_well && server.identity().as_deref() != Some(IDENTITY)));
    }

    #[test]
    fn no_bytes_stop_either_side(bytes in prop::collection::vec(any::<u8>(), 0..600), is_record: bool) {
        let (mut client, mut server) = (client(KeyHash::Sha256, 32), server(KeyHash::Sha256, 32));
        let _ = client.handshake();
        let length = (bytes.len() as u16).to_be_bytes();
        let prefix = if is_record { [22, 3, 3, length[0], length[1]].to_vec() } else { Vec::new() };
        for session in [&mut client, &mut server] {
            session.receive(&prefix);
            session.receive(&bytes);
            prop_assert_ne!(session.handshake(), Ok(true));
        }
        let (_, mut server) = established();
        server.receive(&bytes);
        let _ = server.read(&mut [0; 100]);
    }
}
