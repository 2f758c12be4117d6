//! `page-map`: the map of a block drive: where each logical block lies, all of it in DRAM.
//!
//! ```text
//!   block number -> [ place, place, ... ] -> block
//! ```
//!
//! A key is the number of a block, eight bytes, most significant first.

use kvssd_ftl::index::{
    Changes, Fate, Forecast, Index, IndexContents, IndexCounters, IndexEntry, IndexPlan, Move, Outlook, OwnRecord,
    Position, Room, VerifyKey,
};
use kvssd_ftl::{Change, DramUse, Grain, Io, PairPlace};
use kvssd_types::{Key, KvError};

/// DRAM of a place.
const PLACE_BYTES: u64 = 4;

/// Nothing to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMapPlan;

impl IndexPlan for PageMapPlan {
    fn name(&self) -> &'static str {
        "page-map"
    }

    fn build(&self, room: &Room) -> Result<Box<dyn Index>, String> {
        let blocks = usize::try_from(room.grains).map_err(|_| "the map does not fit into memory".to_owned())?;
        if room.grains > 1 << (8 * PLACE_BYTES) {
            return Err(format!("page-map has places of 32 bits, and the drive has {} blocks", room.grains));
        }
        Ok(Box::new(PageMap { places: vec![0; blocks] }))
    }

    fn tags(&self, room: &Room) -> u64 {
        room.grains
    }

    fn charge(&self, room: &Room, dram: &mut DramUse) {
        dram.add("index_map", room.grains * PLACE_BYTES);
    }

    fn forecast(&self, _outlook: &Outlook) -> Option<Forecast> {
        let (visits, changes) = (Vec::new(), Changes::InPlace);
        Some(Forecast {
            visits,
            piece_bytes: 0.0,
            strangers: 0.0,
            knows_keys: true,
            comparisons: 1.0,
            changes,
            range_pieces: 1.0,
        })
    }
}

/// The index. Place 0, which is never a record's, stands for a block that was not written.
#[derive(Clone)]
pub struct PageMap {
    places: Vec<u32>,
}

impl PageMap {
    fn get(&self, block: u64) -> Option<Grain> {
        let place = self.places.get(block as usize).copied().unwrap_or(0);
        (place != 0).then_some(Grain(place.into()))
    }

    fn set(&mut self, block: u64, place: Grain) {
        if let Some(slot) = self.places.get_mut(block as usize) {
            *slot = place.0 as u32;
        }
    }
}

/// The number of the block that a key names.
fn block_of(key: Key<'_>) -> u64 {
    key.bytes().iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

impl Index for PageMap {
    fn locate(&mut self, io: &mut Io<'_>, key: Key<'_>, _holds: &mut VerifyKey<'_>) -> Result<Position, KvError> {
        io.cpu(io.costs().comparison_ns);
        let block = block_of(key);
        Ok(Position { tag: block, place: self.get(block), hash: block, note: 0, value_bytes: None })
    }

    fn bind(&mut self, _io: &mut Io<'_>, _key: Key<'_>, position: Position, pair: PairPlace) -> Result<(), KvError> {
        self.set(position.tag, pair.place);
        Ok(())
    }

    fn unbind(&mut self, _io: &mut Io<'_>, _key: Key<'_>, position: Position) -> Result<(), KvError> {
        self.set(position.tag, Grain(0));
        Ok(())
    }

    fn relocate(&mut self, io: &mut Io<'_>, moves: &mut [Move]) -> Result<(), KvError> {
        for pair in moves {
            io.cpu(io.costs().comparison_ns);
            if self.get(pair.tag) == Some(pair.from) {
                pair.fate = Fate::Moved;
                let Move { tag, from, to, grains, .. } = *pair;
                io.note(Change::Moved { tag, from, to, grains });
                self.set(tag, to);
            }
        }
        Ok(())
    }

    fn is_bound(&mut self, io: &mut Io<'_>, tag: u64, place: Grain) -> Result<bool, KvError> {
        io.cpu(io.costs().comparison_ns);
        Ok(self.get(tag) == Some(place))
    }

    /// It has no records of its own.
    fn relocate_own(&mut self, _io: &mut Io<'_>, _number: u64, _from: Grain) -> Result<(), KvError> {
        Ok(())
    }

    fn list(&mut self, _io: &mut Io<'_>, from: Option<Position>, count: usize) -> Result<Vec<Grain>, KvError> {
        let first = from.map_or(0, |from| from.tag as usize);
        let written = self.places.iter().skip(first).filter(|&&place| place != 0);
        Ok(written.take(count).map(|&place| Grain(place.into())).collect())
    }

    fn own_records(&self) -> Vec<OwnRecord> {
        Vec::new()
    }

    fn contents(&self, _io: &mut Io<'_>) -> IndexContents {
        let taken = (0..).zip(&self.places).filter(|(_, place)| **place != 0);
        let entries = taken.map(|(tag, &place)| IndexEntry { tag, place: Grain(place.into()), note: 0 }).collect();
        IndexContents { entries, ..IndexContents::default() }
    }

    fn tag_of(&self, key: Key<'_>) -> Option<u64> {
        Some(block_of(key))
    }

    /// All of it is in DRAM, whatever the budget.
    fn set_dram_budget(&mut self, _bytes: u64) {}

    fn dram(&self, dram: &mut DramUse) {
        dram.add("index_map", self.places.len() as u64 * PLACE_BYTES);
    }

    fn footprint_bytes(&self) -> u64 {
        0
    }

    fn counters(&self) -> IndexCounters {
        IndexCounters::default()
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_allocvec(&self.places).expect("a map is plain data")
    }

    fn restore(&mut self, bytes: &[u8]) -> Option<()> {
        let places: Vec<u32> = postcard::from_bytes(bytes).ok()?;
        let blocks = self.places.len();
        let is_ours = places.len() == blocks && places.iter().all(|&place| (place as usize) < blocks);
        is_ours.then(|| self.places = places)
    }

    fn redo_own(&mut self, change: &Change, _position: usize) -> Option<()> {
        (!matches!(change, Change::Own { .. } | Change::Split { .. })).then_some(())
    }

    fn redo(&mut self, _io: &mut Io<'_>, change: &Change, _position: usize) -> Result<(), KvError> {
        match *change {
            Change::Bound { tag, pair, .. } => self.set(tag, pair.place),
            Change::Unbound { tag, .. } => self.set(tag, Grain(0)),
            Change::Moved { tag, to, .. } => self.set(tag, to),
            _ => {}
        }
        Ok(())
    }

    fn end_redo(&mut self, _io: &mut Io<'_>) -> Result<(), KvError> {
        Ok(())
    }
}
