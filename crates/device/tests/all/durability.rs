//! What a drive over a disk that fails has answered stays answered, also where one process reads what another one left.

use crate::retrieve;
use kvssd_designs::DESIGNS;
use kvssd_device::{CreateDrive, Drive, image_design, image_profile};
use kvssd_flash::{DiskCall, OpenOptions, SimulatedDisk, Strike};
use kvssd_types::{Command, Key, KvError, Reply, StoreCondition};
use std::path::Path;

const PATH: &str = "drive.kv";
const SYNCED: OpenOptions = OpenOptions { sync: true, read_only: false, cache_bytes: 0 };

fn open(disk: &SimulatedDisk) -> Drive {
    Drive::open_in(&disk.files(), Path::new(PATH), SYNCED).unwrap()
}

fn create(disk: &SimulatedDisk) -> Drive {
    let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
    let options = CreateDrive { sync: true, ..CreateDrive::default() };
    Drive::create_in(&disk.files(), Path::new(PATH), &profile, &design, options).unwrap()
}

fn store(drive: &mut Drive, key: &[u8], value: &[u8]) -> Result<Reply, KvError> {
    let condition = StoreCondition::Always;
    drive.execute(Command::Store { key: Key::new(key).unwrap(), value: value.into(), condition })
}

/// A process is killed when its change is written and not yet durable. The next one reads it; then the machine stops.
#[test]
fn what_a_store_with_sync_has_read_outlives_the_machine() {
    for seed in 0..16 {
        let disk = SimulatedDisk::new(seed);
        let mut drive = create(&disk);
        store(&mut drive, b"before", b"1").unwrap();
        disk.begin_trace();
        disk.strike(disk.calls() + 1, Strike::KillWithin);
        assert!(store(&mut drive, b"after", b"2").is_err());
        assert_eq!(disk.trace().last().unwrap().0, DiskCall::Sync, "it was killed before it was safe");
        drop(drive);
        disk.kill();
        let mut drive = open(&disk);
        // As a store does whose threads share commits; a read commits nothing then.
        drive.hold_commits(true);
        let found = retrieve(&mut drive, b"after");
        drop(drive);
        disk.lose_power();
        let mut drive = open(&disk);
        assert_eq!((found.clone(), retrieve(&mut drive, b"after")), (Some(b"2".to_vec()), found), "seed {seed}");
        assert_eq!(retrieve(&mut drive, b"before").as_deref(), Some(&b"1"[..]));
    }
}

/// `sync` and an orderly close, life after life: the fault that lost whole images.
#[test]
fn a_drive_that_was_closed_in_order_begins_every_life_with_all_it_had() {
    let disk = SimulatedDisk::new(1);
    create(&disk).close().unwrap();
    for life in 0..40u32 {
        let mut drive = open(&disk);
        for key in 0..life * 20 {
            assert_eq!(retrieve(&mut drive, &key.to_le_bytes()), Some(vec![key as u8; 900]), "life {life}");
        }
        for key in life * 20..life * 20 + 20 {
            store(&mut drive, &key.to_le_bytes(), &[key as u8; 900]).unwrap();
        }
        drive.close().unwrap();
        if life % 2 == 0 { disk.lose_power() } else { disk.kill() }
    }
}

/// A life of a tiny drive of every design, killed at calls of its close: every `stride`th, before it, within it and after it.
fn kill_in_close(stride: usize) {
    for (design, sync) in DESIGNS.iter().flat_map(|design| [(design, false), (design, true)]) {
        let options = CreateDrive { sync, ..CreateDrive::default() };
        let profile = design.tiny_profile(&[("memory.power_loss", "protected")]).unwrap();
        let disk = SimulatedDisk::new(1);
        Drive::create_in(&disk.files(), Path::new(PATH), &profile, design, options).unwrap().close().unwrap();
        let live = |disk: &SimulatedDisk, life: u8| {
            let options = OpenOptions { sync, read_only: false, cache_bytes: 0 };
            let mut drive = Drive::open_in(&disk.files(), Path::new(PATH), options).unwrap();
            (0..120u8)
                .for_each(|key| drop(store(&mut drive, &[key % 60], &vec![life; 900 + usize::from(key)]).unwrap()));
            drive
        };
        // What is in the table of free superblocks was used before.
        (0..3).for_each(|life| live(&disk, life).close().unwrap());
        let rehearsal = disk.copy(0);
        let drive = live(&rehearsal, 3);
        let begin = rehearsal.calls();
        drive.close().unwrap();
        let calls = rehearsal.calls() - begin;
        assert!(calls > 5, "{}: a close makes {calls} calls", design.name);
        for number in (0..calls * 3).step_by(stride) {
            let strike = [Strike::KillBefore, Strike::KillWithin, Strike::KillAfter][(number % 3) as usize];
            let disk = disk.copy(number);
            let drive = live(&disk, 3);
            disk.strike(disk.calls() + number / 3, strike);
            let _ = drive.close();
            if sync && number % 2 == 0 {
                disk.lose_power();
            } else {
                disk.kill();
            }
            let mut drive = live(&disk, 3);
            for life in 4..6 {
                for key in 0..60u8 {
                    let found = retrieve(&mut drive, &[key]);
                    let value = vec![life - 1; 960 + usize::from(key)];
                    assert_eq!(found, Some(value), "{} sync {sync} {strike:?} at {number}", design.name);
                }
                drive.close().unwrap();
                drive = live(&disk, life);
            }
        }
    }
}

#[test]
fn a_kill_anywhere_in_a_close_loses_nothing() {
    kill_in_close(17);
}

#[test]
#[ignore = "takes a minute: every call of the close, before, within and after it"]
fn a_kill_at_every_call_of_a_close_loses_nothing() {
    kill_in_close(1);
}

/// Who makes an image is killed when it can be opened and its name is not durable yet; another one uses it, and the machine stops.
#[test]
fn an_image_that_was_opened_with_sync_keeps_its_name() {
    for seed in 0..16 {
        let disk = SimulatedDisk::new(seed);
        let design = image_design("plus").unwrap();
        let options = CreateDrive { sync: true, ..CreateDrive::default() };
        disk.strike_next(0, DiskCall::SyncName, Strike::KillBefore);
        let profile = image_profile(64 << 20).unwrap();
        assert!(Drive::create_in(&disk.files(), Path::new(PATH), &profile, &design, options).is_err());
        disk.kill();
        store(&mut open(&disk), b"key", b"value").unwrap();
        disk.lose_power();
        assert_eq!(retrieve(&mut open(&disk), b"key").as_deref(), Some(&b"value"[..]), "seed {seed}");
    }
}

/// Whatever cannot be read when a drive is opened, from one call on or at one alone: who cannot open it hears that the disk failed, not that the
/// image is none, and finds everything when the disk can be read again.
#[test]
fn a_disk_that_cannot_be_read_is_told_from_a_drive_that_is_not_there() {
    for design in DESIGNS {
        let profile = design.tiny_profile(&[("memory.power_loss", "protected")]).unwrap();
        let disk = SimulatedDisk::new(1);
        let options = CreateDrive::default();
        let mut drive = Drive::create_in(&disk.files(), Path::new(PATH), &profile, &design, options).unwrap();
        (0..200u8).for_each(|key| drop(store(&mut drive, &[key], &[key; 700]).unwrap()));
        drive.close().unwrap();
        let rehearsal = disk.copy(0);
        open(&rehearsal).close().unwrap();
        let (mut failed_opens, mut failed_checks) = (0, 0);
        for (call, fails_on) in (0..rehearsal.calls()).flat_map(|call| [(call, false), (call, true)]) {
            let last = if fails_on { 2 * rehearsal.calls() } else { call };
            let struck = || {
                let disk = disk.copy(call);
                (call..=last).for_each(|call| disk.strike(call, Strike::Fail));
                disk
            };
            let has_all = |drive: &mut Drive| {
                for key in 0..200u8 {
                    assert_eq!(retrieve(drive, &[key]), Some(vec![key; 700]), "{} at call {call}", design.name);
                }
            };
            let (disk, of_check) = (struck(), struck());
            match Drive::open_in(&disk.files(), Path::new(PATH), SYNCED) {
                Ok(mut drive) => {
                    disk.spare();
                    has_all(&mut drive);
                }
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains("Input/output error"), "{} at call {call}: {error}", design.name);
                    failed_opens += 1;
                }
            }
            let checked = Drive::check_in(&of_check.files(), Path::new(PATH));
            match checked.map(|report| (report.is_clean(), report.to_string())).map_err(|error| error.to_string()) {
                Ok((true, _)) => {}
                Ok((false, said)) | Err(said) => {
                    assert!(said.contains("Input/output error"), "{} at call {call}: {said}", design.name);
                    failed_checks += 1;
                }
            }
            disk.spare();
            disk.kill();
            has_all(&mut open(&disk));
        }
        assert!(failed_opens > 20 && failed_checks > 20, "{}: {failed_opens}, {failed_checks}", design.name);
    }
}
