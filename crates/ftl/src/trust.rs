//! What a mount reads is believed only after it was looked at: bytes from flash may say anything, and nothing that they
//! say may stop the program.

use crate::address::Grain;
use crate::durability::Image;
use crate::log::Log;
use crate::media::Media;
use crate::namespace::SavedNamespace;
use crate::oob::Stream;
use crate::superblock::State;
use kvssd_flash::{Flash, Geometry, PageAddress, SuperblockId};

impl Media {
    /// The runs of a record of `grains` grains at `place`, by superblock; none when there can be no such record.
    pub(crate) fn runs_of(&self, place: Grain, grains: u32) -> Option<Vec<(SuperblockId, Grain, u32)>> {
        let per_superblock = self.packing.grains_per_superblock;
        // A record has at most a superblock of bytes and a head, and so touches three at the most.
        if u64::from(grains) > 2 * per_superblock {
            return None;
        }
        let (mut first, mut left) = (place, grains);
        let mut runs = Vec::with_capacity(1);
        while left > 0 {
            let number = u32::try_from(first.0 / per_superblock).ok()?;
            let superblock = self.superblocks.all().get(number as usize)?;
            if superblock.state == State::System {
                return None;
            }
            let count = u64::from(left).min(per_superblock - first.0 % per_superblock) as u32;
            runs.push((SuperblockId(number), first, count));
            left -= count;
            first = Grain(u64::from(superblock.next.0) * per_superblock);
        }
        Some(runs)
    }

    /// Whether each superblock that records live in has been written to, or is being gathered. One that was erased
    /// since shows that the end of what was known is missing.
    pub(crate) fn all_life_is_written(&self) -> bool {
        let numbered = (0..).map(SuperblockId).zip(self.superblocks.all());
        numbered.filter(|(_, superblock)| superblock.live_grains > 0).all(|(superblock, _)| {
            let first = self.geometry.first_page(superblock);
            self.flash.is_programmed(first) || self.log.open_page(&self.geometry, first).is_some()
        })
    }

    /// A superblock that was erased since a stream opened it, though records live in it or the stream stands in it. Its
    /// pages and the table of blocks agree with each other: only the count from its opening tells.
    pub(crate) fn stale_superblock(&self) -> Option<SuperblockId> {
        let numbered = (0..).map(SuperblockId).zip(self.superblocks.all());
        let mut wanted =
            numbered.filter(|(_, superblock)| superblock.live_grains > 0 || superblock.state == State::Open);
        wanted.find(|(id, superblock)| superblock.generation != self.flash.generation(*id)).map(|(id, _)| id)
    }

    /// Whether validity and the table of superblocks, as a checkpoint has put them back, count the same.
    pub(crate) fn counts_agree(&self) -> bool {
        (0..).map(SuperblockId).zip(self.superblocks.all()).all(|(id, superblock)| {
            let first = self.geometry.first_page(id).0;
            let pages = (first..first + self.geometry.pages_per_superblock()).map(PageAddress);
            let counted: u64 = pages.map(|page| u64::from(self.validity.live_grains_of(page))).sum();
            counted == superblock.live_grains && superblock.live_grains <= superblock.appended_grains
        })
    }

    /// Whether a record of `grains` grains may begin to live at `place`.
    pub(crate) fn can_occupy(&self, place: Grain, grains: u32) -> bool {
        self.runs_of(place, grains).is_some_and(|runs| {
            runs.iter().all(|&(superblock, first, grains)| {
                let superblock = self.superblocks.get(superblock);
                superblock.live_grains + u64::from(grains) <= self.packing.grains_per_superblock
                    && self.validity.can_add(first, grains)
            })
        })
    }

    /// Whether a record of `grains` grains at `place` may cease to live.
    pub(crate) fn can_vacate(&self, place: Grain, grains: u32) -> bool {
        self.runs_of(place, grains).is_some_and(|runs| {
            runs.iter().all(|&(superblock, first, grains)| {
                self.superblocks.get(superblock).live_grains >= u64::from(grains)
                    && self.validity.can_remove(first, grains)
            })
        })
    }
}

impl Image {
    /// Whether a drive of these superblocks can have had this state.
    pub(crate) fn is_possible(&self, grains_per_superblock: u64) -> bool {
        let count = self.superblocks.len();
        let can_be = |namespace: &SavedNamespace| {
            let (pairs, pair_bytes, record_bytes) = namespace.utilization;
            pairs <= pair_bytes && pair_bytes <= record_bytes && record_bytes < 1 << 56
        };
        self.namespaces.iter().all(can_be)
            && self.superblocks.iter().enumerate().all(|(number, superblock)| {
                (superblock.state == State::System) == (number == 0)
                    && superblock.state != State::Victim
                    && (superblock.next.0 as usize) < count
                    && superblock.live_grains <= grains_per_superblock
                    && superblock.appended_grains <= grains_per_superblock
                    && (superblock.live_grains == 0 || superblock.stream != Stream::Journal)
            })
    }
}

/// Whether the streams, as the write buffer's memory has put them back, stand where the flash lets them go on: what
/// lies behind them must be erased, and what lies before them written. None of them need be open.
pub(crate) fn stands_at_the_end(log: &Log, flash: &Flash, geometry: &Geometry) -> bool {
    log.iter().all(|log| {
        let Some(superblock) = log.superblock else { return true };
        let (first, stands) = (geometry.unit_of(geometry.first_page(superblock)).0, geometry.unit_of(log.page).0);
        (first..first + geometry.units_per_superblock())
            .all(|unit| flash.is_programmed(PageAddress(unit * geometry.pages_per_program)) == (unit < stands))
    })
}
