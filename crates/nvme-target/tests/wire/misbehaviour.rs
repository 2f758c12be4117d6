//! Invalid PDUs, timeouts, and hosts that are not admitted.

use crate::host::{
    HOST_ID, HOST_NQN, Heard, Host, NQN, PATIENCE, Queue, Target, admin_connect, io_connect, key, value,
};
use kvssd_nvme_spec::admin::AdminCommand;
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::fabrics::{CONTROLLER_ANY, Connect, ConnectData, FabricsCommand};
use kvssd_nvme_spec::kv::{KvCommand, StoreOptions};
use kvssd_nvme_spec::pdu::{DataHeader, FaultStatus, Framing, IcRequest, Pdu, Sender};
use kvssd_nvme_spec::{Status, SubmissionEntry};
use kvssd_nvme_target::{Connection, Rights};
use kvssd_types::Nanos;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;

fn is_ended_with(queue: &mut Queue, status: FaultStatus) {
    match queue.hear() {
        Heard::Terminate(fault) => assert_eq!(fault.status, status),
        other => panic!("{other:?} instead of {status:?}"),
    }
    assert_eq!(queue.hear(), Heard::Closed);
}

#[test]
fn many_pdus_in_one_write_are_answered_each() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let mut bytes = Vec::new();
    let values: Vec<_> = (0..100usize).map(|index| value(index, index * 40)).collect();
    for (index, value) in values.iter().enumerate() {
        let name = (index as u32).to_le_bytes();
        let store =
            KvCommand::Store { key: key(&name), value_bytes: value.len() as u32, options: StoreOptions::default() };
        let pointer = DataPointer::InCapsule { offset_bytes: 0, length_bytes: value.len() as u32 };
        let mut entry = store.entry(1).with_data(pointer);
        entry.command_id = (index as u16).into();
        bytes.extend(host.io.bytes(&Pdu::Command { entry, data: value }));
    }
    // In pieces that know nothing of PDUs.
    for piece in bytes.chunks(9973) {
        host.io.write(piece);
    }
    for index in 0..100 {
        assert_eq!(host.io.take(index, &[]).status(), Status::Success);
    }
    let mut bytes = Vec::new();
    for index in 0..100u16 {
        let retrieve = KvCommand::Retrieve { key: key(&u32::from(index).to_le_bytes()), buffer_bytes: 4096 };
        let mut entry = retrieve.entry(1).with_data(DataPointer::Transport { length_bytes: 4096 });
        entry.command_id = index.into();
        bytes.extend(host.io.bytes(&Pdu::Command { entry, data: &[] }));
    }
    host.io.write(&bytes);
    for (index, value) in values.iter().enumerate() {
        assert_eq!(host.io.take(index as u16, &[]).data, *value);
    }
}

#[test]
fn a_pdu_that_cannot_be_ends_the_connection_and_says_why() {
    let target = Target::new();
    let command = |entry| Pdu::Command { entry, data: &[] };
    let fresh = || Queue::raw(target.address);
    let mut early = fresh();
    early.send(&command(SubmissionEntry::new(0x7f, 1)));
    is_ended_with(&mut early, FaultStatus::Sequence);
    let mut twice = Queue::greeted(target.address, false, false);
    twice.send(&Pdu::IcRequest(IcRequest::new(false, false, 1)));
    is_ended_with(&mut twice, FaultStatus::Sequence);
    let mut version = fresh();
    let mut bytes = version.bytes(&Pdu::IcRequest(IcRequest::new(false, false, 1)));
    bytes[8] = 9;
    version.write(&bytes);
    is_ended_with(&mut version, FaultStatus::UnsupportedParameter);
    for (at, byte) in [(0, 1), (0, 8), (0, 200), (1, 1), (2, 71), (4, 0), (7, 1)] {
        let mut queue = Queue::greeted(target.address, false, false);
        let mut bytes = queue.bytes(&command(SubmissionEntry::new(0x7f, 1)));
        bytes[at] = byte;
        queue.write(&bytes);
        is_ended_with(&mut queue, FaultStatus::InvalidHeader);
    }
    let mut digest = Queue::greeted(target.address, true, false);
    let mut bytes = digest.bytes(&command(SubmissionEntry::new(0x7f, 1)));
    bytes[20] ^= 1;
    digest.write(&bytes);
    is_ended_with(&mut digest, FaultStatus::HeaderDigest);
    let mut garbage = fresh();
    garbage.write(&[0xa5; 300]);
    is_ended_with(&mut garbage, FaultStatus::InvalidHeader);
    // The next host finds nothing of that.
    assert_eq!(Host::new(&target).store(b"k", b"v"), Status::Success);
}

#[test]
fn data_that_was_not_asked_for_ends_the_connection() {
    let target = Target::new();
    type Wrong = fn(u16, u16) -> (DataHeader, bool, usize);
    let cases: [(Wrong, FaultStatus); 6] = [
        (|id, tag| (DataHeader::new(id, tag + 1, 0, 100), false, 100), FaultStatus::InvalidHeader),
        (|id, tag| (DataHeader::new(id + 1, tag, 0, 100), false, 100), FaultStatus::InvalidHeader),
        (|id, tag| (DataHeader::new(id, tag, 4, 100), false, 100), FaultStatus::DataOutOfRange),
        (|id, tag| (DataHeader::new(id, tag, 0, 20_000), true, 20_000), FaultStatus::DataOutOfRange),
        (|id, tag| (DataHeader::new(id, tag, 0, 100), true, 100), FaultStatus::InvalidHeader),
        (|id, tag| (DataHeader::new(id, tag, 0, 200_000), false, 200_000), FaultStatus::LimitExceeded),
    ];
    for (wrong, status) in cases {
        let mut host = Host::new(&target);
        let store = KvCommand::Store { key: key(b"k"), value_bytes: 10_000, options: StoreOptions::default() };
        let mut entry = store.entry(1).with_data(DataPointer::Transport { length_bytes: 10_000 });
        entry.command_id = 40.into();
        host.io.send(&Pdu::Command { entry, data: &[] });
        let Heard::R2t(id, tag, 0, 10_000) = host.io.hear() else { panic!("no R2T") };
        let (header, is_last, length) = wrong(id, tag);
        let data = vec![1; length];
        let pdu = Pdu::Data { sender: Sender::Host, header, is_last, is_success: false, data: &data };
        let bytes = host.io.bytes(&pdu);
        let _ = host.io.stream.write_all(&bytes);
        is_ended_with(&mut host.io, status);
    }
    assert_eq!(Host::new(&target).retrieve(b"k", 10), Err(Status::KeyDoesNotExist));
}

#[test]
fn data_that_was_changed_on_its_way_is_not_stored() {
    let target = Target::with(|options| options.data_digest = true);
    let mut host = Host::with_digests(target.address, true, true);
    let store = |value_bytes| KvCommand::Store { key: key(b"k"), value_bytes, options: StoreOptions::default() };
    let mut entry = store(100).entry(1).with_data(DataPointer::InCapsule { offset_bytes: 0, length_bytes: 100 });
    entry.command_id = 1.into();
    let mut bytes = host.io.bytes(&Pdu::Command { entry, data: &[1; 100] });
    bytes[90] ^= 1;
    host.io.write(&bytes);
    assert_eq!(host.io.take(1, &[]).status(), Status::TransientTransportError);
    let mut entry = store(9000).entry(1).with_data(DataPointer::Transport { length_bytes: 9000 });
    entry.command_id = 2.into();
    host.io.send(&Pdu::Command { entry, data: &[] });
    let Heard::R2t(2, tag, 0, 9000) = host.io.hear() else { panic!("no R2T") };
    let header = DataHeader::new(2, tag, 0, 9000);
    let pdu = Pdu::Data { sender: Sender::Host, header, is_last: true, is_success: false, data: &[1; 9000] };
    let mut bytes = host.io.bytes(&pdu);
    *bytes.last_mut().unwrap() ^= 1;
    host.io.write(&bytes);
    assert_eq!(host.io.take(2, &[]).status(), Status::TransientTransportError);
    assert_eq!(host.retrieve(b"k", 1), Err(Status::KeyDoesNotExist));
    assert_eq!(host.store(b"k", b"v"), Status::Success);
    // Without the option nobody gets data digests, whatever they ask for.
    let plain = Target::new();
    assert!(!Queue::greeted(plain.address, true, true).framing.data_digest);
}

#[test]
fn a_connect_that_cannot_be_is_refused_with_its_reason() {
    let target = Target::with(|options| options.rights = Rights::only([HOST_NQN.to_owned()]));
    let mut queue = Queue::greeted(target.address, false, false);
    let early = queue.ask(AdminCommand::KeepAlive.entry(0), &[]);
    assert_eq!(early.status(), Status::CommandSequenceError);
    let mut refused = |connect: Connect, controller, nqn: &str, host: &str| {
        let got = queue.connect(connect, controller, nqn, host);
        (got.status(), got.entry.dword0.get())
    };
    let plain = admin_connect(0);
    let invalid = Status::ConnectInvalidParameters;
    assert_eq!(
        refused(Connect { format: 1, ..plain }, CONTROLLER_ANY, NQN, HOST_NQN).0,
        Status::ConnectIncompatibleFormat
    );
    assert_eq!(refused(Connect { queue_size: 0, ..plain }, CONTROLLER_ANY, NQN, HOST_NQN), (invalid, 44));
    assert_eq!(refused(Connect { queue_size: 4096, ..plain }, CONTROLLER_ANY, NQN, HOST_NQN), (invalid, 44));
    assert_eq!(refused(plain, CONTROLLER_ANY, "nqn.other", HOST_NQN), (invalid, 256 | 1 << 16));
    assert_eq!(refused(plain, CONTROLLER_ANY, NQN, "").0, Status::ConnectInvalidHost);
    assert_eq!(refused(plain, 3, NQN, HOST_NQN), (invalid, 16 | 1 << 16));
    assert_eq!(refused(io_connect(1), 99, NQN, HOST_NQN), (invalid, 16 | 1 << 16));
    assert_eq!(refused(plain, CONTROLLER_ANY, NQN, "nqn.stranger").0, Status::ConnectInvalidHost);
    let host = Host::new(&target);
    let mut second = Queue::greeted(target.address, false, false);
    assert_eq!(second.connect(io_connect(1), host.controller, NQN, HOST_NQN).status(), invalid, "queue 1 is taken");
    assert_eq!(second.connect(io_connect(99), host.controller, NQN, HOST_NQN).status(), invalid);
    assert_eq!(second.connect(io_connect(2), host.controller, NQN, HOST_NQN).status(), Status::Success);
    let again = second.ask(SubmissionEntry::from(FabricsCommand::Connect(io_connect(3))), &[]);
    assert_eq!(again.status(), Status::CommandSequenceError);
}

#[test]
fn who_says_nothing_is_sent_away() {
    let target = Target::with(|options| {
        options.limits.connect_ns = Nanos(300_000_000);
        options.limits.transfer_ns = Nanos(300_000_000);
    });
    let begin = Instant::now();
    assert_eq!(Queue::raw(target.address).hear(), Heard::Closed);
    assert_eq!(Queue::greeted(target.address, false, false).hear(), Heard::Closed);
    let mut host = Host::new(&target);
    let store = KvCommand::Store { key: key(b"k"), value_bytes: 9000, options: StoreOptions::default() };
    host.io.send(&Pdu::Command {
        entry: store.entry(1).with_data(DataPointer::Transport { length_bytes: 9000 }),
        data: &[],
    });
    assert!(matches!(host.io.hear(), Heard::R2t(..)));
    assert_eq!(host.io.hear(), Heard::Closed);
    assert!(begin.elapsed() < Duration::from_secs(8));
    assert_eq!(host.admin.ask(AdminCommand::KeepAlive.entry(0), &[]).status(), Status::Success);
}

#[test]
fn a_controller_whose_host_keeps_silent_ends_with_its_queues() {
    let target = Target::new();
    let mut admin = Queue::greeted(target.address, false, false);
    let got = admin.connect(admin_connect(4000), CONTROLLER_ANY, NQN, HOST_NQN);
    admin.set_configuration(kvssd_nvme_spec::fabrics::Configuration::KEY_VALUE);
    let mut io = Queue::greeted(target.address, false, false);
    assert_eq!(io.connect(io_connect(1), got.entry.result() as u16, NQN, HOST_NQN).status(), Status::Success);
    let begin = Instant::now();
    // Longer than it is kept without them, each of them long before its end.
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(900));
        assert_eq!(admin.ask(AdminCommand::KeepAlive.entry(0), &[]).status(), Status::Success);
    }
    assert!(begin.elapsed() > Duration::from_millis(4400));
    assert_eq!(admin.hear(), Heard::Closed);
    assert_eq!(io.hear(), Heard::Closed);
}

/// While its thread waits for the drive nobody reads what a host says: that is read before it counts as silence.
#[test]
fn a_host_that_was_kept_waiting_by_the_drive_was_not_silent() {
    let target = Target::new();
    let seconds = |seconds: u64| Nanos(seconds * 1_000_000_000);
    let mut connection = Connection::new(Arc::clone(&target.subsystem), target.address, Nanos::ZERO);
    let say = |connection: &mut Connection, pdu: &Pdu<'_>, now: Nanos| {
        let mut bytes = Vec::new();
        pdu.encode(&Framing::INITIAL, &mut bytes);
        let mut unread = &bytes[..];
        while !unread.is_empty() {
            let count = unread.read(connection.input_buffer()).unwrap();
            connection.received(count);
            connection.process_input(now);
        }
    };
    let keep_alive = Pdu::Command { entry: AdminCommand::KeepAlive.entry(0), data: &[] };
    say(&mut connection, &Pdu::IcRequest(IcRequest::new(false, false, 1)), Nanos::ZERO);
    let data = ConnectData::new(HOST_ID, CONTROLLER_ANY, NQN, HOST_NQN);
    let pointer = DataPointer::InCapsule { offset_bytes: 0, length_bytes: 1024 };
    let entry = SubmissionEntry::from(FabricsCommand::Connect(admin_connect(4000))).with_data(pointer);
    say(&mut connection, &Pdu::Command { entry, data: data.as_bytes() }, Nanos::ZERO);
    for minute in 1..4 {
        // The drive keeps the first for a minute; the other has come meanwhile.
        say(&mut connection, &keep_alive, seconds(60 * (minute - 1)));
        connection.produce_output(seconds(60 * minute));
        say(&mut connection, &keep_alive, seconds(60 * minute));
        connection.produce_output(seconds(60 * minute));
        assert!(!connection.has_ended(), "after {minute} minutes");
    }
    for _ in 0..2 {
        assert!(!connection.has_ended());
        connection.process_input(seconds(190));
        connection.produce_output(seconds(190));
    }
    assert!(connection.has_ended(), "nothing has come");
}

#[test]
fn more_commands_than_the_queue_has_entries_end_the_connection() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let store = KvCommand::Store { key: key(b"k"), value_bytes: 9000, options: StoreOptions::default() };
    for id in 0..129u16 {
        let mut entry = store.entry(1).with_data(DataPointer::Transport { length_bytes: 9000 });
        entry.command_id = id.into();
        host.io.send(&Pdu::Command { entry, data: &[] });
    }
    loop {
        match host.io.hear() {
            Heard::R2t(..) => {}
            Heard::Terminate(fault) => break assert_eq!(fault.status, FaultStatus::Sequence),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn two_commands_of_one_name_are_not_taken() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let store = KvCommand::Store { key: key(b"k"), value_bytes: 9000, options: StoreOptions::default() };
    let mut entry = store.entry(1).with_data(DataPointer::Transport { length_bytes: 9000 });
    entry.command_id = 5.into();
    host.io.send(&Pdu::Command { entry, data: &[] });
    assert!(matches!(host.io.hear(), Heard::R2t(5, ..)));
    host.io.send(&Pdu::Command { entry, data: &[] });
    assert_eq!(host.io.take(5, &[]).status(), Status::CommandIdConflict);
    // The first one is outstanding still, and has its identifier and its entry.
    for _ in 0..3 {
        host.io.send(&Pdu::Command { entry, data: &[] });
        assert_eq!(host.io.take(5, &[]).status(), Status::CommandIdConflict);
    }
}

/// An admin queue of a host, and what its Connect got.
fn admin_of(target: &Target, host: &str) -> (Queue, Status) {
    let mut queue = Queue::greeted(target.address, false, false);
    let status = queue.connect(admin_connect(0), CONTROLLER_ANY, NQN, host).status();
    (queue, status)
}

#[test]
fn controllers_are_bounded_and_a_quarter_is_kept_for_hosts_that_have_none() {
    let target = Target::with(|options| options.limits.connections_max = 32);
    let many: Vec<_> = (0..12).map(|_| admin_of(&target, HOST_NQN)).collect();
    assert!(many.iter().all(|(_, status)| *status == Status::Success));
    assert_eq!(admin_of(&target, HOST_NQN).1, Status::ConnectControllerBusy);
    let others: Vec<_> = (0..4).map(|host| admin_of(&target, &format!("nqn.other:{host}"))).collect();
    assert!(others.iter().all(|(_, status)| *status == Status::Success));
    assert_eq!(admin_of(&target, "nqn.late").1, Status::ConnectControllerBusy);
}

#[test]
fn a_host_without_a_name_is_served_where_anybody_is() {
    let target = Target::new();
    let mut admin = Queue::greeted(target.address, false, false);
    let got = admin.connect(admin_connect(0), CONTROLLER_ANY, NQN, "");
    assert_eq!(got.status(), Status::Success);
    admin.set_configuration(kvssd_nvme_spec::fabrics::Configuration::KEY_VALUE);
    let mut io = Queue::greeted(target.address, false, false);
    assert_eq!(io.connect(io_connect(1), got.entry.result() as u16, NQN, "").status(), Status::Success);
}

#[test]
fn idle_admin_queues_do_not_lock_other_hosts_out() {
    // Where others take the cores, all of them are idle for longer, and still none for long.
    let is_quick = [3, 12, 48].into_iter().any(|seconds| idle_admin_queues(Duration::from_secs(seconds)));
    assert!(is_quick, "this machine is too slow for it");
}

/// Whether none was idle for that long before it was meant to be.
fn idle_admin_queues(idle_for: Duration) -> bool {
    let target = Target::with(|options| {
        options.limits.idle_ns = Nanos(idle_for.as_nanos() as u64);
        options.limits.connections_max = 64;
    });
    let mut busy = Host::new(&target);
    let mut hosts = 0;
    let began = Instant::now();
    let mut connect = || {
        hosts += 1;
        admin_of(&target, &format!("nqn.idle:{hosts}"))
    };
    let mut idle: Vec<_> = (1..32).map(|_| connect()).collect();
    assert!(idle.iter().all(|(_, status)| *status == Status::Success));
    let one_more = connect().1;
    if began.elapsed() > idle_for {
        return false;
    }
    assert_eq!(one_more, Status::ConnectControllerBusy, "none has been idle for long");
    std::thread::sleep(idle_for + Duration::from_millis(300));
    // The second says something.
    let began = Instant::now();
    assert_eq!(idle[1].0.ask(AdminCommand::KeepAlive.entry(0), &[]).status(), Status::Success);
    let mut host = Host::named(target.address, "nqn.late");
    assert_eq!(host.store(b"k", b"v"), Status::Success);
    assert_eq!(idle[0].0.hear(), Heard::Closed, "the one that was silent for longest goes");
    // The connections of those that end close soon.
    let pause = Duration::from_millis(60);
    let mut later: Vec<_> = (0..29).map(|_| (connect(), std::thread::sleep(pause)).0).collect();
    assert!(later.iter().all(|(_, status)| *status == Status::Success));
    assert_eq!(idle[1].0.ask(AdminCommand::KeepAlive.entry(0), &[]).status(), Status::Success);
    let one_more = connect().1;
    if began.elapsed() > idle_for {
        return false;
    }
    assert_eq!(one_more, Status::ConnectControllerBusy, "those that are left are in use, or have just come");
    assert_eq!(later[28].0.ask(AdminCommand::KeepAlive.entry(0), &[]).status(), Status::Success);
    assert_eq!(idle[1].0.ask(AdminCommand::KeepAlive.entry(0), &[]).status(), Status::Success);
    // Who has an I/O queue stays, however silent.
    assert_eq!((busy.store(b"k", b"w"), host.store(b"k", b"x")), (Status::Success, Status::Success));
    true
}

#[test]
fn connections_are_bounded() {
    let target = Target::with(|options| options.limits.connections_max = 3);
    // Half of all places are for peers without a name, which is one here: each says its own before the next one comes.
    let mut host = Host::new(&target);
    let mut third = Queue::greeted(target.address, false, false);
    assert_eq!(third.connect(io_connect(2), host.controller, NQN, HOST_NQN).status(), Status::Success);
    assert_eq!(Queue::raw(target.address).hear(), Heard::Closed);
    // None of the three was taken for that.
    assert_eq!(
        (host.store(b"k", b"v"), host.plain(&KvCommand::Exist { key: key(b"k") })),
        (Status::Success, Status::Success)
    );
    let exist = KvCommand::Exist { key: key(b"k") }.entry(1).with_data(DataPointer::NONE);
    assert_eq!(third.ask(exist, &[]).status(), Status::Success);
    drop(third);
    let begin = Instant::now();
    loop {
        let mut queue = Queue::raw(target.address);
        queue.send(&Pdu::IcRequest(IcRequest::new(false, false, 1)));
        if matches!(queue.hear(), Heard::Greeting(..)) {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "the place of one that left is not given again");
        std::thread::sleep(Duration::from_millis(50));
    }
}
