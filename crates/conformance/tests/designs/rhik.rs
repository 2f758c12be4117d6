//! What `rhik` promises beyond the suite: one flash read, keys with the same signature, growth without an end.

use crate::{design_with, fill_and_grow};
use kvssd_conformance::{Drive, Medium, NamespacedDrive};
use kvssd_flash::{ByteBacking, PowerCut, PowerLoss, Profile};
use kvssd_ftl::{Design, NamespaceAttributes};
use kvssd_types::{NamespaceId, Nanos, Random};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use xxhash_rust::xxh3::xxh3_64;

fn rhik(parameters: &[(&str, &str)]) -> Design {
    design_with("rhik", parameters)
}

/// Pairs of keys that have the same signature of 32 bits.
fn twins() -> Vec<[[u8; 4]; 2]> {
    let mut seen = BTreeMap::new();
    let mut twins = Vec::new();
    for number in 0..400_000u32 {
        let key = number.to_be_bytes();
        if let Some(other) = seen.insert(xxh3_64(&key) as u32, key) {
            twins.push([other, key]);
        }
    }
    twins
}

#[test]
fn keys_with_the_same_signature_are_both_kept() {
    let mut drive = Drive::of(&rhik(&[("signature_bits", "32")]), Medium::Bytes, &[]);
    let twins = twins();
    assert!(twins.len() > 8);
    for [one, other] in &twins {
        drive.store(one, 100).unwrap();
        drive.store(other, 2000).unwrap();
    }
    assert!(drive.engine.index_counters().collisions >= twins.len() as u64);
    drive.life(&mut Random::new(4), 8000);
    drive.verify_all();
    assert!(drive.engine.gc_counters().pairs_moved > 0);
    let listed = drive.list(None, usize::MAX);
    let [one, other] = &twins[0];
    for [first, second] in [[one, other], [other, one]] {
        let from = listed.iter().position(|key| **key == first[..]).unwrap();
        assert_eq!(drive.list(Some(first), usize::MAX), listed[from..], "a list goes on where it is told to");
        assert!(listed.iter().any(|key| **key == second[..]));
    }
    for [one, other] in &twins {
        drive.delete(one).unwrap();
        drive.store(other, 50).unwrap();
    }
    drive.verify_all();
}

#[test]
fn it_grows_from_one_table_and_finds_everything_with_one_flash_read() {
    for incremental in ["true", "false"] {
        let design = rhik(&[("directory_bits", "0"), ("incremental", incremental)]);
        let mut drive = Drive::of(&design, Medium::Ropes, &[]);
        let (stored, directory_bytes) = fill_and_grow(&mut drive);
        assert!(stored > 20_000 && directory_bytes >= 8 * 64, "{stored} pairs");
        assert_eq!(drive.engine.index_counters().flash_reads_max, 1);
        assert!(drive.engine.index_counters().flash_reads > 1000);
        let growth = drive.engine.growth_counters();
        // From one table of a page to 64 at the least, and not a word of it where commands need not wait.
        assert_eq!((growth.closures >= 6, growth.closed_ns > 0), (incremental == "false", incremental == "false"));
        drive.verify_all();
    }
}

/// A doubling takes room. Where a drive has too little, tables are split one by one, and what is deleted can be stored again.
#[test]
fn it_grows_within_the_capacity() {
    for (incremental, blocks_per_die) in [("true", "32"), ("true", "44"), ("true", "48"), ("false", "44")] {
        let design = rhik(&[("incremental", incremental)]);
        let mut drive = Drive::of(&design, Medium::Ropes, &[("geometry.blocks_per_die", blocks_per_die)]);
        let is_stored = |drive: &mut Drive, number: &u32| drive.store(&number.to_be_bytes(), 5).is_ok();
        let pairs = (0u32..).find(|number| !is_stored(&mut drive, number)).unwrap();
        let (used, page_bytes) = (drive.engine.utilization(), drive.engine.geometry().page_bytes);
        let what = format!("incremental = {incremental}, {blocks_per_die} blocks a die: {used:?}");
        assert!(used.live_bytes <= used.capacity_bytes + u64::from(page_bytes), "{what}");
        for number in 0..pairs / 50 {
            drive.delete(&number.to_be_bytes()).unwrap();
        }
        let again = (0..pairs / 50).filter(|number| is_stored(&mut drive, number)).count() as u32;
        assert!(again * 10 > pairs / 50 * 9, "{what}: {again} of {} are stored again", pairs / 50);
    }
}

/// A drive of a design for four namespaces that grow from one table, and its profile.
fn of_four(incremental: &str, blocks_per_die: &str, power_loss: &str) -> (Design, Profile) {
    let mut design = rhik(&[("incremental", incremental), ("directory_bits", "0")]);
    design.namespaces_max = 4;
    let overrides = [
        ("geometry.blocks_per_die", blocks_per_die),
        ("geometry.oob_bytes", "1000"),
        ("memory.dram_bytes", "3000000"),
        ("memory.power_loss", power_loss),
    ];
    let profile = design.tiny_profile(&overrides).unwrap();
    (design, profile)
}

/// Fills all namespaces side by side, after it has made three; returns how many pairs each has, about.
fn fill_four(drive: &mut NamespacedDrive) -> u32 {
    for name in ["one", "two", "three"] {
        drive.create(NamespaceAttributes { name: Some(name.to_owned()), ..NamespaceAttributes::PLAIN }).unwrap();
    }
    (0u32..).find(|&number| store_in_all(drive, number) == 0).unwrap()
}

/// Returns how many have taken it.
fn store_in_all(drive: &mut NamespacedDrive, number: u32) -> usize {
    let ids: Vec<NamespaceId> = drive.models.keys().copied().collect();
    ids.into_iter().filter(|&id| drive.store(id, &number.to_be_bytes(), 5).is_ok()).count()
}

/// No more lives than there is room for, and what is deleted can be stored again.
fn has_room_for_what_was_deleted(drive: &mut NamespacedDrive, pairs: u32, what: &str) {
    let used = drive.engine.utilization();
    assert!(used.live_bytes <= used.capacity_bytes + 4096, "{what}: {used:?}");
    let ids: Vec<NamespaceId> = drive.models.keys().copied().collect();
    for number in 0..pairs / 50 {
        ids.iter().for_each(|&id| drive.delete(id, &number.to_be_bytes()));
    }
    let (all, again) =
        (pairs as usize / 50 * 4, (0..pairs / 50).map(|number| store_in_all(drive, number)).sum::<usize>());
    assert!(again * 10 > all * 9, "{what}: {again} of {all} are stored again, {used:?}");
}

/// The same where several namespaces double at once: together they may have begun what there is no room for.
#[test]
fn several_namespaces_grow_within_the_capacity() {
    for (incremental, blocks_per_die) in [("true", "32"), ("true", "48"), ("false", "44")] {
        let mut drive = NamespacedDrive::of(of_four(incremental, blocks_per_die, "ignored"), Medium::Ropes);
        let pairs = fill_four(&mut drive);
        let what = format!("incremental = {incremental}, {blocks_per_die} blocks a die");
        has_room_for_what_was_deleted(&mut drive, pairs, &what);
    }
}

/// A drive of a size at which doublings are put off in the middle, over three lives: behind a close, and behind a kill.
#[test]
fn a_doubling_that_was_put_off_costs_no_room_behind_a_mount() {
    let (design, profile) = of_four("true", "152", "protected");
    let medium = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
    let power = || {
        let (medium, dice) = (Arc::clone(&medium), Random::new(1));
        Box::new(PowerCut::new(medium, profile.geometry, PowerLoss::Protected, Nanos::MAX, dice))
    };
    let mut drive = NamespacedDrive::around(design.build(&profile, power()).unwrap());
    let pairs = fill_four(&mut drive);
    for is_closed in [true, false] {
        has_room_for_what_was_deleted(&mut drive, pairs, "before an end");
        let NamespacedDrive { engine, models, seed, .. } = drive;
        if is_closed {
            engine.close().unwrap();
        } else {
            drop(engine);
        }
        let (engine, mounted) = design.mount(&profile, power()).unwrap();
        drive = NamespacedDrive::around(engine);
        (drive.models, drive.seed, drive.clock) = (models.clone(), seed, mounted.took);
        for (id, model) in models {
            model.keys().for_each(|key| drive.verify(id, key));
        }
    }
    has_room_for_what_was_deleted(&mut drive, pairs, "in the last life");
    assert!(drive.engine.check().is_clean());
}

#[test]
fn what_it_cannot_be_is_refused() {
    for (key, value) in
        [("signature_bits", "33"), ("signature_bits", "72"), ("directory_bits", "25"), ("occupancy_percent", "0")]
    {
        let design = rhik(&[(key, value)]);
        let profile = rhik(&[]).tiny_profile(&[]).unwrap();
        let error = design.build(&profile, Box::new(kvssd_flash::RopeBacking::new(profile.geometry))).err().unwrap();
        assert!(error.to_string().contains(key), "{error}");
    }
    let mut design = rhik(&[]);
    assert!(design.set("incremental", "perhaps").is_err() && design.set("hops", "3").is_err());
}
