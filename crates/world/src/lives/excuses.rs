//! Why a host may be told before its time is over that a change is in doubt, or a call was not done.
//!
//! ```text
//!   a life of the service    |----- the disk fails -xxxxxx|     the drive takes nothing any more until it is served anew
//!   a call                              |---- told ----|        excused: it was under way when a disk had failed
//! ```
//!
//! There is one other excuse, for changes: the drive has had more clients than it remembers.

use kvssd_flash::SimulatedDisk;
use kvssd_runtime::time::Instant;
use std::cell::Cell;

/// Clients that a drive remembers.
const CLIENTS_MAX: u64 = 256;

/// What all hosts of a world may be told.
#[derive(Debug)]
pub struct Excuses {
    disk: SimulatedDisk,
    /// Errors of the disk in lives of the service that are over.
    errors: Cell<u64>,
    /// When the last life ended in which there was one.
    failed_until: Cell<Option<Instant>>,
    /// Those who may have come: some were not told that they had.
    clients: Cell<u64>,
    told: Cell<u64>,
    forgotten: Cell<u64>,
}

impl Excuses {
    /// Those of a service with that disk.
    #[must_use]
    pub fn new(disk: SimulatedDisk) -> Excuses {
        let errors = Cell::new(disk.errors());
        Excuses {
            disk,
            errors,
            failed_until: Cell::default(),
            clients: Cell::default(),
            told: Cell::default(),
            forgotten: Cell::default(),
        }
    }

    /// Whether the disk has failed in this life of the service.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.disk.errors() > self.errors.get()
    }

    /// A life of the service is over.
    pub fn end_life(&self) {
        if self.has_failed() {
            self.failed_until.set(Some(Instant::now()));
            self.errors.set(self.disk.errors());
        }
    }

    /// A client tries to come.
    pub fn come(&self) {
        self.clients.set(self.clients.get() + 1);
    }

    /// Whether a call that began then may be told that the drive has failed.
    pub fn is_failure(&self, began: Instant) -> bool {
        let is_excused = self.has_failed() || self.failed_until.get().is_some_and(|until| began <= until);
        self.told.set(self.told.get() + u64::from(is_excused));
        is_excused
    }

    /// Whether a change that began then may be in doubt.
    pub fn is_doubt(&self, began: Instant) -> bool {
        if self.is_failure(began) {
            return true;
        }
        let is_excused = self.clients.get() > CLIENTS_MAX;
        self.forgotten.set(self.forgotten.get() + u64::from(is_excused));
        is_excused
    }

    /// Calls that had the disk for an excuse, and changes that had only the other clients.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.told.get(), self.forgotten.get())
    }
}
