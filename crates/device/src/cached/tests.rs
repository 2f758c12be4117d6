//! Caches of a drive that fails now and then.

use super::*;
use crate::clocked::Clocked;
use crate::records::Origin;
use crate::{Device, image_design, image_profile};
use kvssd_flash::RopeBacking;
use kvssd_ftl::Engine;
use kvssd_types::{BatchChange, StoreCondition};

const FIRST: NamespaceId = NamespaceId::FIRST;

/// Records of which some keys cannot be deleted.
struct Stuck {
    drive: Clocked,
    keys: Vec<u8>,
    tried: u32,
}

impl Records for Stuck {
    fn engine(&self) -> &Engine {
        self.drive.engine()
    }

    fn engine_mut(&mut self) -> Option<&mut Engine> {
        self.drive.engine_mut()
    }

    fn execute_as(&mut self, origin: Origin, command: Command<'_>) -> Result<Reply, KvError> {
        if let Command::Delete { key } = command
            && self.keys.contains(&key.bytes()[0])
        {
            self.tried += 1;
            return Err(KvError::Unrecovered("a page is damaged".to_owned()));
        }
        self.drive.execute_as(origin, command)
    }
}

/// A drive whose first namespace is a cache.
fn cached(text: &str) -> (Caches, Stuck) {
    let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
    let device = Device::new(&design, &profile, Box::new(RopeBacking::new(profile.geometry))).unwrap();
    let mut drive = Stuck { drive: Clocked::new(device, Nanos::ZERO), keys: Vec::new(), tried: 0 };
    let attributes: CacheAttributes = text.parse().unwrap();
    drive.drive.set_cache(FIRST, Some(attributes.clone())).unwrap();
    let engine = drive.drive.device.engine();
    let mut caches = Caches::measured(engine, engine.value_bytes_max());
    caches.is_measured = false;
    caches.set(FIRST, Some(attributes), None);
    (caches, drive)
}

fn on(caches: &mut Caches, drive: &mut Stuck, command: Command<'_>) -> Result<Reply, KvError> {
    caches.execute_as(drive, (None, FIRST), command, Nanos::ZERO)
}

fn store(caches: &mut Caches, drive: &mut Stuck, name: u8, bytes: usize) {
    let (name, value) = ([name], vec![name; bytes]);
    let (key, value) = (Key::new(&name).unwrap(), value[..].into());
    let condition = StoreCondition::Always;
    assert_eq!(on(caches, drive, Command::Store { key, value, condition }), Ok(Reply::Stored));
}

fn exists(caches: &mut Caches, drive: &mut Stuck, name: u8) -> bool {
    on(caches, drive, Command::Exist { key: Key::new(&[name]).unwrap() }).is_ok()
}

#[test]
fn a_pair_that_cannot_be_deleted_stays_known_and_leaves_when_it_can() {
    let (mut caches, mut drive) = cached("fifo budget=10000");
    (0..10).for_each(|name| store(&mut caches, &mut drive, name, 999));
    drive.keys = vec![0, 2];
    store(&mut caches, &mut drive, 10, 999);
    // It is there, and counted.
    assert!(exists(&mut caches, &mut drive, 0) && drive.tried == 1);
    assert_eq!(caches.info(FIRST).unwrap().held_bytes, 11_000);
    (11..14).for_each(|name| store(&mut caches, &mut drive, name, 999));
    let there: Vec<u8> = (0..14).filter(|name| exists(&mut caches, &mut drive, *name)).collect();
    let pairs = |drive: &Stuck| drive.drive.device.engine().utilization().pairs;
    assert_eq!((there.len() as u64, caches.info(FIRST).unwrap().held_bytes), (pairs(&drive), 1000 * pairs(&drive)));
    assert!(there.contains(&0) && there.contains(&2) && there.contains(&13), "{there:?}");
    drive.keys.clear();
    (20..35).for_each(|name| store(&mut caches, &mut drive, name, 999));
    assert_eq!((pairs(&drive), caches.info(FIRST).unwrap().held_bytes), (10, 10_000));
    // Where nobody can leave it ends all the same.
    drive.keys = (0..=255).collect();
    assert_eq!(caches.let_go(&mut drive, FIRST), Ok(false));
    assert_eq!(caches.info(FIRST).unwrap().held_bytes, 10_000);
}

/// Also behind a change of it that failed.
#[test]
fn a_pair_of_unknown_age_that_cannot_be_deleted_is_seen_by_nobody() {
    let (mut caches, mut drive) = cached("fifo budget=10000 ttl-ms=1000");
    caches.tell_time(Nanos(u64::from(u32::MAX) << 30));
    store(&mut caches, &mut drive, 0, 999);
    let engine = drive.drive.device.engine();
    let mut next_life = Caches::open(engine, engine.value_bytes_max(), false);
    drive.keys = vec![0];
    next_life.tell_time(Nanos(2_000_000_000));
    assert!(!exists(&mut next_life, &mut drive, 0) && drive.tried > 0);
    let key = Key::new(&[0]).unwrap();
    let change = BatchChange { namespace: FIRST, key, value: Some([1][..].into()) };
    assert_eq!(next_life.taken_back(&mut drive, &[change], &KvError::CapacityExceeded), Ok(()));
    assert!(!exists(&mut next_life, &mut drive, 0) && next_life.info(FIRST).unwrap().held_bytes == 1000);
}

#[test]
fn a_pair_that_is_too_old_and_cannot_be_deleted_is_seen_by_nobody() {
    let (mut caches, mut drive) = cached("lru budget=10000 ttl-ms=1000");
    caches.tell_time(Nanos(1));
    store(&mut caches, &mut drive, 0, 999);
    drive.keys = vec![0];
    caches.tell_time(Nanos(2_000_000_000));
    assert!(!exists(&mut caches, &mut drive, 0));
    let retrieve = Command::Retrieve { key: Key::new(&[0]).unwrap(), offset_bytes: 0, length_bytes: 9 };
    assert_eq!(on(&mut caches, &mut drive, retrieve), Err(KvError::KeyNotFound));
    // Who asks for another key does not wait for it.
    let tried = drive.tried;
    assert!(!exists(&mut caches, &mut drive, 1) && drive.tried == tried);
    let (name, value) = ([0], [7][..].into());
    let key = Key::new(&name).unwrap();
    let absent = Command::Store { key, value, condition: StoreCondition::IfAbsent };
    assert_eq!(on(&mut caches, &mut drive, absent), Ok(Reply::Stored));
    assert!(exists(&mut caches, &mut drive, 0) && caches.info(FIRST).unwrap().held_bytes == 2);
}

#[test]
fn a_batch_deletes_once() {
    let (mut caches, mut drive) = cached("fifo budget=10000 at-most=5000");
    [0, 1].iter().for_each(|name| store(&mut caches, &mut drive, *name, 999));
    drive.keys = (0..=255).collect();
    let change = |name: &'static [u8], bytes: Option<usize>| BatchChange {
        namespace: FIRST,
        key: Key::new(name).unwrap(),
        value: bytes.map(|bytes| vec![1; bytes][..].into()),
    };
    let changes = [change(&[0], None), change(&[1], Some(6000)), change(&[2], Some(999))];
    assert_eq!(on(&mut caches, &mut drive, Command::Batch { changes: &changes }), Ok(Reply::Batched));
    assert_eq!((drive.tried, caches.take_left()), (0, vec![[1].into()]));
}
