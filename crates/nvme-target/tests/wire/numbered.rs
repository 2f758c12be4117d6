//! Changes that are numbered: made once, however often and wherever they come.

use crate::host::{Host, Target, inside, key, pointer_to};
use kvssd_nvme_spec::admin::AdminCommand;
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::features::feature;
use kvssd_nvme_spec::kv::{KvCommand, StoreOptions};
use kvssd_nvme_spec::numbered::{Opened, SIGNATURE, set_serial};
use kvssd_nvme_spec::{Status, SubmissionEntry};

/// Begins to number the changes of a program on the host.
fn begin(host: &mut Host, instance: u8) -> Opened {
    let get = AdminCommand::GetFeatures { feature: feature::NUMBERED_CHANGES, select: 0, value: 0 };
    assert_eq!(host.admin.admin(get, 0, 0).entry.dword0.get(), SIGNATURE);
    let set = AdminCommand::SetFeatures { feature: feature::NUMBERED_CHANGES, save: false, value: SIGNATURE };
    let instance = [instance; 16];
    let got = host.admin.ask(set.entry(0).with_data(inside(&instance)), &instance);
    assert_eq!(got.status(), Status::Success);
    Opened::from_result(got.entry.result())
}

fn change(host: &mut Host, mut entry: SubmissionEntry, serial: u64, value: &[u8]) -> Status {
    set_serial(&mut entry, serial);
    host.io.ask(entry.with_data(pointer_to(value)), value).status()
}

fn store(host: &mut Host, serial: u64, value: &[u8]) -> Status {
    let (key, value_bytes) = (key(b"key"), value.len() as u32);
    let command = KvCommand::Store { key, value_bytes, options: StoreOptions::default() };
    change(host, command.entry(1), serial, value)
}

fn delete(host: &mut Host, serial: u64) -> Status {
    let mut entry = KvCommand::Delete { key: key(b"key") }.entry(1);
    set_serial(&mut entry, serial);
    host.io.ask(entry.with_data(DataPointer::NONE), &[]).status()
}

fn found(host: &mut Host) -> Vec<u8> {
    host.retrieve(b"key", 100_000).map_or_else(|_| Vec::new(), |(value, _)| value)
}

#[test]
fn a_numbered_change_is_made_once() {
    let target = Target::new();
    let (mut host, mut other) = (Host::new(&target), Host::new(&target));
    let opened = begin(&mut host, 1);
    assert_eq!((begin(&mut host, 1), opened.window), (opened, 1024));
    for (serial, value) in [(1, vec![1; 10]), (2, vec![2; 70_000])] {
        assert_eq!(store(&mut host, serial, &value), Status::Success);
        assert_eq!(found(&mut other), value);
        other.store(b"key", b"newer");
        assert_eq!(store(&mut host, serial, &value), Status::Success);
        assert_eq!(found(&mut other), b"newer");
    }
    assert_eq!(delete(&mut host, 3), Status::Success);
    other.store(b"key", b"newer");
    assert_eq!((delete(&mut host, 3), found(&mut other)), (Status::Success, b"newer".to_vec()));
    assert_eq!(store(&mut host, 3 + 1024, b"later"), Status::Success);
    assert_eq!((store(&mut host, 3, b"old"), found(&mut other)), (Status::RequestForgotten, b"later".to_vec()));
}

#[test]
fn what_a_host_leaves_in_those_dwords_means_nothing_before_it_says_so() {
    let target = Target::new();
    let mut host = Host::new(&target);
    for value in [&b"one"[..], b"two"] {
        assert_eq!((store(&mut host, 7, value), found(&mut host)), (Status::Success, value.to_vec()));
    }
    begin(&mut host, 1);
    for value in [&b"three"[..], b"four"] {
        assert_eq!((store(&mut host, 0, value), found(&mut host)), (Status::Success, value.to_vec()));
    }
    let short = AdminCommand::SetFeatures { feature: feature::NUMBERED_CHANGES, save: false, value: SIGNATURE };
    assert_eq!(host.admin.admin(short, 0, 0).status(), Status::SglLengthInvalid);
    let other = AdminCommand::SetFeatures { feature: feature::NUMBERED_CHANGES, save: false, value: 1 };
    assert_eq!(host.admin.admin(other, 0, 0).status(), Status::InvalidField);
}

/// A delete that found no key may come a second time out of a connection that its host has given up: it must not find the next one.
#[test]
fn an_old_copy_is_not_executed_behind_the_last_controller() {
    let target = Target::new();
    let (mut old, mut new, mut beside) = (Host::new(&target), Host::new(&target), Host::new(&target));
    let opened = begin(&mut old, 1);
    begin(&mut beside, 2);
    assert_eq!(begin(&mut new, 1), opened);
    delete(&mut new, 1);
    new.store(b"key", b"newer");
    assert_eq!((delete(&mut old, 1), store(&mut old, 2, b"old")), (Status::ClientSuperseded, Status::ClientSuperseded));
    assert_eq!(store(&mut old, 3, &[1; 70_000]), Status::ClientSuperseded);
    assert_eq!(found(&mut new), b"newer");
    assert_eq!((store(&mut beside, 1, b"another's"), found(&mut old)), (Status::Success, b"another's".to_vec()));
}
