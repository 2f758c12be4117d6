//! Swapping: a table whose budget comes and goes, in steps, with a mount at any moment.

use super::*;
use kvssd_flash::Cause;
use kvssd_ftl::index::{Fate, Growth, Index, Move, Sectioned};
use kvssd_ftl::{Change, Design, DramUse, Io, PairPlace, Testbed};
use kvssd_types::{Nanos, Random};
use std::collections::BTreeMap;

/// A drive with the table alone, and what must be in it: key to place.
struct Bench {
    bed: Testbed,
    index: Sectioned<DramHash>,
    model: BTreeMap<u64, u64>,
    places: u64,
}

const VALUE_BYTES: u32 = 100;

fn design() -> Design {
    let mut design = crate::named("kaml").unwrap();
    // 16 pages.
    design.set("flash_bytes_per_slot", "1536").unwrap();
    design
}

impl Bench {
    fn new() -> Self {
        let design = design();
        let profile = design.tiny_profile(&[("memory.power_loss", "volatile")]).unwrap();
        Bench { bed: Testbed::new(&design, &profile), index: Bench::empty(), model: BTreeMap::new(), places: 1000 }
    }

    fn empty() -> Sectioned<DramHash> {
        let form = HashPage { page_bytes: 4096, pages: 16 };
        let plan = DramHashPlan { flash_bytes_per_slot: 1536, load_percent_max: 75 };
        Sectioned::new(DramHash::new(plan, form), 4096)
    }

    fn with<T>(&mut self, use_it: impl FnOnce(&mut Sectioned<DramHash>, &mut Io<'_>) -> T) -> T {
        let mut io = self.bed.io(Nanos::ZERO, false);
        use_it(&mut self.index, &mut io)
    }

    fn pair(place: u64) -> PairPlace {
        PairPlace { place: Grain(place), key_bytes: 8, value_bytes: VALUE_BYTES }
    }

    /// Stores, moves or deletes a pair as the engine does it.
    fn step(&mut self, random: &mut Random) {
        let number = random.below(2000);
        let bytes = number.to_le_bytes();
        let (key, old) = (Key::new(&bytes).unwrap(), self.model.get(&number).copied());
        self.places += 1;
        let to = self.places;
        let what = random.below(10);
        self.with(|index, io| {
            let position = index.locate(io, key, &mut |_, _| panic!("no record is wanted")).unwrap();
            assert_eq!(position.place, old.map(Grain));
            assert_eq!(position.value_bytes, old.map(|_| VALUE_BYTES));
            io.note(Change::Key { key: key.bytes().into(), value_bytes: VALUE_BYTES });
            let Position { tag, note, .. } = position;
            match old {
                Some(from) if what < 2 => {
                    let fate = Fate::Dead;
                    let mut moves = [Move { tag, from: Grain(from), to: Grain(to), grains: 1, fate }];
                    index.relocate(io, &mut moves).unwrap();
                    assert_eq!(moves[0].fate, Fate::Moved);
                    assert_eq!(
                        index.are_bound(io, &[(tag, Grain(from)), (tag, Grain(to))]).unwrap(),
                        [Some(false), Some(true)]
                    );
                }
                Some(old) if what < 5 => {
                    io.note(Change::Unbound { tag, note, old: Bench::pair(old) });
                    index.unbind(io, key, position).unwrap();
                }
                _ => {
                    io.note(Change::Bound { tag, note, pair: Bench::pair(to), old: old.map(Bench::pair) });
                    index.bind(io, key, position, Bench::pair(to)).unwrap();
                }
            }
        });
        match old {
            Some(_) if (2..5).contains(&what) => self.model.remove(&number),
            _ => self.model.insert(number, to),
        };
    }

    /// The table that a mount makes of a checkpoint and the changes behind it has what it must.
    fn mount(&mut self, saved: &[u8], all: &[Change]) {
        let mut index = Bench::empty();
        let mut io = self.bed.io(Nanos::ZERO, true);
        index.set_dram_budget(u64::MAX);
        index.restore(saved).unwrap();
        let own = all.iter().enumerate().filter(|(_, change)| matches!(change, Change::Own { .. }));
        own.for_each(|(position, change)| index.redo_own(change, position).unwrap());
        for (position, change) in all.iter().enumerate() {
            index.redo(&mut io, change, position).unwrap();
        }
        index.end_redo(&mut io).unwrap();
        let contents = index.contents(&mut io);
        assert_eq!(contents.faults, []);
        let word = |number: u64| KeyWord::of(Key::new(&number.to_le_bytes()).unwrap()).tag();
        let mut expected: Vec<(u64, Grain)> =
            self.model.iter().map(|(&number, &place)| (word(number), Grain(place))).collect();
        expected.sort_unstable();
        assert_eq!(contents.entries.iter().map(|entry| (entry.tag, entry.place)).collect::<Vec<_>>(), expected);
    }

    fn swap_out(&mut self) {
        self.index.set_dram_budget(0);
        let mut steps = 0;
        while self.index.growth() == Growth::Background {
            self.with(|index, io| index.grow(io)).unwrap();
            steps += 1;
        }
        assert!(steps > 1, "it leaves step by step");
    }

    fn dram_bytes(&self) -> u64 {
        let mut dram = DramUse::default();
        self.index.dram(&mut dram);
        dram.total_bytes()
    }

    /// Bytes of pages that were written so far.
    fn written_bytes(&self) -> u64 {
        self.index.counters().bytes_written.commands
    }
}

#[test]
fn a_table_leaves_dram_in_steps_and_comes_back_whole_on_first_use() {
    let mut bench = Bench::new();
    let mut random = Random::new(1);
    (0..3000).for_each(|_| bench.step(&mut random));
    let (form, whole) = (bench.index.index().form(), bench.dram_bytes());
    assert_eq!(whole, form.directory_bytes() + form.table_bytes());
    assert_eq!(bench.written_bytes(), 0, "while there is room for it, nothing of it is written");

    bench.swap_out();
    assert_eq!(bench.dram_bytes(), form.directory_bytes());
    let written = bench.written_bytes();
    assert_eq!(written, form.pages * 4096);

    // With less room than it wants, it reads the pages that it needs, and keeps to the budget.
    let half = form.directory_bytes() + form.table_bytes() / 2;
    bench.index.set_dram_budget(half);
    for _ in 0..200 {
        bench.step(&mut random);
        assert!(bench.dram_bytes() <= half);
    }
    bench.swap_out();

    // With room, the first use brings everything.
    bench.index.set_dram_budget(u64::MAX);
    assert_eq!(bench.dram_bytes(), form.directory_bytes());
    let drained = bench.bed.flush().unwrap();
    let before = bench.bed.flash_counters().reads[Cause::Index];
    let number = *bench.model.keys().next().unwrap();
    let mut io = bench.bed.io(drained, false);
    let key = number.to_le_bytes();
    bench.index.locate(&mut io, Key::new(&key).unwrap(), &mut |_, _| panic!("no record is wanted")).unwrap();
    let took = io.settle() - drained;
    assert!(took < Nanos(4 * 100_000), "sixteen pages of four dies, side by side: {took:?}");
    assert_eq!(bench.dram_bytes(), whole);
    assert_eq!(bench.bed.flash_counters().reads[Cause::Index] - before, form.pages);

    // What was not changed is on flash already.
    let written = bench.written_bytes();
    bench.swap_out();
    assert_eq!(bench.written_bytes(), written);
    bench.index.set_dram_budget(u64::MAX);
    (0..3).for_each(|_| bench.step(&mut random));
    bench.swap_out();
    assert!((1..=3 * 4096).contains(&(bench.written_bytes() - written)));
}

#[test]
fn a_mount_at_any_moment_of_swapping_has_every_pair() {
    for seed in 0..6 {
        let mut bench = Bench::new();
        let mut random = Random::new(seed);
        let (mut saved, mut since) = (bench.index.save(), Vec::new());
        for round in 0..1500u32 {
            match random.below(100) {
                0 => bench.index.set_dram_budget(0),
                1 => bench.index.set_dram_budget(40_000),
                2 | 3 => bench.index.set_dram_budget(u64::MAX),
                4..12 => bench.with(|index, io| index.grow(io)).unwrap(),
                12 if round % 5 == 0 => {
                    bench.bed.noted();
                    (saved, since) = (bench.index.save(), Vec::new());
                }
                _ => bench.step(&mut random),
            }
            if round % 25 == 0 {
                since.extend(bench.bed.noted());
                bench.mount(&saved, &since);
            }
        }
        assert!(bench.written_bytes() > 0 && bench.model.len() > 300);
    }
}
