//! What a drive is asked about: pairs, and what is done with them.

/// A workload of single pairs from a closed loop of clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Pairs that the drive is filled with.
    pub pairs: u64,
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Overwrites, uniform, before what is measured.
    pub overwrites: u64,
    /// Operations that are measured.
    pub operations: u64,
    /// What they are.
    pub mix: Mix,
    /// The exponent of Zipf's law that chooses their keys; 0 where all are alike.
    pub skew: f64,
    /// The ranks that the law draws from. Those beyond the pairs are spread over all of them, as YCSB's scrambled law does.
    pub ranks: u64,
    /// Commands under way at once.
    pub clients: u32,
    /// Stores that go as one batch.
    pub batch_pairs: u32,
}

#[cfg(test)]
impl Load {
    /// So many pairs of 1000 bytes, all alike; half of the commands retrieve, half store.
    pub(crate) fn half_and_half(pairs: u64) -> Self {
        Load {
            pairs,
            key_bytes: 8,
            value_bytes: 1000,
            overwrites: pairs,
            operations: pairs,
            mix: Mix::Points { retrieves: 0.5, stores: 0.5, modifies: false },
            skew: 0.0,
            ranks: pairs,
            clients: 20,
            batch_pairs: 1,
        }
    }
}

/// Commands for each operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mix {
    /// Retrieves and stores of keys that are there.
    Points {
        /// Retrieves for each operation.
        retrieves: f64,
        /// Stores for each operation.
        stores: f64,
        /// Whether these are of keys that were retrieved just before.
        modifies: bool,
    },
    /// A Seek and so many calls of Next.
    Ranges {
        /// Calls of Next behind each Seek.
        nexts: u32,
        /// Whether keys were stored in their order, so that pairs that follow each other share pages.
        in_order: bool,
    },
}
