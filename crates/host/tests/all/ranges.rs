//! Ranges: what was there when they began, whatever happens meanwhile.

use crate::designs;
use kvssd_host::{Error, IteratorOptions, NamespaceAttributes, Options, Pair, Store};
use std::collections::BTreeMap;
use std::ops::Bound;

/// What a range begins with, from where, and up to where.
type Window = (&'static [u8], &'static [u8], Option<&'static [u8]>);
type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

const LARGE: u32 = 8 << 20;

fn ordered(name: &str) -> NamespaceAttributes {
    NamespaceAttributes { name: Some(name.to_owned()), is_ordered: true, ..NamespaceAttributes::PLAIN }
}

fn open(folder: &tempfile::TempDir, design: &str, create_bytes: u64) -> Store {
    let options =
        Options { create_bytes, design: design.to_owned(), value_bytes_max: Some(LARGE), ..Options::default() };
    Store::open(folder.path().join("drive.kv"), options).unwrap()
}

/// Values of all sizes, some of several records.
fn value(number: u32) -> Vec<u8> {
    let length = match number % 97 {
        0 => 0,
        1 => 3 << 20,
        2 => 40_000,
        small => small as usize,
    };
    vec![number as u8; length]
}

fn key(number: u32) -> Vec<u8> {
    format!("{:03}", number % 700).into_bytes()
}

fn shown(range: impl Iterator<Item = Result<Pair, Error>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    range.map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

#[test]
fn a_range_shows_what_was_there_when_it_began() {
    let mut ordered_designs = 0;
    for design in designs() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder, design, 256 << 20);
        // One has pages that an ordered index does not take.
        let Ok(tree) = store.create_namespace(ordered("tree")) else { continue };
        ordered_designs += 1;
        let mut model = Pairs::new();
        let change = |model: &mut Pairs, number: u32| match number % 3 {
            0 => {
                tree.delete(&key(number)).unwrap();
                model.remove(&key(number));
            }
            _ => {
                tree.store(&key(number), &value(number)).unwrap();
                model.insert(key(number), value(number));
            }
        };
        (0..1500).for_each(|number| change(&mut model, number * 7));
        let windows: [Window; 4] =
            [(b"", b"", None), (b"1", b"", None), (b"", b"123", Some(b"456")), (b"2", b"25", Some(b"3"))];
        for (round, (prefix, first, end)) in (1..).zip(windows) {
            let is_shown = |key: &[u8]| key.starts_with(prefix) && *key >= *first && end.is_none_or(|end| *key < *end);
            let all = model.range::<[u8], _>((Bound::Unbounded, Bound::Unbounded)).filter(|(key, _)| is_shown(key));
            let mut wanted: Vec<_> = all.map(|(key, value)| (key.clone(), value.clone())).collect();
            let options = IteratorOptions { prefix, first, end, ..IteratorOptions::default() };
            let mut up = tree.range(&options).unwrap();
            let down = tree.range(&IteratorOptions { descending: true, ..options }).unwrap();
            let keys = tree.range(&IteratorOptions { keys_only: true, ..options }).unwrap();
            let begun = shown(up.by_ref().take(40));
            (0..600).for_each(|number| change(&mut model, number * 11 + round));
            store.flush().unwrap();
            assert_eq!(begun.into_iter().chain(shown(up)).collect::<Vec<_>>(), wanted, "{design}");
            assert!(shown(keys).into_iter().map(|(key, _)| key).eq(wanted.iter().map(|(key, _)| key.clone())));
            wanted.reverse();
            assert_eq!(shown(down), wanted, "{design}");
            let now: Pairs = shown(tree.range(&IteratorOptions::default()).unwrap()).into_iter().collect();
            assert!(now == model, "{design}: and the next one what is there now");
        }
        store.close().unwrap();
        let store = Store::open(folder.path().join("drive.kv"), Options { read_only: true, ..Options::default() });
        let store = store.unwrap();
        let range = store.namespace("tree").unwrap().range(&IteratorOptions::default()).unwrap();
        assert!(shown(range).into_iter().collect::<Pairs>() == model, "{design}: in another life");
    }
    assert!(ordered_designs >= 5, "{ordered_designs}");
}

#[test]
fn a_range_of_a_namespace_that_is_gone_shows_nothing_of_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    drop(open(&folder, "plus", 64 << 20));
    let store = Store::open(&path, Options::default()).unwrap();
    let mut given_again = 0;
    for round in 0..6u8 {
        let tree = store.create_namespace(ordered("tree")).unwrap();
        (0..100u8).for_each(|number| tree.store(&[number], &[round]).unwrap());
        let mut old = tree.range(&IteratorOptions::default()).unwrap();
        assert_eq!(old.next().unwrap().unwrap().1, [round]);
        store.delete_namespace("tree").unwrap();
        // So many changes that a checkpoint is written, behind which a number may be given again.
        (0..20_000u32).for_each(|number| store.store(&(number % 500).to_be_bytes(), &[round; 500]).unwrap());
        let next = store.create_namespace(ordered("tree")).unwrap();
        given_again += usize::from(next.id() == tree.id());
        (0..100u8).for_each(|number| next.store(&[number], b"next").unwrap());
        let own = next.range(&IteratorOptions::default()).unwrap();
        let left: Vec<_> = old.collect();
        assert!(left.iter().flatten().all(|(_, value)| *value == [round]), "what it had read already at most");
        assert!(left.last().unwrap().is_err(), "{left:?}");
        assert_eq!(shown(own).len(), 100);
        store.delete_namespace("tree").unwrap();
    }
    assert!(given_again > 0, "no number was given again: this test shows nothing");
}

#[test]
fn stores_go_on_where_a_range_keeps_too_much() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder, "plus", 64 << 20);
    let tree = store.create_namespace(ordered("tree")).unwrap();
    let pairs = store.stats().unwrap().capacity_bytes * 2 / 3 / 10_000;
    for number in 0..pairs {
        tree.store(&number.to_be_bytes(), &[1; 10_000]).unwrap();
    }
    let mut range = tree.range(&IteratorOptions::default()).unwrap();
    let first = range.next().unwrap().unwrap();
    for number in 0..pairs * 3 {
        tree.store(&(number % pairs).to_be_bytes(), &[2; 10_000]).unwrap();
    }
    let left: Vec<_> = range.collect();
    let Some(Err(Error::Refused { why })) = left.last() else { panic!("the range had all: this test shows nothing") };
    assert!(why.contains("expired") && left.len() < pairs as usize, "{why}");
    assert!(left.iter().flatten().chain([&first]).all(|(_, value)| *value == [1; 10_000]));
    assert_eq!(shown(tree.range(&IteratorOptions::default()).unwrap()).len() as u64, pairs);
}

/// The segments of values that only a range shows are deleted with it, and stores that need their room end the oldest range.
#[test]
fn large_values_go_on_where_ranges_keep_too_many() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder, "plus", 256 << 20);
    let tree = store.create_namespace(ordered("tree")).unwrap();
    let large = |number: u32| vec![number as u8; 3 << 20];
    for number in 0..4 {
        tree.store(&key(number), &large(number)).unwrap();
    }
    let begin = || tree.range(&IteratorOptions::default()).unwrap();
    let mut old = begin();
    assert_eq!(old.next().unwrap().unwrap().1, large(0));
    let mut young = begin();
    for number in 4..300 {
        tree.store(&key(number % 4), &large(number)).unwrap();
        if number % 5 == 0 {
            // There is always one, and none is old.
            let next = begin();
            let shown: Vec<_> = shown(young).into_iter().map(|(_, value)| value[0]).collect();
            assert_eq!(shown.len(), 4, "{number}: {shown:?}");
            let is_new = |&value: &u8| number < 12 || (number as u8).wrapping_sub(value) <= 10;
            assert!(shown.iter().all(is_new), "{number}: {shown:?}");
            young = next;
        }
    }
    drop(young);
    let left: Vec<_> = old.collect();
    assert!(matches!(left.last(), Some(Err(Error::Refused { why })) if why.contains("expired")), "{}", left.len());
    assert!((1..4).all(|number| tree.delete(&key(number)).unwrap()));
    assert_eq!(shown(begin()).len(), 1);
}

#[test]
fn what_has_no_order_has_no_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder, "plus", 64 << 20);
    let refused = store.own_namespace().range(&IteratorOptions::default()).err();
    assert!(matches!(refused, Some(Error::Refused { why }) if why.contains("no order")));
}
