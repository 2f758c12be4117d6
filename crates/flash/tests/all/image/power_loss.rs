//! The machine stops at any moment, and the image is what was there at a moment of the row of calls.
//!
//! ```text
//!   writes and syncs of a life, in order      w w S w w w w S w | w w ..
//!                                             \_____________/   cut
//!   durable: everything before the last sync -^             each sector behind it: after any of the writes to it
//! ```

use super::GEOMETRY;
use kvssd_flash::rope::Rope;
use kvssd_flash::{
    Backing, BegunCommit, BlockAddress, BlockState, CreateOptions, DieId, Files, ImageBacking, OpenOptions,
    PageAddress, RawFile, SECTOR_BYTES, Span, SuperblockId, Syncer, SystemFiles, UnitAddress, UnitBuilder,
};
use kvssd_types::{Nanos, Random};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IoSliceMut};
use std::path::Path;
use std::sync::{Arc, Mutex};

const BLOCKS: usize = 6;
const ITEM_BYTES: usize = 40;
const STAGING_BYTES: u64 = 2000;
const SEEDS: u64 = 5;

/// A write to the file, or that everything before has become durable.
#[derive(Clone, Debug)]
enum Event {
    Write(u64, Vec<u8>),
    Sync,
}

/// The writes and syncs of a life.
type History = Arc<Mutex<Vec<Event>>>;

/// The system's files, with what is done to them written down. Nobody is going to pull the plug, so that a sync is only that.
#[derive(Debug, Default)]
struct Recorded(History);

#[derive(Debug)]
struct RecordedFile(Box<dyn RawFile>, History);

impl Files for Recorded {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn RawFile>> {
        Ok(Box::new(RecordedFile(SystemFiles.create_new(path)?, self.0.clone())))
    }

    fn open(&self, path: &Path, is_read_only: bool) -> io::Result<Box<dyn RawFile>> {
        Ok(Box::new(RecordedFile(SystemFiles.open(path, is_read_only)?, self.0.clone())))
    }
}

#[derive(Debug)]
struct RecordedSyncer(History);

impl Syncer for RecordedSyncer {
    fn sync(&self) -> io::Result<()> {
        self.0.lock().unwrap().push(Event::Sync);
        Ok(())
    }
}

impl RawFile for RecordedFile {
    fn length_bytes(&self) -> io::Result<u64> {
        self.0.length_bytes()
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.0.set_length(bytes)
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(at, out)
    }

    fn read_each(&self, at: u64, places: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        self.0.read_each(at, places)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        self.1.lock().unwrap().push(Event::Write(at, bytes.to_owned()));
        self.0.write_at(at, bytes)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::new(RecordedSyncer(self.1.clone()))
    }

    fn try_lock(&self, is_shared: bool) -> io::Result<bool> {
        self.0.try_lock(is_shared)
    }

    fn lock(&self) -> io::Result<()> {
        self.0.lock()
    }

    fn unlock(&self) {
        self.0.unlock();
    }
}

/// What a life does, each with a number that is never used again.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Stage,
    Restage,
    Program(usize, Span),
    Erase(usize, Span),
    Commit,
}

/// An act, and how long the history of writes was before and after it.
#[derive(Clone, Copy, Debug)]
struct Done {
    number: u32,
    act: Act,
    begun: usize,
    ended: usize,
}

/// What an image holds: staged numbers, and for each block its erases and the number that programmed each unit.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    staged: Vec<u32>,
    blocks: Vec<(u32, Vec<u32>)>,
}

fn block(number: usize) -> BlockAddress {
    BlockAddress { superblock: SuperblockId(number as u32 / 2), die: DieId(number as u32 % 2) }
}

fn item(number: u32) -> Vec<u8> {
    number.to_le_bytes().repeat(ITEM_BYTES / 4)
}

/// What an open image holds; that pages which its table speaks of are whole is part of it.
fn state(image: &mut ImageBacking) -> State {
    let staged = image.staged().unwrap();
    let numbers = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
    assert!(staged.len().is_multiple_of(ITEM_BYTES));
    assert!(staged.chunks(ITEM_BYTES).all(|bytes| bytes == item(numbers(bytes))));
    let blocks = (0..BLOCKS).map(|number| {
        let BlockState { units_programmed, erases } = image.block(block(number));
        let units = (0..units_programmed).map(|row| {
            let first = GEOMETRY.unit_at(block(number), row).0 * GEOMETRY.pages_per_program;
            let programs = [first, first + 1].map(|page| {
                let view = image.page(PageAddress(page)).unwrap();
                assert_eq!(*view.data.blob(0..512), view.oob.repeat(128)[..]);
                numbers(view.oob)
            });
            assert_eq!(programs[0], programs[1]);
            programs[0]
        });
        (erases, units.collect())
    });
    State { blocks: blocks.collect(), staged: staged.chunks(ITEM_BYTES).map(numbers).collect() }
}

/// Acts on an image at random; `stages` or leaves it to spans to say what must be there before what.
struct Life {
    image: ImageBacking,
    history: History,
    random: Random,
    stages: bool,
    done: Vec<Done>,
    state: State,
    /// Commits that have not ended: the act that began each, and whether it has waited for the disk.
    begun: Vec<(u32, BegunCommit, bool)>,
    now: Nanos,
    last_end: Nanos,
}

impl Life {
    /// Writes and syncs so far.
    fn written(&self) -> usize {
        self.history.lock().unwrap().len()
    }

    fn act(&mut self, mut number: u32) {
        let begun = self.written();
        let which = self.random.below(BLOCKS as u64) as usize;
        let act = match self.random.below(16) {
            0..4 if self.stages => self.stage(number),
            4 if self.stages => self.restage(number),
            0..10 if self.state.blocks[which].1.len() < 3 => self.program(number, which),
            0..10 => self.erase(which),
            10..12 => self.commit(),
            _ => match self.go_on_with_commit(number) {
                None => return,
                Some(begun) => {
                    number = begun;
                    Act::Commit
                }
            },
        };
        self.done.push(Done { number, act, begun, ended: self.written() });
    }

    fn commit(&mut self) -> Act {
        self.image.commit().unwrap();
        Act::Commit
    }

    /// Begins a commit, or waits for the disk or ends one that was begun, with other acts and commits between. What is promised by that: all up to
    /// which act.
    fn go_on_with_commit(&mut self, number: u32) -> Option<u32> {
        let which = self.random.below(self.begun.len() as u64 + 1) as usize;
        match self.begun.get_mut(which) {
            None => match self.image.begin_commit().unwrap() {
                None => {
                    self.commit();
                    return Some(number);
                }
                Some(begun) => self.begun.push((number, begun, false)),
            },
            Some((number, begun, has_waited @ false)) => {
                begun.wait().unwrap();
                *has_waited = true;
                return Some(*number);
            }
            Some(_) => _ = self.image.end_commit(self.begun.swap_remove(which).1).unwrap(),
        }
        None
    }

    fn stage(&mut self, number: u32) -> Act {
        if (self.state.staged.len() + 1) * ITEM_BYTES > STAGING_BYTES as usize {
            return self.restage(number);
        }
        self.image.stage(&item(number), Nanos::ZERO).unwrap();
        self.state.staged.push(number);
        Act::Stage
    }

    fn restage(&mut self, number: u32) -> Act {
        self.image.restage(&item(number), Nanos::ZERO).unwrap();
        self.state.staged = vec![number];
        Act::Restage
    }

    fn program(&mut self, number: u32, which: usize) -> Act {
        if self.random.below(3) == 0 {
            self.now = self.last_end;
        }
        let span = Span { issued: self.now, end: self.now + Nanos(1 + self.random.below(50)) };
        self.last_end = self.last_end.max(span.end);
        let mut unit = UnitBuilder::new(2);
        for _ in 0..2 {
            let mut data = Rope::default();
            data.push_literal(&number.to_le_bytes().repeat(128));
            unit.push(&number.to_le_bytes(), &mut data);
        }
        let row = self.state.blocks[which].1.len() as u32;
        let address: UnitAddress = GEOMETRY.unit_at(block(which), row);
        self.image.program(address, unit.finish(), span).unwrap();
        self.state.blocks[which].1.push(number);
        Act::Program(which, span)
    }

    /// Whoever erases has waited for what was moved out, and waits for the erase.
    fn erase(&mut self, which: usize) -> Act {
        let span = Span { issued: self.last_end, end: self.last_end + Nanos(10) };
        (self.now, self.last_end) = (span.end, span.end);
        self.image.erase(block(which), span).unwrap();
        self.state.blocks[which] = (self.state.blocks[which].0 + 1, Vec::new());
        Act::Erase(which, span)
    }
}

/// The bytes that a cut behind `cut` writes and syncs leaves.
fn cut(before: &[u8], history: &[Event], cut: usize, random: &mut Random) -> Vec<u8> {
    let history = &history[..cut];
    let durable = history.iter().rposition(|event| matches!(event, Event::Sync)).unwrap_or(0);
    let (mut bytes, sector_bytes) = (before.to_vec(), SECTOR_BYTES as usize);
    let mut loose: BTreeMap<usize, Vec<(usize, &[u8])>> = BTreeMap::new();
    for (index, event) in history.iter().enumerate() {
        let Event::Write(at, written) = event else { continue };
        let mut at = *at as usize;
        if index < durable {
            bytes[at..at + written.len()].copy_from_slice(written);
            continue;
        }
        let mut rest = &written[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(sector_bytes - at % sector_bytes));
            loose.entry(at / sector_bytes).or_default().push((at, piece));
            at += piece.len();
            rest = after;
        }
    }
    for writes in loose.values() {
        let count = random.below(writes.len() as u64 + 1) as usize;
        writes[..count].iter().for_each(|(at, piece)| bytes[*at..at + piece.len()].copy_from_slice(piece));
    }
    bytes
}

/// How many acts of a list `found` shows the effect of. `effects[i]` is what is there after the first i.
fn shown<T: PartialEq + std::fmt::Debug>(effects: &[T], found: &T) -> usize {
    effects.iter().rposition(|effect| effect == found).unwrap_or_else(|| panic!("{found:?} was never so: {effects:?}"))
}

/// Fails unless `found` is what a cut behind `cut` writes may leave of a life that began with `before`.
fn check(before: &State, done: &[Done], cut: usize, found: &State) {
    let promised = done.iter().filter(|done| matches!(done.act, Act::Commit | Act::Restage) && done.ended <= cut);
    let promised = promised.map(|done| done.number).max().unwrap_or(0);
    let (mut there, mut missing): (Vec<Done>, Vec<Done>) = Default::default();
    let mut sort = |acts: &[Done], shown: usize| {
        there.extend(&acts[..shown]);
        missing.extend(&acts[shown..]);
    };

    let acts: Vec<Done> = done.iter().filter(|done| matches!(done.act, Act::Stage | Act::Restage)).copied().collect();
    let mut effects = vec![before.staged.clone()];
    for done in &acts {
        let mut after = effects.last().unwrap().clone();
        after.retain(|_| done.act == Act::Stage);
        after.push(done.number);
        effects.push(after);
    }
    sort(&acts, shown(&effects, &found.staged));

    for which in 0..BLOCKS {
        let of_block =
            |done: &&Done| matches!(done.act, Act::Program(other, _) | Act::Erase(other, _) if other == which);
        let acts: Vec<Done> = done.iter().filter(of_block).copied().collect();
        let mut effects = vec![before.blocks[which].clone()];
        for done in &acts {
            let (erases, mut units) = effects.last().unwrap().clone();
            let is_erase = matches!(done.act, Act::Erase(..));
            units.retain(|_| !is_erase);
            units.extend((!is_erase).then_some(done.number));
            effects.push((erases + u32::from(is_erase), units));
        }
        sort(&acts, shown(&effects, &found.blocks[which]));
    }
    compare(before, &there, &missing, promised, cut);
}

fn compare(before: &State, there: &[Done], missing: &[Done], promised: u32, cut: usize) {
    let restaged = there.iter().filter(|done| done.act == Act::Restage).map(|done| done.number).max().unwrap_or(0);
    let is_covered = |number: u32| {
        !before.staged.is_empty() || there.iter().any(|done| done.number < number && done.act == Act::Stage)
    };
    assert!(there.iter().all(|done| done.begun <= cut), "what had not begun is there");
    for absent in missing {
        match absent.act {
            Act::Stage | Act::Restage => {
                assert!(absent.number > promised, "staged {absent:?} was promised, up to {promised}");
                assert!(there.iter().all(|done| done.number < absent.number), "{absent:?} is not there, {there:?} is");
            }
            Act::Program(_, span) => {
                assert!(absent.number > restaged, "{absent:?} was to be safe before {restaged}");
                if !is_covered(absent.number) {
                    assert!(absent.number > promised, "{absent:?} was promised, up to {promised}");
                    let depends = |done: &&Done| {
                        let (Act::Program(_, later) | Act::Erase(_, later)) = done.act else { return false };
                        later.issued >= span.end
                    };
                    let early = there.iter().filter(|done| done.number > absent.number).find(depends);
                    assert!(early.is_none(), "{early:?} is there without {absent:?}");
                }
            }
            Act::Erase(..) => {
                let is_later = |done: &&Done| done.number > absent.number && !matches!(done.act, Act::Erase(..));
                let early = there.iter().find(is_later);
                assert!(early.is_none(), "{early:?} is there without {absent:?}");
            }
            Act::Commit => {}
        }
    }
}

/// The states between the first and the last that were found, and the syncs.
type Seen = (usize, usize);

/// Lives of an image of so many parts, which are at work by turns; each is checked by itself.
fn campaign(parts: u32, stages: bool, seed: u64) -> Seen {
    let mut random = Random::new(seed);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("drive.kv");
    let options = CreateOptions { staging_bytes: STAGING_BYTES, ..CreateOptions::default() };
    let files: Arc<dyn Files> = Arc::new(SystemFiles);
    let mut images = ImageBacking::create_parts_in(&files, &path, GEOMETRY, "", parts, options).unwrap();
    images.iter_mut().for_each(|image| image.commit().unwrap());
    drop(images);
    let (mut number, mut torn, mut syncs) = (0, 0, 0);
    for _ in 0..60 {
        let before_bytes = fs::read(&path).unwrap();
        let recorded = Recorded::default();
        let history = recorded.0.clone();
        let (before, mut lives) = begin(recorded, &path, stages, &mut random, &mut number);
        for _ in 0..random.below(60 * u64::from(parts)) {
            number += 1;
            let turn = random.below(u64::from(parts)) as usize;
            lives[turn].act(number);
        }
        let history = history.lock().unwrap().clone();
        let (done, last): (Vec<_>, Vec<_>) = lives.into_iter().map(Life::end).unzip();
        assert_eq!(reopened(&path, &fs::read(&path).unwrap()), last, "what is committed is on file");
        for at in [random.below(history.len() as u64 + 1) as usize, random.below(history.len() as u64 + 1) as usize] {
            let bytes = cut(&before_bytes, &history, at, &mut random);
            let found = reopened(&path, &bytes);
            for (part, found) in found.iter().enumerate() {
                check(&before[part], &done[part], at, found);
            }
            torn += usize::from(found != last && found != before);
        }
        syncs += history.iter().filter(|event| matches!(event, Event::Sync)).count();
    }
    (torn, syncs)
}

/// Opens all parts. What they hold, and a life of each.
fn begin(
    recorded: Recorded,
    path: &Path,
    stages: bool,
    random: &mut Random,
    number: &mut u32,
) -> (Vec<State>, Vec<Life>) {
    let history = recorded.0.clone();
    let files: Arc<dyn Files> = Arc::new(recorded);
    let options = OpenOptions { sync: true, read_only: false, cache_bytes: 0 };
    let mut images = ImageBacking::open_parts_in(&files, path, options).unwrap().0;
    let before: Vec<State> = images.iter_mut().map(state).collect();
    let lives = images.into_iter().zip(&before).map(|(image, before)| {
        let (random, history, now) = (Random::new(random.bits()), history.clone(), Nanos::ZERO);
        let (done, state) = (Vec::new(), before.clone());
        let mut life = Life { image, history, random, stages, done, state, begun: Vec::new(), now, last_end: now };
        if stages && before.staged.is_empty() {
            *number += 1;
            life.stage(*number);
            life.done.push(Done { number: *number, act: Act::Stage, begun: 0, ended: life.written() });
        }
        life
    });
    let lives = lives.collect();
    (before, lives)
}

impl Life {
    /// What was done, and what is there with all of it.
    fn end(mut self) -> (Vec<Done>, State) {
        self.image.commit().unwrap();
        (self.done, self.state)
    }
}

fn reopened(path: &Path, bytes: &[u8]) -> Vec<State> {
    fs::write(path, bytes).unwrap();
    let files: Arc<dyn Files> = Arc::new(SystemFiles);
    let options = OpenOptions { sync: false, read_only: true, cache_bytes: 0 };
    ImageBacking::open_parts_in(&files, path, options).unwrap().0.iter_mut().map(state).collect()
}

fn campaigns(parts: u32, stages: bool, seeds: u64) -> Seen {
    (0..seeds).map(|seed| campaign(parts, stages, seed)).fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1))
}

#[test]
fn a_drive_that_stages_is_cut_anywhere() {
    let (torn, syncs) = campaigns(1, true, SEEDS);
    assert!(torn > 150 && syncs > 1000, "{torn} states between the first and the last, {syncs} syncs");
}

#[test]
fn a_drive_that_stages_nothing_is_cut_anywhere() {
    let (torn, syncs) = campaigns(1, false, SEEDS);
    assert!(torn > 150 && syncs > 1000, "{torn} states between the first and the last, {syncs} syncs");
}

#[test]
fn parts_that_are_at_work_by_turns_are_cut_anywhere() {
    for stages in [false, true] {
        let (torn, syncs) = campaigns(2, stages, 1);
        assert!(torn > 30 && syncs > 200, "{torn} states between the first and the last, {syncs} syncs");
    }
}
