//! `rhik`: a two-level hash index that grows (RHIK, section IV).
//!
//! ```text
//!   key -> signature -> low bits -> directory -> table: a page of records, hashed by hopscotch -> place -> record
//!                                   in DRAM      in DRAM or one flash read
//! ```
//!
//! A signature that is not there needs no look at a record; one that is there has the whole key compared, so that keys with the
//! same signature are both kept. At most one flash read finds a record of the index.
//!
//! It grows by splitting tables, from their signatures alone: no pair is read. When the records have come to a share of the
//! tables' room, every table is split once, which the engine has done in steps: while commands go on, or before the next one
//! (the paper's way, section IV-A2). A table that cannot take a record is split at once, by itself, so that no key is rejected.

mod directory;
mod plan;

use self::directory::{DEPTH_MAX, Directory, depth_of, halves_of, low_of};
use crate::address::Grain;
use crate::dram::DramUse;
use crate::index::lookups::Lookups;
use crate::index::record_table::{HOPS, RecordTable, Signature};
use crate::index::sections::{SavedSections, SectionForm, Sections};
use crate::index::{Fate, Growth, Holds, Index, IndexCounters, IndexFault, Move, OwnRecord, Position, Seen, Survey};
use crate::io::{Io, readable};
use crate::journal::{Change, PairPlace};
use kvssd_flash::Blob;
use kvssd_types::{Key, KvError};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

pub use self::plan::RhikPlan;

/// Tables that are split in a step of growing in the background, read side by side: commands come in between.
const SPLITS_PER_STEP: usize = 4;

/// The index.
pub struct Rhik {
    tables: Sections<RecordTable>,
    directory: Directory,
    plan: RhikPlan,
    records: u64,
    /// All tables are to be this deep at the least.
    depth: u32,
    /// Where the splitting of all tables has come to: the low bits of the next.
    growing: Option<u64>,
    /// What the directory and the tables in DRAM may take together.
    budget_bytes: u64,
    lookups: Lookups,
}

/// What a checkpoint holds of it.
#[derive(Serialize, Deserialize)]
struct Saved {
    depths: Vec<u8>,
    records: u64,
    depth: u32,
    tables: SavedSections,
}

impl Rhik {
    /// An empty index on a drive with pages of `page_bytes`.
    pub(crate) fn new(plan: RhikPlan, page_bytes: u32) -> Self {
        let directory = Directory::new(plan.directory_bits);
        Rhik {
            tables: Sections::new(plan.form(page_bytes), directory.numbers(), page_bytes),
            directory,
            plan,
            records: 0,
            depth: plan.directory_bits,
            growing: None,
            budget_bytes: u64::MAX,
            lookups: Lookups::default(),
        }
    }

    /// As [`Sections::numbered_from`].
    pub(crate) fn numbered_from(mut self, first_number: u64) -> Self {
        self.tables = self.tables.numbered_from(first_number);
        self
    }

    /// Puts a record in, whatever is there.
    pub(crate) fn put(&mut self, io: &mut Io<'_>, tag: Signature, place: Grain) -> Result<(), KvError> {
        let position = Position { tag, place: None, hash: tag, probes: 0, value_bytes: None };
        self.make_room(io, position)?;
        self.bind_record(io, position, place)
    }

    fn bind_record(&mut self, io: &mut Io<'_>, position: Position, place: Grain) -> Result<(), KvError> {
        let tag = position.tag;
        let is_done = match position.place {
            Some(old) => self.change_record(io, (tag, old), |form, bytes, slot| form.set_place(bytes, slot, place))?,
            None => self.insert(io, tag, place)?,
        };
        assert!(is_done, "what was located, or has room, can be bound");
        self.records += u64::from(position.place.is_none());
        self.grow_in_time();
        Ok(())
    }

    /// Brings the tables of the first of several signatures into DRAM side by side: of as many as stay there together. Gives how many.
    pub(crate) fn load_some(&mut self, io: &mut Io<'_>, tags: &[Signature]) -> Result<usize, KvError> {
        let count = tags.len().min(self.tables.at_once(io));
        let tables: Vec<u64> = tags[..count].iter().map(|&tag| self.directory.table_of(tag)).collect();
        self.tables.load_all(io, &tables)?;
        Ok(count)
    }

    /// Takes a record out, if it is there; gives whether it was.
    pub(crate) fn take(&mut self, io: &mut Io<'_>, tag: Signature, place: Grain) -> Result<bool, KvError> {
        let was_there = self.change_record(io, (tag, place), RecordTable::remove)?;
        self.records = self.records.saturating_sub(u64::from(was_there));
        Ok(was_there)
    }

    /// There are so many records: what was made again was not counted.
    pub(crate) fn recount(&mut self, records: u64) {
        self.records = records;
    }

    /// Where a record stands in the order of all: neither a split nor a record that moves for another changes that of the reversed
    /// bits.
    pub(crate) fn order(tag: Signature, place: Grain) -> (u64, Grain) {
        (tag.reverse_bits(), place)
    }

    /// Up to `count` records in their order, from `first` on.
    pub(crate) fn records_from(
        &mut self,
        io: &mut Io<'_>,
        first: (u64, Grain),
        count: usize,
    ) -> Result<Vec<(u64, Grain)>, KvError> {
        let form = self.form();
        let mut records = Vec::new();
        let mut next = Some(self.directory.table_of(first.0.reverse_bits()));
        while records.len() < count
            && let Some(table) = next
        {
            next = self.directory.next(table);
            if self.tables.is_nowhere(table) {
                continue;
            }
            let ticket = self.tables.load(io, table)?;
            let found = form.records_from(self.tables.bytes(ticket), 0).map(|(_, tag, place)| Rhik::order(tag, place));
            let mut listed: Vec<(u64, Grain)> = found.filter(|record| *record >= first).collect();
            listed.sort_unstable();
            io.cpu(listed.len() as u64 * io.costs().comparison_ns);
            records.extend(listed.into_iter().take(count - records.len()));
        }
        Ok(records)
    }

    fn directory_bytes(&self) -> u64 {
        self.directory.numbers() / 2 * self.form().directory_entry_bytes()
    }

    fn form(&self) -> RecordTable {
        *self.tables.form()
    }

    fn signature(&self, key: Key<'_>) -> Signature {
        self.form().signature_of(key)
    }

    /// Changes the record with `tag` whose pair lies at `place`, if there is one.
    fn change_record(
        &mut self,
        io: &mut Io<'_>,
        (tag, place): (Signature, Grain),
        change: impl FnOnce(&RecordTable, &mut Blob, usize),
    ) -> Result<bool, KvError> {
        let table = self.directory.table_of(tag);
        let ticket = self.tables.load(io, table)?;
        let Some(slot) = self.form().slot_of(self.tables.bytes(ticket), tag, place) else { return Ok(false) };
        self.tables.change(io, table, |form, bytes| change(form, bytes, slot))?;
        self.tables.keep_to_budget(io)?;
        Ok(true)
    }

    fn insert(&mut self, io: &mut Io<'_>, tag: Signature, place: Grain) -> Result<bool, KvError> {
        let table = self.directory.table_of(tag);
        let inserted = self.tables.change(io, table, |form, bytes| form.insert(bytes, tag, place))?;
        self.tables.keep_to_budget(io)?;
        Ok(inserted)
    }

    /// Replaces a table by its halves.
    fn split(&mut self, io: &mut Io<'_>, table: u64) -> Result<(), KvError> {
        let ticket = self.tables.load(io, table)?;
        io.cpu(self.form().records() as u64 * io.costs().comparison_ns);
        let parts = self.form().split(self.tables.bytes(ticket), depth_of(table));
        self.directory.split(table);
        self.tables.grow(self.directory.numbers());
        self.set_dram_budget(self.budget_bytes);
        self.tables.split(io, table, halves_of(table), parts)
    }

    /// Begins to split all tables when there are so many records that it is time.
    fn grow_in_time(&mut self) {
        let room = (self.form().records() as u64) << self.depth;
        if self.records * 100 >= room * u64::from(self.plan.occupancy_percent) && self.depth < DEPTH_MAX {
            self.depth += 1;
            self.growing = Some(0);
        }
    }

    /// The next tables, from that of these low bits on, that have something and are not as deep as all are to be.
    fn shallow(&self, from: u64) -> impl Iterator<Item = u64> {
        let tables = std::iter::successors(Some(self.directory.table_of(from)), |&table| self.directory.next(table));
        tables.filter(|&table| depth_of(table) < self.depth && !self.tables.is_nowhere(table))
    }

    /// A command begins: as [`Sections::wear_off_surplus`].
    pub(crate) fn wear_off_surplus(&mut self) {
        self.tables.wear_off_surplus();
    }
}

impl Index for Rhik {
    fn locate(&mut self, io: &mut Io<'_>, key: Key<'_>, holds: &mut Holds<'_>) -> Result<Position, KvError> {
        self.lookups.begin(self.tables.counters());
        self.wear_off_surplus();
        io.cpu(io.costs().hash_ns + io.costs().section_ns);
        let (hash, tag) = (xxh3_64(key.bytes()), self.signature(key));
        let ticket = self.tables.load(io, self.directory.table_of(tag))?;
        self.lookups.access();
        let (form, bytes) = (self.form(), self.tables.bytes(ticket));
        io.cpu(u64::from(form.comparisons(bytes, tag)) * io.costs().comparison_ns);
        let places: Vec<Grain> = form.find(bytes, tag).map(|slot| form.place_at(bytes, slot)).collect();
        let mut position = Position { tag, place: None, hash, probes: 0, value_bytes: None };
        for &place in &places {
            if holds(io, place)? {
                position.place = Some(place);
                break;
            }
            self.lookups.collide();
        }
        if position.place.is_none() && places.len() == HOPS {
            position.tag = Position::FULL;
        }
        self.lookups.end(self.tables.counters());
        Ok(position)
    }

    fn make_room(&mut self, io: &mut Io<'_>, position: Position) -> Result<(), KvError> {
        loop {
            let table = self.directory.table_of(position.tag);
            let ticket = self.tables.load(io, table)?;
            let (form, bytes) = (self.form(), self.tables.bytes(ticket));
            if form.has_room_near(bytes, position.tag) || form.insert(&mut bytes.clone(), position.tag, Grain(1)) {
                return Ok(());
            }
            if depth_of(table) == DEPTH_MAX {
                return Err(KvError::CapacityExceeded);
            }
            self.split(io, table)?;
        }
    }

    fn bind(&mut self, io: &mut Io<'_>, _key: Key<'_>, position: Position, pair: PairPlace) -> Result<(), KvError> {
        self.bind_record(io, position, pair.place)
    }

    fn unbind(&mut self, io: &mut Io<'_>, _key: Key<'_>, position: Position) -> Result<(), KvError> {
        let place = position.place.expect("only a key that was found is unbound");
        let is_done = self.change_record(io, (position.tag, place), RecordTable::remove)?;
        assert!(is_done, "what was located can be unbound");
        self.records = self.records.saturating_sub(1);
        Ok(())
    }

    fn relocate(&mut self, io: &mut Io<'_>, moves: &mut [Move]) -> Result<(), KvError> {
        moves.sort_unstable_by_key(|pair| (self.directory.table_of(pair.tag), pair.tag, pair.from));
        for moves in moves.chunks_mut(self.tables.at_once(io)) {
            let tables: Vec<u64> = moves.iter().map(|pair| self.directory.table_of(pair.tag)).collect();
            self.tables.load_all(io, &tables)?;
            for pair in moves {
                let Some(is_bound) = readable(self.is_bound(io, pair.tag, pair.from))? else {
                    pair.fate = Fate::Unreadable;
                    continue;
                };
                if is_bound {
                    pair.fate = Fate::Moved;
                    let Move { tag, from, to, grains, .. } = *pair;
                    io.note(Change::Moved { tag, from, to, grains });
                    self.change_record(io, (tag, from), |form, bytes, slot| form.set_place(bytes, slot, to))?;
                }
            }
        }
        Ok(())
    }

    fn is_bound(&mut self, io: &mut Io<'_>, tag: u64, place: Grain) -> Result<bool, KvError> {
        io.cpu(io.costs().section_ns);
        let ticket = self.tables.load(io, self.directory.table_of(tag))?;
        let (form, bytes) = (self.form(), self.tables.bytes(ticket));
        io.cpu(u64::from(form.comparisons(bytes, tag)) * io.costs().comparison_ns);
        Ok(form.slot_of(bytes, tag, place).is_some())
    }

    fn are_bound(&mut self, io: &mut Io<'_>, pairs: &[(u64, Grain)]) -> Result<Vec<Option<bool>>, KvError> {
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.sort_unstable_by_key(|&number| self.directory.table_of(pairs[number].0));
        let mut bound = vec![None; pairs.len()];
        for numbers in order.chunks(self.tables.at_once(io)) {
            let tables: Vec<u64> = numbers.iter().map(|&number| self.directory.table_of(pairs[number].0)).collect();
            self.tables.load_all(io, &tables)?;
            for &number in numbers {
                bound[number] = readable(self.is_bound(io, pairs[number].0, pairs[number].1))?;
            }
        }
        Ok(bound)
    }

    fn relocate_own(&mut self, io: &mut Io<'_>, number: u64, from: Grain) -> Result<(), KvError> {
        self.tables.relocate_own(io, number, from)
    }

    fn growth(&self) -> Growth {
        match (self.growing, self.plan.incremental) {
            (None, _) => Growth::None,
            (Some(_), true) => Growth::Background,
            (Some(_), false) => Growth::Foreground,
        }
    }

    fn grow(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        let Some(from) = self.growing else { return Ok(()) };
        // While no command waits for its turn, as many as the drive can do side by side; the halves fill two superblocks at most.
        // Half of the cache may be loaded at once, and a split has three tables in it for one: the last to be split must still be there.
        let at_once = (self.tables.at_once(io) * 2 / 3).max(1);
        let side_by_side = at_once.min(io.media.geometry.pages_per_superblock() as usize);
        let count = if self.plan.incremental { SPLITS_PER_STEP } else { side_by_side };
        let tables: Vec<u64> = self.shallow(from).take(count).collect();
        self.tables.load_all(io, &tables)?;
        let mut next = None;
        for &table in &tables {
            // One that cannot be read stays as it is.
            let is_split = readable(self.split(io, table))?.is_some();
            let last = if is_split { halves_of(table)[1] } else { table };
            next = self.directory.next(last).map(low_of);
        }
        self.growing = next;
        Ok(())
    }

    fn expect(&self, io: &Io<'_>, keys: &[Key<'_>]) {
        let found: Vec<_> =
            keys.iter().map(|&key| self.signature(key)).map(|tag| (tag, self.directory.table_of(tag))).collect();
        self.tables.expect(io, found.iter().map(|&(_, table)| table));
        let place = |&(tag, table): &(Signature, u64)| {
            let bytes = self.tables.peek(io, table).filter(|bytes| self.form().has_form(bytes))?;
            let place = self.form().find(bytes, tag).next().map(|slot| self.form().place_at(bytes, slot));
            place.filter(|&place| place != Grain(0))
        };
        let records: Vec<Grain> = found.iter().filter_map(place).collect();
        io.warm(&records);
        io.warm_fates(&records);
    }

    fn warm(&self, numbers: &[u64]) {
        self.tables.warm(numbers);
    }

    fn list(
        &mut self,
        io: &mut Io<'_>,
        from: Option<Position>,
        count: usize,
        places: &mut Vec<Grain>,
    ) -> Result<(), KvError> {
        let start = from.map(|from| (self.form().signature(from.hash), from.place.unwrap_or(Grain(0))));
        let first = start.map_or((0, Grain(0)), |(tag, place)| Rhik::order(tag, place));
        let records = self.records_from(io, first, count - places.len())?;
        places.extend(records.into_iter().map(|(_, place)| place));
        Ok(())
    }

    fn own_records(&self) -> Vec<OwnRecord> {
        self.tables.own_records().collect()
    }

    fn survey(&self, io: &mut Io<'_>) -> Survey {
        let mut survey = Survey::default();
        let form = self.form();
        self.tables.survey(io, &mut survey, |number, bytes, survey| {
            for (_, tag, place) in form.records_from(bytes, 0) {
                survey.seen.push(Seen { tag, place, passes: 0 });
                if self.directory.table_of(tag) != number {
                    let why = "it has a record that belongs to another table".to_owned();
                    survey.faults.push(IndexFault { number, place, why, loses_pairs: true });
                }
            }
        });
        survey.seen.sort_unstable_by_key(|seen| (seen.tag, seen.place));
        survey
    }

    fn tag_of(&self, key: Key<'_>) -> Option<u64> {
        Some(self.signature(key))
    }

    fn way_to(&self, key: Key<'_>, tag: u64, _way: &mut Vec<u64>) -> bool {
        self.signature(key) == tag
    }

    fn set_dram_budget(&mut self, bytes: u64) {
        self.budget_bytes = bytes;
        self.tables.set_budget(bytes.saturating_sub(self.directory_bytes()));
    }

    fn dram(&self, dram: &mut DramUse) {
        dram.add("index_directory", self.directory_bytes());
        self.tables.dram(dram);
    }

    fn footprint_bytes(&self) -> u64 {
        self.tables.footprint_bytes()
    }

    fn counters(&self) -> IndexCounters {
        self.lookups.counters(self.tables.counters())
    }

    fn save(&self) -> Vec<u8> {
        let (depths, tables) = (self.directory.depths().to_vec(), self.tables.save());
        let saved = Saved { depths, records: self.records, depth: self.depth, tables };
        postcard::to_allocvec(&saved).expect("a directory is plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        let Saved { depths, records, depth, tables } = postcard::from_bytes(bytes).ok()?;
        let is_possible = depth <= DEPTH_MAX && records <= 1 << 48;
        self.directory = Directory::from_depths(depths).filter(|_| is_possible)?;
        (self.records, self.depth) = (records, depth);
        self.tables.grow(self.directory.numbers());
        self.tables.restore(tables)
    }

    fn redo_own(&mut self, change: &Change, position: usize) -> Option<()> {
        match *change {
            Change::Own { number, place, bytes, .. } if self.directory.has(number) => {
                self.tables.redo_written(number, place, bytes, position)
            }
            Change::Split { number, places, .. } if self.directory.has(number) && depth_of(number) < DEPTH_MAX => {
                self.directory.split(number);
                self.tables.grow(self.directory.numbers());
                self.tables.redo_split(number, halves_of(number), places, position)
            }
            Change::Own { .. } | Change::Split { .. } => None,
            _ => Some(()),
        }
    }

    fn redo(&mut self, io: &mut Io<'_>, change: &Change, position: usize) -> Result<(), KvError> {
        let (Change::Bound { tag, .. } | Change::Unbound { tag, .. } | Change::Moved { tag, .. }) = *change else {
            return Ok(());
        };
        let wants = self.tables.redo_wants(io, self.directory.table_of(tag), position)?;
        let is_done = match *change {
            Change::Bound { old: Some(old), pair, .. } => {
                let set = |form: &RecordTable, bytes: &mut _, slot| form.set_place(bytes, slot, pair.place);
                !wants || self.change_record(io, (tag, old.place), set)?
            }
            Change::Bound { pair, .. } => {
                self.records += 1;
                !wants || self.insert(io, tag, pair.place)?
            }
            Change::Unbound { old, .. } => {
                self.records = self.records.saturating_sub(1);
                !wants || self.change_record(io, (tag, old.place), RecordTable::remove)?
            }
            Change::Moved { from, to, .. } => {
                let set = |form: &RecordTable, bytes: &mut _, slot| form.set_place(bytes, slot, to);
                !wants || self.change_record(io, (tag, from), set)?
            }
            _ => true,
        };
        if is_done {
            return Ok(());
        }
        Err(KvError::Unrecovered(
            "the journal speaks of a record that the index has not, or has no room for".to_owned(),
        ))
    }

    fn end_redo(&mut self, io: &mut Io<'_>) -> Result<(), KvError> {
        self.tables.end_redo(io)?;
        self.growing = Some(0).filter(|&from| self.shallow(from).next().is_some());
        Ok(())
    }
}
