//! What befalls a disk, at one of its next calls.

use kvssd_flash::{DiskCall, SimulatedDisk, Strike};
use kvssd_types::Random;
use std::fmt;

/// What can.
#[derive(Clone, Copy, Debug)]
pub struct Strikes {
    /// What was synced outlives the machine, so that it may stop.
    pub sync: bool,
    /// How many strikes come to one that is a failure, which the process sees; zero for never.
    pub fails_one_in: u64,
}

/// A strike that is to come.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    strike: Strike,
    /// The call, or, where it is to be one of a kind, from which on.
    call: u64,
    what: Option<DiskCall>,
}

impl Strikes {
    /// Has something happen to one of the next `horizon` calls, or to the first of a kind behind that: to a sync, before which most is at stake, or
    /// to a write. What was to happen before does not.
    pub fn plan(self, disk: &SimulatedDisk, random: &mut Random, horizon: u64) -> Planned {
        let call = disk.calls() + random.below(horizon);
        let strike = match random.below(10) {
            _ if self.fails_one_in > 0 && random.below(self.fails_one_in) == 0 => {
                [Strike::Fail, Strike::Fail, Strike::Full, Strike::Short][random.below(4) as usize]
            }
            0..2 => Strike::KillBefore,
            2..5 => Strike::KillWithin,
            5..7 => Strike::KillAfter,
            7..10 if self.sync => Strike::PowerBefore,
            _ => Strike::KillWithin,
        };
        let what = match strike {
            Strike::Short => Some(DiskCall::Write),
            Strike::Full if random.below(2) == 0 => Some(DiskCall::Write),
            _ if self.sync && random.below(2) == 0 => Some(DiskCall::Sync),
            _ => None,
        };
        disk.spare();
        match what {
            Some(what) => disk.strike_next(call, what, strike),
            None => disk.strike(call, strike),
        }
        Planned { strike, call, what }
    }
}

impl Planned {
    /// Whether the process lives on, and sees a call that fails or takes a part.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(self.strike, Strike::Fail | Strike::Full | Strike::Short)
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Planned { strike, call, what } = self;
        match what {
            Some(what) => write!(f, "{strike:?} at the next {what:?} from call {call}"),
            None => write!(f, "{strike:?} at call {call}"),
        }
    }
}
