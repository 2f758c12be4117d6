//! Waiting awake for a little, where that is cheaper than to sleep and be woken.
//!
//! A thread that sleeps is woken tens of microseconds late, several times what a small command takes. One that stays awake costs its
//! core, and whoever else wants it. So a thread looks again and again, and lets others run in between, while both hold:
//!
//! ```text
//!   it pays        what it waited for last time came soon
//!   a core is free fewer threads of the process wait awake than half of its cores: the other half is for who is to answer
//! ```
//!
//! Where others want the core, who lets them run comes back milliseconds later, while who sleeps is woken before them. So a thread that
//! was away for long sleeps the next times, twice as often each time that this happens again.

use crate::doubt::Doubt;
use crate::machine::machine;
use crate::thread::yield_now;
use crate::time::{Duration, Instant};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads of this process that wait awake.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// How many may.
static PLACES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, |cores| cores.get()) / 2);

/// Of somebody who waits for the same thing over and over.
#[derive(Debug)]
pub struct Patience {
    pays: bool,
    /// Whether others want the core.
    doubt: Doubt,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { pays: true, doubt: Doubt::default() }
    }
}

impl Patience {
    /// How long a thread waits awake. An estimate: on idle cores, to sleep and be woken takes about as long.
    pub const AWAKE: Duration = Duration::from_micros(50);

    /// Looks until there is something, as long as that pays; none when the caller is to sleep, and to say [how long](Self::slept).
    pub fn wait<T>(&mut self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        if self.doubt.prevails() {
            return None;
        }
        let _place = if self.pays { Place::take() } else { None }?;
        let until = Instant::now() + Self::AWAKE;
        loop {
            if let Some(found) = look() {
                self.doubt.ease();
                return Some(found);
            }
            let looked = Instant::now();
            if looked >= until {
                return None;
            }
            yield_now();
            if self.doubt.learn(looked.elapsed(), Doubt::SOON) {
                return look();
            }
        }
    }

    /// It slept so long until there was something, or it gave up. What came soon would have come to a thread that waits awake: a sleep ends late.
    pub fn slept(&mut self, time: Duration) {
        self.pays = time < Doubt::SOON;
    }
}

/// The right to wait awake.
struct Place {
    is_counted: bool,
}

impl Place {
    fn take() -> Option<Place> {
        // A world has as many cores as actors, and other worlds of the process are no matter of its.
        if machine().is_some() {
            return Some(Place { is_counted: false });
        }
        let place = Place { is_counted: true };
        (WAITING.fetch_add(1, Ordering::Relaxed) < *PLACES).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_counted {
            WAITING.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One after the other: the places are those of the process.
    #[test]
    fn who_waits_awake_has_a_place_and_a_reason() {
        let mut patience = Patience::default();
        let mut looks = 0;
        let mut look = || {
            looks += 1;
            (looks == 3).then_some(looks)
        };
        if *PLACES > 0 {
            // On a busy machine the time may be over behind each look, and others have the core for long.
            assert_eq!((0..1000).find_map(|_| patience.wait(&mut look)), Some(3));
            assert_eq!(Patience::default().wait(|| None::<()>), None, "not for ever");
        }
        patience.slept(Duration::from_millis(5));
        assert_eq!(patience.wait(|| -> Option<()> { panic!("it does not pay") }), None);
        patience.slept(Duration::from_micros(20));
        let places: Vec<Place> = (0..*PLACES).map_while(|_| Place::take()).collect();
        assert_eq!(patience.wait(|| -> Option<()> { panic!("all places are taken") }), None);
        drop(places);
        assert_eq!(WAITING.load(Ordering::Relaxed), 0);
        let mut patience = Patience::default();
        assert_eq!(patience.wait(|| Some(7)), (*PLACES > 0).then_some(7));
        // Others want the core.
        patience.doubt.learn(2 * Doubt::SOON, Doubt::SOON);
        for _ in 0..16 {
            assert_eq!(patience.wait(|| -> Option<()> { panic!("others want the core") }), None);
        }
        assert_eq!(patience.wait(|| Some(7)), (*PLACES > 0).then_some(7));
    }
}
