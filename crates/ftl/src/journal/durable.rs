//! What a mount will read, as far as it is kept in DRAM until it is written.

use crate::journal::Journal;
use crate::journal::batch_sequence::BatchSequence;
use crate::journal::clients::ClientTable;
use crate::journal::planted::PlantedBug;
use kvssd_flash::{PowerLoss, Profile};

/// What a mount will read.
#[derive(Clone)]
pub(crate) struct Durable {
    pub(crate) journal: Journal,
    /// The changes that clients had made.
    pub(crate) clients: ClientTable,
    /// The last batch over several drives that this one, their coordinator, has decided.
    pub(crate) decided: BatchSequence,
    /// Whether the write buffer's memory outlives a power cut, or nothing is written for a mount.
    pub(crate) power_loss: PowerLoss,
    /// Bytes that the write buffer's memory holds.
    pub(crate) staged_bytes: u64,
    pub(crate) planted: Option<PlantedBug>,
}

impl Durable {
    pub(crate) fn new(profile: &Profile) -> Self {
        Durable {
            journal: Journal::default(),
            clients: ClientTable::default(),
            decided: BatchSequence::default(),
            power_loss: profile.memory.power_loss,
            staged_bytes: 0,
            planted: None,
        }
    }

    /// Whether anything is written for a mount.
    pub(crate) fn is_on(&self) -> bool {
        self.power_loss != PowerLoss::Ignored
    }
}
