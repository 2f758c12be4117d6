//! Caches from life to life: what is there, in which order it leaves, and what is too old.

use super::*;
use kvssd_flash::{OpenOptions, SimulatedDisk, Strike};
use kvssd_types::{BatchChange, ClientId, RequestId};

const SECOND: u64 = 1_000_000_000;
const SYNCED: OpenOptions = OpenOptions { sync: true, read_only: false, cache_bytes: 0 };

/// The pairs come back, and leave in the order in which they were stored; the attributes are those of before.
#[test]
fn a_cache_comes_back_with_its_pairs_in_the_order_in_which_they_were_stored() {
    let folder = tempfile::tempdir().unwrap();
    for (design, in_order) in designs().flat_map(|design| [(design, true), (design, false)]) {
        let path = folder.path().join(format!("{design} {in_order}.kv"));
        let mut drive = create(&path, design, None);
        let text = "lru budget=100000 asked=1 ttl-ms=3600000";
        let id = create_cache(&mut drive, "a", text);
        // Not the order of the keys, nor of any hash.
        let order: Vec<u8> = (0..9).map(|number| (number * 5 + 3) % 9).collect();
        order.iter().for_each(|name| drop(store(&mut drive, id, &[*name], &[*name; 10_000]).unwrap()));
        retrieve(&mut drive, id, &order[..1]).unwrap();
        drive = reopened(drive, &path, in_order);
        assert_eq!(drive.namespaces()[1].attributes.cache, Some(cache(text)));
        assert_eq!(drive.cache(id).unwrap().held_bytes, 0, "nobody has asked yet");
        for (round, gone) in order.iter().enumerate() {
            store(&mut drive, id, &[100 + round as u8], &[0; 10_000]).unwrap();
            let left = drive.cache(id).unwrap().held_bytes / 10_001;
            assert_eq!(left, 9, "{design}");
            assert!(!keys(&mut drive, id).contains(&vec![*gone]), "{design} {gone}");
        }
        drive.close().unwrap();
        assert_eq!(Drive::check(&path).unwrap().findings, []);
    }
}

/// A page that cannot be read costs the pairs whose records lie in it, and nothing else.
#[test]
fn a_damaged_page_costs_a_cache_the_pairs_in_it() {
    const PAIRS: usize = 300;
    let folder = tempfile::tempdir().unwrap();
    let kinds = [("lru budget=10000000", None), ("fifo budget=10000000 ttl-ms=86400000", Some(1 << 20))];
    for (design, (text, value_bytes_max)) in designs().zip(kinds.into_iter().cycle()) {
        let path = folder.path().join(format!("{design} damaged.kv"));
        let mut drive = create(&path, design, value_bytes_max);
        drive.tell_time(Nanos(1000 * SECOND));
        let id = create_cache(&mut drive, "a", text);
        let name = |pair: usize| format!("pair {pair:03}").into_bytes();
        let value = |pair: usize| name(pair).repeat(50);
        (0..PAIRS).for_each(|pair| drop(store(&mut drive, id, &name(pair), &value(pair)).unwrap()));
        drive.close().unwrap();
        let mut image = std::fs::read(&path).unwrap();
        let lost = value(100);
        // Behind what was staged of it.
        let at = image.windows(64).rposition(|bytes| *bytes == lost[..64]).unwrap();
        image[at] ^= 1;
        std::fs::write(&path, image).unwrap();
        let mut drive = Drive::open(&path, OpenOptions::default()).unwrap();
        drive.tell_time(Nanos(1001 * SECOND));
        let asked = |drive: &mut Drive, pair: usize| {
            let name = name(pair);
            let command = Command::Retrieve { key: key(&name), offset_bytes: 0, length_bytes: u32::MAX };
            match drive.execute_in(id, command) {
                Ok(Reply::Retrieved { value: found, .. }) => assert_eq!(found.to_vec(), value(pair)),
                Err(KvError::Unrecovered(_)) => return 1,
                other => panic!("{design}, pair {pair}: {other:?}"),
            }
            0
        };
        let damaged: usize = (0..PAIRS).map(|pair| asked(&mut drive, pair)).sum();
        assert!((1..50).contains(&damaged) && asked(&mut drive, 100) == 1, "{design}: {damaged} are damaged");
        let held_bytes = drive.cache(id).unwrap().held_bytes as usize;
        assert!((PAIRS - damaged) * 408 <= held_bytes && held_bytes <= PAIRS * 408, "{design}: {held_bytes}");
        store(&mut drive, id, b"new", b"1").unwrap();
        drive = reopened(drive, &path, true);
        drive.tell_time(Nanos(1002 * SECOND));
        drive.execute_in(id, Command::Delete { key: key(b"new") }).unwrap();
        let again: usize = (0..PAIRS).map(|pair| asked(&mut drive, pair)).sum();
        assert_eq!(again, damaged, "{design}");
    }
}

#[test]
fn what_is_too_old_is_gone_also_when_the_drive_was_closed_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    for in_order in [true, false] {
        let path = folder.path().join(format!("{in_order}.kv"));
        let mut drive = create(&path, "plus", None);
        let id = create_cache(&mut drive, "a", "lru budget=100000 ttl-ms=60000");
        drive.tell_time(Nanos(1000 * SECOND));
        store(&mut drive, id, b"old", b"1").unwrap();
        drive.tell_time(Nanos(1030 * SECOND));
        store(&mut drive, id, b"new", b"2").unwrap();
        drive.tell_time(Nanos(1059 * SECOND));
        assert_eq!(retrieve(&mut drive, id, b"old").as_deref(), Some(&b"1"[..]), "a hit makes it no younger");
        drive = reopened(drive, &path, in_order);
        drive.tell_time(Nanos(1061 * SECOND));
        let exist = |drive: &mut Drive, name| drive.execute_in(id, Command::Exist { key: key(name) });
        assert_eq!(exist(&mut drive, b"old"), Err(KvError::KeyNotFound));
        assert_eq!(exist(&mut drive, b"new"), Ok(Reply::Exists));
        assert_eq!(keys(&mut drive, id), [b"new"], "it was deleted, and not only hidden");
        // A clock that goes back makes nothing younger, and stores go on.
        drive.tell_time(Nanos(10 * SECOND));
        store(&mut drive, id, b"back", b"3").unwrap();
        assert_eq!(retrieve(&mut drive, id, b"old"), None);
        drive = reopened(drive, &path, in_order);
        drive.tell_time(Nanos(1095 * SECOND));
        let absent = StoreCondition::IfAbsent;
        assert_eq!(retrieve(&mut drive, id, b"back").as_deref(), Some(&b"3"[..]));
        let again = Command::Store { key: key(b"new"), value: Value::from(&b"4"[..]), condition: absent };
        assert_eq!(drive.execute_in(id, again), Ok(Reply::Stored), "what is too old is not there");
        // A longer time holds for what is there, too; a shorter one as well.
        drive.set_cache(id, Some(cache("fifo budget=100000 ttl-ms=1000"))).unwrap();
        drive.tell_time(Nanos(1097 * SECOND));
        assert_eq!(keys(&mut drive, id), Vec::<Vec<u8>>::new());
    }
}

/// The clock is far ahead for a while, or begins in 1970: a time to live is one all the same.
#[test]
fn a_clock_that_was_far_ahead_keeps_nothing_from_growing_old() {
    let folder = tempfile::tempdir().unwrap();
    let century = 100 * 365 * 24 * 3600 * SECOND;
    for (life, stays_open) in [(1, true), (2, false), (3, true)] {
        let path = folder.path().join(format!("{life}.kv"));
        let mut drive = create(&path, "plus", None);
        let id = create_cache(&mut drive, "a", "fifo budget=100000 ttl-ms=60000");
        let begin = 50 * 365 * 24 * 3600 * SECOND;
        drive.tell_time(Nanos(begin + if life == 3 { 0 } else { century }));
        store(&mut drive, id, b"ahead", b"1").unwrap();
        if !stays_open {
            drive = reopened(drive, &path, true);
        }
        // Behind a reboot without a clock, until one is asked.
        let back = if life == 3 { 0 } else { begin };
        drive.tell_time(Nanos(back));
        store(&mut drive, id, b"young", b"2").unwrap();
        drive.tell_time(Nanos(back + 59 * SECOND));
        assert!(retrieve(&mut drive, id, b"young").is_some(), "life {life}");
        drive.tell_time(Nanos(back + 61 * SECOND));
        assert_eq!(keys(&mut drive, id), Vec::<Vec<u8>>::new(), "life {life}");
        store(&mut drive, id, b"new", b"3").unwrap();
        if life == 3 {
            drive.tell_time(Nanos(begin + 90 * SECOND));
            assert!(retrieve(&mut drive, id, b"new").is_some());
        }
        drive = reopened(drive, &path, false);
        drive.tell_time(Nanos(back + 100 * SECOND));
        store(&mut drive, id, b"newest", b"4").unwrap();
        drive.tell_time(Nanos(back + 165 * SECOND));
        assert_eq!(keys(&mut drive, id), Vec::<Vec<u8>>::new(), "life {life}");
    }
}

/// A clock was ahead, and went back while the drive was closed: no pair gets more time than it has, however often the cache is used. What is
/// stored from then on has its whole time, over all lives, in each cache; without a time to live nobody leaves for it, and the order stays.
#[test]
fn a_clock_that_was_ahead_in_an_earlier_life_keeps_nothing_from_growing_old() {
    let folder = tempfile::tempdir().unwrap();
    for (ahead, in_order) in [5000, 3_000_000_000].into_iter().flat_map(|ahead| [(ahead, true), (ahead, false)]) {
        let path = folder.path().join(format!("{ahead} {in_order}.kv"));
        let mut drive = create(&path, "plus", None);
        let mortal = create_cache(&mut drive, "a", "fifo budget=100000 ttl-ms=3600000");
        let lasting = create_cache(&mut drive, "b", "fifo budget=20");
        let begin = 1_700_000_000 * SECOND;
        drive.tell_time(Nanos(begin + ahead * SECOND));
        store(&mut drive, mortal, b"ahead", b"1").unwrap();
        store(&mut drive, lasting, b"ahead", b"1").unwrap();
        for (second, there) in [(0, &b"young"[..]), (3000, b"young"), (3700, b""), (7500, b""), (20_000, b"")] {
            drive = reopened(drive, &path, in_order);
            drive.tell_time(Nanos(begin + second * SECOND));
            assert_eq!(retrieve(&mut drive, mortal, b"ahead"), None, "{ahead} s ahead, {second}");
            if second == 0 {
                store(&mut drive, mortal, b"young", b"2").unwrap();
                store(&mut drive, lasting, b"young", b"2").unwrap();
            }
            assert_eq!(keys(&mut drive, mortal).concat(), there, "{ahead} s ahead, {second}");
            assert_eq!(keys(&mut drive, lasting), [&b"ahead"[..], b"young"], "{ahead} s ahead, {second}");
        }
        store(&mut drive, lasting, b"third", &[3; 8]).unwrap();
        assert_eq!(keys(&mut drive, lasting), [&b"third"[..], b"young"], "the first one leaves");
        // An hour is as long in a cache that gets one later, by a clock that is only corrected.
        store(&mut drive, mortal, b"late", b"3").unwrap();
        drive = reopened(drive, &path, in_order);
        drive.tell_time(Nanos(begin + 20_000 * SECOND - SECOND / 2));
        assert_eq!(keys(&mut drive, mortal), [b"late"]);
        drive.set_cache(lasting, Some(cache("fifo budget=20 ttl-ms=3600000"))).unwrap();
        // Behind a stamp that time has not come to, nobody knows how old they are.
        let there = if ahead < 20_000 { &b"third"[..] } else { b"" };
        assert_eq!(keys(&mut drive, lasting).concat(), there, "{ahead} s ahead");
    }
}

/// The clock went back while the drive was closed: who was stored behind that shows it, and then nobody's age is known.
#[test]
fn nobody_gets_younger_by_a_clock_that_went_back_while_the_drive_was_closed() {
    let folder = tempfile::tempdir().unwrap();
    for lasts in [false, true] {
        let path = folder.path().join(format!("{lasts}.kv"));
        let mut drive = create(&path, "plus", None);
        let time_to_live = if lasts { "" } else { " ttl-ms=3600000" };
        let id = create_cache(&mut drive, "a", &format!("lru budget=100000{time_to_live}"));
        let minutes = |minutes: u64| Nanos((1_700_000_000 + 60 * minutes) * SECOND);
        drive.tell_time(minutes(0));
        store(&mut drive, id, b"first", b"1").unwrap();
        drive.tell_time(minutes(50));
        store(&mut drive, id, b"second", b"2").unwrap();
        for minute in [10, 25, 55] {
            drive = reopened(drive, &path, true);
            drive.tell_time(minutes(minute));
            let there: &[&[u8]] = if lasts { &[b"first", b"second"] } else { &[] };
            assert_eq!(keys(&mut drive, id), there, "{minute}");
        }
        store(&mut drive, id, b"third", b"3").unwrap();
        drive = reopened(drive, &path, true);
        drive.tell_time(minutes(100));
        assert!(retrieve(&mut drive, id, b"third").is_some());
    }
}

/// Killed at every call of the disk: who left may be gone, who comes may be there or not, and all others are.
#[test]
fn a_cut_in_the_middle_of_an_eviction_loses_nobody_else() {
    for in_segments in [false, true] {
        let mut cuts = 0;
        for strike in 1.. {
            let disk = SimulatedDisk::new(strike);
            let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
            let value_bytes_max = in_segments.then_some(8 << 20);
            let options = CreateDrive { sync: true, value_bytes_max, ..CreateDrive::default() };
            let path = Path::new("drive.kv");
            let mut drive = Drive::create_in(&disk.files(), path, &profile, &design, options).unwrap();
            let unit = if in_segments { 300_000 } else { 3000 };
            let id = create_cache(&mut drive, "a", &format!("fifo budget={}", 10 * unit));
            (0..9u8).for_each(|name| drop(store(&mut drive, id, &[name], &vec![name; unit - 1]).unwrap()));
            disk.strike(disk.calls() + strike, Strike::KillWithin);
            // Three leave for it.
            let stored = store(&mut drive, id, b"come", &vec![7; 4 * unit - 4]);
            let is_done = stored.is_ok();
            drop(drive);
            disk.kill();
            let mut drive = Drive::open_in(&disk.files(), path, SYNCED).unwrap();
            let come = retrieve(&mut drive, id, b"come");
            assert!(come.is_none() || come.as_deref() == Some(&vec![7; 4 * unit - 4][..]));
            assert!(!is_done || come.is_some(), "what was answered is there");
            (3..9u8).for_each(|name| assert_eq!(retrieve(&mut drive, id, &[name]).unwrap(), vec![name; unit - 1]));
            store(&mut drive, id, b"next", &vec![8; 4 * unit - 4]).unwrap();
            let held = drive.cache(id).unwrap().held_bytes;
            assert!(held <= 10 * unit as u64, "{held}");
            drive.close().unwrap();
            assert_eq!(Drive::check_in(&disk.files(), path).unwrap().findings, []);
            if is_done {
                break;
            }
            cuts += 1;
        }
        assert!(cuts >= 4, "{cuts} cuts, and three left");
    }
}

/// A store whose answer was lost comes again: nobody leaves twice, and nothing that came behind it is written over.
#[test]
fn a_store_that_let_others_go_is_made_once_also_when_it_was_kept_out() {
    let folder = tempfile::tempdir().unwrap();
    let client = ClientId([1; 32]);
    let request = |serial| Some(RequestId { client, serial });
    for (large, in_order) in [(None, true), (None, false), (Some(4 << 20), true), (Some(4 << 20), false)] {
        let path = folder.path().join(format!("{large:?} {in_order}.kv"));
        let mut drive = create(&path, "plus", large);
        let id = create_cache(&mut drive, "a", "fifo budget=100000 at-most=30000");
        drive.open_client(client).unwrap();
        (0..9u8).for_each(|name| drop(store(&mut drive, id, &[name], &[name; 10_000]).unwrap()));
        let put = |name, bytes: &[u8]| Command::Store {
            key: key(name),
            value: bytes.into(),
            condition: StoreCondition::Always,
        };
        let fits = put(b"fits", &[1; 25_000]);
        let wide = put(&[8], &[1; 50_000]);
        assert_eq!(drive.execute_as(request(1), id, fits.clone()), Ok(Reply::Stored));
        assert_eq!(drive.execute_as(request(2), id, wide.clone()), Ok(Reply::Stored));
        assert_eq!(drive.execute_as(request(3), id, put(b"wide too", &[1; 50_000])), Ok(Reply::Stored));
        let there = keys(&mut drive, id);
        assert_eq!(there.len(), 7, "{there:?}");
        store(&mut drive, id, b"fits", b"by another host").unwrap();
        store(&mut drive, id, &[8], b"by another host").unwrap();
        drive = reopened(drive, &path, in_order);
        for (serial, command) in [(1, &fits), (2, &wide), (3, &wide)] {
            assert_eq!(drive.execute_as(request(serial), id, command.clone()), Ok(Reply::Stored));
        }
        assert_eq!(retrieve(&mut drive, id, b"fits").as_deref(), Some(&b"by another host"[..]));
        assert_eq!(retrieve(&mut drive, id, &[8]).as_deref(), Some(&b"by another host"[..]));
        let changes = [BatchChange { namespace: id, key: key(b"batch"), value: Some(Value::from(&[5; 20_000][..])) }];
        let batch = Command::Batch { changes: &changes };
        assert_eq!(drive.execute_as(request(4), id, batch.clone()), Ok(Reply::Batched));
        drive.execute_in(id, Command::Delete { key: key(b"batch") }).unwrap();
        drive = reopened(drive, &path, in_order);
        assert_eq!(drive.execute_as(request(4), id, batch), Ok(Reply::Batched));
        assert_eq!(retrieve(&mut drive, id, b"batch"), None);
    }
}

/// What an interrupted command may have changed: the key that came, and those that were to leave for it.
fn may_change(before: &[Vec<u8>], after: &KeyedCache, name: &[u8]) -> Vec<Vec<u8>> {
    let left = before.iter().filter(|known| !after.contains(known)).cloned();
    left.chain([name.to_vec()]).collect()
}

/// Lives that end anywhere: whoever the policy alone has is there in the next, except for what was under way, and nobody else is.
#[test]
fn a_cache_of_many_lives_has_in_each_whom_the_policy_alone_has() {
    let attributes = cache("fifo budget=60000");
    let (mut struck, mut evicted) = (0, 0);
    for seed in 0..6 {
        let disk = SimulatedDisk::new(seed);
        let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
        let value_bytes_max = (seed % 2 == 1).then_some(8 << 20);
        let options = CreateDrive { sync: true, value_bytes_max, ..CreateDrive::default() };
        let path = Path::new("drive.kv");
        let mut drive = Drive::create_in(&disk.files(), path, &profile, &design, options).unwrap();
        let id = create_cache(&mut drive, "a", "fifo budget=60000");
        let mut alone = KeyedCache::within(&attributes.plan, u64::MAX);
        let mut values: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut random = Random::new(seed);
        for life in 0..12u64 {
            disk.strike(disk.calls() + 1 + random.below(120), Strike::KillWithin);
            let mut open = Vec::new();
            for round in 0..200u64 {
                let name = format!("{}", random.below(40)).into_bytes();
                let value = value_of(life * 1000 + round, random.below(6000) as usize);
                let before: Vec<Vec<u8>> = values.keys().filter(|name| alone.contains(name)).cloned().collect();
                evicted += alone.insert(&name, (name.len() + value.len()) as u64, Nanos::MAX).len();
                if store(&mut drive, id, &name, &value).is_err() {
                    open = may_change(&before, &alone, &name);
                    break;
                }
                values.insert(name, value);
            }
            struck += u64::from(!open.is_empty());
            drop(drive);
            if life % 2 == 0 {
                disk.kill();
            } else {
                disk.lose_power();
            };
            drive = Drive::open_in(&disk.files(), path, SYNCED).unwrap();
            for number in 0..40 {
                let name = format!("{number}").into_bytes();
                let found = retrieve(&mut drive, id, &name);
                if open.contains(&name) {
                    // What is there now is what the next life begins with.
                    alone.remove(&name);
                    drop(drive.execute_in(id, Command::Delete { key: key(&name) }));
                    continue;
                }
                assert_eq!(found.is_some(), alone.contains(&name), "seed {seed}, life {life}, key {number}");
                assert!(found.is_none() || found.as_ref() == values.get(&name), "seed {seed}, life {life}");
            }
            assert_eq!(drive.cache(id).unwrap().held_bytes, alone.held_bytes());
        }
        drop(drive);
        assert_eq!(Drive::check_in(&disk.files(), path).unwrap().findings, []);
    }
    assert!(struck > 40 && evicted > 300, "{struck} lives were cut, and {evicted} left");
}
