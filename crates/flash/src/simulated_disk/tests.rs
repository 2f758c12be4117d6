//! The disk does what its fault model says.

use super::*;

const PATH: &str = "drive.kv";

fn file(disk: &SimulatedDisk) -> Box<dyn RawFile> {
    disk.files().create_new(Path::new(PATH)).unwrap()
}

fn bytes(disk: &SimulatedDisk) -> Vec<u8> {
    disk.read(Path::new(PATH)).unwrap()
}

#[test]
fn a_killed_process_leaves_what_it_wrote_and_can_do_nothing_more() {
    let disk = SimulatedDisk::new(1);
    let mut file = file(&disk);
    file.write_at(0, b"before").unwrap();
    assert!(file.try_lock(false).unwrap());
    disk.strike(disk.calls(), Strike::KillAfter);
    assert!(file.write_at(6, b", after").is_err() && disk.is_killed());
    assert!(file.write_at(0, b"never").is_err());
    disk.kill();
    assert!(file.write_at(0, b"never").is_err() && file.try_lock(false).is_err());
    assert_eq!(bytes(&disk), b"before, after");
    assert!(disk.files().open(Path::new(PATH), false).unwrap().try_lock(false).unwrap());
}

#[test]
fn of_a_write_that_a_kill_interrupts_whole_pages_are_there() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let disk = SimulatedDisk::new(seed);
        let mut file = file(&disk);
        disk.strike(disk.calls(), Strike::KillWithin);
        assert!(file.write_at(100, &[7; 10_000]).is_err());
        seen.insert(bytes(&disk).len());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 4096, 8192]);
}

#[test]
fn of_a_copy_that_a_kill_interrupts_any_bytes_are_there() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let disk = SimulatedDisk::new(seed);
        let mut file = file(&disk);
        file.set_length(3).unwrap();
        disk.strike(disk.calls(), Strike::KillWithin);
        assert!(file.stage_at(0, &[7; 3]).is_err());
        seen.insert(bytes(&disk));
    }
    assert_eq!(seen.len(), 6, "nothing, all, and two of each cut: {seen:?}");
}

#[test]
fn a_machine_that_stops_keeps_what_was_synced_and_any_of_the_rest() {
    let mut kept = std::collections::BTreeSet::new();
    for seed in 0..64 {
        let disk = SimulatedDisk::new(seed);
        let mut file = file(&disk);
        file.write_at(0, &[1; 1024]).unwrap();
        file.syncer().sync().unwrap();
        disk.files().sync_name(Path::new(PATH)).unwrap();
        file.write_at(0, &[2; 1024]).unwrap();
        file.write_at(512, &[3; 512]).unwrap();
        disk.lose_power();
        let bytes = bytes(&disk);
        assert!(bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        kept.insert((bytes[0], bytes[512]));
    }
    assert_eq!(kept.into_iter().collect::<Vec<_>>(), [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]);
}

#[test]
fn what_a_failed_sync_left_in_doubt_no_later_sync_makes_durable() {
    let mut kept = std::collections::BTreeSet::new();
    for seed in 0..32 {
        let disk = SimulatedDisk::new(seed);
        let mut file = file(&disk);
        file.set_length(8192).unwrap();
        file.syncer().sync().unwrap();
        disk.files().sync_name(Path::new(PATH)).unwrap();
        file.write_at(0, &[1; 10]).unwrap();
        disk.strike(disk.calls(), Strike::Fail);
        assert!(file.syncer().sync().is_err());
        file.write_at(5000, &[2; 10]).unwrap();
        file.syncer().sync().unwrap();
        assert_eq!(bytes(&disk)[..10], [1; 10], "the process sees what it wrote");
        disk.lose_power();
        assert_eq!(bytes(&disk)[5000..5010], [2; 10]);
        kept.insert(bytes(&disk)[0]);
    }
    assert_eq!(kept.into_iter().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn writes_are_short_fail_are_lost_and_go_astray() {
    let disk = SimulatedDisk::new(3);
    let mut file = file(&disk);
    file.write_at(0, &[1; 20_000]).unwrap();
    disk.strike(disk.calls(), Strike::Short);
    assert!((1..100).contains(&file.write_at(0, &[2; 100]).unwrap()));
    disk.strike(disk.calls(), Strike::Fail);
    assert_eq!(file.write_at(0, &[3; 100]).unwrap_err().raw_os_error(), Some(5));
    disk.strike(disk.calls(), Strike::Full);
    assert_eq!(file.write_at(0, &[3; 100]).unwrap_err().kind(), ErrorKind::StorageFull);
    disk.strike(disk.calls(), Strike::Stale);
    file.write_at(200, &[4; 100]).unwrap();
    assert!(!bytes(&disk).contains(&4));
    disk.strike(disk.calls(), Strike::Astray);
    file.write_at(200, &[5; 100]).unwrap();
    assert_eq!(bytes(&disk).iter().filter(|byte| **byte == 5).count(), 100);
    file.write_at(0, &[6; 100]).unwrap();
    let mut stale = [0; 100];
    disk.strike(disk.calls(), Strike::Stale);
    file.read_at(0, &mut stale).unwrap();
    assert!(!stale.contains(&6));
}

#[test]
fn a_strike_waits_for_the_call_that_it_is_for() {
    let disk = SimulatedDisk::new(1);
    let mut file = file(&disk);
    disk.strike_next(disk.calls() + 2, DiskCall::Sync, Strike::Fail);
    file.syncer().sync().unwrap();
    file.write_at(0, b"a").unwrap();
    file.write_at(1, b"b").unwrap();
    assert!(file.syncer().sync().is_err(), "the first sync behind two other calls");
    file.syncer().sync().unwrap();
}
