//! What an index counts.

/// Bytes, by what they were moved for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BytesFor {
    /// For commands.
    pub commands: u64,
    /// For work in the background, which is garbage collection in the first place.
    pub background: u64,
}

impl BytesFor {
    /// Those for one of both.
    pub fn of(&mut self, background: bool) -> &mut u64 {
        if background { &mut self.background } else { &mut self.commands }
    }

    /// The sums of both.
    pub(crate) fn plus(self, other: BytesFor) -> BytesFor {
        BytesFor { commands: self.commands + other.commands, background: self.background + other.background }
    }
}

/// What an index counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexCounters {
    /// Look-ups for commands.
    pub lookups: u64,
    /// Sections that look-ups wanted.
    pub section_accesses: u64,
    /// Sections that were not in DRAM when a look-up wanted them.
    pub section_misses: u64,
    /// Records that were read for a key and held another one.
    pub collisions: u64,
    /// Flash reads of index pages for look-ups, in all.
    pub flash_reads: u64,
    /// The most flash reads of index pages that one look-up took, since the drive was new.
    pub flash_reads_max: u64,
    /// Bytes of sections read from flash.
    pub bytes_read: BytesFor,
    /// Bytes of sections written to the log.
    pub bytes_written: BytesFor,
    /// Slots of a table of a fixed size. The load factor is `slots_taken` by `slots`.
    pub slots: u64,
    /// Slots that pairs take.
    pub slots_taken: u64,
    /// Slots of such a table that look-ups looked at.
    pub slots_scanned: u64,
}

impl IndexCounters {
    /// The sums of both.
    pub(crate) fn plus(&self, other: &IndexCounters) -> IndexCounters {
        IndexCounters {
            lookups: self.lookups + other.lookups,
            section_accesses: self.section_accesses + other.section_accesses,
            section_misses: self.section_misses + other.section_misses,
            collisions: self.collisions + other.collisions,
            flash_reads: self.flash_reads + other.flash_reads,
            flash_reads_max: self.flash_reads_max.max(other.flash_reads_max),
            bytes_read: self.bytes_read.plus(other.bytes_read),
            bytes_written: self.bytes_written.plus(other.bytes_written),
            slots: self.slots + other.slots,
            slots_taken: self.slots_taken + other.slots_taken,
            slots_scanned: self.slots_scanned + other.slots_scanned,
        }
    }
}
