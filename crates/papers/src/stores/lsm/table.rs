//! Tables: files of pairs in the order of their keys.
//!
//! ```text
//!   | data block | data block | ... | index, footer |       a data block is closed when it has 4096 bytes
//! ```
//!
//! The index is in the host's memory, as RocksDB keeps it of open tables; what is read of the file are data blocks.

use super::options::BLOCK_BYTES;
use crate::stores::extents::Space;
use crate::stores::file::File;
use kvssd_sim::SimError;
use kvssd_types::Value;
use std::ops::Range;
use std::sync::Arc;

/// Sequence number and kind (8), lengths as varints (4).
pub(super) const PAIR_HEAD_BYTES: u64 = 12;
/// Restart points and checksum of a data block.
const BLOCK_TAIL_BYTES: u64 = 13;
/// Handle and lengths of a data block in the index, beside its key.
const INDEX_ENTRY_BYTES: u64 = 16;
/// Properties and footer. Estimate.
const FOOTER_BYTES: u64 = 1024;

/// A key and what is bound to it: nothing where it was deleted.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) key: Arc<[u8]>,
    pub(super) value: Option<Value>,
}

impl Pair {
    /// Bytes in a data block or a log.
    pub(super) fn bytes(&self) -> u64 {
        PAIR_HEAD_BYTES + (self.key.len() + self.value.as_ref().map_or(0, Value::len)) as u64
    }
}

/// A data block: its pairs and its bytes.
#[derive(Clone, Debug)]
pub(super) struct DataBlock {
    pub(super) pairs: Range<usize>,
    pub(super) bytes: Range<u64>,
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) file: File,
    pub(super) pairs: Vec<Pair>,
    pub(super) blocks: Vec<DataBlock>,
}

impl Table {
    /// A table of pairs, at least one, whose file is not written yet.
    pub(super) fn new(number: u64, pairs: Vec<Pair>, space: &mut Space) -> Result<Self, SimError> {
        let mut blocks = Vec::new();
        let (mut start, mut first, mut end, mut index_bytes) = (0, 0, 0, 0);
        for (at, pair) in pairs.iter().enumerate() {
            end += pair.bytes();
            if end - start >= BLOCK_BYTES || at + 1 == pairs.len() {
                end += BLOCK_TAIL_BYTES;
                index_bytes += pair.key.len() as u64 + INDEX_ENTRY_BYTES;
                blocks.push(DataBlock { pairs: first..at + 1, bytes: start..end });
                (start, first) = (end, at + 1);
            }
        }
        let file = File::new(number, end + index_bytes + FOOTER_BYTES, space)?;
        Ok(Table { file, pairs, blocks })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.file.bytes
    }

    pub(super) fn first(&self) -> &[u8] {
        &self.pairs[0].key
    }

    pub(super) fn last(&self) -> &[u8] {
        &self.pairs[self.pairs.len() - 1].key
    }

    pub(super) fn spans(&self, key: &[u8]) -> bool {
        self.first() <= key && key <= self.last()
    }

    /// The number of the data block that `key` would be in, and the pair, if it is there.
    pub(super) fn find(&self, key: &[u8]) -> Option<(usize, Option<&Pair>)> {
        let at = self.pairs.partition_point(|pair| *pair.key < *key);
        let block = self.blocks.partition_point(|block| block.pairs.end <= at);
        (block < self.blocks.len()).then(|| (block, self.pairs.get(at).filter(|pair| *pair.key == *key)))
    }
}

/// Merges pairs in the order of their keys: where several have one key, the one of the first source counts.
pub(super) fn merge(sources: &[Arc<Table>], keeps_deleted: bool) -> Vec<Pair> {
    let mut heads: Vec<(&Pair, usize)> = sources
        .iter()
        .enumerate()
        .flat_map(|(source, table)| table.pairs.iter().map(move |pair| (pair, source)))
        .collect();
    // The runs are sorted already, which this sort makes use of.
    heads.sort_by(|(left, left_source), (right, right_source)| {
        left.key.cmp(&right.key).then(left_source.cmp(right_source))
    });
    heads.dedup_by(|later, earlier| later.0.key == earlier.0.key);
    let kept = heads.into_iter().filter(|(pair, _)| keeps_deleted || pair.value.is_some());
    kept.map(|(pair, _)| pair.clone()).collect()
}
