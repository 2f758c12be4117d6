//! Programs of one machine that want one image: one of them makes it, one has it at a time, and others read it beside each other while nobody has it.
//!
//! ```text
//!   program 1   open: there is none -> make it -> open, look, calls, close | drop | killed
//!   program 2   open: there is one, or refused: it is in use -> a little later again
//!   program 3   open to read: beside other readers ...
//! ```

use super::book::SharedBook;
use super::caller::{Caller, Step};
use super::hardware::Hardware;
use super::image::{self, PATH};
use super::machine::Machine;
use super::report::{Loss, Report};
use super::strikes::Strikes;
use crate::{Options, Process, World};
use kvssd_device::{CreateDrive, Drive, DriveError};
use kvssd_flash::{ImageFault, SimulatedDisk};
use kvssd_ftl::Design;
use kvssd_host::{Error, Missing, NamespaceId, Options as StoreOptions, Store};
use kvssd_runtime::thread;
use kvssd_runtime::time::{Duration, Instant};
use kvssd_types::Random;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;

/// Programs at a time.
const PROGRAMS: u32 = 4;
/// Lives of a drive before there is another one.
const LIVES: u64 = 40;
/// The next call of the disk that is struck is among so many.
const HORIZONS: [u64; 3] = [30, 200, 800];
/// Tries of a program to open the image.
const TRIES: u64 = 200;
/// Steps of a program at the most.
const ACTS: u64 = 40;

/// What all programs know.
struct Common {
    world: World,
    hardware: Hardware,
    machine: Machine,
    book: SharedBook,
    report: RefCell<Report>,
    /// Making the image was answered.
    is_made: Cell<bool>,
    /// The image was opened: who made it may have been killed before that was answered.
    is_there: Cell<bool>,
    /// Who has it, and how many read it.
    writers: Cell<u32>,
    readers: Cell<u32>,
}

/// That somebody has the image.
struct Having<'a>(&'a Cell<u32>);

impl<'a> Having<'a> {
    fn new(count: &'a Cell<u32>) -> Self {
        count.set(count.get() + 1);
        Having(count)
    }
}

impl Drop for Having<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Lets the drive with that seed live.
///
/// # Errors
/// What was lost.
pub fn run(design: &Design, seed: u64, report: &mut Report) -> Result<(), Loss> {
    let mut random = Random::new(seed);
    let (sync, is_large) = (random.below(2) == 0, random.below(6) == 0);
    let hardware = Hardware::tiny(design, sync, is_large, random.below(3) == 0);
    let hardware = hardware.cached_or_not(&mut random).in_partitions(&mut random);
    let disk = SimulatedDisk::new(random.bits());
    let machine = Machine::new(disk.clone(), (1..=PROGRAMS).map(Process).collect());
    let (book, told) = (SharedBook::default(), Rc::new(Cell::new(Report::default())));
    let options = Options { turns_max: 20_000_000, ..Options::of_seed(random.bits()) };
    let (its_book, its_report) = (book.clone(), told.clone());
    let run = World::run(options, move |world| {
        let common = Rc::new(Common {
            world: world.clone(),
            hardware,
            machine,
            book: its_book,
            report: RefCell::default(),
            is_made: Cell::new(false),
            is_there: Cell::new(false),
            writers: Cell::new(0),
            readers: Cell::new(0),
        });
        live(&common, &mut random);
        its_report.set(*common.report.borrow());
    });
    *report += Report { power_losses: disk.stops(), ..told.get() };
    book.borrow_mut().conclude(run, &disk, seed, report)
}

/// The main actor: programs come and are killed.
fn live(common: &Rc<Common>, random: &mut Random) {
    let (world, disk) = (&common.world, common.machine.disk());
    let mut lives = 0;
    while lives < LIVES && !common.book.borrow().has_failed() {
        for number in 1..=PROGRAMS {
            if !world.is_alive(Process(number)) && random.below(2) == 0 {
                lives += 1;
                begin(common, Process(number), random.bits());
            }
        }
        if random.below(3) > 0 {
            let horizon = HORIZONS[random.below(3) as usize];
            Strikes { sync: common.hardware.create.sync, fails_one_in: 0 }.plan(disk, random, horizon);
        }
        thread::sleep(Duration::from_nanos(random.below(3_000_000)));
        if random.below(4) == 0 {
            world.kill(Process(1 + random.below(PROGRAMS.into()) as u32));
        }
        tidy(common);
    }
    disk.spare();
    let until = Instant::now() + Duration::from_secs(60);
    while (1..=PROGRAMS).any(|number| world.is_alive(Process(number))) && !common.book.borrow().has_failed() {
        thread::sleep(Duration::from_millis(1));
        if Instant::now() > until {
            common.book.borrow_mut().fail("a program has no end");
        }
    }
    tidy(common);
    if common.is_made.get() || common.is_there.get() {
        common.report.borrow_mut().checks += 1;
        common.book.borrow_mut().must(image::check(disk));
    }
}

/// Takes away what is left of an image that nobody has finished, and nobody makes.
fn tidy(common: &Common) {
    let is_alone = (1..=PROGRAMS).all(|number| !common.world.is_alive(Process(number)));
    if is_alone && !common.is_made.get() && !common.is_there.get() {
        // There may be none; and what was to happen to a program does not happen to this.
        common.machine.disk().kill();
        let _ = common.machine.disk().files().remove(Path::new(PATH));
    }
}

fn begin(common: &Rc<Common>, process: Process, seed: u64) {
    common.book.borrow_mut().lives += 1;
    common.report.borrow_mut().lives += 1;
    let inner = common.clone();
    let ended = Ended { common: common.clone(), is_in_order: false };
    drop(common.world.spawn(process, "program", move || {
        let (mut random, mut ended) = (Random::new(seed), ended);
        if random.below(4) == 0 {
            read(&inner, &mut random);
        } else {
            own(&inner, &mut random);
        }
        ended.is_in_order = true;
    }));
}

/// Counts how a life has ended.
struct Ended {
    common: Rc<Common>,
    is_in_order: bool,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.common.report.borrow_mut().kills += u64::from(!self.is_in_order);
    }
}

/// A program that has the image, when it gets it.
fn own(common: &Common, random: &mut Random) {
    let CreateDrive { sync, cache_bytes, .. } = common.hardware.create;
    let options = StoreOptions { missing: Missing::Fail, sync, cache_bytes, ..StoreOptions::default() };
    let Some(store) = open(common, random, &options) else { return };
    let having = Having::new(&common.writers);
    if common.writers.get() > 1 || common.readers.get() > 0 {
        common.book.borrow_mut().fail("an image has two owners");
    }
    let mut caller = caller(common, random.bits());
    look(&mut caller, &store);
    for _ in 0..random.below(ACTS) {
        if let Step::Ended(error) = caller.step(&store, store.own_namespace()) {
            return common.book.borrow_mut().fail(format!("an owner is told: {error}"));
        }
    }
    drop(having);
    if random.below(2) == 0 {
        common.report.borrow_mut().closes += 1;
        if let Err(error) = store.close() {
            common.book.borrow_mut().fail(format!("a store cannot be closed: {error}"));
        }
    }
}

/// A program that reads beside others.
fn read(common: &Common, random: &mut Random) {
    let CreateDrive { sync, cache_bytes, .. } = common.hardware.create;
    let options =
        StoreOptions { missing: Missing::Fail, read_only: true, sync, cache_bytes, ..StoreOptions::default() };
    let Some(store) = open(common, random, &options) else { return };
    let _having = Having::new(&common.readers);
    if common.writers.get() > 0 {
        common.book.borrow_mut().fail("an image is read while another has it");
    }
    let mut caller = caller(common, random.bits());
    look(&mut caller, &store);
    let stored = store.store(b"00", b"1");
    if stored != Err(Error::ReadOnly) {
        common.book.borrow_mut().fail(format!("a store that only reads answers {stored:?}"));
    }
    thread::sleep(Duration::from_nanos(random.below(1_000_000)));
    look(&mut caller, &store);
}

/// The store, once nobody else has it; none when that takes too long.
fn open(common: &Common, random: &mut Random, options: &StoreOptions) -> Option<Store> {
    let files = common.machine.files();
    for _ in 0..TRIES {
        let was_made = common.is_made.get() || common.is_there.get();
        let is_alone = is_alone(common);
        match Store::open_in(&files, Path::new(PATH), options) {
            Ok(store) => {
                common.is_there.set(true);
                return Some(store);
            }
            Err(Error::NotFound(_)) if !was_made => create(common, random),
            Err(Error::Locked { .. }) if !is_alone || !self::is_alone(common) => {
                common.report.borrow_mut().refusals += 1;
            }
            // Another is making it, or was killed when it did.
            Err(Error::Damaged { .. } | Error::Foreign { .. }) if !was_made => {}
            Err(error) => {
                common.book.borrow_mut().fail(format!("the image cannot be opened: {error}"));
                return None;
            }
        }
        thread::sleep(Duration::from_nanos(random.below(200_000)));
    }
    None
}

/// Whether no other program lives.
fn is_alone(common: &Common) -> bool {
    let myself = common.world.process();
    (1..=PROGRAMS).map(Process).all(|other| other == myself || !common.world.is_alive(other))
}

/// Makes the image, unless another is quicker.
fn create(common: &Common, random: &mut Random) {
    let Hardware { design, profile, create, .. } = &common.hardware;
    match Drive::create_all_in(&common.machine.files(), Path::new(PATH), profile, design, *create) {
        Ok(drive) => {
            if common.is_made.replace(true) {
                common.book.borrow_mut().fail("an image was made twice");
            }
            thread::sleep(Duration::from_nanos(random.below(100_000)));
            drop(drive);
        }
        // Another was killed when it made it.
        Err(DriveError::Image(error)) if matches!(error.fault, ImageFault::Exists | ImageFault::Unfinished) => {}
        Err(error) => common.book.borrow_mut().fail(format!("the image cannot be made: {error}")),
    }
}

fn caller(common: &Common, seed: u64) -> Caller {
    let book = common.book.clone();
    let is_large = common.hardware.create.value_bytes_max.is_some();
    let large_one_in = if is_large { 20 } else { 0 };
    Caller { book, random: Random::new(seed), keys: 12, large_one_in, large_bytes: 100_000, wire: None }
}

/// Looks at everything.
fn look(caller: &mut Caller, store: &Store) {
    let namespace = store.own_namespace();
    for number in 0..caller.keys {
        let looked: Step = caller.retrieve(namespace, (NamespaceId::FIRST.0, number));
        if let Step::Ended(error) = looked {
            caller.wrong(&format!("key {number} cannot be read: {error}"));
        }
    }
    if let Step::Ended(error) = caller.list(namespace) {
        caller.wrong(&format!("keys cannot be listed: {error}"));
    }
}
