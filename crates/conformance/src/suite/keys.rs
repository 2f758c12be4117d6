//! Keys that an index may take for one another, those that it may refuse though there is room, and what a mount gives it.

use crate::drive::Drive;
use crate::trial::Trial;
use kvssd_flash::{ByteBacking, PowerCut, PowerLoss};
use kvssd_ftl::{Change, Grain, PairPlace, Testbed};
use kvssd_types::{Key, KvError, Nanos, Random};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Keys among which those of one tag are looked for: of tags with 38 bits some are.
const KEYS: u64 = 1 << 20;
/// More pairs than a tiny drive takes.
const PAIRS_MAX: u32 = 1_000_000;
/// Groups of such keys that a check takes.
const GROUPS: usize = 40;

fn key_of(number: u64) -> [u8; 9] {
    let mut key = *b"k........";
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Keys that the index of the design has one tag for, in twos; none where tags do not follow from keys, or are too many to have met.
fn twos_of_one_tag(trial: &Trial, drive: &Drive) -> Vec<[[u8; 9]; 2]> {
    let design = trial.design();
    let index = design.index.plan().build(&design.room(drive.engine.geometry())).expect("the drive was built with it");
    let tag_of = |number| index.tag_of(Key::new(&key_of(number)).expect("a key of 9 bytes"));
    let mut tags: Vec<(u64, u64)> = (0..KEYS).filter_map(|number| Some((tag_of(number)?, number))).collect();
    tags.sort_unstable();
    let twos = tags.chunk_by(|one, next| one.0 == next.0).filter(|same| same.len() > 1);
    twos.map(|same| [key_of(same[0].1), key_of(same[1].1)]).take(GROUPS).collect()
}

/// Many keys have one tag on a large drive, and next to none on a tiny one: here some are chosen so.
pub(super) fn keys_of_one_tag_are_told_apart(trial: &Trial) {
    let mut drive = trial.drive();
    let twos = twos_of_one_tag(trial, &drive);
    for [one, other] in &twos {
        drive.store(one, 100).unwrap();
        drive.verify(other);
        assert_eq!(drive.delete(other), Err(KvError::KeyNotFound));
        drive.store(other, 200).unwrap();
        drive.verify(one);
    }
    drive.make_garbage(2000);
    drive.verify_all();
    for (number, [one, other]) in twos.iter().enumerate() {
        match number % 3 {
            0 => drive.delete(one).unwrap(),
            1 => drive.delete(other).unwrap(),
            _ => drive.store(one, 300).unwrap(),
        }
        [one, other].iter().for_each(|key| drive.verify(*key));
    }
    for [one, other] in &twos {
        // Looked up together, before either is there.
        [one, other].iter().for_each(|key| drop(drive.delete(*key)));
        let both: BTreeMap<_, _> = [one, other].map(|key| (key.to_vec(), Some(400))).into();
        drive.batch(&both).unwrap();
    }
    drive.make_garbage(2000);
    drive.verify_all();
    let mut listed = drive.list(None, usize::MAX);
    listed.sort();
    assert_eq!(listed, drive.keys());
}

/// What a mount makes of an index has as much room as it had before.
pub(super) fn a_drive_that_was_closed_takes_as_many_pairs(trial: &Trial) {
    const PROTECTED: &[(&str, &str)] = &[("memory.power_loss", "protected")];
    let design = trial.design();
    let fill = |drive: &mut Drive, first: u32| {
        (first..first + PAIRS_MAX).take_while(|number| drive.store(&number.to_be_bytes(), 300).is_ok()).count() as u32
    };
    let whole = fill(&mut trial.drive_of(design, PROTECTED), 0);
    let profile = design.tiny_profile(PROTECTED).unwrap();
    let medium = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
    let power = || {
        let (medium, dice) = (Arc::clone(&medium), Random::new(1));
        Box::new(PowerCut::new(medium, profile.geometry, PowerLoss::Protected, Nanos::MAX, dice))
    };
    let mut drive = trial.around(design.build(&profile, power()).unwrap());
    for number in 0..whole / 2 {
        drive.store(&number.to_be_bytes(), 300).unwrap();
    }
    let mut drive = drive.again(|engine| {
        engine.close().unwrap();
        design.mount(&profile, power()).unwrap()
    });
    let more = fill(&mut drive, whole / 2);
    let were = whole / 2;
    assert!(
        (were + more) * 10 >= whole * 9,
        "{whole} pairs fit; with {were} it was closed, and {more} fit behind a mount"
    );
    drive.verify_all();
}

/// What a checkpoint has of an index comes from flash. Whatever it is, it is taken or refused, without a panic.
pub(super) fn an_index_is_restored_from_any_bytes_or_refuses_them(trial: &Trial) {
    const TRIES: u64 = 200;
    let design = trial.design();
    let room = design.room(trial.drive().engine.geometry());
    let empty = || design.index.plan().build(&room).expect("the drive was built with it");
    let saved = empty().save();
    assert!(empty().restore(&saved).is_some(), "what it saved is refused");
    let mut random = trial.random(1);
    for _ in 0..TRIES {
        let mut bytes = saved.clone();
        bytes.truncate(random.below(1 + bytes.len() as u64) as usize);
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len().max(1) as u64) as usize;
            let byte = [0, 1, 0x7f, 0x80, 0xff, random.below(256) as u8][random.below(6) as usize];
            bytes.get_mut(at).into_iter().for_each(|other| *other = byte);
        }
        let _ = empty().restore(&bytes);
    }
}

/// A record of the index's own, or two in place of one, of any number.
fn own_change(random: &mut Random) -> Change {
    let number = random.below(u64::MAX) >> random.below(u64::from(u64::BITS));
    let number = if random.below(16) == 0 { 0 } else { number };
    let mut place = || Grain(1 + random.below(1000));
    let (places, old) = ([place(), place()], (place(), 64));
    match random.below(2) {
        0 => Change::Own { number, place: places[0], bytes: 64, old },
        _ => Change::Split { number, places, bytes: 64, old },
    }
}

/// What the journal has of pairs and of the index's own records comes from flash, too: tags, notes and numbers may be any.
pub(super) fn an_index_redoes_any_change_or_refuses_it(trial: &Trial) {
    const TRIES: usize = 2000;
    let design = trial.design();
    let profile = design.tiny_profile(&[]).unwrap();
    let mut bed = Testbed::new(design, &profile);
    let mut index = design.index.plan().build(&design.room(&profile.geometry)).expect("a drive can be built with it");
    let mut random = trial.random(2);
    for position in 0..TRIES {
        let mut fresh =
            design.index.plan().build(&design.room(&profile.geometry)).expect("a drive can be built with it");
        let _ = fresh.redo_own(&own_change(&mut random), position);
    }
    for position in 0..TRIES {
        let tag = random.below(u64::MAX) >> random.below(u64::from(u64::BITS));
        let note = random.below(1 << 32) as u32 >> random.below(u32::BITS.into());
        let mut pair = || PairPlace { place: Grain(1 + random.below(1000)), key_bytes: 8, value_bytes: 100 };
        let (old, pair) = (pair(), pair());
        let change = match random.below(4) {
            0 => Change::Bound { tag, note, pair, old: None },
            1 => Change::Bound { tag, note, pair, old: Some(old) },
            2 => Change::Unbound { tag, note, old },
            _ => Change::Moved { tag, from: old.place, to: pair.place, grains: 1 },
        };
        let _ = index.redo(&mut bed.io(Nanos::ZERO, true), &change, position);
    }
}
