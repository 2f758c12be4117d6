//! What a policy sees of a superblock.
//!
//! ```text
//!   superblock   | appended and alive | appended and dead | padding |
//!                 <---- kept --------> <----- given -----> <- kept ->      without life nothing is kept
//! ```

use crate::layout::oob::Stream;
use crate::layout::packing::Packing;
use crate::space::superblock::{State, Superblock, Superblocks};
use crate::space::victims::{MAP_KEPT_WEIGHT, VictimPolicy};
use kvssd_flash::SuperblockId;

/// A superblock that can be collected, as a policy sees it. At least a page of it would be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// The grains of a superblock.
    pub grains: u64,
    /// Those that belong to records that live.
    pub live_grains: u64,
    /// Those that no record was given. Moving records leaves about as many behind again.
    pub padding_grains: u64,
    /// How often what it keeps counts: once, and more often where it is of the map, whose sections die by themselves.
    pub kept_weight: u64,
    /// Its erases beyond those of the least worn superblock; 0 where the policy has no [`VictimPolicy::erase_spread_max`].
    pub wear: u32,
    /// The pages that all streams have begun since it was full. A mount counts anew: what was full before is older than anything since.
    pub age_pages: u64,
}

impl Candidate {
    /// The grains that collecting it does not free: those that live, and as much padding.
    #[must_use]
    pub fn kept_grains(&self) -> u64 {
        if self.live_grains == 0 { 0 } else { self.live_grains + self.padding_grains }
    }

    /// The grains that collecting it frees.
    #[must_use]
    pub fn given_grains(&self) -> u64 {
        self.grains - self.kept_grains()
    }
}

/// The superblocks of a drive, for a choice among them.
pub(crate) struct Candidates<'d> {
    pub(crate) superblocks: &'d Superblocks,
    pub(crate) packing: &'d Packing,
    /// The erases of each, in their order; empty where the policy does not weigh them.
    pub(crate) erases: &'d [u32],
    /// The pages that all streams have begun.
    pub(crate) pages_begun: u64,
}

impl Candidates<'_> {
    /// The one that `policy` takes of those that `can` be a victim. None when none gives a page. Where `map_dies`, what is kept
    /// of the map counts [`MAP_KEPT_WEIGHT`] times.
    pub(crate) fn best(
        &self,
        policy: &dyn VictimPolicy,
        map_dies: bool,
        can: impl Fn(SuperblockId, &Superblock) -> bool,
    ) -> Option<SuperblockId> {
        let least = self.erases.iter().min().copied().unwrap_or_default();
        let given = |&(id, superblock): &(SuperblockId, &Superblock)| {
            can(id, superblock) && gives_grains(superblock, self.packing).is_some()
        };
        let cost = |&(id, superblock): &(SuperblockId, &Superblock)| {
            policy.cost(&Candidate {
                grains: self.packing.grains_per_superblock,
                live_grains: superblock.live_grains,
                padding_grains: self.packing.grains_per_superblock - superblock.appended_grains,
                kept_weight: if map_dies && superblock.stream == Stream::Map { MAP_KEPT_WEIGHT } else { 1 },
                wear: self.erases.get(id.0 as usize).map_or(0, |erases| erases - least),
                age_pages: self.pages_begun.saturating_sub(self.superblocks.closed_at(id)),
            })
        };
        self.all().filter(given).min_by_key(cost).map(|(id, _)| id)
    }

    /// The least worn that can be a victim, when the spread is beyond that bound: it is collected though it gives nothing.
    pub(crate) fn to_level(&self, erase_spread_max: u32) -> Option<SuperblockId> {
        let erases_of = |id: SuperblockId| self.erases[id.0 as usize];
        let closed = self.all().filter(|(_, superblock)| can_be_collected(superblock, false));
        let (coldest, _) =
            closed.min_by_key(|(id, superblock)| (erases_of(*id), live_or_padding_grains(superblock, self.packing)))?;
        let worn = self.all().filter(|(_, superblock)| superblock.state != State::System);
        let most = worn.map(|(id, _)| erases_of(id)).max().unwrap_or_default();
        (most - erases_of(coldest) > erase_spread_max).then_some(coldest)
    }

    fn all(&self) -> impl Iterator<Item = (SuperblockId, &Superblock)> {
        (0..).map(SuperblockId).zip(self.superblocks.all())
    }
}

/// Whether a superblock can be a victim.
pub(crate) fn can_be_collected(superblock: &Superblock, map_only: bool) -> bool {
    superblock.state == State::Closed
        && match superblock.stream {
            Stream::Map => true,
            Stream::User | Stream::Gc => !map_only,
            Stream::Journal => false,
        }
}

/// The grains of a superblock that are not dead: those that live, and those that are padding.
fn live_or_padding_grains(superblock: &Superblock, packing: &Packing) -> u64 {
    packing.grains_per_superblock - superblock.appended_grains + superblock.live_grains
}

/// The grains that collecting a superblock frees; `None` when that is less than a page.
pub(crate) fn gives_grains(superblock: &Superblock, packing: &Packing) -> Option<u64> {
    // A superblock in which nothing lives is free at once, however much of it is padding.
    let kept = if superblock.live_grains == 0 { 0 } else { live_or_padding_grains(superblock, packing) };
    let gives = packing.grains_per_superblock - kept;
    (gives >= u64::from(packing.grains_per_page)).then_some(gives)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::layout::packing::RecordLayout;
    use crate::space::victims::Greedy;

    const PACKING: Packing =
        Packing { grain_bytes: 64, grains_per_page: 1, grains_per_superblock: 10, layout: RecordLayout::Grains };

    fn superblocks(all: &[(State, Stream, u64)]) -> Superblocks {
        let mut superblocks = Superblocks::new(all.len() as u32, 1);
        let superblock = |&(state, stream, live_grains): &(State, Stream, u64)| Superblock {
            live_grains,
            appended_grains: 10,
            ..Superblock::new(state, stream)
        };
        superblocks.recover(all.iter().map(superblock).collect());
        superblocks
    }

    /// The victim among closed superblocks with these living grains, of ten, and these erases.
    pub(crate) fn victim(policy: &dyn VictimPolicy, all: &[(u64, u32)], may_level: bool) -> Option<u32> {
        let closed: Vec<_> = all.iter().map(|&(live_grains, _)| (State::Closed, Stream::User, live_grains)).collect();
        let erases: Vec<u32> = all.iter().map(|&(_, erases)| erases).collect();
        let superblocks = &superblocks(&closed);
        let candidates = Candidates { superblocks, packing: &PACKING, erases: &erases, pages_begun: 0 };
        let leveled = policy.erase_spread_max().filter(|_| may_level).and_then(|spread| candidates.to_level(spread));
        leveled.or_else(|| candidates.best(policy, true, |_, _| true)).map(|victim| victim.0)
    }

    #[test]
    fn what_is_closed_is_a_candidate_and_what_the_map_keeps_dies_by_itself() {
        let all = [
            (State::System, Stream::User, 0),
            (State::Free, Stream::User, 0),
            (State::Open, Stream::Map, 1),
            (State::Victim, Stream::Map, 2),
            (State::Closed, Stream::Journal, 3),
            (State::Closed, Stream::User, 5),
            (State::Closed, Stream::Map, 6),
        ];
        let best = |all: &[(State, Stream, u64)], map_only| {
            let superblocks = &superblocks(all);
            let candidates = Candidates { superblocks, packing: &PACKING, erases: &[], pages_begun: 0 };
            candidates.best(&Greedy, true, |_, one| can_be_collected(one, map_only))
        };
        assert_eq!(best(&all, false), Some(SuperblockId(5)));
        assert_eq!(best(&all, true), Some(SuperblockId(6)));
        assert_eq!(best(&all[..5], false), None);
        let mut all = all;
        all[6].2 = 1;
        assert_eq!(best(&all, false), Some(SuperblockId(5)));
        all[6].2 = 0;
        assert_eq!(best(&all, false), Some(SuperblockId(6)));
    }
}
