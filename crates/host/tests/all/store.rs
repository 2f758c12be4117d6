//! The store as a program meets it: calls, threads, lives, and what is refused.

use kvssd_host::{Batch, Error, KeyCursor, Missing, NamespaceAttributes, NamespaceId, Options, Store, StoreCondition};
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

fn all(store: &Store) -> BTreeMap<Box<[u8]>, Vec<u8>> {
    let pairs: Vec<_> = store.pairs().map(Result::unwrap).collect();
    let map: BTreeMap<_, _> = pairs.iter().cloned().collect();
    assert_eq!(map.len(), pairs.len(), "a pair is met twice");
    map
}

/// All that an image can hold.
const DESIGNS: [&str; 7] = ["original", "plus", "rhik", "multilevel", "pink", "iter", "kaml"];

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
    for design in DESIGNS {
        let desk = Desk::new();
        let store = desk.open(Options { design: design.to_owned(), ..small() }).unwrap();
        for number in 0..3000u32 {
            store.store(&number.to_be_bytes(), b"").unwrap();
        }
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
fn a_key_to_list_from_need_not_be_there() {
    for design in DESIGNS {
        let desk = Desk::new();
        let store = desk.open(Options { design: design.to_owned(), ..small() }).unwrap();
        for number in 0..600u32 {
            store.store(&number.to_be_bytes(), b"").unwrap();
        }
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
    let pairs = |name: &str| store.namespace(name).unwrap().pairs().map(Result::unwrap).collect();
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
    assert!(matches!(store.create_namespace(called("x")).err(), Some(Error::Refused { .. })));
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

#[test]
fn a_batch_is_made_whole_or_not_at_all() {
    for sync in [false, true] {
        let desk = Desk::new();
        let store = desk.open(Options { sync, ..small() }).unwrap();
        let tree = store.create_namespace(NamespaceAttributes { is_ordered: true, ..called("tree") }).unwrap().id();
        let stats = store.stats().unwrap();
        let mut batch = Batch::new();
        batch.store(b"a", b"1").store_in(tree, b"a", b"2").store(b"b", b"1").delete(b"a").store(b"b", b"2");
        store.batch(&batch).unwrap();
        store.batch(&Batch::new()).unwrap();

        let mut large = Batch::new();
        for number in 0..=stats.batch_changes_max as u32 {
            large.store(&number.to_be_bytes(), b"");
        }
        assert!(
            matches!(store.batch(&large), Err(Error::BatchTooLarge { changes_max, .. }) if changes_max < large.len())
        );
        let mut heavy = Batch::new();
        heavy.store(b"c", b"").store_in(tree, b"d", &vec![0; stats.value_bytes_max as usize]);
        assert!(matches!(store.batch(&heavy), Err(Error::BatchTooLarge { .. })));
        let mut invalid = Batch::new();
        invalid.store(b"c", b"").store(b"", b"");
        assert_eq!(store.batch(&invalid), Err(Error::InvalidKey { key_bytes: 0, key_bytes_max: 255 }));
        drop(store);

        let store = desk.store();
        let pair = |key: &[u8], value: &[u8]| BTreeMap::from([(key.into(), value.to_vec())]);
        let expected = [("1".to_owned(), pair(b"b", b"2")), ("tree".to_owned(), pair(b"a", b"2"))];
        assert_eq!(everything(&store), BTreeMap::from(expected));
        store.bulk(&large).unwrap();
        assert_eq!(store.stats().unwrap().firmware.unwrap().pairs, large.len() as u64 + 2);
    }
}

#[test]
fn a_bulk_is_made_in_order_and_stays() {
    for sync in [false, true] {
        let desk = Desk::new();
        let store = desk.open(Options { sync, ..small() }).unwrap();
        let mut batch = Batch::new();
        batch.store(b"a", b"1").store(b"b", b"1").delete(b"a").store(b"b", b"2").delete(b"nothing");
        assert_eq!((batch.len(), batch.is_empty()), (5, false));
        store.bulk(&batch).unwrap();
        batch.clear();
        store.bulk(&batch).unwrap();
        let mut invalid = Batch::new();
        invalid.store(b"c", b"").store(b"", b"");
        assert_eq!(store.bulk(&invalid), Err(Error::InvalidKey { key_bytes: 0, key_bytes_max: 255 }));
        let mut refused = Batch::new();
        refused.store(b"d", b"").store(b"e", &vec![0; 3 << 20]).store(b"f", b"");
        assert!(matches!(store.bulk(&refused), Err(Error::InvalidValue { .. })));
        store.store(b"g", b"").unwrap();
        drop(store);
        let keys: Vec<_> = all(&desk.store()).into_keys().map(|key| key[0]).collect();
        assert_eq!(keys, *b"bdg");
    }
}

#[test]
fn a_full_store_says_so_and_lives_on() {
    for design in ["plus", "original"] {
        let desk = Desk::new();
        let store = desk.open(Options { design: design.to_owned(), ..small() }).unwrap();
        let value = vec![1; 100_000];
        let fits = (0..1000u32).take_while(|number| match store.store(&number.to_be_bytes(), &value) {
            Ok(()) => true,
            Err(Error::Full) => false,
            Err(other) => panic!("{other}"),
        });
        let fits = fits.count() as u32;
        let stats = store.stats().unwrap();
        assert_eq!(stats.firmware.unwrap().pairs, fits.into());
        assert!(stats.live_bytes <= stats.capacity_bytes && u64::from(fits) * 100_000 > stats.capacity_bytes * 9 / 10);
        // Overwrites go on, and deletes make room.
        for number in 0..fits {
            store.store(&number.to_be_bytes(), &value).unwrap();
        }
        for number in 0..fits / 2 {
            assert!(store.delete(&number.to_be_bytes()).unwrap());
        }
        store.store(b"again", &value).unwrap();
        drop(store);
        assert_eq!(all(&desk.store()).len() as u32, fits - fits / 2 + 1);
    }
}

#[test]
fn what_cannot_be_opened_is_named_by_its_family() {
    let desk = Desk::new();
    let path = desk.path();
    assert_eq!(desk.open(Options { missing: Missing::Fail, ..small() }).err(), Some(Error::NotFound(path.clone())));
    assert_eq!(desk.open(Options { read_only: true, ..small() }).err(), Some(Error::NotFound(path.clone())));
    let small_one = desk.open(Options { create_bytes: 1 << 20, ..small() }).err();
    assert!(matches!(small_one, Some(Error::InvalidOptions { .. })), "{small_one:?}");
    let unknown = desk.open(Options { design: "minus".to_owned(), ..small() }).err();
    assert!(matches!(unknown, Some(Error::InvalidOptions { .. })), "{unknown:?}");
    assert!(!path.exists());

    std::fs::write(&path, "something else").unwrap();
    assert!(matches!(desk.open(small()).err(), Some(Error::Foreign { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"something else");
    std::fs::remove_file(&path).unwrap();

    let store = desk.store();
    match desk.open(small()).err() {
        Some(Error::Locked { holder, .. }) => assert!(holder.contains(&std::process::id().to_string()), "{holder}"),
        other => panic!("{other:?}"),
    }
    store.store(b"a", b"1").unwrap();
    drop(store);
    let new = desk.open(Options { missing: Missing::CreateNew, ..small() }).err();
    assert_eq!(new, Some(Error::Exists(path.clone())));

    let readers = [(); 2].map(|()| desk.open(Options { read_only: true, ..small() }).unwrap());
    assert_eq!(readers[0].retrieve(b"a").unwrap(), readers[1].retrieve(b"a").unwrap());
    assert_eq!(readers[0].store(b"a", b"2"), Err(Error::ReadOnly));
    assert_eq!(readers[0].delete(b"a"), Err(Error::ReadOnly));
    drop(readers);

    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(desk.open(small()).err(), Some(Error::Damaged { .. })));
    assert!(before == std::fs::read(&path).unwrap());
}

#[test]
fn a_store_can_be_sent_and_shared() {
    fn is<T: Send + Sync>() {}
    is::<Store>();
}

#[test]
fn a_part_of_a_value_is_copied_and_the_size_of_the_whole_is_told() {
    let desk = Desk::new();
    let store = desk.store();
    store.store(b"key", &[7; 5000]).unwrap();
    let keys = store.namespace_at(NamespaceId::FIRST);
    let mut buffer = [0; 10];
    assert_eq!(keys.retrieve_into(b"key", 4996, &mut buffer).unwrap(), Some(5000));
    assert_eq!(buffer, [7, 7, 7, 7, 0, 0, 0, 0, 0, 0]);
    assert_eq!(keys.retrieve_into(b"key", 0, &mut []).unwrap(), Some(5000));
    assert_eq!(keys.retrieve_into(b"other", 0, &mut buffer).unwrap(), None);
}

#[test]
fn a_cursor_meets_all_keys_and_an_ordered_namespace_lists_them_backwards() {
    let desk = Desk::new();
    let store = desk.store();
    let attributes = NamespaceAttributes { is_ordered: true, ..NamespaceAttributes::PLAIN };
    let ordered = store.create_namespace(attributes).unwrap();
    let keys: Vec<Box<[u8]>> = (0..700).map(|number| format!("{number:04}").into_bytes().into()).collect();
    for key in &keys {
        ordered.store(key, b"").unwrap();
    }
    let (mut cursor, mut met) = (KeyCursor::new(Some(b"0100")), Vec::new());
    while let Some(page) = Some(cursor.next_page(ordered).unwrap()).filter(|page| !page.is_empty()) {
        met.extend(page);
    }
    assert_eq!(met, keys[100..]);
    let descending = ordered.list_descending(Some(b"0002x"), 10).unwrap();
    assert_eq!(descending, [keys[2].clone(), keys[1].clone(), keys[0].clone()]);
    assert_eq!(ordered.list_descending(None, 1).unwrap(), [keys[699].clone()]);
    let unordered = store.namespace_at(NamespaceId::FIRST);
    assert!(matches!(unordered.list_descending(None, 1), Err(Error::Refused { .. })));
}
