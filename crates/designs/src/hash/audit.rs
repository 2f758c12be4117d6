//! Whether the entries of the table lead to all pairs: a search goes on only behind slots that are taken, or that count
//! who was put behind them.

use crate::probe::{PROBES_MAX, Probe};
use kvssd_ftl::Grain;
use kvssd_ftl::index::{Audit, IndexContents, IndexEntry, IndexFault};
use kvssd_types::Key;
use xxhash_rust::xxh3::xxh3_64;

/// The audit of one table.
pub(super) struct ProbeAudit {
    pub(super) probe: Probe,
    pub(super) passes_max: u32,
    pub(super) contents: IndexContents,
    /// A slot for each pair that was put behind it.
    pub(super) passed: Vec<u64>,
}

impl ProbeAudit {
    /// The entry of a slot; none where a search ends.
    fn entry(&self, slot: u64) -> Option<IndexEntry> {
        let entries = &self.contents.entries;
        entries.binary_search_by_key(&slot, |entry| entry.tag).ok().map(|index| entries[index])
    }
}

impl Audit for ProbeAudit {
    fn pair(&mut self, key: Key<'_>, tag: u64) -> Option<String> {
        let hash = xxh3_64(key.bytes());
        let way: Vec<u64> =
            (0..PROBES_MAX).map(|count| self.probe.slot(hash, count)).take_while(|&slot| slot != tag).collect();
        self.passed.extend(&way);
        if way.len() == PROBES_MAX as usize {
            return Some(format!("no search for the key comes to its slot {tag}"));
        }
        let end = way.into_iter().find(|&slot| self.entry(slot).is_none())?;
        Some(format!("a search for the key ends at slot {end} and does not come to {tag}"))
    }

    fn end(mut self: Box<Self>) -> Vec<IndexFault> {
        self.passed.sort_unstable();
        let mut found: Vec<(u64, u64)> =
            self.passed.chunk_by(|left, right| left == right).map(|slots| (slots[0], slots.len() as u64)).collect();
        let counted = |slot: &(u64, u64)| self.entry(slot.0).is_some_and(|entry| entry.note > 0);
        found.retain(|slot| !counted(slot));
        let uncounted = found.into_iter().map(|(slot, found)| (slot, found, 0));
        let counting = self.contents.entries.iter().filter(|entry| entry.note > 0).map(|entry| {
            let first = self.passed.partition_point(|&slot| slot < entry.tag);
            let count = self.passed[first..].partition_point(|&slot| slot == entry.tag) as u64;
            (entry.tag, count, entry.note)
        });
        // A count that is full has lost its number.
        let wrong = counting.filter(|&(_, found, known)| u64::from(known) != found && known != self.passes_max);
        let fault = |(slot, found, known): (u64, u64, u32)| {
            let loses_pairs = found > u64::from(known);
            let means =
                if loses_pairs { "a delete will hide the others" } else { "searches look further than they need" };
            let why = format!("slot {slot} has {found} pairs behind it and counts {known}: {means}");
            IndexFault { number: slot, place: Grain(0), why, loses_pairs }
        };
        wrong.chain(uncounted).map(fault).collect()
    }
}
