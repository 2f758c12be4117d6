//! Namespaces that come and go in one life.

use crate::designs;
use kvssd_host::{NamespaceAttributes, Options, Store};

const LARGE: u32 = 8 << 20;

fn named(name: String) -> NamespaceAttributes {
    NamespaceAttributes { name: Some(name), ..NamespaceAttributes::PLAIN }
}

#[test]
fn namespaces_are_made_and_deleted_in_one_life_as_often_as_one_likes() {
    for design in designs() {
        for value_bytes_max in [None, Some(LARGE)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("drive.kv");
            let (create_bytes, design_name) = (64 << 20, design.to_owned());
            let options = Options { create_bytes, design: design_name, value_bytes_max, ..Options::default() };
            let store = Store::open(&path, options).unwrap();
            store.store(b"here", b"all the time").unwrap();
            let large = vec![7; if value_bytes_max.is_some() { 3 << 20 } else { 100 }];
            for round in 0..40 {
                let made = store.create_namespace(named(format!("round {round}")));
                let made = made.unwrap_or_else(|error| panic!("{design}, round {round}: {error}"));
                assert_eq!(made.keys(None).count(), 0, "{design}: it has what another one had");
                for number in 0..50u32 {
                    made.store(&number.to_be_bytes(), &[1; 200]).unwrap();
                }
                made.store(b"large", &large).unwrap();
                // Some stay for a while.
                if round >= 2 {
                    store.delete_namespace(&format!("round {}", round - 2)).unwrap();
                }
            }
            store.close().unwrap();
            let store = Store::open(&path, Options::default()).unwrap();
            assert_eq!(store.namespaces().unwrap().len(), 3, "{design}");
            for name in ["round 38", "round 39"] {
                let last = store.namespace(name).unwrap();
                assert_eq!((last.count(), last.retrieve(b"large")), (Ok(51), Ok(Some(large.clone()))), "{design}");
            }
            assert_eq!(store.retrieve(b"here").unwrap().unwrap(), b"all the time");
        }
    }
}

/// As the wire and C have it.
#[test]
fn a_quota_of_no_bytes_is_none() {
    let folder = tempfile::tempdir().unwrap();
    for partitions in [1, 2] {
        let options = Options { create_bytes: 256 << 20, partitions, ..Options::default() };
        let store = Store::open(folder.path().join(partitions.to_string()), options).unwrap();
        let attributes = NamespaceAttributes { quota_bytes: Some(0), ..named("unbounded".to_owned()) };
        let unbounded = store.create_namespace(attributes).unwrap();
        unbounded.store(b"key", &[1; 1000]).unwrap();
        assert_eq!(unbounded.info().unwrap().attributes.quota_bytes, None);
    }
}

/// The sections of an index that nobody uses leave memory for those of others.
#[test]
fn new_namespaces_have_their_part_of_memory_beside_one_that_filled_it() {
    for design in ["plus", "rhik"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.kv");
        let options = Options { create_bytes: 64 << 20, design: design.to_owned(), ..Options::default() };
        let mut store = Store::open(&path, options).unwrap();
        (0..100_000u32).for_each(|number| store.store(&number.to_be_bytes(), &[1; 100]).unwrap());
        for life in 0..2 {
            for is_ordered in [true, false] {
                let attributes = NamespaceAttributes { is_ordered, ..named(format!("{life}, {is_ordered}")) };
                let made = store.create_namespace(attributes).unwrap();
                (0..200u32).for_each(|number| made.store(&number.to_be_bytes(), b"here").unwrap());
                assert_eq!(made.count(), Ok(200), "{design}");
            }
            store.close().unwrap();
            store = Store::open(&path, Options::default()).unwrap();
        }
        assert_eq!(store.keys(None).count(), 100_000, "{design}");
    }
}
