//! Validity: how garbage collection knows that a record is dead.
//!
//! | name | keeps in DRAM | on flash |
//! |---|---|---|
//! | `grain-bitmap` | a bit a grain | nothing |
//! | `invalid-mappings` | a counter a page, a buffer a superblock | pages of (hash index, grain) that died |
//! | `ask-index` | a counter a page | nothing: the index is asked |
//!
//! A validity is pure state: it never touches flash. The engine writes and reads for it.

mod grain_bitmap;
mod invalid_mappings;
mod page_counters;

pub use grain_bitmap::GrainBitmap;
pub use invalid_mappings::InvalidMappings;
pub use page_counters::PageCounters;

use crate::dram::DramUse;
use crate::layout::address::Grain;
use dyn_clone::DynClone;
use kvssd_flash::Blob;
use kvssd_flash::{PageAddress, SuperblockId};

/// A page that a validity wants to have in flash.
#[derive(Clone, Debug)]
pub struct Spill {
    /// The superblock that it speaks of.
    pub superblock: SuperblockId,
    /// Its bytes, a page of them.
    pub bytes: Blob,
}

/// Knows which records are dead.
///
/// The engine reports every record that begins or ceases to live, grain by grain ([`add`](Validity::add),
/// [`remove`](Validity::remove): runs never cross a superblock), and each pair whose mapping was replaced or removed
/// ([`pair_died`](Validity::pair_died)). In return `is_live` must be right for every pair of a superblock between
/// `open_victim` and `close_victim`. A validity that spills pages has their places reported back, and is told when
/// garbage collection moves them.
pub trait Validity: DynClone + Send + Sync {
    /// `grains` grains from `first` on belong to a record that lives.
    fn add(&mut self, first: Grain, grains: u32);

    /// `grains` grains from `first` on belonged to a record that died or moved away.
    fn remove(&mut self, first: Grain, grains: u32);

    /// Whether nothing in the page lives, so that it need not be read.
    fn page_is_dead(&self, page: PageAddress) -> bool {
        self.live_grains_of(page) == 0
    }

    /// Whether these grains of one superblock may begin to live. A mount asks, since bytes from flash may say anything.
    fn can_add(&self, first: Grain, grains: u32) -> bool;

    /// Whether these grains, of one superblock, may cease to live.
    fn can_remove(&self, first: Grain, grains: u32) -> bool;

    /// How many grains of the page live.
    fn live_grains_of(&self, page: PageAddress) -> u32;

    /// The pair with `tag` at `place` is not the key's pair any more. Returns a page to write when one is full.
    fn pair_died(&mut self, tag: u64, place: Grain) -> Option<Spill> {
        let _ = (tag, place);
        None
    }

    /// Where the pages that were spilled for a superblock lie.
    fn spills(&self, superblock: SuperblockId) -> &[Grain] {
        let _ = superblock;
        &[]
    }

    /// The page that was spilled for a superblock lies at `place`.
    fn spilled(&mut self, superblock: SuperblockId, place: Grain) {
        let _ = (superblock, place);
    }

    /// The places of the dead pairs of a superblock, in any order; `pages` are the contents of its spills. `None` if this
    /// validity keeps no such list.
    fn dead_places(&self, superblock: SuperblockId, pages: &[Blob]) -> Option<Vec<Grain>> {
        let _ = (superblock, pages);
        None
    }

    /// Whether the page at `from` is still wanted; if so, it lies at `to` from now on.
    fn spill_moved(&mut self, superblock: SuperblockId, from: Grain, to: Grain) -> bool {
        let _ = (superblock, from, to);
        false
    }

    /// Garbage collection begins with a superblock; `pages` are the contents of its spills. Returns how many mappings were
    /// made ready to be searched.
    fn open_victim(&mut self, superblock: SuperblockId, pages: &[Blob]) -> usize {
        let _ = (superblock, pages);
        0
    }

    /// Whether the pair with `tag` at `place`, in an open victim, lives; none where only the index knows.
    fn is_live(&self, tag: u64, place: Grain) -> Option<bool> {
        let _ = (tag, place);
        None
    }

    /// Garbage collection is done with a superblock: the validity forgets it and gives up its spills.
    fn close_victim(&mut self, superblock: SuperblockId) -> Vec<Grain> {
        let _ = superblock;
        Vec::new()
    }

    /// The records at these places will die soon: memory may begin to bring what is known of them closer.
    fn warm(&self, places: &[Grain]) {
        let _ = places;
    }

    /// Every byte that a device would keep for this.
    fn dram(&self, dram: &mut DramUse);

    /// Everything that is known, for a checkpoint. Of a victim that is open, it may take dead pairs for alive: the index is asked about each.
    fn save(&self) -> Vec<u8>;

    /// A mount begins: becomes what was saved. None when these are not the bytes of such a validity.
    fn restore(&mut self, bytes: &[u8]) -> Option<()>;

    /// The sum of [`Validity::dram`].
    fn dram_bytes(&self) -> u64 {
        let mut dram = DramUse::default();
        self.dram(&mut dram);
        dram.total_bytes()
    }
}

dyn_clone::clone_trait_object!(Validity);
