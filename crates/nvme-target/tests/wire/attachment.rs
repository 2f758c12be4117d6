//! Namespaces that are taken from controllers and given back: who may, who notices, and what becomes of commands under way.

use crate::extended::{TREE, create, iterate};
use crate::host::{Got, HOST_NQN, Heard, Host, NQN, Queue, Target, admin_connect, key};
use kvssd_ftl::NamespaceAttributes;
use kvssd_nvme_spec::admin::{AdminCommand, GetLogPage, Identify};
use kvssd_nvme_spec::attachment::{ATTACH, DETACH, controller_list, read_controller_list};
use kvssd_nvme_spec::command::{DataPointer, NAMESPACE_ALL};
use kvssd_nvme_spec::extended::IteratorRange;
use kvssd_nvme_spec::fabrics::{CONTROLLER_ANY, Configuration, DISCOVERY_NQN};
use kvssd_nvme_spec::features::{EVENT_NAMESPACES, feature};
use kvssd_nvme_spec::identify::{IdentifyController, IdentifyKvNamespace, cns, read_namespace_list};
use kvssd_nvme_spec::kv::{KvCommand, StoreOptions};
use kvssd_nvme_spec::log_page::page;
use kvssd_nvme_spec::pdu::Pdu;
use kvssd_nvme_spec::{Status, SubmissionEntry};
use kvssd_nvme_target::{HostRights, Namespaces, Rights};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// May change namespace 1 and read 2, and does not know of 3.
const GUEST: &str = "nqn.guest";
const HIDDEN: u32 = 3;
const MISSING: u32 = 9;

fn some(numbers: &[u32]) -> Namespaces {
    Namespaces::Some(numbers.iter().copied().collect())
}

fn rights() -> Rights {
    let guest = HostRights { read_write: some(&[1]), read_only: some(&[2]), ..HostRights::EVERYTHING };
    Rights::new([(GUEST.to_owned(), guest), (HOST_NQN.to_owned(), HostRights::EVERYTHING)].into(), None)
}

/// A target with three namespaces, of which the second is ordered.
fn target() -> Target {
    Target::over(
        256 << 20,
        |options| options.rights = rights(),
        |drive| {
            for (name, is_ordered) in [("log", true), ("secret", false)] {
                let name = Some(name.to_owned());
                drive.create_namespace(NamespaceAttributes { name, is_ordered, ..NamespaceAttributes::PLAIN }).unwrap();
            }
        },
    )
}

fn ask(queue: &mut Queue, select: u8, namespace: u32, data: &[u8]) -> Got {
    let pointer = DataPointer::InCapsule { offset_bytes: 0, length_bytes: data.len() as u32 };
    queue.ask(AdminCommand::NamespaceAttachment { select }.entry(namespace).with_data(pointer), data)
}

fn set(queue: &mut Queue, select: u8, namespace: u32, controllers: &[u16]) -> Status {
    ask(queue, select, namespace, &controller_list(controllers.iter().copied())).status()
}

fn numbers(queue: &mut Queue, cns: u8) -> Vec<u32> {
    let command_set = u8::from(matches!(cns, cns::COMMAND_SET_NAMESPACE_LIST | cns::COMMAND_SET_ALLOCATED_LIST));
    let got = queue.identify(cns, command_set, 0);
    assert_eq!(got.status(), Status::Success);
    read_namespace_list(&got.data).collect()
}

/// The namespaces that the controller has, and those that there are for its host.
fn seen(queue: &mut Queue) -> (Vec<u32>, Vec<u32>) {
    let [active, active_kv, allocated, allocated_kv] =
        [cns::NAMESPACE_LIST, cns::COMMAND_SET_NAMESPACE_LIST, cns::ALLOCATED_LIST, cns::COMMAND_SET_ALLOCATED_LIST]
            .map(|cns| numbers(queue, cns));
    assert_eq!((&active, &allocated), (&active_kv, &allocated_kv));
    (active, allocated)
}

fn controllers(queue: &mut Queue, cns: u8, namespace: u32, from: u16) -> Result<Vec<u16>, Status> {
    let wanted = Identify { cns, controller: from, ..Identify::default() };
    let got = queue.admin(AdminCommand::Identify(wanted), namespace, 4096);
    if got.status().is_success() { Ok(read_controller_list(&got.data).unwrap()) } else { Err(got.status()) }
}

fn store(host: &mut Host, namespace: u32, name: &[u8]) -> Status {
    let command = KvCommand::Store { key: key(name), value_bytes: 0, options: StoreOptions::default() };
    host.io.ask(command.entry(namespace).with_data(DataPointer::NONE), &[]).status()
}

fn exist(host: &mut Host, namespace: u32, name: &[u8]) -> Status {
    host.io.ask(KvCommand::Exist { key: key(name) }.entry(namespace).with_data(DataPointer::NONE), &[]).status()
}

fn await_notice(queue: &mut Queue) -> u16 {
    let events = AdminCommand::SetFeatures { feature: feature::EVENTS, save: false, value: EVENT_NAMESPACES };
    assert_eq!(queue.admin(events, 0, 0).status(), Status::Success);
    let id = queue.id();
    let mut entry = AdminCommand::AsynchronousEventRequest.entry(0);
    entry.command_id = id.into();
    queue.send(&Pdu::Command { entry, data: &[] });
    id
}

fn changed(queue: &mut Queue) -> Vec<u32> {
    let wanted = GetLogPage { page: page::CHANGED_NAMESPACES, length_bytes: 4096, ..GetLogPage::default() };
    let got = queue.admin(AdminCommand::GetLogPage(wanted), NAMESPACE_ALL, 4096);
    read_namespace_list(&got.data).collect()
}

#[test]
fn a_namespace_is_taken_from_one_controller_and_given_back() {
    let target = target();
    let (mut manager, mut guest) = (Host::new(&target), Host::named(target.address, GUEST));
    let (own, other) = (manager.controller, guest.controller);
    assert_eq!(store(&mut guest, 1, b"k"), Status::Success);
    assert_eq!(controllers(&mut manager.admin, cns::CONTROLLERS, 0, 0), Ok(vec![own, other]));
    assert_eq!(controllers(&mut manager.admin, cns::NAMESPACE_CONTROLLERS, HIDDEN, 0), Ok(vec![own]));
    let notice = await_notice(&mut guest.admin);
    assert_eq!(set(&mut manager.admin, DETACH, 1, &[other]), Status::Success);
    // It is there, and not for this controller: neither in lists nor for commands, and its size is that of nothing.
    assert_eq!(exist(&mut guest, 1, b"k"), Status::InvalidField);
    let Heard::Response(entry) = guest.admin.hear() else { panic!("no event") };
    assert_eq!((entry.command_id.get(), entry.result()), (notice, 0x04_0002));
    assert_eq!(changed(&mut guest.admin), [1]);
    assert_eq!(seen(&mut guest.admin), (vec![2], vec![1, 2]));
    assert_eq!(seen(&mut manager.admin), (vec![1, 2, 3], vec![1, 2, 3]));
    assert_eq!(guest.admin.identify(cns::COMMAND_SET_NAMESPACE, 1, 1).data, [0; 4096]);
    let data = guest.admin.identify(cns::COMMAND_SET_ALLOCATED_NAMESPACE, 1, 1).data;
    let active = manager.admin.identify(cns::COMMAND_SET_NAMESPACE, 1, 1).data;
    assert_eq!(data, active);
    assert_ne!(IdentifyKvNamespace::from_data(&data).unwrap().size_bytes.get(), 0);
    assert_ne!(guest.admin.identify(cns::ALLOCATED_NAMESPACE, 0, 1).data, [0; 4096]);
    assert_eq!(controllers(&mut manager.admin, cns::NAMESPACE_CONTROLLERS, 1, 0), Ok(vec![own]));
    assert_eq!(controllers(&mut manager.admin, cns::CONTROLLERS, 0, own + 1), Ok(vec![other]));
    // Another controller of the same host has it, and so has the next one: a controller keeps nothing for another.
    let mut second = Host::named(target.address, GUEST);
    assert_eq!(exist(&mut second, 1, b"k"), Status::Success);
    let notice = await_notice(&mut guest.admin);
    assert_eq!(set(&mut manager.admin, ATTACH, 1, &[other]), Status::Success);
    assert_eq!(exist(&mut guest, 1, b"k"), Status::Success);
    assert_eq!(guest.admin.take(notice, &[]).entry.result(), 0x04_0002);
    assert_eq!(seen(&mut guest.admin), (vec![1, 2], vec![1, 2]));
    // A host's own controller, which gets a notice, too.
    let notice = await_notice(&mut manager.admin);
    assert_eq!(set(&mut manager.admin, DETACH, 2, &[own, other]), Status::Success);
    assert_eq!(manager.admin.take(notice, &[]).entry.result(), 0x04_0002);
    assert_eq!((changed(&mut manager.admin), seen(&mut manager.admin).0), (vec![2], vec![1, 3]));
    assert_eq!(exist(&mut manager, 2, b"k"), Status::InvalidField);
    assert_eq!(exist(&mut second, 2, b"k"), Status::KeyDoesNotExist);
}

#[test]
fn what_cannot_be_changes_nothing() {
    let target = target();
    let (mut manager, guest) = (Host::new(&target), Host::named(target.address, GUEST));
    let (own, other) = (manager.controller, guest.controller);
    let mut discovery = Queue::greeted(target.address, false, false);
    let got = discovery.connect(admin_connect(0), CONTROLLER_ANY, DISCOVERY_NQN, HOST_NQN);
    let of_discovery = got.entry.dword0.get() as u16;
    let admin = &mut manager.admin;
    for (select, namespace, list, wanted) in [
        (ATTACH, 1, &[own][..], Status::NamespaceAlreadyAttached),
        (ATTACH, HIDDEN, &[other], Status::OperationDenied),
        (DETACH, HIDDEN, &[other], Status::NamespaceNotAttached),
        (DETACH, HIDDEN, &[own, other], Status::NamespaceNotAttached),
        (DETACH, 1, &[], Status::ControllerListInvalid),
        (DETACH, 1, &[own, 999], Status::ControllerListInvalid),
        (DETACH, 1, &[0], Status::ControllerListInvalid),
        (DETACH, 1, &[u16::MAX], Status::ControllerListInvalid),
        (DETACH, 1, &[of_discovery], Status::ControllerListInvalid),
        (DETACH, MISSING, &[own], Status::InvalidField),
        (DETACH, 0, &[own], Status::InvalidNamespace),
        (DETACH, NAMESPACE_ALL, &[own], Status::InvalidNamespace),
        (2, 1, &[own], Status::InvalidField),
        (15, 1, &[own], Status::InvalidField),
    ] {
        assert_eq!(set(admin, select, namespace, list), wanted, "{select}, namespace {namespace}, {list:?}");
        assert_eq!(seen(admin).0, [1, 2, 3]);
    }
    // A list that is cut off, or says that it has more than there is room for.
    let mut list = controller_list([own].into_iter());
    assert_eq!(ask(admin, DETACH, 1, &list[..4092]).status(), Status::SglLengthInvalid);
    list[..2].copy_from_slice(&2048u16.to_le_bytes());
    assert_eq!(ask(admin, DETACH, 1, &list).status(), Status::ControllerListInvalid);
    list[..2].copy_from_slice(&2047u16.to_le_bytes());
    assert_eq!(ask(admin, DETACH, 1, &list).status(), Status::ControllerListInvalid);
    assert_eq!(seen(admin).0, [1, 2, 3]);
    // OACS says that there is no Namespace Management, and there is none.
    let data = admin.identify(cns::CONTROLLER, 0, 0).data;
    assert_eq!(IdentifyController::from_data(&data).unwrap().optional_admin_commands.get(), 0);
    assert_eq!(admin.ask(SubmissionEntry::new(0x0d, 0), &[]).status(), Status::InvalidOpcode);
    assert_eq!(set(&mut discovery, DETACH, 1, &[own]), Status::InvalidOpcode);
}

#[test]
fn who_may_not_manage_changes_nothing_and_learns_nothing() {
    let target = target();
    let (mut manager, mut guest) = (Host::new(&target), Host::named(target.address, GUEST));
    let (own, other) = (guest.controller, manager.controller);
    for namespace in [1, 2, HIDDEN, MISSING] {
        for select in [ATTACH, DETACH] {
            assert_eq!(set(&mut guest.admin, select, namespace, &[own]), Status::OperationDenied);
        }
    }
    assert_eq!(controllers(&mut guest.admin, cns::CONTROLLERS, 0, 0), Ok(vec![own]));
    assert_eq!(controllers(&mut guest.admin, cns::NAMESPACE_CONTROLLERS, 1, 0), Ok(vec![own]));
    for cns in [cns::NAMESPACE_CONTROLLERS, cns::NAMESPACE_DESCRIPTORS] {
        let refused = controllers(&mut guest.admin, cns, HIDDEN, 0);
        assert_eq!((&refused, &controllers(&mut guest.admin, cns, MISSING, 0)), (&Err(Status::InvalidField), &refused));
    }
    assert_eq!(seen(&mut guest.admin), (vec![1, 2], vec![1, 2]));
    // What is hidden stays so when it is detached from others, and attached.
    let notice = await_notice(&mut guest.admin);
    for select in [DETACH, ATTACH] {
        assert_eq!(set(&mut manager.admin, select, HIDDEN, &[other]), Status::Success);
        assert_eq!(seen(&mut guest.admin), (vec![1, 2], vec![1, 2]));
    }
    assert_eq!(changed(&mut guest.admin), []);
    // Rights that go take the namespace with them, whatever is attached; those that come bring it.
    target.subsystem.set_rights(Rights::only([HOST_NQN.to_owned(), GUEST.to_owned()]));
    assert_eq!(guest.admin.take(notice, &[]).entry.result(), 0x04_0002);
    assert_eq!(seen(&mut guest.admin).0, [1, 2, 3]);
    assert_eq!(set(&mut guest.admin, DETACH, HIDDEN, &[own]), Status::Success);
    target.subsystem.set_rights(rights());
    assert_eq!(seen(&mut guest.admin), (vec![1, 2], vec![1, 2]));
    assert_eq!(set(&mut manager.admin, ATTACH, HIDDEN, &[own]), Status::OperationDenied);
}

#[test]
fn an_attachment_is_its_controllers_and_its_namespaces() {
    let target = target();
    let (mut manager, mut guest) = (Host::new(&target), Host::named(target.address, GUEST));
    let gone = guest.controller;
    assert_eq!(set(&mut manager.admin, DETACH, 1, &[gone]), Status::Success);
    // A reset is no end of the controller.
    guest.admin.set_configuration(Configuration(0));
    assert_eq!(guest.io.hear(), Heard::Closed);
    guest.admin.set_configuration(Configuration::KEY_VALUE);
    assert_eq!(seen(&mut guest.admin).0, [2]);
    guest.io = Queue::greeted(target.address, false, false);
    let connected = guest.io.connect(crate::host::io_connect(1), gone, NQN, GUEST);
    assert_eq!(connected.status(), Status::Success);
    assert_eq!(exist(&mut guest, 1, b"k"), Status::InvalidField, "a queue that came later");
    drop(guest);
    let mut guest = Host::named(target.address, GUEST);
    assert_eq!(seen(&mut guest.admin).0, [1, 2]);
    while controllers(&mut manager.admin, cns::CONTROLLERS, 0, 0).unwrap().contains(&gone) {
        thread::yield_now();
    }
    assert_eq!(set(&mut manager.admin, ATTACH, 1, &[gone]), Status::ControllerListInvalid);
    // Who gets the number of a namespace that is deleted is another one.
    assert_eq!(set(&mut manager.admin, DETACH, 2, &[manager.controller]), Status::Success);
    let mut name = [0; 64];
    name[..3].copy_from_slice(b"log");
    let inside = |length_bytes| DataPointer::InCapsule { offset_bytes: 0, length_bytes };
    let delete = AdminCommand::DeleteNamespace.entry(2).with_data(inside(64));
    assert_eq!(manager.admin.ask(delete, &name).status(), Status::Success);
    // Numbers come again when the highest has been given.
    let numbers = (b'a'..=b'z').map(|letter| {
        let mut data = [0; 128];
        data[16] = letter;
        let got = manager.admin.ask(AdminCommand::CreateNamespace.entry(0).with_data(inside(128)), &data);
        assert_eq!(got.status(), Status::Success);
        got.entry.dword0.get()
    });
    assert!(numbers.into_iter().any(|number| number == 2));
    assert!(seen(&mut manager.admin).0.contains(&2));
    assert_eq!(store(&mut manager, 2, b"k"), Status::Success);
}

/// What was acknowledged is there; what came after is refused, whatever waits in which queue.
#[test]
fn commands_under_way_are_executed_before_a_detach_or_refused() {
    let target = target();
    let mut manager = Host::new(&target);
    let (stop, are_both_seen) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let mut victim = Host::new(&target);
        let id = victim.controller;
        let (stop, are_both_seen) = (&stop, &are_both_seen);
        let worker = scope.spawn(move || {
            let (mut stored, mut refused, mut next) = (Vec::new(), 0u32, 0u32);
            while !stop.load(Ordering::Relaxed) {
                // A burst of commands outstanding, so that some wait when the namespace goes.
                let burst: Vec<(u16, u32)> = (0..32)
                    .map(|_| {
                        next += 1;
                        let name = next.to_le_bytes();
                        let options = StoreOptions::default();
                        let command = KvCommand::Store { key: key(&name), value_bytes: 0, options };
                        let mut entry = command.entry(1).with_data(DataPointer::NONE);
                        let command_id = victim.io.id();
                        entry.command_id = command_id.into();
                        victim.io.send(&Pdu::Command { entry, data: &[] });
                        (command_id, next)
                    })
                    .collect();
                for _ in 0..burst.len() {
                    let Heard::Response(entry) = victim.io.hear() else { panic!("no answer") };
                    let (_, number) = burst.iter().find(|(id, _)| *id == entry.command_id.get()).unwrap();
                    match entry.status().unwrap() {
                        Status::Success => stored.push(*number),
                        Status::InvalidField => refused += 1,
                        other => panic!("{other}"),
                    }
                }
                are_both_seen.store(refused > 0 && !stored.is_empty(), Ordering::Relaxed);
            }
            (stored, refused, next)
        });
        for round in 0..10_000 {
            // On a busy machine, it takes longer until the worker has its turn in both states.
            if round >= 100 && are_both_seen.load(Ordering::Relaxed) {
                break;
            }
            assert_eq!(set(&mut manager.admin, DETACH, 1, &[id]), Status::Success);
            // From here on nothing of that controller is executed.
            let before = count(&mut manager);
            thread::sleep(std::time::Duration::from_millis(2));
            assert_eq!(count(&mut manager), before);
            assert_eq!(set(&mut manager.admin, ATTACH, 1, &[id]), Status::Success);
            thread::sleep(std::time::Duration::from_millis(2));
        }
        stop.store(true, Ordering::Relaxed);
        let (stored, refused, sent) = worker.join().unwrap();
        assert!(refused > 0 && !stored.is_empty(), "{refused} refused, {} stored", stored.len());
        assert_eq!((stored.len() as u32 + refused, count(&mut manager)), (sent, stored.len() as u64));
        for number in stored.iter().step_by(7) {
            assert_eq!(exist(&mut manager, 1, &number.to_le_bytes()), Status::Success);
        }
    });
}

/// The pairs of the first namespace, by log page C1h.
fn count(manager: &mut Host) -> u64 {
    let wanted = GetLogPage { page: page::NAMESPACES, length_bytes: 4096, ..GetLogPage::default() };
    let data = manager.admin.admin(AdminCommand::GetLogPage(wanted), NAMESPACE_ALL, 4096).data;
    kvssd_nvme_spec::named::read_namespaces(&data).unwrap()[0].pairs.get()
}

#[test]
fn an_iterator_of_a_detached_namespace_is_out_of_reach_until_it_is_attached() {
    let target = target();
    let (mut manager, mut host) = (Host::new(&target), Host::new(&target));
    for number in 0..4u8 {
        assert_eq!(store(&mut host, TREE, &[number]), Status::Success);
    }
    let iterator = create(&mut host, TREE, &IteratorRange::default()).unwrap();
    assert_eq!(set(&mut manager.admin, DETACH, TREE, &[host.controller]), Status::Success);
    assert_eq!(iterate(&mut host, iterator, None, 1, 4096), Err(Status::InvalidField));
    assert_eq!(create(&mut host, TREE, &IteratorRange::default()), Err(Status::InvalidField));
    assert_eq!(set(&mut manager.admin, ATTACH, TREE, &[host.controller]), Status::Success);
    assert_eq!(iterate(&mut host, iterator, None, 9, 4096).unwrap().len(), 4);
}
