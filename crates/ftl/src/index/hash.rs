//! A demand-cached hash index: one open-addressed table over sections, with a slot for every grain of the drive.
//!
//! ```text
//!   key -> hash -> slot (h + c + c^2) -> section -> entry -> place -> record: the key? else collision
//!                   ^ next c
//! ```
//!
//! How the slots of a section lie in bytes is its [`SectionLayout`]: that is all that `hash-fixed` and `hash-compact` differ
//! in.

mod redo;

use crate::address::Grain;
use crate::dram::DramUse;
use crate::index::lookups::Lookups;
use crate::index::plan::{IndexPlan, Room};
use crate::index::probe::{Entry, PROBES_MAX, Probe};
use crate::index::section::{CompactLayout, FixedLayout, SectionLayout};
use crate::index::sections::Sections;
use crate::index::{Fate, Holds, Index, IndexCounters, IndexFault, Move, OwnRecord, Position, Seen, Survey};
use crate::io::{Io, readable};
use crate::journal::{Change, PairPlace};
use kvssd_types::{Key, KvError};
use xxhash_rust::xxh3::xxh3_64;

/// The index over sections of one layout.
pub struct HashIndex<L> {
    sections: Sections<L>,
    probe: Probe,
    slots: u64,
    /// Slots of a section.
    section_slots: u64,
    lookups: Lookups,
}

/// The table with every slot on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashFixed;

impl IndexPlan for HashFixed {
    fn name(&self) -> &'static str {
        "hash-fixed"
    }

    fn build(&self, room: &Room) -> Result<Box<dyn Index>, String> {
        let layout = FixedLayout::new(room.page_bytes, room.grains);
        Ok(Box::new(HashIndex::new(layout, room.grains, room.page_bytes)))
    }

    fn tags(&self, room: &Room) -> u64 {
        room.grains
    }

    fn charge(&self, room: &Room, dram: &mut DramUse) {
        HashIndex::charge_directory(&FixedLayout::new(room.page_bytes, room.grains), room.grains, dram);
    }
}

/// The table with living mappings only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashCompact;

impl IndexPlan for HashCompact {
    fn name(&self) -> &'static str {
        "hash-compact"
    }

    fn build(&self, room: &Room) -> Result<Box<dyn Index>, String> {
        let Room { page_bytes, grain_bytes, grains, .. } = *room;
        let layout = CompactLayout::new(page_bytes, grain_bytes);
        let none = || format!("hash-compact has no sections of {page_bytes} byte pages and {grain_bytes} byte grains");
        Ok(Box::new(HashIndex::new(layout.ok_or_else(none)?, grains, page_bytes)))
    }

    fn tags(&self, room: &Room) -> u64 {
        room.grains
    }

    fn charge(&self, room: &Room, dram: &mut DramUse) {
        if let Some(layout) = CompactLayout::new(room.page_bytes, room.grain_bytes) {
            HashIndex::charge_directory(&layout, room.grains, dram);
        }
    }
}

impl<L: SectionLayout> HashIndex<L> {
    /// An empty table with a slot for every grain of the drive.
    #[must_use]
    pub fn new(layout: L, grains: u64, page_bytes: u32) -> Self {
        let section_slots = layout.slots();
        HashIndex {
            sections: Sections::new(layout, grains.div_ceil(section_slots), page_bytes),
            probe: Probe::new(grains),
            slots: grains,
            section_slots,
            lookups: Lookups::default(),
        }
    }

    /// Charges the directory of a table with a slot for each of `grains`.
    fn charge_directory(layout: &L, grains: u64, dram: &mut DramUse) {
        dram.add("index_directory", grains.div_ceil(layout.slots()) * layout.directory_entry_bytes());
    }

    fn section_of(&self, slot: u64) -> (u64, u32) {
        (slot / self.section_slots, (slot % self.section_slots) as u32)
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
        let ticket = self.sections.load(io, section)?;
        Ok(self.sections.form().get(self.sections.bytes(ticket), within))
    }

    /// Sets the entry of a slot that was looked up: the firmware holds a pointer to it, and pays only for
    /// sorting a section anew.
    fn set_entry(&mut self, io: &mut Io<'_>, slot: u64, entry: Entry) -> Result<(), KvError> {
        let (section, within) = self.section_of(slot);
        let comparisons = self.sections.change(io, section, |layout, bytes| layout.set(bytes, within, entry))?;
        io.cpu(u64::from(comparisons) * io.costs().comparison_ns);
        self.sections.keep_to_budget(io)
    }

    /// Adds to, or takes from, the passes of the slots that `position` came by.
    fn count_passes(&mut self, io: &mut Io<'_>, position: Position, comes: bool) -> Result<(), KvError> {
        for count in 0..position.probes {
            let slot = self.probe.slot(position.hash, count);
            let mut entry = self.entry(io, slot)?.0;
            // A saturated count has lost its number and must stay.
            if entry.passes < self.sections.form().passes_max() {
                entry.passes = if comes { entry.passes + 1 } else { entry.passes - 1 };
                self.set_entry(io, slot, entry)?;
            }
        }
        Ok(())
    }

    fn search(&mut self, io: &mut Io<'_>, hash: u64, holds: &mut Holds<'_>) -> Result<Position, KvError> {
        let mut free = None;
        for probes in 0..PROBES_MAX {
            let slot = self.probe.slot(hash, probes);
            let entry = self.look_up(io, slot)?;
            self.lookups.access();
            let here = Position { tag: slot, place: Some(entry.place), hash, probes, value_bytes: None };
            if entry.place == Grain(0) {
                free = free.or(Some(Position { place: None, ..here }));
                if entry.is_end() {
                    break;
                }
            } else if holds(io, entry.place)? {
                return Ok(here);
            } else {
                self.lookups.collide();
            }
        }
        Ok(free.unwrap_or(Position { tag: Position::FULL, place: None, hash, probes: PROBES_MAX, value_bytes: None }))
    }
}

impl<L: SectionLayout> Index for HashIndex<L> {
    fn locate(&mut self, io: &mut Io<'_>, key: Key<'_>, holds: &mut Holds<'_>) -> Result<Position, KvError> {
        self.lookups.begin(self.sections.counters());
        self.sections.wear_off_surplus();
        io.cpu(io.costs().hash_ns);
        let position = self.search(io, xxh3_64(key.bytes()), holds)?;
        self.lookups.end(self.sections.counters());
        Ok(position)
    }

    fn bind(&mut self, io: &mut Io<'_>, _key: Key<'_>, position: Position, pair: PairPlace) -> Result<(), KvError> {
        self.sections.hold();
        let entry = self.entry(io, position.tag)?.0;
        if position.place.is_none() {
            self.count_passes(io, position, true)?;
        }
        self.set_entry(io, position.tag, Entry { place: pair.place, ..entry })?;
        self.sections.release(io)
    }

    fn unbind(&mut self, io: &mut Io<'_>, _key: Key<'_>, position: Position) -> Result<(), KvError> {
        self.sections.hold();
        let entry = self.entry(io, position.tag)?.0;
        self.set_entry(io, position.tag, Entry { place: Grain(0), ..entry })?;
        self.count_passes(io, position, false)?;
        self.sections.release(io)
    }

    fn relocate(&mut self, io: &mut Io<'_>, moves: &mut [Move]) -> Result<(), KvError> {
        // In the order of the sections, so that each is changed in one go.
        moves.sort_unstable_by_key(|pair| pair.tag);
        let at_once = self.sections.at_once(io);
        for moves in moves.chunks_mut(at_once) {
            let sections: Vec<u64> = moves.iter().map(|pair| self.section_of(pair.tag).0).collect();
            self.sections.load_all(io, &sections)?;
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
        self.sections.relocate_own(io, number, from)
    }

    fn expect(&self, io: &Io<'_>, keys: &[Key<'_>]) {
        let slots: Vec<_> = keys.iter().map(|key| self.section_of(self.probe.slot(xxh3_64(key.bytes()), 0))).collect();
        self.sections.expect(io, slots.iter().map(|&(section, _)| section));
        let entry = |&(section, within): &(u64, u32)| {
            let bytes = self.sections.peek(io, section)?;
            Some(self.sections.form().get(bytes, within).0.place).filter(|&place| place != Grain(0))
        };
        let records: Vec<Grain> = slots.iter().filter_map(entry).collect();
        io.warm(&records);
        io.warm_fates(&records);
    }

    fn warm(&self, numbers: &[u64]) {
        self.sections.warm(numbers);
    }

    fn list(
        &mut self,
        io: &mut Io<'_>,
        from: Option<Position>,
        count: usize,
        places: &mut Vec<Grain>,
    ) -> Result<(), KvError> {
        let mut slot = match from {
            // The table is full up and has no place for the key either: start where a search for it would.
            Some(Position { tag: Position::FULL, hash, .. }) => self.probe.slot(hash, 0),
            Some(Position { tag, .. }) => tag,
            None => 0,
        };
        let mut left = count;
        while slot < self.slots && left > 0 {
            let (section, within) = self.section_of(slot);
            slot = (section + 1) * self.section_slots;
            if self.sections.is_nowhere(section) {
                continue;
            }
            let ticket = self.sections.load(io, section)?;
            let mut from = within;
            while left > 0
                && let Some((at, entry)) = self.sections.form().next(self.sections.bytes(ticket), from)
            {
                io.cpu(io.costs().comparison_ns);
                places.push(entry.place);
                from = at + 1;
                left -= 1;
            }
        }
        Ok(())
    }

    fn own_records(&self) -> Vec<OwnRecord> {
        self.sections.own_records().collect()
    }

    fn survey(&self, io: &mut Io<'_>) -> Survey {
        let layout = self.sections.form();
        let mut survey = Survey { passes_max: layout.passes_max(), ..Survey::default() };
        self.sections.survey(io, &mut survey, |number, bytes, survey| {
            for within in 0..self.section_slots {
                let tag = number * self.section_slots + within;
                let (entry, _) = layout.get(bytes, within as u32);
                if entry.is_end() {
                    continue;
                }
                if tag < self.slots {
                    survey.seen.push(Seen { tag, place: entry.place, passes: entry.passes });
                } else {
                    let why = format!("it has an entry of slot {tag}, which the table has not");
                    survey.faults.push(IndexFault { number, place: Grain(0), why, loses_pairs: true });
                }
            }
        });
        survey
    }

    fn way_to(&self, key: Key<'_>, tag: u64, way: &mut Vec<u64>) -> bool {
        let hash = xxh3_64(key.bytes());
        for count in 0..PROBES_MAX {
            let slot = self.probe.slot(hash, count);
            if slot == tag {
                return true;
            }
            way.push(slot);
        }
        false
    }

    fn set_dram_budget(&mut self, bytes: u64) {
        let mut directory = DramUse::default();
        HashIndex::charge_directory(self.sections.form(), self.slots, &mut directory);
        self.sections.set_budget(bytes.saturating_sub(directory.total_bytes()));
    }

    fn dram(&self, dram: &mut DramUse) {
        HashIndex::charge_directory(self.sections.form(), self.slots, dram);
        self.sections.dram(dram);
    }

    fn footprint_bytes(&self) -> u64 {
        self.sections.footprint_bytes()
    }

    fn counters(&self) -> IndexCounters {
        self.lookups.counters(self.sections.counters())
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_allocvec(&self.sections.save()).expect("a directory is plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        self.sections.restore(postcard::from_bytes(bytes).ok()?)
    }

    fn redo_own(&mut self, change: &Change, position: usize) -> Option<()> {
        match *change {
            Change::Own { number, place, bytes, .. } => self.sections.redo_written(number, place, bytes, position),
            _ => Some(()),
        }
    }

    fn redo(&mut self, io: &mut Io<'_>, change: &Change, position: usize) -> Result<(), KvError> {
        match *change {
            Change::Bound { tag, probes, pair, old } => {
                if old.is_none() {
                    self.redo_passes(io, tag, probes, position, true)?;
                }
                self.redo_entry(io, tag, position, |entry| Entry { place: pair.place, ..entry })
            }
            Change::Unbound { tag, probes, .. } => {
                self.redo_entry(io, tag, position, |entry| Entry { place: Grain(0), ..entry })?;
                self.redo_passes(io, tag, probes, position, false)
            }
            Change::Moved { tag, to, .. } => self.redo_entry(io, tag, position, |entry| Entry { place: to, ..entry }),
            _ => Ok(()),
        }
    }

    fn end_redo(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        self.sections.end_redo(io)
    }
}
