//! How wide the steps of garbage collection are: what disturbs commands, and how soon there is room.

use crate::parameters::Parameter;
use kvssd_flash::Geometry;
use kvssd_types::{UnknownName, named_enum};

named_enum! {
    /// What decides how many pages a step reads.
    pub enum CollectionPace: "pace" {
        /// How much room is gone: up to two programs of each channel, half as many when half of the room is.
        Room = "room",
        /// Who takes room, too. One page while nobody does, since nobody waits for it. Else as many as above, and up to a program of each
        /// die, a quarter of them when half of the room is gone.
        Demand = "demand",
    }
}

impl CollectionPace {
    /// The pages that a step reads, up to `pages_max`, when `gone` of `low` superblocks of room are: few while there is time, which
    /// disturbs commands the least. The curves between are estimates. `is_calm` while nobody takes room.
    pub(crate) fn pages(self, geometry: &Geometry, pages_max: usize, gone: usize, low: usize, is_calm: bool) -> usize {
        let of_programs = |programs: u32| pages_max.min((programs * geometry.pages_per_program) as usize);
        let of_channels = of_programs(2 * geometry.channels) * gone / low;
        let of_dies = of_programs(geometry.dies()) * gone * gone / (low * low);
        let pages = match self {
            CollectionPace::Room => of_channels,
            CollectionPace::Demand if is_calm => 1,
            CollectionPace::Demand => of_channels.max(of_dies),
        };
        pages.max(1)
    }
}

impl Parameter for CollectionPace {
    fn text(&self) -> String {
        self.name().to_owned()
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        *self = text.parse().map_err(|unknown: UnknownName| unknown.to_string())?;
        Ok(())
    }
}
