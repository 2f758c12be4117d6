//! Large records, whose full units are not staged. Whatever call of the disk the process is killed at, what was answered is there, and what was
//! not is there whole or not at all.

use crate::{PATH, create_protected, retrieve};
use kvssd_designs::DESIGNS;
use kvssd_device::Drive;
use kvssd_flash::{DiskCall, OpenOptions, SimulatedDisk, Strike};
use kvssd_types::{BatchChange, Command, Key, KvError, NamespaceId, Reply, StoreCondition};
use std::collections::BTreeMap;
use std::path::Path;

/// Of a tiny drive a unit has 8 KiB, and a superblock 128.
const SIZES: [usize; 8] = [30_000, 900, 16_500, 70_000, 9_000, 100_000, 40, 33_000];

type Model = BTreeMap<u8, Vec<u8>>;

fn open(disk: &SimulatedDisk, sync: bool) -> Drive {
    Drive::open_in(&disk.files(), Path::new(PATH), OpenOptions { sync, read_only: false, cache_bytes: 0 }).unwrap()
}

fn value(key: u8, life: u8, turn: usize) -> Vec<u8> {
    let bytes = SIZES[(usize::from(key) + turn) % SIZES.len()];
    (0..bytes).map(|at| (at / 7) as u8 ^ key.wrapping_mul(31) ^ life).collect()
}

fn store(drive: &mut Drive, key: u8, value: &[u8]) -> Result<Reply, KvError> {
    let condition = StoreCondition::Always;
    drive.execute(Command::Store { key: Key::new(&[key]).unwrap(), value: value.into(), condition })
}

/// Stores one after the other, and two in a batch, until one is not answered; gives what that would have changed.
fn live(drive: &mut Drive, model: &mut Model, life: u8, stores: usize) -> Model {
    for turn in 0..stores {
        let key = (turn % 6) as u8;
        let mut wanted = Model::from([(key, value(key, life, turn))]);
        let done = if turn % 5 == 4 {
            let other = (key + 1) % 6;
            wanted.insert(other, value(other, life, turn + 3));
            let keys: Vec<[u8; 1]> = wanted.keys().map(|key| [*key]).collect();
            let changes: Vec<BatchChange<'_>> = keys
                .iter()
                .zip(wanted.values())
                .map(|(key, value)| BatchChange {
                    namespace: NamespaceId::FIRST,
                    key: Key::new(key).unwrap(),
                    value: Some(value[..].into()),
                })
                .collect();
            drive.execute(Command::Batch { changes: &changes })
        } else {
            store(drive, key, &wanted[&key])
        };
        match done {
            Ok(_) => model.extend(wanted),
            // One that does not fit a batch changes nothing.
            Err(KvError::BatchTooLarge { .. } | KvError::CapacityExceeded) => {}
            Err(_) => return wanted,
        }
    }
    Model::new()
}

/// All is there that was answered; of what was in doubt all or nothing, which the model has from here on.
fn verify(drive: &mut Drive, model: &mut Model, doubt: &Model, what: &str) {
    let found = |drive: &mut Drive, key: u8| retrieve(drive, &[key]);
    if let Some((&key, new)) = doubt.first_key_value()
        && found(drive, key).as_ref() == Some(new)
    {
        model.extend(doubt.clone());
    }
    for key in 0..6 {
        assert_eq!(found(drive, key).as_ref(), model.get(&key), "key {key}: {what}");
    }
    drive.engine().check_invariants();
}

/// Lives of a drive that are killed at calls of the disk, every `stride`th, before, within and after; then another one begins, goes on
/// where the one before was torn off, and is killed too.
fn kill_at_calls(stride: usize) {
    for design in &DESIGNS {
        let disk = create_protected(design);
        let mut before = Model::new();
        let mut drive = open(&disk, false);
        assert!(live(&mut drive, &mut before, 1, 30).is_empty());
        drop(drive);
        disk.kill();
        let rehearsal = disk.copy(0);
        let mut drive = open(&rehearsal, false);
        let begin = rehearsal.calls();
        assert!(live(&mut drive, &mut before.clone(), 2, 24).is_empty());
        let calls = rehearsal.calls() - begin;
        assert!(calls > 100, "{}: {calls} calls", design.name);
        for number in (0..calls * 3).step_by(stride) {
            let strike = [Strike::KillBefore, Strike::KillWithin, Strike::KillAfter][(number % 3) as usize];
            let what = format!("{} {strike:?} at {}", design.name, number / 3);
            let (disk, mut model) = (disk.copy(number), before.clone());
            let mut drive = open(&disk, false);
            disk.strike(disk.calls() + number / 3, strike);
            let mut doubt = live(&mut drive, &mut model, 2, 24);
            drop(drive);
            disk.kill();
            for life in 3..6 {
                let mut drive = open(&disk, life == 4);
                verify(&mut drive, &mut model, &doubt, &format!("{what}, life {life}"));
                doubt = live(&mut drive, &mut model, life, 2 + usize::from(life));
                assert!(doubt.is_empty(), "{what}, life {life}");
                drop(drive);
                disk.kill();
            }
            verify(&mut open(&disk, false), &mut model, &Model::new(), &format!("{what}, at last"));
        }
    }
}

#[test]
fn a_kill_anywhere_in_large_stores_leaves_all_or_nothing() {
    kill_at_calls(5);
}

#[test]
#[ignore = "takes half a minute: every call, before, within and after it"]
fn a_kill_at_every_call_of_large_stores_leaves_all_or_nothing() {
    kill_at_calls(1);
}

/// Superblocks that large records lay in are emptied and erased while the write buffer's memory still says where those went.
#[test]
fn a_kill_behind_erases_loses_nothing_of_large_stores() {
    for design in &DESIGNS {
        let (disk, mut model) = (create_protected(design), Model::new());
        for life in 1..30 {
            let mut drive = open(&disk, false);
            verify(&mut drive, &mut model, &Model::new(), &format!("{}, life {life}", design.name));
            assert!(live(&mut drive, &mut model, life, 60 + usize::from(life)).is_empty());
            drop(drive);
            disk.kill();
        }
    }
}

/// The bytes of a value go to the file once where the process alone must be outlived, and twice with `sync`.
#[test]
fn a_large_value_is_written_once() {
    let disk = create_protected(&DESIGNS[0]);
    for (sync, copies) in [(false, 1), (true, 2)] {
        let mut drive = open(&disk, sync);
        disk.begin_trace();
        store(&mut drive, 1, &[7; 100_000]).unwrap();
        let trace = disk.trace();
        let written: u64 = trace.iter().filter(|(call, ..)| *call == DiskCall::Write).map(|(.., bytes)| bytes).sum();
        let (least, most) = (copies * 90_000, copies * 115_000 + 20_000);
        assert!((least..most).contains(&written), "sync {sync}: {written} bytes");
        drive.close().unwrap();
    }
}
