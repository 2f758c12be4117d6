//! Mistakes of existing emulators that concern the firmware, each as a check (`docs/TIMING.md` lists all ten).

use crate::drive::Drive;
use crate::trial::Trial;
use kvssd_flash::Cause;

/// The index that is a table in DRAM. Somebody's own may have parameters of the same names.
const DRAM_TABLE: &str = "dram-hash";

/// A drive that has been filled and overwritten until garbage collection moved a lot. A table in DRAM has slots for so many pairs, and
/// less DRAM than it wants, so that it is written as well.
#[must_use]
pub fn worn(trial: &Trial) -> Drive {
    let mut design = trial.design().clone();
    let swaps = design.index.plan().name() == DRAM_TABLE;
    if swaps {
        design.set("flash_bytes_per_slot", "256").expect("it has such a parameter");
    }
    let dram: &[(&str, &str)] = if swaps { &[("memory.dram_bytes", "60000")] } else { &[] };
    let mut drive = trial.drive_of(&design, dram);
    let mut stored = 0u32;
    while drive.store(&stored.to_be_bytes(), 500).is_ok() {
        stored += 1;
    }
    let mut random = trial.random(11);
    for _ in 0..20_000 {
        drive.store(&(random.below(stored.into()) as u32).to_be_bytes(), 500).unwrap();
    }
    drive
}

/// Mistake 1: a channel that never gets a program.
pub(super) fn mistake_1_programs_spread_over_all_dies(trial: &Trial) {
    let drive = worn(trial);
    let dies = &drive.engine.flash_counters().die_programs;
    let mean = dies.iter().sum::<u64>() as f64 / dies.len() as f64;
    for &programs in dies {
        assert!((programs as f64 / mean - 1.0).abs() < 0.03, "{dies:?}");
    }
}

/// Mistake 3: operations of garbage collection that are not counted, or take no time.
pub(super) fn mistake_3_every_operation_of_garbage_collection_is_counted_and_takes_time(trial: &Trial) {
    let drive = worn(trial);
    let counters = drive.engine.flash_counters();
    let gc = drive.engine.gc_counters();
    assert!(counters.reads[Cause::Gc] > 0 && counters.programs[Cause::Gc] > 0);
    assert!(counters.reads[Cause::GcIndex] > 0 && counters.programs[Cause::GcIndex] > 0);
    // A page holds at most 8 of these pairs; two units of the log may still be open.
    assert!(counters.programs[Cause::Gc] + 4 >= gc.pairs_moved / 8);
    drive.engine.check_invariants();

    // The same run with a faster flash is over sooner, so the operations take time.
    let clock = |read_ns: &str| {
        let mut drive = trial.drive_of(trial.design(), &[("nand.read_small_ns", read_ns)]);
        drive.life(&mut trial.random(2), 3000);
        drive.clock
    };
    assert!(clock("[10, 10]") < clock("[50000, 50000]"));
}

/// Mistake 5: garbage collection moves a pair and the new place is lost when the section is evicted.
pub(super) fn mistake_5_places_changed_by_garbage_collection_survive_eviction(trial: &Trial) {
    let mut drive = worn(trial);
    assert!(drive.engine.gc_counters().pairs_moved > 1000);
    assert!(drive.engine.index_counters().bytes_written.background > 0, "sections were evicted by garbage collection");
    drive.verify_all();
}

/// Mistake 6: a delete cuts a probe chain.
pub(super) fn mistake_6_a_delete_does_not_hide_the_keys_behind_it(trial: &Trial) {
    // One grain a pair on a full drive: chains are long.
    let mut drive = trial.drive();
    let mut stored = 0u32;
    while drive.store(&stored.to_be_bytes(), 40).is_ok() {
        stored += 1;
    }
    let mut random = trial.random(8);
    for _ in 0..stored {
        let _ = drive.delete(&(random.below(stored.into()) as u32).to_be_bytes());
        if random.below(3) == 0 {
            let _ = drive.store(&(random.below(stored.into()) as u32).to_be_bytes(), 40);
        }
    }
    drive.verify_all();
}

/// Mistake 7: invalid mappings of an earlier life of a superblock kill records of a later one. The drive is overwritten in
/// order, so that victims are wholly invalid.
pub(super) fn mistake_7_invalid_mappings_do_not_outlive_their_superblock(trial: &Trial) {
    let mut drive = trial.drive();
    for round in 0..60u32 {
        for number in 0..1500u32 {
            drive.store(&number.to_be_bytes(), 40 + round as usize).unwrap();
        }
    }
    assert!(drive.engine.gc_counters().superblocks > 20);
    drive.verify_all();
    let lists = drive.engine.dram().parts().get("invalid_mapping_lists").copied().unwrap_or(0);
    assert!(lists < 4 * 48 * 8, "{lists} bytes of lists of pages");
}

/// Mistake 9: parts of the firmware's state that no budget knows of.
pub(super) fn mistake_9_everything_is_charged_to_one_budget(trial: &Trial) {
    let drive = worn(trial);
    let dram = drive.engine.dram();
    assert!(dram.total_bytes() <= drive.engine.dram_budget_bytes(), "{:?}", dram.parts());
    for part in ["log", "superblocks", "write_buffer"] {
        assert!(dram.parts().contains_key(part), "{part} is not charged: {:?}", dram.parts());
    }
    let of_index: u64 =
        dram.parts().iter().filter(|(part, _)| part.starts_with("index_")).map(|(_, bytes)| bytes).sum();
    assert!(of_index > 0, "the index charges nothing: {:?}", dram.parts());
}
