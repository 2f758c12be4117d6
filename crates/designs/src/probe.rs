//! The probe sequence of a hash table and what a slot holds.

use kvssd_ftl::Grain;

/// A slot of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The place of the pair; grain 0 when there is none.
    pub place: Grain,
    /// How many pairs were put further along because they found this slot taken. While it is not 0, an emptied slot
    /// does not end a search: it is a tombstone that goes away with the last pair behind it. It saturates, and then
    /// stays.
    pub passes: u32,
}

impl Entry {
    /// Whether a search goes on behind this slot.
    #[must_use]
    pub fn is_end(self) -> bool {
        self == Entry::default()
    }
}

/// The slots that a hash visits: (h + c + c^2) mod the table, for c = 0, 1, ...
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    slots: u64,
}

/// The most slots that a search visits.
pub(crate) const PROBES_MAX: u32 = 2048;

impl Probe {
    /// Over a table of `slots`.
    #[must_use]
    pub(crate) fn new(slots: u64) -> Self {
        Probe { slots }
    }

    /// The slot that `hash` visits as number `count`.
    #[must_use]
    pub(crate) fn slot(&self, hash: u64, count: u32) -> u64 {
        let count = u64::from(count);
        (hash % self.slots + count + count * count) % self.slots
    }

    /// The slot that comes first where `slot` is number `count`.
    #[must_use]
    pub(crate) fn first_of(&self, slot: u64, count: u32) -> u64 {
        let count = u64::from(count);
        (slot % self.slots + self.slots - (count + count * count) % self.slots) % self.slots
    }
}
