//! Parity: the bytes that bring back one page of a row.
//!
//! ```text
//!   superblock   die 0   die 1   ...   parity           a row: the pages with the same number in the blocks of a superblock
//!     page 0       a       b      c    a ^ b ^ c        what was not programmed counts as zeros
//! ```
//!
//! The parity is gathered as the pages of a row are programmed and survives a power cut; of rows that the cut has torn it is
//! formed anew from what is there. It takes a die of its own, whose time is not modelled.

use crate::{BlockAddress, Geometry, PageAddress, SuperblockId};
use std::collections::BTreeSet;

/// The parity of every row of a drive.
#[derive(Debug)]
pub(crate) struct Parity {
    geometry: Geometry,
    rows: Vec<Box<[u8]>>,
    /// Rows with pages that were changed behind its back.
    stale: BTreeSet<usize>,
}

impl Parity {
    /// Of an erased drive.
    pub(crate) fn new(geometry: Geometry) -> Self {
        let rows = geometry.superblocks() as usize * geometry.pages_per_block as usize;
        let zeros = vec![0; geometry.page_bytes as usize + geometry.oob_bytes as usize];
        Parity { geometry, rows: vec![zeros.into(); rows], stale: BTreeSet::new() }
    }

    /// The bytes of `page` come, or go, which is the same.
    pub(crate) fn absorb(&mut self, page: PageAddress, bytes: &[u8]) {
        let row = self.row_of(page);
        add(&mut self.rows[row], bytes);
    }

    /// Nobody knows what happens to the bytes of `page`.
    pub(crate) fn distrust(&mut self, page: PageAddress) {
        let row = self.row_of(page);
        self.stale.insert(row);
    }

    /// Forms the parity of the rows anew whose pages were changed behind its back: what a controller does when the power comes.
    pub(crate) fn refresh<'m>(&mut self, bytes_of: impl Fn(PageAddress) -> Option<&'m [u8]>) {
        for row in std::mem::take(&mut self.stale) {
            let pages = self.pages_of(row);
            let sum = &mut self.rows[row];
            sum.fill(0);
            pages.into_iter().filter_map(&bytes_of).for_each(|bytes| add(sum, bytes));
        }
    }

    /// The bytes that `page` must have had, from those of the other pages in its row.
    pub(crate) fn rebuilt<'m>(
        &self,
        page: PageAddress,
        bytes_of: impl Fn(PageAddress) -> Option<&'m [u8]>,
    ) -> Box<[u8]> {
        let row = self.row_of(page);
        let mut sum = self.rows[row].clone();
        let others = self.pages_of(row).into_iter().filter(|other| *other != page);
        others.filter_map(bytes_of).for_each(|bytes| add(&mut sum, bytes));
        sum
    }

    fn row_of(&self, page: PageAddress) -> usize {
        let (block, unit_row) = self.geometry.block_of(self.geometry.unit_of(page));
        let within = page.0 % self.geometry.pages_per_program;
        let page_row = unit_row * self.geometry.pages_per_program + within;
        block.superblock.0 as usize * self.geometry.pages_per_block as usize + page_row as usize
    }

    fn pages_of(&self, row: usize) -> Vec<PageAddress> {
        let geometry = &self.geometry;
        let superblock = SuperblockId((row / geometry.pages_per_block as usize) as u32);
        let page_row = (row % geometry.pages_per_block as usize) as u32;
        let (unit_row, within) = (page_row / geometry.pages_per_program, page_row % geometry.pages_per_program);
        let unit = |die| geometry.unit_at(BlockAddress { superblock, die }, unit_row);
        geometry.dies_of(superblock).map(|die| PageAddress(unit(die).0 * geometry.pages_per_program + within)).collect()
    }
}

fn add(sum: &mut [u8], bytes: &[u8]) {
    sum.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum ^= byte);
}
