//! What `dram-hash` promises beyond the suite: keys that it knows whole, a cost that follows from the load factor, a limit, and a
//! life with less DRAM than its table.

use crate::design_with;
use kvssd_conformance::{Drive, Medium};
use kvssd_flash::Cause;
use kvssd_ftl::{Design, ValidityKind};
use kvssd_types::{KvError, Random};
use xxhash_rust::xxh3::xxh3_64;

fn kaml(parameters: &[(&str, &str)]) -> Design {
    design_with("kaml", parameters)
}

/// The key of 8 bytes whose mixed word is `word`.
fn key_of_word(word: u64) -> [u8; 8] {
    let key = (word ^ word >> 33).wrapping_mul(0x9cb4_b2f8_1293_37db);
    let key = (key ^ key >> 33).wrapping_mul(0x4f74_430c_22a5_4005);
    (key ^ key >> 33).to_le_bytes()
}

#[test]
fn a_key_and_the_hash_of_another_that_are_the_same_number_are_both_kept() {
    let mut drive = Drive::of(&kaml(&[]), Medium::Bytes, &[]);
    let hashed: Vec<[u8; 5]> = (0..200u8).map(|number| [number, 1, 2, 3, 4]).collect();
    for key in &hashed {
        drive.store(key, 300).unwrap();
        drive.store(&key_of_word(xxh3_64(key)), 40).unwrap();
    }
    assert_eq!(drive.engine.utilization().pairs, 400);
    drive.life(&mut Random::new(5), 6000);
    drive.verify_all();
    for key in &hashed {
        let _ = drive.delete(key);
        let _ = drive.store(&key_of_word(xxh3_64(key)), 90);
    }
    drive.verify_all();
    drive.list(None, usize::MAX);
}

#[test]
fn overwrites_and_deletes_of_keys_of_8_bytes_read_no_records() {
    let mut drive = Drive::of(&kaml(&[]), Medium::Ropes, &[]);
    for number in 0..1000u64 {
        drive.store(&number.to_be_bytes(), 1000).unwrap();
    }
    let reads = |drive: &Drive| drive.engine.flash_counters().reads[Cause::User];
    let before = reads(&drive);
    for number in 0..1000u64 {
        drive.store(&number.to_be_bytes(), 1100).unwrap();
    }
    for number in 0..100u64 {
        drive.delete(&number.to_be_bytes()).unwrap();
    }
    assert_eq!((reads(&drive), drive.engine.index_counters().collisions), (before, 0));
    // What is not a number of 8 bytes is compared with its record.
    drive.store(b"a name", 1000).unwrap();
    drive.make_garbage(100);
    let before = reads(&drive);
    drive.store(b"a name", 1000).unwrap();
    assert!(reads(&drive) > before);
    drive.verify_all();
}

#[test]
fn a_look_up_scans_more_slots_at_a_higher_load_factor_and_the_table_has_a_limit() {
    let mut drive = Drive::of(&kaml(&[("load_percent_max", "80")]), Medium::Ropes, &[]);
    let slots = drive.engine.index_counters().slots;
    let (mut stored, mut scans) = (0u64, Vec::new());
    for load_percent in [10, 40, 80] {
        while drive.engine.index_counters().slots_taken * 100 < slots * load_percent {
            drive.store(&stored.to_be_bytes(), 40).unwrap();
            stored += 1;
        }
        let before = drive.engine.index_counters();
        for number in 0..stored {
            drive.verify(&number.to_be_bytes());
        }
        let after = drive.engine.index_counters();
        scans.push((after.slots_scanned - before.slots_scanned) as f64 / (after.lookups - before.lookups) as f64);
    }
    // Knuth, volume 3, section 6.4: (1 + 1 / (1 - load)) / 2 slots for a key that is there.
    for (scanned, expected) in scans.iter().zip([1.06, 1.33, 3.0]) {
        assert!((scanned / expected - 1.0).abs() < 0.15, "{scans:?}");
    }
    assert_eq!(drive.store(&stored.to_be_bytes(), 40), Err(KvError::CapacityExceeded));
    drive.store(&0u64.to_be_bytes(), 50).unwrap();
    drive.delete(&1u64.to_be_bytes()).unwrap();
    drive.store(&stored.to_be_bytes(), 40).unwrap();
    drive.verify_all();
}

/// A table of which a part is on flash, by every validity that fits.
#[test]
fn a_table_with_less_dram_than_it_wants_is_read_and_written_in_pages() {
    for validity in [ValidityKind::AskIndex, ValidityKind::GrainBitmap] {
        for medium in [Medium::Ropes, Medium::Bytes] {
            let mut design = kaml(&[("flash_bytes_per_slot", "512")]);
            design.validity = validity;
            let mut drive = Drive::of(&design, medium, &[("memory.dram_bytes", "50000")]);
            drive.life(&mut Random::new(11), 12_000);
            let counters = drive.engine.index_counters();
            assert!(counters.section_misses > 1000 && counters.flash_reads_max == 1, "{counters:?}");
            assert!(counters.bytes_written.background > 0 && drive.engine.gc_counters().pairs_moved > 100);
            drive.verify_all();
        }
    }
}

#[test]
fn what_it_cannot_be_is_refused() {
    for (key, value) in [("flash_bytes_per_slot", "15"), ("load_percent_max", "0"), ("load_percent_max", "101")] {
        let design = kaml(&[(key, value)]);
        let profile = kaml(&[]).tiny_profile(&[]).unwrap();
        let error = design.build(&profile, Box::new(kvssd_flash::RopeBacking::new(profile.geometry))).err().unwrap();
        assert!(error.to_string().contains(key), "{error}");
    }
}
