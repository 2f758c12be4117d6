//! A demand-cached hash index: the table lies in flash in sections, of which DRAM holds a directory and the last loaded.
//!
//! ```text
//!   key -> hash -> slot (h + c + c^2) -> section -> directory -> cached? else read from flash
//!                   ^ next c                              entry -> place -> record: the key? else collision
//! ```
//!
//! Sections leave DRAM first in, first out; a changed one is appended to the map log, whose open page gathers sections of
//! all sizes until it is full. What a section looks like is its [`SectionLayout`]: that is all that `hash-fixed` and
//! `hash-compact` differ in.

mod redo;
mod survey;

use self::redo::Redo;
use crate::address::Grain;
use crate::dram::DramUse;
use crate::index::cache::{Cached, SectionCache, Ticket};
use crate::index::probe::{Entry, PROBES_MAX, Probe};
use crate::index::section::SectionLayout;
use crate::index::{Fate, Holds, Index, IndexCounters, Move, Position, Survey};
use crate::io::{Io, readable};
use crate::journal::Change;
use crate::log::NewRecord;
use crate::oob::{Kind, Stream};
use kvssd_flash::Blob;
use kvssd_flash::PageAddress;
use kvssd_flash::rope::Rope;
use kvssd_types::{Key, KvError};
use xxhash_rust::xxh3::xxh3_64;

/// So many leave the cache before the next are warmed.
const LEAVERS_WARM: usize = 32;

/// The index over sections of one layout.
pub struct HashIndex<L> {
    layout: L,
    probe: Probe,
    slots: u64,
    page_bytes: u32,
    directory: Vec<DirectoryEntry>,
    cache: SectionCache,
    footprint_bytes: u64,
    budget_bytes: u64,
    /// What a mount brought into DRAM beyond the budget. It leaves little by little: all at once, it might need more
    /// superblocks than garbage collection keeps.
    surplus_bytes: u64,
    counters: IndexCounters,
    /// Whether sections may leave the cache only later.
    held: bool,
    redo: Redo,
    /// How many of the sections that leave next have been warmed.
    leavers_warm: usize,
    /// Sections that were not in DRAM and flash reads for them, since the look-up that goes on began.
    misses: u64,
    flash_reads: u64,
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

impl<L: SectionLayout> HashIndex<L> {
    /// An empty table with a slot for every grain of the drive.
    #[must_use]
    pub fn new(layout: L, grains: u64, page_bytes: u32) -> Self {
        let sections = grains.div_ceil(layout.slots()) as usize;
        let nowhere = DirectoryEntry { place: Grain(0), bytes: 0, cached: Ticket::NONE };
        HashIndex {
            layout,
            probe: Probe::new(grains),
            slots: grains,
            page_bytes,
            directory: vec![nowhere; sections],
            cache: SectionCache::default(),
            footprint_bytes: 0,
            budget_bytes: u64::MAX,
            surplus_bytes: 0,
            counters: IndexCounters::default(),
            held: false,
            redo: Redo::default(),
            leavers_warm: 0,
            misses: 0,
            flash_reads: 0,
        }
    }

    /// Charges the directory of a table with a slot for each of `grains`.
    pub fn charge_directory(layout: &L, grains: u64, dram: &mut DramUse) {
        dram.add("index_directory", grains.div_ceil(layout.slots()) * layout.directory_entry_bytes());
    }

    fn section_of(&self, slot: u64) -> (u64, u32) {
        (slot / self.layout.slots(), (slot % self.layout.slots()) as u32)
    }

    /// Looks for the entry of a slot, which costs the directory and a search.
    fn look_up(&mut self, io: &mut Io<'_>, slot: u64) -> Result<Entry, KvError> {
        io.cpu(io.costs().section_ns);
        let (entry, comparisons) = self.entry(io, slot)?;
        io.cpu(u64::from(comparisons) * io.costs().comparison_ns);
        Ok(entry)
    }

    /// The entry of a slot, and the comparisons; loads its section if need be.
    fn entry(&mut self, io: &mut Io<'_>, slot: u64) -> Result<(Entry, u32), KvError> {
        let (section, within) = self.section_of(slot);
        let ticket = self.load(io, section)?;
        Ok(self.layout.get(&self.cache.get(ticket).bytes, within))
    }

    /// Sets the entry of a slot that was looked up: the firmware holds a pointer to it, and pays only for
    /// sorting a section anew.
    fn set_entry(&mut self, io: &mut Io<'_>, slot: u64, entry: Entry) -> Result<(), KvError> {
        let (section, within) = self.section_of(slot);
        let ticket = self.load(io, section)?;
        let cached = self.cache.get_mut(ticket);
        let on_flash = self.directory[section as usize].place;
        if !cached.dirty && on_flash != Grain(0) {
            cached.forgotten = io.forget(on_flash);
        }
        cached.dirty = true;
        let layout = &self.layout;
        let (before, after, comparisons) = self.cache.change(ticket, |bytes| layout.set(bytes, within, entry));
        if before != after {
            self.footprint_bytes = self.footprint_bytes + self.share_of_page(after) - self.share_of_page(before);
        }
        io.cpu(u64::from(comparisons) * io.costs().comparison_ns);
        self.keep_to_budget(io, 0)
    }

    /// Adds to, or takes from, the passes of the slots that `position` came by.
    fn count_passes(&mut self, io: &mut Io<'_>, position: Position, comes: bool) -> Result<(), KvError> {
        for count in 0..position.probes {
            let slot = self.probe.slot(position.hash, count);
            let mut entry = self.entry(io, slot)?.0;
            // A saturated count has lost its number and must stay.
            if entry.passes < self.layout.passes_max() {
                entry.passes = if comes { entry.passes + 1 } else { entry.passes - 1 };
                self.set_entry(io, slot, entry)?;
            }
        }
        Ok(())
    }

    /// Brings a section into DRAM.
    fn load(&mut self, io: &mut Io<'_>, section: u64) -> Result<Ticket, KvError> {
        let directory = self.directory[section as usize];
        if directory.cached != Ticket::NONE {
            io.wait_until(self.cache.get(directory.cached).ready);
            return Ok(directory.cached);
        }
        if directory.place == Grain(0) {
            let bytes = self.layout.empty();
            self.footprint_bytes += self.share_of_page(bytes.len());
            return self.admit(io, section, bytes);
        }
        let cause = io.index_cause();
        let page = io.packing().page_of(directory.place);
        self.misses += 1;
        self.flash_reads += u64::from(io.read(page, cause));
        let bytes = self.content(io, section)?;
        self.admit(io, section, bytes)
    }

    /// Brings several sections into DRAM, read side by side, but for those that cannot be read.
    fn load_all(&mut self, io: &mut Io<'_>, sections: &[u64]) -> Result<(), KvError> {
        let missing = |index: &Self, section: u64| {
            let directory = index.directory[section as usize];
            directory.cached == Ticket::NONE && directory.place != Grain(0)
        };
        let mut wanted: Vec<u64> = sections.iter().copied().filter(|&section| missing(self, section)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut pages: Vec<PageAddress> =
            wanted.iter().map(|&section| io.packing().page_of(self.directory[section as usize].place)).collect();
        pages.sort_unstable();
        pages.dedup();
        let cause = io.index_cause();
        io.read_all(&pages, cause);
        io.warm(&wanted.iter().map(|&section| self.directory[section as usize].place).collect::<Vec<_>>());
        let contents =
            wanted.iter().map(|&section| readable(self.content(io, section))).collect::<Result<Vec<_>, _>>()?;
        for (section, bytes) in wanted.into_iter().zip(contents) {
            if let Some(bytes) = bytes {
                // Taking one in may have evicted another, never brought one in.
                self.admit(io, section, bytes)?;
            }
        }
        Ok(())
    }

    /// The bytes of a section in a page that was read.
    fn content(&mut self, io: &mut Io<'_>, section: u64) -> Result<Blob, KvError> {
        let DirectoryEntry { place, bytes, .. } = self.directory[section as usize];
        let packing = io.packing();
        let start = packing.byte_in_page(place);
        self.counters.bytes_read[usize::from(io.background)] += u64::from(bytes);
        let content = io.data(packing.page_of(place))?.whole_blob(start..start + bytes as usize);
        content.filter(|content| self.layout.has_form(content)).ok_or_else(|| {
            KvError::Unrecovered(format!(
                "page {} holds no section where the directory says so",
                packing.page_of(place).0
            ))
        })
    }

    /// Puts a section into the cache, and others out of it until it fits.
    fn admit(&mut self, io: &mut Io<'_>, section: u64, bytes: Blob) -> Result<Ticket, KvError> {
        self.keep_to_budget(io, SectionCache::cost_bytes(bytes.len()))?;
        let ticket = self.cache.push(Cached { section, bytes, dirty: false, forgotten: false, ready: io.clock });
        self.directory[section as usize].cached = ticket;
        Ok(ticket)
    }

    /// Puts out the sections that were loaded first until the others, and `more_bytes`, fit the budget.
    fn keep_to_budget(&mut self, io: &mut Io<'_>, more_bytes: u64) -> Result<(), KvError> {
        while !self.held && self.cache.bytes() + more_bytes > self.budget_bytes.saturating_add(self.surplus_bytes) {
            if self.leavers_warm == 0 {
                self.warm_leavers(io);
            }
            self.leavers_warm -= 1;
            let Some(Cached { section, bytes, dirty, forgotten, .. }) = self.cache.pop() else { break };
            self.directory[section as usize].cached = Ticket::NONE;
            if dirty {
                self.write(io, section, bytes, forgotten)?;
            } else if self.directory[section as usize].place == Grain(0) {
                // It was looked at, had nothing, and takes nothing.
                self.footprint_bytes -= self.share_of_page(bytes.len());
            }
        }
        Ok(())
    }

    /// The change is made in all sections: they may leave the cache again.
    fn release(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        self.held = false;
        self.keep_to_budget(io, 0)
    }

    /// Lets memory bring closer what the sections that leave next will need.
    fn warm_leavers(&mut self, io: &mut Io<'_>) {
        self.leavers_warm = LEAVERS_WARM;
        let leavers = self.cache.leavers().take(LEAVERS_WARM);
        let places: Vec<Grain> = leavers.map(|leaver| self.directory[leaver.section as usize].place).collect();
        io.warm_fates(&places);
        let leavers = self.cache.leavers().take(LEAVERS_WARM);
        std::hint::black_box(leavers.fold(0, |sum, leaver| sum ^ leaver.bytes[0]));
    }

    /// Appends a section to the map log in place of the one on flash.
    fn write(&mut self, io: &mut Io<'_>, section: u64, bytes: Blob, forgotten: bool) -> Result<(), KvError> {
        let mut rope = Rope::default();
        let length = bytes.len();
        rope.push_blob(bytes);
        let place = io.append(NewRecord {
            stream: Stream::Map,
            kind: Kind::Section,
            tag: section,
            bytes: &mut rope,
            unbroken_bytes: length,
            cause: io.index_cause(),
        })?;
        self.counters.bytes_written[usize::from(io.background)] += length as u64;
        let directory = &mut self.directory[section as usize];
        let (old, old_bytes) = (directory.place, directory.bytes);
        directory.place = place;
        directory.bytes = length as u32;
        io.note(Change::Own { number: section, place, bytes: length as u32, old: (old, old_bytes) });
        let old_grains = io.packing().grains_of(old_bytes as usize);
        if forgotten {
            io.vacate(old, old_grains);
        } else if old != Grain(0) {
            io.discard(old, old_grains);
        }
        Ok(())
    }

    /// The part of a page that a section of `bytes` takes with the padding behind it.
    fn share_of_page(&self, bytes: usize) -> u64 {
        let page_bytes = u64::from(self.page_bytes);
        page_bytes / (page_bytes / bytes as u64)
    }

    fn search(&mut self, io: &mut Io<'_>, hash: u64, holds: &mut Holds<'_>) -> Result<Position, KvError> {
        let mut free = None;
        for probes in 0..PROBES_MAX {
            let slot = self.probe.slot(hash, probes);
            let entry = self.look_up(io, slot)?;
            self.counters.section_accesses += 1;
            let here = Position { tag: slot, place: Some(entry.place), hash, probes };
            if entry.place == Grain(0) {
                free = free.or(Some(Position { place: None, ..here }));
                if entry.is_end() {
                    break;
                }
            } else if holds(io, entry.place)? {
                return Ok(here);
            } else {
                self.counters.collisions += 1;
            }
        }
        Ok(free.unwrap_or(Position { tag: Position::FULL, place: None, hash, probes: PROBES_MAX }))
    }
}

impl<L: SectionLayout> Index for HashIndex<L> {
    fn locate(&mut self, io: &mut Io<'_>, key: Key<'_>, holds: &mut Holds<'_>) -> Result<Position, KvError> {
        (self.misses, self.flash_reads) = (0, 0);
        self.surplus_bytes = self.surplus_bytes.saturating_sub(u64::from(self.page_bytes));
        io.cpu(io.costs().hash_ns);
        let position = self.search(io, xxh3_64(key.bytes()), holds)?;
        self.counters.lookups += 1;
        self.counters.section_misses += self.misses;
        self.counters.flash_reads += self.flash_reads;
        self.counters.flash_reads_max = self.counters.flash_reads_max.max(self.flash_reads);
        Ok(position)
    }

    fn bind(&mut self, io: &mut Io<'_>, position: Position, place: Grain) -> Result<(), KvError> {
        self.held = true;
        let entry = self.entry(io, position.tag)?.0;
        if position.place.is_none() {
            self.count_passes(io, position, true)?;
        }
        self.set_entry(io, position.tag, Entry { place, ..entry })?;
        self.release(io)
    }

    fn unbind(&mut self, io: &mut Io<'_>, position: Position) -> Result<(), KvError> {
        self.held = true;
        let entry = self.entry(io, position.tag)?.0;
        self.set_entry(io, position.tag, Entry { place: Grain(0), ..entry })?;
        self.count_passes(io, position, false)?;
        self.release(io)
    }

    fn relocate(&mut self, io: &mut Io<'_>, moves: &mut [Move]) -> Result<(), KvError> {
        // In the order of the sections, so that each is changed in one go.
        moves.sort_unstable_by_key(|pair| pair.tag);
        // As many at a time as surely stay cached until they are changed, and as pages pass through the write buffer.
        let section_bytes = SectionCache::cost_bytes(self.layout.bytes_max() as usize);
        let in_hand = io.media.write_buffer_bytes / u64::from(self.page_bytes);
        let at_once = (self.budget_bytes / section_bytes / 2).clamp(1, in_hand.max(1)) as usize;
        for moves in moves.chunks_mut(at_once) {
            let sections: Vec<u64> = moves.iter().map(|pair| self.section_of(pair.tag).0).collect();
            self.load_all(io, &sections)?;
            for pair in moves {
                let Some(entry) = readable(self.look_up(io, pair.tag))? else {
                    pair.fate = Fate::Unreadable;
                    continue;
                };
                if entry.place == pair.from {
                    pair.fate = Fate::Moved;
                    let Move { tag, from, to, grains, .. } = *pair;
                    io.note(Change::Moved { tag, from, to, grains });
                    self.set_entry(io, pair.tag, Entry { place: pair.to, ..entry })?;
                }
            }
        }
        Ok(())
    }

    fn is_bound(&mut self, io: &mut Io<'_>, tag: u64, place: Grain) -> Result<bool, KvError> {
        Ok(self.look_up(io, tag)?.place == place)
    }

    fn relocate_own(&mut self, io: &mut Io<'_>, number: u64, from: Grain) -> Result<(), KvError> {
        let Some(&DirectoryEntry { place, bytes, cached }) = self.directory.get(number as usize) else { return Ok(()) };
        if place != from {
            return Ok(());
        }
        if cached == Ticket::NONE {
            self.counters.bytes_read[usize::from(io.background)] += u64::from(bytes);
            let bytes = io.take_last(from, bytes as usize)?;
            return self.write(io, number, bytes, true);
        }
        let cached = self.cache.get_mut(cached);
        let bytes = Blob::clone(&cached.bytes);
        let forgotten = std::mem::take(&mut cached.forgotten);
        cached.dirty = false;
        self.write(io, number, bytes, forgotten)
    }

    fn expect(&self, io: &Io<'_>, keys: &[Key<'_>]) {
        let slots: Vec<_> = keys.iter().map(|key| self.section_of(self.probe.slot(xxh3_64(key.bytes()), 0))).collect();
        let places: Vec<Grain> = slots
            .iter()
            .map(|&(section, _)| self.directory[section as usize])
            .filter(|entry| entry.cached == Ticket::NONE && entry.place != Grain(0))
            .map(|entry| entry.place)
            .collect();
        io.warm(&places);
        let records: Vec<Grain> = slots
            .iter()
            .filter_map(|&(section, within)| {
                let DirectoryEntry { place, cached, .. } = self.directory[section as usize];
                let bytes = if cached == Ticket::NONE { io.peek(place)? } else { &self.cache.get(cached).bytes };
                Some(self.layout.get(bytes, within).0.place).filter(|&place| place != Grain(0))
            })
            .collect();
        io.warm(&records);
        io.warm_fates(&records);
    }

    fn warm(&self, numbers: &[u64]) {
        let entries = numbers.iter().filter_map(|&number| self.directory.get(number as usize));
        std::hint::black_box(entries.fold(0, |sum, entry| sum ^ entry.place.0));
    }

    fn list(&mut self, io: &mut Io<'_>, tag: u64, count: usize, places: &mut Vec<(u64, Grain)>) -> Result<(), KvError> {
        let (mut slot, mut left) = (tag, count);
        while slot < self.slots && left > 0 {
            let (section, within) = self.section_of(slot);
            let directory = self.directory[section as usize];
            let first = section * self.layout.slots();
            slot = first + self.layout.slots();
            if directory.cached == Ticket::NONE && directory.place == Grain(0) {
                continue;
            }
            let ticket = self.load(io, section)?;
            let mut from = within;
            while left > 0
                && let Some((at, entry)) = self.layout.next(&self.cache.get(ticket).bytes, from)
            {
                io.cpu(io.costs().comparison_ns);
                places.push((first + u64::from(at), entry.place));
                from = at + 1;
                left -= 1;
            }
        }
        Ok(())
    }

    fn survey(&self, io: &mut Io<'_>) -> Survey {
        self.surveyed(io)
    }

    fn way_to(&self, key: Key<'_>, tag: u64, way: &mut Vec<u64>) -> bool {
        self.searched(key, tag, way)
    }

    fn first_tag(&self, hash: u64) -> u64 {
        self.probe.slot(hash, 0)
    }

    fn set_dram_budget(&mut self, bytes: u64) {
        let directory_bytes = self.directory.len() as u64 * self.layout.directory_entry_bytes();
        self.budget_bytes = bytes.saturating_sub(directory_bytes);
        self.surplus_bytes = self.surplus_bytes.min(self.cache.bytes().saturating_sub(self.budget_bytes));
    }

    fn dram(&self, dram: &mut DramUse) {
        HashIndex::charge_directory(&self.layout, self.slots, dram);
        dram.add("index_sections", self.cache.bytes());
    }

    fn footprint_bytes(&self) -> u64 {
        self.footprint_bytes
    }

    fn counters(&self) -> IndexCounters {
        self.counters
    }

    fn save(&self) -> Vec<u8> {
        self.saved()
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        self.restored(bytes)
    }

    fn redo_own(&mut self, change: &Change, position: usize) -> Option<()> {
        self.written(change, position)
    }

    fn redo(&mut self, io: &mut Io<'_>, change: &Change, position: usize) -> Result<(), KvError> {
        self.redone(io, change, position)
    }

    fn end_redo(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        self.recovered(io)
    }
}
