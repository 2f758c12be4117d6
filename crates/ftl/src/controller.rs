//! The controller: its cores and their costs, its write buffer's size, and what it does the way a paper's emulator does it.
//!
//! Below: what its memory holds beside tables and logs: stores that are [`behind`], blocks that are [`gathered`], pages that are [`read_ahead`],
//! [`heads`] of records, [`values`] in the order of keys, and what iterators have [`held`]. It imports `layout`.

pub(crate) mod behind;
pub(crate) mod gathered;
pub(crate) mod heads;
pub(crate) mod held;
pub(crate) mod read_ahead;
pub(crate) mod values;

use crate::controller::behind::Behind;
use kvssd_flash::timing::{Pool, Recording, Work};
use kvssd_flash::{CoreCosts, Emulator, Profile};
use kvssd_types::Nanos;

/// The cores and their clock.
#[derive(Clone)]
pub(crate) struct Controller {
    pub(crate) cores: Pool,
    pub(crate) costs: CoreCosts,
    pub(crate) emulator: Emulator,
    /// What the write buffer holds.
    pub(crate) write_buffer_bytes: u64,
    pub(crate) behind: Behind,
    /// [`Design::compares_later`](crate::Design::compares_later).
    pub(crate) compares_later: bool,
    /// The time that all clocks have reached: no work begins earlier any more.
    pub(crate) now: Nanos,
}

impl Controller {
    pub(crate) fn new(profile: &Profile) -> Self {
        let costs = profile.core_costs;
        Controller {
            cores: Pool::new(costs.cores),
            costs,
            emulator: profile.emulator,
            write_buffer_bytes: profile.memory.write_buffer_bytes,
            behind: Behind::default(),
            compares_later: false,
            now: Nanos::ZERO,
        }
    }

    /// Reserves a core for `length`, at `at` or later. Returns when the work ends.
    pub(crate) fn take(&mut self, at: Nanos, length: Nanos, recording: &mut Recording, work: Work) -> Nanos {
        self.cores.take_for(at, length, self.now, recording, work)
    }
}
