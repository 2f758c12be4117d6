//! The values that are kept in the order of their keys ([`Values`](crate::controller::values::Values)), by the entries of an index that name
//! their pairs.

use crate::controller::values::{Block, BlockName, SeenPair, block_of};
use crate::index::EntryPlace;
use crate::io::media::Media;
use crate::layout::address::Grain;
use crate::layout::record::PairPlace;
use kvssd_types::{Blob, Value};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The result of a search for a block: its page, its number in that page, and the block if it was found.
type Looked = ((Grain, u32), Option<Arc<Block>>);

/// Search results kept at hand, since entries of several pages come by turns.
const LOOKED_MAX: usize = 32;

impl Media {
    /// The cached values of pairs, given by their index entries, keys and places.
    pub(crate) fn kept_values<'k>(
        &self,
        pairs: impl Iterator<Item = (Option<EntryPlace>, &'k [u8], PairPlace)>,
    ) -> Vec<Option<Value>> {
        let mut looked = VecDeque::new();
        let kept = |(entry, key, pair): (Option<EntryPlace>, &[u8], PairPlace)| {
            let value = self.kept_value(entry?, key, &mut looked)?;
            (value.len() == pair.value_bytes as usize).then_some(Value::Bytes(value))
        };
        pairs.map(kept).collect()
    }

    fn kept_value(&self, entry: EntryPlace, key: &[u8], looked: &mut VecDeque<Looked>) -> Option<Blob> {
        let (block, number) = block_of(entry.number);
        let wanted = (entry.page, block);
        let position = looked.iter().position(|(other, _)| *other == wanted);
        if position.is_none() {
            looked.truncate(LOOKED_MAX - 1);
            looked.push_front((wanted, self.values.look().find(&self.name_of(entry.page, block))));
        }
        looked[position.unwrap_or(0)].1.as_ref()?.value(number, key)
    }

    /// Keeps values that were seen, as far as they are small and there is room.
    pub(crate) fn keep_values<'v>(&self, seen: impl Iterator<Item = (EntryPlace, &'v [u8], &'v Value)>) {
        if !self.values.look().is_on() {
            return;
        }
        let mut blocks: BTreeMap<BlockName, Vec<SeenPair<'v>>> = BTreeMap::new();
        for (place, key, value) in seen {
            let Value::Bytes(value) = value else { continue };
            let (block, entry) = block_of(place.number);
            let pair = SeenPair { entry, key, value };
            if pair.is_small() {
                blocks.entry(self.name_of(place.page, block)).or_default().push(pair);
            }
        }
        for (name, pairs) in blocks {
            // The block is put together without a lock. If two threads do so at a time, the work of one is lost.
            let before = self.values.look().find(&name).unwrap_or_default();
            let block = Arc::new(before.with(&pairs));
            self.values.change().keep(name, block, self.flash.backing());
        }
    }

    fn name_of(&self, page: Grain, block: u32) -> BlockName {
        BlockName { page, generation: self.generation_of(page), block }
    }
}
