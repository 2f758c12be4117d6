//! An index of sections, from what is particular to it: see [`SectionIndex`].

use crate::dram::DramUse;
use crate::index::lookups::Lookups;
use crate::index::search::{Glance, Visit};
use crate::index::section_index::{SECOND_FIRST_NUMBER, SectionIndex};
use crate::index::sections::Sections;
use crate::index::{
    Audit, DramTable, Fate, Growth, Index, IndexContents, IndexCounters, IndexEntry, IndexFault, Move, OwnRecord,
    PairChange, Position, SectionForm, Sight, Uncompared, VerifyKey, View,
};
use crate::io::{Io, readable};
use crate::journal::{Change, PairPlace};
use crate::layout::address::Grain;
use kvssd_types::{Key, KvError, OwnedKey};

/// The index.
#[derive(Clone)]
pub struct Sectioned<I: SectionIndex> {
    index: I,
    sections: Sections<I::Form>,
    lookups: Lookups,
    /// What the index and its sections may take of DRAM together.
    budget_bytes: u64,
    /// The key of the change that a mount redoes next.
    redo_key: Option<OwnedKey>,
}

/// Is called with the number of a pair among those asked about, and whether that pair is bound.
type Tell<'a, I> = dyn FnMut(&mut Sectioned<I>, &mut Io<'_>, usize, Option<bool>) -> Result<(), KvError> + 'a;

impl<I: SectionIndex> Sectioned<I> {
    /// The empty index on a drive with pages of `page_bytes`.
    pub fn new(index: I, page_bytes: u32) -> Self {
        Sectioned {
            sections: Sections::new(index.form(), index.sections(), page_bytes, I::SPLITS),
            index,
            lookups: Lookups::default(),
            budget_bytes: u64::MAX,
            redo_key: None,
        }
    }

    /// The same, numbered as the second index of another one ([`SectionIndex::second`]).
    #[must_use]
    pub fn numbered_second(mut self) -> Self {
        self.sections = self.sections.numbered_from(SECOND_FIRST_NUMBER);
        self
    }

    /// What is particular to it, and its sections by way of `io`.
    pub fn parts<'v, 'm>(&'v mut self, io: &'v mut Io<'m>) -> (&'v mut I, View<'v, 'm, I::Form>) {
        let Sectioned { index, sections, lookups, budget_bytes, .. } = self;
        (index, View { io, sections, lookups, redo: None, budget_bytes: *budget_bytes })
    }

    /// Asserts that the sections which the index has split put each entry where it belongs.
    fn check_halves(&mut self) {
        for half in self.sections.take_halves() {
            let Some(ticket) = self.sections.ticket(half) else { continue };
            let of_another = |entry: &IndexEntry| !self.index.belongs(entry.tag, half);
            if let Some(IndexEntry { tag, .. }) = self.index.entries(half, self.sections.bytes(ticket)).find(of_another)
            {
                panic!(
                    "View::split: section {half} is a half that has an entry with tag {tag:#x}, which belongs elsewhere"
                );
            }
        }
    }

    /// What is particular to it.
    pub fn index(&self) -> &I {
        &self.index
    }

    /// The same, to be changed.
    pub fn index_mut(&mut self) -> &mut I {
        &mut self.index
    }

    /// Begins a command: some of what a mount loaded into DRAM beyond the budget may leave.
    pub fn begin_command(&mut self) {
        self.sections.wear_off_surplus();
    }

    /// Makes a change that was located. No section leaves the cache before all of its sections have it.
    fn apply(&mut self, io: &mut Io<'_>, change: &PairChange<'_>) -> Result<(), KvError> {
        self.sections.hold();
        let (index, mut view) = self.parts(io);
        let is_done = index.change(&mut view, change);
        self.sections.release(io)?;
        assert!(is_done?, "what was located, or has room, can be changed");
        Ok(())
    }

    /// Whether a section has the pair with that tag and place.
    fn is_in(&mut self, io: &mut Io<'_>, section: u64, (tag, place): (u64, Grain)) -> Result<bool, KvError> {
        let (index, mut view) = self.parts(io);
        view.look_up_directory();
        if view.is_nowhere(section) {
            return Ok(false);
        }
        let ticket = view.load(section)?;
        let (is_there, comparisons) = index.find(view.bytes(ticket), tag, place);
        view.compare(comparisons.into());
        Ok(is_there)
    }

    /// Calls `tell` for each pair with whether it is bound, `None` if that cannot be read. Loads the sections of many pairs together.
    fn each_pair(&mut self, io: &mut Io<'_>, pairs: &[(u64, Grain)], tell: &mut Tell<'_, I>) -> Result<(), KvError> {
        let (index, mut view) = self.parts(io);
        index.prepare(&mut view)?;
        let mut pending = Vec::with_capacity(pairs.len());
        for (number, &(tag, place)) in pairs.iter().enumerate() {
            match self.index.known(tag, place) {
                Some(is_bound) => tell(self, io, number, Some(is_bound))?,
                None => pending.push(number),
            }
        }
        let levels = self.index.levels();
        for level in 0..levels {
            let section_of = |index: &I, number: usize| index.section_at(pairs[number].0, level);
            pending.sort_unstable_by_key(|&number| self.index.order(pairs[number].0, level));
            let mut left = Vec::new();
            for numbers in pending.chunks(self.sections.at_once(io)) {
                let sections: Vec<u64> = numbers.iter().map(|&number| section_of(&self.index, number)).collect();
                self.sections.load_all(io, &sections)?;
                for (&number, section) in numbers.iter().zip(sections) {
                    match readable(self.is_in(io, section, pairs[number]))? {
                        Some(false) if level + 1 < levels => left.push(number),
                        found => tell(self, io, number, found)?,
                    }
                }
            }
            pending = left;
        }
        Ok(())
    }

    fn second_number(number: u64) -> Option<u64> {
        number.checked_sub(SECOND_FIRST_NUMBER)
    }

    /// Binds a pair to its copy, if it lives.
    fn relocate_one(&mut self, io: &mut Io<'_>, pair: &mut Move, is_bound: Option<bool>) -> Result<(), KvError> {
        let Move { tag, from, to, grains, .. } = *pair;
        pair.fate = match is_bound {
            Some(true) => Fate::Moved,
            Some(false) => Fate::Dead,
            None => Fate::Unreadable,
        };
        if is_bound == Some(true) {
            io.note(Change::Moved { tag, from, to, grains });
            io.move_head(from, to);
            self.apply(io, &PairChange::Move { tag, from, to })?;
        }
        Ok(())
    }
}

impl<I: SectionIndex> Index for Sectioned<I> {
    fn locate(&mut self, io: &mut Io<'_>, key: Key<'_>, verify: &mut VerifyKey<'_>) -> Result<Position, KvError> {
        self.lookups.begin(self.sections.counters());
        self.begin_command();
        let (index, mut view) = self.parts(io);
        index.prepare(&mut view)?;
        view.io.cpu(view.io.costs().hash_ns);
        let position = index.locate(&mut Visit { view: &mut view, verify }, key, index.hash(key))?;
        self.lookups.end(self.sections.counters());
        let (tag, tags) = (position.tag, self.index.tags());
        assert!(
            tag < tags || tag == Position::FULL,
            "SectionIndex::locate gives tag {tag:#x}, and SectionIndex::tags says that all are below {tags:#x}"
        );
        Ok(position)
    }

    fn glance(&self, key: Key<'_>, sight: &mut dyn Sight) -> Option<Position> {
        let mut glance = Glance { sections: &self.sections, sight };
        self.index.locate(&mut glance, key, self.index.hash(key)).ok()
    }

    fn reserve(&mut self, io: &mut Io<'_>, position: Position) -> Result<(), KvError> {
        let (index, mut view) = self.parts(io);
        index.reserve(&mut view, position.tag)?;
        self.check_halves();
        Ok(())
    }

    fn position_uncompared(&mut self, io: &mut Io<'_>, key: Key<'_>) -> Option<Position> {
        io.cpu(io.costs().hash_ns);
        self.index.position_uncompared(key, self.index.hash(key))
    }

    fn compare(&mut self, io: &mut Io<'_>, which: Uncompared<'_>) -> Result<(), KvError> {
        let (index, mut view) = self.parts(io);
        match which {
            Uncompared::Of(key) => index.compare(&mut view, Some(&[index.first_tag(index.hash(key))])),
            Uncompared::Tagged(tags) => index.compare(&mut view, Some(tags)),
            Uncompared::Some => index.compare(&mut view, None),
        }
    }

    fn uncompared(&self) -> Vec<Grain> {
        self.index.uncompared()
    }

    fn bind(&mut self, io: &mut Io<'_>, key: Key<'_>, position: Position, pair: PairPlace) -> Result<(), KvError> {
        let Position { tag, note, .. } = position;
        let change = match position.place {
            Some(from) => PairChange::Update { tag, note, from, pair },
            None => PairChange::Insert { tag, note, key: Some(key), pair },
        };
        self.apply(io, &change)
    }

    fn unbind(&mut self, io: &mut Io<'_>, _key: Key<'_>, position: Position) -> Result<(), KvError> {
        let from = position.place.expect("only a key that was found is removed");
        self.apply(io, &PairChange::Remove { tag: position.tag, note: position.note, from })
    }

    fn relocate(&mut self, io: &mut Io<'_>, moves: &mut [Move]) -> Result<(), KvError> {
        if self.index.levels() > 1 {
            let pairs: Vec<(u64, Grain)> = moves.iter().map(|pair| (pair.tag, pair.from)).collect();
            let bound = self.are_bound(io, &pairs)?;
            return moves.iter_mut().zip(bound).try_for_each(|(pair, is_bound)| self.relocate_one(io, pair, is_bound));
        }
        // So that each section is changed in one go.
        moves.sort_by_cached_key(|pair| (self.index.section_of(pair.tag), pair.tag, pair.from));
        let pairs: Vec<(u64, Grain)> = moves.iter().map(|pair| (pair.tag, pair.from)).collect();
        self.each_pair(io, &pairs, &mut |this, io, number, is_bound| {
            this.relocate_one(io, &mut moves[number], is_bound)
        })
    }

    fn is_bound(&mut self, io: &mut Io<'_>, tag: u64, place: Grain) -> Result<bool, KvError> {
        if let Some(is_bound) = self.index.known(tag, place) {
            return Ok(is_bound);
        }
        for level in 0..self.index.levels() {
            if self.is_in(io, self.index.section_at(tag, level), (tag, place))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn are_bound(&mut self, io: &mut Io<'_>, pairs: &[(u64, Grain)]) -> Result<Vec<Option<bool>>, KvError> {
        let mut bound = vec![None; pairs.len()];
        self.each_pair(io, pairs, &mut |_, _, number, is_bound| {
            bound[number] = is_bound;
            Ok(())
        })?;
        Ok(bound)
    }

    fn relocate_own(&mut self, io: &mut Io<'_>, number: u64, from: Grain) -> Result<(), KvError> {
        match (Self::second_number(number), self.index.second_mut()) {
            (Some(number), Some(second)) => second.relocate_own(io, number, from),
            _ => self.sections.relocate_own(io, number, from),
        }
    }

    fn growth(&self) -> Growth {
        match self.index.growth() {
            Growth::None if I::SHRINKS_IN_STEPS && self.sections.has_surplus() => Growth::Background,
            growth => growth,
        }
    }

    fn grow(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        if I::SHRINKS_IN_STEPS {
            self.sections.shrink(io)?;
        }
        let (index, mut view) = self.parts(io);
        index.grow(&mut view)?;
        self.check_halves();
        Ok(())
    }

    fn expect(&self, io: &Io<'_>, keys: &[Key<'_>]) {
        let tags = keys.iter().map(|&key| self.index.first_tag(self.index.hash(key)));
        let found: Vec<(u64, u64)> = tags.map(|tag| (tag, self.index.section_of(tag))).collect();
        self.sections.expect(io, found.iter().map(|&(_, section)| section));
        let form = self.sections.form();
        let place = |&(tag, section): &(u64, u64)| {
            let bytes = self.sections.peek(io, section).filter(|bytes| form.has_form(bytes))?;
            self.index.place_of(bytes, tag)
        };
        let records: Vec<Grain> = found.iter().filter_map(place).collect();
        io.warm(&records);
        io.warm_fates(&records);
    }

    fn warm(&self, numbers: &[u64]) {
        self.sections.warm(numbers);
    }

    fn list(&mut self, io: &mut Io<'_>, from: Option<Position>, count: usize) -> Result<Vec<Grain>, KvError> {
        let (index, mut view) = self.parts(io);
        index.prepare(&mut view)?;
        index.list(&mut view, from, count)
    }

    fn own_records(&self) -> Vec<OwnRecord> {
        self.sections.own_records().chain(self.index.second().into_iter().flat_map(Index::own_records)).collect()
    }

    fn contents(&self, io: &mut Io<'_>) -> IndexContents {
        let mut contents = IndexContents::default();
        self.sections.contents(io, &mut contents, |number, bytes, contents| {
            for entry in self.index.entries(number, bytes) {
                if !self.index.belongs(entry.tag, number) {
                    let why = format!("it has an entry with tag {}, which belongs elsewhere", entry.tag);
                    contents.faults.push(IndexFault { number, place: entry.place, why, loses_pairs: true });
                }
                contents.entries.push(entry);
            }
        });
        self.index.contents(&mut contents);
        let found = contents.entries.len() as u64;
        if let Some(pairs) = self.index.pairs().filter(|&pairs| contents.faults.is_empty() && pairs != found) {
            let why = format!("its sections have {found} pairs, and it counts {pairs}");
            contents.faults.push(IndexFault { number: 0, place: Grain(0), why, loses_pairs: false });
        }
        if let Some(second) = self.index.second() {
            // No pair is lost by a fault in the second index.
            let faults = second.contents(io).faults.into_iter();
            contents.faults.extend(faults.map(|fault| IndexFault { loses_pairs: false, ..fault }));
        }
        contents.sort();
        contents
    }

    fn audit(&self, contents: IndexContents) -> Box<dyn Audit + '_> {
        self.index.audit(contents)
    }

    fn tag_of(&self, key: Key<'_>) -> Option<u64> {
        self.index.tag_of(key)
    }

    fn notes_keys(&mut self) -> bool {
        self.index.notes_keys()
    }

    fn dram_table(&self) -> Option<DramTable> {
        self.index.dram_table()
    }

    fn set_dram_budget(&mut self, bytes: u64) {
        self.budget_bytes = bytes;
        let cache_bytes_max = self.index.cache_bytes_max(bytes);
        if I::SHRINKS_IN_STEPS {
            self.sections.set_budget_in_steps(cache_bytes_max);
        } else {
            self.sections.set_budget(cache_bytes_max);
        }
    }

    /// Where they leave as work of the index's own, they do so at its pace.
    fn surplus_bytes(&self) -> u64 {
        if I::SHRINKS_IN_STEPS { 0 } else { self.sections.beyond_budget_bytes() }
    }

    fn shrink(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        self.sections.shrink(io)
    }

    fn may_have_blank(&self) -> bool {
        self.sections.may_have_blank() || self.index.second().is_some_and(Index::may_have_blank)
    }

    fn drop_blank(&mut self) {
        self.sections.drop_blank();
        if let Some(second) = self.index.second_mut() {
            second.drop_blank();
        }
    }

    fn dram(&self, dram: &mut DramUse) {
        self.index.dram(dram);
        self.sections.dram(dram);
        if let Some(second) = self.index.second() {
            second.dram(dram);
        }
    }

    fn footprint_bytes(&self) -> u64 {
        self.sections.footprint_bytes() + self.index.second().map_or(0, Index::footprint_bytes)
    }

    fn counters(&self) -> IndexCounters {
        let mut counters = self.lookups.counters(self.sections.counters());
        self.index.count(&mut counters);
        let second = self.index.second().map(Index::counters).unwrap_or_default();
        counters.bytes_read = counters.bytes_read.plus(second.bytes_read);
        counters.bytes_written = counters.bytes_written.plus(second.bytes_written);
        counters
    }

    fn save(&self) -> Vec<u8> {
        self.index.save(self.sections.save())
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        let saved = self.index.restore(bytes)?;
        self.sections.grow(self.index.sections());
        self.sections.restore(saved)
    }

    fn redo_own(&mut self, change: &Change, position: usize) -> Option<()> {
        let (Change::Own { number, .. } | Change::Split { number, .. }) = *change else { return Some(()) };
        if let (Some(number), Some(second)) = (Self::second_number(number), self.index.second_mut()) {
            return second.redo_own(&change.numbered(number), position);
        }
        match *change {
            Change::Own { place, bytes, .. } => {
                self.index.redo_section(number).then_some(())?;
                self.sections.grow(self.index.sections());
                self.sections.redo_written(number, place, bytes, position)
            }
            Change::Split { places, bytes, .. } => {
                let halves = self.index.redo_split(number)?;
                self.sections.grow(self.index.sections());
                self.sections.redo_split(number, halves, places, bytes, position)
            }
            _ => Some(()),
        }
    }

    fn redo(&mut self, io: &mut Io<'_>, change: &Change, position: usize) -> Result<(), KvError> {
        if let Change::Key { key, .. } = change {
            self.redo_key = Some(key.clone());
            return Ok(());
        }
        let noted = if let Change::Bound { .. } = change { self.redo_key.take() } else { None };
        let key = noted.as_deref().and_then(|key| Key::new(key).ok());
        let change = match *change {
            Change::Bound { tag, note, pair, old: None } => PairChange::Insert { tag, note, key, pair },
            Change::Bound { tag, note, pair, old: Some(old) } => {
                PairChange::Update { tag, note, from: old.place, pair }
            }
            Change::Unbound { tag, note, old } => PairChange::Remove { tag, note, from: old.place },
            Change::Moved { tag, from, to, .. } => PairChange::Move { tag, from, to },
            _ => return Ok(()),
        };
        // An index need not know of tags that it has not given.
        let is_known = change.tag() < self.index.tags();
        let (index, mut view) = self.parts(io);
        view.redo = Some(position);
        match is_known && index.change(&mut view, &change)? {
            true => Ok(()),
            false => Err(KvError::Unrecovered("the journal has a change that the index cannot make".to_owned())),
        }
    }

    fn end_redo(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        self.sections.end_redo(io)?;
        if let Some(second) = self.index.second_mut() {
            second.end_redo(io)?;
        }
        let (index, mut view) = self.parts(io);
        index.end_redo(&mut view)?;
        self.sections.end_redo(io)
    }
}
