//! Collection comes to rest on a drive that is full of tiny pairs, where nobody but reads comes, and goes on with the next change.

use crate::of_every_design;
use kvssd_conformance::{Drive, Medium};
use kvssd_types::KvError;

/// Turns over the whole drive that collection may take in vain: its eight, and what reads behind them wait for.
const TURNS: u64 = 9;
/// Pairs that are deleted and stored again.
const AGAIN: u32 = 400;
/// Enough for what collection does once somebody takes room again.
const PAUSE_NS: u64 = 10_000_000_000;

fn is_stored(drive: &mut Drive, number: u32) -> bool {
    match drive.store(&number.to_be_bytes(), number as usize % 10) {
        Err(KvError::CapacityExceeded) => false,
        stored => stored.map(|()| true).unwrap(),
    }
}

#[test]
fn reads_of_a_full_drive_have_little_collected_and_deletes_still_make_room() {
    of_every_design(|design| {
        for power_loss in ["protected", "volatile"] {
            let mut drive = Drive::of(design, Medium::Ropes, &[("memory.power_loss", power_loss)]);
            let collected = |drive: &Drive| drive.engine.gc_counters().superblocks;
            let pairs = (0..).find(|&number| !is_stored(&mut drive, number)).unwrap();
            let (before, most) = (collected(&drive), TURNS * u64::from(drive.engine.geometry().superblocks()));
            drive.verify_all();
            let by_reads = collected(&drive) - before;
            assert!(by_reads <= most, "{} {power_loss}: {by_reads} superblocks for {pairs} pairs", design.name);
            for number in 0..AGAIN {
                drive.delete(&number.to_be_bytes()).unwrap();
            }
            drive.clock.0 += PAUSE_NS;
            let again = (0..AGAIN).filter(|&number| is_stored(&mut drive, number)).count();
            assert!(again as u32 > AGAIN / 2, "{} {power_loss}: {again} of {AGAIN} are stored again", design.name);
        }
    });
}
