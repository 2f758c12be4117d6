//! The commands of the Key Value command set, and their errors.

use crate::host::{Got, Host, NQN, Pace, Target, key, value};
use kvssd_nvme_spec::command::{DataPointer, NAMESPACE_ALL};
use kvssd_nvme_spec::features::feature;
use kvssd_nvme_spec::kv::{KvCommand, StoreOptions};
use kvssd_nvme_spec::list::ListReader;
use kvssd_nvme_spec::{Status, SubmissionEntry, admin::AdminCommand};
use kvssd_types::{Command, Key, StoreCondition, Value};

const SIZES: [usize; 8] = [0, 1, 4095, 4096, 4097, 8192, 8193, 1 << 20];

fn keys_of(got: &Got) -> Vec<Vec<u8>> {
    ListReader::new(&got.data).unwrap().map(|key| key.unwrap().to_vec()).collect()
}

fn list(host: &mut Host, from: Option<&[u8]>, buffer_bytes: u32) -> Vec<Vec<u8>> {
    let command = KvCommand::List { from: from.map(key), buffer_bytes };
    let got = host.io.ask(command.entry(1).with_data(DataPointer::Transport { length_bytes: buffer_bytes }), &[]);
    assert_eq!(got.status(), Status::Success);
    assert!(got.data.len() <= buffer_bytes as usize);
    keys_of(&got)
}

#[test]
fn every_command_does_what_it_says_with_and_without_digests_and_in_pieces() {
    let target = Target::with(|options| options.data_digest = true);
    for (header, data, pace) in [
        (false, false, Pace::Whole),
        (true, false, Pace::Whole),
        (false, true, Pace::Whole),
        (true, true, Pace::Bytewise),
    ] {
        let mut host = Host::with_digests(target.address, header, data);
        assert_eq!((host.io.framing.header_digest, host.io.framing.data_digest), (header, data));
        host.io.pace = pace;
        let sizes = if pace == Pace::Bytewise { &SIZES[..6] } else { &SIZES[..] };
        for (index, &size) in sizes.iter().enumerate() {
            let name = format!("a key of 16 B {index:02}");
            let (name, value) = (name.as_bytes(), value(index, size));
            assert_eq!(name.len(), 16);
            assert_eq!(host.store(name, &value), Status::Success, "{size} bytes");
            assert_eq!(host.retrieve(name, 2 << 20), Ok((value.clone(), size as u32)), "{size} bytes");
            // A buffer that is too small gets the begin of it, and the size of all.
            let part = size.min(1000);
            assert_eq!(host.retrieve(name, 1000), Ok((value[..part].to_vec(), size as u32)));
            assert_eq!(host.retrieve(name, 0), Ok((Vec::new(), size as u32)));
            assert_eq!(host.plain(&KvCommand::Exist { key: key(name) }), Status::Success);
        }
        assert_eq!(list(&mut host, None, 4096).len(), sizes.len());
        for index in 0..sizes.len() {
            let name = format!("a key of 16 B {index:02}");
            assert_eq!(host.plain(&KvCommand::Delete { key: key(name.as_bytes()) }), Status::Success);
            assert_eq!(host.retrieve(name.as_bytes(), 10), Err(Status::KeyDoesNotExist));
            assert_eq!(host.plain(&KvCommand::Exist { key: key(name.as_bytes()) }), Status::KeyDoesNotExist);
        }
        assert_eq!(list(&mut host, None, 4096).len(), 0);
        assert_eq!(host.plain(&KvCommand::Flush), Status::Success);
    }
}

#[test]
fn the_largest_value_goes_both_ways_and_one_byte_more_is_refused() {
    let target = Target::over(1 << 30, |_| {}, |_| {});
    let mut host = Host::new(&target);
    let mut largest = value(3, 2 << 20);
    assert_eq!(host.store(b"large", &largest), Status::Success);
    assert_eq!(host.retrieve(b"large", 2 << 20), Ok((largest.clone(), 2 << 20)));
    largest.push(1);
    assert_eq!(host.store(b"larger", &largest), Status::InvalidValueSize);
    assert_eq!(host.retrieve(b"larger", 1), Err(Status::KeyDoesNotExist));
}

#[test]
fn a_store_depends_on_the_key_where_it_is_told_to() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let must_exist = StoreOptions { must_exist: true, ..StoreOptions::default() };
    let must_not_exist = StoreOptions { must_not_exist: true, ..StoreOptions::default() };
    assert_eq!(host.store_if(b"k", b"1", must_exist), Status::KeyDoesNotExist);
    assert_eq!(host.store_if(b"k", b"2", must_not_exist), Status::Success);
    assert_eq!(host.store_if(b"k", b"3", must_not_exist), Status::KeyExists);
    assert_eq!(host.retrieve(b"k", 9).unwrap().0, b"2");
    assert_eq!(host.store_if(b"k", b"4", must_exist), Status::Success);
    let compressed = StoreOptions { compression: true, ..StoreOptions::default() };
    assert_eq!(host.store_if(b"k", b"5", compressed), Status::Success);
    let both = StoreOptions { must_exist: true, must_not_exist: true, ..StoreOptions::default() };
    assert_eq!(host.store_if(b"k", b"6", both), Status::InvalidField);
    assert_eq!(host.retrieve(b"k", 9).unwrap().0, b"5");
}

#[test]
fn each_error_has_its_status() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let none = DataPointer::NONE;
    let ask = |host: &mut Host, entry: SubmissionEntry| host.io.ask(entry, &[]).status();
    let exist = KvCommand::Exist { key: key(b"k") };
    for namespace in [0, 17, NAMESPACE_ALL] {
        assert_eq!(ask(&mut host, exist.entry(namespace)), Status::InvalidNamespace, "namespace {namespace}");
    }
    for namespace in [2, 16] {
        assert_eq!(ask(&mut host, exist.entry(namespace)), Status::InvalidField, "namespace {namespace} could be");
    }
    for (length, status) in [(0, Status::InvalidKeySize), (17, Status::InvalidField), (255, Status::InvalidField)] {
        let mut entry = exist.entry(1);
        entry.dword11 = length.into();
        assert_eq!(ask(&mut host, entry), status, "a key of {length} bytes");
    }
    for opcode in [0x03, 0x0d, 0x0e, 0x11, 0x15, 0x82, 0xff] {
        assert_eq!(ask(&mut host, SubmissionEntry::new(opcode, 1)), Status::InvalidOpcode, "opcode {opcode:x}");
    }
    for flags in [0x00, 0x80, 0x41] {
        assert_eq!(ask(&mut host, SubmissionEntry { flags, ..exist.entry(1) }), Status::InvalidField);
    }
    let store = KvCommand::Store { key: key(b"k"), value_bytes: 100, options: StoreOptions::default() }.entry(1);
    let inside = |offset_bytes, length_bytes| DataPointer::InCapsule { offset_bytes, length_bytes };
    for (pointer, status) in [
        (inside(0, 100), Status::SglLengthInvalid),
        (inside(9000, 100), Status::SglOffsetInvalid),
        (inside(u64::MAX, 100), Status::SglOffsetInvalid),
        (none, Status::SglLengthInvalid),
        (DataPointer::Transport { length_bytes: 99 }, Status::SglLengthInvalid),
        (DataPointer::Other { identifier: 0x40 }, Status::SglTypeInvalid),
    ] {
        assert_eq!(ask(&mut host, store.with_data(pointer)), status, "{pointer:?}");
    }
    let large = KvCommand::Store { key: key(b"k"), value_bytes: 3 << 20, options: StoreOptions::default() };
    let pointer = DataPointer::Transport { length_bytes: 3 << 20 };
    assert_eq!(ask(&mut host, large.entry(1).with_data(pointer)), Status::InvalidValueSize);
    let retrieve = KvCommand::Retrieve { key: key(b"k"), buffer_bytes: 10 }.entry(1);
    assert_eq!(
        ask(&mut host, retrieve.with_data(DataPointer::Transport { length_bytes: 9 })),
        Status::SglLengthInvalid
    );
    assert_eq!(ask(&mut host, exist.entry(1).with_data(none)), Status::KeyDoesNotExist);
    assert_eq!(ask(&mut host, KvCommand::Flush.entry(NAMESPACE_ALL)), Status::Success);
}

#[test]
fn a_buffer_of_the_host_may_be_longer_than_the_value() {
    let target = Target::new();
    let mut host = Host::new(&target);
    for (name, bytes, more) in [(&b"in the capsule"[..], 100usize, 1), (b"nothing", 0, 50), (b"by R2T", 20_000, 4096)] {
        let value = value(bytes, bytes + more);
        let options = StoreOptions::default();
        let store = KvCommand::Store { key: key(name), value_bytes: bytes as u32, options }.entry(1);
        let length_bytes = value.len() as u32;
        // Of what does not come with the command no more is asked for than the value has.
        let (pointer, data) = match bytes {
            20_000 => (DataPointer::Transport { length_bytes }, &value[..bytes]),
            _ => (DataPointer::InCapsule { offset_bytes: 0, length_bytes }, &value[..]),
        };
        assert_eq!(host.io.ask(store.with_data(pointer), data).status(), Status::Success);
        let retrieve = KvCommand::Retrieve { key: key(name), buffer_bytes: 30_000 }.entry(1);
        let got = host.io.ask(retrieve.with_data(DataPointer::Transport { length_bytes: 40_000 }), &[]);
        assert_eq!((got.status(), &got.data[..]), (Status::Success, &value[..bytes]));
    }
}

#[test]
fn a_delete_of_nothing_is_an_error_where_the_host_wants_that() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let delete = KvCommand::Delete { key: key(b"nothing") };
    assert_eq!(host.plain(&delete), Status::Success);
    let set = |value| AdminCommand::SetFeatures { feature: feature::KEY_VALUE_CONFIGURATION, save: false, value };
    assert_eq!(host.admin.admin(set(1), 1, 0).status(), Status::Success);
    let get = AdminCommand::GetFeatures { feature: feature::KEY_VALUE_CONFIGURATION, select: 0, value: 0 };
    assert_eq!(host.admin.admin(get, 1, 0).entry.dword0.get(), 1);
    assert_eq!(host.plain(&delete), Status::KeyDoesNotExist);
    assert_eq!(host.admin.admin(set(0), 1, 0).status(), Status::Success);
    assert_eq!(host.plain(&delete), Status::Success);
}

#[test]
fn a_full_drive_says_so_and_deletes_make_room() {
    let target = Target::over(64 << 20, |_| {}, |_| {});
    let mut host = Host::new(&target);
    let large = value(1, 256 << 10);
    let mut stored = 0u32;
    loop {
        match host.store(&stored.to_le_bytes(), &large) {
            Status::Success => stored += 1,
            Status::CapacityExceeded => break,
            other => panic!("{other}"),
        }
    }
    assert!(stored > 50, "{stored} stores");
    assert_eq!(host.retrieve(&0u32.to_le_bytes(), 1 << 20), Ok((large.clone(), 256 << 10)));
    assert_eq!(host.plain(&KvCommand::Delete { key: key(&0u32.to_le_bytes()) }), Status::Success);
    assert_eq!(host.plain(&KvCommand::Delete { key: key(&1u32.to_le_bytes()) }), Status::Success);
    assert_eq!(host.store(b"again", &large), Status::Success);
}

#[test]
fn a_list_goes_through_all_keys_a_buffer_at_a_time() {
    // Keys that no command can name are left out.
    let long = |drive: &mut kvssd_device::Drive| {
        for index in 0..600u32 {
            let name = format!("{index:04} is a key of more than sixteen bytes");
            let key = Key::new(name.as_bytes()).unwrap();
            let value = Value::from(&b"long"[..]);
            drive.execute(Command::Store { key, value, condition: StoreCondition::Always }).unwrap();
        }
    };
    let target = Target::over(256 << 20, |_| {}, long);
    let mut host = Host::new(&target);
    let mut wanted: Vec<Vec<u8>> = (0..700u32).map(|index| format!("{:x}", index * 77).into_bytes()).collect();
    for name in &wanted {
        assert_eq!(host.store(name, name), Status::Success);
    }
    for buffer_bytes in [64, 1000, 128 << 10] {
        let mut found: Vec<Vec<u8>> = Vec::new();
        loop {
            let last = found.last().cloned();
            let mut page = list(&mut host, last.as_deref(), buffer_bytes);
            page.retain(|name| Some(name) != last.as_ref());
            if page.is_empty() {
                break;
            }
            found.extend(page);
        }
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "a buffer of {buffer_bytes} bytes");
    }
    // A buffer that not even one key fits into: an empty list would be the end.
    let list_of = |host: &mut Host, namespace: u32, buffer_bytes: u32| {
        let command = KvCommand::List { from: None, buffer_bytes }.entry(namespace);
        let got = host.io.ask(command.with_data(DataPointer::Transport { length_bytes: buffer_bytes }), &[]);
        (got.status(), ListReader::new(&got.data).ok().map(|list| list.keys()))
    };
    for buffer_bytes in [0, 3, 4, 7] {
        assert_eq!(list_of(&mut host, 1, buffer_bytes), (Status::InvalidField, None), "{buffer_bytes} bytes");
    }
    assert_eq!(list_of(&mut host, 1, 12), (Status::Success, Some(1)));
    assert_eq!(list_of(&mut Host::new(&Target::new()), 1, 4), (Status::Success, Some(0)), "there are none");
}

#[test]
fn namespaces_of_the_drive_are_namespaces_of_the_target() {
    let made = |drive: &mut kvssd_device::Drive| {
        drive.create_namespace(kvssd_ftl::NamespaceAttributes::PLAIN).unwrap();
    };
    let target = Target::over(256 << 20, |_| {}, made);
    let mut host = Host::new(&target);
    assert_eq!(host.store(b"k", b"first"), Status::Success);
    let exist = KvCommand::Exist { key: key(b"k") };
    assert_eq!(host.io.ask(exist.entry(2), &[]).status(), Status::KeyDoesNotExist);
    let list = host.admin.identify(kvssd_nvme_spec::identify::cns::NAMESPACE_LIST, 0, 0).data;
    assert!(kvssd_nvme_spec::identify::read_namespace_list(&list).eq([1, 2]));
    let descriptors = host.admin.identify(kvssd_nvme_spec::identify::cns::NAMESPACE_DESCRIPTORS, 0, 2).data;
    assert_eq!(kvssd_nvme_spec::identify::descriptor_command_set(&descriptors), Some(1));
    assert!(NQN.starts_with("nqn."));
}
