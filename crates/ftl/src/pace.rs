//! How wide the steps of garbage collection are: what disturbs commands, and how soon there is room.

use crate::parameters::Parameter;
use kvssd_types::{UnknownName, named_enum};

named_enum! {
    /// What decides how many pages a step reads.
    pub enum CollectionPace: "pace" {
        /// How much room is gone.
        Room = "room",
        /// The same while somebody takes room; else a page at a time, since nobody waits for it.
        Demand = "demand",
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
