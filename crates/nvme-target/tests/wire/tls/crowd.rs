//! A thousand connections by TLS at once, and what those that are idle, or never finish their handshake, take from others.
//!
//! They run alone: `cargo test -p kvssd-nvme-target --test wire -- --ignored crowd`.

use super::tunnel::{client, output, shake};
use super::{KEYS, keys_of, with_key};
use crate::host::{HOST_ID, NQN, Queue, Target, admin_connect, io_connect};
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::fabrics::{CONTROLLER_ANY, Configuration, Connect, ConnectData, FabricsCommand, property};
use kvssd_nvme_spec::kv::{KvCommand, KvKey, StoreOptions};
use kvssd_nvme_spec::pdu::{Decoded, Framing, IcRequest, Pdu, Sender};
use kvssd_nvme_spec::{CompletionEntry, Status, SubmissionEntry};
use kvssd_nvme_target::Rights;
use kvssd_tls::Session;
use kvssd_types::Nanos;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;

const CONNECTIONS: usize = 1000;
const CONNECTIONS_MAX: usize = 1024;
const THREADS: usize = 16;
/// Both ends of all connections are in this process, and what other tests open.
const FILES: u64 = 4096;
/// One crowd at a time.
static TURN: Mutex<()> = Mutex::new(());

/// One queue's end of a connection by TLS, without a thread of its own.
struct SecureQueue {
    session: Session,
    socket: TcpStream,
    input: Vec<u8>,
    next_id: u16,
}

impl SecureQueue {
    /// A connection of a host, which has agreed on no digests.
    fn greeted(address: SocketAddr, host: &str) -> Self {
        let (session, socket) = shake(address, &keys_of(KEYS[1], host, NQN)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut queue = SecureQueue { session, socket, input: Vec::new(), next_id: 0 };
        queue.send(&Pdu::IcRequest(IcRequest::new(false, false, 1)));
        assert!(queue.hear().is_none(), "a greeting answers no command");
        queue
    }

    fn send(&mut self, pdu: &Pdu<'_>) {
        let mut bytes = Vec::new();
        pdu.encode(&Framing::INITIAL, &mut bytes);
        self.session.write(&bytes).unwrap();
        self.socket.write_all(&output(&mut self.session)).unwrap();
    }

    /// What completes a command, or nothing for a greeting.
    fn hear(&mut self) -> Option<CompletionEntry> {
        let (mut secure, mut clear) = ([0; 4096], [0; 4096]);
        loop {
            match Pdu::decode(&self.input, Sender::Controller, &Framing::INITIAL).unwrap() {
                Decoded::Pdu { pdu, bytes, .. } => {
                    let heard = match pdu {
                        Pdu::Response(entry) => Some(entry),
                        Pdu::IcResponse(_) => None,
                        other => panic!("{other:?} is no answer"),
                    };
                    self.input.drain(..bytes);
                    return heard;
                }
                Decoded::Needs(_) => {
                    let count = self.socket.read(&mut secure).unwrap();
                    assert!(count > 0, "the connection was closed");
                    self.session.receive(&secure[..count]);
                    while let Some(count) = self.session.read(&mut clear).unwrap() {
                        self.input.extend_from_slice(&clear[..count]);
                    }
                }
            }
        }
    }

    fn ask(&mut self, mut entry: SubmissionEntry, data: &[u8]) -> CompletionEntry {
        self.next_id += 1;
        entry.command_id = self.next_id.into();
        if !data.is_empty() {
            entry = entry.with_data(DataPointer::InCapsule { offset_bytes: 0, length_bytes: data.len() as u32 });
        }
        self.send(&Pdu::Command { entry, data });
        self.hear().unwrap()
    }

    fn connect(&mut self, connect: Connect, controller: u16, host: &str) -> CompletionEntry {
        let data = ConnectData::new(HOST_ID, controller, NQN, host);
        self.ask(FabricsCommand::Connect(connect).into(), data.as_bytes())
    }

    fn store(&mut self, key: &str) -> Status {
        let (key, value) = (KvKey::new(key.as_bytes()).unwrap(), key.as_bytes());
        let command = KvCommand::Store { key, value_bytes: value.len() as u32, options: StoreOptions::default() };
        self.ask(command.entry(1), value).status().unwrap()
    }

    fn exist(&mut self, key: &str) -> Status {
        let key = KvKey::new(key.as_bytes()).unwrap();
        self.ask(KvCommand::Exist { key }.entry(1), &[]).status().unwrap()
    }
}

/// An admin queue of a host, and the controller that is its.
fn admin_of(address: SocketAddr, host: &str) -> Result<(SecureQueue, u16), Status> {
    let mut admin = SecureQueue::greeted(address, host);
    let connected = admin.connect(admin_connect(0), CONTROLLER_ANY, host);
    let controller = connected.result() as u16;
    match connected.status().unwrap() {
        Status::Success => Ok((admin, controller)),
        refused => Err(refused),
    }
}

/// Both queues of a host, ready for commands.
fn pair_of(address: SocketAddr, host: &str) -> [SecureQueue; 2] {
    let (mut admin, controller) = admin_of(address, host).unwrap();
    let value = Configuration::KEY_VALUE.0.into();
    let enable = FabricsCommand::PropertySet { offset: property::CONFIGURATION, is_wide: false, value };
    assert_eq!(admin.ask(enable.into(), &[]).status(), Ok(Status::Success));
    let mut io = SecureQueue::greeted(address, host);
    assert_eq!(io.connect(io_connect(1), controller, host).status(), Ok(Status::Success));
    [admin, io]
}

fn name(number: usize) -> String {
    format!("nqn.host:{number}")
}

/// A target for so many hosts by name, each with a key; nothing where the system allows too few open files.
fn target(hosts: usize, idle: Duration) -> Option<Target> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if maximum.is_some_and(|maximum| maximum < FILES) {
        return None;
    }
    let raised = current.map(|current| current.max(FILES));
    setrlimit(Resource::Nofile, Rlimit { current: raised, maximum }).unwrap();
    Some(Target::with(|options| {
        options.limits.connections_max = CONNECTIONS_MAX;
        options.limits.idle_ns = Nanos(idle.as_nanos() as u64);
        // Who does not finish a handshake stays, unless another takes the place.
        options.limits.connect_ns = Nanos(600_000_000_000);
        options.rights = Rights::new((0..hosts).map(|host| (name(host), with_key(KEYS[1]))).collect(), None);
    }))
}

/// Makes something of each number side by side, in their order.
fn side_by_side<T: Send>(count: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let make = &make;
        let part = count.div_ceil(THREADS);
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let numbers = (thread * part).min(count)..((thread + 1) * part).min(count);
                scope.spawn(move || numbers.map(make).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// Nothing came from the target, and it has not closed the connection.
fn is_open(mut socket: &TcpStream) -> bool {
    socket.set_nonblocking(true).unwrap();
    matches!(socket.read(&mut [0; 16]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// All are there at once, and each finds its own pair.
fn assert_all_are_served(hosts: &mut [[SecureQueue; 2]]) {
    for (number, [_, io]) in hosts.iter_mut().enumerate() {
        assert_eq!(io.store(&number.to_string()), Status::Success, "{number}");
    }
    for (number, [_, io]) in hosts.iter_mut().enumerate() {
        assert_eq!(io.exist(&number.to_string()), Status::Success, "{number}");
    }
}

#[test]
#[ignore = "it takes both cores from tests that look at the clock"]
fn a_thousand_connections_by_tls_are_served_at_once_and_an_idle_one_goes_for_the_next_host() {
    const CONTROLLERS: usize = CONNECTIONS_MAX / 2;
    const WHOLE: usize = CONNECTIONS - CONTROLLERS;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let idle = Duration::from_secs(2);
    let Some(target) = target(CONTROLLERS + 2, idle) else { return };
    let address = target.address;
    let mut hosts = side_by_side(WHOLE, |host| pair_of(address, &name(host)));
    let admins = side_by_side(CONTROLLERS - WHOLE, |host| admin_of(address, &name(WHOLE + host)).unwrap().0);
    let complete = Instant::now();
    assert_eq!(2 * hosts.len() + admins.len(), CONNECTIONS);
    let refused = admin_of(address, &name(CONTROLLERS)).err();
    if complete.elapsed() < idle {
        assert_eq!(refused, Some(Status::ConnectControllerBusy), "none has been idle for long");
    }
    assert_all_are_served(&mut hosts);
    std::thread::sleep((idle + Duration::from_millis(300)).saturating_sub(complete.elapsed()));
    let mut late = [pair_of(address, &name(CONTROLLERS + 1))];
    assert_all_are_served(&mut late);
    // An admin queue that did nothing has gone; whoever has an I/O queue stays, however silent.
    let end = Instant::now() + Duration::from_secs(20);
    while admins.iter().all(|admin| is_open(&admin.socket)) {
        assert!(Instant::now() < end, "none has gone");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_all_are_served(&mut hosts);
}

#[test]
#[ignore = "it takes both cores from tests that look at the clock"]
fn hosts_that_never_finish_a_handshake_by_tls_take_half_of_all_places_and_lock_nobody_out() {
    const STALLED: usize = CONNECTIONS_MAX / 2;
    const WHOLE: usize = (CONNECTIONS - STALLED) / 2;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(target) = target(WHOLE + 8, Duration::from_secs(600)) else { return };
    let address = target.address;
    let mut hosts = side_by_side(WHOLE, |host| pair_of(address, &name(host)));
    let stalled = side_by_side(STALLED, |number| {
        let mut session = client(&keys_of(KEYS[1], &name(number), NQN));
        assert!(!session.handshake().unwrap());
        let hello = output(&mut session);
        let mut queue = Queue::raw(address);
        queue.write(&hello[..hello.len() / 2]);
        queue
    });
    assert_eq!(2 * hosts.len() + stalled.len(), CONNECTIONS);
    std::thread::sleep(Duration::from_millis(1500));
    for number in WHOLE..WHOLE + 8 {
        let mut late = [pair_of(address, &name(number))];
        assert_all_are_served(&mut late);
    }
    // At most one has gone for each connection that came.
    let open = stalled.iter().filter(|queue| is_open(&queue.stream)).count();
    assert!((STALLED - 16..=STALLED).contains(&open), "{open}");
    assert_all_are_served(&mut hosts);
}
