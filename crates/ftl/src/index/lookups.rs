//! What is counted of look-ups for commands.

use crate::index::IndexCounters;
use crate::index::sections::SectionCounters;

/// The counts, and those of the sections when the current look-up began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lookups {
    counters: IndexCounters,
    begun: SectionCounters,
}

impl Lookups {
    pub(crate) fn begin(&mut self, sections: SectionCounters) {
        self.begun = sections;
    }

    /// It wants a section.
    pub(crate) fn access(&mut self) {
        self.counters.section_accesses += 1;
    }

    /// It had a record read that holds another key.
    pub(crate) fn collide(&mut self) {
        self.counters.collisions += 1;
    }

    pub(crate) fn end(&mut self, sections: SectionCounters) {
        let flash_reads = sections.flash_reads - self.begun.flash_reads;
        self.counters.lookups += 1;
        self.counters.section_misses += sections.misses - self.begun.misses;
        self.counters.flash_reads += flash_reads;
        self.counters.flash_reads_max = self.counters.flash_reads_max.max(flash_reads);
    }

    /// The counts so far, with the bytes that the sections counted.
    pub(crate) fn counters(&self, sections: SectionCounters) -> IndexCounters {
        let SectionCounters { bytes_read, bytes_written, .. } = sections;
        IndexCounters { bytes_read, bytes_written, ..self.counters }
    }
}
