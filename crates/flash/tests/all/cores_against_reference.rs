//! Bounds the error of [`Pool`], which reserves all pieces of a request when it arrives: closed loops of the same requests, once
//! over it, and once through queues in which whoever asks first is served first, whole.

use crate::closed_loop::{self, Figures, Meter};
use kvssd_flash::timing::Pool;
use kvssd_types::{Nanos, Random};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const REQUESTS: u64 = 40_000;

/// Work of a core and a wait for something else behind it, again and again.
type Request = Vec<(Nanos, Nanos)>;

/// What requests do.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// The largest piece of work, and the least.
    piece_ns: (u64, u64),
    pieces: u64,
    /// The longest wait behind a piece.
    wait_ns: u64,
}

impl Load {
    fn requests(self) -> impl FnMut() -> Request {
        let mut random = Random::new(1);
        move || {
            let mut piece = || {
                let (most, least) = self.piece_ns;
                (Nanos(least + random.below(most - least + 1)), Nanos(random.below(self.wait_ns + 1)))
            };
            (0..self.pieces).map(|_| piece()).collect()
        }
    }
}

fn pool(cores: u32, depth: u32, mut next: impl FnMut() -> Request) -> Figures {
    let mut pool = Pool::new(cores);
    closed_loop::run(depth, REQUESTS, |arrival| {
        next().into_iter().fold(arrival, |clock, (work, wait)| pool.take(clock, work, arrival) + wait)
    })
}

fn queue(cores: u32, depth: u32, mut next: impl FnMut() -> Request) -> Figures {
    let mut meter = Meter::new(REQUESTS);
    let mut free_from: BinaryHeap<Reverse<Nanos>> = (0..cores).map(|_| Reverse(Nanos::ZERO)).collect();
    // When who asks, and what is left of the request.
    let mut asks: BinaryHeap<Reverse<(Nanos, u64)>> = BinaryHeap::new();
    let mut requests: Vec<(Nanos, std::vec::IntoIter<(Nanos, Nanos)>)> = Vec::new();
    for number in 0..u64::from(depth) {
        requests.push((Nanos::ZERO, next().into_iter()));
        asks.push(Reverse((Nanos::ZERO, number)));
    }
    while !meter.is_full() {
        let Reverse((now, number)) = asks.pop().expect("a loop has a depth");
        let (arrival, rest) = &mut requests[number as usize];
        match rest.next() {
            Some((work, wait)) => {
                let Reverse(free) = free_from.pop().expect("there are cores");
                let end = free.max(now) + work;
                free_from.push(Reverse(end));
                asks.push(Reverse((end + wait, number)));
            }
            None => {
                meter.complete(*arrival, now);
                requests[number as usize] = (now, next().into_iter());
                asks.push(Reverse((now, number)));
            }
        }
    }
    meter.figures()
}

#[test]
fn cores_at_work_lose_nothing() {
    let loads = [
        ("small pieces", Load { piece_ns: (400, 100), pieces: 8, wait_ns: 20_000 }),
        ("large pieces", Load { piece_ns: (8000, 4000), pieces: 2, wait_ns: 40_000 }),
        ("small and large pieces", Load { piece_ns: (6000, 50), pieces: 6, wait_ns: 60_000 }),
    ];
    for (name, load) in loads {
        for cores in [1, 2, 4] {
            for depth in [8, 64, 256] {
                let found = pool(cores, depth, load.requests());
                let expected = queue(cores, depth, load.requests());
                let error = found.requests_per_s / expected.requests_per_s - 1.0;
                let outcome = format!(
                    "{name}, {cores} cores, depth {depth}: {:.0}/s, {:+.2} %",
                    expected.requests_per_s,
                    error * 100.0
                );
                println!("{outcome}");
                assert!(error.abs() <= 0.03, "{outcome}");
            }
        }
    }
}
