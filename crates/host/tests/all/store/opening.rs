//! What cannot be opened, and what an open store is good for.

use super::{Desk, small};
use kvssd_host::{Error, KeyCursor, Missing, NamespaceAttributes, NamespaceId, Options, Store};

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
    let new = desk.open(Options { missing: Missing::CreateNew, read_only: true, ..small() }).err();
    assert!(matches!(&new, Some(Error::InvalidOptions { why }) if why.contains("read-only")), "{new:?}");
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

#[test]
fn keys_are_listed_backwards_whatever_their_values_take() {
    let desk = Desk::new();
    let store = desk.store();
    let attributes = NamespaceAttributes { is_ordered: true, ..NamespaceAttributes::PLAIN };
    let ordered = store.create_namespace(attributes).unwrap();
    let value = vec![7; usize::try_from(store.stats().unwrap().value_bytes_max).unwrap()];
    let keys: Vec<Box<[u8]>> = (0..10u8).map(|number| [number].into()).collect();
    keys.iter().for_each(|key| ordered.store(key, &value).unwrap());
    let backwards: Vec<Box<[u8]>> = keys.iter().rev().cloned().collect();
    assert_eq!(ordered.list_descending(None, 10).unwrap(), backwards);
    assert_eq!(ordered.list_descending(None, 11).unwrap(), backwards);
    assert_eq!(ordered.list_descending(Some(&[7]), 6).unwrap(), backwards[2..8]);
    assert_eq!(ordered.list_descending(None, 0).unwrap(), backwards[..0]);
}

#[test]
fn a_cursor_whose_keys_are_deleted_as_they_come_has_pages_of_one_length() {
    let desk = Desk::new();
    let store = desk.store();
    let namespace = store.namespace_at(NamespaceId::FIRST);
    let numbers = 0..5000u32;
    numbers.clone().for_each(|number| namespace.store(&number.to_be_bytes(), b"").unwrap());
    let (mut cursor, mut met, mut longest) = (KeyCursor::new(None), 0, 0);
    while let Some(page) = Some(cursor.next_page(namespace).unwrap()).filter(|page| !page.is_empty()) {
        (met, longest) = (met + page.len(), longest.max(page.len()));
        page.iter().for_each(|key| assert!(namespace.delete(key).unwrap()));
    }
    assert_eq!((met, longest, namespace.keys(None).count()), (numbers.len(), 256, 0));
}
