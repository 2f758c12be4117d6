//! The sections of an index: the pieces of it that lie in flash, of which DRAM holds a directory and the last loaded.
//!
//! ```text
//!   number -> directory -> cached? else read from flash      leaves DRAM first in, first out; if changed, to the map log,
//!                entry  -> place on flash                    whose open page gathers sections of all sizes until it is full
//! ```
//!
//! What a section looks like is its [`SectionForm`]; what its bytes mean is the index's business.

mod budget;
mod cache;
mod contents;
mod form;
mod redo;

use self::cache::{Cached, SectionCache};
use self::redo::Redo;
use super::counters::BytesFor;
use crate::dram::DramUse;
use crate::io::spent::SpentOn;
use crate::io::{Io, readable};
use crate::journal::Change;
use crate::layout::address::Grain;
use kvssd_flash::{Blob, PageAddress};
use kvssd_types::KvError;
use std::collections::BTreeMap;

pub use self::cache::Ticket;
pub use self::form::{SectionEdit, SectionForm};
pub use self::redo::SavedSections;

/// What is counted of an index's records on flash: sections, or pages of tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct SectionCounters {
    /// Those that were not in DRAM when they were wanted.
    pub misses: u64,
    /// Flash reads for them.
    pub flash_reads: u64,
    /// Bytes read.
    pub bytes_read: BytesFor,
    /// Bytes written.
    pub bytes_written: BytesFor,
}

/// Bytes of DRAM that a section of `bytes` takes in the cache.
#[must_use]
pub fn cached_bytes(bytes: u32) -> u64 {
    SectionCache::cost_bytes(bytes as usize)
}

/// The sections of one form.
#[derive(Clone)]
pub(crate) struct Sections<F> {
    form: F,
    /// Whether they may be split.
    splits: bool,
    page_bytes: u32,
    /// The number by which the log knows section 0.
    first_number: u64,
    directory: Vec<DirectoryEntry>,
    cache: SectionCache,
    footprint_bytes: u64,
    budget_bytes: u64,
    /// Bytes that a mount loaded into DRAM beyond the budget. They leave little by little: all at once they might take more
    /// superblocks than garbage collection keeps.
    surplus_bytes: u64,
    counters: SectionCounters,
    /// Whether evictions are held back ([`Sections::hold`]).
    held: bool,
    /// The first section that is nowhere on flash and came into DRAM since [`Sections::drop_blank`]: it may have left, or be changed.
    first_blank: Option<Ticket>,
    redo: Redo,
    /// The bytes of sections that left DRAM and were not written, where the testbed works like that.
    unwritten: BTreeMap<u64, Blob>,
    /// How many of the sections that leave next have been warmed.
    leavers_warm: usize,
    /// Halves of sections that were split since somebody asked ([`Sections::take_halves`]).
    halves: Vec<u64>,
}

/// Where a section is.
#[derive(Clone, Copy, Debug)]
struct DirectoryEntry {
    /// Its place on flash; grain 0 while it has none.
    place: Grain,
    /// Its bytes on flash.
    bytes: u32,
    /// Its ticket in the cache.
    cached: Ticket,
}

impl DirectoryEntry {
    const NOWHERE: DirectoryEntry = DirectoryEntry { place: Grain(0), bytes: 0, cached: Ticket::NONE };

    /// Whether the section was never loaded, or was empty when it left DRAM.
    fn is_nowhere(&self) -> bool {
        self.cached == Ticket::NONE && self.place == Grain(0)
    }
}

impl<F: SectionForm> Sections<F> {
    /// `count` sections without entries, on a drive with pages of `page_bytes`.
    pub(crate) fn new(form: F, count: u64, page_bytes: u32, splits: bool) -> Self {
        Sections {
            form,
            splits,
            page_bytes,
            first_number: 0,
            directory: vec![DirectoryEntry::NOWHERE; count as usize],
            cache: SectionCache::default(),
            footprint_bytes: 0,
            budget_bytes: u64::MAX,
            surplus_bytes: 0,
            counters: SectionCounters::default(),
            held: false,
            first_blank: None,
            redo: Redo::default(),
            unwritten: BTreeMap::new(),
            leavers_warm: 0,
            halves: Vec::new(),
        }
    }

    /// The same, which the log knows by numbers from `first_number` on: an index may have sections of two kinds.
    pub(crate) fn numbered_from(mut self, first_number: u64) -> Self {
        self.first_number = first_number;
        self
    }

    /// What they look like.
    pub(crate) fn form(&self) -> &F {
        &self.form
    }

    /// What was counted so far.
    pub(crate) fn counters(&self) -> SectionCounters {
        self.counters
    }

    /// Whether a section need not be looked at to know that it has nothing.
    pub(crate) fn is_nowhere(&self, number: u64) -> bool {
        self.entry(number).is_nowhere() && !self.redo.has(number)
    }

    #[inline]
    fn entry(&self, number: u64) -> &DirectoryEntry {
        self.directory.get(number as usize).unwrap_or_else(|| no_section(number, self.directory.len()))
    }

    /// The ticket of a section that is in DRAM.
    pub(crate) fn ticket(&self, number: u64) -> Option<Ticket> {
        Some(self.entry(number).cached).filter(|&ticket| ticket != Ticket::NONE)
    }

    /// The bytes of a section that is in DRAM.
    pub(crate) fn bytes(&self, ticket: Ticket) -> &Blob {
        &self.cache.get(ticket).bytes
    }

    /// Brings a section into DRAM.
    pub(crate) fn load(&mut self, io: &mut Io<'_>, number: u64) -> Result<Ticket, KvError> {
        let entry = *self.entry(number);
        if entry.cached != Ticket::NONE {
            if entry.place != Grain(0) {
                let page = io.packing().page_of(entry.place);
                io.wait_for_page(page, self.cache.get(entry.cached).ready, SpentOn::Map);
            }
            return Ok(entry.cached);
        }
        if entry.place == Grain(0) {
            let bytes = self.form.empty();
            assert!(!bytes.is_empty(), "SectionForm::empty: a section has a byte at the least");
            self.count_footprint(bytes.len(), 0);
            let ticket = self.admit(io, number, bytes)?;
            self.first_blank.get_or_insert(ticket);
            return Ok(ticket);
        }
        let cause = io.index_cause();
        let page = io.packing().page_of(entry.place);
        self.counters.misses += 1;
        self.counters.flash_reads += u64::from(io.read(page, cause));
        let bytes = self.content(io, number)?;
        self.admit(io, number, bytes)
    }

    /// Reads several sections into DRAM side by side. Those that cannot be read stay away.
    pub(crate) fn load_all(&mut self, io: &mut Io<'_>, numbers: &[u64]) -> Result<(), KvError> {
        let missing = |index: &Self, number: u64| {
            let entry = index.directory[number as usize];
            entry.cached == Ticket::NONE && entry.place != Grain(0)
        };
        let mut wanted: Vec<u64> = numbers.iter().copied().filter(|&number| missing(self, number)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut pages: Vec<PageAddress> =
            wanted.iter().map(|&number| io.packing().page_of(self.directory[number as usize].place)).collect();
        pages.sort_unstable();
        pages.dedup();
        let cause = io.index_cause();
        io.read_all(&pages, cause);
        io.warm(&wanted.iter().map(|&number| self.directory[number as usize].place).collect::<Vec<_>>());
        let contents =
            wanted.iter().map(|&number| readable(self.content(io, number))).collect::<Result<Vec<_>, _>>()?;
        for (number, bytes) in wanted.into_iter().zip(contents) {
            if let Some(bytes) = bytes {
                // Admitting this one may have evicted another, but never loaded one.
                self.admit(io, number, bytes)?;
            }
        }
        Ok(())
    }

    /// How many sections can be loaded together: they stay in DRAM until they are changed, and fit the write buffer.
    pub(crate) fn at_once(&self, io: &Io<'_>) -> usize {
        let section_bytes = SectionCache::cost_bytes(self.form.bytes_max() as usize);
        let in_hand = io.media.controller.write_buffer_bytes / u64::from(self.page_bytes);
        (self.budget_bytes / section_bytes / 2).clamp(1, in_hand.max(1)) as usize
    }

    /// The bytes of a section in a page that was read.
    fn content(&mut self, io: &mut Io<'_>, number: u64) -> Result<Blob, KvError> {
        let DirectoryEntry { place, bytes, .. } = self.directory[number as usize];
        *self.counters.bytes_read.of(io.background) += u64::from(bytes);
        if let Some(unwritten) = self.unwritten.get(&number) {
            return Ok(unwritten.clone());
        }
        io.blob_at(place, bytes)?.filter(|content| self.form.has_form(content)).ok_or_else(|| {
            let page = io.packing().page_of(place).0;
            KvError::Unrecovered(format!("page {page} holds no section where the directory says so"))
        })
    }

    /// Edits a section. The caller then keeps the budget by [`Sections::keep_to_budget`].
    pub(crate) fn edit<T>(
        &mut self,
        io: &mut Io<'_>,
        number: u64,
        edit: impl FnOnce(&F, &mut SectionEdit<'_, '_>) -> T,
    ) -> Result<T, KvError> {
        let ticket = self.load(io, number)?;
        let (form, on_flash) = (&self.form, self.directory[number as usize].place);
        let (before, after, given) =
            self.cache.edit(ticket, |cached| edit(form, &mut SectionEdit::new(cached, on_flash, io)));
        if before != after {
            self.check_length(number, after);
            self.count_footprint(after, before);
        }
        Ok(given)
    }

    /// Evicts sections until this one fits, and puts it into the cache.
    fn admit(&mut self, io: &mut Io<'_>, number: u64, bytes: Blob) -> Result<Ticket, KvError> {
        self.evict_for(io, SectionCache::cost_bytes(bytes.len()))?;
        let (section, dirty, moved, forgotten) = (Some(number), false, false, false);
        let ticket = self.cache.push(Cached { section, bytes, dirty, moved, forgotten, ready: io.clock });
        self.directory[number as usize].cached = ticket;
        Ok(ticket)
    }

    /// Appends a section to the map log in place of the one on flash.
    fn write(&mut self, io: &mut Io<'_>, number: u64, bytes: Blob, forgotten: bool) -> Result<(), KvError> {
        let DirectoryEntry { place: old, bytes: old_bytes, .. } = self.directory[number as usize];
        let length = bytes.len() as u32;
        self.unwritten.remove(&number);
        let place = self.append(io, number, bytes)?;
        let number = self.first_number + number;
        io.note(Change::Own { number, place, bytes: length, old: (old, old_bytes) });
        give_up(io, old, old_bytes, forgotten);
        Ok(())
    }

    /// Asserts that a section may have so many bytes: a mount would refuse it.
    fn check_length(&self, number: u64, bytes: usize) {
        let bytes_max = self.form.bytes_max();
        assert!(
            (1..=bytes_max as usize).contains(&bytes),
            "SectionForm: section {number} has {bytes} bytes, and a section has 1 to {bytes_max}, says bytes_max"
        );
    }

    /// Appends a section to the map log; the directory says where it lies.
    fn append(&mut self, io: &mut Io<'_>, number: u64, bytes: Blob) -> Result<Grain, KvError> {
        let length = bytes.len();
        self.check_length(number, length);
        let place = io.append_own(self.first_number + number, bytes)?;
        *self.counters.bytes_written.of(io.background) += length as u64;
        let entry = &mut self.directory[number as usize];
        (entry.place, entry.bytes) = (place, length as u32);
        Ok(place)
    }

    /// Makes room in the directory for `count` sections.
    pub(crate) fn grow(&mut self, count: u64) {
        let count = self.directory.len().max(count as usize);
        self.directory.resize(count, DirectoryEntry::NOWHERE);
    }

    /// Replaces a section that is in DRAM by two others with these bytes, which are appended to the log at once. They
    /// hold all changes that the one before them held.
    pub(crate) fn split(
        &mut self,
        io: &mut Io<'_>,
        number: u64,
        halves: [u64; 2],
        parts: [Blob; 2],
    ) -> Result<(), KvError> {
        assert!(self.splits, "an index whose sections split says so: SectionIndex::SPLITS");
        let known = self.directory.len() as u64;
        assert!(
            halves.iter().all(|&half| half < known),
            "View::resize comes before View::split: {halves:?} of {known}"
        );
        let are_new = halves[0] != halves[1] && !halves.contains(&number);
        assert!(
            are_new,
            "each half of section {number} has a number of its own, and neither that of the whole: {halves:?}"
        );
        let are_free = halves.iter().all(|&half| self.directory[half as usize].is_nowhere());
        assert!(are_free, "View::split: one of the halves {halves:?} has the number of a section that is there");
        assert_eq!(parts[0].len(), parts[1].len(), "the halves of a section have the same length");
        let DirectoryEntry { place: old, bytes: old_bytes, cached } = self.directory[number as usize];
        self.count_footprint(0, self.bytes(cached).len());
        let forgotten = self.cache.abandon(cached);
        self.unwritten.remove(&number);
        let [first, second] = &parts;
        let places = [self.append(io, halves[0], first.clone())?, self.append(io, halves[1], second.clone())?];
        let (bytes, known) = (first.len() as u32, self.first_number + number);
        io.note(Change::Split { number: known, places, bytes, old: (old, old_bytes) });
        self.directory[number as usize] = DirectoryEntry::NOWHERE;
        give_up(io, old, old_bytes, forgotten);
        for (half, part) in halves.into_iter().zip(parts) {
            self.count_footprint(part.len(), 0);
            self.admit(io, half, part)?;
        }
        self.halves.extend(halves);
        Ok(())
    }

    /// The halves that [`Sections::split`] has made since this was asked for.
    pub(crate) fn take_halves(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.halves)
    }

    /// As [`Index::relocate_own`](crate::index::Index::relocate_own).
    pub(crate) fn relocate_own(&mut self, io: &mut Io<'_>, number: u64, from: Grain) -> Result<(), KvError> {
        let Some(&DirectoryEntry { place, bytes, cached }) = self.directory.get(number as usize) else { return Ok(()) };
        if place != from {
            return Ok(());
        }
        if cached == Ticket::NONE {
            *self.counters.bytes_read.of(io.background) += u64::from(bytes);
            let on_flash = io.take_last(from, bytes as usize)?;
            let bytes = self.unwritten.remove(&number).unwrap_or(on_flash);
            return self.write(io, number, bytes, true);
        }
        let cached = self.cache.get_mut(cached);
        let bytes = Blob::clone(&cached.bytes);
        let forgotten = std::mem::take(&mut cached.forgotten);
        (cached.dirty, cached.moved) = (false, false);
        self.write(io, number, bytes, forgotten)
    }

    /// These sections will be looked at soon: memory may begin to bring them closer. A hint, which costs nothing.
    pub(crate) fn expect(&self, io: &Io<'_>, numbers: impl Iterator<Item = u64> + Clone) {
        let entries = numbers.map(|number| self.directory[number as usize]);
        let on_flash = entries.filter(|entry| entry.cached == Ticket::NONE && entry.place != Grain(0));
        io.warm(&on_flash.map(|entry| entry.place).collect::<Vec<_>>());
    }

    /// The bytes of a section, if memory has them at hand. It is no read.
    pub(crate) fn peek<'s>(&'s self, io: &'s Io<'_>, number: u64) -> Option<&'s Blob> {
        let DirectoryEntry { place, cached, .. } = self.directory[number as usize];
        match cached {
            Ticket::NONE => self.unwritten.get(&number).or_else(|| io.peek(place)),
            cached => Some(self.bytes(cached)),
        }
    }

    /// As [`Index::warm`](crate::index::Index::warm).
    pub(crate) fn warm(&self, numbers: &[u64]) {
        let entries = numbers.iter().filter_map(|&number| self.directory.get(number as usize));
        std::hint::black_box(entries.fold(0, |sum, entry| sum ^ entry.place.0));
    }

    /// The sections that are on flash and not in DRAM.
    pub(crate) fn missing(&self) -> Vec<u64> {
        let is_missing = |entry: &DirectoryEntry| entry.cached == Ticket::NONE && entry.place != Grain(0);
        (0..).zip(&self.directory).filter(|(_, entry)| is_missing(entry)).map(|(number, _)| number).collect()
    }

    /// Charges the sections in DRAM.
    pub(crate) fn dram(&self, dram: &mut DramUse) {
        dram.add("index_sections", self.cache.bytes());
    }

    /// As [`Index::footprint_bytes`](crate::index::Index::footprint_bytes).
    pub(crate) fn footprint_bytes(&self) -> u64 {
        self.footprint_bytes
    }

    /// A section takes `after` bytes on flash now, and took `before`; 0 for nothing. While a mount redoes changes the
    /// sum may be wrong: the end of the mount computes it anew.
    fn count_footprint(&mut self, after: usize, before: usize) {
        let share = |bytes: usize| if bytes == 0 { 0 } else { self.share_of_page(bytes) };
        self.footprint_bytes = (self.footprint_bytes + share(after)).saturating_sub(share(before));
    }

    /// The part of a page that a section of `bytes` takes with the padding behind it.
    fn share_of_page(&self, bytes: usize) -> u64 {
        let page_bytes = u64::from(self.page_bytes);
        page_bytes / (page_bytes / bytes as u64)
    }
}

#[cold]
fn no_section(number: u64, sections: usize) -> ! {
    panic!("the index names section {number}, and has {sections}: section_of, section_at or a split gave that number")
}

/// Gives up the section at `old`. If it is `forgotten`, memory has let go of its bytes already.
fn give_up(io: &mut Io<'_>, old: Grain, old_bytes: u32, forgotten: bool) {
    let grains = io.packing().grains_of(old_bytes as usize);
    if forgotten {
        io.vacate(old, grains);
    } else if old != Grain(0) {
        io.discard(old, grains);
    }
}
