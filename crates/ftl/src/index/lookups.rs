//! What is counted of look-ups for commands.

use crate::index::IndexCounters;
use crate::index::sections::SectionCounters;

/// The counts, and those of the index's records on flash when the current look-up began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lookups {
    counters: IndexCounters,
    begun: SectionCounters,
}

impl Lookups {
    /// A look-up begins.
    pub fn begin(&mut self, sections: SectionCounters) {
        self.begun = sections;
    }

    /// It wants a section.
    pub fn access(&mut self) {
        self.counters.section_accesses += 1;
    }

    /// It read a record that holds another key.
    pub fn collide(&mut self) {
        self.counters.collisions += 1;
    }

    /// It has looked at so many slots.
    pub fn scan(&mut self, slots: u64) {
        self.counters.slots_scanned += slots;
    }

    /// It is done.
    pub fn end(&mut self, sections: SectionCounters) {
        let flash_reads = sections.flash_reads - self.begun.flash_reads;
        self.counters.lookups += 1;
        self.counters.section_misses += sections.misses - self.begun.misses;
        self.counters.flash_reads += flash_reads;
        self.counters.flash_reads_max = self.counters.flash_reads_max.max(flash_reads);
    }

    /// The counts so far, with the bytes that the sections counted.
    #[must_use]
    pub fn counters(&self, sections: SectionCounters) -> IndexCounters {
        let SectionCounters { bytes_read, bytes_written, .. } = sections;
        IndexCounters { bytes_read, bytes_written, ..self.counters }
    }
}
