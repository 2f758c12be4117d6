//! `rhik`: a two-level hash index that grows (RHIK, section IV).
//!
//! ```text
//!   key -> signature -> low bits -> directory -> table: a page of records, hashed by hopscotch -> place -> record
//!                                   in DRAM      in DRAM or one flash read
//! ```
//!
//! A signature that is not there needs no look at a record; one that is there has the whole key compared, so that keys
//! with the same signature are both kept. At most one flash read finds a record of the index.
//!
//! It grows by splitting tables, from their signatures alone: no pair is read. When the records have come to a share of
//! the tables' room, every table is split once, which the engine has done in steps: while commands go on, or before the
//! next one (the paper's way, section IV-A2). A table that cannot take a record is split at once, by itself, so that no
//! key is rejected.

mod plan;

use crate::record_table::{HOPS, RecordTable, Signature};
use kvssd_ftl::index::{
    Growth, IndexEntry, PairChange, Position, SavedSections, Search, SectionIndex, SplitDirectory, SplitIndex, View,
};
use kvssd_ftl::{Grain, readable};
use kvssd_types::{Key, KvError};
use serde::{Deserialize, Serialize};

pub use self::plan::RhikPlan;

/// Tables that are split in a step of growing in the background, read side by side: commands come in between.
const SPLITS_PER_STEP: usize = 4;

/// The index.
#[derive(Clone)]
pub struct Rhik {
    form: RecordTable,
    directory: SplitDirectory,
    plan: RhikPlan,
    /// All tables are to be this deep at the least.
    depth: u32,
    /// Where the splitting of all tables has come to: the low bits of the next.
    growing: Option<u64>,
}

/// What a checkpoint holds of it.
#[derive(Serialize, Deserialize)]
struct Saved {
    directory: SplitDirectory,
    depth: u32,
    tables: SavedSections,
}

type Tables<'v, 'm> = View<'v, 'm, RecordTable>;

impl Rhik {
    /// An empty index on a drive with pages of `page_bytes`.
    pub(crate) fn new(plan: RhikPlan, page_bytes: u32) -> Self {
        let (form, directory) = (plan.form(page_bytes), SplitDirectory::new(plan.directory_bits));
        Rhik { form, directory, plan, depth: plan.directory_bits, growing: None }
    }

    /// Makes a change, with room for it.
    pub(crate) fn reserve_and_change(
        &mut self,
        tables: &mut Tables<'_, '_>,
        change: &PairChange<'_>,
    ) -> Result<(), KvError> {
        if change.from().is_none() {
            self.split_until_room(tables, change.tag())?;
        }
        assert!(SectionIndex::change(self, tables, change)?, "what is there, or has room, can be changed");
        Ok(())
    }

    /// Reads the tables of the first of several signatures side by side: as many as stay in DRAM. Returns how many.
    pub(crate) fn load_some(&mut self, tables: &mut Tables<'_, '_>, tags: &[Signature]) -> Result<usize, KvError> {
        let count = tags.len().min(tables.at_once());
        let numbers: Vec<u64> = tags[..count].iter().map(|&tag| self.directory.section_of(tag)).collect();
        tables.load_all(&numbers)?;
        Ok(count)
    }

    /// Begins to split all tables when there are so many records that it is time. A drive that has no room for twice the tables, and for as much
    /// again that is stored meanwhile, has only those split that are full.
    fn grow_in_time(&mut self, tables: &Tables<'_, '_>) {
        let room = (self.form.records() as u64) << self.depth;
        let is_time = self.directory.pairs() * 100 >= room * u64::from(self.plan.occupancy_percent);
        let has_room = tables.io.free_bytes() >= 2 * tables.footprint_bytes();
        if is_time && has_room && self.depth < SplitDirectory::DEPTH_MAX {
            self.depth += 1;
            self.growing = Some(0);
        }
    }

    /// The tables from that of these low bits on that are not empty and not yet as deep as all are to be.
    fn shallow(&self, tables: &Tables<'_, '_>, from: u64) -> impl Iterator<Item = u64> {
        let all = std::iter::successors(Some(self.directory.section_of(from)), |&table| self.directory.next(table));
        all.filter(|&table| SplitDirectory::depth_of(table) < self.depth && !tables.is_nowhere(table))
    }
}

impl SplitIndex for Rhik {
    type Form = RecordTable;

    fn form(&self) -> RecordTable {
        self.form
    }

    fn directory(&self) -> &SplitDirectory {
        &self.directory
    }

    fn directory_mut(&mut self) -> &mut SplitDirectory {
        &mut self.directory
    }

    fn tags(&self) -> u64 {
        self.form.signatures()
    }

    fn find(&self, table: &[u8], tag: u64, place: Grain) -> (bool, u32) {
        (self.form.slot_of(table, tag, place).is_some(), self.form.comparisons(table, tag))
    }

    fn place_of(&self, table: &[u8], tag: u64) -> Option<Grain> {
        let found = self.form.find(table, tag).next().map(|slot| self.form.place_at(table, slot));
        found.filter(|&place| place != Grain(0))
    }

    fn entries(&self, _number: u64, table: &[u8]) -> impl Iterator<Item = IndexEntry> {
        self.form.records_from(table, 0).map(|(_, tag, place)| IndexEntry { tag, place, note: 0 })
    }

    fn locate(&self, tables: &mut impl Search<RecordTable>, _key: Key<'_>, hash: u64) -> Result<Position, KvError> {
        let tag = self.form.signature(hash);
        tables.look_up_directory();
        let ticket = tables.search(self.directory.section_of(tag))?;
        let (form, bytes) = (self.form, tables.bytes(ticket));
        let comparisons = form.comparisons(bytes, tag);
        let places: Vec<Grain> = form.find(bytes, tag).map(|slot| form.place_at(bytes, slot)).collect();
        tables.compare(comparisons.into());
        let mut position = Position { tag, place: None, hash, note: 0, value_bytes: None };
        for &place in &places {
            if tables.verify(place)? {
                return Ok(Position { place: Some(place), ..position });
            }
        }
        if places.len() == HOPS {
            position.tag = Position::FULL;
        }
        Ok(position)
    }

    fn change_section(&mut self, tables: &mut Tables<'_, '_>, change: &PairChange<'_>) -> Result<bool, KvError> {
        let is_done = tables.edit(self.directory.section_of(change.tag()), |form, table| form.edit(table, change))?;
        if !tables.is_redo() {
            self.grow_in_time(tables);
        }
        Ok(is_done)
    }

    fn growth(&self) -> Growth {
        match (self.growing, self.plan.incremental) {
            (None, _) => Growth::None,
            (Some(_), true) => Growth::Background,
            (Some(_), false) => Growth::Foreground,
        }
    }

    fn grow(&mut self, tables: &mut Tables<'_, '_>) -> Result<(), KvError> {
        let Some(from) = self.growing else { return Ok(()) };
        // While no command waits for its turn, as many as the drive can do side by side; the halves fill two
        // superblocks at most. Half of the cache may be loaded at once, and a split has three tables in it for one: the
        // last to be split must still be there.
        let at_once = (tables.at_once() * 2 / 3).max(1);
        let side_by_side = at_once.min(tables.superblock_pages());
        let count = if self.plan.incremental { SPLITS_PER_STEP } else { side_by_side };
        let numbers: Vec<u64> = self.shallow(tables, from).take(count).collect();
        if tables.io.free_bytes() < numbers.len() as u64 * u64::from(tables.io.packing().page_bytes()) {
            // Other namespaces have taken the room meanwhile. The rest is put off, as a doubling without room is.
            (self.growing, self.depth) = (None, self.depth - 1);
            return Ok(());
        }
        tables.load_all(&numbers)?;
        let mut next = None;
        for table in numbers {
            // One that cannot be read stays as it is.
            let is_split = readable(self.split_section(tables, table))?.is_some();
            let last = if is_split { SplitDirectory::halves_of(table)[1] } else { table };
            next = self.directory.next(last).map(SplitDirectory::low_of);
        }
        self.growing = next;
        Ok(())
    }

    fn first_tag(&self, hash: u64) -> u64 {
        self.form.signature(hash)
    }

    /// As `multilevel` uses it, some are counted that were never told.
    fn pairs(&self) -> Option<u64> {
        None
    }

    fn save(&self, tables: SavedSections) -> Vec<u8> {
        let saved = Saved { directory: self.directory.clone(), depth: self.depth, tables };
        postcard::to_allocvec(&saved).expect("a directory is plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<SavedSections> {
        let Saved { directory, depth, tables } = postcard::from_bytes(bytes).ok()?;
        (self.directory, self.depth) = (depth <= SplitDirectory::DEPTH_MAX).then_some((directory, depth))?;
        Some(tables)
    }

    fn end_redo(&mut self, tables: &mut Tables<'_, '_>) -> Result<(), KvError> {
        self.growing = Some(0).filter(|&from| self.shallow(tables, from).next().is_some());
        Ok(())
    }
}
