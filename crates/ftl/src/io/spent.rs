//! Where the time of a command goes.

use kvssd_types::{Nanos, named_enum};
use std::ops::AddAssign;

named_enum! {
    /// What a command waits for, or has done.
    pub enum SpentOn: "part of a command's time" {
        /// The host's queues, while the controller has as many commands under way as it can.
        Queue = "queue",
        /// The link to the host in both directions, and the transfers queued before.
        Link = "link",
        /// The controller's fixed latencies.
        Pipeline = "pipeline",
        /// An index that keeps the command out while it grows, and locks of batches.
        Closed = "closed",
        /// Free superblocks.
        Room = "room",
        /// A core that works on something else.
        CoreQueue = "core_queue",
        /// Work of a core.
        Core = "core",
        /// Flash operations on the index, and the operations queued before them.
        Map = "map",
        /// Flash operations on records, and the operations queued before them.
        Record = "record",
        /// Room in the write buffer, or its draining.
        Buffer = "buffer",
    }
}

/// The time of one command, or of many, by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent([Nanos; SpentOn::ALL.len()]);

impl Spent {
    /// Adds to a part.
    pub fn add(&mut self, part: SpentOn, time: Nanos) {
        self.0[part as usize] += time;
    }

    /// The time of a part.
    #[must_use]
    pub fn of(&self, part: SpentOn) -> Nanos {
        self.0[part as usize]
    }

    /// The time spent since `before`.
    #[must_use]
    pub fn since(mut self, before: &Spent) -> Spent {
        self.0.iter_mut().zip(before.0).for_each(|(part, before)| *part = *part - before);
        self
    }

    /// All of it.
    #[must_use]
    #[inline]
    pub fn total(&self) -> Nanos {
        self.0.iter().fold(Nanos::ZERO, |sum, &part| sum + part)
    }
}

impl AddAssign for Spent {
    #[inline]
    fn add_assign(&mut self, other: Spent) {
        self.0.iter_mut().zip(other.0).for_each(|(part, other)| *part += other);
    }
}
