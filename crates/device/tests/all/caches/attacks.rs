//! Whatever comes, in whatever order: nobody leaves for what is refused, and what was answered is there or has left.

use super::*;
use kvssd_flash::{OpenOptions, SimulatedDisk, Strike};
use kvssd_types::BatchChange;

/// What a cache may hold at the most of each key: the last value that was stored, unless it was deleted.
type Newest = BTreeMap<(NamespaceId, Vec<u8>), Vec<u8>>;

fn value_in(drive: &mut Drive, place: &(NamespaceId, Vec<u8>)) -> Option<Vec<u8>> {
    retrieve(drive, place.0, &place.1)
}

/// A drive that is full of others now and then: two caches of more than it holds, one of them with a quota, and plain namespaces.
#[test]
fn what_is_refused_changes_nothing_and_what_is_there_is_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let (mut refused, mut done, mut left) = (0, 0, 0);
    for (seed, design, large) in [(1, "plus", None), (2, "kaml", Some(8 << 20)), (3, "pink", None)] {
        let path = folder.path().join(format!("{seed}.kv"));
        let mut drive = create(&path, design, large);
        let wide = create_cache(&mut drive, "wide", "lru budget=1000000000");
        let bounded = NamespaceAttributes {
            name: Some("bounded".to_owned()),
            quota_bytes: Some(2_000_000),
            cache: Some(cache("s3-fifo budget=1000000000")),
            ..NamespaceAttributes::PLAIN
        };
        let bounded = drive.create_namespace(bounded.clone()).unwrap();
        let plain = NamespaceAttributes {
            name: Some("plain".to_owned()),
            quota_bytes: Some(1_000_000),
            ..NamespaceAttributes::PLAIN
        };
        let plain = drive.create_namespace(plain).unwrap();
        let ids = [wide, bounded, plain, FIRST];
        let (mut random, mut newest) = (Random::new(seed), Newest::new());
        for round in 0..900u64 {
            let place = |random: &mut Random| {
                // The first fills the drive.
                let id = ids[random.below(6).min(3) as usize];
                (id, format!("{}", random.below(if id == FIRST { 300 } else { 60 })).into_bytes())
            };
            let bytes_max = if large.is_some() && round % 5 == 0 { 3_000_000 } else { 390_000 };
            let count = if random.below(3) == 0 { 2 + random.below(4) } else { 1 };
            let mut changes: Newest = Newest::new();
            for _ in 0..count {
                let bytes = random.below(if count > 1 { 200_000 } else { bytes_max }) as usize;
                changes.insert(place(&mut random), value_of(round, bytes));
            }
            let before: Vec<_> =
                [wide, bounded].map(|id| (keys(&mut drive, id), drive.cache(id).unwrap().held_bytes)).into();
            let reply = if count > 1 {
                let change = |(place, value): (&(NamespaceId, Vec<u8>), &Vec<u8>)| -> (NamespaceId, Vec<u8>, Value) {
                    (place.0, place.1.clone(), Value::from(&value[..]))
                };
                let changes: Vec<_> = changes.iter().map(change).collect();
                let batch: Vec<BatchChange<'_>> = changes
                    .iter()
                    .map(|(namespace, name, value)| BatchChange {
                        namespace: *namespace,
                        key: key(name),
                        value: Some(value.clone()),
                    })
                    .collect();
                drive.execute(Command::Batch { changes: &batch })
            } else {
                let (place, value) = changes.first_key_value().unwrap();
                store(&mut drive, place.0, &place.1, value)
            };
            let after: Vec<_> =
                [wide, bounded].map(|id| (keys(&mut drive, id), drive.cache(id).unwrap().held_bytes)).into();
            match reply {
                Ok(_) => {
                    done += 1;
                    left += before.iter().zip(&after).filter(|(before, after)| before.0.len() > after.0.len()).count();
                    newest.extend(changes);
                }
                Err(KvError::CapacityExceeded | KvError::BatchTooLarge { .. }) => {
                    let lacks = drive.engine().lacks();
                    assert_eq!(before, after, "seed {seed}, round {round}: {reply:?}, {lacks:?}");
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
            }
            if round % 300 == 299 {
                drive.close().unwrap();
                assert_eq!(Drive::check(&path).unwrap().findings, []);
                drive = Drive::open(&path, OpenOptions::default()).unwrap();
                for (place, value) in &newest {
                    let found = value_in(&mut drive, place);
                    let may_leave = [wide, bounded].contains(&place.0);
                    assert!(found.as_ref() == Some(value) || found.is_none() && may_leave, "seed {seed}, {place:?}");
                }
            }
        }
    }
    assert!(refused > 300 && done > 600 && left > 50, "{refused} refused, {done} done, {left} let pairs go");
}

/// The power goes at any call of a batch that has others leave, and the next life has another budget.
#[test]
fn a_cut_in_a_batch_makes_all_of_it_or_nothing_and_the_next_budget_holds() {
    for (large, step) in [(None, 1), (Some(8 << 20), 2)] {
        let mut ends = [0, 0];
        for strike in (1..).step_by(step) {
            let disk = SimulatedDisk::new(strike);
            let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
            let options = CreateDrive { sync: true, value_bytes_max: large, ..CreateDrive::default() };
            let (path, synced) = (Path::new("drive.kv"), OpenOptions { sync: true, ..OpenOptions::default() });
            let mut drive = Drive::create_in(&disk.files(), path, &profile, &design, options).unwrap();
            let id = create_cache(&mut drive, "a", "fifo budget=100000");
            (0..9u8).for_each(|name| drop(store(&mut drive, id, &[name], &[name; 9_999]).unwrap()));
            store(&mut drive, FIRST, b"plain", b"old").unwrap();
            let change = |namespace, name: &'static [u8], bytes: usize| BatchChange {
                namespace,
                key: key(name),
                value: Some(Value::from(&vec![7; bytes][..])),
            };
            let changes = [change(id, b"a", 19_999), change(FIRST, b"plain", 3), change(id, &[8], 19_999)];
            disk.strike(disk.calls() + strike, Strike::KillWithin);
            let is_done = drive.execute(Command::Batch { changes: &changes }).is_ok();
            drop(drive);
            disk.lose_power();
            let mut drive = Drive::open_in(&disk.files(), path, synced).unwrap();
            let is_made = retrieve(&mut drive, FIRST, b"plain").unwrap() == [7; 3];
            assert!(is_made || !is_done, "what was answered is there");
            let new = [retrieve(&mut drive, id, b"a"), retrieve(&mut drive, id, &[8])];
            let wanted =
                [is_made.then(|| vec![7; 19_999]), Some(if is_made { vec![7; 19_999] } else { vec![8; 9_999] })];
            assert_eq!(new, wanted, "strike {strike}");
            for name in 3..8u8 {
                assert_eq!(retrieve(&mut drive, id, &[name]), Some(vec![name; 9_999]), "strike {strike}");
            }
            assert!(drive.cache(id).unwrap().held_bytes <= 100_000);
            drive.set_cache(id, Some(cache("lru budget=45000"))).unwrap();
            retrieve(&mut drive, id, b"x");
            drive.close().unwrap();
            let mut drive = Drive::open_in(&disk.files(), path, synced).unwrap();
            assert!(keys(&mut drive, id).len() <= 4 && drive.cache(id).unwrap().held_bytes <= 45_000);
            assert_eq!(retrieve(&mut drive, id, &[8]), wanted[1], "the newest are left");
            ends[usize::from(is_made)] += 1;
            if is_done {
                break;
            }
        }
        assert!(ends[0] > 0 && ends[1] > 0, "{ends:?}");
    }
}

/// Behind a mount nobody knows who is there: a drive that another cache has filled gives room all the same.
#[test]
fn caches_that_nobody_has_looked_into_yet_give_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let mut drive = create(&path, "plus", Some(8 << 20));
    let [full, other] = ["full", "other"].map(|name| create_cache(&mut drive, name, "fifo budget=1000000000"));
    (0..300u64).for_each(|number| drop(store(&mut drive, full, &number.to_le_bytes(), &[1; 300_000]).unwrap()));
    drop(drive);
    let mut drive = Drive::open(&path, OpenOptions::default()).unwrap();
    let bytes = 3_000_000;
    assert_eq!(store(&mut drive, other, b"first", &value_of(1, bytes)), Ok(Reply::Stored));
    assert_eq!(retrieve(&mut drive, other, b"first"), Some(value_of(1, bytes)));
    let [gave, took] = [full, other].map(|id| drive.cache(id).unwrap());
    assert!(gave.counts.evicted > 0 && took.counts.evicted == 0, "{gave:?} {took:?}");
}
