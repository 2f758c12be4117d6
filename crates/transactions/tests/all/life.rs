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

/// Another transaction writes records, and its Put is done.
fn change(manager: &mut TransactionManager, changes: &[(&[u8], Option<&[u8]>)]) {
    let other = begin(manager);
    for (key, bytes) in changes {
        let access = bytes.map_or(Access::Delete, |bytes| Access::Write(bytes.into()));
        assert_eq!(manager.access(other, record(key), &access), AccessStep::Ready(None));
    }
    put(manager, other);
    assert!(matches!(manager.put_done(other, PutOutcome::Done), CommitStep::Done));
}

#[test]
fn a_condition_on_what_an_optimistic_transaction_has_read_does_not_contradict_it() {
    type Case = (&'static [u8], Option<&'static [u8]>, Option<&'static [u8]>, Access);
    let cases: [Case; 2] = [
        (b"k", None, Some(b"other"), Access::Insert(b"mine"[..].into())),
        (b"a", Some(b"1"), None, Access::Update(b"mine"[..].into())),
    ];
    for (key, before, after, access) in cases {
        let mut manager = manager();
        change(&mut manager, &[(key, before)]);
        let one = manager.begin(Isolation::Optimistic);
        assert_eq!(read(&mut manager, one, key), AccessStep::Ready(before.and_then(value)));
        change(&mut manager, &[(key, after)]);
        assert_eq!(read(&mut manager, one, key), AccessStep::Ready(before.and_then(value)), "it is as it was");
        assert_eq!(manager.access(one, record(key), &access), AccessStep::Ready(None), "{access:?}");
        assert!(matches!(manager.commit(one), CommitStep::Aborted(AbortReason::Conflict)), "{access:?}");
    }
}

/// The sum of `x` and `y` is always 10.
#[test]
fn an_optimistic_transaction_sees_only_what_was_there_together() {
    for is_done in [true, false] {
        let mut manager = manager();
        change(&mut manager, &[(b"x", Some(b"4")), (b"y", Some(b"6"))]);
        let one = manager.begin(Isolation::Optimistic);
        assert_eq!(read(&mut manager, one, b"x"), AccessStep::Ready(value(b"4")));
        change(&mut manager, &[(b"a", Some(b"2"))]);
        assert_eq!(
            read(&mut manager, one, b"a"),
            AccessStep::Ready(value(b"2")),
            "nothing that it has read was changed"
        );
        // A Put that is under way may be in what is read, or not.
        let other = begin(&mut manager);
        write(&mut manager, other, b"x", b"0");
        write(&mut manager, other, b"y", b"10");
        put(&mut manager, other);
        if is_done {
            manager.put_done(other, PutOutcome::Done);
        }
        assert_eq!(read(&mut manager, one, b"x"), AccessStep::Ready(value(b"4")));
        assert_eq!(read(&mut manager, one, b"y"), AccessStep::Aborted(AbortReason::Conflict));
        assert_eq!(manager.counters().conflicts, 1);
    }
}

/// The Put comes between the Fetch and its answer.
#[test]
fn an_optimistic_transaction_that_was_late_at_the_drive_is_aborted() {
    let mut manager = manager();
    let one = manager.begin(Isolation::Optimistic);
    assert_eq!(read(&mut manager, one, b"a"), AccessStep::Ready(value(b"1")));
    assert_eq!(read(&mut manager, one, b"y"), AccessStep::Fetch);
    change(&mut manager, &[(b"a", Some(b"2")), (b"y", Some(b"2"))]);
    manager.fetched(one, record(b"y"), value(b"2"));
    assert_eq!(read(&mut manager, one, b"y"), AccessStep::Aborted(AbortReason::Conflict));
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
