//! Iterators: each sees exactly the drive of the moment when it was made, whatever is stored, deleted, flushed, merged and collected
//! while it lives.

use crate::drive::{Drive, Medium};
use crate::trial::Trial;
use kvssd_flash::Cause;
use kvssd_ftl::{IteratorPlan, PrefetchDegree};
use kvssd_types::{Command, IteratedPair, IteratorId, IteratorOptions, Key, KvError, Pattern, Random, Reply, Value};
use std::collections::BTreeMap;

/// An iterator beside what it must see.
#[derive(Clone)]
struct Watched {
    id: IteratorId,
    /// The pairs of its range in its order: key, seed and length of the value.
    pairs: Vec<(Vec<u8>, (u64, u32))>,
    /// The next of them; none before the first seek.
    at: Option<usize>,
    descending: bool,
    keys_only: bool,
}

/// Small tables, so that a tiny drive has several levels, and DRAM for a few iterators.
fn tiny(trial: &Trial, degree: &str) -> Drive {
    let mut design = trial.design_with("table_pages", "1");
    design.set("prefetch_degree", degree).unwrap();
    trial.drive_of(&design, &[("memory.dram_bytes", "900000")])
}

/// The bytes of a key that a range is made of.
fn some_bytes(random: &mut Random) -> Vec<u8> {
    let number = random.below(3000).to_be_bytes();
    number[6..][..random.below(3) as usize].to_vec()
}

impl Watched {
    fn create(drive: &mut Drive, random: &mut Random) -> Result<Self, KvError> {
        let (mut prefix, mut first, mut end) = (Vec::new(), Vec::new(), None);
        match random.below(4) {
            0 => prefix = some_bytes(random),
            1 => first = some_bytes(random),
            2 => (first, end) = (some_bytes(random), Some(some_bytes(random))),
            _ => {}
        }
        let (descending, keys_only) = (random.below(2) == 0, random.below(4) == 0);
        Watched::of(
            drive,
            IteratorOptions { prefix: &prefix, first: &first, end: end.as_deref(), descending, keys_only },
        )
    }

    fn of(drive: &mut Drive, options: IteratorOptions<'_>) -> Result<Self, KvError> {
        let IteratorOptions { prefix, first, end, descending, keys_only } = options;
        let id = match drive.run(Command::CreateIterator { options })? {
            Reply::IteratorCreated(id) => id,
            other => panic!("{other:?}"),
        };
        let is_in = |key: &Vec<u8>| {
            key.starts_with(prefix) && key.as_slice() >= first && end.is_none_or(|end| key.as_slice() < end)
        };
        let pairs = drive.model().iter().filter(|(key, _)| is_in(key)).map(|(key, value)| (key.clone(), *value));
        let mut pairs: Vec<_> = pairs.collect();
        if descending {
            pairs.reverse();
        }
        Ok(Watched { id, pairs, at: None, descending, keys_only })
    }

    /// Sends it somewhere or has it go on. Gives the pairs that were checked, or none when it has expired.
    fn step(&mut self, drive: &mut Drive, random: &mut Random) -> Option<usize> {
        let pairs_max = 1 + random.below(9) as u32;
        let seeks = self.at.is_none() || random.below(6) == 0;
        let key = seeks.then(|| some_bytes(random));
        self.take(drive, key.as_deref(), pairs_max)
    }

    /// Has it go on, or first sends it to a key, or to the begin of its range where there is none.
    fn take(&mut self, drive: &mut Drive, sought: Option<&[u8]>, pairs_max: u32) -> Option<usize> {
        let reply = if let Some(key) = sought {
            let key = Key::new(key).ok();
            let before =
                |at: &[u8]| key.is_some_and(|key| if self.descending { at > key.bytes() } else { at < key.bytes() });
            self.at = Some(self.pairs.partition_point(|(at, _)| before(at)));
            drive.run(Command::Seek { iterator: self.id, key, pairs_max })
        } else {
            drive.run(Command::Next { iterator: self.id, pairs_max })
        };
        let got = match reply {
            Ok(Reply::Pairs(pairs)) => pairs,
            Err(KvError::IteratorExpired(id)) if id == self.id => return None,
            other => panic!("{other:?}"),
        };
        let at = self.at.unwrap();
        let end = self.pairs.len().min(at + pairs_max as usize);
        let expected: Vec<IteratedPair> = self.pairs[at..end].iter().map(|pair| self.pair(pair)).collect();
        assert_eq!(got, expected, "{} from {at}", self.id);
        self.at = Some(end);
        Some(got.len())
    }

    fn pair(&self, (key, (seed, length)): &(Vec<u8>, (u64, u32))) -> IteratedPair {
        let value = Value::Pattern(Pattern { seed: *seed, offset: 0, length: *length });
        (key.as_slice().into(), (!self.keys_only).then_some(value))
    }

    fn destroy(self, drive: &mut Drive) {
        assert_eq!(drive.run(Command::DestroyIterator { iterator: self.id }), Ok(Reply::IteratorDestroyed));
    }
}

/// Iterators in the middle of a drive's life. Gives the pairs that were checked and how many iterators have expired.
fn watch(drive: &mut Drive, random: &mut Random, rounds: u32) -> (usize, usize) {
    watch_these(Vec::new(), drive, random, rounds)
}

/// As [`watch`], with iterators that there are already.
fn watch_these(mut watched: Vec<Watched>, drive: &mut Drive, random: &mut Random, rounds: u32) -> (usize, usize) {
    let (mut checked, mut expired) = (0, 0);
    for _ in 0..rounds {
        drive.life(random, 12);
        if watched.len() < 6 && random.below(3) == 0 {
            watched.extend(Watched::create(drive, random).ok());
        }
        let mut left = Vec::new();
        for mut iterator in watched {
            match iterator.step(drive, random) {
                Some(pairs) if random.below(25) > 0 => {
                    checked += pairs;
                    left.push(iterator);
                }
                step => {
                    expired += usize::from(step.is_none());
                    iterator.destroy(drive);
                }
            }
        }
        watched = left;
        drive.engine.check_invariants();
    }
    watched.into_iter().for_each(|iterator| iterator.destroy(drive));
    (checked, expired)
}

pub(super) fn an_iterator_sees_the_drive_of_the_moment_when_it_was_made(trial: &Trial) {
    if !trial.is_ordered() {
        return;
    }
    let (bytes, ropes) = (Medium::Bytes, Medium::Ropes);
    for (degree, medium) in [("0", bytes), ("0", ropes), ("5", ropes), ("adaptive", bytes)] {
        let mut drive = tiny(&trial.on(medium), degree);
        let mut random = trial.stream(7, degree.len() as u64);
        drive.life(&mut random, 6000);
        let (checked, expired) = watch(&mut drive, &mut random, 1500);
        assert!(checked > 8000 && expired < 300, "{degree}: {checked} pairs, {expired} expired");
        let gc = drive.engine.gc_counters();
        assert!(gc.pairs_moved > 1000, "garbage collection had pairs to move");
        drive.verify_all();
        let held = drive.engine.dram().parts().get("held_records").copied();
        assert_eq!(held, None, "nothing is kept when there are no iterators");
    }
}

/// Who goes along the same small pairs again and again finds them in memory, and there each version of a pair for itself: while they are
/// overwritten pages of the index come back to places where others had the same keys.
pub(super) fn pairs_that_were_seen_before_are_those_of_the_moment(trial: &Trial) {
    if !trial.is_ordered() {
        return;
    }
    let mut drive = tiny(trial, "0");
    // Along those that read ahead nobody glances.
    drive.engine.set_iterator_plan(IteratorPlan::NONE);
    let mut random = trial.random(11);
    for _ in 0..200 {
        for _ in 0..1000 {
            let key = (random.below(2000) as u32).to_be_bytes();
            drive.store(&key, 100).unwrap();
        }
        drive.run(Command::Flush).unwrap();
        for _ in 0..3 {
            let mut iterator = Watched::of(&mut drive, IteratorOptions::default()).unwrap();
            let mut pairs = iterator.take(&mut drive, Some(&[]), 40);
            while pairs.is_some_and(|pairs| pairs > 0) {
                pairs = iterator.take(&mut drive, None, 40);
            }
            iterator.destroy(&mut drive);
        }
    }
    assert!(drive.engine.gc_counters().superblocks > 100);
    // A medium of bytes has nothing to give; a tree that gathers more than others has so few pairs in DRAM, and nothing on flash names them.
    let can_show = trial.medium() == Medium::Ropes && !trial.design().merges_by_ranges;
    let shown = drive.engine.kept_values_shown();
    assert_eq!(shown > 10_000, can_show, "{shown} values were shown from memory");
}

pub(super) fn a_snapshot_has_the_iterators_of_the_drive(trial: &Trial) {
    if !trial.is_ordered() {
        return;
    }
    // Also with those that glances go along, which move them without a change of the drive.
    let none = PrefetchDegree::Fixed(0);
    let plans = [(true, none), (true, PrefetchDegree::Fixed(5)), (false, none)];
    for (index_prefetch, prefetch_degree) in plans {
        let mut drive = tiny(trial, "0");
        drive.engine.set_iterator_plan(IteratorPlan { index_prefetch, prefetch_degree });
        let mut random = trial.random(8);
        drive.life(&mut random, 3000);
        let mut watched: Vec<_> = (0..3).map(|_| Watched::create(&mut drive, &mut random).unwrap()).collect();
        drive.life(&mut random, 100);
        assert!(watched.iter_mut().all(|iterator| iterator.step(&mut drive, &mut random).is_some()));
        let copy = drive.snapshot();
        let go_on = |mut drive: Drive| {
            let mut random = trial.random(9);
            // Before anything else, which might part those of one drive from those of the other.
            let mut watched = watched.clone();
            assert!(watched.iter_mut().all(|iterator| iterator.step(&mut drive, &mut random).is_some()));
            let seen = watch_these(watched, &mut drive, &mut random, 300);
            drive.verify_all();
            (seen, drive.clock, drive.engine.flash_counters().clone(), drive.engine.dram())
        };
        let first = go_on(drive.snapshot());
        assert_eq!(go_on(copy), first);
        assert_eq!(go_on(drive), first);
    }
}

pub(super) fn the_same_pairs_come_however_many_are_read_ahead(trial: &Trial) {
    if !trial.is_ordered() {
        return;
    }
    let run = |degree: &str| {
        let mut drive = tiny(trial, degree).timed();
        drive.life(&mut trial.random(2), 3000);
        let options = IteratorOptions::default();
        let Ok(Reply::IteratorCreated(iterator)) = drive.run(Command::CreateIterator { options }) else { panic!() };
        let begun = drive.clock;
        let mut pairs: BTreeMap<Box<[u8]>, Option<Value>> = BTreeMap::new();
        let mut reply = drive.run(Command::Seek { iterator, key: None, pairs_max: 1 });
        while let Ok(Reply::Pairs(some)) = reply
            && !some.is_empty()
        {
            pairs.extend(some);
            reply = drive.run(Command::Next { iterator, pairs_max: 1 });
        }
        assert!(pairs.keys().eq(drive.keys().iter()));
        (drive.clock - begun, pairs)
    };
    let [(none, pairs), (some, more), (adaptive, most)] = ["0", "8", "adaptive"].map(run);
    assert!(pairs == more && pairs == most);
    assert!(some.0 * 2 < none.0 && adaptive.0 * 3 < none.0 * 2, "{none} {some} {adaptive}");
}

pub(super) fn iterators_are_refused_in_one_line_and_end(trial: &Trial) {
    let mut drive = trial.drive();
    drive.store(b"key", 10).unwrap();
    let options = IteratorOptions::default();
    let iterator = IteratorId(1);
    if !trial.is_ordered() {
        let reply = drive.run(Command::CreateIterator { options });
        assert!(matches!(reply, Err(KvError::InvalidCommand(_))), "{reply:?}");
        return;
    }
    let absent = Err(KvError::NoSuchIterator(iterator));
    assert_eq!(drive.run(Command::Next { iterator, pairs_max: 1 }), absent);
    assert_eq!(drive.run(Command::Seek { iterator, key: None, pairs_max: 1 }), absent);
    assert_eq!(drive.run(Command::DestroyIterator { iterator }), absent);
    // DRAM ends somewhere, and what was made until then goes on.
    let mut made = Vec::new();
    let refused = loop {
        drive.store(format!("key {}", made.len()).as_bytes(), 10).unwrap();
        match drive.run(Command::CreateIterator { options }) {
            Ok(Reply::IteratorCreated(id)) => made.push(id),
            other => break other,
        }
    };
    let iterators = made.len() as u32;
    assert_eq!(refused, Err(KvError::TooManyIterators { iterators }));
    assert!(drive.engine.dram().total_bytes() <= drive.engine.dram_budget_bytes());
    for iterator in made {
        let reply = drive.run(Command::Seek { iterator, key: None, pairs_max: 1 });
        assert!(matches!(reply, Ok(Reply::Pairs(pairs)) if pairs.len() == 1));
        assert_eq!(drive.run(Command::DestroyIterator { iterator }), Ok(Reply::IteratorDestroyed));
    }
    drive.verify_all();
}

/// A full drive under overwrites: what an iterator keeps is needed, and it is told.
pub(super) fn a_full_drive_ends_iterators_before_it_refuses_overwrites(trial: &Trial) {
    if !trial.is_ordered() {
        return;
    }
    let mut drive = tiny(trial, "0");
    let mut stored = 0u32;
    while drive.store(&stored.to_be_bytes(), 1500).is_ok() {
        stored += 1;
    }
    let options = IteratorOptions::default();
    let Ok(Reply::IteratorCreated(iterator)) = drive.run(Command::CreateIterator { options }) else { panic!() };
    let first = drive.run(Command::Seek { iterator, key: None, pairs_max: 3 });
    assert!(matches!(first, Ok(Reply::Pairs(pairs)) if pairs.len() == 3));
    for round in 0..3 * stored {
        assert_eq!(drive.store(&(round % stored).to_be_bytes(), 1500), Ok(()));
    }
    let next = drive.run(Command::Next { iterator, pairs_max: 1 });
    assert_eq!(next, Err(KvError::IteratorExpired(iterator)));
    assert_eq!(drive.run(Command::DestroyIterator { iterator }), Ok(Reply::IteratorDestroyed));
    assert_eq!(drive.run(Command::Next { iterator, pairs_max: 1 }), Err(KvError::NoSuchIterator(iterator)));
    drive.verify_all();
}

/// An iterator keeps what it can see, and nothing of what comes later.
pub(super) fn an_iterator_of_an_empty_drive_keeps_nothing(trial: &Trial) {
    if !trial.is_ordered() {
        return;
    }
    let mut drive = tiny(trial, "0");
    let options = IteratorOptions::default();
    let Ok(Reply::IteratorCreated(iterator)) = drive.run(Command::CreateIterator { options }) else { panic!() };
    for _ in 0..30_000 {
        drive.store(b"hot", 600).unwrap();
    }
    assert!(drive.engine.gc_counters().superblocks > 50);
    assert_eq!(drive.run(Command::Seek { iterator, key: None, pairs_max: 9 }), Ok(Reply::Pairs(Vec::new())));
    drive.verify_all();
}

/// Iterators that lie idle take no share of those that go on.
pub(super) fn idle_iterators_do_not_slow_an_active_one(trial: &Trial) {
    // Who reads nothing ahead is as slow beside idle ones as alone.
    if !trial.is_ordered() || !trial.design().iterators.index_prefetch {
        return;
    }
    for idle in [0, 20] {
        let mut drive = tiny(trial, "adaptive");
        for number in 0..1500u32 {
            drive.store(&number.to_be_bytes(), 700).unwrap();
        }
        let options = IteratorOptions::default();
        let create = |drive: &mut Drive| match drive.run(Command::CreateIterator { options }) {
            Ok(Reply::IteratorCreated(iterator)) => iterator,
            other => panic!("{other:?}"),
        };
        for _ in 0..idle {
            create(&mut drive);
        }
        let iterator = create(&mut drive);
        drive.run(Command::Seek { iterator, key: None, pairs_max: 1 }).unwrap();
        let begun = drive.clock;
        (0..1000).for_each(|_| drop(drive.run(Command::Next { iterator, pairs_max: 1 }).unwrap()));
        let took = drive.clock - begun;
        assert!(took.0 < 1000 * 30_000, "{idle} idle: {took}");
    }
}

/// The next table of a run is read when it will soon be needed, and not for a range that ends long before.
pub(super) fn short_ranges_read_no_more_of_the_index_for_reading_ahead(trial: &Trial) {
    if !trial.is_ordered() || !trial.design().iterators.index_prefetch {
        return;
    }
    let reads = |index_prefetch: bool| {
        let mut drive = tiny(trial, "0");
        for number in 0..8000u32 {
            drive.store(&number.to_be_bytes(), 60).unwrap();
        }
        drive.engine.set_iterator_plan(IteratorPlan { index_prefetch, prefetch_degree: PrefetchDegree::Fixed(0) });
        let before = drive.engine.flash_counters().reads;
        for _ in 0..20 {
            let options = IteratorOptions::default();
            let Ok(Reply::IteratorCreated(iterator)) = drive.run(Command::CreateIterator { options }) else { panic!() };
            drive.run(Command::Seek { iterator, key: None, pairs_max: 1 }).unwrap();
            (0..5).for_each(|_| drop(drive.run(Command::Next { iterator, pairs_max: 1 }).unwrap()));
            drive.run(Command::DestroyIterator { iterator }).unwrap();
        }
        drive.engine.flash_counters().reads[Cause::Index] - before[Cause::Index]
    };
    let [without, with] = [false, true].map(reads);
    assert!(without > 0 && with <= without, "{with} reads of tables, and {without} without reading ahead");
}
