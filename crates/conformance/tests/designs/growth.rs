//! Work of the indexes' own: it is done while nobody asks for anything, and who comes earlier waits for its end.

use crate::design_with;
use kvssd_conformance::{Drive, Medium};
use kvssd_ftl::{Design, SpentOn};
use kvssd_types::{Nanos, Random};

const SECOND_NS: u64 = 1_000_000_000;

/// Designs whose work keeps changes out, or all commands.
fn designs() -> [Design; 4] {
    let rhik = [("incremental", "false"), ("directory_bits", "0")];
    [("iter", &[][..]), ("pink", &[]), ("multilevel", &[]), ("rhik", &rhik)]
        .map(|(name, choices)| design_with(name, choices))
}

/// How many of so many stores are kept out. There is a pause before each.
fn kept_out(drive: &mut Drive, stores: u64, pause: Nanos) -> u64 {
    let mut random = Random::new(stores);
    let is_kept_out = |_: &u64| {
        drive.clock += pause;
        drive.store(&random.below(2000).to_be_bytes(), 40).unwrap();
        drive.engine.spent().of(SpentOn::Closed) > Nanos::ZERO
    };
    (0..stores).filter(is_kept_out).count() as u64
}

#[test]
fn work_is_done_while_nobody_asks_and_who_comes_earlier_waits_for_its_end() {
    for design in designs() {
        let mut drive = Drive::of(&design, Medium::Ropes, &[]);
        let closures = |drive: &Drive| drive.engine.growth_counters().closures;
        assert!(kept_out(&mut drive, 20_000, Nanos::ZERO) > 0, "{}: nobody waits", design.name);
        let before = closures(&drive);
        assert!(before > 0, "{}: no work was done", design.name);
        assert_eq!(kept_out(&mut drive, 20_001, Nanos(SECOND_NS)), 0, "{}", design.name);
        // The others have it done before it is pressing.
        let is_tree = ["iter", "pink"].contains(&design.name);
        assert_eq!(closures(&drive) > before, is_tree, "{}", design.name);
    }
}

/// A change that waits for such work waits for no more room than a store does.
#[test]
fn on_a_nearly_full_drive_work_waits_for_as_much_room_as_stores() {
    for design in &designs()[..2] {
        let mut drive = Drive::of(design, Medium::Ropes, &[]);
        let pairs = (0u32..).find(|number| drive.store(&number.to_be_bytes(), 1000).is_err()).unwrap();
        for number in (0..pairs).step_by(5) {
            drive.delete(&number.to_be_bytes()).unwrap();
        }
        let (mut random, mut kept_out_max, mut flushes) = (Random::new(7), Nanos::ZERO, 0);
        for _ in 0..6000 {
            let number = random.below(pairs.into()) as u32;
            if !number.is_multiple_of(5) {
                drive.store(&number.to_be_bytes(), 1000).unwrap();
                let kept_out = drive.engine.spent().of(SpentOn::Closed);
                (kept_out_max, flushes) = (kept_out_max.max(kept_out), flushes + u32::from(kept_out.0 > 0));
            }
        }
        // What a victim takes are milliseconds.
        assert!(flushes > 0 && kept_out_max.0 < 100_000, "{}: kept out for {kept_out_max:?}", design.name);
    }
}
