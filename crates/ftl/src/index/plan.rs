//! The plan of an index: its parameters, and how it is built. A new index is an [`Index`] and its plan.

use crate::dram::DramUse;
use crate::index::{Forecast, Index, Outlook};
use crate::parameters::Parameters;
use dyn_clone::DynClone;
use std::fmt;

/// The drive that an index is built for.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Bytes of its flash.
    pub raw_bytes: u64,
    /// Bytes of a page that records may take.
    pub page_bytes: u32,
    /// Bytes of a grain.
    pub grain_bytes: u32,
    /// Grains of the drive.
    pub grains: u64,
    /// Pages of a superblock.
    pub superblock_pages: u32,
    /// [`Design::merges_by_ranges`](crate::Design::merges_by_ranges).
    pub merges_by_ranges: bool,
}

/// The choices of an index, and how it is built from them.
pub trait IndexPlan: DynClone + fmt::Debug + Send + Sync {
    /// The name in lists.
    fn name(&self) -> &'static str;

    /// What can be chosen.
    fn parameters(&mut self) -> Parameters<'_> {
        Vec::new()
    }

    /// Whether the choices can be.
    ///
    /// # Errors
    /// Which cannot, and what it can be.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Chooses that it begins as small as it can: on the tiny drives of tests, an index that grows must.
    fn begin_small(&mut self) {}

    /// Whether it is one of sections that split ([`SectionIndex::SPLITS`](crate::index::SectionIndex::SPLITS)).
    fn splits(&self) -> bool {
        false
    }

    /// Builds the empty index. The choices were checked.
    ///
    /// # Errors
    /// What in the room it cannot be built with.
    fn build(&self, room: &Room) -> Result<Box<dyn Index>, String>;

    /// The most pairs that it takes, where that does not hang on flash or DRAM.
    fn pairs_max(&self, room: &Room) -> Option<u64> {
        let _ = room;
        None
    }

    /// The number that all tags of its pairs, and all numbers of its own records, are below.
    fn tags(&self, room: &Room) -> u64;

    /// Whether a pair's tag follows from its key ([`Index::tag_of`]), so that it need not lie out of band.
    fn has_tags_of_keys(&self) -> bool {
        false
    }

    /// Whether it keeps keys in order ([`Index::ranges`]).
    fn is_ordered(&self) -> bool {
        false
    }

    /// Charges the most that it keeps in DRAM beside cached sections: that of a drive with a pair in every grain.
    fn charge(&self, room: &Room, dram: &mut DramUse);

    /// What it will do, reckoned and not run; none where nobody has reckoned it. `kvssd estimate` asks.
    fn forecast(&self, outlook: &Outlook) -> Option<Forecast> {
        let _ = outlook;
        None
    }
}

dyn_clone::clone_trait_object!(IndexPlan);
