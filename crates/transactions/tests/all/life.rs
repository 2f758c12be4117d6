//! Transactions one step at a time.

use kvssd_transactions::{
    AbortReason, Access, AccessStep, CommitStep, Granularity, Isolation, PutOutcome, Record, TransactionId,
    TransactionManager, TransactionOptions, TransactionState, ViewStep,
};
use kvssd_types::{Key, NamespaceId, Value};

fn record(key: &[u8]) -> Record<'_> {
    Record { namespace: NamespaceId::FIRST, key: Key::new(key).unwrap() }
}

fn value(bytes: &[u8]) -> Option<Value> {
    Some(Value::from(bytes))
}

fn begin(manager: &mut TransactionManager) -> TransactionId {
    manager.begin(Isolation::TwoPhaseLocking)
}

fn write(manager: &mut TransactionManager, transaction: TransactionId, key: &[u8], bytes: &[u8]) -> AccessStep {
    manager.access(transaction, record(key), &Access::Write(bytes.into()))
}

fn read(manager: &mut TransactionManager, transaction: TransactionId, key: &[u8]) -> AccessStep {
    manager.access(transaction, record(key), &Access::Read)
}

fn put(manager: &mut TransactionManager, transaction: TransactionId) {
    assert!(matches!(manager.commit(transaction), CommitStep::Put(writes) if !writes.is_empty()));
}

/// A manager whose cache knows that `a` is 1.
fn manager() -> TransactionManager {
    let mut manager = TransactionManager::new(&TransactionOptions::default());
    let transaction = begin(&mut manager);
    assert_eq!(write(&mut manager, transaction, b"a", b"1"), AccessStep::Ready(None));
    put(&mut manager, transaction);
    assert!(matches!(manager.put_done(transaction, PutOutcome::Done), CommitStep::Done));
    assert_eq!(manager.state(transaction), TransactionState::Committed);
    manager.free(transaction);
    assert_eq!(manager.state(transaction), TransactionState::Idle);
    manager
}

#[test]
fn an_abort_leaves_the_cache_as_it_was() {
    let mut manager = manager();
    let (one, bytes) = (begin(&mut manager), manager.cache_bytes());
    assert_eq!(write(&mut manager, one, b"a", b"22"), AccessStep::Ready(None));
    assert_eq!(write(&mut manager, one, b"b", b"2"), AccessStep::Ready(None));
    assert_eq!(read(&mut manager, one, b"a"), AccessStep::Ready(value(b"22")));
    manager.abort(one);
    assert_eq!(manager.state(one), TransactionState::Aborted);
    assert_eq!(read(&mut manager, one, b"a"), AccessStep::Aborted(AbortReason::Asked));
    let other = begin(&mut manager);
    assert_eq!(read(&mut manager, other, b"a"), AccessStep::Ready(value(b"1")));
    assert_eq!(read(&mut manager, other, b"b"), AccessStep::Fetch);
    assert_eq!(manager.cache_bytes(), bytes);
}

#[test]
fn locks_are_held_until_the_put_is_done() {
    let mut manager = manager();
    let (one, other) = (begin(&mut manager), begin(&mut manager));
    write(&mut manager, one, b"a", b"2");
    put(&mut manager, one);
    assert_eq!(read(&mut manager, other, b"a"), AccessStep::Wait);
    assert_eq!(manager.woken(), []);
    manager.put_done(one, PutOutcome::Done);
    assert_eq!(manager.woken(), [other]);
    assert_eq!(read(&mut manager, other, b"a"), AccessStep::Ready(value(b"2")));
}

#[test]
fn what_is_not_there_is_fetched_once_and_known_from_then_on() {
    let mut manager = manager();
    let one = begin(&mut manager);
    assert_eq!(read(&mut manager, one, b"b"), AccessStep::Fetch);
    manager.fetched(one, record(b"b"), None);
    assert_eq!(read(&mut manager, one, b"b"), AccessStep::Ready(None));
    let other = begin(&mut manager);
    assert_eq!(read(&mut manager, other, b"b"), AccessStep::Ready(None));
}

#[test]
fn neighbours_wait_for_each_other_where_they_share_a_lock() {
    for (records_per_lock, expected) in [(1, AccessStep::Ready(None)), (16, AccessStep::Wait)] {
        let granularity = Granularity::records(records_per_lock);
        let mut manager = TransactionManager::new(&TransactionOptions { granularity, ..TransactionOptions::default() });
        let (one, other) = (begin(&mut manager), begin(&mut manager));
        write(&mut manager, one, &3u64.to_be_bytes(), b"1");
        assert_eq!(write(&mut manager, other, &4u64.to_be_bytes(), b"1"), expected);
    }
}

#[test]
#[should_panic(expected = "is committed")]
fn nothing_comes_after_a_commit() {
    let mut manager = manager();
    let one = begin(&mut manager);
    assert!(matches!(manager.commit(one), CommitStep::Done));
    read(&mut manager, one, b"a");
}

#[test]
#[should_panic(expected = "nothing left to do but to commit")]
fn nothing_comes_while_a_put_is_under_way() {
    let mut manager = manager();
    let one = begin(&mut manager);
    write(&mut manager, one, b"a", b"2");
    put(&mut manager, one);
    read(&mut manager, one, b"a");
}

/// It waits for the views that are being made, and not for those that come behind it.
#[test]
fn a_commit_gets_its_turn_however_many_snapshots_come() {
    let mut manager = manager();
    let mut snapshot = manager.begin(Isolation::Snapshot);
    assert_eq!(manager.view(snapshot), ViewStep::Make);
    let writer = begin(&mut manager);
    assert_eq!(write(&mut manager, writer, b"a", b"2"), AccessStep::Ready(None));
    assert!(matches!(manager.commit(writer), CommitStep::Wait));
    // There is always one that makes its view.
    for _ in 0..10 {
        let next = manager.begin(Isolation::Snapshot);
        let step = manager.view(next);
        manager.viewed(snapshot, true);
        let woken = manager.woken();
        if woken.contains(&writer) {
            assert_eq!((step, woken), (ViewStep::Wait, vec![writer, next]));
            put(&mut manager, writer);
            assert_eq!(manager.view(next), ViewStep::Wait);
            assert!(matches!(manager.put_done(writer, PutOutcome::Done), CommitStep::Done));
            assert_eq!((manager.woken(), manager.view(next)), (vec![next], ViewStep::Make));
            return;
        }
        snapshot = next;
    }
    panic!("snapshots hold the commit for ever");
}
