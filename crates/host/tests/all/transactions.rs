//! Transactions of many threads: on a drive in memory that takes its time, and on a store.

use kvssd_host::tx::{
    AbortReason, Isolation, Port, Record, Refusal, Transaction, TransactionError, TransactionOptions, Transactions,
};
use kvssd_host::{Error, NamespaceAttributes, Options, Store};
use kvssd_types::{BatchChange, NamespaceId, Random, Value};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

const BANK: NamespaceId = NamespaceId::FIRST;
const ACCOUNTS: u64 = 16;
const MONEY: u64 = 100;
const THREADS: u64 = 8;

type Pairs = BTreeMap<(NamespaceId, Vec<u8>), Value>;

/// A drive in memory, whose commands take a while.
#[derive(Default)]
struct Memory {
    pairs: Mutex<Pairs>,
    puts: AtomicU64,
    /// The put that fails, and how.
    fails: Mutex<Option<(u64, Error)>>,
}

impl Port for Memory {
    type View = Pairs;

    fn get(&self, record: Record<'_>) -> Result<Option<Value>, Error> {
        thread::yield_now();
        let pairs = self.pairs.lock().unwrap();
        Ok(pairs.get(&(record.namespace, record.key.bytes().to_vec())).cloned())
    }

    fn put(&self, changes: &[BatchChange<'_>]) -> Result<(), Error> {
        let number = self.puts.fetch_add(1, Ordering::Relaxed);
        if let Some((_, error)) = self.fails.lock().unwrap().as_ref().filter(|(which, _)| *which == number) {
            return Err(error.clone());
        }
        thread::sleep(Duration::from_micros(20));
        let mut pairs = self.pairs.lock().unwrap();
        for change in changes {
            let name = (change.namespace, change.key.bytes().to_vec());
            match &change.value {
                Some(value) => pairs.insert(name, value.clone()),
                None => pairs.remove(&name),
            };
        }
        Ok(())
    }

    fn create_view(&self) -> Result<Pairs, Error> {
        Ok(self.pairs.lock().unwrap().clone())
    }

    fn get_in_view(&self, view: &Pairs, record: Record<'_>) -> Result<Option<Value>, Error> {
        Ok(view.get(&(record.namespace, record.key.bytes().to_vec())).cloned())
    }

    fn destroy_view(&self, _view: Pairs) {}
}

/// Fails where something hangs.
fn within_a_minute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    let worker = thread::spawn(move || done.send(work()).expect("somebody waits"));
    match wait.recv_timeout(Duration::from_secs(60)) {
        Ok(result) => {
            worker.join().unwrap();
            result
        }
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("a thread waits for ever"),
        Err(mpsc::RecvTimeoutError::Disconnected) => std::panic::resume_unwind(worker.join().unwrap_err()),
    }
}

fn account(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn open_accounts<P: Port>(bank: &Transactions<P>) {
    let mut transaction = bank.begin(Isolation::TwoPhaseLocking).unwrap();
    for number in 0..ACCOUNTS {
        transaction.insert(BANK, &account(number), &MONEY.to_be_bytes()).unwrap();
    }
    transaction.commit().unwrap();
}

fn balance<P: Port>(transaction: &mut Transaction<'_, P>, number: u64) -> Result<u64, TransactionError> {
    let value = transaction.read(BANK, &account(number))?.expect("accounts are not closed");
    Ok(u64::from_be_bytes(value.try_into().unwrap()))
}

fn transfer<P: Port>(
    bank: &Transactions<P>,
    isolation: Isolation,
    random: &mut Random,
) -> Result<(), TransactionError> {
    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
    let mut transaction = bank.begin(isolation)?;
    let left = balance(&mut transaction, from)?;
    let amount = random.below(10).min(left);
    transaction.update(BANK, &account(from), &(left - amount).to_be_bytes())?;
    let there = balance(&mut transaction, to)?;
    transaction.update(BANK, &account(to), &(there + amount).to_be_bytes())?;
    transaction.commit()
}

/// What all accounts hold together, as one transaction sees it.
fn sum<P: Port>(bank: &Transactions<P>, isolation: Isolation) -> Result<u64, TransactionError> {
    let mut transaction = bank.begin(isolation)?;
    let sum = (0..ACCOUNTS).map(|number| balance(&mut transaction, number)).sum::<Result<u64, _>>()?;
    transaction.commit()?;
    Ok(sum)
}

/// Threads transfer and audit; gives how often an audit came to its end.
fn trade<P: Port>(bank: &Transactions<P>, isolations: &[Isolation], rounds: u64) -> u64 {
    let audits = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let audits = &audits;
            scope.spawn(move || {
                let mut random = Random::stream(7, number);
                for _ in 0..rounds {
                    let isolation = isolations[random.below(isolations.len() as u64) as usize];
                    let writes = if isolation == Isolation::Snapshot { Isolation::Optimistic } else { isolation };
                    let ended = if random.below(8) == 0 {
                        sum(bank, isolation).map(|sum| {
                            assert_eq!(sum, ACCOUNTS * MONEY);
                            audits.fetch_add(1, Ordering::Relaxed);
                        })
                    } else {
                        transfer(bank, writes, &mut random)
                    };
                    match ended {
                        Ok(()) | Err(TransactionError::Aborted(AbortReason::Deadlock | AbortReason::Conflict)) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    audits.into_inner()
}

#[test]
fn transfers_keep_the_sum_however_threads_meet() {
    for isolations in [
        &[Isolation::TwoPhaseLocking][..],
        &[Isolation::Optimistic],
        &[Isolation::TwoPhaseLocking, Isolation::Optimistic, Isolation::Snapshot],
    ] {
        let (counters, audits) = within_a_minute(move || {
            // Half of the accounts have no room in the cache.
            let options = TransactionOptions { cache_bytes: 1200, ..TransactionOptions::default() };
            let bank = Transactions::new(Memory::default(), &options);
            open_accounts(&bank);
            let audits = trade(&bank, isolations, 1000);
            assert_eq!(sum(&bank, Isolation::TwoPhaseLocking), Ok(ACCOUNTS * MONEY));
            (bank.counters(), audits)
        });
        assert!(counters.cache.misses > 0 && counters.cache.hits > 0, "{counters:?}");
        let (locks, optimistic) =
            (isolations.contains(&Isolation::TwoPhaseLocking), isolations.contains(&Isolation::Optimistic));
        // An audit that locks nothing may never find a quiet moment.
        assert!(audits > 0 || !locks, "{counters:?}");
        assert!(!locks || counters.deadlocks > 0, "{counters:?}");
        assert!(!optimistic || counters.conflicts > 0, "{counters:?}");
    }
}

#[test]
fn a_store_has_what_was_committed_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    for design in ["plus", "iter"] {
        let path = path.with_extension(design);
        let options = Options { create_bytes: 64 << 20, design: design.to_owned(), ..Options::default() };
        let store = Store::open(&path, options).unwrap();
        let bank = Transactions::new(store, &TransactionOptions::default());
        open_accounts(&bank);
        let isolations: &[Isolation] = if design == "iter" {
            &[Isolation::TwoPhaseLocking, Isolation::Snapshot]
        } else {
            assert!(matches!(bank.begin(Isolation::Snapshot), Err(TransactionError::Drive(Error::Refused { .. }))));
            &[Isolation::TwoPhaseLocking, Isolation::Optimistic]
        };
        let bank = within_a_minute(move || {
            assert!(trade(&bank, isolations, 100) > 0);
            bank
        });
        drop(bank.into_port());
        let bank = Transactions::new(Store::open(&path, Options::default()).unwrap(), &TransactionOptions::default());
        assert_eq!(sum(&bank, Isolation::TwoPhaseLocking), Ok(ACCOUNTS * MONEY));
    }
}

/// A second table, whose keys have an order.
const SAVINGS: &str = "savings";

/// A bank with two tables on one drive, each with an index of its own.
fn bank_of_two_tables(path: &Path) -> Transactions<Store> {
    let store = Store::open(path, Options { create_bytes: 64 << 20, ..Options::default() }).unwrap();
    if store.was_created() {
        let named = NamespaceAttributes { name: Some(SAVINGS.to_owned()), ..NamespaceAttributes::PLAIN };
        store.create_namespace(NamespaceAttributes { is_ordered: true, ..named }).unwrap();
    }
    let bank = Transactions::new(store, &TransactionOptions::default());
    if bank.port().was_created() {
        let mut transaction = bank.begin(Isolation::TwoPhaseLocking).unwrap();
        for table in tables(bank.port()) {
            for number in 0..ACCOUNTS {
                transaction.insert(table, &account(number), &MONEY.to_be_bytes()).unwrap();
            }
        }
        transaction.commit().unwrap();
    }
    bank
}

fn tables(store: &Store) -> [NamespaceId; 2] {
    [BANK, store.namespace(SAVINGS).unwrap().id()]
}

/// Moves money of one account from one table to the other, and puts down in both that it did.
fn save(bank: &Transactions<Store>, random: &mut Random) -> Result<(), TransactionError> {
    let key = account(random.below(ACCOUNTS));
    let mut ends = tables(bank.port());
    if random.below(2) == 0 {
        ends.reverse();
    }
    let mut transaction = bank.begin(Isolation::TwoPhaseLocking)?;
    let mut balances = [0; 2];
    for (table, balance) in ends.iter().zip(&mut balances) {
        let value = transaction.read_for_update(*table, &key)?.expect("accounts are not closed");
        *balance = u64::from_be_bytes(value.try_into().unwrap());
    }
    let amount = random.below(10).min(balances[0]);
    transaction.update(ends[0], &key, &(balances[0] - amount).to_be_bytes())?;
    transaction.update(ends[1], &key, &(balances[1] + amount).to_be_bytes())?;
    transaction.commit()
}

/// What each customer has in both tables together, from the drive itself.
fn check_customers(store: &Store) {
    let [accounts, savings] = ["1", SAVINGS].map(|name| store.namespace(name).unwrap());
    for number in 0..ACCOUNTS {
        let both = [accounts, savings].map(|table| table.retrieve(&account(number)).unwrap().unwrap());
        let sum: u64 = both.iter().map(|value| u64::from_be_bytes(value[..].try_into().unwrap())).sum();
        assert_eq!(sum, 2 * MONEY, "account {number}");
    }
}

#[test]
fn a_transaction_over_two_namespaces_is_whole_after_a_drop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    for life in 0..4 {
        let bank = bank_of_two_tables(&path);
        check_customers(bank.port());
        let savings = tables(bank.port())[1];
        let mut view = bank.begin(Isolation::Snapshot).unwrap();
        let before = view.read(savings, &account(0)).unwrap();
        thread::scope(|scope| {
            for number in 0..THREADS {
                let bank = &bank;
                scope.spawn(move || {
                    let mut random = Random::stream(life, number);
                    for _ in 0..100 {
                        match save(bank, &mut random) {
                            Ok(()) | Err(TransactionError::Aborted(AbortReason::Deadlock)) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                });
            }
        });
        assert_eq!(view.read(savings, &account(0)).unwrap(), before, "a snapshot stays as it was");
        assert!(matches!(view.read(BANK, &account(0)), Err(TransactionError::Drive(Error::Refused { .. }))));
        drop(view);
        check_customers(bank.port());
    }
}

/// Saves for ever, and tells now and then that it did: it is to be killed.
#[test]
#[ignore = "another test starts and kills it"]
fn saver() {
    let Ok(path) = std::env::var("KVSSD_BANK") else { return };
    let bank = bank_of_two_tables(Path::new(&path));
    let mut random = Random::new(std::process::id().into());
    loop {
        (0..16).for_each(|_| save(&bank, &mut random).unwrap());
        println!("saved");
    }
}

#[test]
fn a_transaction_over_two_namespaces_is_whole_after_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.kv");
    // A put that made its changes one by one was found within some ten lives, six times of six.
    for life in 0..40 {
        let mut saver = Command::new(std::env::current_exe().unwrap());
        saver.args(["--ignored", "--exact", "transactions::saver", "--nocapture"]).env("KVSSD_BANK", &path);
        let mut child = saver.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let saved = lines.by_ref().filter(|line| line.as_ref().unwrap() == "saved").take(5).count();
        thread::sleep(Duration::from_micros(life * 37 % 500));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(saved, 5);
        check_customers(bank_of_two_tables(&path).port());
    }
}

#[test]
fn a_transaction_that_waits_is_aborted_when_it_is_not_wanted_any_more() {
    for isolation in [Isolation::TwoPhaseLocking, Isolation::Optimistic] {
        within_a_minute(move || {
            let bank = Transactions::new(Memory::default(), &TransactionOptions::default());
            let mut holder = bank.begin(Isolation::TwoPhaseLocking).unwrap();
            holder.write(BANK, b"account", b"1").unwrap();
            let mut waits = bank.begin_unless(isolation, || true).unwrap();
            let ended = waits.write(BANK, b"account", b"2").and_then(|()| waits.commit());
            assert_eq!(ended, Err(TransactionError::Aborted(AbortReason::Asked)));
            holder.commit().unwrap();
            assert_eq!(bank.begin(isolation).unwrap().read(BANK, b"account").unwrap().as_deref(), Some(&b"1"[..]));
        });
    }
}

#[test]
fn a_transaction_reads_its_writes_and_nobody_else_does_before_it_commits() {
    let bank = Transactions::new(Memory::default(), &TransactionOptions::default());
    let mut one = bank.begin(Isolation::TwoPhaseLocking).unwrap();
    one.insert(BANK, b"a", b"1").unwrap();
    assert_eq!(one.insert(BANK, b"a", b"2"), Err(TransactionError::Refused(Refusal::RecordExists)));
    assert_eq!(one.update(BANK, b"b", b"2"), Err(TransactionError::Refused(Refusal::NoSuchRecord)));
    assert_eq!(one.read(BANK, b"a").unwrap().as_deref(), Some(&b"1"[..]));
    let mut other = bank.begin(Isolation::Optimistic).unwrap();
    assert_eq!(other.read(BANK, b"a"), Ok(None));
    one.commit().unwrap();
    assert_eq!(other.commit(), Err(TransactionError::Aborted(AbortReason::Conflict)));
    let mut third = bank.begin(Isolation::TwoPhaseLocking).unwrap();
    third.delete(BANK, b"a").unwrap();
    assert_eq!(third.read(BANK, b"a"), Ok(None));
    drop(third);
    let mut snapshot = bank.begin(Isolation::Snapshot).unwrap();
    assert_eq!(snapshot.write(BANK, b"a", b"3"), Err(TransactionError::Refused(Refusal::ReadOnly)));
    let mut later = bank.begin(Isolation::TwoPhaseLocking).unwrap();
    later.write(BANK, b"a", b"4").unwrap();
    later.commit().unwrap();
    assert_eq!(snapshot.read(BANK, b"a").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_put_that_fails_is_no_commit_or_in_doubt() {
    let bank = Transactions::new(Memory::default(), &TransactionOptions::default());
    let write = |value: &[u8]| {
        let mut transaction = bank.begin(Isolation::TwoPhaseLocking).unwrap();
        transaction.write(BANK, b"a", value).unwrap();
        transaction.commit()
    };
    let read = || bank.begin(Isolation::TwoPhaseLocking).unwrap().read(BANK, b"a").unwrap();
    write(b"1").unwrap();
    *bank.port().fails.lock().unwrap() = Some((1, Error::Full));
    assert_eq!(write(b"2"), Err(TransactionError::Drive(Error::Full)));
    assert_eq!(read().as_deref(), Some(&b"1"[..]));
    let failure = Error::Io { why: "the disk is gone".to_owned() };
    *bank.port().fails.lock().unwrap() = Some((2, failure.clone()));
    assert_eq!(write(b"3"), Err(TransactionError::InDoubt(failure)));
    // The drive is asked again, and knows.
    let misses = bank.counters().cache.misses;
    assert_eq!(read().as_deref(), Some(&b"1"[..]));
    assert_eq!(bank.counters().cache.misses, misses + 1);
}

#[test]
fn nothing_of_a_deleted_namespace_is_read_in_another_one_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { create_bytes: 64 << 20, ..Options::default() };
    let store = Arc::new(Store::open(folder.path().join("drive.kv"), options).unwrap());
    let make = || store.create_namespace(NamespaceAttributes::PLAIN).unwrap().id();
    let bank = Transactions::new(Arc::clone(&store), &TransactionOptions::default());
    let table = make();
    let mut transaction = bank.begin(Isolation::TwoPhaseLocking).unwrap();
    transaction.write(table, b"a", b"old").unwrap();
    transaction.commit().unwrap();
    store.delete_namespace(&table.to_string()).unwrap();
    let of_none = bank.begin(Isolation::TwoPhaseLocking).unwrap().read(table, b"a");
    assert_eq!(of_none, Err(TransactionError::Drive(Error::NoNamespace { name: table.to_string() })));
    while make() != table {}
    for isolation in [Isolation::TwoPhaseLocking, Isolation::Optimistic] {
        let mut transaction = bank.begin(isolation).unwrap();
        assert_eq!(transaction.read(table, b"a"), Ok(None));
        transaction.insert(table, b"a", b"new").unwrap();
    }
}

#[test]
fn handles_go_to_other_threads() {
    let bank = Arc::new(Transactions::new(Memory::default(), &TransactionOptions::default()));
    thread::scope(|scope| {
        let mut transaction = bank.begin(Isolation::TwoPhaseLocking).unwrap();
        transaction.write(BANK, b"a", b"1").unwrap();
        scope.spawn(move || transaction.commit().unwrap());
    });
    assert_eq!(bank.counters().committed, 1);
}
