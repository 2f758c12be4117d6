//! The block drive against plain bytes: reads and writes of every alignment, garbage collection, and power cuts.

use kvssd_designs::{BLOCK, PLUS};
use kvssd_flash::{Backing, ByteBacking, PowerCut, PowerLoss, Profile, RopeBacking};
use kvssd_ftl::{Design, Engine};
use kvssd_types::{
    BLOCK_BYTES, Command, Key, KvError, Nanos, Pattern, PlacementHandle, Random, Reply, StoreCondition, Value,
};
use std::sync::{Arc, Mutex};

const BYTES: u64 = BLOCK_BYTES as u64;

fn profile(power_loss: PowerLoss) -> Profile {
    BLOCK.tiny_profile(&[("memory.power_loss", power_loss.name())]).unwrap()
}

fn write(offset_bytes: u64, value: Value) -> Command<'static> {
    Command::Write { offset_bytes, value, handle: PlacementHandle::DEFAULT }
}

struct Drive {
    engine: Engine,
    clock: Nanos,
    bytes: Vec<u8>,
    seed: u64,
}

impl Drive {
    fn new(backing: Box<dyn Backing>) -> Self {
        let engine = BLOCK.build(&profile(PowerLoss::Ignored), backing).unwrap();
        let bytes = vec![0; engine.utilization().capacity_bytes as usize];
        Drive { engine, clock: Nanos::ZERO, bytes, seed: 0 }
    }

    fn run(&mut self, command: Command<'_>) -> Result<Reply, KvError> {
        self.engine.advance(self.clock)?;
        let (done, reply) = self.engine.execute(command, self.clock);
        self.clock = done;
        reply
    }

    /// A range of whole blocks, mostly small.
    fn range(&self, random: &mut Random) -> (u64, u64) {
        let blocks = self.bytes.len() as u64 / BYTES;
        let length = 1 + if random.below(8) == 0 { random.below(100) } else { random.below(12) };
        (random.below(blocks - length) * BYTES, length * BYTES)
    }

    fn write(&mut self, random: &mut Random) -> Result<(), KvError> {
        let (offset_bytes, length) = self.range(random);
        self.seed += 1;
        let value = Value::Pattern(Pattern { seed: self.seed, offset: 0, length: length as u32 });
        let reply = self.run(write(offset_bytes, value.clone()))?;
        assert_eq!(reply, Reply::Written);
        let at = offset_bytes as usize;
        self.bytes[at..at + length as usize].copy_from_slice(&value.to_vec());
        Ok(())
    }

    fn read(&mut self, offset_bytes: u64, length_bytes: u64) {
        match self.run(Command::Read { offset_bytes, length_bytes: length_bytes as u32 }) {
            Ok(Reply::Read(value)) => {
                let at = offset_bytes as usize;
                assert!(value.to_vec() == self.bytes[at..at + length_bytes as usize], "{offset_bytes}");
            }
            other => panic!("{other:?}"),
        }
    }

    fn work(&mut self, random: &mut Random, operations: u32) -> Result<(), KvError> {
        for _ in 0..operations {
            if random.below(3) == 0 {
                let (offset, length) = self.range(random);
                self.read(offset, length);
            } else {
                self.write(random)?;
            }
        }
        self.engine.check_invariants();
        Ok(())
    }

    fn verify_all(&mut self) {
        for offset in (0..self.bytes.len() as u64).step_by(128 << 10) {
            self.read(offset, (128 << 10).min(self.bytes.len() as u64 - offset));
        }
        let report = self.engine.check();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn every_block_of_a_full_drive_is_what_was_written_last() {
    let geometry = profile(PowerLoss::Ignored).geometry;
    let backings: [Box<dyn Backing>; 2] = [Box::new(RopeBacking::new(geometry)), Box::new(ByteBacking::new(geometry))];
    let runs = backings.map(|backing| {
        let mut drive = Drive::new(backing);
        // All of it, once: a block drive takes its whole capacity.
        for offset_bytes in (0..drive.bytes.len() as u64).step_by(4096) {
            let value = Value::Pattern(Pattern { seed: offset_bytes, offset: 0, length: 4096 });
            drive.bytes[offset_bytes as usize..][..4096].copy_from_slice(&value.to_vec());
            drive.run(write(offset_bytes, value)).unwrap();
        }
        drive.work(&mut Random::new(1), 6000).unwrap();
        assert!(drive.engine.gc_counters().pairs_moved > 100, "garbage collection had blocks to move");
        drive.verify_all();
        (drive.clock, drive.engine.flash_counters().clone())
    });
    assert_eq!(runs[0], runs[1], "both media take the same time and operations");
}

#[test]
fn a_part_of_a_mapped_block_costs_a_read_and_what_was_never_written_is_zeros() {
    let mut drive = Drive::new(Box::new(RopeBacking::new(profile(PowerLoss::Ignored).geometry)));
    drive.read(0, 4096);
    let reads = |drive: &Drive| drive.engine.flash_counters().reads.total();
    assert_eq!(reads(&drive), 0);
    let value = |seed, length| Value::Pattern(Pattern { seed, offset: 0, length });
    drive.run(write(512, value(1, 512))).unwrap();
    drive.bytes[512..1024].copy_from_slice(&value(1, 512).to_vec());
    drive.run(Command::Flush).unwrap();
    let before = reads(&drive);
    drive.clock = Nanos(1_000_000_000);
    drive.run(write(1024, value(2, 512))).unwrap();
    drive.bytes[1024..1536].copy_from_slice(&value(2, 512).to_vec());
    assert_eq!(reads(&drive), before + 1, "the rest is read first");
    drive.run(write(0, value(3, 4096))).unwrap();
    assert_eq!(reads(&drive), before + 1, "a whole block needs nothing");
    drive.bytes[..4096].copy_from_slice(&value(3, 4096).to_vec());
    drive.read(0, 8192);
}

#[test]
fn what_it_cannot_do_is_refused() {
    let mut drive = Drive::new(Box::new(RopeBacking::new(profile(PowerLoss::Ignored).geometry)));
    let capacity_bytes = drive.bytes.len() as u64;
    for (offset_bytes, length_bytes) in [(capacity_bytes, 512), (100, 512), (0, 100), (u64::MAX - 511, 512)] {
        let reply = drive.run(Command::Read { offset_bytes, length_bytes });
        let length_bytes = length_bytes.into();
        assert_eq!(reply, Err(KvError::InvalidRange { offset_bytes, length_bytes, capacity_bytes }));
    }
    let key = Key::new(b"key").unwrap();
    let store = Command::Store { key, value: Value::from(&b"value"[..]), condition: StoreCondition::Always };
    for command in [store, Command::Exist { key }, Command::Delete { key }] {
        assert!(matches!(drive.run(command), Err(KvError::InvalidCommand(_))));
    }
    let profile = PLUS.tiny_profile(&[]).unwrap();
    let mut plus = PLUS.build(&profile, Box::new(RopeBacking::new(profile.geometry))).unwrap();
    let (_, reply) = plus.execute(Command::Read { offset_bytes: 0, length_bytes: 512 }, Nanos::ZERO);
    assert!(matches!(reply, Err(KvError::InvalidCommand(_))));
}

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

fn with_handles(placement_handles: u32) -> Design {
    Design { placement_handles, ..BLOCK }
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
            drive.seed += 1;
            let new = Pattern { seed: drive.seed, offset: 0, length: length as u32 };
            let handle = PlacementHandle(random.below(design.placement_handles.into()) as u8);
            let reply = drive.run(Command::Write { offset_bytes, value: Value::Pattern(new), handle });
            let new = Value::Pattern(new).to_vec();
            if reply.is_ok() && drive.clock <= cut_at {
                drive.bytes[at..at + length].copy_from_slice(&new);
                continue;
            }
            assert!(reply.is_ok() || reply == Err(KvError::PowerLost), "{reply:?}");
            let backing = powered(Nanos::MAX, life);
            bytes = settle((design, &profile), backing, std::mem::take(&mut drive.bytes), (at, &new));
            break;
        }
    }
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

#[test]
fn a_host_that_reads_on_is_read_ahead_of() {
    let mut drive = Drive::new(Box::new(RopeBacking::new(profile(PowerLoss::Ignored).geometry)));
    for offset_bytes in (0..1 << 20).step_by(4096) {
        let value = Value::Pattern(Pattern { seed: offset_bytes, offset: 0, length: 4096 });
        drive.bytes[offset_bytes as usize..][..4096].copy_from_slice(&value.to_vec());
        drive.run(write(offset_bytes, value)).unwrap();
    }
    drive.run(Command::Flush).unwrap();
    let mut time_of = |stride: u64| {
        drive.clock = Nanos(drive.clock.0 + 1_000_000_000);
        let begin = drive.clock;
        (0..256).for_each(|number| drive.read(number * stride % 256 * 4096, 4096));
        (drive.clock - begin).0
    };
    let (on, about) = (time_of(1), time_of(101));
    assert!(on * 3 < about, "{on} ns in order, {about} ns out of order");
}

/// Half of the blocks is written once, in between with the other half, which is then written over and over.
#[test]
fn what_dies_together_is_kept_together_by_placement_handles() {
    let moved = |handles: u32| {
        let design = with_handles(handles);
        let profile = profile(PowerLoss::Ignored);
        let mut engine = design.build(&profile, Box::new(RopeBacking::new(profile.geometry))).unwrap();
        let mut clock = Nanos::ZERO;
        let mut write = |block: u64, handle| {
            engine.advance(clock).unwrap();
            let value = Value::Pattern(Pattern { seed: block, offset: 0, length: 4096 });
            let handle = PlacementHandle(handle);
            let (done, reply) = engine.execute(Command::Write { offset_bytes: block * 4096, value, handle }, clock);
            clock = done;
            reply.map(|_| engine.gc_counters().pairs_moved)
        };
        let no_handle = KvError::InvalidCommand("it has no such placement handle");
        assert_eq!(write(0, handles as u8), Err(no_handle));
        let blocks = 32 * 15;
        for block in 0..2 * blocks {
            write(block, if handles > 1 { (block % 2) as u8 } else { 0 }).unwrap();
        }
        let rounds = (0..20).flat_map(|_| (0..blocks).map(|block| 2 * block));
        rounds.map(|block| write(block, 0).unwrap()).last().unwrap()
    };
    let (mixed, apart) = (moved(1), moved(2));
    assert!(mixed > 300 && apart == 0, "{mixed} blocks were moved where they are mixed, {apart} where they are apart");
}
