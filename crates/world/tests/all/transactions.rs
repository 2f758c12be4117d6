//! Transactions of several threads over a store in a world: they wait for each other's locks, and abort where these form a ring.

use kvssd_host::tx::{AbortReason, Isolation, TransactionError, TransactionOptions, Transactions};
use kvssd_host::{Batch, NamespaceAttributes, NamespaceId, Options as StoreOptions, Store};
use kvssd_runtime::thread;
use kvssd_world::{Options, World};
use std::collections::BTreeSet;
use std::sync::Arc;

const THREADS: u64 = 4;
const ACCOUNTS: u64 = 3;
const MONEY: u64 = 100;

fn transfer(bank: &Transactions<Arc<Store>>, isolation: Isolation, dice: u64) -> Result<(), TransactionError> {
    let accounts = [dice % ACCOUNTS, dice / 8 % ACCOUNTS].map(u64::to_be_bytes);
    let mut transaction = bank.begin(isolation)?;
    for (key, sign) in accounts.iter().zip([-1, 1]) {
        let found = transaction.read(NamespaceId::FIRST, key)?.expect("it was opened");
        let balance = i64::from_be_bytes(found.try_into().expect("eight bytes")) + sign;
        transaction.update(NamespaceId::FIRST, key, &balance.to_be_bytes())?;
    }
    transaction.commit()
}

#[test]
fn transfers_keep_the_sum_in_every_order_of_turns() {
    let (mut deadlocks, mut conflicts) = (0, 0);
    for seed in 0..32 {
        let isolation = [Isolation::TwoPhaseLocking, Isolation::Optimistic][seed as usize % 2];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.kv");
        let run = World::run(Options { loses_turn_one_in: 2, ..Options::of_seed(seed) }, move |world| {
            let options = StoreOptions { create_bytes: 64 << 20, sync: seed % 4 < 2, ..StoreOptions::default() };
            let store = Arc::new(Store::open(&path, options).unwrap());
            for account in 0..ACCOUNTS {
                store.store(&account.to_be_bytes(), &MONEY.to_be_bytes()).unwrap();
            }
            let bank = Arc::new(Transactions::new(store.clone(), &TransactionOptions::default()));
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    let (bank, world) = (bank.clone(), world.clone());
                    world.clone().spawn(world.process(), "teller", move || {
                        let mut aborts = (0, 0);
                        for _ in 0..20 {
                            match transfer(&bank, isolation, world.random_u64() % 64) {
                                Ok(()) => {}
                                Err(TransactionError::Aborted(AbortReason::Deadlock)) => aborts.0 += 1,
                                Err(TransactionError::Aborted(_)) => aborts.1 += 1,
                                Err(other) => panic!("{other}"),
                            }
                            thread::yield_now();
                        }
                        aborts
                    })
                })
                .collect();
            let aborts: Vec<(u32, u32)> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            let balance = |account: u64| store.retrieve(&account.to_be_bytes()).unwrap().unwrap();
            let sum: i64 = (0..ACCOUNTS).map(|account| i64::from_be_bytes(balance(account).try_into().unwrap())).sum();
            assert_eq!(sum as u64, ACCOUNTS * MONEY);
            aborts.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
        });
        let aborts = run.result.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        deadlocks += aborts.0;
        conflicts += aborts.1;
    }
    assert!(deadlocks > 10 && conflicts > 10, "{deadlocks} deadlocks, {conflicts} conflicts");
}

/// Batches write the same value to namespaces, the first and the last of several.
#[test]
fn a_snapshot_sees_a_batch_in_all_namespaces_or_in_none() {
    let mut values = BTreeSet::new();
    for seed in 0..16 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.kv");
        let run = World::run(Options { loses_turn_one_in: 2, ..Options::of_seed(seed) }, move |world| {
            let partitions = 1 + seed as u32 % 2;
            let create_bytes = u64::from(partitions) * (64 << 20);
            let options = StoreOptions { create_bytes, partitions, sync: seed % 4 < 2, ..StoreOptions::default() };
            let store = Arc::new(Store::open(&path, options).unwrap());
            let ordered = NamespaceAttributes { is_ordered: true, ..NamespaceAttributes::PLAIN };
            let made = [(); 4].map(|()| store.create_namespace(ordered.clone()).unwrap().id());
            let both = [made[0], made[3]];
            let put = move |store: &Store, value: u8| {
                let mut batch = Batch::new();
                for namespace in both {
                    batch.store_in(namespace, b"key", &[value]);
                }
                store.batch(&batch).unwrap();
            };
            put(&store, 0);
            let its = store.clone();
            let writer = world.spawn(world.process(), "writer", move || (1..40).for_each(|value| put(&its, value)));
            let transactions = Transactions::new(store, &TransactionOptions::default());
            let seen: BTreeSet<Vec<u8>> = (0..40)
                .map(|_| {
                    let mut snapshot = transactions.begin(Isolation::Snapshot).unwrap();
                    let [first, last] = both.map(|namespace| snapshot.read(namespace, b"key").unwrap().unwrap());
                    assert_eq!(first, last, "a snapshot saw a part of a batch");
                    first
                })
                .collect();
            writer.join().unwrap();
            seen
        });
        values.extend(run.result.unwrap_or_else(|failure| panic!("seed {seed}: {failure}")));
    }
    assert!(values.len() > 10, "snapshots were not taken between batches: {values:?}");
}
