//! Histories told by hand, and those of engines that are right and wrong.

use super::*;
use crate::transactions::HotRecords;
use crate::transactions::reference::{Planted, Reference};
use crate::transactions::tests::live_before;
use kvssd_types::{NamespaceId, Random};
use proptest::prelude::*;

fn row(number: u64) -> RowId {
    RowId { table: NamespaceId(1), number }
}

fn loaded(number: u64) -> Version {
    Some(Stamp::loaded(row(number)))
}

fn by(attempt: u64, write: u64) -> Version {
    Some(Stamp::written(attempt, write))
}

fn read(number: u64, stamp: Version) -> Access {
    Access::Read { row: row(number), stamp }
}

fn write(number: u64, stamp: Version) -> Access {
    Access::Write { row: row(number), stamp: stamp.unwrap() }
}

fn commit(history: &mut History, number: u64, accesses: &[Access]) {
    history.ended(&Attempt { number, terminal: 0, kind: 0, end: Some(End::Commit), accesses });
}

fn abort(history: &mut History, number: u64, accesses: &[Access]) {
    history.ended(&Attempt { number, terminal: 0, kind: 0, end: None, accesses });
}

fn names(verdict: &Verdict) -> Vec<&'static str> {
    verdict.anomalies.keys().copied().collect()
}

#[test]
fn one_after_the_other_is_serializable() {
    let mut history = History::new();
    commit(&mut history, 1, &[read(1, loaded(1)), write(1, by(1, 0))]);
    abort(&mut history, 2, &[read(1, by(1, 0)), write(1, by(2, 0))]);
    commit(&mut history, 3, &[read(1, by(1, 0)), write(1, by(3, 0)), read(1, by(3, 0)), write(1, by(3, 1))]);
    commit(&mut history, 4, &[read(1, by(3, 1)), read(2, None)]);
    commit(&mut history, 5, &[write(2, by(5, 0))]);
    let verdict = history.verdict();
    assert!(verdict.is_serializable(), "{verdict}");
    // wr and ww of 1 to 3, wr of 3 to 4, rw of 4 to 5; and rw of 1, who read what it replaced, is none.
    assert_eq!((verdict.transactions, verdict.dependencies, verdict.versions_unordered), (4, 4, 0));
}

#[test]
fn lost_updates_have_a_name_and_a_cycle() {
    let mut history = History::new();
    commit(&mut history, 1, &[read(1, loaded(1)), write(1, by(1, 0))]);
    commit(&mut history, 2, &[read(1, loaded(1)), write(1, by(2, 0))]);
    let verdict = history.verdict();
    assert_eq!(names(&verdict), ["lost update"]);
    assert_eq!(verdict.cycle.as_ref().unwrap().dependencies.len(), 2);
    assert!(verdict.to_string().contains("T1 and T2 read the same version of 1/1"), "{verdict}");
}

#[test]
fn write_skew_is_a_cycle_of_two_antidependencies() {
    let mut history = History::new();
    commit(&mut history, 1, &[read(1, loaded(1)), read(2, loaded(2)), write(1, by(1, 0))]);
    commit(&mut history, 2, &[read(1, loaded(1)), read(2, loaded(2)), write(2, by(2, 0))]);
    let verdict = history.verdict();
    assert!(verdict.anomalies.is_empty());
    assert_eq!(verdict.cycle.as_ref().unwrap().name, "G2");
    assert!(verdict.to_string().ends_with("cycle: G2: C0 -rw 1/2-> C1 -rw 1/1-> C0"), "{verdict}");
}

#[test]
fn read_skew_and_circular_information_flow_are_told_apart() {
    let mut skew = History::new();
    commit(&mut skew, 1, &[read(1, loaded(1)), write(1, by(1, 0)), read(2, loaded(2)), write(2, by(1, 1))]);
    commit(&mut skew, 2, &[read(1, loaded(1)), read(2, by(1, 1))]);
    assert_eq!(skew.verdict().cycle.unwrap().name, "G-single");

    let mut flow = History::new();
    commit(&mut flow, 1, &[write(1, by(1, 0)), read(2, by(2, 0))]);
    commit(&mut flow, 2, &[write(2, by(2, 0)), read(1, by(1, 0))]);
    assert_eq!(flow.verdict().cycle.unwrap().name, "G1c");
}

#[test]
fn reads_of_what_must_not_be_seen_have_names() {
    let mut history = History::new();
    abort(&mut history, 1, &[write(1, by(1, 0))]);
    commit(&mut history, 2, &[read(1, by(1, 0))]);
    commit(&mut history, 3, &[read(2, by(9, 0))]);
    commit(&mut history, 4, &[write(3, by(4, 0)), write(3, by(4, 1))]);
    commit(&mut history, 5, &[read(3, by(4, 0))]);
    commit(&mut history, 6, &[write(4, by(6, 0)), read(4, loaded(4))]);
    commit(&mut history, 7, &[read(5, loaded(5)), read(5, None)]);
    commit(&mut history, 8, &[read(6, loaded(7))]);
    let verdict = history.verdict();
    let all = ["aborted read", "dirty read", "fuzzy read", "intermediate read", "own write unseen", "wrong row"];
    assert_eq!(names(&verdict), all);
    assert_eq!(verdict.examples.len(), all.len());
}

#[test]
fn blind_writes_have_a_place_when_there_is_one_and_are_counted_else() {
    let mut history = History::new();
    commit(&mut history, 1, &[read(1, loaded(1)), write(1, by(1, 0))]);
    // Who wrote without a look comes behind 1, so that 3, who saw it and the beginning of row 2, comes behind too.
    commit(&mut history, 2, &[write(1, by(2, 0)), read(2, loaded(2)), write(2, by(2, 1))]);
    commit(&mut history, 3, &[read(1, by(1, 0)), read(2, by(2, 1))]);
    let verdict = history.verdict();
    assert_eq!(verdict.versions_unordered, 0);
    assert_eq!(verdict.cycle.unwrap().name, "G-single");

    commit(&mut history, 4, &[write(1, by(4, 0))]);
    let verdict = history.verdict();
    assert_eq!((verdict.versions_unordered, verdict.is_serializable()), (2, true));
}

proptest! {
    #[test]
    fn serial_histories_pass(seed: u64, transactions in 1u64..60) {
        let mut random = Random::new(seed);
        let mut now: Vec<Version> = (0..5).map(loaded).collect();
        let mut history = History::new();
        for attempt in 1..=transactions {
            let mut accesses = Vec::new();
            for write_number in 0..random.below(6) {
                let at = random.below(5);
                accesses.push(read(at, now[at as usize]));
                if random.below(2) == 0 {
                    now[at as usize] = by(attempt, write_number);
                    accesses.push(write(at, now[at as usize]));
                }
            }
            commit(&mut history, attempt, &accesses);
        }
        prop_assert!(history.verdict().is_serializable());
    }
}

#[test]
fn a_million_transactions_are_judged_in_seconds() {
    let mut random = Random::new(5);
    let mut now: Vec<Version> = (0..1000).map(loaded).collect();
    let mut history = History::new();
    for attempt in 1..=1_000_000 {
        let [left, right] = [random.below(1000), random.below(1000)];
        let accesses = [read(left, now[left as usize]), read(right, now[right as usize]), write(right, by(attempt, 0))];
        now[right as usize] = by(attempt, 0);
        commit(&mut history, attempt, &accesses);
    }
    assert!(history.verdict().is_serializable());
    // One look at what was there long ago.
    commit(&mut history, 1_000_001, &[read(7, loaded(7)), write(7, by(1_000_001, 0))]);
    let verdict = history.verdict();
    assert_eq!(names(&verdict), ["lost update"]);
    assert!(verdict.cycle.is_some());
}

fn judge(planted: Planted, transactions: u64) -> Verdict {
    let mut history = History::new();
    let mut workload = HotRecords::new(100, 100);
    let life = live_before(&mut workload, &mut Reference::quick(planted), 8, transactions, &mut history);
    assert!(life.consistency.holds());
    let verdict = history.verdict();
    assert_eq!(verdict.transactions, life.report.kinds.iter().map(|kind| kind.committed).sum::<u64>());
    assert_eq!(verdict.versions_unordered, 0);
    verdict
}

#[test]
fn a_hundred_thousand_concurrent_transactions_of_the_reference_are_serializable() {
    let verdict = judge(Planted::Nothing, 110_000);
    assert!(verdict.is_serializable(), "{verdict}");
    assert!(verdict.transactions > 100_000 && verdict.dependencies > verdict.transactions, "{verdict:?}");
}

#[test]
fn every_planted_bug_is_found_and_called_by_its_name() {
    let early = judge(Planted::ReadLocksReleasedEarly, 2_000);
    assert!(early.anomalies.contains_key("lost update") && early.cycle.is_some(), "{early}");
    let unlocked = judge(Planted::ReadsForUpdateUnlocked, 2_000);
    assert!(unlocked.anomalies.contains_key("lost update"), "{unlocked}");
    let seen = judge(Planted::WritesSeenEarly, 2_000);
    assert!(seen.anomalies.contains_key("aborted read"), "{seen}");
    let lost = judge(Planted::LastWriteLost, 2_000);
    assert!(lost.anomalies.contains_key("lost update"), "{lost}");
}
