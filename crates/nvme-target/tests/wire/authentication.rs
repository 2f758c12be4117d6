//! Hosts that must prove who they are: what a queue answers before, and after.

use crate::host::{Got, HOST_NQN, Heard, Host, NQN, Queue, Target, admin_connect, io_connect, key};
use kvssd_nvme_auth::{Credentials, HostSide, MESSAGE_BYTES_MAX, Offer, Parties, Progress, RANDOMNESS_BYTES};
use kvssd_nvme_auth::{Randomness, Secret};
use kvssd_nvme_spec::admin::AdminCommand;
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::fabrics::{
    AUTHENTICATION_IN_BAND, CONTROLLER_ANY, Configuration, DISCOVERY_NQN, FabricsCommand, Security, property,
};
use kvssd_nvme_spec::kv::KvCommand;
use kvssd_nvme_spec::{Status, SubmissionEntry};
use kvssd_nvme_target::{HostRights, Rights};
use kvssd_types::Nanos;
use std::sync::Arc;

const HOST_SECRET: &str = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const CONTROLLER_SECRET: &str = "DHHC-1:02:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTvGwQfg==:";

fn credentials(is_mutual: bool) -> Credentials {
    let secret = |text| Secret::parse(text).unwrap();
    Credentials { host: secret(HOST_SECRET), controller: is_mutual.then(|| secret(CONTROLLER_SECRET)) }
}

fn rights(credentials: Option<Credentials>) -> Rights {
    let rights = HostRights { authentication: credentials.map(Arc::new), ..HostRights::EVERYTHING };
    Rights::new([(HOST_NQN.to_owned(), rights)].into(), None)
}

fn target() -> Target {
    Target::with(|options| options.rights = rights(Some(credentials(true))))
}

fn side(credentials: Credentials, host: &str) -> HostSide {
    let parties = Parties { host: host.to_owned(), subsystem: NQN.to_owned() };
    HostSide::new(credentials, parties, Randomness::new(&[9; RANDOMNESS_BYTES].into()), Offer::default(), 5)
}

fn send(queue: &mut Queue, message: &[u8]) -> Status {
    let length_bytes = message.len() as u32;
    let command = FabricsCommand::AuthenticationSend(Security::authentication(length_bytes));
    let pointer = DataPointer::InCapsule { offset_bytes: 0, length_bytes };
    queue.ask(SubmissionEntry::from(command).with_data(pointer), message).status()
}

fn receive(queue: &mut Queue) -> Got {
    let length_bytes = MESSAGE_BYTES_MAX as u32;
    let command = FabricsCommand::AuthenticationReceive(Security::authentication(length_bytes));
    queue.ask(SubmissionEntry::from(command).with_data(DataPointer::Transport { length_bytes }), &[])
}

/// Exchanges messages as far as both go on; gives how the host's side ends.
fn prove(queue: &mut Queue, mut side: HostSide) -> Progress {
    loop {
        if let Some(message) = side.message() {
            assert_eq!(send(queue, &message), Status::Success);
        }
        if side.progress() != Progress::UnderWay {
            return side.progress();
        }
        let got = receive(queue);
        assert_eq!(got.status(), Status::Success);
        side.receive(&got.data);
    }
}

/// A queue that is connected, and has proved nothing; and its controller.
fn connected(target: &Target) -> (Queue, u16) {
    let mut queue = Queue::greeted(target.address, false, false);
    let got = queue.connect(admin_connect(0), CONTROLLER_ANY, NQN, HOST_NQN);
    assert_eq!((got.status(), got.entry.result() >> 16 << 16), (Status::Success, AUTHENTICATION_IN_BAND));
    (queue, got.entry.result() as u16)
}

#[test]
fn a_host_that_proves_who_it_is_is_served_one_way_and_both_ways() {
    let target = target();
    for is_mutual in [false, true] {
        let (mut admin, controller) = connected(&target);
        assert_eq!(prove(&mut admin, side(credentials(is_mutual), HOST_NQN)), Progress::Authenticated);
        admin.set_configuration(Configuration::KEY_VALUE);
        // Each queue has a connection, and is to prove who it belongs to.
        let mut io = Queue::greeted(target.address, false, false);
        let got = io.connect(io_connect(1), controller, NQN, HOST_NQN);
        assert_eq!(got.entry.result(), u64::from(controller) | AUTHENTICATION_IN_BAND);
        let entry = KvCommand::Exist { key: key(b"k") }.entry(1).with_data(DataPointer::NONE);
        assert_eq!(io.ask(entry, &[]).status(), Status::AuthenticationRequired);
        assert_eq!(prove(&mut io, side(credentials(is_mutual), HOST_NQN)), Progress::Authenticated);
        assert_eq!(io.ask(entry, &[]).status(), Status::KeyDoesNotExist);
        // Not again on a queue that has it.
        assert_eq!(send(&mut io, &[0; 72]), Status::InvalidField);
        assert_eq!(receive(&mut admin).status(), Status::InvalidField);
    }
}

#[test]
fn a_queue_that_has_proved_nothing_answers_nothing_else() {
    let target = target();
    let (mut queue, _) = connected(&target);
    for opcode in 0..=0xff {
        for kind in if opcode == 0x7f { 0..=0xffu32 } else { 0..=1 } {
            let is_authentication = opcode == 0x7f && matches!(kind, 5 | 6);
            let entry = SubmissionEntry::new(opcode, kind).with_data(DataPointer::NONE);
            // One without a protocol.
            let wanted = if is_authentication { Status::InvalidField } else { Status::AuthenticationRequired };
            assert_eq!(queue.ask(entry, &[]).status(), wanted, "opcode {opcode:x}h, {kind:x}h");
        }
    }
    let set = FabricsCommand::PropertySet { offset: property::CONFIGURATION, is_wide: false, value: 1 };
    assert_eq!(queue.ask(set.into(), &[]).status(), Status::AuthenticationRequired);
    assert_eq!(queue.admin(AdminCommand::KeepAlive, 0, 0).status(), Status::AuthenticationRequired);
    assert_eq!(receive(&mut queue).status(), Status::CommandSequenceError, "it is the host's turn");
    // All of that has changed nothing.
    assert_eq!(prove(&mut queue, side(credentials(true), HOST_NQN)), Progress::Authenticated);
    queue.set_configuration(Configuration::KEY_VALUE);
}

#[test]
fn who_proves_nothing_is_told_and_sent_away() {
    let target = target();
    let other = Secret::parse(CONTROLLER_SECRET).unwrap();
    for side in [
        side(Credentials { host: other, controller: None }, HOST_NQN),
        side(credentials(false), "nqn.somebody"),
        side(Credentials { controller: Some(Secret::parse(HOST_SECRET).unwrap()), ..credentials(true) }, HOST_NQN),
    ] {
        let (mut queue, _) = connected(&target);
        assert!(matches!(prove(&mut queue, side), Progress::Failed(_)));
        assert_eq!(queue.hear(), Heard::Closed);
    }
    for message in [&[0xa5; 4][..], &[0; 72], &[0xff; 4000]] {
        let (mut queue, _) = connected(&target);
        assert_eq!(send(&mut queue, message), Status::Success);
        let failure = receive(&mut queue).data;
        assert_eq!((failure[1], failure.len()), (0xf1, 8));
        assert_eq!(queue.hear(), Heard::Closed);
    }
    // There is room for all of them again, and the next host finds nothing of that.
    let (mut queue, _) = connected(&target);
    assert_eq!(prove(&mut queue, side(credentials(true), HOST_NQN)), Progress::Authenticated);
}

#[test]
fn who_takes_too_long_is_sent_away_and_discovery_asks_for_nothing() {
    let target = Target::with(|options| {
        options.rights = rights(Some(credentials(true)));
        options.limits.connect_ns = Nanos(500_000_000);
    });
    let (mut queue, _) = connected(&target);
    assert_eq!(queue.hear(), Heard::Closed);
    let mut discovery = Queue::greeted(target.address, false, false);
    let got = discovery.connect(admin_connect(0), CONTROLLER_ANY, DISCOVERY_NQN, HOST_NQN);
    assert_eq!((got.status(), got.entry.result() >> 16), (Status::Success, 0));
}

/// Who says a name and proves nothing takes no place of who can, however long he stays.
#[test]
fn discovery_in_the_name_of_a_host_takes_none_of_its_places() {
    let target = Target::with(|options| {
        let authentication = Some(Arc::new(credentials(false)));
        let rights = HostRights { authentication, connections_max: Some(2), ..HostRights::EVERYTHING };
        options.rights = Rights::new([(HOST_NQN.to_owned(), rights)].into(), None);
        options.limits.connections_max = 16;
    });
    let discover = || {
        let mut queue = Queue::greeted(target.address, false, false);
        (queue.connect(admin_connect(60_000), CONTROLLER_ANY, DISCOVERY_NQN, HOST_NQN).status(), queue)
    };
    let stay = [discover(), discover(), discover()];
    assert_eq!(
        stay.each_ref().map(|(status, _)| *status),
        [Status::Success, Status::Success, Status::ConnectControllerBusy]
    );
    let (mut admin, controller) = connected(&target);
    assert_eq!(prove(&mut admin, side(credentials(false), HOST_NQN)), Progress::Authenticated);
    admin.set_configuration(Configuration::KEY_VALUE);
    let mut io = Queue::greeted(target.address, false, false);
    assert_eq!(io.connect(io_connect(1), controller, NQN, HOST_NQN).status(), Status::Success);
}

#[test]
fn another_secret_ends_what_was_proved_by_the_old_one() {
    let target = Target::with(|options| options.rights = rights(None));
    let mut host = Host::new(&target);
    assert_eq!(host.store(b"k", b"v"), Status::Success);
    target.subsystem.set_rights(rights(Some(credentials(true))));
    assert_eq!(host.io.hear(), Heard::Closed);
    let (mut queue, _) = connected(&target);
    assert_eq!(prove(&mut queue, side(credentials(true), HOST_NQN)), Progress::Authenticated);
    target.subsystem.set_rights(rights(Some(credentials(true))));
    queue.set_configuration(Configuration::KEY_VALUE);
    target.subsystem.set_rights(rights(Some(credentials(false))));
    assert_eq!(queue.hear(), Heard::Closed);
}
