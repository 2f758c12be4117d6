//! What a replay does beside the drive. What comes of whole replays: `tests/all/replay.rs`.

use super::TraceClock;
use super::player::Player;
use crate::trace::{Action, Request, Requests};
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
fn a_drive_that_forgets_is_found_out() {
    let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 512.0).unwrap();
    let mut player = Player::new(&kvssd_designs::ORIGINAL, &profile, None, false, None, 1).unwrap();
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
