//! A batch that is refused when a part of it was made.

use crate::drive::{Medium, Mortal, list, powered, store, tiny};
use kvssd_designs::TESSERA;
use kvssd_flash::PowerLoss;
use kvssd_types::{BatchChange, Command, Key, KvError, NamespaceId, Pattern, Value};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Only where sections split does nobody know before that an index has no room. All of the batch is taken back, and what comes behind it
/// is there in the next life.
#[test]
fn a_batch_whose_last_key_finds_no_room_leaves_nothing_and_takes_nothing_along() {
    let mut design = TESSERA;
    // The entries of a bucket come to the most that can be counted before a section of this size is split.
    design.set("section_bytes", "2048").unwrap();
    let medium: Medium = Arc::clone(&Mortal::new(&design, PowerLoss::Protected, 1).medium);
    let profile = tiny(&design, PowerLoss::Protected);
    let (mut engine, report) = design.mount(&profile, Box::new(powered(profile.geometry, &medium))).unwrap();
    let mut clock = report.took;
    let mut put =
        |engine: &mut _, key: &[u8]| store(engine, &mut clock, key, Pattern { seed: 1, offset: 0, length: 9 });

    // No drive as small as this one has tags of more bits.
    let all = (0u64..).map(u64::to_be_bytes);
    let same: Vec<[u8; 8]> = all.filter(|key| xxh3_64(key).trailing_zeros() >= 20).take(256).collect();
    for key in &same[..255] {
        put(&mut engine, key).unwrap();
    }
    let change = |key| BatchChange {
        namespace: NamespaceId::FIRST,
        key: Key::new(key).unwrap(),
        value: Some(Value::from(&[7; 9][..])),
    };
    let changes = [change(b"another"), change(&same[255])];
    let (_, refused) = engine.execute(Command::Batch { changes: &changes }, report.took);
    assert_eq!(refused, Err(KvError::CapacityExceeded));
    for number in 0..100u8 {
        put(&mut engine, &[number]).unwrap();
    }
    // The power goes.
    drop(engine);

    let mut wanted: Vec<Vec<u8>> = (0..100u8).map(|number| vec![number]).collect();
    wanted.extend(same[..255].iter().map(|key| key.to_vec()));
    wanted.sort_unstable();
    let mut found: Vec<Vec<u8>> = list(&design, &medium).into_iter().map(Vec::from).collect();
    found.sort_unstable();
    assert!(found == wanted, "{} of {} pairs", found.len(), wanted.len());
}
