//! How the tree of a deleted namespace is taken apart: table by table, the deepest first.
//!
//! ```text
//!   deepest table, or oldest of level 0 -> its entries, all other tables asked -> pairs that only it knows die with it
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
        let found = self.look_up_all(io, &keys)?;
        let Some(found) = found.into_iter().collect::<Option<Vec<Option<Entry>>>>() else {
            // What hides its entries cannot be read.
            self.unreadable = Some(id);
            return Ok(false);
        };
        io.note_as_one(|io| {
            for (&(key, entry), found) in entries.iter().zip(&found) {
                if *found == Some(entry) && !entry.is_deleted() {
                    let Entry { place, value_bytes } = entry;
                    io.pair_replaced(tag_of(key), 0, PairPlace { place, key_bytes: key.len() as u32, value_bytes })?;
                }
            }
            self.replace(io, &[id], &[])
        })?;
        Ok(true)
    }
}
