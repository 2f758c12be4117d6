//! Whether it pays to let others run and look again: not where somebody else wants the core. Who yields to a busy loop has the core back
//! milliseconds later.

use crate::time::Duration;

/// Times that are passed over when others wanted the core: the first time, and at the most. Estimates.
const TIMES: (u32, u32) = (16, 4096);

/// Of somebody who lets others run over and over: each time that this takes long, twice as many times are passed over.
#[derive(Debug, Default)]
pub struct Doubt {
    left: u32,
    last: u32,
}

impl Doubt {
    /// Who is away for longer than this while others run has left the core to somebody who keeps it. An estimate.
    pub const SOON: Duration = Duration::from_micros(100);

    /// Whether this time is to be passed over.
    pub fn prevails(&mut self) -> bool {
        let prevails = self.left > 0;
        self.left = self.left.saturating_sub(1);
        prevails
    }

    /// Others ran for so long. Gives whether that is longer than `long`.
    pub fn learn(&mut self, away: Duration, long: Duration) -> bool {
        let is_long = away > long;
        if is_long {
            self.last = (self.last * 2).clamp(TIMES.0, TIMES.1);
            self.left = self.last;
        }
        is_long
    }

    /// It went well: what goes wrong is tried again sooner.
    pub fn ease(&mut self) {
        self.last /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_away_for_long_passes_over_twice_as_much_each_time() {
        let mut doubt = Doubt::default();
        let long = Doubt::SOON;
        assert!(!doubt.prevails() && !doubt.learn(long, long));
        for times in [16, 32, 64] {
            assert!(doubt.learn(2 * long, long));
            assert_eq!((0..100).take_while(|_| doubt.prevails()).count(), times);
        }
        doubt.ease();
        doubt.ease();
        assert!(doubt.learn(2 * long, long));
        assert_eq!((0..100).take_while(|_| doubt.prevails()).count(), 32, "what goes well is tried again sooner");
    }
}
