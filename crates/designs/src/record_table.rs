//! A record table: a page of records, hashed by hopscotch (RHIK, section IV-A).
//!
//! ```text
//!   record i, at i * (signature + 9)   [signature, 4 to 8 bytes] [place u40] [hops u32]       R = page / (signature + 9)
//!   hops       bit k: the record in slot (i + k) mod R has slot i for its home
//!   a free slot has place 0; its hops may still speak of others
//! ```
//!
//! A record lies within 32 slots of its home. The halves of a split table keep every record in its slot, so that no
//! split fails.

use kvssd_flash::Blob;
use kvssd_ftl::Grain;
use kvssd_ftl::index::{PairChange, Position, SectionEdit, SectionForm, SplitForm};
use kvssd_types::{Key, KvError};
use xxhash_rust::xxh3::xxh3_64;

/// The slots in which a record can lie, from its home on.
pub const HOPS: usize = 32;

const PLACE_BYTES: usize = 5;
const HOPS_BYTES: usize = 4;
/// What the directory has for each table: its place, its depth in `rhik`, and what fills the word. An estimate: the
/// paper's 0.005 B a key (section IV-A4) is 8 to 10 B a table.
const DIRECTORY_ENTRY_BYTES: u64 = 8;

/// The form of the tables of a drive.
#[derive(Clone, Copy, Debug)]
pub struct RecordTable {
    page_bytes: usize,
    signature_bytes: usize,
}

/// What identifies a key within the index: a hash of it, cut to the width of a drive's signatures.
pub type Signature = u64;

impl RecordTable {
    /// Tables of one page with signatures of `signature_bits`, which are 32 to 64 in whole bytes.
    #[must_use]
    pub fn new(page_bytes: u32, signature_bits: u32) -> Self {
        RecordTable { page_bytes: page_bytes as usize, signature_bytes: signature_bits as usize / 8 }
    }

    /// The signature of a key, by which tables know it.
    #[must_use]
    pub fn signature_of(&self, key: Key<'_>) -> Signature {
        self.signature(xxh3_64(key.bytes()))
    }

    /// The signature of a key with that hash.
    pub(crate) fn signature(&self, hash: u64) -> Signature {
        (hash & (u64::MAX >> (64 - 8 * self.signature_bytes))).min(Position::FULL - 1)
    }

    /// No signature is as high.
    #[must_use]
    pub fn signatures(&self) -> u64 {
        1u64.checked_shl(8 * self.signature_bytes as u32).unwrap_or(Position::FULL)
    }

    /// The records that a table holds (R, equation 1).
    #[must_use]
    pub fn records(&self) -> usize {
        self.page_bytes / self.record_bytes()
    }

    fn record_bytes(&self) -> usize {
        self.signature_bytes + PLACE_BYTES + HOPS_BYTES
    }

    /// The slot where the search for a signature begins. The directory takes the low bits; this depends on all of them.
    pub(crate) fn home(&self, signature: Signature) -> usize {
        let mixed = signature.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        ((mixed * self.records() as u64) >> 32) as usize
    }

    fn number(&self, table: &[u8], at: usize, bytes: usize) -> u64 {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(&table[at..at + bytes]);
        u64::from_le_bytes(word)
    }

    pub(crate) fn signature_at(&self, table: &[u8], slot: usize) -> Signature {
        self.number(table, slot * self.record_bytes(), self.signature_bytes)
    }

    /// The place in a slot; grain 0 when it is free.
    pub(crate) fn place_at(&self, table: &[u8], slot: usize) -> Grain {
        Grain(self.number(table, slot * self.record_bytes() + self.signature_bytes, PLACE_BYTES))
    }

    fn hops_at(&self, table: &[u8], slot: usize) -> u32 {
        self.number(table, slot * self.record_bytes() + self.signature_bytes + PLACE_BYTES, HOPS_BYTES) as u32
    }

    fn put_record(&self, table: &mut [u8], slot: usize, signature: Signature, place: Grain) {
        let at = slot * self.record_bytes();
        table[at..at + self.signature_bytes].copy_from_slice(&signature.to_le_bytes()[..self.signature_bytes]);
        table[at + self.signature_bytes..][..PLACE_BYTES].copy_from_slice(&place.0.to_le_bytes()[..PLACE_BYTES]);
    }

    fn put_hops(&self, table: &mut [u8], slot: usize, hops: u32) {
        let at = slot * self.record_bytes() + self.signature_bytes + PLACE_BYTES;
        table[at..at + HOPS_BYTES].copy_from_slice(&hops.to_le_bytes());
    }

    fn behind(&self, slot: usize, distance: usize) -> usize {
        (slot + distance) % self.records()
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        (to + self.records() - from) % self.records()
    }

    /// The slots of records with `signature`, nearest first.
    pub(crate) fn find(&self, table: &[u8], signature: Signature) -> impl Iterator<Item = usize> {
        let home = self.home(signature);
        let hops = self.hops_at(table, home);
        let hop = move |distance: &usize| hops >> distance & 1 == 1;
        let slots = (0..HOPS).filter(hop).map(move |distance| self.behind(home, distance));
        slots.filter(move |&slot| self.signature_at(table, slot) == signature)
    }

    /// The slot of the record with `signature` whose pair lies at `place`.
    pub(crate) fn slot_of(&self, table: &[u8], signature: Signature, place: Grain) -> Option<usize> {
        self.find(table, signature).find(|&slot| self.place_at(table, slot) == place)
    }

    /// How many records are compared to find a signature: those of its home.
    pub(crate) fn comparisons(&self, table: &[u8], signature: Signature) -> u32 {
        self.hops_at(table, self.home(signature)).count_ones()
    }

    /// Whether a record with `signature` can be inserted without moving others: a hint that saves a trial.
    pub(crate) fn has_room_near(&self, table: &[u8], signature: Signature) -> bool {
        let home = self.home(signature);
        (0..HOPS.min(self.records())).any(|distance| self.place_at(table, self.behind(home, distance)) == Grain(0))
    }

    /// Inserts a record, and moves others for it if need be. Returns false, and changes nothing, when there is no way.
    pub fn insert(&self, table: &mut Blob, signature: Signature, place: Grain) -> bool {
        let home = self.home(signature);
        let table = table.make_mut();
        let free = (0..self.records()).find(|&distance| self.place_at(table, self.behind(home, distance)) == Grain(0));
        let Some(distance) = free else { return false };
        let mut free = self.behind(home, distance);
        while self.distance(home, free) >= HOPS {
            match self.move_up(table, free) {
                Some(freed) => free = freed,
                None => return false,
            }
        }
        self.put_record(table, free, signature, place);
        self.put_hops(table, home, self.hops_at(table, home) | 1 << self.distance(home, free));
        true
    }

    /// Moves a record into the free slot, from as far before it as its home allows; returns the slot that it leaves.
    fn move_up(&self, table: &mut [u8], free: usize) -> Option<usize> {
        for distance in (1..HOPS.min(self.records())).rev() {
            let home = self.behind(free, self.records() - distance);
            let hops = self.hops_at(table, home);
            let first = hops.trailing_zeros() as usize;
            if first < distance {
                let from = self.behind(home, first);
                self.put_record(table, free, self.signature_at(table, from), self.place_at(table, from));
                self.put_record(table, from, 0, Grain(0));
                self.put_hops(table, home, hops & !(1 << first) | 1 << distance);
                return Some(from);
            }
        }
        None
    }

    /// Makes a change in its table. None when that cannot be, as [`View::edit`](kvssd_ftl::index::View::edit) wants it.
    pub(crate) fn edit(&self, table: &mut SectionEdit<'_, '_>, change: &PairChange<'_>) -> Option<u32> {
        let is_done = match (change.from(), change.to()) {
            (Some(from), to) => {
                let slot = self.slot_of(table, change.tag(), from)?;
                match to {
                    Some(place) => self.set_place(table.to_mut(), slot, place),
                    None => self.remove(table.to_mut(), slot),
                }
                true
            }
            (None, to) => self.insert(table.to_mut(), change.tag(), to?),
        };
        is_done.then_some(0)
    }

    /// Has the record in a slot say that its pair lies at `place`.
    pub(crate) fn set_place(&self, table: &mut Blob, slot: usize, place: Grain) {
        let signature = self.signature_at(table, slot);
        self.put_record(table.make_mut(), slot, signature, place);
    }

    /// Takes the record out of a slot.
    pub(crate) fn remove(&self, table: &mut Blob, slot: usize) {
        let home = self.home(self.signature_at(table, slot));
        let gone = 1u32.checked_shl(self.distance(home, slot) as u32).unwrap_or(0);
        let hops = self.hops_at(table, home) & !gone;
        let table = table.make_mut();
        self.put_record(table, slot, 0, Grain(0));
        self.put_hops(table, home, hops);
    }

    /// The records in slots from `slot` on: slot, signature, place.
    pub(crate) fn records_from(&self, table: &[u8], slot: usize) -> impl Iterator<Item = (usize, Signature, Grain)> {
        let slots = (slot..self.records()).filter(|&slot| self.place_at(table, slot) != Grain(0));
        slots.map(|slot| (slot, self.signature_at(table, slot), self.place_at(table, slot)))
    }

    /// Two tables: of the records whose signature has a 0 in place `bit`, and of those with a 1.
    fn halves(&self, table: &[u8], bit: u32) -> [Blob; 2] {
        [0, 1].map(|half| {
            let mut part = Blob::from(table.to_vec());
            for (slot, signature, _) in self.records_from(table, 0) {
                if signature >> bit & 1 != half {
                    self.remove(&mut part, slot);
                }
            }
            part
        })
    }
}

impl SectionForm for RecordTable {
    fn empty(&self) -> Blob {
        vec![0; self.page_bytes].into()
    }

    fn bytes_max(&self) -> u32 {
        self.page_bytes as u32
    }

    fn directory_entry_bytes(&self) -> u64 {
        DIRECTORY_ENTRY_BYTES
    }

    /// Bytes of that length can be searched and changed, whatever they say: slots are counted round the table.
    fn has_form(&self, section: &[u8]) -> bool {
        section.len() == self.page_bytes
    }

    fn fault(&self, section: &[u8]) -> Option<&'static str> {
        if !self.has_form(section) {
            return Some("it is not a page of records");
        }
        let leads = |home: usize, hop: usize| {
            let slot = self.behind(home, hop);
            self.place_at(section, slot) != Grain(0) && self.home(self.signature_at(section, slot)) == home
        };
        let hops = (0..self.records()).flat_map(|home| (0..HOPS).map(move |hop| (home, hop)));
        let mut set = hops.filter(|&(home, hop)| self.hops_at(section, home) >> hop & 1 == 1);
        if !set.all(|(home, hop)| leads(home, hop)) {
            return Some("its hops do not lead to records that they can lead to");
        }
        let is_found =
            |(slot, signature, _): (usize, Signature, Grain)| self.find(section, signature).any(|other| other == slot);
        (!self.records_from(section, 0).all(is_found)).then_some("a search does not come to one of its records")
    }
}

impl SplitForm for RecordTable {
    fn has_room(&self, table: &Blob, signature: Signature, _depth: u32) -> bool {
        self.has_room_near(table, signature) || self.insert(&mut table.clone(), signature, Grain(1))
    }

    fn split(&self, table: &Blob, depth: u32) -> Result<([Blob; 2], u64), KvError> {
        Ok((self.halves(table, depth), self.records() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_types::Random;
    use std::collections::BTreeMap;

    /// A table against a map, to the brim; what fails to go in changes nothing that is found.
    #[test]
    fn records_come_and_go_and_move_for_each_other() {
        for bits in [32, 40, 64] {
            let form = RecordTable::new(4096, bits);
            let (mut table, mut model, mut random) = (form.empty(), BTreeMap::new(), Random::new(u64::from(bits)));
            let mut failed = 0;
            for place in 1..20_000u64 {
                let signature = form.signature(random.below(400).wrapping_mul(0x1234_5678_9abc_def1));
                if random.below(5) < 3 {
                    if form.insert(&mut table, signature, Grain(place)) {
                        model.insert((signature, place), ());
                    } else {
                        failed += 1;
                    }
                } else if let Some(&(signature, place)) =
                    model.keys().nth(random.below(model.len().max(1) as u64) as usize)
                {
                    let slot = form.slot_of(&table, signature, Grain(place)).unwrap();
                    if random.below(2) == 0 {
                        form.remove(&mut table, slot);
                    } else {
                        form.set_place(&mut table, slot, Grain(place + 1_000_000));
                        model.insert((signature, place + 1_000_000), ());
                    }
                    model.remove(&(signature, place));
                }
                assert_eq!(form.fault(&table), None);
            }
            assert!(failed > 100, "the table was full now and then");
            let found: Vec<_> =
                form.records_from(&table, 0).map(|(_, signature, place)| (signature, place.0)).collect();
            assert_eq!(found.len(), model.len());
            assert!(found.iter().all(|record| model.contains_key(record)));
            let halves = form.halves(&table, 3);
            assert_eq!(halves.each_ref().map(|half| form.fault(half)), [None, None]);
            let counts = halves.each_ref().map(|half| form.records_from(half, 0).count());
            assert!(counts[0] + counts[1] == model.len() && counts.iter().all(|&count| count > 0));
        }
    }

    /// Occupancy at which the first insertion fails, on average (RHIK, figure 8b: collisions rise above 80 %).
    #[test]
    fn a_table_takes_more_than_four_fifths() {
        let form = RecordTable::new(32_768, 64);
        assert_eq!(form.records(), 1927);
        let mut random = Random::new(1);
        for _ in 0..20 {
            let mut table = form.empty();
            let full = (0..).take_while(|_| form.insert(&mut table, random.below(u64::MAX), Grain(1))).count();
            assert!(full * 10 > form.records() * 8, "{full} of {}", form.records());
        }
    }
}
