//! The block drive against plain bytes: reads and writes of every alignment, garbage collection, and power cuts.

mod cuts;

use kvssd_designs::{BLOCK, PLUS};
use kvssd_flash::{Backing, ByteBacking, PageAddress, PowerCut, PowerLoss, Profile, RopeBacking};
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
        Drive::of(&BLOCK, backing)
    }

    fn of(design: &Design, backing: Box<dyn Backing>) -> Self {
        let engine = design.build(&profile(PowerLoss::Ignored), backing).unwrap();
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
        self.write_at(offset_bytes, length)
    }

    fn write_at(&mut self, offset_bytes: u64, length: u64) -> Result<(), KvError> {
        self.seed += 1;
        let value = Value::Pattern(Pattern { seed: self.seed, offset: 0, length: length as u32 });
        let reply = self.run(write(offset_bytes, value.clone()))?;
        assert_eq!(reply, Reply::Written);
        let at = offset_bytes as usize;
        self.bytes[at..at + length as usize].copy_from_slice(&value.to_vec());
        Ok(())
    }

    /// Gives a range away; gives how many mapped blocks of it are zeros now. Others are what they were.
    fn deallocate(&mut self, offset_bytes: u64, length_bytes: u64) -> Result<u64, KvError> {
        let reply = self.run(Command::Deallocate { offset_bytes, length_bytes: length_bytes as u32 })?;
        assert_eq!(reply, Reply::Deallocated);
        let mut zeros = 0;
        for block in offset_bytes / 4096..(offset_bytes + length_bytes).div_ceil(4096) {
            let command = Command::Read { offset_bytes: block * 4096, length_bytes: 4096 };
            let Ok(Reply::Read(found)) = self.run(command) else { panic!("block {block} can be read") };
            let known = &mut self.bytes[block as usize * 4096..][..4096];
            let is_whole = block * 4096 >= offset_bytes && (block + 1) * 4096 <= offset_bytes + length_bytes;
            if found.to_vec() != known {
                assert!(is_whole && found.to_vec() == [0; 4096], "block {block} is zeros or what it was");
                known.fill(0);
                zeros += 1;
            }
        }
        Ok(zeros)
    }

    /// What `work` does to the flash: reads, programs, and the time of the host.
    fn cost(&mut self, work: impl FnOnce(&mut Self)) -> [u64; 3] {
        let now = |drive: &Self| {
            let flash = drive.engine.flash_counters();
            [flash.reads.total(), flash.programs.total(), drive.clock.0]
        };
        let before = now(self);
        work(self);
        let after = now(self);
        [0, 1, 2].map(|number| after[number] - before[number])
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
            } else if random.below(8) == 0 {
                let (offset, length) = self.range(random);
                self.deallocate(offset, length)?;
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
fn without_gathering_a_part_of_a_mapped_block_costs_a_read_and_what_was_never_written_is_zeros() {
    let mut drive = Drive::of(
        &Design { gathered_blocks_max: 0, ..BLOCK },
        Box::new(RopeBacking::new(profile(PowerLoss::Ignored).geometry)),
    );
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

fn empty() -> Drive {
    Drive::new(Box::new(RopeBacking::new(profile(PowerLoss::Ignored).geometry)))
}

#[test]
fn small_writes_are_gathered_and_what_is_whole_is_written_without_a_read() {
    let mut drive = empty();
    (0..64u64).for_each(|block| drive.write_at(block * 4096, 4096).unwrap());
    drive.run(Command::Flush).unwrap();
    drive.clock = Nanos(1_000_000_000);
    // In every order, some of it twice; a read between sees what has come over what was there.
    let [reads, programs, _] = drive.cost(|drive| {
        for block in 0..32u64 {
            for piece in [5, 0, 7, 2, 2, 1, 6, 3, 4] {
                drive.write_at(block * 4096 + (piece + block) % 8 * BYTES, BYTES).unwrap();
            }
        }
    });
    assert_eq!((reads, programs), (0, 32), "eight writes of 512 B make one of 4 KiB");
    let [reads, ..] = drive.cost(|drive| {
        drive.write_at(40 * 4096 + 1024, 1024).unwrap();
        drive.read(40 * 4096 + 1024, 1024);
    });
    assert_eq!(reads, 0, "what has come is at hand");
    let [reads, ..] = drive.cost(|drive| drive.read(40 * 4096, 8192));
    assert!(reads > 0, "what has not is read");
    // Over the end of one block into the next; then all of both, which leaves nothing to gather.
    drive.write_at(40 * 4096 + 3584, 1024).unwrap();
    drive.read(40 * 4096, 8192);
    drive.write_at(40 * 4096, 8192).unwrap();
    let [reads, ..] = drive.cost(|drive| {
        drive.run(Command::Flush).unwrap();
    });
    assert_eq!(reads, 0, "nothing was left of which the rest had to be read");
    drive.verify_all();
}

#[test]
fn a_gathered_part_answers_at_once_and_who_finds_no_place_waits_for_one() {
    let mut drive = empty();
    (0..512u64).for_each(|block| drive.write_at(block * 4096, 4096).unwrap());
    drive.run(Command::Flush).unwrap();
    drive.clock = Nanos(1_000_000_000);
    let parts = drive.engine.dram();
    assert_eq!(parts.parts()["gathered_blocks"], 8 * (4096 + 32), "half of the write buffer, and charged");
    let mut write = |block: u64| drive.cost(|drive| drive.write_at(block * 4096 + 512, 512).unwrap());
    let first: Vec<[u64; 3]> = (0..4).map(&mut write).collect();
    assert!(first.iter().all(|[reads, _, took]| *reads == 0 && *took < 20_000), "{first:?}");
    let later: Vec<[u64; 3]> = (4..256).map(&mut write).collect();
    let (reads, took) = later.iter().fold((0, 0), |(reads, took), cost| (reads + cost[0], took.max(cost[2])));
    assert!(reads >= 250 && took > 20_000, "{reads} reads of what had not come, the longest write {took} ns");
    assert_eq!(drive.engine.dram().parts()["gathered_blocks"], 8 * (4096 + 32), "no more than that");
    drive.verify_all();
    drive.work(&mut Random::new(2), 3000).unwrap();
    drive.verify_all();
}

/// Half of the places are written out at a time: with twice as many, more writes are done in the same time.
#[test]
fn blocks_are_written_out_side_by_side() {
    let took = |gathered_blocks_max| {
        let mut drive = Drive::of(
            &Design { gathered_blocks_max, ..BLOCK },
            Box::new(RopeBacking::new(profile(PowerLoss::Ignored).geometry)),
        );
        (0..512u64).for_each(|block| drive.write_at(block * 4096, 4096).unwrap());
        drive.run(Command::Flush).unwrap();
        drive.clock = Nanos(1_000_000_000);
        drive.cost(|drive| (0..256).for_each(|number| drive.write_at(number * 101 % 512 * 4096 + 512, 512).unwrap()))[2]
    };
    assert!(took(8) * 5 < took(4) * 4, "{} {}", took(8), took(4));
}

#[test]
fn what_was_gathered_is_there_after_a_cut_and_another_and_after_a_close() {
    let profile = profile(PowerLoss::Protected);
    let medium = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
    let powered = || {
        let random = Random::new(1);
        Box::new(PowerCut::new(Arc::clone(&medium), profile.geometry, PowerLoss::Protected, Nanos::MAX, random))
    };
    let mut engine = BLOCK.build(&profile, powered()).unwrap();
    let part = |seed| Value::Pattern(Pattern { seed, offset: 0, length: 512 });
    let mut clock = Nanos::ZERO;
    let mut expected: Vec<(u64, Value)> = Vec::new();
    for life in 0..6u64 {
        for number in 0..3 {
            let (offset_bytes, value) = ((life * 2 + number) * 4096 + 512 * (number + 1), part(life * 10 + number));
            let (done, reply) = engine.execute(write(offset_bytes, value.clone()), clock);
            assert_eq!(reply, Ok(Reply::Written));
            clock = done;
            expected.retain(|(offset, _)| *offset != offset_bytes);
            expected.push((offset_bytes, value));
        }
        match life {
            2 => engine.commit().unwrap(),
            3 => assert_eq!(engine.execute(Command::Flush, clock).1, Ok(Reply::Flushed)),
            _ => {}
        }
        if life == 4 {
            engine.close().unwrap();
        } else {
            drop(engine);
        }
        let (mounted, report) = BLOCK.mount(&profile, powered()).unwrap();
        assert_eq!(report.was_closed, life == 4);
        (engine, clock) = (mounted, report.took);
        for (offset_bytes, value) in &expected {
            let (done, reply) = engine.execute(Command::Read { offset_bytes: *offset_bytes, length_bytes: 512 }, clock);
            let Ok(Reply::Read(found)) = reply else { panic!("{reply:?}") };
            assert_eq!(found.to_vec(), value.to_vec(), "life {life}, {offset_bytes}");
            clock = done;
        }
        let report = engine.check();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn a_block_whose_rest_cannot_be_read_stays_gathered_until_all_of_it_is_written() {
    let profile = profile(PowerLoss::Protected);
    let medium = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
    let random = Random::new(1);
    let powered = PowerCut::new(Arc::clone(&medium), profile.geometry, PowerLoss::Protected, Nanos::MAX, random);
    let engine = BLOCK.build(&profile, Box::new(powered)).unwrap();
    let bytes = vec![0; engine.utilization().capacity_bytes as usize];
    let mut drive = Drive { engine, clock: Nanos::ZERO, bytes, seed: 0 };
    (0..256u64).for_each(|block| drive.write_at(block * 4096, 4096).unwrap());
    drive.run(Command::Flush).unwrap();
    drive.clock = Nanos(1_000_000_000);
    for page in (0..profile.geometry.pages() as u32).map(PageAddress) {
        if let Some(programmed) = medium.lock().unwrap().page_mut(page) {
            *programmed = vec![0xAA; 10].into();
        }
    }
    let refused = |drive: &mut Drive, block: u64| drive.write_at(block * 4096 + 512, 512).unwrap_err();
    (0..8u64).for_each(|block| drive.write_at(block * 4096 + 512, 512).unwrap());
    (0..8u64).for_each(|block| drive.read(block * 4096 + 512, 512));
    assert!(matches!(refused(&mut drive, 9), KvError::Unrecovered(_)));
    // What is there can be written again, and flushes go on.
    drive.write_at(3 * 4096 + 512, 512).unwrap();
    drive.run(Command::Flush).unwrap();
    // All of a block needs nothing of before, and no place.
    (0..4u64).for_each(|block| drive.write_at(block * 4096, 4096).unwrap());
    drive.write_at(9 * 4096 + 512, 512).unwrap();
    (0..4u64).for_each(|block| drive.read(block * 4096, 4096));
    (4..10u64).filter(|&block| block != 8).for_each(|block| drive.read(block * 4096 + 512, 512));
}

#[test]
fn a_drive_that_loses_its_buffer_gathers_nothing() {
    let design = &BLOCK;
    let profile = profile(PowerLoss::Volatile);
    let engine = design.build(&profile, Box::new(ByteBacking::new(profile.geometry))).unwrap();
    assert!(!engine.dram().parts().contains_key("gathered_blocks"));
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

/// Blocks that are given away are zeros, and nothing of them is moved: half of a drive that is told what is dead costs nothing.
#[test]
fn what_is_given_away_is_zeros_and_is_never_moved() {
    let mut drive = Drive::new(Box::new(RopeBacking::new(profile(PowerLoss::Ignored).geometry)));
    let capacity_bytes = drive.bytes.len() as u64;
    assert_eq!(drive.deallocate(0, capacity_bytes), Ok(0), "there was nothing");
    for round in 0..4 {
        for offset_bytes in (0..capacity_bytes - capacity_bytes % 8192).step_by(8192) {
            drive.write_at(offset_bytes, 8192).unwrap();
        }
        // In order, and all of the drive: what it moves by then is what was not said to be dead.
        assert_eq!(drive.deallocate(0, capacity_bytes), Ok(capacity_bytes / 8192 * 2), "round {round}");
        assert_eq!((drive.engine.gc_counters().pairs_moved, drive.engine.utilization().live_bytes), (0, 0));
    }
    // A part of a mapped block stays, and so does one of which a part is gathered.
    drive.write_at(0, 3 * 4096).unwrap();
    assert_eq!(drive.deallocate(512, 2 * 4096), Ok(1));
    drive.write_at(512, 512).unwrap();
    assert_eq!(drive.deallocate(0, 4096), Ok(0));
    drive.run(Command::Flush).unwrap();
    assert_eq!(drive.deallocate(0, 3 * 4096), Ok(2));
    drive.verify_all();
    let out_of_range = drive.run(Command::Deallocate { offset_bytes: capacity_bytes, length_bytes: 4096 });
    assert!(matches!(out_of_range, Err(KvError::InvalidRange { .. })), "{out_of_range:?}");
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

fn with_handles(placement_handles: u32) -> Design {
    Design { placement_handles, ..BLOCK }
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
