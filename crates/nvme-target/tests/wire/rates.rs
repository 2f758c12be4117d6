//! How fast hosts may go, how many of them there may be, and who waits for whom.

use crate::host::{HOST_NQN, Heard, Host, NQN, PATIENCE, Queue, Target, admin_connect, io_connect, key, value};
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::admin::AdminCommand;
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::fabrics::CONTROLLER_ANY;
use kvssd_nvme_spec::kv::{KvCommand, StoreOptions};
use kvssd_nvme_spec::pdu::Pdu;
use kvssd_nvme_target::{Connection, HostRights, Interest, Rate, Rights, Transport, attend};
use kvssd_types::Nanos;
use std::cell::Cell;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SLOW: &str = "nqn.slow";

fn slow(operations: u64, bytes: u64) -> HostRights {
    let (operations, bytes) = (NonZeroU64::new(operations), NonZeroU64::new(bytes));
    HostRights { rate: Rate { operations_per_second: operations, bytes_per_second: bytes }, ..HostRights::EVERYTHING }
}

fn rights(slow: HostRights) -> Rights {
    Rights::new([(SLOW.to_owned(), slow), (HOST_NQN.to_owned(), HostRights::EVERYTHING)].into(), None)
}

/// Sends 100 commands at once. Half of them by another connection would not help: a host has one rate.
fn send_100(host: &mut Host) {
    let mut bytes = Vec::new();
    for id in 0..100u16 {
        let mut entry = KvCommand::Exist { key: key(b"k") }.entry(1).with_data(DataPointer::NONE);
        entry.command_id = id.into();
        bytes.extend(host.io.bytes(&Pdu::Command { entry, data: &[] }));
    }
    host.io.write(&bytes);
}

#[test]
fn a_host_gets_its_rate_whatever_it_sends() {
    let target = Target::with(|options| options.rights = rights(slow(50, 0)));
    let mut slow = Host::named(target.address, SLOW);
    let begin = Instant::now();
    send_100(&mut slow);
    for id in 0..100 {
        assert_eq!(slow.io.take(id, &[]).status(), Status::KeyDoesNotExist);
    }
    let took = begin.elapsed();
    assert!(took >= Duration::from_millis(1800), "{took:?} for 100 at 50 a second");
    // Its admin queue has no rate: it keeps its controller.
    assert_eq!(slow.admin.ask(AdminCommand::KeepAlive.entry(0), &[]).status(), Status::Success);
}

#[test]
fn others_do_not_wait_for_a_host_that_has_come_to_its_rate() {
    let target = Target::with(|options| options.rights = rights(slow(1, 0)));
    let (mut slow, mut quick) = (Host::named(target.address, SLOW), Host::new(&target));
    // They take a minute and a half, and each store that had to wait for one of them would take a second.
    send_100(&mut slow);
    let begin = Instant::now();
    for index in 0..500usize {
        assert_eq!(quick.store(&(index as u32).to_le_bytes(), &value(index, 100)), Status::Success);
    }
    assert!(begin.elapsed() < Duration::from_secs(60), "the other host waited {:?}", begin.elapsed());
}

#[test]
fn bytes_are_counted_both_ways_and_values_that_wait_do_not_fill_the_memory_of_others() {
    const VALUE: usize = 1 << 20;
    let target = Target::with(|options| {
        options.rights = rights(slow(0, 4 << 20));
        options.limits.values_bytes_max = 16 << 20;
    });
    let (mut host, mut quick) = (Host::named(target.address, SLOW), Host::new(&target));
    let begin = Instant::now();
    for _ in 0..4 {
        assert_eq!(host.store(b"k", &value(1, VALUE)), Status::Success);
        assert_eq!(host.retrieve(b"k", VALUE as u32).unwrap().0, value(1, VALUE));
    }
    let took = begin.elapsed();
    assert!(took >= Duration::from_millis(1500), "{took:?} for 8 MiB at 4 a second");
    // From here on each value of its own takes a quarter of an hour.
    target.subsystem.set_rights(rights(slow(0, 1 << 10)));
    // Many more Stores than the memory of all connections has room for, of which few may be executed soon.
    let store = KvCommand::Store { key: key(b"k"), value_bytes: VALUE as u32, options: StoreOptions::default() };
    for id in 0..40u16 {
        let mut entry = store.entry(1).with_data(DataPointer::Transport { length_bytes: VALUE as u32 });
        entry.command_id = id.into();
        host.io.send(&Pdu::Command { entry, data: &[] });
    }
    let mut asked_for = 0;
    host.io.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (begin, mut last) = (Instant::now(), Instant::now());
    // Until no more are asked for.
    while asked_for == 0 || last.elapsed() < Duration::from_secs(1) {
        let mut byte = [0];
        if host.io.stream.peek(&mut byte).is_ok()
            && let Heard::R2t(id, tag, ..) = host.io.hear()
        {
            asked_for += 1;
            last = Instant::now();
            host.io.send_data(id, tag, &value(2, VALUE));
        }
        // It would wait for memory until the slow one is sent away, which is half a minute.
        let now = Instant::now();
        assert_eq!(quick.store(b"other", &value(3, 100_000)), Status::Success);
        assert!(now.elapsed() < Duration::from_secs(20), "the other host waits for memory");
        assert!(begin.elapsed() < PATIENCE, "no value is asked for");
    }
    assert!((1..=24).contains(&asked_for), "{asked_for} values were asked for");
}

#[test]
fn a_faster_rate_holds_at_once() {
    let target = Target::with(|options| options.rights = rights(slow(1, 0)));
    let mut host = Host::named(target.address, SLOW);
    for _ in 0..2 {
        assert_eq!(host.plain(&KvCommand::Exist { key: key(b"k") }), Status::KeyDoesNotExist);
    }
    target.subsystem.set_rights(rights(slow(100_000, 0)));
    let begin = Instant::now();
    for _ in 0..100 {
        assert_eq!(host.plain(&KvCommand::Exist { key: key(b"k") }), Status::KeyDoesNotExist);
    }
    // At the old rate it would be a minute and a half.
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}

#[test]
fn a_host_has_the_connections_that_it_may_have() {
    let target = Target::with(|options| {
        let rights = HostRights { connections_max: Some(3), ..HostRights::EVERYTHING };
        options.rights = Rights::new([(HOST_NQN.to_owned(), rights)].into(), None);
    });
    let host = Host::new(&target);
    let connect = |queue_id| {
        let mut queue = Queue::greeted(target.address, false, false);
        let status = queue.connect(io_connect(queue_id), host.controller, NQN, HOST_NQN).status();
        (queue, status)
    };
    let third = connect(2);
    assert_eq!((third.1, connect(3).1), (Status::Success, Status::ConnectControllerBusy));
    drop(third);
    let begin = Instant::now();
    while connect(4).1 != Status::Success {
        assert!(begin.elapsed() < PATIENCE, "the place of one that left is not given again");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn who_says_no_name_makes_room_for_who_does() {
    let target = Target::with(|options| {
        options.limits.connections_max = 16;
        options.limits.connect_ns = Nanos(60_000_000_000);
    });
    let mut silent: Vec<Queue> = (0..8).map(|_| Queue::greeted(target.address, false, false)).collect();
    std::thread::sleep(Duration::from_millis(1200));
    let mut host = Host::new(&target);
    assert_eq!(host.store(b"k", b"v"), Status::Success);
    assert_eq!(silent[0].hear(), Heard::Closed, "the oldest goes");
    let got = silent[7].connect(admin_connect(0), CONTROLLER_ANY, NQN, HOST_NQN);
    assert_eq!(got.status(), Status::Success, "the youngest may go on");
}

/// A peer that says nothing and takes nothing.
struct Silent {
    is_waited_for: bool,
}

impl Transport for Silent {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn wait(&mut self, _: Interest, _: Nanos) -> bool {
        false
    }

    fn end_output(&mut self) -> io::Result<()> {
        self.is_waited_for = true;
        Ok(())
    }
}

/// It would keep a thread of those that are left to hosts with names.
#[test]
fn who_finds_no_place_is_not_waited_for() {
    let target = Target::with(|options| options.limits.connections_max = 2);
    let subsystem = || Arc::clone(&target.subsystem);
    let _the_only_place = Connection::new(subsystem(), target.address, Nanos::ZERO);
    let (mut peer, clock) = (Silent { is_waited_for: false }, Cell::new(0));
    let now = || {
        clock.set(clock.get() + 100_000_000);
        Nanos(clock.get())
    };
    attend(subsystem(), target.address, &mut peer, now, || false).unwrap();
    assert!(!peer.is_waited_for);
}
