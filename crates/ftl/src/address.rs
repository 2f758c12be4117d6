//! Grains: the smallest piece of flash that a record can be given.

use kvssd_flash::{Geometry, PageAddress, SuperblockId};
use serde::{Deserialize, Serialize};

/// The address of a grain: grains are numbered through pages in the pages' order. Grain 0 lies in the system superblock and is
/// never a record's: it stands for "nowhere" in tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Grain(pub u64);

/// How pages are divided into grains.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    /// Bytes of a grain.
    pub grain_bytes: u32,
    /// Grains of a page.
    pub grains_per_page: u32,
    /// Grains of a superblock.
    pub grains_per_superblock: u64,
}

impl Packing {
    /// Pages of `geometry` divided into grains of `grain_bytes`, which must divide a page.
    #[must_use]
    pub fn new(geometry: &Geometry, grain_bytes: u32) -> Self {
        let grains_per_page = geometry.page_bytes / grain_bytes;
        let grains_per_superblock = u64::from(grains_per_page) * u64::from(geometry.pages_per_superblock());
        Packing { grain_bytes, grains_per_page, grains_per_superblock }
    }

    /// The page that a grain lies in.
    #[must_use]
    pub fn page_of(&self, grain: Grain) -> PageAddress {
        PageAddress((grain.0 / u64::from(self.grains_per_page)) as u32)
    }

    /// Which of its page's grains a grain is.
    #[must_use]
    pub fn index_in_page(&self, grain: Grain) -> u32 {
        (grain.0 % u64::from(self.grains_per_page)) as u32
    }

    /// The first byte of a grain in its page.
    #[must_use]
    pub fn byte_in_page(&self, grain: Grain) -> usize {
        self.index_in_page(grain) as usize * self.grain_bytes as usize
    }

    /// The grain with number `index` of a page.
    #[must_use]
    pub fn grain(&self, page: PageAddress, index: u32) -> Grain {
        Grain(u64::from(page.0) * u64::from(self.grains_per_page) + u64::from(index))
    }

    /// The superblock that a grain lies in.
    #[must_use]
    pub fn superblock_of(&self, grain: Grain) -> SuperblockId {
        SuperblockId((grain.0 / self.grains_per_superblock) as u32)
    }

    /// The grains that `bytes` take.
    #[must_use]
    pub fn grains_of(&self, bytes: usize) -> u32 {
        bytes.div_ceil(self.grain_bytes as usize) as u32
    }
}
