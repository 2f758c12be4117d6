//! The choices of an index of sections.

use crate::dram::DramUse;
use crate::index::plan::{IndexPlan, Room};
use crate::index::{Forecast, Index, Outlook, SectionForm, SectionIndex, Sectioned};
use crate::parameters::Parameters;
use std::fmt;

/// The choices of an index of sections: [`IndexPlan`] by what the index says itself.
pub trait SectionPlan: fmt::Debug + Clone + Send + Sync + 'static {
    /// What is built.
    type Index: SectionIndex + 'static;

    /// As [`IndexPlan::name`].
    fn name(&self) -> &'static str;

    /// As [`IndexPlan::parameters`].
    fn parameters(&mut self) -> Parameters<'_> {
        Vec::new()
    }

    /// As [`IndexPlan::check`].
    ///
    /// # Errors
    /// Names the choice that is not possible, and what it can be.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// As [`IndexPlan::begin_small`].
    fn begin_small(&mut self) {}

    /// As [`IndexPlan::pairs_max`].
    fn pairs_max(&self, room: &Room) -> Option<u64> {
        let _ = room;
        None
    }

    /// The empty index. The choices were checked.
    ///
    /// # Errors
    /// Why the index cannot be built in the room.
    fn index(&self, room: &Room) -> Result<Self::Index, String>;

    /// As [`IndexPlan::charge`]. By default that is the DRAM of the empty index.
    fn charge(&self, index: &Self::Index, room: &Room, dram: &mut DramUse) {
        let _ = room;
        index.dram(dram);
    }

    /// As [`IndexPlan::forecast`], of the empty index.
    fn forecast(&self, index: &Self::Index, outlook: &Outlook) -> Option<Forecast> {
        let _ = (index, outlook);
        None
    }
}

impl<P: SectionPlan> IndexPlan for P {
    fn name(&self) -> &'static str {
        SectionPlan::name(self)
    }

    fn parameters(&mut self) -> Parameters<'_> {
        SectionPlan::parameters(self)
    }

    fn check(&self) -> Result<(), String> {
        SectionPlan::check(self)
    }

    fn begin_small(&mut self) {
        SectionPlan::begin_small(self);
    }

    fn splits(&self) -> bool {
        P::Index::SPLITS
    }

    fn build(&self, room: &Room) -> Result<Box<dyn Index>, String> {
        Ok(Box::new(Sectioned::new(checked(self, room)?, room.page_bytes)))
    }

    fn pairs_max(&self, room: &Room) -> Option<u64> {
        SectionPlan::pairs_max(self, room)
    }

    fn tags(&self, room: &Room) -> u64 {
        // An index that cannot be built is refused later, when it is built: any number will do here.
        checked(self, room).map_or(room.grains, |index| index.tags())
    }

    fn has_tags_of_keys(&self) -> bool {
        P::Index::HAS_TAGS_OF_KEYS
    }

    fn charge(&self, room: &Room, dram: &mut DramUse) {
        if let Ok(index) = checked(self, room) {
            SectionPlan::charge(self, &index, room, dram);
        }
    }

    fn forecast(&self, outlook: &Outlook) -> Option<Forecast> {
        SectionPlan::forecast(self, &checked(self, &outlook.room).ok()?, outlook)
    }
}

/// The empty index, if there can be one.
fn checked<P: SectionPlan>(plan: &P, room: &Room) -> Result<P::Index, String> {
    SectionPlan::check(plan)?;
    let index = plan.index(room)?;
    let (name, bytes, page_bytes) = (SectionPlan::name(plan), index.form().bytes_max(), room.page_bytes);
    let has_room = (1..=page_bytes).contains(&bytes);
    has_room.then_some(index).ok_or_else(|| {
        format!(
            "{name} has sections of {bytes} bytes: one lies in a page, of which it can take 1 to {page_bytes} bytes"
        )
    })
}
