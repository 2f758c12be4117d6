//! Keys of any length, and iterators: every command, its errors and bounds, beside other hosts.

use crate::host::{Got, HOST_NQN, Host, NQN, Queue, Target, io_connect, key, value};
use kvssd_device::Drive;
use kvssd_ftl::NamespaceAttributes;
use kvssd_nvme_spec::admin::{AdminCommand, GetLogPage};
use kvssd_nvme_spec::command::{DataPointer, NAMESPACE_ALL};
use kvssd_nvme_spec::extended::{self, IteratorRange, PairsReader, opcode};
use kvssd_nvme_spec::fabrics::Configuration;
use kvssd_nvme_spec::kv::{KvCommand, KvKey, StoreOptions};
use kvssd_nvme_spec::list::ListReader;
use kvssd_nvme_spec::log_page::page;
use kvssd_nvme_spec::{Status, SubmissionEntry};
use kvssd_nvme_target::{HostRights, Namespaces, Rights};
use kvssd_types::{NamespaceId, Nanos};
use std::collections::BTreeMap;
use std::time::Duration;
use zerocopy::IntoBytes;

/// The ordered namespace.
pub const TREE: u32 = 2;
/// Reads namespace 2, and does not know of 1.
const GUEST: &str = "nqn.guest";

pub type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn target(change: impl FnOnce(&mut kvssd_nvme_target::SubsystemOptions)) -> Target {
    Target::over(256 << 20, change, with_tree)
}

fn with_tree(drive: &mut Drive) {
    let attributes =
        NamespaceAttributes { name: Some("tree".to_owned()), is_ordered: true, ..NamespaceAttributes::PLAIN };
    assert_eq!(drive.create_namespace(attributes).unwrap(), NamespaceId(TREE));
}

fn long(bytes: &[u8]) -> KvKey {
    KvKey::long(bytes).unwrap()
}

/// Sends a command with what leads its data and a value, in the capsule or by R2T.
fn ask(queue: &mut Queue, namespace: u32, command: &KvCommand, value: &[u8]) -> Got {
    let data = [&command.lead()[..], value].concat();
    let length_bytes = data.len() as u32;
    let buffer_bytes = match *command {
        KvCommand::Retrieve { buffer_bytes, .. }
        | KvCommand::ListLong { buffer_bytes, .. }
        | KvCommand::Iterate { buffer_bytes, .. } => buffer_bytes,
        _ => 0,
    };
    let pointer = match length_bytes {
        0 => DataPointer::Transport { length_bytes: buffer_bytes },
        1..=8192 => DataPointer::InCapsule { offset_bytes: 0, length_bytes },
        _ => DataPointer::Transport { length_bytes },
    };
    queue.ask(command.entry(namespace).with_data(pointer), &data)
}

fn store(host: &mut Host, namespace: u32, name: &[u8], value: &[u8]) -> Status {
    let options = StoreOptions::default();
    let command = KvCommand::Store { key: long(name), value_bytes: value.len() as u32, options };
    ask(&mut host.io, namespace, &command, value).status()
}

pub fn create(host: &mut Host, namespace: u32, range: &IteratorRange) -> Result<u32, Status> {
    let got = ask(&mut host.io, namespace, &KvCommand::CreateIterator(Box::new(range.clone())), &[]);
    if got.status().is_success() { Ok(got.entry.dword0.get()) } else { Err(got.status()) }
}

pub fn iterate(
    host: &mut Host,
    iterator: u32,
    seek: Option<Option<&[u8]>>,
    pairs_max: u32,
    buffer_bytes: u32,
) -> Result<Pairs, Status> {
    let seek = seek.map(|key| key.map(long));
    let got = ask(&mut host.io, TREE, &KvCommand::Iterate { iterator, seek, pairs_max, buffer_bytes }, &[]);
    if !got.status().is_success() {
        return Err(got.status());
    }
    assert!(got.data.len() <= buffer_bytes as usize);
    let pairs = PairsReader::new(&got.data).unwrap().map(Result::unwrap);
    Ok(pairs.map(|(key, value)| (key.to_vec(), value.to_vec())).collect())
}

fn destroy(host: &mut Host, iterator: u32) -> Status {
    ask(&mut host.io, TREE, &KvCommand::DestroyIterator { iterator }, &[]).status()
}

/// All that is left of an iterator.
fn rest(host: &mut Host, iterator: u32, pairs_max: u32, buffer_bytes: u32) -> Pairs {
    let mut all = Pairs::new();
    loop {
        match iterate(host, iterator, None, pairs_max, buffer_bytes).unwrap() {
            page if page.is_empty() => return all,
            page => all.extend(page),
        }
    }
}

#[test]
fn keys_of_any_length_are_keys_like_others() {
    let target = target(|_| {});
    let mut host = Host::new(&target);
    for namespace in [1, TREE] {
        let mut all = Vec::new();
        for (index, length) in [1usize, 15, 16, 17, 18, 100, 254, 255].into_iter().enumerate() {
            // They differ behind the bytes that a command has room for.
            let name = [&vec![b'k'; length - 1][..], &[b'a' + index as u8]].concat();
            for bytes in [0, 1, 7900, 8193, 300_000] {
                let value = value(index, bytes);
                assert_eq!(store(&mut host, namespace, &name, &value), Status::Success, "{length} {bytes}");
                let retrieve = |buffer_bytes| KvCommand::Retrieve { key: long(&name), buffer_bytes };
                let got = ask(&mut host.io, namespace, &retrieve(1 << 20), &[]);
                assert_eq!((got.status(), got.entry.dword0.get()), (Status::Success, bytes as u32));
                assert!(got.data == value);
                let got = ask(&mut host.io, namespace, &retrieve(100), &[]);
                assert!(got.data == value[..bytes.min(100)] && got.entry.dword0.get() == bytes as u32);
            }
            let store_if = |must_exist, must_not_exist| KvCommand::Store {
                key: long(&name),
                value_bytes: 1,
                options: StoreOptions { must_exist, must_not_exist, compression: false },
            };
            let exist = KvCommand::Exist { key: long(&name) };
            let delete = KvCommand::Delete { key: long(&name) };
            assert_eq!(ask(&mut host.io, namespace, &store_if(false, true), b"x").status(), Status::KeyExists);
            assert_eq!(ask(&mut host.io, namespace, &exist, &[]).status(), Status::Success);
            assert_eq!(ask(&mut host.io, namespace, &delete, &[]).status(), Status::Success);
            assert_eq!(ask(&mut host.io, namespace, &exist, &[]).status(), Status::KeyDoesNotExist);
            assert_eq!(ask(&mut host.io, namespace, &store_if(true, false), b"x").status(), Status::KeyDoesNotExist);
            assert_eq!(ask(&mut host.io, namespace, &store_if(false, true), b"x").status(), Status::Success);
            all.push(name);
        }
        let list = |queue: &mut Queue, command: KvCommand| -> Vec<Vec<u8>> {
            let got = ask(queue, namespace, &command, &[]);
            assert_eq!(got.status(), Status::Success);
            ListReader::new(&got.data).unwrap().map(|key| key.unwrap().to_vec()).collect()
        };
        let long_keys = |from: Option<&[u8]>| KvCommand::ListLong { from: from.map(long), buffer_bytes: 4096 };
        let listed = list(&mut host.io, long_keys(None));
        let mut sorted = listed.clone();
        sorted.sort();
        all.sort();
        assert_eq!(sorted, all);
        for (at, from) in listed.iter().enumerate() {
            assert_eq!(list(&mut host.io, long_keys(Some(from))), listed[at..], "from a key of {} bytes", from.len());
        }
        // NVMe's own List leaves out what it has no room for.
        let got = host.io.ask(
            KvCommand::List { from: None, buffer_bytes: 4096 }
                .entry(namespace)
                .with_data(DataPointer::Transport { length_bytes: 4096 }),
            &[],
        );
        assert_eq!(ListReader::new(&got.data).unwrap().count(), 3);
    }
}

#[test]
fn an_iterator_shows_what_was_there_and_agrees_with_a_map() {
    let target = target(|_| {});
    let (mut host, mut other) = (Host::new(&target), Host::new(&target));
    let mut map = BTreeMap::new();
    for number in 0..400usize {
        let name = format!("{:03}{}", number * 7 % 1000, "x".repeat(number % 200));
        let value = value(number, if number == 77 { 200_000 } else { number * 5 });
        assert_eq!(store(&mut host, TREE, name.as_bytes(), &value), Status::Success);
        map.insert(name.into_bytes(), value);
    }
    let bytes = |text: &str| text.as_bytes().to_vec();
    let ranges = [
        (bytes(""), bytes(""), None),
        (bytes("1"), bytes(""), None),
        (bytes(""), bytes("25"), Some(bytes("61"))),
        (bytes("9"), bytes("93"), Some(bytes("99"))),
        (bytes("none"), bytes(""), None),
        (bytes(""), bytes(""), Some(Vec::new())),
    ];
    for (prefix, first, end) in ranges {
        for (descending, keys_only) in [(false, false), (true, false), (false, true), (true, true)] {
            let (prefix, first, end) = (prefix.clone(), first.clone(), end.clone());
            let range = IteratorRange { prefix, first, end, descending, keys_only };
            let is_in = |key: &[u8]| {
                key.starts_with(&range.prefix)
                    && *key >= *range.first
                    && range.end.as_ref().is_none_or(|end| *key < **end)
            };
            let mut wanted: Pairs =
                map.iter().filter(|(key, _)| is_in(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
            if descending {
                wanted.reverse();
            }
            if keys_only {
                wanted.iter_mut().for_each(|(_, value)| value.clear());
            }
            for (pairs_max, buffer_bytes) in [(0, 1 << 20), (1, 300_000), (7, 250_000), (0, 201_000)] {
                let iterator = create(&mut host, TREE, &range).unwrap();
                // What comes and goes meanwhile is not shown, and does not hide anything.
                assert_eq!(store(&mut other, TREE, b"5 new", b"new"), Status::Success);
                let changed = wanted.first().map(|(key, _)| key.clone());
                if let Some(changed) = &changed {
                    let delete = KvCommand::Delete { key: long(changed) };
                    assert_eq!(ask(&mut other.io, TREE, &delete, &[]).status(), Status::Success);
                }
                let shown = rest(&mut host, iterator, pairs_max, buffer_bytes);
                assert!(shown == wanted, "{range:?} {pairs_max} {buffer_bytes}: {} of {}", shown.len(), wanted.len());
                // Sought again, it shows the same from there on; before the first and behind the last one, too.
                for at in [0, wanted.len() / 2, wanted.len().saturating_sub(1)] {
                    let Some((from, _)) = wanted.get(at) else { continue };
                    let page = iterate(&mut host, iterator, Some(Some(from)), pairs_max, buffer_bytes).unwrap();
                    assert!(page[..] == wanted[at..][..page.len()] && !page.is_empty());
                    assert!(rest(&mut host, iterator, pairs_max, buffer_bytes) == wanted[at + page.len()..]);
                }
                let again = iterate(&mut host, iterator, Some(None), 1, 300_000).unwrap();
                assert!(again[..] == wanted[..wanted.len().min(1)]);
                assert_eq!(destroy(&mut host, iterator), Status::Success);
                if let Some(changed) = changed {
                    assert_eq!(store(&mut other, TREE, &changed, &map[&changed]), Status::Success);
                }
                let delete = KvCommand::Delete { key: key(b"5 new") };
                assert_eq!(ask(&mut other.io, TREE, &delete, &[]).status(), Status::Success);
            }
        }
    }
}

#[test]
fn a_pair_that_does_not_fit_says_what_it_takes() {
    let target = target(|_| {});
    let mut host = Host::new(&target);
    assert_eq!(store(&mut host, TREE, b"key", &value(1, 5001)), Status::Success);
    let iterator = create(&mut host, TREE, &IteratorRange::default()).unwrap();
    for buffer_bytes in [8, 100, 5019] {
        let command = KvCommand::Iterate { iterator, seek: None, pairs_max: 0, buffer_bytes };
        let got = ask(&mut host.io, TREE, &command, &[]);
        let reader = PairsReader::new(&got.data).unwrap();
        assert_eq!((reader.next_bytes, reader.count()), (5020, 0), "{buffer_bytes}");
    }
    assert_eq!(rest(&mut host, iterator, 0, 5020).len(), 1);
    assert_eq!(iterate(&mut host, iterator, Some(None), 0, 7), Err(Status::InvalidField));
}

#[test]
fn what_cannot_be_is_refused() {
    let target = target(|_| {});
    let mut host = Host::new(&target);
    let whole = IteratorRange::default();
    assert_eq!(create(&mut host, 1, &whole), Err(Status::InvalidOpcode), "keys without an order");
    assert_eq!(create(&mut host, 9, &whole), Err(Status::InvalidField));
    let iterator = create(&mut host, TREE, &whole).unwrap();
    for number in [0, iterator + 1, u32::MAX] {
        assert_eq!(iterate(&mut host, number, None, 0, 4096), Err(Status::IteratorEnded));
        assert_eq!(destroy(&mut host, number), Status::IteratorEnded);
    }
    // Of another namespace.
    let command = KvCommand::Iterate { iterator, seek: None, pairs_max: 0, buffer_bytes: 4096 };
    assert_eq!(ask(&mut host.io, 1, &command, &[]).status(), Status::IteratorEnded);
    let inside = |length_bytes| DataPointer::InCapsule { offset_bytes: 0, length_bytes };
    let mut of = |opcode: u8, change: fn(&mut SubmissionEntry), pointer, data: &[u8]| {
        let mut entry = SubmissionEntry::new(opcode, TREE).with_data(pointer);
        change(&mut entry);
        host.io.ask(entry, data).status()
    };
    for opcode in [opcode::STORE, opcode::RETRIEVE, opcode::LIST, opcode::DELETE, opcode::EXIST, opcode::SEEK] {
        // A key that is announced and does not come, or comes in part.
        for bytes in [0, 19] {
            let got = of(opcode, |entry| entry.dword11 = 20.into(), inside(bytes), &vec![7; bytes as usize]);
            assert_eq!(got, Status::SglLengthInvalid, "{opcode:x}h, {bytes} bytes");
        }
        let none = DataPointer::Transport { length_bytes: 4096 };
        let is_to_controller = opcode & 3 == 1;
        if !is_to_controller {
            assert_eq!(of(opcode, |entry| entry.dword11 = 20.into(), none, &[]), Status::SglLengthInvalid);
        }
    }
    for opcode in [opcode::STORE, opcode::RETRIEVE, opcode::DELETE, opcode::EXIST] {
        assert_eq!(of(opcode, |_| {}, DataPointer::NONE, &[]), Status::InvalidKeySize, "{opcode:x}h");
    }
    let larger = |entry: &mut SubmissionEntry| (entry.dword10, entry.dword11) = ((3 << 20).into(), 20.into());
    let pointer = DataPointer::Transport { length_bytes: 4 << 20 };
    assert_eq!(of(opcode::STORE, larger, pointer, &[]), Status::InvalidValueSize);
    for (dword10, dword11) in [(0, 8), (1 << 16, 0), (1 << 24, 0)] {
        let mut entry = SubmissionEntry::new(opcode::CREATE_ITERATOR, TREE).with_data(inside(4));
        (entry.dword10, entry.dword11) = (u32::into(dword10), u32::into(dword11));
        assert_eq!(host.io.ask(entry, b"abcd").status(), Status::InvalidField, "{dword10:x} {dword11}");
    }
    let mut entry = SubmissionEntry::new(opcode::NEXT, TREE).with_data(DataPointer::Transport { length_bytes: 100 });
    (entry.dword10, entry.dword12) = (101.into(), iterator.into());
    assert_eq!(host.io.ask(entry, &[]).status(), Status::SglLengthInvalid);
    assert!(extended::is(opcode::NEXT) && rest(&mut host, iterator, 0, 4096).is_empty());
}

#[test]
fn iterators_are_bounded_and_end_with_their_controller_or_when_they_are_idle() {
    let target = target(|options| options.limits.iterator_idle_ns = Nanos(5_000_000_000));
    let (mut host, mut other) = (Host::new(&target), Host::new(&target));
    for number in 0..50u8 {
        assert_eq!(store(&mut host, TREE, &[number], &[number; 100]), Status::Success);
    }
    let whole = IteratorRange::default();
    let mut made = Vec::new();
    loop {
        match create(&mut host, TREE, &whole) {
            Ok(iterator) => made.push(iterator),
            Err(status) => break assert_eq!(status, Status::TooManyIterators),
        }
    }
    assert_eq!(made.len(), 64);
    // Another host has its own, and not these.
    let of_other = create(&mut other, TREE, &whole).unwrap();
    assert_eq!(iterate(&mut other, made[0], None, 0, 4096), Err(Status::IteratorEnded));
    assert_eq!(destroy(&mut other, made[0]), Status::IteratorEnded);
    assert_eq!(destroy(&mut host, made[0]), Status::Success);
    made[0] = create(&mut host, TREE, &whole).unwrap();
    // One is used; all others are idle.
    for _ in 0..6 {
        std::thread::sleep(Duration::from_millis(900));
        assert_eq!(iterate(&mut host, made[5], Some(None), 1, 4096).map(|pairs| pairs.len()), Ok(1));
    }
    for iterator in [made[0], made[4], made[63]] {
        assert_eq!(iterate(&mut host, iterator, None, 1, 4096), Err(Status::IteratorEnded));
    }
    assert_eq!(iterate(&mut other, of_other, None, 1, 4096), Err(Status::IteratorEnded));
    let left = create(&mut host, TREE, &whole).unwrap();
    // A reset ends them, and the I/O queue; so does the end of the connection.
    host.admin.set_configuration(Configuration(0));
    host.admin.set_configuration(Configuration::KEY_VALUE);
    host.io = Queue::greeted(target.address, false, false);
    assert_eq!(host.io.connect(io_connect(1), host.controller, NQN, HOST_NQN).status(), Status::Success);
    assert_eq!(iterate(&mut host, left, None, 1, 4096), Err(Status::IteratorEnded));
    let last = create(&mut host, TREE, &whole).unwrap();
    drop(host);
    let mut again = Host::new(&target);
    assert_eq!(iterate(&mut again, last, None, 1, 4096), Err(Status::IteratorEnded));
}

#[test]
fn a_host_that_took_all_memory_for_iterators_makes_room_for_another_host() {
    let target = Target::over(64 << 20, |_| {}, with_tree);
    // Two controllers of one host are one host.
    let mut greedy = [Host::named(target.address, "nqn.greedy"), Host::named(target.address, "nqn.greedy")];
    let mut late = Host::named(target.address, "nqn.late");
    for number in 0..20_000u32 {
        assert_eq!(store(&mut late, TREE, &number.to_be_bytes(), b"value"), Status::Success);
    }
    let range = IteratorRange::default();
    let mut of_greedy = Vec::new();
    'taken: for (number, host) in greedy.iter_mut().enumerate() {
        for _ in 0..64 {
            let Ok(iterator) = create(host, TREE, &range) else { break 'taken };
            of_greedy.push((number, iterator));
        }
    }
    assert!((4..128).contains(&of_greedy.len()), "memory ends before the bound of a controller: {}", of_greedy.len());
    let mut of_late = Vec::new();
    while let Ok(iterator) = create(&mut late, TREE, &range) {
        assert_eq!(iterate(&mut late, iterator, Some(None), 1, 1000).unwrap().len(), 1);
        of_late.push(iterator);
    }
    let lives =
        |&&(number, iterator): &&(usize, u32)| iterate(&mut greedy[number], iterator, Some(None), 1, 1000).is_ok();
    let (lives, had) = (of_greedy.iter().filter(lives).count(), of_greedy.len());
    assert!(
        of_late.len().abs_diff(lives) <= 1,
        "{had}: {lives} are left of them, and {} are the other's",
        of_late.len()
    );
}

#[test]
fn a_hidden_namespace_has_no_iterators_and_one_to_read_has() {
    let guest = HostRights {
        read_write: Namespaces::NONE,
        read_only: Namespaces::Some([TREE].into()),
        ..HostRights::EVERYTHING
    };
    let rights = Rights::new([(GUEST.to_owned(), guest), (HOST_NQN.to_owned(), HostRights::EVERYTHING)].into(), None);
    let target = target(|options| options.rights = rights);
    let (mut all, mut guest) = (Host::new(&target), Host::named(target.address, GUEST));
    let name = [b'n'; 40];
    for namespace in [1, TREE] {
        assert_eq!(store(&mut all, namespace, &name, b"secret"), Status::Success);
    }
    let options = StoreOptions::default();
    let commands = [
        (KvCommand::Store { key: long(&name), value_bytes: 3, options }, &b"new"[..]),
        (KvCommand::Retrieve { key: long(&name), buffer_bytes: 4096 }, b""),
        (KvCommand::ListLong { from: Some(long(&name)), buffer_bytes: 4096 }, b""),
        (KvCommand::ListLong { from: None, buffer_bytes: 4096 }, b""),
        (KvCommand::Delete { key: long(&name) }, b""),
        (KvCommand::Exist { key: long(&name) }, b""),
        (KvCommand::CreateIterator(Box::default()), b""),
        (KvCommand::Iterate { iterator: 1, seek: None, pairs_max: 0, buffer_bytes: 4096 }, b""),
        (KvCommand::Iterate { iterator: 1, seek: Some(None), pairs_max: 0, buffer_bytes: 4096 }, b""),
        (KvCommand::DestroyIterator { iterator: 1 }, b""),
    ];
    for (command, value) in &commands {
        let mut of = |namespace| {
            let got = ask(&mut guest.io, namespace, command, value);
            (got.status(), got.entry.result(), got.data)
        };
        assert_eq!(of(1), of(9), "{command:?}");
        assert_eq!(of(1).0, Status::InvalidField, "{command:?}");
        let is_change = matches!(command, KvCommand::Store { .. } | KvCommand::Delete { .. });
        assert_eq!(of(TREE).0 == Status::NamespaceWriteProtected, is_change, "{command:?}");
    }
    let iterator = create(&mut guest, TREE, &IteratorRange::default()).unwrap();
    assert_eq!(rest(&mut guest, iterator, 0, 4096), [(name.to_vec(), b"secret".to_vec())]);
}

/// Other hosts' iterators end with their namespace, and none of them goes on in the next one of its number.
#[test]
fn iterators_end_with_their_namespace() {
    let target = target(|_| {});
    let (mut host, mut other) = (Host::new(&target), Host::new(&target));
    for number in 0..100u8 {
        assert_eq!(store(&mut host, TREE, &[number], &[number; 1000]), Status::Success);
    }
    let iterator = create(&mut other, TREE, &IteratorRange::default()).unwrap();
    assert_eq!(iterate(&mut other, iterator, None, 10, 1 << 20).unwrap().len(), 10);
    let mut name = [0; 64];
    name[..4].copy_from_slice(b"tree");
    let delete = AdminCommand::DeleteNamespace.entry(TREE);
    let inside = |length_bytes| DataPointer::InCapsule { offset_bytes: 0, length_bytes };
    assert_eq!(host.admin.ask(delete.with_data(inside(64)), &name).status(), Status::Success);
    assert_eq!(iterate(&mut other, iterator, None, 10, 1 << 20), Err(Status::InvalidField));
    let create = AdminCommand::CreateNamespace.entry(0).with_data(inside(128));
    for number in 0..100u8 {
        let mut wanted = kvssd_nvme_spec::named::CreateNamespace::zeroed();
        wanted.flags = kvssd_nvme_spec::named::FLAG_ORDERED.into();
        kvssd_nvme_spec::write_text(&mut wanted.name, &format!("round {number}"));
        let made = host.admin.ask(create, wanted.as_bytes()).entry.dword0.get();
        if made == TREE {
            // The other host means the one that is gone, until it looks.
            assert_eq!(iterate(&mut other, iterator, None, 10, 1 << 20), Err(Status::InvalidField));
            let look = GetLogPage { page: page::NAMESPACES, length_bytes: 4096, ..GetLogPage::default() };
            let looked = other.admin.admin(AdminCommand::GetLogPage(look), NAMESPACE_ALL, 4096);
            assert_eq!(looked.status(), Status::Success);
            assert_eq!(iterate(&mut other, iterator, None, 10, 1 << 20), Err(Status::IteratorEnded));
            return;
        }
        let delete = AdminCommand::DeleteNamespace.entry(made);
        assert_eq!(host.admin.ask(delete.with_data(inside(64)), &wanted.name).status(), Status::Success);
    }
    panic!("number 2 does not come again");
}
