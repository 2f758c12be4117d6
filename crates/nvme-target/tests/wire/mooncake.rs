//! What Mooncake's NVMe-KV back end sends, command by command.
//!
//! The order was read in kvcache-ai/Mooncake (merged as #2167): commands and constants in `mooncake-store/include/nvme_kv/executor_util.h`,
//! packing of keys in `src/nvme_kv/executor_util.cpp`, batches and repeated retrieves in `src/nvme_kv/executor_io_uring.cpp`, root and chunks in
//! its page "NVMe KV Backend Design". It goes through `/dev/ngXnY`, so the capsules are Linux's (`attach.rs`, and the script that boots it).
//! Timeouts are the kernel's and are on no wire. How it numbers the keys of a namespace again after a restart (List) was in versions before
//! the merge, and is not replayed.

use crate::host::{Got, HOST_NQN, Host, NQN, Queue, Target, io_connect, value};
use crate::together::ask_together;
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::{Status, SubmissionEntry};

/// It gives all data in whole pages.
const ALIGNMENT: u32 = 4096;
/// Of what a value has at the most: more is cut into chunks.
const TRANSFER_BYTES_MAX: u32 = 270_336;
const STORE: u8 = 0x01;
const RETRIEVE: u8 = 0x02;
const DELETE: u8 = 0x10;

/// A key of the program's: two hashes of the object's name, its role and the slot.
type PhysicalKey = [u8; 16];

fn physical_key(object: u64, role: u64, slot: u64) -> PhysicalKey {
    let half = |seed| kvssd_types::mix64(object ^ kvssd_types::mix64(role << 32 | slot << 1 | seed)).to_le_bytes();
    [half(0), half(1)].concat().try_into().unwrap()
}

/// The entry of a command: the key's twelfth byte makes place for the command set, and dword 12 counts blocks of 512 bytes, from 0.
fn entry(opcode: u8, key: &PhysicalKey, bytes: u32) -> SubmissionEntry {
    let word = |at: usize| u32::from_le_bytes(key[at..at + 4].try_into().unwrap());
    let mut entry = SubmissionEntry::new(opcode, 1);
    (entry.dword2, entry.dword3) = (word(0).into(), word(4).into());
    (entry.dword14, entry.dword15) = ((1 << 24 | word(8) & 0x00ff_ffff).into(), word(12).into());
    let if_absent = if opcode == STORE { 0x2 << 8 } else { 0 };
    entry.dword11 = (if_absent | 16).into();
    if opcode == DELETE {
        return entry.with_data(DataPointer::NONE);
    }
    entry.dword10 = bytes.into();
    entry.dword12 = bytes.div_ceil(512).saturating_sub(1).into();
    // What Linux does with little data of a command that passes through it.
    let pointer = match opcode {
        STORE if bytes <= 8192 => DataPointer::InCapsule { offset_bytes: 0, length_bytes: bytes },
        _ => DataPointer::Transport { length_bytes: bytes },
    };
    entry.with_data(pointer)
}

/// What it makes of a status: the eight bits of the code alone.
fn code(got: &Got) -> u16 {
    got.status().code() & 0xff
}

const DONE: u16 = 0;
const KEY_DOES_NOT_EXIST: u16 = 0x87;
const KEY_EXISTS: u16 = 0x89;

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
    padded
}

fn store(queue: &mut Queue, key: &PhysicalKey, value: &[u8]) -> u16 {
    let value = padded(value);
    code(&ask_together(queue, vec![(entry(STORE, key, value.len() as u32), &value)])[0])
}

/// A page first; of a longer value all of it then, since dword 0 says how long it is.
fn retrieve(queue: &mut Queue, key: &PhysicalKey) -> Result<Vec<u8>, u16> {
    let mut wanted = ALIGNMENT;
    loop {
        let got = ask_together(queue, vec![(entry(RETRIEVE, key, wanted), &[])]).remove(0);
        if code(&got) != DONE {
            return Err(code(&got));
        }
        let value_bytes = got.entry.dword0.get();
        if value_bytes <= wanted {
            return Ok(got.data);
        }
        assert_eq!(got.data.len(), wanted as usize, "as much as there is room for");
        wanted = value_bytes.next_multiple_of(ALIGNMENT);
    }
}

fn delete(queue: &mut Queue, key: &PhysicalKey) -> u16 {
    code(&ask_together(queue, vec![(entry(DELETE, key, 0), &[])])[0])
}

#[test]
fn small_objects_lie_in_their_roots() {
    let target = Target::new();
    let mut host = Host::new(&target);
    for (object, length) in [(1u64, 1usize), (2, 4095), (3, 4096), (4, 8192), (5, 8193), (6, 100_000), (7, 270_336)] {
        let (key, object) = (physical_key(object, 1, 0), value(object as usize, length));
        assert_eq!(retrieve(&mut host.io, &key), Err(KEY_DOES_NOT_EXIST));
        assert_eq!(store(&mut host.io, &key, &object), DONE, "{length} bytes");
        assert_eq!(retrieve(&mut host.io, &key), Ok(padded(&object)), "{length} bytes");
        // Who stores the same again is told, looks, and finds that it is the same.
        assert_eq!(store(&mut host.io, &key, &object), KEY_EXISTS);
        assert_eq!(retrieve(&mut host.io, &key), Ok(padded(&object)));
        // A cleanup that comes twice: a key that is not there is none to delete, and no error.
        assert_eq!((delete(&mut host.io, &key), delete(&mut host.io, &key)), (DONE, DONE));
        assert_eq!(retrieve(&mut host.io, &key), Err(KEY_DOES_NOT_EXIST));
    }
}

#[test]
fn a_large_object_is_chunks_by_r2t_under_way_together_and_then_its_root() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let object = value(9, 20 * TRANSFER_BYTES_MAX as usize + 12_345);
    let chunks: Vec<_> = object.chunks(TRANSFER_BYTES_MAX as usize).map(padded).collect();
    let keys: Vec<_> = (0..chunks.len() as u64).map(|chunk| physical_key(9, 2, chunk)).collect();
    let stores = keys.iter().zip(&chunks).map(|(key, chunk)| (entry(STORE, key, chunk.len() as u32), &chunk[..]));
    assert!(ask_together(&mut host.io, stores.collect()).iter().all(|got| code(got) == DONE));
    // The root makes the object visible: keys, sizes and checksums of the chunks.
    let root = physical_key(9, 1, 0);
    let manifest: Vec<u8> = keys.iter().flat_map(|key| [&key[..], &[0; 8]].concat()).collect();
    assert_eq!(store(&mut host.io, &root, &manifest), DONE);
    assert_eq!(retrieve(&mut host.io, &root), Ok(padded(&manifest)));
    // Straight to where the object is wanted: the size must be the one that was asked for.
    let retrieves = || keys.iter().zip(&chunks).map(|(key, chunk)| (entry(RETRIEVE, key, chunk.len() as u32), &[][..]));
    let got = ask_together(&mut host.io, retrieves().collect());
    for (got, chunk) in got.iter().zip(&chunks) {
        assert_eq!((code(got), got.entry.dword0.get() as usize), (DONE, chunk.len()));
        assert!(got.data == *chunk);
    }
    // Another connection, as another thread's ring has one, and a failed attempt's cleanup.
    let mut other = Queue::greeted(target.address, false, false);
    assert_eq!(other.connect(io_connect(2), host.controller, NQN, HOST_NQN).status(), Status::Success);
    let deletes = keys.iter().map(|key| (entry(DELETE, key, 0), &[][..])).collect();
    assert!(ask_together(&mut other, deletes).iter().all(|got| code(got) == DONE));
    assert!(ask_together(&mut host.io, retrieves().collect()).iter().all(|got| code(got) == KEY_DOES_NOT_EXIST));
}

/// Its keys keep fifteen bytes on the wire: two that differ in the twelfth are one key, and the second object takes the next slot.
#[test]
fn two_keys_that_are_one_on_the_wire_are_a_conflict_that_it_sees() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let first = physical_key(1, 1, 0);
    let mut second = first;
    second[11] ^= 0x5a;
    assert_eq!(store(&mut host.io, &first, b"the first object"), DONE);
    assert_eq!(store(&mut host.io, &second, b"the second object"), KEY_EXISTS);
    assert_eq!(retrieve(&mut host.io, &second), Ok(padded(b"the first object")));
    let slot = physical_key(1, 1, 1);
    assert_eq!(store(&mut host.io, &slot, b"the second object"), DONE);
    assert_eq!(retrieve(&mut host.io, &slot), Ok(padded(b"the second object")));
    // Of many who store one key at a time one is let in.
    let contested = physical_key(2, 1, 0);
    let values: Vec<_> = (0..32).map(|seed| padded(&value(seed, 20_000))).collect();
    let stores = values.iter().map(|value| (entry(STORE, &contested, value.len() as u32), &value[..])).collect();
    let codes: Vec<_> = ask_together(&mut host.io, stores).iter().map(code).collect();
    let winner = codes.iter().position(|code| *code == DONE).unwrap();
    assert!(codes.iter().enumerate().all(|(number, code)| *code == if number == winner { DONE } else { KEY_EXISTS }));
    assert_eq!(retrieve(&mut host.io, &contested).as_ref(), Ok(&values[winner]));
}
