//! The block cache: data blocks of tables, the one that was not used for the longest time leaves first.

use std::collections::BTreeMap;

/// The number of a file, and that of the data block in it.
type BlockId = (u64, usize);

/// Which blocks are cached; their bytes are those of the file.
#[derive(Debug)]
pub(super) struct Cache {
    bytes_max: u64,
    bytes: u64,
    /// When each was used last, and its bytes.
    blocks: BTreeMap<BlockId, (u64, u64)>,
    by_use: BTreeMap<u64, BlockId>,
    uses: u64,
}

impl Cache {
    pub(super) fn new(bytes_max: u64) -> Self {
        Cache { bytes_max, bytes: 0, blocks: BTreeMap::new(), by_use: BTreeMap::new(), uses: 0 }
    }

    /// Whether a block is there. It is now, unless it is larger than the cache.
    pub(super) fn touch(&mut self, id: BlockId, bytes: u64) -> bool {
        self.uses += 1;
        let known = self.blocks.insert(id, (self.uses, bytes));
        self.by_use.insert(self.uses, id);
        match known {
            Some((used, _)) => {
                self.by_use.remove(&used);
            }
            None => self.bytes += bytes,
        }
        while self.bytes > self.bytes_max {
            let (_, oldest) = self.by_use.pop_first().expect("what takes bytes was used");
            self.bytes -= self.blocks.remove(&oldest).expect("what was used is there").1;
        }
        known.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_that_was_not_used_for_longest_leaves() {
        let mut cache = Cache::new(30);
        assert!(!cache.touch((1, 0), 10) && !cache.touch((1, 1), 10) && !cache.touch((2, 0), 10));
        assert!(cache.touch((1, 0), 10));
        assert!(!cache.touch((3, 0), 10));
        assert!(cache.touch((1, 0), 10) && !cache.touch((1, 1), 10));
        assert!(!cache.touch((4, 0), 31) && !cache.touch((4, 0), 31));
    }
}
