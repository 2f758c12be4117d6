//! Power cuts: each block is as it was, also those that were given away.

use super::{BYTES, Drive, with_handles};
use kvssd_designs::BLOCK;
use kvssd_flash::{Backing, ByteBacking, PowerCut, PowerLoss, Profile};
use kvssd_ftl::Design;
use kvssd_types::{Command, KvError, Nanos, Pattern, PlacementHandle, Random, Reply, Value};
use std::sync::{Arc, Mutex};

#[test]
fn it_comes_back_after_power_cuts() {
    lives_through_cuts(&BLOCK, "0");
}

#[test]
fn with_placement_handles_it_comes_back_too() {
    for superblock_dies in ["0", "2"] {
        lives_through_cuts(&with_handles(3), superblock_dies);
    }
}

#[test]
fn without_gathering_it_comes_back_as_well() {
    lives_through_cuts(&Design { gathered_blocks_max: 0, ..with_handles(2) }, "0");
}

/// Works until the power goes, mounts, and finds each block as it was: a write that was under way is there or not, block by block.
fn lives_through_cuts(design: &Design, superblock_dies: &str) {
    let overrides = [("memory.power_loss", "protected"), ("geometry.superblock_dies", superblock_dies)];
    let profile = design.tiny_profile(&overrides).unwrap();
    let medium = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
    let powered = |cut_at, seed| {
        let random = Random::new(seed);
        Box::new(PowerCut::new(Arc::clone(&medium), profile.geometry, PowerLoss::Protected, cut_at, random))
    };
    drop(design.build(&profile, powered(Nanos::MAX, 0)).unwrap());
    let (mut random, mut bytes) = (Random::new(5), Vec::new());
    for life in 1..60 {
        let cut_at = Nanos(20_000_000 + random.below(60_000_000));
        let (engine, report) = design.mount(&profile, powered(cut_at, life)).unwrap();
        bytes.resize(engine.utilization().capacity_bytes as usize, 0);
        let mut drive = Drive { engine, clock: report.took, bytes: std::mem::take(&mut bytes), seed: life << 32 };
        drive.verify_all();
        loop {
            let (offset_bytes, length) = drive.range(&mut random);
            let (at, length) = (offset_bytes as usize, length as usize);
            let is_given_away = random.below(6) == 0;
            drive.seed += 1;
            let new = Pattern { seed: drive.seed, offset: 0, length: length as u32 };
            let handle = PlacementHandle(random.below(design.placement_handles.into()) as u8);
            let (command, new) = match is_given_away {
                true => (Command::Deallocate { offset_bytes, length_bytes: length as u32 }, vec![0; length]),
                false => {
                    let value = Value::Pattern(new);
                    (Command::Write { offset_bytes, value: value.clone(), handle }, value.to_vec())
                }
            };
            let mut reply = drive.run(command);
            if reply.is_ok() && drive.clock <= cut_at && is_given_away {
                reply = drive.run(Command::Read { offset_bytes, length_bytes: length as u32 });
            }
            if let (Ok(reply), true) = (&reply, drive.clock <= cut_at) {
                let found = if let Reply::Read(found) = reply { found.to_vec() } else { new };
                keep(&mut drive.bytes[at..at + length], &found, is_given_away);
                continue;
            }
            assert!(reply.is_ok() || reply == Err(KvError::PowerLost), "{reply:?}");
            let backing = powered(Nanos::MAX, life);
            bytes = settle((design, &profile), backing, std::mem::take(&mut drive.bytes), (at, &new));
            break;
        }
    }
}

/// Keeps what blocks are now. Of those that were given away each is what it was, or zeros.
fn keep(known: &mut [u8], found: &[u8], is_given_away: bool) {
    for (known, found) in known.chunks(BYTES as usize).zip(found.chunks(BYTES as usize)) {
        assert!(!is_given_away || found == known || found.iter().all(|byte| *byte == 0), "a block is old or zeros");
    }
    known.copy_from_slice(found);
}

/// What the drive holds where a write was under way, if it can be.
fn settle(
    (design, profile): (&Design, &Profile),
    backing: Box<dyn Backing>,
    mut bytes: Vec<u8>,
    (at, new): (usize, &[u8]),
) -> Vec<u8> {
    let (mut engine, report) = design.mount(profile, backing).unwrap();
    let command = Command::Read { offset_bytes: at as u64, length_bytes: new.len() as u32 };
    let Ok(Reply::Read(found)) = engine.execute(command, report.took).1 else { panic!("the blocks can be read") };
    let found = found.to_vec();
    for (block, found) in found.chunks(BYTES as usize).enumerate() {
        let range = block * BYTES as usize..(block + 1) * BYTES as usize;
        let old = &bytes[at + range.start..at + range.end];
        assert!(found == old || found == &new[range], "a block is old or new");
    }
    bytes[at..at + new.len()].copy_from_slice(&found);
    bytes
}
