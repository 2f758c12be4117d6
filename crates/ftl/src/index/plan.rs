//! The plan of an index: its parameters, and how it is built. A new index is an [`Index`] and its plan.

use crate::dram::DramUse;
use crate::index::{Forecast, Index, Outlook};
use crate::parameters::Parameters;
use dyn_clone::DynClone;
use std::any::Any;
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
pub trait IndexPlan: Any + DynClone + fmt::Debug + Send + Sync {
    /// The name in lists.
    fn name(&self) -> &'static str;

    /// What can be chosen.
    fn parameters(&mut self) -> Parameters<'_> {
        Vec::new()
    }

    /// Checks the choices.
    ///
    /// # Errors
    /// Names the choice that is not possible, and what it can be.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Makes the index begin as small as it can, so that it has to grow on the tiny drives of tests.
    fn begin_small(&mut self) {}

    /// Whether it is one of sections that split ([`SectionIndex::SPLITS`](crate::index::SectionIndex::SPLITS)).
    fn splits(&self) -> bool {
        false
    }

    /// Builds the empty index. The choices were checked.
    ///
    /// # Errors
    /// Why the index cannot be built in the room.
    fn build(&self, room: &Room) -> Result<Box<dyn Index>, String>;

    /// The most pairs that the index takes; `None` if only flash or DRAM limits that.
    fn pairs_max(&self, room: &Room) -> Option<u64> {
        let _ = room;
        None
    }

    /// The exclusive upper bound of the tags of its pairs and of the numbers of its own records.
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

    /// What the index will do, computed without a run, for `kvssd estimate`. `None` if the index has no forecast.
    fn forecast(&self, outlook: &Outlook) -> Option<Forecast> {
        let _ = outlook;
        None
    }
}

dyn_clone::clone_trait_object!(IndexPlan);
