//! What `tessera` promises beyond the suite: keys with one tag, growth without an end, one flash read.

use crate::{design_with, fill_and_grow};
use kvssd_conformance::{Drive, Medium};
use kvssd_ftl::Design;
use kvssd_types::{KvError, Random};
use xxhash_rust::xxh3::xxh3_64;

/// Bits that the tags of a tiny drive have.
const TAG_BITS: u32 = 20;

fn tessera(parameters: &[(&str, &str)]) -> Design {
    design_with("tessera", parameters)
}

/// Keys of one tag.
fn same(count: usize) -> Vec<[u8; 8]> {
    let keys = (0u64..).map(u64::to_be_bytes);
    keys.filter(|key| xxh3_64(key).trailing_zeros() >= TAG_BITS).take(count).collect()
}

#[test]
fn keys_of_one_tag_are_all_kept_until_their_bucket_cannot_count_them() {
    let mut drive = Drive::of(&tessera(&[]), Medium::Bytes, &[]);
    let keys = same(256);
    for key in &keys[..255] {
        drive.store(key, 100).unwrap();
    }
    assert!(drive.engine.index_counters().collisions > 1000, "the keys are of one tag");
    assert_eq!(drive.store(&keys[255], 100), Err(KvError::CapacityExceeded));
    drive.store(&keys[7], 500).unwrap();
    drive.verify_all();
    assert_eq!(drive.list(None, usize::MAX).len(), 255);
    drive.delete(&keys[9]).unwrap();
    drive.store(&keys[255], 100).unwrap();
    // Sections that are as deep as can be, among others that are not.
    drive.life(&mut Random::new(5), 6000);
    drive.verify_all();
    keys.iter().for_each(|key| drop(drive.delete(key)));
    drive.verify_all();
}

#[test]
fn it_grows_from_one_section_and_finds_everything_with_one_flash_read() {
    let mut drive = Drive::of(&tessera(&[]), Medium::Ropes, &[]);
    let (stored, directory_bytes) = fill_and_grow(&mut drive);
    assert!(stored > 40_000 && directory_bytes >= 8 * 512, "{stored} pairs");
    let counters = drive.engine.index_counters();
    assert_eq!(counters.flash_reads_max, 1);
    assert!(counters.flash_reads > 1000 && counters.collisions * 20 < counters.lookups, "{counters:?}");
    drive.verify_all();
}

#[test]
fn what_it_cannot_be_is_refused() {
    for (key, value) in [
        ("fingerprint_bits", "0"),
        ("fingerprint_bits", "17"),
        ("section_bytes", "127"),
        ("section_bytes", "8192"),
        ("stores_behind_max", "65537"),
        ("gc_victims_max", "0"),
        ("gc_victims_max", "1025"),
    ] {
        let design = tessera(&[(key, value)]);
        let profile = tessera(&[]).tiny_profile(&[]).unwrap();
        let error = design.build(&profile, Box::new(kvssd_flash::RopeBacking::new(profile.geometry))).err().unwrap();
        assert!(error.to_string().contains(key), "{error}");
    }
}
