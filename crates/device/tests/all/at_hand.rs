//! Iterators of a drive in a file, which nobody times: pairs that are given beside others, from where they lie, are those that a command
//! reads.

use kvssd_designs::PLUS;
use kvssd_device::{CreateDrive, Drive, image_design, image_profile};
use kvssd_ftl::NamespaceAttributes;
use kvssd_types::{
    Command, IteratedPair, IteratorId, IteratorOptions, Key, KvError, NamespaceId, Nanos, Random, Reply,
    StoreCondition, Value,
};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

const IMAGE_BYTES: u64 = 64 << 20;
const KEYS: u64 = 2000;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;
type Shown = Vec<(Vec<u8>, Vec<u8>)>;

/// A drive with an ordered namespace.
fn create(path: &Path, cache_bytes: u64) -> (Drive, NamespaceId) {
    let options = CreateDrive { cache_bytes, ..CreateDrive::default() };
    let design = image_design(PLUS.name).unwrap();
    let mut drive = Drive::create(path, &image_profile(IMAGE_BYTES).unwrap(), &design, options).unwrap();
    let attributes = NamespaceAttributes { is_ordered: true, ..NamespaceAttributes::PLAIN };
    let namespace = drive.create_namespace(attributes).unwrap();
    (drive, namespace)
}

/// Stores and deletes, of values in a page, over two and over many.
fn change(drive: &mut Drive, namespace: NamespaceId, model: &mut Pairs, random: &mut Random, count: u64) {
    for _ in 0..count {
        let key = (random.below(KEYS) * 7).to_be_bytes().to_vec();
        if random.below(5) == 0 {
            let deleted = drive.execute_in(namespace, Command::Delete { key: Key::new(&key).unwrap() });
            assert_eq!(deleted.is_ok(), model.remove(&key).is_some());
            continue;
        }
        let bytes_max = [200, 5000, 5000, 20_000][random.below(4) as usize];
        let value = vec![random.below(256) as u8; random.below(bytes_max) as usize];
        let condition = StoreCondition::Always;
        let command = Command::Store { key: Key::new(&key).unwrap(), value: value[..].into(), condition };
        drive.execute_in(namespace, command).unwrap();
        model.insert(key, value);
    }
}

fn begin(drive: &mut Drive, namespace: NamespaceId, descending: bool) -> IteratorId {
    let options = IteratorOptions { descending, ..IteratorOptions::default() };
    match drive.execute_in(namespace, Command::CreateIterator { options }).unwrap() {
        Reply::IteratorCreated(iterator) => iterator,
        other => panic!("{other:?}"),
    }
}

fn pairs_of(reply: Reply) -> Shown {
    let Reply::Pairs(pairs) = reply else { panic!("{reply:?}") };
    pairs.into_iter().map(|(key, value)| (key.into(), value.unwrap().to_vec())).collect()
}

/// What the model shows from a key on.
fn shown(model: &Pairs, from: &[u8], descending: bool, count: usize) -> Shown {
    let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
    match descending {
        false => model.range(from.to_vec()..).take(count).map(owned).collect(),
        true => model.range(..=from.to_vec()).rev().take(count).map(owned).collect(),
    }
}

#[test]
fn pairs_at_hand_are_those_that_a_command_reads_whatever_was_changed_and_moved_since() {
    for cache_bytes in [0, 8 << 20] {
        let folder = TempDir::new().unwrap();
        let (mut drive, namespace) = create(&folder.path().join("drive.kv"), cache_bytes);
        let (mut model, mut random) = (Pairs::new(), Random::new(3));
        change(&mut drive, namespace, &mut model, &mut random, 12_000);
        let before = model.clone();
        let iterators = [false, true].map(|descending| (descending, begin(&mut drive, namespace, descending)));
        let moved = drive.engine().gc_counters().superblocks;
        change(&mut drive, namespace, &mut model, &mut random, 16_000);
        assert!(drive.engine().gc_counters().superblocks > moved, "records were moved");
        for (descending, iterator) in iterators {
            for _ in 0..200 {
                let from = random.below(7 * KEYS).to_be_bytes();
                let (key, pairs_max) = (Some(Key::new(&from).unwrap()), random.below(20) as u32 + 1);
                let (looked, expected) =
                    (drive.engine().pages_glanced(), shown(&before, &from, descending, 2 * pairs_max as usize));
                let seek = Command::Seek { iterator, key, pairs_max };
                let timed = drive.submit_as(None, namespace, seek.clone(), Nanos::ZERO).reply;
                assert_eq!(drive.engine().pages_glanced(), looked, "what is timed is read");
                let mut pairs = pairs_of(drive.execute_in(namespace, seek).unwrap());
                assert_eq!(pairs, pairs_of(timed.unwrap()));
                pairs.extend(pairs_of(drive.execute_in(namespace, Command::Next { iterator, pairs_max }).unwrap()));
                assert_eq!(pairs, expected, "{descending} from {from:?}");
            }
        }
        assert!(drive.engine().pages_glanced() > 1000, "{} pages at hand", drive.engine().pages_glanced());
    }
}

/// A drive that is asked beside others, where that can be, or alone, or in its own time.
struct Asked {
    drive: Drive,
    namespace: NamespaceId,
    random: Random,
    /// Commands that were answered beside others, by name.
    glanced: BTreeMap<&'static str, u64>,
}

impl Asked {
    fn ask(&mut self, command: &Command<'_>) -> Result<Reply, KvError> {
        let glance = if self.random.below(4) > 0 { self.drive.glance(self.namespace, command) } else { None };
        if glance.is_some() {
            *self.glanced.entry(command.name()).or_default() += 1;
        }
        glance.unwrap_or_else(|| match self.random.below(3) {
            0 => self.drive.submit_as(None, self.namespace, command.clone(), Nanos::ZERO).reply,
            _ => self.drive.execute_in(self.namespace, command.clone()),
        })
    }
}

/// An iterator under way, and all that it shows.
struct UnderWay {
    iterator: IteratorId,
    shown: Vec<(Vec<u8>, Vec<u8>)>,
    descending: bool,
    keys_only: bool,
    /// Where it stands in that; none before it was sent anywhere.
    at: Option<usize>,
}

impl UnderWay {
    fn begin(asked: &mut Asked, model: &Pairs) -> Self {
        let random = &mut asked.random;
        let mut ends = [random.below(7 * KEYS), random.below(7 * KEYS)];
        ends.sort_unstable();
        let [first, end] = ends.map(u64::to_be_bytes);
        // Some have the keys with the first's prefix alone.
        let prefix = &first[..random.below(2) as usize * 7];
        let [descending, keys_only] = [2, 4].map(|one_in| random.below(one_in) == 0);
        let options = IteratorOptions { prefix, first: &first, end: Some(&end), descending, keys_only };
        let created = asked.ask(&Command::CreateIterator { options }).unwrap();
        let Reply::IteratorCreated(iterator) = created else { panic!("{created:?}") };
        let of_range = model.range(first.to_vec()..end.to_vec()).filter(|(key, _)| key.starts_with(prefix));
        let mut shown: Vec<_> = of_range.map(|(key, value)| (key.clone(), value.clone())).collect();
        if descending {
            shown.reverse();
        }
        UnderWay { iterator, shown, descending, keys_only, at: None }
    }

    /// Where a key is, or would be.
    fn place_of(&self, sought: &[u8]) -> usize {
        self.shown.partition_point(|(key, _)| if self.descending { **key > *sought } else { **key < *sought })
    }

    /// A seek or a next, and what it gave.
    fn go_on(&mut self, asked: &mut Asked) {
        let (iterator, pairs_max) = (self.iterator, asked.random.below(12) as u32);
        let sought = asked.random.below(7 * KEYS).to_be_bytes();
        let key = (asked.random.below(2) == 0).then(|| Key::new(&sought).unwrap());
        let (command, at) = match self.at {
            Some(at) if asked.random.below(8) > 0 => (Command::Next { iterator, pairs_max }, at),
            _ => (Command::Seek { iterator, key, pairs_max }, key.map_or(0, |key| self.place_of(key.bytes()))),
        };
        let Ok(Reply::Pairs(given)) = asked.ask(&command) else { panic!("{command:?}") };
        let until = self.shown.len().min(at + pairs_max as usize);
        let is_it = |((key, value), (shown, whole)): (&IteratedPair, &(Vec<u8>, Vec<u8>))| {
            **key == **shown && value.as_ref().map(Value::to_vec) == (!self.keys_only).then(|| whole.clone())
        };
        assert!(
            given.len() == until - at && given.iter().zip(&self.shown[at..]).all(is_it),
            "{command:?} from {at} on"
        );
        self.at = Some(until);
    }
}

#[test]
fn iterators_go_on_where_they_stand_whoever_asks_and_whatever_is_changed() {
    let folder = TempDir::new().unwrap();
    let (drive, namespace) = create(&folder.path().join("drive.kv"), 1 << 20);
    let mut asked = Asked { drive, namespace, random: Random::new(5), glanced: BTreeMap::new() };
    let (mut model, mut random) = (Pairs::new(), Random::new(6));
    change(&mut asked.drive, namespace, &mut model, &mut random, 6000);
    let moved = asked.drive.engine().gc_counters().superblocks;
    let mut all: Vec<UnderWay> = Vec::new();
    for step in 0..6000 {
        match random.below(40) {
            0 if all.len() < 6 => all.push(UnderWay::begin(&mut asked, &model)),
            1 if !all.is_empty() => {
                let ended = all.swap_remove(random.below(all.len() as u64) as usize);
                let command = Command::DestroyIterator { iterator: ended.iterator };
                assert_eq!(asked.ask(&command).unwrap(), Reply::IteratorDestroyed);
            }
            // Some iterators live while nothing is changed, and some while much is.
            2..20 if step / 500 % 2 == 0 => change(&mut asked.drive, namespace, &mut model, &mut random, 16),
            _ if all.is_empty() => {}
            _ => {
                let number = random.below(all.len() as u64) as usize;
                all[number].go_on(&mut asked);
            }
        }
        assert_eq!(asked.drive.engine().iterators(), all.len());
    }
    assert!(asked.drive.engine().gc_counters().superblocks > moved, "records were moved");
    assert!(asked.glanced.len() == 4 && asked.glanced.values().all(|&times| times >= 10), "{:?}", asked.glanced);
    for ended in all {
        asked.drive.execute_in(namespace, Command::DestroyIterator { iterator: ended.iterator }).unwrap();
    }
    let dram = asked.drive.engine().dram();
    assert!(["held_records", "index_cursors"].iter().all(|part| !dram.parts().contains_key(part)), "{dram:?}");
}

/// All pairs of an iterator, and how many pages were looked at for them.
fn all_of(drive: &mut Drive, namespace: NamespaceId, iterator: IteratorId) -> (Shown, u64) {
    let (mut shown, pages_before) = (Vec::new(), drive.engine().pages_glanced());
    loop {
        let next = match shown.is_empty() {
            true => Command::Seek { iterator, key: None, pairs_max: 50 },
            false => Command::Next { iterator, pairs_max: 50 },
        };
        let glance = drive.glance(namespace, &next);
        match pairs_of(glance.unwrap_or_else(|| drive.execute_in(namespace, next)).unwrap()) {
            pairs if pairs.is_empty() => break,
            pairs => shown.extend(pairs),
        }
    }
    drive.execute_in(namespace, Command::DestroyIterator { iterator }).unwrap();
    (shown, drive.engine().pages_glanced() - pages_before)
}

/// Neighbours among the keys lie anywhere: who has seen them once sees them again without their pages, in either direction, also when they
/// were moved meanwhile; what was changed as it is now, and by an iterator from before as it was. Each version of a pair is as long as the
/// others, and has bytes of its own.
#[test]
fn small_values_that_were_seen_are_at_hand_in_the_order_of_their_keys() {
    for cache_bytes in [8 << 20, 1 << 18, 0] {
        let folder = TempDir::new().unwrap();
        let (mut drive, namespace) = create(&folder.path().join("drive.kv"), cache_bytes);
        let (mut model, mut random, mut version) = (Pairs::new(), Random::new(11), 0u64);
        let mut change = |drive: &mut Drive, model: &mut Pairs, count: u64| {
            for _ in 0..count {
                version += 1;
                let number = random.below(10_000);
                let (key, value) = ((number * 7).to_be_bytes(), version.to_le_bytes().repeat(1 + number as usize % 60));
                let (key, condition) = (Key::new(&key).unwrap(), StoreCondition::Always);
                if version % 16 == 0 {
                    let deleted = drive.execute_in(namespace, Command::Delete { key });
                    assert_eq!(deleted.is_ok(), model.remove(key.bytes()).is_some());
                } else {
                    drive.execute_in(namespace, Command::Store { key, value: value[..].into(), condition }).unwrap();
                    model.insert(key.bytes().to_vec(), value);
                }
            }
        };
        for round in 0..12 {
            change(&mut drive, &mut model, 20_000);
            let pages = [false, false, true].map(|descending| {
                let iterator = begin(&mut drive, namespace, descending);
                let (mut shown, pages) = all_of(&mut drive, namespace, iterator);
                if descending {
                    shown.reverse();
                }
                assert!(shown.into_iter().eq(model.clone()), "round {round}, cache of {cache_bytes}");
                pages
            });
            // Those whose keys the MemTable has lie anywhere still.
            let is_at_hand = pages[0] > pages[1] + 2000 && pages[1] >= pages[2];
            assert!(is_at_hand || cache_bytes < 1 << 20, "{pages:?}");
            let (old, before) = (begin(&mut drive, namespace, false), model.clone());
            change(&mut drive, &mut model, 400 + 800 * (round % 2));
            let new = begin(&mut drive, namespace, false);
            for (iterator, model) in [(new, model.clone()), (old, before)] {
                let (shown, _) = all_of(&mut drive, namespace, iterator);
                assert!(shown.into_iter().eq(model), "round {round}, cache of {cache_bytes}");
            }
        }
        assert!(drive.engine().gc_counters().superblocks > 0, "records were moved");
    }
}

/// Each pair of one iterator comes once, in order for each, whoever asks.
#[test]
fn threads_share_an_iterator() {
    let folder = TempDir::new().unwrap();
    let (mut drive, namespace) = create(&folder.path().join("drive.kv"), 8 << 20);
    let (mut model, mut random) = (Pairs::new(), Random::new(7));
    change(&mut drive, namespace, &mut model, &mut random, 4000);
    let iterator = begin(&mut drive, namespace, false);
    drive.execute_in(namespace, Command::Seek { iterator, key: None, pairs_max: 0 }).unwrap();
    let drive = RwLock::new(drive);
    let take_all = || {
        let (mut taken, next) = (Vec::new(), Command::Next { iterator, pairs_max: 3 });
        loop {
            let glance = drive.read().unwrap().glance(namespace, &next);
            let reply = glance.unwrap_or_else(|| drive.write().unwrap().execute_in(namespace, next.clone()));
            let pairs = pairs_of(reply.unwrap());
            if pairs.is_empty() {
                return taken;
            }
            taken.extend(pairs);
        }
    };
    let mut taken: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(take_all)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    taken.sort_unstable();
    assert!(taken.into_iter().eq(model), "each pair once");
}

/// Threads that create, follow and end iterators beside each other, while one thread changes the drive now and then.
#[test]
fn threads_go_along_iterators_side_by_side() {
    let folder = TempDir::new().unwrap();
    let (mut drive, namespace) = create(&folder.path().join("drive.kv"), 1 << 20);
    let (mut model, mut random) = (Pairs::new(), Random::new(6));
    change(&mut drive, namespace, &mut model, &mut random, 4000);
    let shared = RwLock::new((drive, model));
    let (began, glanced) = (AtomicU64::new(0), AtomicU64::new(0));
    let ask = |command: &Command<'_>| {
        if let Some(reply) = shared.read().unwrap().0.glance(namespace, command) {
            glanced.fetch_add(1, Ordering::Relaxed);
            return reply;
        }
        shared.write().unwrap().0.execute_in(namespace, command.clone())
    };
    let scan = |seed: u64| {
        let mut random = Random::new(seed);
        for _ in 0..60 {
            let from = random.below(7 * KEYS).to_be_bytes();
            let options = IteratorOptions { first: &from, ..IteratorOptions::default() };
            // What it shows is what there was at that moment. Who meets another thread, which may have lost its core, tries again.
            let create = || {
                let both = shared.read().unwrap();
                let created = both.0.glance(namespace, &Command::CreateIterator { options });
                created.map(|created| (created, shown(&both.1, &from, false, 12)))
            };
            let created = (0..1000).find_map(|_| {
                create().or_else(|| {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    None
                })
            });
            let Some((Ok(Reply::IteratorCreated(iterator)), shown)) = created else { continue };
            began.fetch_add(1, Ordering::Relaxed);
            let mut given = pairs_of(ask(&Command::Seek { iterator, key: None, pairs_max: 3 }).unwrap());
            (0..3).for_each(|_| given.extend(pairs_of(ask(&Command::Next { iterator, pairs_max: 3 }).unwrap())));
            assert!(given == shown, "{} pairs of {}", given.len(), shown.len());
            assert_eq!(ask(&Command::DestroyIterator { iterator }), Ok(Reply::IteratorDestroyed));
        }
    };
    std::thread::scope(|scope| {
        (1..=4).for_each(|seed| drop(scope.spawn(move || scan(seed))));
        scope.spawn(|| {
            for _ in 0..40 {
                let (drive, model) = &mut *shared.write().unwrap();
                change(drive, namespace, model, &mut random, 20);
            }
        });
    });
    let (began, glanced) = (began.into_inner(), glanced.into_inner());
    assert_eq!(began, 240, "all begin side by side");
    // Values of many pages are left to commands. So is what meets another thread, which on a busy machine is not to be foreseen.
    assert!(glanced > began, "{glanced} of {} commands on them go side by side", 5 * began);
    assert_eq!(shared.into_inner().unwrap().0.engine().iterators(), 0);
}

/// The command tells, as it does of what it reads itself.
#[test]
fn what_cannot_be_read_is_told_and_nothing_wrong_is_shown() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("drive.kv");
    let (mut drive, namespace) = create(&path, 0);
    let (mut model, mut random) = (Pairs::new(), Random::new(4));
    change(&mut drive, namespace, &mut model, &mut random, 5000);
    let iterator = begin(&mut drive, namespace, false);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let (begin_bytes, end_bytes) = (IMAGE_BYTES / 4, file.metadata().unwrap().len());
    for at in (begin_bytes..end_bytes).step_by(40 * 4608) {
        file.write_all_at(&[0xa5; 64], at).unwrap();
    }
    let (mut told, mut right) = (0, 0);
    for _ in 0..400 {
        let from = random.below(7 * KEYS).to_be_bytes();
        let seek = Command::Seek { iterator, key: Some(Key::new(&from).unwrap()), pairs_max: 4 };
        match drive.execute_in(namespace, seek) {
            Ok(reply) => {
                let pairs = pairs_of(reply);
                assert_eq!(pairs, shown(&model, &from, false, pairs.len()));
                right += 1;
            }
            Err(KvError::Unrecovered(_)) => {
                told += 1;
                // It does not stand where it stood before.
                let next = Command::Next { iterator, pairs_max: 4 };
                let glance = drive.glance(namespace, &next);
                match glance.unwrap_or_else(|| drive.execute_in(namespace, next)) {
                    Ok(reply) => assert!(pairs_of(reply).iter().all(|(key, _)| **key >= from[..])),
                    Err(error) => assert!(matches!(error, KvError::Unrecovered(_)), "{error}"),
                }
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(told > 20 && right > 20, "{told} told, {right} right");
}
