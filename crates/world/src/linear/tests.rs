use super::*;
use proptest::prelude::*;

#[test]
fn one_after_the_other_each_sees_the_last() {
    let mut history = vec![
        Call::retrieve(None, 0, 1),
        Call::store(1, 2, 3),
        Call::retrieve(Some(1), 4, 5),
        Call::delete(true, 6, 7),
        Call::delete(false, 8, 9),
        Call::retrieve(None, 10, 11),
    ];
    assert_eq!(check(&history), Ok(()));
    history.push(Call::retrieve(Some(1), 12, 13));
    let violation = check(&history).unwrap_err();
    assert_eq!((violation.call, &violation.under_way[..], &violation.contents[..]), (6, &[6][..], &[None][..]));
}

/// Each is what a fault of a drive or a host looks like.
#[test]
fn planted_violations_are_found() {
    let long = Call::store(1, 0, 100);
    for (what, history) in [
        (
            "made again behind a newer one",
            vec![long, Call::retrieve(Some(1), 5, 6), Call::store(2, 10, 20), Call::retrieve(Some(1), 50, 60)],
        ),
        ("a store that is lost", vec![Call::store(1, 0, 1), Call::retrieve(None, 2, 3)]),
        ("an old value", vec![Call::store(1, 0, 1), Call::store(2, 2, 3), Call::retrieve(Some(1), 4, 5)]),
        ("a value of nobody", vec![Call::store(1, 0, 1), Call::retrieve(Some(9), 2, 3)]),
        ("a value before it is stored", vec![Call::retrieve(Some(1), 0, 1), Call::store(1, 2, 3)]),
        (
            "a delete that is undone",
            vec![Call::store(1, 0, 1), Call::delete(true, 2, 3), Call::retrieve(Some(1), 4, 5)],
        ),
        (
            "a delete that is made twice",
            vec![
                Call::store(1, 0, 1),
                Call::delete(true, 2, 30),
                Call::retrieve(None, 4, 5),
                Call::store(2, 6, 7),
                Call::retrieve(None, 8, 9),
            ],
        ),
        ("two deletes of one value", vec![Call::store(1, 0, 1), Call::delete(true, 2, 9), Call::delete(true, 2, 9)]),
        (
            "two readers that see two orders",
            vec![
                Call::store(1, 0, 10),
                Call::store(2, 0, 10),
                Call::retrieve(Some(1), 11, 12),
                Call::retrieve(Some(2), 13, 14),
            ],
        ),
        (
            "what is in doubt taking effect twice",
            vec![
                Call::store(1, 0, 1).in_doubt(),
                Call::retrieve(Some(1), 2, 3),
                Call::store(2, 4, 5),
                Call::retrieve(Some(1), 6, 7),
            ],
        ),
    ] {
        assert!(check(&history).is_err(), "{what}");
    }
}

#[test]
fn what_is_in_doubt_takes_effect_late_or_never() {
    let doubted = Call::store(1, 0, 1).in_doubt();
    let (mut with, mut without) = (vec![doubted], vec![doubted]);
    for round in 1..50 {
        let began = round * 10;
        let calls = [Call::store(round + 1, began, began + 1), Call::retrieve(Some(round + 1), began + 2, began + 3)];
        with.extend(calls);
        without.extend(calls);
    }
    with.push(Call::retrieve(Some(1), 1000, 1001));
    assert_eq!((check(&with), check(&without)), (Ok(()), Ok(())));
    // Many of them are no more work than a few.
    let mut many: Vec<Call> = (0..400).map(|value| Call::store(value + 1000, value, 1).in_doubt()).collect();
    many.extend((0..400).map(|began| Call::delete(true, began, 1).in_doubt()));
    many.extend([Call::retrieve(None, 500, 501), Call::delete(true, 502, 503), Call::delete(false, 504, 505)]);
    assert_eq!(check(&many), Ok(()));
}

#[test]
fn keys_have_histories_of_their_own() {
    let calls = [("a", Call::store(1, 0, 1)), ("b", Call::retrieve(None, 2, 3)), ("a", Call::retrieve(None, 2, 3))];
    let (found, count) = check_all(&calls);
    assert_eq!((found.len(), found[0].0, found[0].2.call, count), (1, "a", 1, 3));
}

/// Whether there is an order, all of which are tried.
fn explained(history: &[Call], left: &[usize], content: Content) -> bool {
    if left.iter().all(|&number| history[number].ended.is_none()) {
        return true;
    }
    // One that began behind the end of another is not before it.
    let end = left.iter().filter_map(|&number| history[number].ended).min().unwrap_or(u64::MAX);
    left.iter().any(|&next| {
        let call = &history[next];
        let rest: Vec<usize> = left.iter().copied().filter(|&number| number != next).collect();
        call.began <= end && call.can_follow(content) && explained(history, &rest, call.left.unwrap_or(content))
    })
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let one = (0..12u64, 0..8u64, 0..6u8, prop::option::of(0..5u64));
    prop::collection::vec(one, 0..7).prop_map(|raw| {
        let call = |(number, (began, length, kind, content)): (usize, (u64, u64, u8, Content))| match kind {
            0 => Call::store(number as u64, began, began + length),
            1 => Call::store(number as u64, began, began + length).in_doubt(),
            2 => Call::delete(content.is_some(), began, began + length),
            3 => Call::delete(true, began, began + length).in_doubt(),
            _ => Call::retrieve(content, began, began + length),
        };
        raw.into_iter().enumerate().map(call).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn the_answer_is_that_of_trying_every_order(history in calls()) {
        let all: Vec<usize> = (0..history.len()).collect();
        prop_assert_eq!(check(&history).is_ok(), explained(&history, &all, None));
    }
}
