//! The table of blocks: what a mount must know of each block without reading its pages.
//!
//! Memory has the present state. The file may be behind, as the order of writes requires.

use super::disk::Disk;
use super::error::{ImageError, damaged};
use super::layout::{ENTRY_BYTES, Layout, u32_at};
use crate::BlockState;
use crate::checksum::{crc32c, crc32c_append};
use std::collections::BTreeSet;

/// Entries are read and first written in pieces of this many.
const PIECE_ENTRIES: usize = 1 << 16;
const CRC_AT: usize = 12;

/// The state of every block, by its dense number.
#[derive(Debug)]
pub(super) struct Table {
    offset: u64,
    entries: Vec<BlockState>,
    /// Blocks whose entry on file is an older one.
    behind: BTreeSet<usize>,
}

impl Table {
    /// Writes the table of an erased drive.
    pub(super) fn create(disk: &mut Disk, layout: &Layout) -> Result<Table, ImageError> {
        let table = Table {
            offset: layout.table_offset,
            entries: vec![BlockState::default(); layout.blocks()],
            behind: BTreeSet::new(),
        };
        for first in (0..table.entries.len()).step_by(PIECE_ENTRIES) {
            let numbers = first..table.entries.len().min(first + PIECE_ENTRIES);
            let bytes: Vec<u8> = numbers.flat_map(|number| entry(number, table.entries[number])).collect();
            disk.write(table.offset + first as u64 * ENTRY_BYTES, &bytes, "the table of blocks")?;
        }
        Ok(table)
    }

    /// Reads the table.
    pub(super) fn open(disk: &Disk, layout: &Layout) -> Result<Table, ImageError> {
        let units_max = layout.geometry.units_per_block();
        let (offset, blocks) = (layout.table_offset, layout.blocks());
        let mut entries = Vec::with_capacity(blocks);
        let mut bytes = Vec::new();
        while entries.len() < blocks {
            let first = entries.len();
            bytes.resize((blocks - first).min(PIECE_ENTRIES) * ENTRY_BYTES as usize, 0);
            disk.read(offset + first as u64 * ENTRY_BYTES, &mut bytes, "the table of blocks")?;
            for found in bytes.chunks_exact(ENTRY_BYTES as usize) {
                let state = BlockState { units_programmed: u32_at(found, 0), erases: u32_at(found, 4) };
                let number = entries.len();
                if found != entry(number, state) || state.units_programmed > units_max {
                    return Err(disk.error(damaged(format!("the table's entry of block {number} was not written so"))));
                }
                entries.push(state);
            }
        }
        Ok(Table { offset, entries, behind: BTreeSet::new() })
    }

    pub(super) fn get(&self, number: usize) -> BlockState {
        self.entries[number]
    }

    /// Notes that the unit with number `row` of a block was programmed. The entry may say so already, if an earlier process wrote it; but
    /// after a failed sync nobody knows whether it is durable.
    pub(super) fn programmed(&mut self, number: usize, row: u32) {
        let state = &mut self.entries[number];
        state.units_programmed = state.units_programmed.max(row + 1);
        self.behind.insert(number);
    }

    pub(super) fn erased(&mut self, number: usize) {
        let state = &mut self.entries[number];
        *state = BlockState { units_programmed: 0, erases: state.erases.saturating_add(1) };
        self.behind.insert(number);
    }

    /// Whether the entry of this block, if it falls behind now, will be written after all others that are behind.
    pub(super) fn is_behind_all(&self, number: usize) -> bool {
        self.behind.last().is_none_or(|&last| last < number)
    }

    /// Writes what the file does not have yet, in the order of the blocks; returns whether there was something.
    pub(super) fn write(&mut self, disk: &mut Disk) -> Result<bool, ImageError> {
        let behind: Vec<usize> = self.behind.iter().copied().collect();
        for run in behind.chunk_by(|number, next| number + 1 == *next) {
            let bytes: Vec<u8> = run.iter().flat_map(|&number| entry(number, self.entries[number])).collect();
            disk.write(self.offset + run[0] as u64 * ENTRY_BYTES, &bytes, "the table of blocks")?;
        }
        self.behind.clear();
        Ok(!behind.is_empty())
    }
}

/// The bytes of an entry. The CRC also covers the block's number, so that an entry written to a wrong place is invalid.
fn entry(number: usize, state: BlockState) -> [u8; ENTRY_BYTES as usize] {
    let mut bytes = [0; ENTRY_BYTES as usize];
    bytes[..4].copy_from_slice(&state.units_programmed.to_le_bytes());
    bytes[4..8].copy_from_slice(&state.erases.to_le_bytes());
    let crc = crc32c_append(crc32c(&(number as u64).to_le_bytes()), &bytes[..CRC_AT]);
    bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    bytes
}
