//! Flash, log and journal without an engine, for the tests of an index: they speak with it as the engine would.

use crate::design::Design;
use crate::io::Io;
use crate::io::media::Media;
use crate::journal::{Change, changes};
use kvssd_flash::{ByteBacking, Counters, Flash, Profile};
use kvssd_types::{KvError, Nanos};

/// A drive that is new, and without an index.
pub struct Testbed {
    media: Media,
}

impl Testbed {
    /// With the pages of a design, on a drive of `profile`. Changes are noted where `profile.memory.power_loss` says
    /// so.
    #[must_use]
    pub fn new(design: &Design, profile: &Profile) -> Self {
        let geometry = profile.geometry;
        let packing = design.packing(&geometry);
        let flash = Flash::new(profile, Box::new(ByteBacking::new(geometry)));
        let validity = design.validity(packing, &geometry);
        Testbed {
            media: Media::new(
                flash,
                packing,
                design.oob_format(&geometry),
                validity,
                profile,
                design.placement_handles,
            ),
        }
    }

    /// What the index touches flash through, for a command on a drive where nothing lives or, in the background, for garbage collection.
    pub fn io(&mut self, clock: Nanos, background: bool) -> Io<'_> {
        let io = Io::new(&mut self.media, clock, background);
        if background { io } else { io.beside(0) }
    }

    /// The changes that were noted since they were asked for last.
    pub fn noted(&mut self) -> Vec<Change> {
        let mut all = Vec::new();
        while let Some(mut page) = self.media.durable.journal.next_page(true) {
            page.push(0);
            all.extend(changes(&page));
        }
        all
    }

    /// Programs all that is gathered; returns the moment when it is on flash.
    ///
    /// # Errors
    /// What the flash operations answer.
    pub fn flush(&mut self) -> Result<Nanos, KvError> {
        self.io(Nanos::ZERO, false).flush()
    }

    /// What was done to the flash so far.
    #[must_use]
    pub fn flash_counters(&self) -> &Counters {
        self.media.flash.counters()
    }
}
