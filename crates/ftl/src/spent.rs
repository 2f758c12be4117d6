//! Where the time of a command goes.

use kvssd_types::Nanos;
use std::ops::AddAssign;

/// What a command waits for, or has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpentOn {
    /// The host's queues, while the controller has as many commands under way as it can.
    Queue,
    /// The link to the host, in both directions, and those before it there.
    Link,
    /// The controller's fixed latencies.
    Pipeline,
    /// An index that keeps the command out while it grows, and locks of batches.
    Closed,
    /// Free superblocks.
    Room,
    /// A core that works on something else.
    CoreQueue,
    /// Work of a core.
    Core,
    /// Flash with a part of the index, and those before it there.
    Map,
    /// Flash with records, and those before it there.
    Record,
    /// Room in the write buffer, or that it is drained.
    Buffer,
}

impl SpentOn {
    /// All of them.
    pub const ALL: [SpentOn; 10] = [
        SpentOn::Queue,
        SpentOn::Link,
        SpentOn::Pipeline,
        SpentOn::Closed,
        SpentOn::Room,
        SpentOn::CoreQueue,
        SpentOn::Core,
        SpentOn::Map,
        SpentOn::Record,
        SpentOn::Buffer,
    ];

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SpentOn::Queue => "queue",
            SpentOn::Link => "link",
            SpentOn::Pipeline => "pipeline",
            SpentOn::Closed => "closed",
            SpentOn::Room => "room",
            SpentOn::CoreQueue => "core_queue",
            SpentOn::Core => "core",
            SpentOn::Map => "map",
            SpentOn::Record => "record",
            SpentOn::Buffer => "buffer",
        }
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

    /// What it is more than `before`.
    #[must_use]
    pub fn since(mut self, before: &Spent) -> Spent {
        self.0.iter_mut().zip(before.0).for_each(|(part, before)| *part = *part - before);
        self
    }

    /// All of it.
    #[must_use]
    pub fn total(&self) -> Nanos {
        self.0.iter().fold(Nanos::ZERO, |sum, &part| sum + part)
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Spent) {
        self.0.iter_mut().zip(other.0).for_each(|(part, other)| *part += other);
    }
}
