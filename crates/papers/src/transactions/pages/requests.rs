//! Requests: locks first, then the page, then what is to be done there. A request that is asked again begins anew with what it has.
//!
//! ```text
//!                  record locks          page locks
//!   read           record                page, or the record where it is not there
//!   write, delete  record                record and page
//! ```
//!
//! With page locks the lock of a record that is not there stands for the place that it would have.

use super::costs;
use super::engine::{Cause, LockedUnit, PageEngine, Phase, check, full_drive};
use super::entry::{Body, Change};
use super::heap::Place;
use super::page::{PageId, Record};
use crate::stores::costs::passes;
use crate::transactions::{RecordId, Step};
use kvssd_sim::SimError;
use kvssd_transactions::{Granularity, LockMode, LockName, LockReply, TransactionId};
use kvssd_types::{NamespaceId, Nanos, Value};

/// Pages are locked as records of a namespace that there is not.
const PAGES: NamespaceId = NamespaceId(0);

/// Who finds the log full asks again after this. An estimate.
const LOG_FULL_NS: u64 = 50_000;

/// What a request must do before it goes on; none when it may.
type Halt = Option<Step>;

impl PageEngine {
    pub(super) fn read(
        &mut self,
        id: TransactionId,
        record: &RecordId<'_>,
        for_update: bool,
        at: Nanos,
    ) -> Result<Step, SimError> {
        let mode = if for_update { LockMode::Exclusive } else { LockMode::Shared };
        let place = self.heap.find(record.table, record.key.bytes());
        let name = match (self.options.locked_unit, place) {
            (LockedUnit::Page, Some(place)) => lock_of_page(place.page),
            _ => lock_of(record),
        };
        if let Some(halt) = self.lock(id, name, mode, at)? {
            return Ok(halt);
        }
        let spent = Nanos(costs::CALL_NS + costs::LOCK_NS + costs::INDEX_NS);
        let Some(Place { page, slot }) = place else {
            return Ok(Step::Done(self.store.processors.work(at, spent), None));
        };
        if let Some(halt) = self.fetch(id, page, at)? {
            return Ok(halt);
        }
        let found = self.store.pool.page(page).record(slot).expect("a record is where the index says");
        assert_eq!(*found.key, *record.key.bytes(), "a record is where the index says");
        let value = found.value.clone();
        let spent = spent + Nanos(costs::FIX_NS) + passes(value.len() as u64, 1);
        Ok(Step::Done(self.store.processors.work(at, spent), Some(value)))
    }

    pub(super) fn write(
        &mut self,
        id: TransactionId,
        record: &RecordId<'_>,
        value: &Value,
        at: Nanos,
    ) -> Result<Step, SimError> {
        let after = Record { key: record.key.bytes().into(), value: value.clone() };
        check(&after)?;
        if let Some(halt) = self.prepare_change(id, record, at)? {
            return Ok(halt);
        }
        let table = record.table;
        let mut clock = at;
        if let Some(place) = self.heap.find(table, &after.key) {
            let Place { page, slot } = place;
            if let Some(halt) = self.lock_and_fetch(id, page, at)? {
                return Ok(halt);
            }
            let before = self.store.pool.page(page).record(slot).expect("a record is where the index says").clone();
            if self.heap.may_grow(page, after.bytes().saturating_sub(before.bytes()), id) {
                let change = Change { table, page, slot, before: Some(before), after: Some(after) };
                return Ok(Step::Done(self.change(id, &change, at), None));
            }
            // It moves: from here on it is a new record.
            clock = self.change(id, &Change { table, page, slot, before: Some(before), after: None }, at);
        }
        let page = self.heap.page_for(table, after.bytes(), id).ok_or_else(full_drive)?;
        if let Some(halt) = self.lock_and_fetch(id, page, at)? {
            return Ok(halt);
        }
        let slot = self.store.pool.page(page).free_slot(self.heap.may_reuse_slots(page));
        Ok(Step::Done(self.change(id, &Change { table, page, slot, before: None, after: Some(after) }, clock), None))
    }

    pub(super) fn delete(&mut self, id: TransactionId, record: &RecordId<'_>, at: Nanos) -> Result<Step, SimError> {
        if let Some(halt) = self.prepare_change(id, record, at)? {
            return Ok(halt);
        }
        let Some(Place { page, slot }) = self.heap.find(record.table, record.key.bytes()) else {
            let spent = Nanos(costs::CALL_NS + costs::LOCK_NS + costs::INDEX_NS);
            return Ok(Step::Done(self.store.processors.work(at, spent), None));
        };
        if let Some(halt) = self.lock_and_fetch(id, page, at)? {
            return Ok(halt);
        }
        let before = self.store.pool.page(page).record(slot).cloned();
        Ok(Step::Done(self.change(id, &Change { table: record.table, page, slot, before, after: None }, at), None))
    }

    /// Before a record is changed: its lock, and room in the log.
    fn prepare_change(&mut self, id: TransactionId, record: &RecordId<'_>, at: Nanos) -> Result<Halt, SimError> {
        if let Some(halt) = self.lock(id, lock_of(record), LockMode::Exclusive, at)? {
            return Ok(Some(halt));
        }
        if self.store.log.has_room() {
            return Ok(None);
        }
        self.store.settle(at);
        let active = self.active_from();
        if self.store.log.bytes_from(active) <= self.store.log.request_bytes_max() {
            return Ok(Some(Step::Again(at + Nanos(LOG_FULL_NS))));
        }
        self.give_up_page(id);
        // A transaction that goes on holds the log, maybe one that waits for this one's locks.
        self.fail(id);
        self.undo(id, Cause::Victim, at).map(Some)
    }

    fn lock_and_fetch(&mut self, id: TransactionId, page: PageId, at: Nanos) -> Result<Halt, SimError> {
        if self.options.locked_unit == LockedUnit::Page
            && let Some(halt) = self.lock(id, lock_of_page(page), LockMode::Exclusive, at)?
        {
            return Ok(Some(halt));
        }
        self.fetch(id, page, at)
    }

    fn fetch(&mut self, id: TransactionId, page: PageId, at: Nanos) -> Result<Halt, SimError> {
        let Self { store, transactions, .. } = self;
        let transaction = transactions.get_mut(&id).expect("a transaction that was begun and has not ended");
        Ok(store.fetch(page, &mut transaction.ticket, at)?.map(Step::Again))
    }

    fn lock(&mut self, id: TransactionId, name: LockName, mode: LockMode, at: Nanos) -> Result<Halt, SimError> {
        let reply = self.locks.request(id, name, mode);
        if reply == LockReply::Granted {
            return Ok(None);
        }
        self.give_up_page(id);
        match reply {
            LockReply::Deadlock { victims } if victims.contains(&id) => {
                self.fail(id);
                return self.undo(id, Cause::Victim, at).map(Some);
            }
            LockReply::Deadlock { victims } => {
                for victim in victims {
                    // Its locks go when it is undone, which takes time.
                    self.fail(victim);
                    self.wake(victim, at);
                }
            }
            LockReply::Granted | LockReply::Waits => {}
        }
        self.transaction(id).waits = true;
        Ok(Some(Step::Wait))
    }

    fn give_up_page(&mut self, id: TransactionId) {
        let mut ticket = std::mem::take(&mut self.transaction(id).ticket);
        self.store.give_up(&mut ticket);
    }

    /// The transaction is to be undone.
    fn fail(&mut self, id: TransactionId) {
        self.transaction(id).phase = Phase::Undoing(Cause::Victim);
    }

    /// Logs a change and makes it, in a page that is there; gives when that is done.
    fn change(&mut self, id: TransactionId, change: &Change, at: Nanos) -> Nanos {
        let locks = match self.options.locked_unit {
            LockedUnit::Record => 1,
            LockedUnit::Page => 2,
        };
        let bytes = change.after.as_ref().map_or(0, |record| u64::from(record.bytes()));
        let spent = Nanos(costs::CALL_NS + locks * costs::LOCK_NS + costs::INDEX_NS + costs::FIX_NS) + passes(bytes, 1);
        let clock = self.store.processors.work(at, spent);
        let (lsn, done) = self.append(id, Body::Change(change.clone()), clock);
        self.apply(id, lsn, change);
        done
    }
}

fn lock_of(record: &RecordId<'_>) -> LockName {
    Granularity::records(1).lock_of(kvssd_transactions::Record { namespace: record.table, key: record.key })
}

fn lock_of_page(page: PageId) -> LockName {
    LockName { namespace: PAGES, number: page.0.into() }
}
