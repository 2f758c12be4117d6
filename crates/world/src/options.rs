//! How a world is.

use crate::network::NetworkFaults;

/// How a world is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Decides everything.
    pub seed: u64,
    /// How often who takes a lock loses the turn before; zero for never.
    pub loses_turn_one_in: u32,
    /// How many turns it may take to its end.
    pub turns_max: u64,
    /// What the network does in the beginning.
    pub network: NetworkFaults,
}

impl Options {
    /// A world in which nothing breaks by itself.
    #[must_use]
    pub fn of_seed(seed: u64) -> Options {
        Options { seed, loses_turn_one_in: 8, turns_max: 50_000_000, network: NetworkFaults::default() }
    }
}
