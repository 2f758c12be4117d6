//! How `tessera` collects and reads ahead: several victims at once, in no hurry where nobody takes room, and nothing ahead that nobody
//! goes on to.

use kvssd_conformance::{Drive, Medium};
use kvssd_flash::Cause;
use kvssd_types::{Command, IteratorOptions, Key, Random, Reply};

/// A drive of `tessera`, in an ordered namespace or not, with that parameter.
fn drive(index: &str, (key, value): (&str, &str), overrides: &[(&str, &str)]) -> Drive {
    let mut design = kvssd_designs::TESSERA;
    design.set("index", index).unwrap();
    design.set(key, value).unwrap();
    Drive::of(&design, Medium::Ropes, overrides)
}

/// Stores pairs, and then as many again at random.
fn overwrite(drive: &mut Drive, pairs: u32, value_bytes: usize) {
    let mut random = Random::new(7);
    for number in (0..pairs).chain((0..2 * pairs).map(|_| random.below(pairs.into()) as u32)) {
        drive.store(&number.to_be_bytes(), value_bytes).unwrap();
    }
}

/// What a superblock takes to be collected on a drive of 16 dies where everybody takes room.
fn superblock_ns(parameter: (&str, &str), geometry: &[(&str, &str)]) -> u64 {
    let dies = [("memory.write_buffer_bytes", "1048576"), ("nand.read_small_ns", "[100000]")];
    let mut drive = drive("tessera", parameter, &[&dies, geometry].concat());
    overwrite(&mut drive, 9000, 2000);
    let counters = drive.engine.gc_counters();
    drive.verify_all();
    assert!(counters.superblocks > 5, "{counters:?}");
    counters.busy_ns / counters.superblocks
}

#[test]
fn several_victims_on_targets_of_their_own_make_room_sooner() {
    let geometry = [
        ("geometry.superblock_dies", "1"),
        ("geometry.channels", "4"),
        ("geometry.dies_per_channel", "4"),
        ("geometry.pages_per_block", "32"),
        ("geometry.blocks_per_die", "24"),
    ];
    let [one, several] = ["1", "64"].map(|most| superblock_ns(("gc_victims_max", most), &geometry));
    assert!(4 * several < 3 * one, "a superblock takes {several} ns beside others, {one} alone");
}

#[test]
fn all_dies_make_room_where_it_is_gone() {
    let geometry = [("geometry.channels", "1"), ("geometry.dies_per_channel", "16"), ("geometry.blocks_per_die", "96")];
    let [room, demand] = ["room", "demand"].map(|pace| superblock_ns(("gc_pace", pace), &geometry));
    assert!(6 * demand < 5 * room, "a superblock takes {demand} ns where all dies are read, {room} where two are");
}

#[test]
fn where_nobody_takes_room_collection_is_in_no_hurry_until_somebody_does() {
    // How many superblocks have been collected after each half of a millisecond.
    let collected = |pace: &str, takes_room: bool| {
        let mut drive = drive("tessera", ("gc_pace", pace), &[]);
        overwrite(&mut drive, 6000, 500);
        [0; 16].map(|_| {
            for _ in 0..5 {
                drive.clock.0 += 100_000;
                if takes_room {
                    drive.store(&1u32.to_be_bytes(), 10).unwrap();
                } else {
                    drive.verify(&1u32.to_be_bytes());
                }
            }
            drive.engine.gc_counters().superblocks
        })
    };
    let (calm, hurried) = (collected("demand", false), collected("room", false));
    assert!(calm.iter().zip(&hurried).all(|(calm, hurried)| calm <= hurried), "{calm:?} {hurried:?}");
    assert!(calm[3] < hurried[3] && calm[15] == hurried[15], "it comes to rest as well, later: {calm:?} {hurried:?}");
    assert_eq!(collected("demand", true), collected("room", true), "a store says that room is taken");
}

#[test]
fn behind_a_seek_nothing_is_read_ahead_where_hosts_do_not_go_on() {
    let reads = |degree: &str, nexts: u32| {
        let mut drive = drive("lsm", ("prefetch_degree", degree), &[("memory.dram_bytes", "900000")]);
        for number in 0..3000u32 {
            drive.store(&number.to_be_bytes(), 500).unwrap();
        }
        drive.clock.0 += 1_000_000_000;
        let before = drive.engine.flash_counters().reads[Cause::User];
        for range in 0..100u32 {
            let options = IteratorOptions::default();
            let Ok(Reply::IteratorCreated(iterator)) = drive.run(Command::CreateIterator { options }) else { panic!() };
            let key = (range * 25).to_be_bytes();
            drive.run(Command::Seek { iterator, key: Some(Key::new(&key).unwrap()), pairs_max: 20 }).unwrap();
            (0..nexts).for_each(|_| drop(drive.run(Command::Next { iterator, pairs_max: 20 }).unwrap()));
            drive.run(Command::DestroyIterator { iterator }).unwrap();
        }
        drive.engine.flash_counters().reads[Cause::User] - before
    };
    let [none, followed, adaptive] = ["0", "followed", "adaptive"].map(|degree| reads(degree, 0));
    // It is learned from the first ranges.
    assert!(followed < none + none / 5 && followed * 5 < adaptive * 4, "{none} {followed} {adaptive}");
    let [followed, adaptive] = ["followed", "adaptive"].map(|degree| reads(degree, 3));
    assert_eq!(followed, adaptive, "where hosts go on, nothing is different");
}
