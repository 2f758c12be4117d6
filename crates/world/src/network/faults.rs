use kvssd_types::Random;

/// What a network does. Rates are one in so many, zero for never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkFaults {
    /// How long a piece is under way, at least and at most.
    pub delay_ns: (u64, u64),
    /// Bytes that are under way in a direction, or not read yet, at least and at most; drawn for each connection.
    pub room_bytes: (u64, u64),
    /// How many writes come to one after which the connection breaks, within twice the longest delay.
    pub cut_one_in: u32,
    /// How many pieces come to one that is late by up to `stall_ns`.
    pub stall_one_in: u32,
    /// How late such a piece is, at most.
    pub stall_ns: u64,
    /// How many connections come to one that is refused though somebody listens.
    pub refuse_one_in: u32,
}

impl Default for NetworkFaults {
    /// Delays and little room, and nothing breaks.
    fn default() -> Self {
        NetworkFaults {
            delay_ns: (5_000, 100_000),
            room_bytes: (4 << 10, 256 << 10),
            cut_one_in: 0,
            stall_one_in: 0,
            stall_ns: 1_000_000_000,
            refuse_one_in: 0,
        }
    }
}

impl NetworkFaults {
    /// How long the next piece is under way.
    pub(crate) fn delay(&self, random: &mut Random) -> u64 {
        let stall_ns = match self.stall_one_in {
            0 => 0,
            one_in if random.below(one_in.into()) == 0 => random.below(self.stall_ns.max(1)),
            _ => 0,
        };
        between(self.delay_ns, random) + stall_ns
    }

    pub(crate) fn room(&self, random: &mut Random) -> usize {
        between(self.room_bytes, random).max(1) as usize
    }
}

fn between((min, max): (u64, u64), random: &mut Random) -> u64 {
    min + random.below(max.saturating_sub(min) + 1)
}
