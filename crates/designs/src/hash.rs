//! A demand-cached hash index: one open-addressed table over sections, with a slot for every grain of the drive.
//!
//! ```text
//!   key -> hash -> slot (h + c + c^2) -> section -> entry -> place -> record: the key? else collision
//!                   ^ next c
//! ```
//!
//! A [`SectionLayout`] says how the slots of a section lie in bytes: that is all that `hash-fixed` and `hash-compact`
//! differ in.

mod audit;

use self::audit::ProbeAudit;
use crate::probe::{Entry, PROBES_MAX, Probe};
use crate::section::{CompactLayout, FixedLayout, SectionLayout};
use kvssd_ftl::Grain;
use kvssd_ftl::index::{
    Audit, Forecast, IndexContents, IndexEntry, Outlook, PairChange, Position, Room, Search, SectionIndex, SectionPlan,
    View,
};
use kvssd_types::{Key, KvError};

/// The index over sections of one layout.
#[derive(Clone)]
pub struct HashIndex<L> {
    probe: Probe,
    slots: u64,
    layout: L,
}

/// The table with every slot on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashFixed;

impl SectionPlan for HashFixed {
    type Index = HashIndex<FixedLayout>;

    fn name(&self) -> &'static str {
        "hash-fixed"
    }

    fn index(&self, room: &Room) -> Result<Self::Index, String> {
        Ok(HashIndex::new(FixedLayout::new(room.page_bytes, room.grains), room.grains))
    }

    fn forecast(&self, index: &Self::Index, outlook: &Outlook) -> Option<Forecast> {
        // A slot is where its number says.
        Some(Forecast { comparisons: 1.0, ..index.forecast(outlook) })
    }
}

/// The table with living mappings only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashCompact;

impl SectionPlan for HashCompact {
    type Index = HashIndex<CompactLayout>;

    fn name(&self) -> &'static str {
        "hash-compact"
    }

    fn index(&self, room: &Room) -> Result<Self::Index, String> {
        let Room { page_bytes, grain_bytes, .. } = *room;
        let layout = CompactLayout::new(page_bytes, grain_bytes);
        let none = || {
            let instead = match CompactLayout::page_bytes_max(grain_bytes) {
                Some(most) => format!("pages may have up to {most} bytes"),
                None => "there are none of such grains".to_owned(),
            };
            format!(
                "hash-compact has no sections of {page_bytes} byte pages and {grain_bytes} byte grains: {instead}; rhik takes pages of any size"
            )
        };
        Ok(HashIndex::new(layout.ok_or_else(none)?, room.grains))
    }

    fn forecast(&self, index: &Self::Index, outlook: &Outlook) -> Option<Forecast> {
        Some(index.forecast(outlook))
    }
}

impl<L: SectionLayout + Copy> HashIndex<L> {
    /// An empty table with a slot for every grain of the drive.
    fn new(layout: L, grains: u64) -> Self {
        HashIndex { probe: Probe::new(grains), slots: grains, layout }
    }

    /// A key is put behind as many others as random probes meet in a table of that load (Peterson, 1957).
    fn forecast(&self, outlook: &Outlook) -> Forecast {
        let (sections, load) = (self.sections(), (outlook.pairs as f64 / self.slots as f64).clamp(1e-9, 0.99));
        let section_bytes = self.layout.bytes_of(outlook.pairs as f64 / sections as f64);
        let directory_bytes = sections * self.layout.directory_entry_bytes();
        let strangers = -(1.0 - load).ln() / load - 1.0;
        Forecast { strangers, ..Forecast::of_sections(outlook, sections, section_bytes, directory_bytes) }
    }

    fn within(&self, slot: u64) -> u32 {
        (slot % self.layout.slots()) as u32
    }

    /// Looks for the entry of a slot, which costs the directory and a search.
    fn look_up(&self, sections: &mut impl Search<L>, slot: u64) -> Result<Entry, KvError> {
        sections.look_up_directory();
        let ticket = sections.search(self.section_of(slot))?;
        let (entry, comparisons) = sections.form().get(sections.bytes(ticket), self.within(slot));
        sections.compare(comparisons.into());
        Ok(entry)
    }

    /// Changes the entry of a slot. The firmware holds a pointer to it, and pays only for sorting a section anew.
    fn set(&self, view: &mut View<'_, '_, L>, slot: u64, change: impl FnOnce(Entry) -> Entry) -> Result<bool, KvError> {
        let within = self.within(slot);
        view.edit(self.section_of(slot), |layout, section| {
            let (old, _) = layout.get(section, within);
            let new = change(old);
            Some(if new == old { 0 } else { layout.set(section.to_mut(), within, new) })
        })
    }

    fn set_place(&self, view: &mut View<'_, '_, L>, slot: u64, place: Grain) -> Result<bool, KvError> {
        self.set(view, slot, |entry| Entry { place, ..entry })
    }

    /// A pair was put into `slot`, or went: counts that in the slots that a search passes before it.
    fn count_passes(&self, view: &mut View<'_, '_, L>, slot: u64, probes: u32, comes: bool) -> Result<bool, KvError> {
        let first = self.probe.first_of(slot, probes);
        for count in 0..probes {
            self.set(view, self.probe.slot(first, count), |entry| Entry {
                passes: match entry.passes {
                    // A saturated count has lost its number and must stay.
                    passes if passes == self.layout.passes_max() => passes,
                    passes if comes => passes + 1,
                    passes => passes.saturating_sub(1),
                },
                ..entry
            })?;
        }
        Ok(true)
    }
}

impl<L: SectionLayout + Copy> SectionIndex for HashIndex<L> {
    type Form = L;

    const HAS_TAGS_OF_KEYS: bool = false;

    fn sections(&self) -> u64 {
        self.slots.div_ceil(self.layout.slots())
    }

    fn form(&self) -> L {
        self.layout
    }

    fn tags(&self) -> u64 {
        self.slots
    }

    fn section_of(&self, slot: u64) -> u64 {
        slot / self.layout.slots()
    }

    fn find(&self, section: &[u8], slot: u64, place: Grain) -> (bool, u32) {
        let (entry, comparisons) = self.layout.get(section, self.within(slot));
        (entry.place == place, comparisons)
    }

    fn place_of(&self, section: &[u8], slot: u64) -> Option<Grain> {
        Some(self.layout.get(section, self.within(slot)).0.place).filter(|&place| place != Grain(0))
    }

    fn entries(&self, number: u64, section: &[u8]) -> impl Iterator<Item = IndexEntry> {
        let slots = self.layout.slots();
        let entries =
            (0..slots).map(move |within| (number * slots + within, self.layout.get(section, within as u32).0));
        let taken = entries.filter(|(_, entry)| !entry.is_end());
        taken.map(|(tag, entry)| IndexEntry { tag, place: entry.place, note: entry.passes })
    }

    fn locate(&self, sections: &mut impl Search<L>, _key: Key<'_>, hash: u64) -> Result<Position, KvError> {
        let mut free = None;
        for note in 0..PROBES_MAX {
            let tag = self.probe.slot(hash, note);
            let entry = self.look_up(sections, tag)?;
            let here = Position { tag, place: Some(entry.place), hash, note, value_bytes: None };
            if entry.place == Grain(0) {
                free = free.or(Some(Position { place: None, ..here }));
                if entry.is_end() {
                    break;
                }
            } else if sections.verify(entry.place)? {
                return Ok(here);
            }
        }
        Ok(free.unwrap_or(Position { tag: Position::FULL, place: None, hash, note: PROBES_MAX, value_bytes: None }))
    }

    /// The note is the number of slots before the pair's own.
    fn change(&mut self, view: &mut View<'_, '_, L>, change: &PairChange<'_>) -> Result<bool, KvError> {
        let slot = change.tag();
        let place = change.to().unwrap_or(Grain(0));
        match *change {
            _ if slot >= self.slots => Ok(false),
            PairChange::Insert { note, .. } | PairChange::Remove { note, .. } if note > PROBES_MAX => Ok(false),
            PairChange::Insert { note, .. } => {
                self.count_passes(view, slot, note, true)?;
                self.set_place(view, slot, place)
            }
            PairChange::Remove { note, .. } => {
                self.set_place(view, slot, place)?;
                self.count_passes(view, slot, note, false)
            }
            PairChange::Update { .. } | PairChange::Move { .. } => self.set_place(view, slot, place),
        }
    }

    fn list(
        &mut self,
        view: &mut View<'_, '_, L>,
        from: Option<Position>,
        count: usize,
    ) -> Result<Vec<Grain>, KvError> {
        let mut slot = match from {
            Some(Position { tag, place: Some(_), .. }) => tag,
            // A key that is gone was in any slot of its search, and others may have taken that since. Where the search goes on at the beginning
            // of the table, so does this; one that did so once, and ends earlier now, is not told.
            Some(Position { tag, hash, .. }) => {
                Some(self.probe.slot(hash, 0)).filter(|first| *first <= tag).unwrap_or(0)
            }
            None => 0,
        };
        let mut places = Vec::new();
        while slot < self.slots && places.len() < count {
            let (section, mut within) = (self.section_of(slot), self.within(slot));
            slot = (section + 1) * self.layout.slots();
            if view.is_nowhere(section) {
                continue;
            }
            let ticket = view.load(section)?;
            while places.len() < count
                && let Some((at, entry)) = view.form().next(view.bytes(ticket), within)
            {
                view.compare(1);
                places.push(entry.place);
                within = at + 1;
            }
        }
        Ok(places)
    }

    fn first_tag(&self, hash: u64) -> u64 {
        self.probe.slot(hash, 0)
    }

    fn belongs(&self, slot: u64, section: u64) -> bool {
        slot < self.slots && self.section_of(slot) == section
    }

    fn audit(&self, contents: IndexContents) -> Box<dyn Audit + '_> {
        Box::new(ProbeAudit { probe: self.probe, passes_max: self.layout.passes_max(), contents, passed: Vec::new() })
    }
}
