//! Wear: how far apart the erase counts of a drive come when a part of its data never dies.

use kvssd_conformance::{Drive, Medium};
use kvssd_ftl::{Design, EraseCounts, VictimPolicy};
use kvssd_types::Random;

/// Bytes of a value: two pairs lie in a page.
const VALUE_BYTES: usize = 1900;

/// The least and the most erases of a block, and the write amplification, after a life in which two thirds of the pairs were stored once and
/// few of the others over and over.
fn worn(victims: VictimPolicy) -> (u32, u32, f64) {
    let design = Design { victims, ..kvssd_designs::named("kaml").unwrap() };
    let mut drive = Drive::of(&design, Medium::Ropes, &[]);
    for number in 0..900u64 {
        drive.store(&number.to_be_bytes(), VALUE_BYTES).unwrap();
    }
    let before = drive.engine.flash_counters().programs.total();
    let mut random = Random::new(7);
    let stores = 60_000;
    for _ in 0..stores {
        drive.store(&(570 + random.below(60)).to_be_bytes(), VALUE_BYTES).unwrap();
    }
    drive.verify_all();
    let programs = drive.engine.flash_counters().programs.total() - before;
    let written_pages = f64::from(stores) / 2.0;
    let (least, most) =
        drive.engine.erases().fold((u32::MAX, 0), |(least, most), erases| (least.min(erases), most.max(erases)));
    (least, most, programs as f64 / written_pages)
}

#[test]
fn data_that_does_not_die_keeps_no_superblock_from_its_share_of_the_erases() {
    for erase_spread_max in [8, 16, 32] {
        let (least, most, amplification) = worn(VictimPolicy::EraseCounts(EraseCounts { erase_spread_max }));
        assert!(most - least <= erase_spread_max + 8, "{least} to {most} erases with a bound of {erase_spread_max}");
        assert!(amplification < 2.0, "{amplification}");
    }
    let (least, most, _) = worn(VictimPolicy::Greedy);
    assert!(least <= 1 && most > 40, "greedy: {least} to {most} erases");
}
