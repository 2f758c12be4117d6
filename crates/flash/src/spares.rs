//! Spare blocks, and the table of those that stand in for retired ones. It is the controller's own and outlives a power cut.

use crate::{BlockAddress, Geometry, MediaError, PageAddress, SuperblockId, UnitAddress};
use std::collections::BTreeMap;

/// The table.
#[derive(Debug)]
pub(crate) struct Spares {
    geometry: Geometry,
    stand_ins: BTreeMap<BlockAddress, BlockAddress>,
    /// The next spare of each die; those of all dies end at the same number.
    next: Vec<u32>,
    end: u32,
}

impl Spares {
    /// `per_die` blocks behind those of `geometry`, on each die.
    pub(crate) fn new(geometry: Geometry, per_die: u32) -> Self {
        let first = geometry.blocks_per_die;
        let next = vec![first; geometry.dies() as usize];
        Spares { geometry, stand_ins: BTreeMap::new(), next, end: first + per_die }
    }

    /// The geometry with the spares.
    pub(crate) fn physical(&self) -> Geometry {
        Geometry { blocks_per_die: self.end, ..self.geometry }
    }

    /// The block that holds what is written to `block`.
    pub(crate) fn block_of(&self, block: BlockAddress) -> BlockAddress {
        self.stand_ins.get(&block).copied().unwrap_or(block)
    }

    /// The unit that holds what is written to `unit`.
    pub(crate) fn unit_of(&self, unit: UnitAddress) -> UnitAddress {
        let (block, row) = self.geometry.block_of(unit);
        self.geometry.unit_at(self.block_of(block), row)
    }

    /// The page that holds what is written to `page`.
    pub(crate) fn page_of(&self, page: PageAddress) -> PageAddress {
        let unit = self.geometry.unit_of(page);
        let within = page.0 - unit.0 * self.geometry.pages_per_program;
        PageAddress(self.unit_of(unit).0 * self.geometry.pages_per_program + within)
    }

    /// Has a spare block of its die stand in for a block; returns the one that did so far.
    ///
    /// # Errors
    /// [`MediaError::Failed`] when the die has none left.
    pub(crate) fn retire(&mut self, block: BlockAddress) -> Result<BlockAddress, MediaError> {
        let next = &mut self.next[block.die.0 as usize];
        if *next == self.end {
            return Err(MediaError::Failed(format!("die {} has no spare block left", block.die.0)));
        }
        let superblock = *next * self.geometry.targets() + self.geometry.target_of(block.superblock);
        let spare = BlockAddress { superblock: SuperblockId(superblock), ..block };
        *next += 1;
        let retired = self.block_of(block);
        self.stand_ins.insert(block, spare);
        Ok(retired)
    }
}
