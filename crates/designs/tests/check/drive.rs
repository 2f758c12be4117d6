//! A tiny drive whose power goes again and again.

use kvssd_designs::DESIGNS;
use kvssd_flash::{
    Backing, BlockAddress, ByteBacking, Geometry, PageAddress, PageBytes, PowerCut, PowerLoss, Profile, RopeBacking,
    SuperblockId,
};
use kvssd_ftl::{CheckReport, Design, Engine};
use kvssd_types::{
    Command, IteratorId, IteratorOptions, Key, KvError, NamespaceId, Nanos, Pattern, Random, Reply, StoreCondition,
    Value,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;

pub type Medium = Arc<Mutex<ByteBacking>>;

/// The drive of the conformance suite, whose sections have more DRAM: damage on flash is not hidden by what is written over it.
pub fn tiny(design: &Design, power_loss: PowerLoss) -> Profile {
    let dram_bytes = match design.name {
        "plus" => "225000",
        "pink" | "iter" => "200000",
        // Most of it is for stores behind.
        "tessera" => "97000",
        _ => "28000",
    };
    design.tiny_profile(&[("memory.dram_bytes", dram_bytes), ("memory.power_loss", power_loss.name())]).unwrap()
}

/// The pages of every such drive.
fn geometry(design: &Design) -> Geometry {
    tiny(design, PowerLoss::Ignored).geometry
}

/// Whether so few pairs have sections on flash that a look-up needs: the levels of `multilevel` begin with one page, which DRAM holds,
/// and what it has on flash is for lists; all sections of `tessera` together are no larger.
pub fn has_sections(design: &Design) -> bool {
    !["multilevel", "tessera"].contains(&design.name)
}

/// Every design; a tree with tables so small that so few pairs fill some, and a table in DRAM of which a part is on flash.
pub fn designs() -> impl Iterator<Item = Design> {
    DESIGNS.into_iter().map(|mut design| {
        for (name, value) in [("table_pages", "1"), ("flash_bytes_per_slot", "1024")] {
            if design.parameters().iter().any(|(parameter, _)| *parameter == name) {
                design.set(name, value).unwrap();
            }
        }
        design
    })
}

/// Every design with every way to lose power, side by side.
pub fn each(test: impl Fn(&Design, PowerLoss) + Sync) {
    let test = &test;
    thread::scope(|scope| {
        for design in designs() {
            for power_loss in [PowerLoss::Protected, PowerLoss::Volatile] {
                let design = design.clone();
                scope.spawn(move || test(&design, power_loss));
            }
        }
    });
}

/// The check of a medium that nobody has mounted.
pub fn overlay_check(design: &Design, power_loss: PowerLoss, medium: &Medium) -> CheckReport {
    let profile = tiny(design, power_loss);
    let backing = powered(profile.geometry, medium);
    design.check(&profile, Box::new(backing))
}

/// A medium whose power stays, and that keeps what is staged.
pub fn powered(geometry: Geometry, medium: &Medium) -> PowerCut {
    PowerCut::new(Arc::clone(medium), geometry, PowerLoss::Protected, Nanos::MAX, Random::new(0))
}

/// All bytes of a medium.
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub pages: Vec<PageBytes>,
    pub staged: Vec<u8>,
    /// By block.
    pub erases: Vec<u32>,
}

impl Snapshot {
    pub fn of(design: &Design, medium: &Medium) -> Self {
        let mut medium = medium.lock().unwrap();
        let pages = geometry(design).pages() as u32;
        Snapshot {
            pages: (0..pages).map(|page| medium.page_mut(PageAddress(page)).clone()).collect(),
            staged: medium.staged_mut().clone(),
            erases: medium.erases().to_vec(),
        }
    }

    pub fn medium(&self, design: &Design) -> Medium {
        let mut medium = ByteBacking::new(geometry(design));
        for (page, bytes) in (0..).map(PageAddress).zip(&self.pages) {
            medium.page_mut(page).clone_from(bytes);
        }
        medium.staged_mut().clone_from(&self.staged);
        let geometry = geometry(design);
        let superblocks = (0..geometry.superblocks()).map(SuperblockId);
        let blocks = superblocks
            .flat_map(|superblock| geometry.dies_of(superblock).map(move |die| BlockAddress { superblock, die }));
        for block in blocks {
            medium.set_erases(block, self.erases[geometry.block_index(block)]);
        }
        Arc::new(Mutex::new(medium))
    }
}

/// A drive that was used and not prepared for a cut.
pub fn unprepared(design: &Design, stores: u64) -> Engine {
    let profile = tiny(design, PowerLoss::Ignored);
    let backing: Box<dyn Backing> = Box::new(RopeBacking::new(profile.geometry));
    let mut engine = design.build(&profile, backing).unwrap();
    let (mut clock, mut random) = (Nanos::ZERO, Random::new(1));
    for seed in 0..stores {
        let key = random.below(700).to_be_bytes();
        let pattern = Pattern { seed, offset: 0, length: random.below(5000) as u32 };
        let _ = store(&mut engine, &mut clock, &key, pattern);
    }
    engine
}

/// Stores when what came before is done.
pub fn store(engine: &mut Engine, clock: &mut Nanos, key: &[u8], pattern: Pattern) -> Result<Reply, KvError> {
    let (key, value) = (Key::new(key).unwrap(), Value::Pattern(pattern));
    engine.advance(*clock).unwrap();
    let (done, reply) = engine.execute(Command::Store { key, value, condition: StoreCondition::Always }, *clock);
    *clock = done;
    reply
}

/// Mounts a drive and overwrites a part of it, so that garbage collection comes by everywhere; then there must be no findings.
pub fn overwrite(design: &Design, power_loss: PowerLoss, medium: &Medium, stores: u64) {
    let profile = tiny(design, power_loss);
    let backing = powered(profile.geometry, medium);
    let (mut engine, report) = design.mount(&profile, Box::new(backing)).unwrap();
    let mut clock = report.took;
    for seed in 0..stores {
        let key = format!("key {}", seed % 100).into_bytes();
        store(&mut engine, &mut clock, &key, Pattern { seed, offset: 0, length: 2000 }).unwrap();
    }
    let report = engine.check();
    assert!(report.is_clean(), "{report}");
}

/// All keys of a protected drive after a mount, a hundred at a time; nothing is changed.
pub fn list(design: &Design, medium: &Medium) -> Vec<Box<[u8]>> {
    let profile = tiny(design, PowerLoss::Protected);
    let medium = Snapshot::of(design, medium).medium(design);
    let (mut engine, report) = design.mount(&profile, Box::new(powered(profile.geometry, &medium))).unwrap();
    let mut listed: Vec<Box<[u8]>> = Vec::new();
    loop {
        let from = listed.last().map(|key| Key::new(key).unwrap());
        let (_, reply) = engine.execute(Command::List { from, keys_max: 100 }, report.took);
        let Ok(Reply::Listed(keys)) = reply else { panic!("{reply:?}") };
        // The key that was asked for comes again.
        let skip = usize::from(from.is_some());
        if keys.len() <= skip {
            return listed;
        }
        listed.extend(keys.into_iter().skip(skip));
    }
}

/// A drive whose power goes again and again.
pub struct Mortal {
    pub design: Design,
    pub power_loss: PowerLoss,
    pub medium: Medium,
    pub moved: u64,
    /// What it must hold, when it is protected: key to seed and length of the value.
    pub pairs: BTreeMap<Vec<u8>, (u64, u32)>,
    random: Random,
    seed: u64,
}

impl Mortal {
    pub fn new(design: &Design, power_loss: PowerLoss, seed: u64) -> Self {
        let profile = tiny(design, power_loss);
        let medium = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
        let engine = design.build(&profile, Box::new(powered(profile.geometry, &medium)));
        drop(engine.unwrap());
        let (pairs, random) = (BTreeMap::new(), Random::new(seed));
        Mortal { design: design.clone(), power_loss, medium, moved: 0, pairs, random, seed: 0 }
    }

    /// Mounts, works until shortly before the cut, shows the engine to `look`, works on until the power goes.
    pub fn life(&mut self, works_ns: u64, mut look: impl FnMut(&mut Engine)) {
        let profile = tiny(&self.design, self.power_loss);
        let cut_at = Nanos(self.random.below(works_ns));
        let random = Random::new(self.random.below(u64::MAX));
        let backing = PowerCut::new(Arc::clone(&self.medium), profile.geometry, self.power_loss, cut_at, random);
        let (mut engine, report) = match self.design.mount(&profile, Box::new(backing)) {
            Ok(mounted) => mounted,
            Err(error) if error.to_string().contains("the power is gone") => return,
            Err(error) => panic!("{error}"),
        };
        let mut clock = report.took;
        let mut looks = 0;
        while clock < cut_at {
            // Now and then, also in the middle of a victim.
            if looks < 3 && self.random.below(40) == 0 {
                looks += 1;
                look(&mut engine);
            }
            if !self.step(&mut engine, &mut clock, cut_at) {
                break;
            }
        }
        self.moved += engine.gc_counters().pairs_moved;
    }

    /// A mount, and a cut.
    pub fn mount_until(&mut self, cut_at: Nanos) {
        let profile = tiny(&self.design, self.power_loss);
        let random = Random::new(self.random.below(u64::MAX));
        let backing = PowerCut::new(Arc::clone(&self.medium), profile.geometry, self.power_loss, cut_at, random);
        match self.design.mount(&profile, Box::new(backing)) {
            Ok(_) => {}
            Err(error) => assert!(error.to_string().contains("the power is gone"), "{error}"),
        }
    }

    /// An iterator is made, used, or forgotten: what it keeps is nobody's after the cut.
    fn iterate(&mut self, engine: &mut Engine, clock: &mut Nanos) {
        let options = IteratorOptions::default();
        let iterator = IteratorId(1 + self.random.below(8));
        let command = match self.random.below(4) {
            0 => Command::CreateIterator { options },
            1 => Command::DestroyIterator { iterator },
            _ => Command::Seek { iterator, key: None, pairs_max: 4 },
        };
        let (done, reply) = engine.execute(command, *clock);
        *clock = done;
        assert!(!matches!(reply, Err(KvError::Unrecovered(_) | KvError::Failed(_))), "{reply:?}");
    }

    /// One command; gives false when the power went.
    fn step(&mut self, engine: &mut Engine, clock: &mut Nanos, cut_at: Nanos) -> bool {
        if engine.is_ordered(NamespaceId::FIRST) && self.random.below(10) == 0 && engine.advance(*clock).is_ok() {
            self.iterate(engine, clock);
        }
        let key = format!("key {}", self.random.below(500)).into_bytes();
        let name = Key::new(&key).unwrap();
        let mut new = None;
        let command = match self.random.below(200) {
            0..150 => {
                self.seed += 1;
                let length = match self.random.below(20) {
                    0 => self.random.below(60_000),
                    1..4 => self.random.below(9000),
                    _ => self.random.below(1500),
                } as u32;
                new = Some((self.seed, length));
                let value = Value::Pattern(Pattern { seed: self.seed, offset: 0, length });
                Command::Store { key: name, value, condition: StoreCondition::Always }
            }
            150..199 => Command::Delete { key: name },
            _ => Command::Flush,
        };
        let is_change = !matches!(command, Command::Flush);
        let (done, reply) = match engine.advance(*clock) {
            Ok(()) => engine.execute(command, *clock),
            Err(error) => (*clock, Err(error)),
        };
        *clock = done;
        match reply {
            Ok(Reply::Stored | Reply::Deleted) | Err(KvError::PowerLost) if is_change => {
                // The change that was under way when the power went may be there or not.
                match new.filter(|_| reply.is_ok() && done <= cut_at) {
                    Some(new) => drop(self.pairs.insert(key, new)),
                    None => drop(self.pairs.remove(&key)),
                }
                reply.is_ok()
            }
            Ok(_) | Err(KvError::CapacityExceeded | KvError::KeyNotFound) => true,
            Err(KvError::PowerLost) => false,
            Err(error) => panic!("{error}"),
        }
    }
}
