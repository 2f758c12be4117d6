//! What each host may see and do: every admin and I/O command of a host with some rights, beside one with all of them.

use crate::host::{Got, HOST_NQN, Heard, Host, NQN, Queue, Target, admin_connect, key};
use kvssd_ftl::NamespaceAttributes;
use kvssd_nvme_spec::admin::{AdminCommand, GetLogPage, Identify};
use kvssd_nvme_spec::command::{DataPointer, NAMESPACE_ALL};
use kvssd_nvme_spec::fabrics::{CONTROLLER_ANY, DISCOVERY_NQN};
use kvssd_nvme_spec::features::{EVENT_NAMESPACES, event, feature};
use kvssd_nvme_spec::identify::{
    IdentifyIndependentNamespace, IdentifyKvNamespace, IdentifyNamespace, cns, read_namespace_list,
};
use kvssd_nvme_spec::kv::{KvCommand, StoreOptions};
use kvssd_nvme_spec::log_page::{HealthPage, page};
use kvssd_nvme_spec::pdu::Pdu;
use kvssd_nvme_spec::statistics::StatisticsPage;
use kvssd_nvme_spec::{Status, SubmissionEntry};
use kvssd_nvme_target::{HostRights, Namespaces, Quota, Rights, SubsystemOptions};
use kvssd_types::NamespaceId;

/// May change namespace 1 and read 2, and does not know of 3.
const GUEST: &str = "nqn.guest";
/// The number of no namespace.
const MISSING: u32 = 9;
const HIDDEN: u32 = 3;

fn some(numbers: &[u32]) -> Namespaces {
    Namespaces::Some(numbers.iter().copied().collect())
}

fn guest() -> HostRights {
    HostRights { read_write: some(&[1]), read_only: some(&[2]), ..HostRights::EVERYTHING }
}

fn rights_of(guest: HostRights) -> Rights {
    Rights::new([(GUEST.to_owned(), guest), (HOST_NQN.to_owned(), HostRights::EVERYTHING)].into(), None)
}

/// A target with three namespaces, of which the third holds a pair.
fn target(change: impl FnOnce(&mut SubsystemOptions)) -> Target {
    let target = Target::over(
        256 << 20,
        |options| {
            options.rights = rights_of(guest());
            change(options);
        },
        |drive| {
            for name in ["log", "secret"] {
                let attributes = NamespaceAttributes { name: Some(name.to_owned()), ..NamespaceAttributes::PLAIN };
                drive.create_namespace(attributes).unwrap();
            }
            for namespace in 1..=3 {
                let value = kvssd_types::Value::Bytes([7; 100].into());
                let store = kvssd_types::Command::Store {
                    key: kvssd_types::Key::new(b"there").unwrap(),
                    value,
                    condition: kvssd_types::StoreCondition::Always,
                };
                drive.execute_in(NamespaceId(namespace), store).unwrap();
            }
        },
    );
    assert_eq!(Host::new(&target).admin.identify(cns::NAMESPACE_LIST, 0, 0).status(), Status::Success);
    target
}

fn store(key_bytes: &[u8], value_bytes: u32) -> KvCommand {
    KvCommand::Store { key: key(key_bytes), value_bytes, options: StoreOptions::default() }
}

/// Every I/O command, with an SGL that fits it.
fn io_commands() -> Vec<(KvCommand, DataPointer)> {
    let room = DataPointer::Transport { length_bytes: 4096 };
    vec![
        (KvCommand::Flush, DataPointer::NONE),
        (store(b"there", 0), DataPointer::NONE),
        (store(b"new", 9000), DataPointer::Transport { length_bytes: 9000 }),
        (KvCommand::Retrieve { key: key(b"there"), buffer_bytes: 4096 }, room),
        (KvCommand::List { from: None, buffer_bytes: 4096 }, room),
        (KvCommand::Exist { key: key(b"there") }, DataPointer::NONE),
        (KvCommand::Delete { key: key(b"there") }, DataPointer::NONE),
    ]
}

fn ask(queue: &mut Queue, namespace: u32, command: &KvCommand, pointer: DataPointer) -> Got {
    queue.ask(command.entry(namespace).with_data(pointer), &[1; 9000])
}

fn outcome(got: &Got) -> (Status, u64, &[u8]) {
    (got.status(), got.entry.result(), &got.data)
}

#[test]
fn a_hidden_namespace_is_to_each_io_command_one_that_does_not_exist() {
    let target = target(|_| {});
    let mut guest = Host::named(target.address, GUEST);
    for (command, pointer) in io_commands() {
        let missing = ask(&mut guest.io, MISSING, &command, pointer);
        let hidden = ask(&mut guest.io, HIDDEN, &command, pointer);
        assert_eq!(outcome(&hidden), outcome(&missing), "{command:?}");
        assert_eq!(hidden.status(), Status::InvalidField, "{command:?}");
    }
    let mut all = Host::new(&target);
    assert_eq!(
        ask(&mut all.io, HIDDEN, &KvCommand::Exist { key: key(b"there") }, DataPointer::NONE).status(),
        Status::Success
    );
}

#[test]
fn a_namespace_to_read_is_read_and_not_changed() {
    let target = target(|_| {});
    let mut guest = Host::named(target.address, GUEST);
    for (command, pointer) in io_commands() {
        let is_change = matches!(command, KvCommand::Store { .. } | KvCommand::Delete { .. });
        let wanted = if is_change { Status::NamespaceWriteProtected } else { Status::Success };
        assert_eq!(ask(&mut guest.io, 2, &command, pointer).status(), wanted, "{command:?}");
        assert_eq!(ask(&mut guest.io, 1, &command, pointer).status(), Status::Success, "{command:?}");
    }
    assert_eq!(ask(&mut guest.io, NAMESPACE_ALL, &KvCommand::Flush, DataPointer::NONE).status(), Status::Success);
    for (namespace, attributes) in [(1, 0), (2, 1)] {
        let data = guest.admin.identify(cns::COMMAND_SET_NAMESPACE, 1, namespace).data;
        assert_eq!(IdentifyKvNamespace::from_data(&data).unwrap().attributes, attributes);
        let data = guest.admin.identify(cns::NAMESPACE, 0, namespace).data;
        assert_eq!(IdentifyNamespace::from_data(&data).unwrap().attributes, attributes);
        let data = guest.admin.identify(cns::INDEPENDENT_NAMESPACE, 0, namespace).data;
        assert_eq!(IdentifyIndependentNamespace::from_data(&data).unwrap().attributes, attributes);
    }
}

#[test]
fn no_identify_tells_of_a_hidden_namespace() {
    let target = target(|_| {});
    let (mut guest, mut all) = (Host::named(target.address, GUEST), Host::new(&target));
    for (cns, command_set) in (0..=0x1f).flat_map(|cns| [(cns, 0), (cns, 1), (cns, 2)]) {
        let missing = guest.admin.identify(cns, command_set, MISSING);
        let hidden = guest.admin.identify(cns, command_set, HIDDEN);
        assert_eq!(outcome(&hidden), outcome(&missing), "CNS {cns:x}h of {command_set}");
        let seen = guest.admin.identify(cns, command_set, 1);
        assert_eq!(seen.status(), all.admin.identify(cns, command_set, 1).status(), "CNS {cns:x}h of {command_set}");
    }
    let list = |queue: &mut Queue, after| {
        let lists = [(cns::NAMESPACE_LIST, 0), (cns::COMMAND_SET_NAMESPACE_LIST, 1)];
        let lists =
            lists.map(|(cns, set)| read_namespace_list(&queue.identify(cns, set, after).data).collect::<Vec<_>>());
        assert_eq!(lists[0], lists[1]);
        lists[0].clone()
    };
    assert_eq!((list(&mut guest.admin, 0), list(&mut guest.admin, 1)), (vec![1, 2], vec![2]));
    assert_eq!((list(&mut guest.admin, 2), list(&mut all.admin, 0)), (vec![], vec![1, 2, 3]));
}

fn log_page(queue: &mut Queue, page: u8, length_bytes: u64, namespace: u32) -> Got {
    let wanted = GetLogPage { page, length_bytes, command_set: 1, ..GetLogPage::default() };
    queue.admin(AdminCommand::GetLogPage(wanted), namespace, length_bytes as u32)
}

#[test]
fn no_log_page_or_feature_tells_of_a_hidden_namespace() {
    let target = target(|_| {});
    let (mut guest, mut all) = (Host::named(target.address, GUEST), Host::new(&target));
    let before = log_page(&mut guest.admin, page::STATISTICS, 512, NAMESPACE_ALL).data;
    let health = log_page(&mut guest.admin, page::HEALTH, 512, NAMESPACE_ALL).data;
    // What others do in it leaves no trace in what the guest is told.
    for number in 0..2000u32 {
        let command = store(&number.to_le_bytes(), 4000);
        let pointer = DataPointer::InCapsule { offset_bytes: 0, length_bytes: 4000 };
        let got = all.io.ask(command.entry(HIDDEN).with_data(pointer), &[3; 4000]);
        assert_eq!(got.status(), Status::Success);
    }
    assert_eq!(log_page(&mut guest.admin, page::STATISTICS, 512, NAMESPACE_ALL).data, before);
    assert_eq!(log_page(&mut guest.admin, page::HEALTH, 512, NAMESPACE_ALL).data, health);
    let page_of = |data: &[u8]| StatisticsPage::from_data(data).unwrap().to_owned();
    assert_eq!((page_of(&before).pairs.get(), page_of(&before).pair_bytes.get()), (2, 2 * 105));
    assert_eq!(HealthPage::from_data(&health).unwrap().units_written.get(), 0);
    let whole = page_of(&log_page(&mut all.admin, page::STATISTICS, 512, NAMESPACE_ALL).data);
    assert_eq!((whole.pairs.get(), whole.changes.get()), (2003, 2000));
    for page in 0..=0xff {
        let missing = log_page(&mut guest.admin, page, 512, MISSING);
        let hidden = log_page(&mut guest.admin, page, 512, HIDDEN);
        assert_eq!(outcome(&hidden), outcome(&missing), "page {page:x}h");
        assert!(!hidden.data.windows(6).any(|bytes| bytes == b"secret"), "page {page:x}h");
    }
    for feature in 0..=0xff {
        let of = |queue: &mut Queue, namespace| {
            let mut said = Vec::new();
            for select in 0..4 {
                let got = queue.admin(AdminCommand::GetFeatures { feature, select, value: 1 }, namespace, 4096);
                said.push((got.status(), got.entry.result(), got.data));
            }
            let got = queue.admin(AdminCommand::SetFeatures { feature, save: false, value: 1 }, namespace, 0);
            said.push((got.status(), got.entry.result(), got.data));
            said
        };
        // The first one sets what the others get.
        of(&mut guest.admin, MISSING);
        assert_eq!(of(&mut guest.admin, HIDDEN), of(&mut guest.admin, MISSING), "feature {feature:x}h");
    }
    let set = AdminCommand::SetFeatures { feature: feature::KEY_VALUE_CONFIGURATION, save: false, value: 1 };
    assert_eq!(guest.admin.admin(set, NAMESPACE_ALL, 0).status(), Status::Success);
}

/// Every opcode that there could be, on either queue: a hidden namespace gets the answers of one that does not exist.
#[test]
fn no_opcode_tells_of_a_hidden_namespace() {
    let target = target(|_| {});
    let mut guest = Host::named(target.address, GUEST);
    let identify = AdminCommand::Identify(Identify::default()).entry(0).opcode;
    let pending = AdminCommand::AsynchronousEventRequest.entry(0).opcode;
    for opcode in (0..=0xffu8).filter(|opcode| *opcode != pending && *opcode != 0x7f && *opcode != identify) {
        for is_admin in [true, false] {
            let queue = if is_admin { &mut guest.admin } else { &mut guest.io };
            let mut of = |namespace| {
                let entry = SubmissionEntry::new(opcode, namespace).with_data(DataPointer::NONE);
                let got = queue.ask(entry, &[]);
                (got.status(), got.entry.result(), got.data)
            };
            assert_eq!(of(HIDDEN), of(MISSING), "opcode {opcode:x}h, admin queue: {is_admin}");
        }
    }
}

#[test]
fn who_is_not_named_gets_nothing_not_even_by_discovery() {
    let target = target(|_| {});
    for (subsystem, host) in [(NQN, "nqn.stranger"), (DISCOVERY_NQN, "nqn.stranger"), (NQN, "")] {
        let mut queue = Queue::greeted(target.address, false, false);
        let got = queue.connect(admin_connect(0), CONTROLLER_ANY, subsystem, host);
        assert_eq!((got.status(), got.entry.result()), (Status::ConnectInvalidHost, 0));
    }
}

#[test]
fn a_reload_holds_for_the_commands_that_come_after_and_who_lost_all_is_disconnected() {
    let target = target(|_| {});
    let mut guest = Host::named(target.address, GUEST);
    let events = AdminCommand::SetFeatures { feature: feature::EVENTS, save: false, value: EVENT_NAMESPACES };
    assert_eq!(guest.admin.admin(events, 0, 0).status(), Status::Success);
    let event_id = guest.admin.id();
    let mut entry = AdminCommand::AsynchronousEventRequest.entry(0);
    entry.command_id = event_id.into();
    guest.admin.send(&Pdu::Command { entry, data: &[] });
    let exist = KvCommand::Exist { key: key(b"there") };
    assert_eq!(ask(&mut guest.io, HIDDEN, &exist, DataPointer::NONE).status(), Status::InvalidField);
    target.subsystem.set_rights(rights_of(HostRights {
        read_write: Namespaces::NONE,
        read_only: some(&[1, 3]),
        ..HostRights::EVERYTHING
    }));
    assert_eq!(ask(&mut guest.io, HIDDEN, &exist, DataPointer::NONE).status(), Status::Success);
    assert_eq!(ask(&mut guest.io, 2, &exist, DataPointer::NONE).status(), Status::InvalidField);
    assert_eq!(ask(&mut guest.io, 1, &store(b"k", 0), DataPointer::NONE).status(), Status::NamespaceWriteProtected);
    // The notice, and what has changed: 1 is to be read only, 2 has gone, 3 has come.
    let Heard::Response(notice) = guest.admin.hear() else { panic!("no event") };
    let wanted = event::dword(event::NOTICE, event::NAMESPACES_CHANGED, page::CHANGED_NAMESPACES);
    assert_eq!((notice.command_id.get(), notice.result()), (event_id, wanted.into()));
    let changed = log_page(&mut guest.admin, page::CHANGED_NAMESPACES, 4096, NAMESPACE_ALL).data;
    assert_eq!(read_namespace_list(&changed).collect::<Vec<_>>(), [1, 2, 3]);
    let changed = log_page(&mut guest.admin, page::CHANGED_NAMESPACES, 4096, NAMESPACE_ALL).data;
    assert_eq!(read_namespace_list(&changed).count(), 0);
    target.subsystem.set_rights(Rights::only([HOST_NQN.to_owned()]));
    assert_eq!(guest.io.hear(), Heard::Closed);
    assert_eq!(guest.admin.hear(), Heard::Closed);
    let mut again = Queue::greeted(target.address, false, false);
    assert_eq!(again.connect(admin_connect(0), CONTROLLER_ANY, NQN, GUEST).status(), Status::ConnectInvalidHost);
    assert_eq!(Host::new(&target).store(b"k", b"v"), Status::Success);
}

#[test]
fn a_quota_bounds_what_a_hosts_namespaces_hold() {
    let quota = Quota { pairs_max: Some(5), bytes_max: Some(1000) };
    let target = target(|options| options.rights = rights_of(HostRights { quota, ..guest() }));
    let mut host = Host::named(target.address, GUEST);
    // One pair of 105 bytes is there.
    assert_eq!(host.store(b"1", &[0; 499]), Status::Success);
    assert_eq!(host.store(b"2", &[0; 395]), Status::CapacityExceeded, "1001 bytes");
    assert_eq!(host.store(b"2", &[0; 394]), Status::Success);
    assert_eq!(host.store(b"3", b""), Status::CapacityExceeded);
    assert_eq!(host.store(b"2", &[1; 394]), Status::Success, "an overwrite of the same length");
    assert_eq!(host.store(b"2", &[1; 395]), Status::CapacityExceeded);
    assert_eq!(host.store(b"2", b""), Status::Success);
    for (key, wanted) in [(b"3", Status::Success), (b"4", Status::Success), (b"5", Status::CapacityExceeded)] {
        assert_eq!(host.store(key, b""), wanted);
    }
    let absent = StoreOptions { must_not_exist: true, ..StoreOptions::default() };
    let present = StoreOptions { must_exist: true, ..StoreOptions::default() };
    assert_eq!(host.store_if(b"4", &[0; 900], absent), Status::KeyExists);
    assert_eq!(host.store_if(b"5", b"", present), Status::KeyDoesNotExist);
    assert_eq!(host.plain(&KvCommand::Delete { key: key(b"4") }), Status::Success);
    assert_eq!(host.store(b"5", b""), Status::Success);
    // What others store in it counts, and they have no bound.
    let mut all = Host::new(&target);
    assert_eq!(all.store(b"6", &[0; 5000]), Status::Success);
    assert_eq!(host.store(b"1", &[0; 500]), Status::CapacityExceeded);
    assert_eq!(host.store(b"1", &[0; 10]), Status::Success, "what becomes less is allowed");
}
