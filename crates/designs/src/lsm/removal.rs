//! How the tree of a deleted namespace is taken apart: table by table, the deepest first.
//!
//! ```text
//!   deepest table, or oldest of level 0 -> its entries, all newer tables asked -> pairs that only it knows die with it
//! ```
//!
//! Nothing older lies below it, so that nothing comes to light: no delete has to be written down until it is merged. Where keys are nearly all
//! of a pair, deletes would take as much flash as they free, and a full drive would have no room for them.

use super::page::Entry;
use super::{Lsm, tag_of};
use crate::lsm::compaction::entries_of;
use kvssd_ftl::{Io, PairPlace};
use kvssd_types::KvError;

impl Lsm {
    /// Removes the deepest table with its pairs. Returns whether it did: not where a table cannot be read, nor what the MemTable has.
    pub(super) fn remove_deepest(&mut self, io: &mut Io<'_>) -> Result<bool, KvError> {
        let deepest = self.summary.deepest().filter(|_| self.unreadable.is_none());
        let Some(id) = deepest else { return Ok(false) };
        let Some(pages) = self.read(io, &[id])? else { return Ok(false) };
        let entries = entries_of(id, &pages[0])?;
        let keys: Vec<&[u8]> = entries.iter().map(|(key, _)| *key).collect();
        // It is in the last of the runs. A newer entry may name the same place: the pair was moved, or stored, to where it had been before.
        let newer = self.look_up_in(io, &keys, self.summary.runs().count().saturating_sub(1))?;
        let Some(newer) = newer.into_iter().collect::<Option<Vec<Option<Entry>>>>() else {
            // What hides its entries cannot be read.
            self.unreadable = Some(id);
            return Ok(false);
        };
        io.note_as_one(|io| {
            for (&(key, entry), newer) in entries.iter().zip(&newer) {
                if newer.is_none() && !entry.is_deleted() {
                    let Entry { place, value_bytes } = entry;
                    io.pair_replaced(tag_of(key), 0, PairPlace { place, key_bytes: key.len() as u32, value_bytes })?;
                }
            }
            self.replace(io, &[id], &[])
        })?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::LsmPlan;
    use super::super::shape::ROOM;
    use super::*;
    use kvssd_flash::Blob;
    use kvssd_ftl::index::{Index, Room};
    use kvssd_ftl::{Change, Testbed};
    use kvssd_types::Nanos;

    /// A pair that came back to a place where it had been: each of its entries says the same, and only the newest is it.
    #[test]
    fn a_pair_dies_once_however_often_it_was_at_its_place() {
        let design = crate::named("iter").unwrap();
        let profile = design.tiny_profile(&[("memory.power_loss", "protected")]).unwrap();
        let mut bed = Testbed::new(&design, &profile);
        let room = Room { superblock_pages: profile.geometry.pages_per_superblock(), ..ROOM };
        let mut index = Lsm::new(LsmPlan { table_pages: 1, pinned_levels: 0, bloom_bits: 0 }, &room);
        index.set_dram_budget(1 << 20);
        let mut again = index.clone();
        let mut io = bed.io(Nanos::ZERO, true);
        let places = [1, 2].map(|number| io.append_own(number, Blob::from(vec![0; 20])).unwrap());
        for place in [places[0], places[1], places[0]] {
            index.change(b"a key", Entry { place, value_bytes: 7 });
            index.flush(&mut io).unwrap();
        }
        assert_eq!(index.summary.runs().count(), 3);
        while index.remove_part(&mut io).unwrap() {}
        let noted = bed.noted();
        let dead = noted.iter().filter_map(|change| match change {
            Change::Unbound { old, .. } => Some(old.place),
            _ => None,
        });
        assert_eq!(dead.collect::<Vec<_>>(), [places[0]]);
        noted.iter().for_each(|change| again.redo_change(change).unwrap());
        assert!(index.own_records().is_empty() && again.own_records().is_empty());
    }
}
