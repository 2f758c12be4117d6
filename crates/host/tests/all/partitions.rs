//! A store over an image in partitions: what several partitions do together is seen as a whole, or not at all.

use kvssd_device::partition_of;
use kvssd_flash::{Files, SimulatedDisk, Strike};
use kvssd_host::{Batch, Error, IteratorOptions, Missing, NamespaceAttributes, NamespaceId, Options, Store};
use kvssd_types::Key;
use std::path::Path;
use std::sync::Arc;
use std::thread;

const PATH: &str = "drive.kv";
const PARTITIONS: u32 = 3;

fn options() -> Options {
    Options { create_bytes: 3 * (64 << 20), partitions: PARTITIONS, ..Options::default() }
}

fn open(files: &Arc<dyn Files>) -> Store {
    Store::open_in(files, Path::new(PATH), &Options { missing: Missing::Fail, ..Options::default() }).unwrap()
}

/// A batch whose disk fails at any call: from then on nobody is shown a part of it, and the next life has all of it or nothing.
#[test]
fn of_a_batch_that_failed_in_the_middle_nobody_sees_a_part() {
    let (mut failed, mut hidden) = (0, 0);
    for number in 0..30 {
        let disk = SimulatedDisk::new(number);
        let files = disk.files();
        let store = Store::open_in(&files, Path::new(PATH), &options()).unwrap();
        let names: Vec<[u8; 1]> = (0..12u8).map(|name| [name]).collect();
        names.iter().for_each(|name| store.store(name, b"old").unwrap());
        let mut batch = Batch::new();
        for name in &names {
            batch.store(name, b"new");
        }
        disk.strike(disk.calls() + 1 + number / 2, [Strike::Fail, Strike::Full][(number % 2) as usize]);
        let made = store.batch(&batch);
        let shown: Vec<Result<Option<Vec<u8>>, Error>> = names.iter().map(|name| store.retrieve(name)).collect();
        drop(store);
        disk.kill();
        let store = open(&files);
        let there: Vec<Vec<u8>> = names.iter().map(|name| store.retrieve(name).unwrap().unwrap()).collect();
        assert!(there.iter().all(|value| *value == there[0]), "{number}: {there:?}");
        for (shown, there) in shown.into_iter().zip(&there) {
            match shown {
                Ok(value) => assert_eq!(value.as_ref(), Some(there), "{number}: what was shown was never there"),
                Err(Error::Io { .. } | Error::Failed { .. }) => hidden += 1,
                Err(other) => panic!("{number}: {other}"),
            }
        }
        assert!(made.is_err() || there[0] == b"new");
        failed += u32::from(made.is_err());
    }
    assert!(failed > 2 && hidden > 0, "{failed} failed, {hidden} looks were refused");
}

/// Threads store, delete and put batches over all partitions, and look through ranges, which show each batch whole.
#[test]
fn threads_share_partitions_and_ranges_show_batches_whole() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join(PATH), options()).unwrap();
    let ordered = NamespaceAttributes { is_ordered: true, name: Some("b".to_owned()), ..NamespaceAttributes::PLAIN };
    let id = store.create_namespace(ordered).unwrap().id();
    let keys: Vec<[u8; 1]> = (0..40u8).map(|name| [name]).collect();
    let numbers = keys.iter().map(|key| partition_of(id, Key::new(key).unwrap(), PARTITIONS as usize));
    assert_eq!(numbers.collect::<std::collections::BTreeSet<_>>().len(), PARTITIONS as usize);
    thread::scope(|scope| {
        for writer in 0..2u8 {
            let (store, keys) = (&store, &keys);
            scope.spawn(move || {
                for round in 0..60u8 {
                    let mut batch = Batch::new();
                    for key in keys {
                        batch.store_in(id, key, &[writer, round]);
                    }
                    store.batch(&batch).unwrap();
                    store.store(&[writer, round], &[round]).unwrap();
                    assert_eq!(store.retrieve(&[writer, round]).unwrap(), Some(vec![round]));
                    assert!(store.delete(&[writer, round]).unwrap());
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..60 {
                let range = store.namespace_at(id).range(&IteratorOptions::default()).unwrap();
                let pairs: Vec<_> = range.map(Result::unwrap).collect();
                let values: std::collections::BTreeSet<_> = pairs.iter().map(|(_, value)| value.to_vec()).collect();
                assert!(values.len() <= 1 && (pairs.is_empty() || pairs.len() == keys.len()), "{pairs:?}");
            }
        });
    });
    assert_eq!(store.namespaces().unwrap().iter().map(|info| info.utilization.pairs).collect::<Vec<_>>(), [0, 40]);
    assert_eq!(store.namespace_at(NamespaceId::FIRST).list(None, 10).unwrap(), Vec::<Box<[u8]>>::new());
    store.close().unwrap();
}
