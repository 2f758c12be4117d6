//! The values that are kept in the order of their keys ([`Values`](crate::controller::values::Values)), by the entries of an index that name their pairs.

use crate::controller::values::{Block, BlockName, SeenPair, block_of};
use crate::index::EntryPlace;
use crate::io::media::Media;
use crate::layout::address::Grain;
use kvssd_types::Value;
use std::sync::Arc;

/// A block that was looked for, by its page and its number in that, and found or not.
type Looked = ((Grain, u32), Option<Arc<Block>>);

impl Media {
    /// The values that are kept of pairs, which the index has at these places.
    pub(crate) fn kept_values<'k>(
        &self,
        pairs: impl Iterator<Item = (Option<EntryPlace>, &'k [u8])>,
    ) -> Vec<Option<Value>> {
        // Entries of several pages come by turns: the blocks of the last ones are at hand.
        let mut looked: Vec<Looked> = Vec::new();
        pairs.map(|(entry, key)| self.kept_value(entry?, key, &mut looked)).collect()
    }

    fn kept_value(&self, entry: EntryPlace, key: &[u8], looked: &mut Vec<Looked>) -> Option<Value> {
        let (block, number) = block_of(entry.number);
        let wanted = (entry.page, block);
        let found = match looked.iter().rposition(|(other, _)| *other == wanted) {
            Some(position) => &looked[position].1,
            None => {
                looked.push((wanted, self.values.look().find(&self.name_of(entry.page, block))));
                &looked.last()?.1
            }
        };
        Some(Value::Bytes(found.as_ref()?.value(number, key)?))
    }

    /// Keeps values that were seen, as far as they are small and there is room.
    pub(crate) fn keep_values<'v>(&self, seen: impl Iterator<Item = (EntryPlace, &'v [u8], &'v Value)>) {
        let mut blocks: Vec<(BlockName, Vec<SeenPair<'v>>)> = Vec::new();
        for (place, key, value) in seen {
            let Value::Bytes(value) = value else { continue };
            let (block, entry) = block_of(place.number);
            let pair = SeenPair { entry, key, value };
            if !pair.is_small() {
                continue;
            }
            let name = self.name_of(place.page, block);
            match blocks.iter_mut().rfind(|(other, _)| *other == name) {
                Some((_, pairs)) => pairs.push(pair),
                None => blocks.push((name, vec![pair])),
            }
        }
        for (name, pairs) in blocks {
            self.values.change().keep(name, &pairs, self.flash.backing());
        }
    }

    fn name_of(&self, page: Grain, block: u32) -> BlockName {
        let superblock = self.space.superblocks.get(self.space.packing.superblock_of(page));
        BlockName { page, generation: superblock.generation, block }
    }
}
