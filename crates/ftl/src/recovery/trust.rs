//! A mount validates what it reads before it believes it: bytes from flash may say anything, and nothing that they say may
//! stop the program.

use crate::io::media::Media;
use crate::layout::oob::Stream;
use crate::recovery::durability::Checkpoint;
use crate::space::log::Log;
use crate::space::superblock::State;
use kvssd_flash::{Flash, Geometry, PageAddress, SuperblockId};

impl Media {
    /// Whether each superblock with live records was written to, or is being gathered. A superblock that was erased since shows
    /// that the end of the known changes is missing.
    pub(crate) fn all_life_is_written(&self) -> bool {
        let numbered = (0..).map(SuperblockId).zip(self.space.superblocks.all());
        numbered.filter(|(_, superblock)| superblock.live_grains > 0).all(|(superblock, _)| {
            let first = self.space.geometry.first_page(superblock);
            self.flash.is_programmed(first) || self.log.open_page(&self.space.geometry, first).is_some()
        })
    }

    /// A superblock that was erased after a stream opened it, though records live in it or the stream stands in it. Its pages
    /// and the table of blocks agree with each other: only the erase count at its opening tells.
    pub(crate) fn stale_superblock(&self) -> Option<SuperblockId> {
        let numbered = (0..).map(SuperblockId).zip(self.space.superblocks.all());
        let mut wanted =
            numbered.filter(|(_, superblock)| superblock.live_grains > 0 || superblock.state == State::Open);
        wanted.find(|(id, superblock)| superblock.generation != self.flash.generation(*id)).map(|(id, _)| id)
    }
}

impl Checkpoint {
    /// Whether a drive of these superblocks can have had this state.
    pub(crate) fn is_possible(&self, grains_per_superblock: u64) -> bool {
        let count = self.superblocks.len();
        self.namespaces.iter().all(|namespace| namespace.utilization.is_possible())
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
