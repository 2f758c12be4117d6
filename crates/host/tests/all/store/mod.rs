//! The store as a program meets it: calls, threads, lives, and what is refused.

mod changes;
mod opening;

use crate::designs;
use kvssd_host::{Batch, Error, NamespaceAttributes, NamespaceId, Options, Store, StoreCondition};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread::scope;
use tempfile::TempDir;

struct Desk {
    folder: TempDir,
}

impl Desk {
    fn new() -> Self {
        Desk { folder: TempDir::new().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("drive.kv")
    }

    fn open(&self, options: Options) -> Result<Store, Error> {
        Store::open(self.path(), options)
    }

    fn store(&self) -> Store {
        self.open(small()).unwrap()
    }
}

fn small() -> Options {
    Options { create_bytes: 64 << 20, ..Options::default() }
}

/// A store of that design with so many numbers as keys, and where it lies.
fn numbered(design: &str, keys: u32) -> (Desk, Store) {
    let desk = Desk::new();
    let store = desk.open(Options { design: design.to_owned(), ..small() }).unwrap();
    for number in 0..keys {
        store.store(&number.to_be_bytes(), b"").unwrap();
    }
    (desk, store)
}

fn all(store: &Store) -> BTreeMap<Box<[u8]>, Vec<u8>> {
    let pairs: Vec<_> = store.pairs().map(Result::unwrap).map(|(key, value)| (key, value.to_vec())).collect();
    let map: BTreeMap<_, _> = pairs.iter().cloned().collect();
    assert_eq!(map.len(), pairs.len(), "a pair is met twice");
    map
}

#[test]
fn calls_do_what_they_say() {
    let desk = Desk::new();
    let store = desk.store();
    assert!(store.was_created());
    assert_eq!(store.retrieve(b"a"), Ok(None));
    store.store(b"a", b"12345").unwrap();
    assert_eq!(store.retrieve(b"a").unwrap().as_deref(), Some(&b"12345"[..]));
    assert_eq!(store.retrieve_part(b"a", 1, 3).unwrap().as_deref(), Some(&b"234"[..]));
    assert_eq!(store.retrieve_part(b"a", 9, 3), Ok(Some(Vec::new())));
    assert_eq!(store.retrieve_part(b"b", 9, 3), Ok(None));
    assert_eq!((store.exist(b"a"), store.exist(b"b")), (Ok(true), Ok(false)));
    assert_eq!(store.store_if(b"a", b"", StoreCondition::IfAbsent), Err(Error::KeyExists));
    assert_eq!(store.store_if(b"b", b"", StoreCondition::IfExists), Err(Error::KeyNotFound));
    store.store_if(b"b", b"", StoreCondition::IfAbsent).unwrap();
    assert_eq!(store.retrieve(b"b"), Ok(Some(Vec::new())));
    assert_eq!((store.delete(b"a"), store.delete(b"a")), (Ok(true), Ok(false)));
    assert_eq!(store.list(None, 10).unwrap(), [b"b"[..].into()]);
    assert_eq!(store.list(Some(b"b"), 0).unwrap(), [] as [Box<[u8]>; 0]);
    store.flush().unwrap();
    let stats = store.stats().unwrap();
    let firmware = stats.firmware.unwrap();
    assert_eq!((firmware.pairs, firmware.pair_bytes, stats.design.as_str()), (1, 1, "plus"));
    assert_eq!(store.store(b"", b""), Err(Error::InvalidKey { key_bytes: 0, key_bytes_max: 255 }));
    assert_eq!(store.retrieve(&[0; 256]), Err(Error::InvalidKey { key_bytes: 256, key_bytes_max: 255 }));
    let large = vec![0; 3 << 20];
    assert!(matches!(store.store(b"large", &large), Err(Error::InvalidValue { value_bytes: 3_145_728, .. })));
    let largest = vec![7; stats.value_bytes_max as usize];
    store.store(b"large", &largest).unwrap();
    assert_eq!(store.retrieve(b"large").unwrap(), Some(largest));
}

#[test]
fn a_store_is_there_again_however_it_ended() {
    for (design, sync) in [("plus", false), ("original", false), ("plus", true)] {
        let desk = Desk::new();
        let options = || Options { design: design.to_owned(), sync, ..small() };
        let mut model = BTreeMap::new();
        for life in 0..4u8 {
            let store = desk.open(options()).unwrap();
            assert_eq!((store.was_created(), store.stats().unwrap().design.as_str()), (life == 0, design));
            assert_eq!(all(&store), model);
            for number in 0..100u8 {
                let key: Box<[u8]> = [number % 70, life % 2].into();
                if number % 5 == 0 {
                    assert_eq!(store.delete(&key).unwrap(), model.remove(&key).is_some());
                } else {
                    store.store(&key, &[life; 3]).unwrap();
                    model.insert(key, vec![life; 3]);
                }
            }
            if life % 2 == 0 { store.close().unwrap() } else { drop(store) }
        }
    }
}

#[test]
fn threads_share_a_store() {
    const THREADS: u32 = 8;
    for (sync, keys) in [(false, 1000), (true, 30)] {
        let desk = Desk::new();
        let store = desk.open(Options { sync, ..small() }).unwrap();
        scope(|scope| {
            for thread in 0..THREADS {
                let store = &store;
                scope.spawn(move || {
                    for number in 0..keys {
                        let key = format!("{thread}/{number}");
                        store.store(key.as_bytes(), key.as_bytes()).unwrap();
                        assert_eq!(store.retrieve(key.as_bytes()).unwrap().as_deref(), Some(key.as_bytes()));
                        // All of them fight for one.
                        store.store(b"shared", key.as_bytes()).unwrap();
                        if number % 3 == 0 {
                            assert!(store.delete(key.as_bytes()).unwrap());
                        }
                    }
                });
            }
        });
        drop(store);
        let pairs = all(&desk.store());
        let left = (0..THREADS * keys).filter(|number| number % keys % 3 != 0).count();
        assert_eq!(pairs.len(), left + 1);
        for (key, value) in &pairs {
            assert!(**key == **value || **key == b"shared"[..]);
        }
    }
}

#[test]
fn keys_that_stay_are_met_once_while_others_come_and_go() {
    for design in designs() {
        let (_desk, store) = numbered(design, 3000);
        let mut met = BTreeMap::new();
        for (index, key) in store.keys(None).enumerate() {
            let key = key.unwrap();
            let number = u32::from_be_bytes(key[..].try_into().unwrap());
            *met.entry(number).or_insert(0) += 1;
            // Odd ones go, most of them just when they were met: all that a page could go on from, now and then.
            if number % 2 == 1 {
                assert!(store.delete(&key).unwrap());
            }
            store.store(&(10_000 + index as u32).to_be_bytes(), b"").unwrap();
            if index > 20_000 {
                break;
            }
        }
        for number in (0..3000).step_by(2) {
            assert_eq!(met.get(&number), Some(&1), "{number}");
        }
        assert!(met.iter().all(|(_, times)| *times == 1));
    }
}

#[test]
fn who_deletes_what_it_meets_reads_each_page_of_keys_once() {
    for design in designs() {
        let (_desk, store) = numbered(design, 2000);
        let pages_read = || store.stats().unwrap().firmware.unwrap().pages_read;
        let before = pages_read();
        assert_eq!(store.keys(None).count(), 2000);
        let listed = pages_read() - before;
        for key in store.keys(None) {
            assert!(store.delete(&key.unwrap()).unwrap());
        }
        let deleted = pages_read() - before - listed;
        assert_eq!(store.keys(None).count(), 0, "{design}");
        assert!(deleted <= 4 * (listed + 2000), "{design}: {deleted} pages, and {listed} to list the same");
    }
}

#[test]
fn a_key_to_list_from_need_not_be_there() {
    for design in designs() {
        let (_desk, store) = numbered(design, 600);
        let keys: Vec<_> = store.keys(None).map(Result::unwrap).collect();
        assert_eq!(keys.len(), 600);
        let behind: Vec<_> = store.keys(Some(&keys[300])).map(Result::unwrap).collect();
        assert_eq!(behind, keys[300..]);
        assert!(store.keys(Some(b"not there")).count() <= 600);
    }
}

fn called(name: &str) -> NamespaceAttributes {
    NamespaceAttributes { name: Some(name.to_owned()), ..NamespaceAttributes::PLAIN }
}

/// Pairs of all namespaces, by name or number.
fn everything(store: &Store) -> BTreeMap<String, BTreeMap<Box<[u8]>, Vec<u8>>> {
    let infos = store.namespaces().unwrap().into_iter();
    let pairs = |name: &str| {
        store.namespace(name).unwrap().pairs().map(Result::unwrap).map(|(key, value)| (key, value.to_vec())).collect()
    };
    infos
        .map(|info| info.attributes.name.unwrap_or(info.id.to_string()))
        .map(|name| (name.clone(), pairs(&name)))
        .collect()
}

#[test]
fn namespaces_share_an_image_and_no_keys() {
    let desk = Desk::new();
    let store = desk.store();
    let ordered = NamespaceAttributes { is_ordered: true, ..called("tree") };
    assert_eq!(store.create_namespace(ordered.clone()).unwrap().id(), NamespaceId(2));
    let fixed = NamespaceAttributes { index: Some("hash-fixed".to_owned()), ..called("fixed") };
    store.create_namespace(fixed).unwrap();
    store.create_namespace(NamespaceAttributes::PLAIN).unwrap();
    for name in ["1", "tree", "fixed", "4"] {
        let namespace = store.namespace(name).unwrap();
        for number in (0..500u32).rev() {
            namespace.store(&number.to_be_bytes(), format!("{name} {number}").as_bytes()).unwrap();
        }
        assert!(namespace.delete(&7u32.to_be_bytes()).unwrap() && !namespace.exist(&7u32.to_be_bytes()).unwrap());
        assert_eq!(namespace.retrieve_part(&8u32.to_be_bytes(), 0, 1).unwrap().unwrap(), name.as_bytes()[..1]);
    }
    let keys: Vec<_> = store.namespace("tree").unwrap().keys(None).map(Result::unwrap).collect();
    assert!(keys.is_sorted() && keys.len() == 499);
    assert_eq!(store.retrieve(&9u32.to_be_bytes()).unwrap().unwrap(), b"1 9");
    let before = everything(&store);
    drop(store);

    let store = desk.store();
    assert_eq!(everything(&store), before);
    assert_eq!(store.namespaces().unwrap()[1].attributes, ordered);
    store.delete_namespace("fixed").unwrap();
    assert_eq!(store.namespace("fixed").err(), Some(Error::NoNamespace { name: "fixed".to_owned() }));
    let gone = NamespaceId(3);
    let mut batch = Batch::new();
    batch.store(b"new", b"").store_in(gone, b"new", b"");
    assert_eq!(store.batch(&batch), Err(Error::NoNamespace { name: "3".to_owned() }));
    assert_eq!(store.exist(b"new"), Ok(false));
    for wrong in [
        called("tree"),
        called("17"),
        NamespaceAttributes { index: Some("b-tree".to_owned()), ..called("x") },
        NamespaceAttributes { is_ordered: true, index: Some("hash-compact".to_owned()), ..called("x") },
    ] {
        let refused = store.create_namespace(wrong).err();
        assert!(matches!(refused, Some(Error::InvalidOptions { .. })), "{refused:?}");
    }
    assert!(matches!(store.delete_namespace("1"), Err(Error::InvalidOptions { .. })));
    let others = (0..100).take_while(|_| store.create_namespace(NamespaceAttributes::PLAIN).is_ok()).count();
    assert!(matches!(store.create_namespace(called("x")).err(), Some(Error::TooManyNamespaces { .. })));
    assert!(others >= 12, "{others}");
    store.close().unwrap();

    let store = desk.open(Options { read_only: true, ..small() }).unwrap();
    assert_eq!(store.stats().unwrap().firmware.unwrap().pairs, 3 * 499, "what was deleted is gone");
    assert_eq!(store.create_namespace(called("x")).err(), Some(Error::ReadOnly));
    let mut after = before;
    after.remove("fixed");
    let kept: BTreeMap<_, _> = everything(&store).into_iter().filter(|(_, pairs)| !pairs.is_empty()).collect();
    assert_eq!(kept, after);
}

#[test]
fn the_space_of_a_deleted_namespace_comes_back() {
    let desk = Desk::new();
    let store = desk.store();
    let value = vec![1; 100_000];
    for round in 0..3 {
        let bulk = store.create_namespace(called("bulk")).unwrap();
        let fits = (0..1000u32).take_while(|number| bulk.store(&number.to_be_bytes(), &value).is_ok()).count();
        assert!(fits > 300, "{fits} in round {round}");
        assert_eq!(store.store(b"another", &value), Err(Error::Full));
        store.delete_namespace("bulk").unwrap();
    }
    store.store(b"another", &value).unwrap();
}
