//! How wide the steps of garbage collection are: what disturbs commands, and how soon there is room.

use crate::parameters::Parameter;

/// What decides how many pages a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionPace {
    /// How much room is gone.
    Room,
    /// The same while somebody takes room; else a page at a time, since nobody waits for it.
    Demand,
}

impl CollectionPace {
    const ALL: [CollectionPace; 2] = [CollectionPace::Room, CollectionPace::Demand];

    fn name(self) -> &'static str {
        match self {
            CollectionPace::Room => "room",
            CollectionPace::Demand => "demand",
        }
    }
}

impl Parameter for CollectionPace {
    fn text(&self) -> String {
        self.name().to_owned()
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        let found = CollectionPace::ALL.into_iter().find(|pace| pace.name() == text);
        *self = found.ok_or("the value must be room or demand")?;
        Ok(())
    }
}
