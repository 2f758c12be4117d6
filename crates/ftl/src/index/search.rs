//! What a search for a key sees of an index's sections: a glance sees those in DRAM, a command sees all.

use crate::index::sections::{SectionForm, Sections, Ticket};
use crate::index::{VerifyKey, View};
use crate::layout::address::Grain;
use kvssd_flash::Blob;
use kvssd_flash::rope::RopeRef;
use kvssd_types::KvError;

/// Sections to search, with what a search costs.
///
/// What [`Search::bytes`] gives is good until the next section is searched: that may evict this one.
pub trait Search<F> {
    /// What the sections look like.
    fn form(&self) -> &F;

    /// Charges a core for finding a section by the directory.
    fn look_up_directory(&mut self) {}

    /// Charges a core for comparing so many entries.
    fn compare(&mut self, entries: u64) {
        let _ = entries;
    }

    /// Counts the slots of a table that the search has looked at.
    fn scan(&mut self, slots: u64) {
        let _ = slots;
    }

    /// Whether the directory tells that a section is empty: it need not be searched.
    fn is_nowhere(&self, section: u64) -> bool;

    /// Opens a section. A command loads it into DRAM; a glance ends if it is not there.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn search(&mut self, section: u64) -> Result<Ticket, KvError>;

    /// The bytes of the section that was searched.
    fn bytes(&self, ticket: Ticket) -> &Blob;

    /// Whether the record at `place` is that of the key that is looked for.
    ///
    /// # Errors
    /// What the flash operations answer.
    fn verify(&mut self, place: Grain) -> Result<bool, KvError>;
}

/// A command's search: it waits, and is counted.
pub(super) struct Visit<'s, 'v, 'm, 'h, F> {
    pub(super) view: &'s mut View<'v, 'm, F>,
    pub(super) verify: &'s mut VerifyKey<'h>,
}

impl<F: SectionForm> Search<F> for Visit<'_, '_, '_, '_, F> {
    fn form(&self) -> &F {
        self.view.form()
    }

    fn look_up_directory(&mut self) {
        self.view.look_up_directory();
    }

    fn compare(&mut self, entries: u64) {
        self.view.compare(entries);
    }

    fn scan(&mut self, slots: u64) {
        self.view.lookups.scan(slots);
    }

    fn is_nowhere(&self, section: u64) -> bool {
        self.view.is_nowhere(section)
    }

    fn search(&mut self, section: u64) -> Result<Ticket, KvError> {
        let ticket = self.view.load(section)?;
        self.view.lookups.access();
        Ok(ticket)
    }

    fn bytes(&self, ticket: Ticket) -> &Blob {
        self.view.bytes(ticket)
    }

    fn verify(&mut self, place: Grain) -> Result<bool, KvError> {
        let View { io, lookups, .. } = &mut *self.view;
        let is_it = (self.verify)(io, place)?;
        if !is_it {
            lookups.collide();
        }
        Ok(is_it)
    }
}

/// A search that changes nothing, so that several go on at a time: it ends where something is not in DRAM.
pub(super) struct Glance<'s, 'h, F> {
    pub(super) sections: &'s Sections<F>,
    pub(super) sight: &'s mut (dyn Sight + 'h),
}

/// What can be seen of flash without changing anything.
pub trait Sight {
    /// Whether the record at `place` is that of the key that is looked for; none where it cannot be seen.
    fn verify(&mut self, place: Grain) -> Option<bool>;

    /// Shows the page that a record of the index itself lies in, from its first byte on. Returns whether it could.
    fn look(&self, place: Grain, see: &mut dyn FnMut(RopeRef<'_>)) -> bool;
}

/// The error that ends a search which sees too little. It is never reported.
const OUT_OF_SIGHT: KvError = KvError::InvalidCommand("it is not to be seen");

impl<F: SectionForm> Search<F> for Glance<'_, '_, F> {
    fn form(&self) -> &F {
        self.sections.form()
    }

    fn is_nowhere(&self, section: u64) -> bool {
        self.sections.is_nowhere(section)
    }

    fn search(&mut self, section: u64) -> Result<Ticket, KvError> {
        self.sections.ticket(section).ok_or(OUT_OF_SIGHT)
    }

    fn bytes(&self, ticket: Ticket) -> &Blob {
        self.sections.bytes(ticket)
    }

    fn verify(&mut self, place: Grain) -> Result<bool, KvError> {
        self.sight.verify(place).ok_or(OUT_OF_SIGHT)
    }
}
