//! The client table: which changes of which clients were made, so that one that comes again is not made twice.
//!
//! ```text
//!   slot 0   client, highest serial, the last 1024 of them: made or not
//!   slot 1   ...
//!
//!   open     a slot for a client; that of the one that was idle longest, when there is none left     Change::Client
//!   a change Begun | Bound | Request: slot, serial | Committed                                       one with its change, or none
//!   again    made: answered as the first time     not made: made now     cannot be known: refused
//! ```
//!
//! A change that is refused has no effect and is not remembered: it may be tried again. The table is in every
//! checkpoint.

use crate::dram::DramUse;
use kvssd_types::{ClientId, RequestId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Clients that are remembered: several times as many as use a drive at a time.
pub(crate) const CLIENTS_MAX: usize = 256;
/// Bits of a word of the window.
const WORD_BITS: u64 = 64;
const WORDS: usize = (RequestId::WINDOW / WORD_BITS) as usize;

/// What is known of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Client {
    id: [u8; 32],
    /// The highest serial of a change that was made; 0 for none.
    highest: u64,
    /// Whether the change of a serial was made: bit `serial % WINDOW`, for the last [`RequestId::WINDOW`] up to the
    /// highest.
    made: [u64; WORDS],
    /// When it was used last, counted in uses of the table.
    used: u64,
    /// When it was opened, counted alike.
    since: u64,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was not made.
    New,
    Made,
    /// Its client is not in the table, or has made too many changes since.
    Forgotten,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ClientTable {
    slots: Vec<Client>,
    /// The slot of each client.
    by_id: BTreeMap<[u8; 32], usize>,
    uses: u64,
}

/// What a checkpoint holds of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedClients {
    slots: Vec<Client>,
    uses: u64,
}

impl Client {
    fn new(client: ClientId) -> Self {
        Client { id: client.0, highest: 0, made: [0; WORDS], used: 0, since: 0 }
    }

    fn fate(&self, serial: u64) -> Fate {
        match self.highest.checked_sub(serial) {
            None => Fate::New,
            Some(age) if age >= RequestId::WINDOW => Fate::Forgotten,
            Some(_) => {
                let (word, bit) = at(serial);
                if self.made[word] & bit != 0 { Fate::Made } else { Fate::New }
            }
        }
    }

    fn record(&mut self, serial: u64) {
        if serial > self.highest {
            // Those between the two were not made yet, and those that leave the window are forgotten.
            let come = (serial - self.highest).min(RequestId::WINDOW);
            for between in serial - come..serial {
                let (word, bit) = at(between.wrapping_add(1));
                self.made[word] &= !bit;
            }
            self.highest = serial;
        }
        let (word, bit) = at(serial);
        self.made[word] |= bit;
    }
}

/// The word of the window and its bit for a serial.
fn at(serial: u64) -> (usize, u64) {
    let position = serial % RequestId::WINDOW;
    ((position / WORD_BITS) as usize, 1 << (position % WORD_BITS))
}

impl ClientTable {
    fn slot_of(&self, client: ClientId) -> Option<usize> {
        self.by_id.get(&client.0).copied()
    }

    /// What became of a change.
    pub(crate) fn fate(&self, request: RequestId) -> Fate {
        self.slot_of(request.client).map_or(Fate::Forgotten, |slot| self.slots[slot].fate(request.serial))
    }

    /// The number under which a client was opened: it changes when the client was forgotten in between.
    pub(crate) fn since(&self, client: ClientId) -> Option<u64> {
        self.slot_of(client).map(|slot| self.slots[slot].since)
    }

    /// The slot for a client that has none: the first that is empty, or that of the client that was idle longest.
    pub(crate) fn free_slot(&self, client: ClientId) -> Option<u32> {
        if self.slot_of(client).is_some() {
            return None;
        }
        let by_use = |&slot: &usize| self.slots[slot].used;
        let idle = || (0..self.slots.len()).min_by_key(by_use).unwrap_or(0);
        Some(if self.slots.len() < CLIENTS_MAX { self.slots.len() } else { idle() } as u32)
    }

    /// Opens a slot, which [`ClientTable::free_slot`] returned, for a client: it is remembered from here on. `None` if there
    /// is no such slot.
    pub(crate) fn open(&mut self, slot: u32, client: ClientId) -> Option<()> {
        let slot = slot as usize;
        if slot == self.slots.len() && slot < CLIENTS_MAX {
            self.slots.push(Client::new(client));
        } else {
            let before = std::mem::replace(self.slots.get_mut(slot)?, Client::new(client));
            self.by_id.remove(&before.id);
        }
        self.by_id.insert(client.0, slot);
        self.touch(slot);
        self.slots[slot].since = self.uses;
        Some(())
    }

    /// Records that a change was made. Returns the client's slot, if it has one.
    pub(crate) fn record(&mut self, request: RequestId) -> Option<u32> {
        let slot = self.slot_of(request.client)? as u32;
        self.record_in(slot, request.serial)?;
        Some(slot)
    }

    /// Records that a change of the client in that slot was made. `None` if there is no such slot.
    pub(crate) fn record_in(&mut self, slot: u32, serial: u64) -> Option<()> {
        self.slots.get_mut(slot as usize)?.record(serial);
        self.touch(slot as usize);
        Some(())
    }

    /// What a checkpoint holds.
    pub(crate) fn save(&self) -> SavedClients {
        SavedClients { slots: self.slots.clone(), uses: self.uses }
    }

    /// Restores a saved table. `None` if there can be no such table: too many clients, or one of them twice.
    pub(crate) fn from_saved(saved: SavedClients) -> Option<Self> {
        let SavedClients { slots, uses } = saved;
        let by_id: BTreeMap<_, _> = slots.iter().enumerate().map(|(slot, client)| (client.id, slot)).collect();
        let is_possible = slots.len() <= CLIENTS_MAX && by_id.len() == slots.len() && uses < 1 << 48;
        is_possible.then_some(ClientTable { slots, by_id, uses })
    }

    pub(crate) fn dram(&self, dram: &mut DramUse) {
        if !self.slots.is_empty() {
            dram.add("client_table", self.dram_bytes());
        }
    }

    pub(crate) fn dram_bytes(&self) -> u64 {
        self.slots.len() as u64 * (size_of::<Client>() + size_of::<([u8; 32], usize)>()) as u64
    }

    fn touch(&mut self, slot: usize) {
        self.uses += 1;
        self.slots[slot].used = self.uses;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn client(number: u16) -> ClientId {
        let mut id = [7; 32];
        id[..2].copy_from_slice(&number.to_le_bytes());
        ClientId(id)
    }

    fn opened(table: &mut ClientTable, number: u16) -> u32 {
        let slot = table.free_slot(client(number)).unwrap();
        table.open(slot, client(number)).unwrap();
        slot
    }

    #[test]
    fn the_client_that_was_idle_longest_is_forgotten() {
        let mut table = ClientTable::default();
        for number in 0..CLIENTS_MAX as u16 {
            assert_eq!(opened(&mut table, number), u32::from(number));
        }
        assert_eq!(table.free_slot(client(3)), None, "it is known");
        table.record(RequestId { client: client(0), serial: 1 }).unwrap();
        assert_eq!(opened(&mut table, 1000), 1);
        assert_eq!(table.fate(RequestId { client: client(1), serial: 1 }), Fate::Forgotten);
        assert_eq!(table.fate(RequestId { client: client(0), serial: 1 }), Fate::Made);
        let saved = table.save();
        let restored = ClientTable::from_saved(saved.clone()).unwrap();
        assert_eq!((&restored.by_id, restored.save()), (&table.by_id, saved.clone()));
        let mut slots = saved.slots;
        slots[5] = slots[6].clone();
        assert!(ClientTable::from_saved(SavedClients { slots, uses: 1 }).is_none(), "a client twice");
    }

    #[test]
    fn a_slot_that_cannot_be_is_refused() {
        let mut table = ClientTable::default();
        assert_eq!(table.open(1, client(1)), None);
        assert_eq!(table.record_in(0, 1), None);
        assert_eq!(table.record(RequestId { client: client(1), serial: 1 }), None);
    }

    proptest! {
        #[test]
        fn a_window_knows_what_a_set_does(steps in prop::collection::vec((0..1500u64, 0..4u8), 1..300), from in 0..u64::MAX / 2) {
            let (mut table, mut made, mut highest) = (ClientTable::default(), BTreeSet::new(), 0u64);
            opened(&mut table, 1);
            for (step, (distance, kind)) in steps.into_iter().enumerate() {
                let serial = match (step, kind) {
                    (0, _) => from + 1,
                    (_, 0) => highest + distance,
                    _ => highest.saturating_sub(distance),
                };
                let request = RequestId { client: client(1), serial };
                let expected = match highest.checked_sub(serial) {
                    Some(age) if age >= RequestId::WINDOW => Fate::Forgotten,
                    _ if made.contains(&serial) => Fate::Made,
                    _ => Fate::New,
                };
                prop_assert_eq!(table.fate(request), expected);
                if expected == Fate::New {
                    table.record(request).unwrap();
                    made.insert(serial);
                    highest = highest.max(serial);
                }
            }
        }
    }
}
