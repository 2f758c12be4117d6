//! Pages whose checksums are right and that are other pages than they should be: a value is never returned for another key.

use crate::damage::Victim;
use crate::drive::{Mortal, designs, powered, store, tiny};
use kvssd_flash::PowerLoss;
use kvssd_ftl::{Engine, Grain, Kind};
use kvssd_types::{Command, Key, KvError, Nanos, Pattern, Reply, Value};

/// Reads all that a drive holds: right, or an error. Gives how many keys could not be read.
fn unreadable(engine: &mut Engine, clock: Nanos, drive: &Mortal) -> usize {
    let mut unreadable = 0;
    for (key, &(seed, length)) in &drive.pairs {
        let command = Command::Retrieve { key: Key::new(key).unwrap(), offset_bytes: 0, length_bytes: u32::MAX };
        match engine.execute(command, clock).1 {
            Ok(Reply::Retrieved { value, .. }) => {
                assert_eq!(value, Value::Pattern(Pattern { seed, offset: 0, length }), "{}", drive.design.name);
            }
            Err(KvError::Unrecovered(_)) => unreadable += 1,
            other => panic!("{}: {other:?}", drive.design.name),
        }
    }
    unreadable
}

/// The pages on which values go on say that they are of other records.
#[test]
fn a_page_of_another_record_is_no_part_of_a_value() {
    for design in designs() {
        let mut drive = Mortal::new(&design, PowerLoss::Protected, 9);
        for _ in 0..8 {
            drive.life(250_000_000, |_| {});
        }
        let victim = Victim::of(&design, PowerLoss::Protected, &drive.medium);
        let mut damaged = victim.before.clone();
        for page in victim.pages(Kind::Pair) {
            let mut oob = victim.oob(&damaged, page).unwrap();
            if let Some(Grain(head)) = oob.continues {
                oob.continues = Some(Grain(head + 1));
                victim.put_oob(&mut damaged, page, &oob);
            }
        }
        let (profile, medium) = (tiny(&design, PowerLoss::Protected), damaged.medium(&design));
        let (mut engine, report) = design.mount(&profile, Box::new(powered(profile.geometry, &medium))).unwrap();
        let mut clock = report.took;
        let before = unreadable(&mut engine, clock, &drive);
        assert!(before > 0, "{}: no value runs over pages", design.name);
        // Garbage collection comes by, and moves what it can put together.
        for seed in 0..3000u64 {
            let key = format!("another {}", seed % 20).into_bytes();
            let reply = store(&mut engine, &mut clock, &key, Pattern { seed, offset: 0, length: 2000 });
            assert!(matches!(reply, Ok(_) | Err(KvError::CapacityExceeded | KvError::Unrecovered(_))), "{reply:?}");
        }
        assert!(unreadable(&mut engine, clock, &drive) >= before, "{}", design.name);
    }
}
