//! Long runs, which are asked for by name: `cargo test --release -p kvssd-nvme-target --test wire -- --ignored --nocapture`.

use crate::host::{HOST_NQN, Host, NQN, Queue, Target, io_connect, key, value};
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::kv::{KvCommand, StoreOptions};
use kvssd_nvme_spec::pdu::{Decoded, Pdu, Sender};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

const CONNECTIONS: u16 = 8;
const DEPTH: u16 = 32;
const KEYS: u64 = 20_000;

/// Commands of the soak; the environment can ask for fewer.
fn commands() -> u64 {
    std::env::var("KVSSD_SOAK_COMMANDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000_000)
}

/// Bytes of this process that are in memory; the target's and the hosts'.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// The `number`-th command of a connection, with its data.
fn command(connection: u16, number: u64) -> (KvCommand, Vec<u8>) {
    let random = kvssd_types::mix64(number << 8 | u64::from(connection));
    let name = key(&(random % KEYS).to_le_bytes());
    match random >> 32 & 15 {
        0..=5 => {
            let value = value(number as usize, (random >> 40) as usize % 1500);
            let options = StoreOptions::default();
            (KvCommand::Store { key: name, value_bytes: value.len() as u32, options }, value)
        }
        6..=12 => (KvCommand::Retrieve { key: name, buffer_bytes: 4096 }, Vec::new()),
        13 => (KvCommand::Delete { key: name }, Vec::new()),
        14 => (KvCommand::Exist { key: name }, Vec::new()),
        _ => (KvCommand::List { from: Some(name), buffer_bytes: 256 }, Vec::new()),
    }
}

/// Sends `count` commands, `depth` at a time, and takes their answers.
fn pipeline(queue: &mut Queue, count: u64, depth: u16, make: impl Fn(u64) -> (KvCommand, Vec<u8>)) {
    let (mut sent, mut answered) = (0u64, 0u64);
    let (mut input, mut piece, mut output) = (Vec::new(), vec![0; 256 << 10], Vec::new());
    while answered < count {
        output.clear();
        while sent < count && sent - answered < depth.into() {
            let (command, data) = make(sent);
            let length_bytes = data.len() as u32;
            let pointer = match command {
                KvCommand::Store { .. } => DataPointer::InCapsule { offset_bytes: 0, length_bytes },
                KvCommand::Retrieve { buffer_bytes, .. } | KvCommand::List { buffer_bytes, .. } => {
                    DataPointer::Transport { length_bytes: buffer_bytes }
                }
                _ => DataPointer::NONE,
            };
            let mut entry = command.entry(1).with_data(pointer);
            entry.command_id = (sent as u16).into();
            Pdu::Command { entry, data: &data }.encode(&queue.framing, &mut output);
            sent += 1;
        }
        queue.stream.write_all(&output).unwrap();
        let got = queue.stream.read(&mut piece).unwrap();
        assert!(got > 0, "the target closed the connection");
        input.extend_from_slice(&piece[..got]);
        let mut at = 0;
        while let Decoded::Pdu { pdu, bytes, .. } =
            Pdu::decode(&input[at..], Sender::Controller, &queue.framing).unwrap()
        {
            if let Pdu::Response(entry) = pdu {
                assert!(matches!(entry.status(), Ok(Status::Success | Status::KeyDoesNotExist)), "{entry:?}");
                answered += 1;
            }
            at += bytes;
        }
        input.drain(..at);
    }
}

#[test]
#[ignore = "it takes minutes"]
fn ten_million_commands_on_eight_connections_leave_the_memory_flat() {
    const ROUNDS: u64 = 10;
    // All of its flash is written some times in the first rounds: the drive's tables are as full as they get.
    let target = Target::over(256 << 20, |_| {}, |_| {});
    let mut host = Host::new(&target);
    let mut queues: Vec<Queue> = (2..=CONNECTIONS)
        .map(|number| {
            let mut queue = Queue::greeted(target.address, false, false);
            let got = queue.connect(io_connect(number), host.controller, NQN, HOST_NQN);
            assert_eq!(got.status(), Status::Success);
            queue
        })
        .collect();
    let each = commands() / ROUNDS / u64::from(CONNECTIONS);
    let begin = Instant::now();
    let mut sizes = Vec::new();
    for round in 0..ROUNDS {
        std::thread::scope(|scope| {
            for (connection, queue) in std::iter::once(&mut host.io).chain(&mut queues).enumerate() {
                scope.spawn(move || {
                    pipeline(queue, each, DEPTH, |number| command(connection as u16, round * each + number));
                });
            }
        });
        sizes.push(resident_bytes());
        let done = (round + 1) * each * u64::from(CONNECTIONS);
        let rate = done as f64 / begin.elapsed().as_secs_f64();
        println!("{done} commands, {rate:.0} a second, {} MiB resident", sizes[round as usize] >> 20);
    }
    let (early, late) = (sizes[2], sizes[ROUNDS as usize - 1]);
    assert!(late < early + early / 10 + (8 << 20), "{early} bytes early, {late} bytes late");
}

#[test]
#[ignore = "it measures"]
fn how_fast_a_retrieve_of_4_kib_is() {
    let target = Target::over(1 << 30, |_| {}, |_| {});
    let mut host = Host::new(&target);
    pipeline(&mut host.io, 10_000, 64, |number| {
        let options = StoreOptions::default();
        (KvCommand::Store { key: key(&number.to_le_bytes()), value_bytes: 4096, options }, vec![number as u8; 4096])
    });
    let mut times: Vec<Duration> = (0..20_000u64)
        .map(|number| {
            let begin = Instant::now();
            host.retrieve(&(number * 7919 % 10_000).to_le_bytes(), 4096).unwrap();
            begin.elapsed()
        })
        .collect();
    times.sort();
    println!("depth 1: p50 {:?}, p99 {:?}", times[times.len() / 2], times[times.len() * 99 / 100]);
    for depth in [32, 126] {
        let retrieve = |number: u64| {
            (KvCommand::Retrieve { key: key(&(number * 7919 % 10_000).to_le_bytes()), buffer_bytes: 4096 }, Vec::new())
        };
        let store = |number: u64| {
            let (key, options) = (key(&(number * 7919 % 10_000).to_le_bytes()), StoreOptions::default());
            (KvCommand::Store { key, value_bytes: 4096, options }, vec![number as u8; 4096])
        };
        let begin = Instant::now();
        pipeline(&mut host.io, 300_000, depth, retrieve);
        println!("depth {depth}: {:.0} retrieves a second", 300_000.0 / begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        pipeline(&mut host.io, 50_000, depth, store);
        println!("depth {depth}: {:.0} stores a second", 50_000.0 / begin.elapsed().as_secs_f64());
    }
}
