//! What NIXL's back ends over SPDK send, command by command.
//!
//! The order was read in two open requests of ai-dynamo/nixl. #2026, the SPDK plugin: `submitOne` of `src/plugins/spdk/spdk_progress_engine.cpp`
//! makes Store and Retrieve itself, all of a transfer before it looks for a completion, and passes them through SPDK's block layer, which puts the number of the namespace in; `spdk_backend.cpp`
//! has what it lets through. It has no question whether a key is there, and any error is one to it. #1753, `src/plugins/rados-nkv`:
//! Store, Retrieve and Exist of SPDK's `spdk/nvme_kv.h`, one at a time, keys of 16 bytes (a hash). It goes to a target in shared memory
//! (vfio-user), so only its commands are replayed. How SPDK attaches is in `attach.rs`; what NIXL's agents say to each other is on no drive's
//! wire.

use crate::host::{Host, Target, value};
use crate::together::ask_together;
use kvssd_nvme_spec::command::DataPointer;
use kvssd_nvme_spec::{Status, SubmissionEntry};

const STORE: u8 = 0x01;
const RETRIEVE: u8 = 0x02;
const EXIST: u8 = 0x14;

/// The key in four dwords, zeros behind it; its length in dword 11, without options; the bytes of the value in dword 10.
fn entry(opcode: u8, key: &[u8], bytes: usize) -> SubmissionEntry {
    let mut words = [0; 16];
    words[..key.len()].copy_from_slice(key);
    let word = |at: usize| u32::from_le_bytes(words[at..at + 4].try_into().unwrap());
    let mut entry = SubmissionEntry::new(opcode, 1);
    (entry.dword2, entry.dword3) = (word(0).into(), word(4).into());
    (entry.dword14, entry.dword15) = (word(8).into(), word(12).into());
    entry.dword11 = (key.len() as u32).into();
    entry.dword10 = (bytes as u32).into();
    let length_bytes = bytes as u32;
    entry.with_data(match opcode {
        EXIST => DataPointer::NONE,
        // SPDK's transport puts into the capsule what finds room there.
        STORE if bytes <= 8192 => DataPointer::InCapsule { offset_bytes: 0, length_bytes },
        _ => DataPointer::Transport { length_bytes },
    })
}

/// #2026: buffers are whole pages, keys have 1 to 16 bytes, values are stored over old ones.
#[test]
fn the_spdk_plugin_writes_objects_and_reads_them() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let keys: Vec<Vec<u8>> = (1..=16).map(|length| b"user:42/layer:07"[..length].to_vec()).collect();
    let sizes = [4096, 8192, 12_288, 65_536, 1 << 20];
    for life in 0..3 {
        let values: Vec<_> =
            (0..keys.len()).map(|number| value(life * 100 + number, sizes[(number + life) % 5])).collect();
        let writes = keys.iter().zip(&values).map(|(key, value)| (entry(STORE, key, value.len()), &value[..]));
        for got in ask_together(&mut host.io, writes.collect()) {
            assert_eq!(got.status(), Status::Success);
        }
        let reads = keys.iter().zip(&values).map(|(key, value)| (entry(RETRIEVE, key, value.len()), &[][..]));
        for (got, value) in ask_together(&mut host.io, reads.collect()).iter().zip(&values) {
            assert_eq!(got.status(), Status::Success);
            assert!(got.data == *value);
        }
    }
    // It does not look at the length of the value: a buffer that is too long keeps what was behind it, one that is too short has the begin.
    let rooms = [2 << 20, 4096].map(|bytes| (entry(RETRIEVE, &keys[15], bytes), &[][..]));
    let got = ask_together(&mut host.io, rooms.into());
    let length = sizes[(15 + 2) % 5];
    assert!(got.iter().all(|got| got.status() == Status::Success && got.entry.dword0.get() as usize == length));
    assert_eq!((got[0].data.len(), got[1].data.len()), (length, 4096));
    // One object that is not there fails its transfer, and no other.
    let got =
        ask_together(&mut host.io, vec![(entry(RETRIEVE, b"none", 4096), &[]), (entry(RETRIEVE, &keys[0], 4096), &[])]);
    assert_eq!((got[0].status(), got[0].data.len()), (Status::KeyDoesNotExist, 0));
    assert_eq!((got[1].status(), got[1].data.len()), (Status::Success, 4096));
}

/// Two descriptors of one transfer may name one object: one of the two is there then, whole.
#[test]
fn two_writes_of_one_object_under_way_leave_one_of_them() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let values = [value(1, 256 << 10), value(2, 256 << 10)];
    for _ in 0..20 {
        let writes = values.iter().map(|value| (entry(STORE, b"twice", value.len()), &value[..])).collect();
        assert!(ask_together(&mut host.io, writes).iter().all(|got| got.status() == Status::Success));
        let got = ask_together(&mut host.io, vec![(entry(RETRIEVE, b"twice", 256 << 10), &[])]).remove(0);
        assert!(values.contains(&got.data));
    }
}

/// #1753: a lookup is an Exist of each key, and 87h is the one status that means a miss; a Retrieve must give what dword 0 says, and that must
/// be what was asked for.
#[test]
fn the_key_value_plugin_asks_what_is_there_and_compares_lengths() {
    let target = Target::new();
    let mut host = Host::new(&target);
    let keys: Vec<[u8; 16]> = (0..20u64)
        .map(|token| [kvssd_types::mix64(token).to_be_bytes(), kvssd_types::mix64(!token).to_be_bytes()])
        .map(|halves| halves.concat().try_into().unwrap())
        .collect();
    let ask = |host: &mut Host, entry: SubmissionEntry, data: &[u8]| {
        ask_together(&mut host.io, vec![(entry, data)]).remove(0)
    };
    for (number, key) in keys.iter().enumerate() {
        let page = value(number, [100, 4096, 70_001, 1 << 20][number % 4]);
        assert_eq!(ask(&mut host, entry(EXIST, key, 0), &[]).status().code(), 0x87);
        assert_eq!(ask(&mut host, entry(STORE, key, page.len()), &page).status(), Status::Success);
        assert_eq!(ask(&mut host, entry(EXIST, key, 0), &[]).status(), Status::Success);
        let got = ask(&mut host, entry(RETRIEVE, key, page.len()), &[]);
        assert_eq!((got.status(), got.entry.dword0.get() as usize), (Status::Success, page.len()));
        assert!(got.data == page);
        // It refuses a value of another length by dword 0, which therefore has the whole one's.
        let got = ask(&mut host, entry(RETRIEVE, key, page.len() - 1), &[]);
        assert_eq!((got.status(), got.entry.dword0.get() as usize), (Status::Success, page.len()));
    }
    let misses = (100..120u64).map(|token| kvssd_types::mix64(token).to_be_bytes().repeat(2));
    for key in misses {
        assert_eq!(ask(&mut host, entry(EXIST, &key, 0), &[]).status().code() & 0xff, 0x87);
    }
}
