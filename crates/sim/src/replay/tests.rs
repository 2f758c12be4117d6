//! What a replay does beside the drive. What comes of whole replays: `tests/all/replay.rs`.

use super::feed::Feed;
use super::player::Player;
use super::{ReplaySetup, TraceClock};
use crate::trace::{Action, BadLines, Request, Requests, TraceName, TraceReader};
use kvssd_flash::Profile;
use kvssd_types::Nanos;

#[test]
fn requests_of_a_tick_are_spread_over_it() {
    let mut clock = TraceClock::new(1.0);
    let arrivals: Vec<u64> = [70, 70, 70, 70, 71, 71, 71, 71, 71, 71, 73, 72]
        .map(|second| clock.arrival(Some(second * 1_000), 1_000).unwrap().0)
        .into();
    assert_eq!(arrivals, [0, 0, 0, 0, 1000, 1250, 1500, 1750, 2000, 2000, 3000, 3166]);
}

#[test]
fn a_time_that_is_later_than_virtual_time_goes_is_refused() {
    for (scale, second, said) in [(1e-6, 20_000, "20000000000 s"), (1.0, 1_000_000_001, "1000000001 s")] {
        let mut clock = TraceClock::new(scale);
        clock.arrival(Some(7_000_000_000), 1).unwrap();
        let message = clock.arrival(Some((7 + second) * 1_000_000_000), 1).unwrap_err().to_string();
        assert!(message.contains(said) && message.contains("1000000000 s (thirty years)"), "{message}");
    }
    let mut clock = TraceClock::new(1e-6);
    clock.arrival(Some(0), 1).unwrap();
    assert_eq!(clock.arrival(Some(1_000_000_000_000), 1).unwrap(), Nanos(1_000_000_000_000_000_000));
}

#[test]
fn rounds_that_go_on_behind_the_end_of_time_are_refused() {
    // Of the second trace one round is as long as that: with its last tick 2^64 ns, which are no zero.
    for text in ["key,timestamp\na,0\nb,9000000000\n", "key,timestamp_ns\na,0\nb,18446744073709551615\n"] {
        let reader = || TraceReader::new(text.as_bytes(), b"", TraceName::Csv.format(5), BadLines::Stop);
        let mut feed = Feed::new(reader(), Box::new((0..3).map(|_| Ok(reader()))));
        let end = loop {
            match feed.fill() {
                Ok(()) if feed.is_empty() => break None,
                Ok(()) => {
                    while !feed.is_empty() {
                        feed.next();
                    }
                }
                Err(why) => break Some(why.to_string()),
            }
        };
        assert!(end.expect("the third round is too late, or the second").contains("--repeat"));
    }
}

#[test]
fn a_drive_that_forgets_is_found_out() {
    let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 512.0).unwrap();
    let mut player = Player::new(&ReplaySetup::new(kvssd_designs::ORIGINAL, profile, 1)).unwrap();
    let mut requests = Requests::new();
    requests.push(b"k", 1, Request::new(Action::Set, 10));
    requests.push(b"k", 1, Request::new(Action::Get, 0));
    let [set, get] = [0, 1].map(|index| &requests.list()[index]);
    player.begin(set, requests.key(set), Nanos(0)).unwrap();
    player.lose(requests.key(set), Nanos(0));
    player.begin(get, requests.key(get), Nanos(0)).unwrap();
    let (_, measured, _) = player.end();
    assert_eq!(measured.failed_retrieves, 1);
}
