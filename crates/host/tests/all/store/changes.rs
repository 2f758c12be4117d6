//! Changes that are made together, and drives that are full.

use super::{Desk, all, called, everything, small};
use kvssd_host::{Batch, Error, NamespaceAttributes, Options};
use std::collections::BTreeMap;

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
