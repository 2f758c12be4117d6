//! Lives between power cuts: what was accepted is there after a mount, in whatever state the cut left the flash.

use crate::drive::tiny;
use kvssd_flash::{ByteBacking, PowerCut, PowerLoss};
use kvssd_ftl::{DESIGNS, Design, Engine};
use kvssd_types::{Command, Key, KvError, Nanos, Pattern, Random, Reply, StoreCondition, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Key to seed and length of its value.
type Pairs = BTreeMap<Vec<u8>, (u64, u32)>;

/// A drive whose power goes again and again, and what must be on it.
struct Mortal {
    design: Design,
    power_loss: PowerLoss,
    medium: Arc<Mutex<ByteBacking>>,
    random: Random,
    /// What was accepted, and what was at the last flush.
    pairs: Pairs,
    /// The states since the last flush, oldest first; the last is `pairs`.
    history: Vec<Pairs>,
    seed: u64,
    cuts: u32,
    moved: u64,
}

impl Mortal {
    fn new(design: &str, power_loss: PowerLoss, seed: u64) -> Self {
        let profile = tiny(design, &[]);
        let medium = Arc::new(Mutex::new(ByteBacking::new(profile.geometry)));
        let design = Design::named(design).unwrap();
        let random = Random::new(seed);
        let mut drive = Mortal {
            design,
            power_loss,
            medium,
            random,
            pairs: Pairs::new(),
            history: vec![Pairs::new()],
            seed: 0,
            cuts: 0,
            moved: 0,
        };
        let backing = drive.powered(Nanos::MAX);
        drop(drive.design.format(&profile, Box::new(backing), power_loss).unwrap());
        drive
    }

    fn powered(&mut self, cut_at: Nanos) -> PowerCut {
        let geometry = tiny(self.design.name, &[]).geometry;
        let random = Random::new(self.random.below(u64::MAX));
        PowerCut::new(Arc::clone(&self.medium), geometry, self.power_loss, cut_at, random)
    }

    /// Mounts, checks, works until the cut.
    fn life(&mut self, works_ns: u64) {
        let profile = tiny(self.design.name, &[]);
        let cut_at = Nanos(self.random.below(works_ns));
        let backing = self.powered(cut_at);
        self.cuts += 1;
        let (mut engine, report) = match self.design.mount(&profile, Box::new(backing), self.power_loss) {
            Ok(mounted) => mounted,
            Err(error) if error.to_string().contains("the power is gone") => return,
            Err(error) => panic!("cut {}: {error}", self.cuts),
        };
        let mut clock = report.took;
        engine.check_invariants();
        if clock < cut_at {
            self.verify(&mut engine, &mut clock);
        }
        while clock < cut_at {
            if !self.step(&mut engine, &mut clock, cut_at) {
                break;
            }
        }
        self.moved += engine.gc_counters().pairs_moved;
    }

    fn run(engine: &mut Engine, clock: &mut Nanos, command: Command<'_>) -> Result<Reply, KvError> {
        engine.advance(*clock)?;
        let (done, reply) = engine.execute(command, *clock);
        *clock = done;
        reply
    }

    /// What the drive holds is what was accepted, or, when it is volatile, what it held at some moment since the last flush.
    fn verify(&mut self, engine: &mut Engine, clock: &mut Nanos) {
        let listed = match Self::run(engine, clock, Command::List { from: None, keys_max: usize::MAX }) {
            Ok(Reply::Listed(keys)) => keys,
            Err(KvError::Unrecovered(why)) if why.contains("the power is gone") => return,
            other => panic!("cut {}: {other:?}", self.cuts),
        };
        let mut found = BTreeMap::new();
        for key in listed {
            let retrieve = Command::Retrieve { key: Key::new(&key).unwrap(), offset_bytes: 0, length_bytes: u32::MAX };
            match Self::run(engine, clock, retrieve) {
                Ok(Reply::Retrieved { value, .. }) => found.insert(key.to_vec(), value),
                Err(KvError::Unrecovered(why)) if why.contains("the power is gone") => return,
                other => panic!("cut {}: {key:?} was listed, and {other:?}", self.cuts),
            };
        }
        let is_state = |pairs: &Pairs| {
            pairs.len() == found.len()
                && pairs.iter().all(|(key, &(seed, length))| {
                    found.get(key) == Some(&Value::Pattern(Pattern { seed, offset: 0, length }))
                })
        };
        let state = self.history.iter().rposition(is_state);
        let Some(state) = state else {
            let wanted = self.history.last().unwrap();
            let wrong: Vec<_> = wanted
                .iter()
                .filter(|&(key, &(seed, length))| {
                    found.get(key) != Some(&Value::Pattern(Pattern { seed, offset: 0, length }))
                })
                .map(|(key, (seed, _))| (key.len(), *seed, found.contains_key(key)))
                .take(5)
                .collect();
            panic!(
                "cut {}: the drive is in none of {} states; {} pairs for {}, wrong: {wrong:?}",
                self.cuts,
                self.history.len(),
                found.len(),
                wanted.len(),
            );
        };
        self.pairs = self.history[state].clone();
        self.history = vec![self.pairs.clone()];
        let utilization = engine.utilization();
        let bytes: usize = self.pairs.iter().map(|(key, (_, length))| key.len() + *length as usize).sum();
        assert_eq!((utilization.pairs, utilization.pair_bytes), (self.pairs.len() as u64, bytes as u64));
    }

    /// One command; gives false when the power went.
    fn step(&mut self, engine: &mut Engine, clock: &mut Nanos, cut_at: Nanos) -> bool {
        let key = format!("key {}", self.random.below(400)).into_bytes();
        let mut after = self.pairs.clone();
        let (command, expected) = match self.random.below(20) {
            0..12 => {
                self.seed += 1;
                let length = match self.random.below(20) {
                    0 => self.random.below(60_000),
                    1..4 => self.random.below(9000),
                    _ => self.random.below(1500),
                } as u32;
                after.insert(key.clone(), (self.seed, length));
                let value = Value::Pattern(Pattern { seed: self.seed, offset: 0, length });
                let key = Key::new(&key).unwrap();
                (Command::Store { key, value, condition: StoreCondition::Always }, Reply::Stored)
            }
            12..18 => {
                if after.remove(&key).is_none() {
                    return true;
                }
                (Command::Delete { key: Key::new(&key).unwrap() }, Reply::Deleted)
            }
            18 => (Command::Flush, Reply::Flushed),
            _ => return true,
        };
        let is_flush = matches!(command, Command::Flush);
        match Self::run(engine, clock, command) {
            Ok(reply) => assert_eq!(reply, expected),
            Err(KvError::CapacityExceeded) => return true,
            Err(KvError::Unrecovered(why)) if why.contains("the power is gone") => {
                // In flight: old or new.
                self.history.push(after);
                return false;
            }
            Err(other) => panic!("cut {}: {other}", self.cuts),
        }
        if *clock > cut_at {
            // The host never heard of it.
            self.history.push(after);
            return false;
        }
        self.pairs = after;
        if is_flush || self.power_loss == PowerLoss::Protected {
            self.history.clear();
        }
        self.history.push(self.pairs.clone());
        true
    }
}

fn lives(power_loss: PowerLoss, cuts: u32) {
    for design in DESIGNS {
        let mut moved = 0;
        for seed in 0..3 {
            let mut drive = Mortal::new(design.name, power_loss, seed);
            for _ in 0..cuts {
                drive.life(400_000_000);
            }
            moved += drive.moved;
        }
        assert!(moved > 1000, "{}: garbage collection had pairs to move: {moved}", design.name);
    }
}

#[test]
fn a_protected_drive_comes_back_as_it_was() {
    lives(PowerLoss::Protected, 60);
}

#[test]
fn a_volatile_drive_comes_back_as_it_was_at_some_moment_since_the_last_flush() {
    lives(PowerLoss::Volatile, 60);
}
