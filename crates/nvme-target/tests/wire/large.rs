//! Values of up to 256 MiB, and the memory that they take of all connections.

use crate::host::{Heard, Host, NQN, PATIENCE, Queue, Target};
use kvssd_device::{CreateDrive, Drive, LARGE_VALUE_BYTES_MAX, image_design, image_profile};
use kvssd_flash::OpenOptions;
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::kv::{KvCommand, KvKey, StoreOptions};
use kvssd_nvme_spec::pdu::{DataHeader, Pdu, Sender};
use kvssd_nvme_target::SubsystemOptions;
use kvssd_types::{Nanos, Pattern};
use std::fs::File;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

const MIB: u32 = 1 << 20;

/// A drive of a gigabyte for values of `value_bytes_max`.
fn target(value_bytes_max: u32, change: impl FnOnce(&mut SubsystemOptions)) -> Target {
    let folder = tempfile::tempdir().unwrap();
    let (profile, design) = (image_profile(1 << 30).unwrap(), image_design("plus").unwrap());
    let create = CreateDrive { value_bytes_max: Some(value_bytes_max), ..CreateDrive::default() };
    let drive = Drive::create(folder.path().join("drive.kv"), &profile, &design, create).unwrap();
    let mut options = SubsystemOptions::new(NQN);
    change(&mut options);
    Target::serving(drive, options, folder)
}

fn value(seed: u64, length: u32) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    Pattern { seed, offset: 0, length }.fill(0..bytes.len(), &mut bytes);
    bytes
}

/// Sends a command and takes nothing.
fn begin(queue: &mut Queue, command: &KvCommand, length_bytes: u32) -> u16 {
    let id = queue.id();
    let mut entry = command.entry(1).with_data(DataPointer::Transport { length_bytes });
    entry.command_id = id.into();
    queue.send(&Pdu::Command { entry, data: &[] });
    id
}

#[test]
fn a_value_of_256_mib_is_stored_and_retrieved_and_is_there_after_a_restart() {
    let mut target = target(LARGE_VALUE_BYTES_MAX, |_| {});
    let largest = value(1, LARGE_VALUE_BYTES_MAX);
    let mut host = Host::new(&target);
    // Identify Controller, MDTS: a power of two of pages of 4 KiB. Namespace, KVF 0: the largest value at byte 4.
    assert_eq!(host.admin.identify(0x01, 0, 0).data[77], 16);
    let namespace = host.admin.identify(0x05, 1, 1).data;
    assert_eq!(u32::from_le_bytes(namespace[76..80].try_into().unwrap()), LARGE_VALUE_BYTES_MAX);
    assert_eq!(host.store_if(b"large", &largest, StoreOptions::default()), Status::Success);
    assert_eq!(host.store_if(b"small", b"a value", StoreOptions::default()), Status::Success);
    let mut too_large = largest.clone();
    too_large.push(0);
    assert_eq!(host.store_if(b"larger", &too_large, StoreOptions::default()), Status::InvalidValueSize);
    drop(too_large);
    for _ in 0..2 {
        assert!(host.retrieve(b"large", LARGE_VALUE_BYTES_MAX) == Ok((largest.clone(), LARGE_VALUE_BYTES_MAX)));
        assert!(host.retrieve(b"large", 5 * MIB) == Ok((largest[..5 * MIB as usize].to_vec(), LARGE_VALUE_BYTES_MAX)));
        assert_eq!(host.retrieve(b"small", 100), Ok((b"a value".to_vec(), 7)));
        drop(host);
        target.stop();
        let folder = std::mem::replace(&mut target.folder, tempfile::tempdir().unwrap());
        let drive = Drive::open(folder.path().join("drive.kv"), OpenOptions::default()).unwrap();
        assert_eq!((drive.value_bytes_max(), drive.utilization().pairs), (LARGE_VALUE_BYTES_MAX.into(), 2));
        target = Target::serving(drive, SubsystemOptions::new(NQN), folder);
        host = Host::new(&target);
    }
}

/// Whether nothing is asked for or answered: there is no room.
fn waits(queue: &mut Queue) -> bool {
    queue.stream.set_read_timeout(Some(Duration::from_millis(600))).unwrap();
    let does_wait = queue.stream.peek(&mut [0]).is_err();
    queue.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    does_wait
}

#[test]
fn values_of_all_connections_share_a_bound() {
    let target = target(4 * MIB, |options| options.limits.values_bytes_max = u64::from(3 * MIB));
    let (mut one, mut other) = (Host::new(&target), Host::new(&target));
    let key = |name: &[u8]| KvKey::new(name).unwrap();
    let stored = value(1, 2 * MIB);
    let store = |name| KvCommand::Store { key: key(name), value_bytes: 2 * MIB, options: StoreOptions::default() };
    // On the way in.
    let first = begin(&mut one.io, &store(b"one"), 2 * MIB);
    let Heard::R2t(_, tag, ..) = one.io.hear() else { panic!("the first store is asked for its data") };
    let second = begin(&mut other.io, &store(b"other"), 2 * MIB);
    assert!(waits(&mut other.io));
    one.io.send_data(first, tag, &stored);
    assert_eq!(one.io.take(first, &[]).status(), Status::Success);
    assert_eq!(other.io.take(second, &stored).status(), Status::Success);
    // On the way out: more than the system's buffers take.
    let retrieve = KvCommand::Retrieve { key: key(b"one"), buffer_bytes: 2 * MIB };
    let untaken: Vec<u16> = (0..20).map(|_| begin(&mut one.io, &retrieve, 2 * MIB)).collect();
    // Until the buffers are full, the other may have its turn.
    let begun = Instant::now();
    let asked = loop {
        assert!(begun.elapsed() < PATIENCE, "there is always room for one more");
        let asked = begin(&mut other.io, &retrieve, 2 * MIB);
        // Once more, or a pause of a busy machine would do for one without end.
        if waits(&mut other.io) && waits(&mut other.io) {
            break asked;
        }
        assert!(other.io.take(asked, &[]).data == stored);
    };
    // What gives no data needs no room.
    assert_eq!(Host::new(&target).store_if(b"third", b"a value", StoreOptions::default()), Status::Success);
    for id in untaken {
        assert!(one.io.take(id, &[]).data == stored);
    }
    assert!(other.io.take(asked, &[]).data == stored);
}

/// However slow the hosts of large values are.
#[test]
fn what_is_small_does_not_wait_for_what_is_large() {
    let target = target(4 * MIB, |options| options.limits.values_bytes_max = u64::from(3 * MIB));
    let (mut one, mut other, mut small) = (Host::new(&target), Host::new(&target), Host::new(&target));
    assert_eq!(one.store_if(b"large", &value(1, 2 * MIB), StoreOptions::default()), Status::Success);
    // On the way in: two of three have the room.
    let store =
        KvCommand::Store { key: KvKey::new(b"in").unwrap(), value_bytes: MIB, options: StoreOptions::default() };
    let mut crowd = [Host::new(&target), Host::new(&target), Host::new(&target)];
    for host in &mut crowd {
        begin(&mut host.io, &store, MIB);
    }
    let begun = Instant::now();
    while crowd.iter_mut().map(|host| waits(&mut host.io)).filter(|waits| *waits).count() > 1 {
        assert!(begun.elapsed() < PATIENCE, "the second one is not asked for its data");
    }
    assert!(crowd.iter_mut().any(|host| waits(&mut host.io)), "the third one has the room of others");
    assert_eq!(small.store_if(b"small", &value(2, 40_000), StoreOptions::default()), Status::Success);
    // On the way out.
    let retrieve = KvCommand::Retrieve { key: KvKey::new(b"large").unwrap(), buffer_bytes: 2 * MIB };
    for _ in 0..20 {
        begin(&mut one.io, &retrieve, 2 * MIB);
    }
    loop {
        assert!(begun.elapsed() < 3 * PATIENCE, "there is always room for one more");
        let asked = begin(&mut other.io, &retrieve, 2 * MIB);
        if waits(&mut other.io) && waits(&mut other.io) {
            break;
        }
        other.io.take(asked, &[]);
    }
    for _ in 0..3 {
        assert!(small.retrieve(b"small", 4 * MIB).is_ok_and(|(got, _)| got == value(2, 40_000)));
        assert_eq!(small.retrieve(b"none", 4 * MIB), Err(Status::KeyDoesNotExist));
    }
    // Stores need no such room: they are committed together all the same.
    let before = commits(&target);
    let ids: Vec<u16> = (0..STORES).map(|_| small.io.id()).collect();
    let capsules = ids.iter().flat_map(|&id| {
        let key = KvKey::new(&id.to_be_bytes()).unwrap();
        let store = KvCommand::Store { key, value_bytes: 100, options: StoreOptions::default() };
        let inside = DataPointer::InCapsule { offset_bytes: 0, length_bytes: 100 };
        let mut entry = store.entry(1).with_data(inside);
        entry.command_id = id.into();
        small.io.bytes(&Pdu::Command { entry, data: &[7; 100] })
    });
    let capsules: Vec<u8> = capsules.collect();
    small.io.write(&capsules);
    for id in ids {
        assert_eq!(small.io.take(id, &[]).status(), Status::Success);
    }
    let made = commits(&target) - before;
    assert!(made < STORES / 2, "{made} commits of {STORES} stores");
    assert!(waits(&mut other.io), "the large ones took room all the time");
}

/// Stores that are sent at once.
const STORES: u64 = 32;

/// How many commits lie in the image, as chunks in the halves of its staging (`kvssd_flash::image`).
fn commits(target: &Target) -> u64 {
    let image = File::open(target.folder.path().join("drive.kv")).unwrap();
    let word = |at: u64| {
        let mut bytes = [0; 8];
        // The chunk of a half that was superseded ends behind the image.
        image.read_at(&mut bytes, at).unwrap();
        u64::from_le_bytes(bytes)
    };
    let (staging, half_bytes) = (word(112), word(120));
    let chunks = |begin: u64| {
        let epoch = word(begin + 8);
        let next = |&at: &u64| Some(at + (24 + (word(at) >> 32)).next_multiple_of(8));
        let all = std::iter::successors(Some(begin), next);
        all.take_while(|at| epoch > 0 && at + 24 <= begin + half_bytes && word(at + 8) == epoch).count() as u64
    };
    chunks(staging) + chunks(staging + half_bytes)
}

/// Who sends a little now and then is not silent, and yet keeps the memory that others wait for.
#[test]
fn who_sends_a_value_in_drops_is_sent_away() {
    let target = target(4 * MIB, |options| {
        options.limits.values_bytes_max = u64::from(3 * MIB);
        options.limits.transfer_ns = Nanos(400_000_000);
    });
    let (mut one, mut other) = (Host::new(&target), Host::new(&target));
    let key = |name: &[u8]| KvKey::new(name).unwrap();
    let store = |name| KvCommand::Store { key: key(name), value_bytes: 2 * MIB, options: StoreOptions::default() };
    let first = begin(&mut one.io, &store(b"one"), 2 * MIB);
    let Heard::R2t(_, tag, ..) = one.io.hear() else { panic!("the first store is asked for its data") };
    let second = begin(&mut other.io, &store(b"other"), 2 * MIB);
    other.io.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let is_asked = (0..100).any(|drop| {
        let header = DataHeader::new(first, tag, drop * 4, 4);
        let pdu = Pdu::Data { sender: Sender::Host, header, is_last: false, is_success: false, data: &[1; 4] };
        // At last nobody is there to take it.
        let _ = one.io.stream.write_all(&one.io.bytes(&pdu));
        other.io.stream.peek(&mut [0]).is_ok()
    });
    assert!(is_asked, "the other host waits for ever");
    other.io.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(other.io.take(second, &value(1, 2 * MIB)).status(), Status::Success);
}

#[test]
fn who_takes_answers_too_slowly_is_sent_away_and_others_get_theirs() {
    let target = target(4 * MIB, |options| {
        options.limits.values_bytes_max = u64::from(3 * MIB);
        options.limits.send_ns = Nanos(300_000_000);
    });
    let (mut slow, mut other) = (Host::new(&target), Host::new(&target));
    assert_eq!(other.store_if(b"key", &value(1, 2 * MIB), StoreOptions::default()), Status::Success);
    let retrieve = KvCommand::Retrieve { key: KvKey::new(b"key").unwrap(), buffer_bytes: 2 * MIB };
    for _ in 0..60 {
        begin(&mut slow.io, &retrieve, 2 * MIB);
    }
    // Two thirds of a megabyte a second.
    let trickle = std::thread::spawn(move || {
        let mut part = vec![0; 64 << 10];
        while slow.io.stream.read_exact(&mut part).is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    assert_eq!(other.retrieve(b"key", 2 * MIB).map(|(value, _)| value.len()), Ok(2 << 20));
    assert!(begun.elapsed() < Duration::from_secs(15));
    drop(target);
    trickle.join().unwrap();
}
