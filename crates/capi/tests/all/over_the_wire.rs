//! The store that the C library is over, on a URL: names, iterators and long keys agree with plain maps, and are in the
//! image what they were on the wire.

use crate::programs::{served, text};
use kvssd_host::{Error, IteratorOptions, Missing, NamespaceAttributes, Options, Store, StoreCondition};
use std::collections::BTreeMap;

fn named(name: &str, is_ordered: bool) -> NamespaceAttributes {
    NamespaceAttributes { name: Some(name.to_owned()), is_ordered, ..NamespaceAttributes::PLAIN }
}

fn open(drive: &str) -> Store {
    kvssd_host::open(drive, Options { missing: Missing::Fail, ..Options::default() }).unwrap()
}

/// Keys of 1 to 255 bytes, many of which are alike in their first 16.
fn key(number: usize) -> Vec<u8> {
    let length = 1 + number * 37 % 255;
    let mut key = vec![b'a'; length];
    let digits = format!("{number:04}");
    let end = length.min(4);
    key[length - end..].copy_from_slice(&digits.as_bytes()[4 - end..]);
    key
}

fn agrees(store: &Store, name: &str, map: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let namespace = store.namespace(name).unwrap();
    assert_eq!(namespace.count().unwrap(), map.len() as u64);
    let mut pairs: Vec<_> =
        namespace.pairs().map(|pair| pair.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    if !namespace.info().unwrap().is_ordered {
        pairs.sort();
    }
    assert!(pairs == map.clone().into_iter().collect::<Vec<(Vec<u8>, Vec<u8>)>>());
    for (key, value) in map {
        assert_eq!(namespace.retrieve(key).unwrap().as_ref(), Some(value));
    }
}

#[test]
fn names_iterators_and_long_keys_are_the_same_on_the_wire_and_in_the_image() {
    let desk = tempfile::tempdir().unwrap();
    let mut maps = [BTreeMap::new(), BTreeMap::new()];
    let names = ["hashed", "tree"];
    let path = served(&desk, |url| {
        let (store, other) = (open(url), open(url));
        assert_eq!(store.key_bytes_max().unwrap(), 255);
        for (name, is_ordered) in names.into_iter().zip([false, true]) {
            store.create_namespace(named(name, is_ordered)).unwrap();
            assert!(matches!(store.create_namespace(named(name, is_ordered)), Err(Error::InvalidOptions { .. })));
            assert_eq!(other.namespace(name).unwrap().info().unwrap().is_ordered, is_ordered);
        }
        for number in 0..1500 {
            for (name, map) in names.iter().zip(&mut maps) {
                let (namespace, key) = (store.namespace_at(store.namespace(name).unwrap().id()), key(number));
                let value = vec![number as u8; number * 13 % 9000];
                let is_new = !map.contains_key(&key);
                let stored = namespace.store_if(&key, &value, StoreCondition::IfAbsent);
                assert_eq!(stored, if is_new { Ok(()) } else { Err(Error::KeyExists) });
                if number % 3 == 0 {
                    assert_eq!(namespace.delete(&key), Ok(true));
                    map.remove(&key);
                } else if is_new {
                    map.insert(key, value);
                }
            }
        }
        for (name, map) in names.iter().zip(&maps) {
            agrees(&other, name, map);
        }
        let tree = store.namespace("tree").unwrap();
        for (prefix, descending, keys_only) in
            [(&b""[..], false, false), (b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true, true)]
        {
            let options = IteratorOptions { prefix, descending, keys_only, ..IteratorOptions::default() };
            let range = tree.range(&options).unwrap();
            // Another host takes all away meanwhile, and puts it back.
            let theirs = other.namespace("tree").unwrap();
            maps[1].keys().take(50).for_each(|key| assert!(theirs.delete(key).unwrap()));
            let shown: Vec<_> =
                range.map(|pair| pair.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            maps[1].iter().take(50).for_each(|(key, value)| theirs.store(key, value).unwrap());
            let mut wanted: Vec<_> = maps[1].clone().into_iter().filter(|(key, _)| key.starts_with(prefix)).collect();
            if descending {
                wanted.reverse();
            }
            if keys_only {
                wanted.iter_mut().for_each(|(_, value)| value.clear());
            }
            assert!(shown == wanted && !shown.is_empty());
        }
        let mut down: Vec<Vec<u8>> = maps[1].keys().rev().take(20).cloned().collect();
        assert!(tree.list_descending(None, 20).unwrap().into_iter().map(Vec::from).eq(down.drain(..)));
        let error = store.namespace("hashed").unwrap().range(&IteratorOptions::default()).err().unwrap();
        assert!(error.to_string().contains("no order"), "{error}");
        // A range whose namespace goes ends with an error, and not as if that were all.
        store.create_namespace(named("short", true)).unwrap();
        let short = other.namespace("short").unwrap();
        (0..100u8).for_each(|number| short.store(&[number], b"value").unwrap());
        let mut range = short.range(&IteratorOptions::default()).unwrap();
        assert!(range.next().unwrap().is_ok());
        store.delete_namespace("short").unwrap();
        assert!(range.any(|pair| pair.is_err()));
        assert!(matches!(other.namespace("short"), Err(Error::NoNamespace { .. })));
        assert!(matches!(store.store(&[7; 256], b""), Err(Error::InvalidKey { .. })));
        store.close().unwrap();
    });
    // In process they are ordinary keys.
    let store = open(&text(&path));
    for (name, map) in names.iter().zip(&maps) {
        agrees(&store, name, map);
    }
}
