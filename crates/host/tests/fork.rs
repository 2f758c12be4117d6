//! A store belongs to the process that opened it.
//!
//! ```text
//!   parent   open, store ........ fork ........ store, close, open: all is there
//!   child                          every call is refused; drop, and exit: the parent does not notice
//! ```

use fork::{Fork, fork, waitpid_nohang};
use kvssd_host::tx::{Isolation, Transaction, TransactionError, TransactionOptions, Transactions};
use kvssd_host::{Batch, Error, Missing, NamespaceAttributes, NamespaceId, Options, Store};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn small(missing: Missing) -> Options {
    Options { missing, create_bytes: 64 << 20, ..Options::default() }
}

fn open(path: &Path) -> Store {
    Store::open(path, small(Missing::Create)).unwrap()
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Does something in a child, which ends with it.
fn child(work: impl FnOnce()) -> ! {
    exit(i32::from(catch_unwind(AssertUnwindSafe(work)).is_err()))
}

/// Waits for a child, all of whose checks must hold.
fn wait_for(child: i32) {
    let until = Instant::now() + PATIENCE;
    loop {
        match waitpid_nohang(child).unwrap() {
            Some(status) => return assert_eq!(status, 0, "the child says why"),
            None => assert!(Instant::now() < until, "the child hangs"),
        }
        sleep(Duration::from_millis(5));
    }
}

/// Every call of a store is refused, and says whose it is.
fn all_is_refused(store: &Store, parent: u32) {
    fn check<T: std::fmt::Debug>(result: Result<T, Error>, parent: u32) {
        assert_eq!(result.unwrap_err(), Error::Forked { process: parent });
    }
    let mut batch = Batch::new();
    batch.store(b"a", b"b");
    check(store.store(b"key", b"of the child"), parent);
    check(store.delete(&key(1)), parent);
    check(store.retrieve(&key(1)), parent);
    check(store.retrieve_many(&[&key(1)]), parent);
    check(store.exist(&key(1)), parent);
    check(store.list(None, 10), parent);
    check(store.keys(None).next().unwrap(), parent);
    check(store.pairs().next().unwrap(), parent);
    check(store.batch(&batch), parent);
    check(store.bulk(&batch), parent);
    check(store.flush(), parent);
    check(store.stats(), parent);
    check(store.namespaces(), parent);
    check(store.namespace("1").map(|_| ()), parent);
    check(store.create_namespace(NamespaceAttributes::PLAIN).map(|_| ()), parent);
    check(store.own_namespace().store_each([(&b"k"[..], &b"v"[..])], |_| ()), parent);
}

#[test]
fn a_forked_child_is_refused_and_the_parent_goes_on() {
    for partitions in [1, 3] {
        a_forked_child_is_refused(partitions);
    }
}

fn a_forked_child_is_refused(partitions: u32) {
    let folder = tempfile::tempdir().unwrap();
    let (path, parent) = (folder.path().join("drive.kv"), std::process::id());
    let create_bytes = u64::from(partitions) * (64 << 20);
    let store = Store::open(&path, Options { create_bytes, partitions, ..Options::default() }).unwrap();
    (0..1000).for_each(|number| store.store(&key(number), &[7; 300]).unwrap());
    let mut children = Vec::new();
    for way in 0..4 {
        match fork().unwrap() {
            Fork::Parent(child) => children.push(child),
            Fork::Child => child(|| {
                all_is_refused(&store, parent);
                match way {
                    0 => assert_eq!(store.close(), Err(Error::Forked { process: parent })),
                    1 => drop(store),
                    2 => std::mem::forget(store),
                    // It is taken for good by the parent, whose name is still in it.
                    _ => {
                        drop(store);
                        let refused = Store::open(&path, small(Missing::Fail)).map(|_| ()).unwrap_err();
                        let Error::Locked { holder, .. } = refused else { panic!("{refused}") };
                        assert!(holder.starts_with(&format!("process {parent} ")), "{holder}");
                    }
                }
            }),
        }
    }
    (1000..2000).for_each(|number| store.store(&key(number), &[8; 300]).unwrap());
    children.into_iter().for_each(wait_for);
    (2000..3000).for_each(|number| store.store(&key(number), &[9; 300]).unwrap());
    let refused = Store::open(&path, small(Missing::Fail)).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::Locked { .. }), "the lock went with a child: {refused}");
    store.close().unwrap();
    let found: BTreeMap<_, _> = open(&path).pairs().map(Result::unwrap).collect();
    let wanted =
        (0..3000).map(|number| (Box::from(key(number)), vec![7 + (number / 1000) as u8; 300].into())).collect();
    assert!(found == wanted, "{} of 3000 pairs are as they were", found.len());
}

#[test]
fn an_iterator_and_a_transaction_that_cross_a_fork_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, parent) = (folder.path().join("drive.kv"), std::process::id());
    let store = open(&path);
    let ordered = NamespaceAttributes { is_ordered: true, ..NamespaceAttributes::PLAIN };
    let accounts = store.create_namespace(ordered).unwrap().id();
    (0..100).for_each(|number| store.namespace_at(accounts).store(&key(number), b"old").unwrap());
    let bank = Transactions::new(store, &TransactionOptions::default());
    let mut keys = bank.port().namespace_at(accounts).keys(None);
    keys.next().unwrap().unwrap();
    let mut transfer = bank.begin(Isolation::TwoPhaseLocking).unwrap();
    transfer.update(accounts, &key(1), b"new").unwrap();
    let snapshot = bank.begin(Isolation::Snapshot).unwrap();
    let mut children = Vec::new();
    for way in 0..2 {
        match fork().unwrap() {
            Fork::Parent(child) => children.push(child),
            Fork::Child => child(|| {
                let forked = || Error::Forked { process: parent };
                assert_eq!(keys.next(), Some(Err(forked())));
                assert_eq!(keys.next().map(|key| key.is_err()), Some(true), "nor does it end as if that were all");
                assert_eq!(transfer.read(accounts, &key(1)), Err(TransactionError::Drive(forked())));
                assert_eq!(transfer.write(accounts, &key(1), b""), Err(TransactionError::Drive(forked())));
                let begun = bank.begin(Isolation::Optimistic).map(|_: Transaction<'_, Store>| ());
                assert_eq!(begun, Err(TransactionError::Drive(forked())));
                drop(snapshot);
                match way {
                    0 => assert_eq!(transfer.commit(), Err(TransactionError::Drive(forked()))),
                    _ => transfer.abort(),
                }
            }),
        }
    }
    children.into_iter().for_each(wait_for);
    assert_eq!(keys.count(), 99);
    transfer.commit().unwrap();
    drop(snapshot);
    assert_eq!(bank.port().namespace_at(accounts).retrieve(&key(1)).unwrap().unwrap(), b"new");
    bank.into_port().close().unwrap();
    assert_eq!(open(&path).namespace_at(accounts).retrieve(&key(1)).unwrap().unwrap(), b"new");
}

#[test]
fn a_child_never_waits_for_a_thread_that_it_does_not_have() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let options = Options { sync: true, ..small(Missing::Create) };
    let store = Arc::new(Store::open(&path, options).unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..3u32)
        .map(|thread| {
            let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut number = thread << 24;
                while !stop.load(Ordering::Relaxed) {
                    store.store(&key(number), &[thread as u8; 100]).unwrap();
                    number += 1;
                }
                number
            })
        })
        .collect();
    for _ in 0..20 {
        match fork().unwrap() {
            Fork::Parent(child) => wait_for(child),
            Fork::Child => child(|| {
                assert!(matches!(store.store(b"a", b"b"), Err(Error::Forked { .. })));
                drop(store);
            }),
        }
    }
    stop.store(true, Ordering::Relaxed);
    let ends: Vec<u32> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    Arc::into_inner(store).unwrap().close().unwrap();
    let store = open(&path);
    for (thread, end) in ends.into_iter().enumerate() {
        let begin = (thread as u32) << 24;
        assert!((begin..end).all(|number| store.exist(&key(number)).unwrap()), "thread {thread} lost something");
    }
    assert_eq!(store.own_namespace().id(), NamespaceId::FIRST);
}

#[test]
fn a_program_that_is_started_inherits_no_image() {
    if !Path::new("/proc/self/fd").exists() {
        eprintln!("SKIPPED: this system does not tell which files a process has open");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    let store = open(&path);
    let listed = Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("->") && !listed.contains("drive.kv"), "{listed}");
    store.close().unwrap();
}
