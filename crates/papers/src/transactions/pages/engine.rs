//! The engine: transactions from their beginning to their end.

mod background_writer;

use self::background_writer::BackgroundWriter;
use super::entry::{Body, Change, Entry, Trail};
use super::heap::{Heap, Place};
use super::log::{Log, LogWaiter};
use super::media::{Archive, Media, Traffic};
use super::page::{Lsn, Page, PageId, Record};
use super::store::{Store, Ticket};
use super::{PAGE_BYTES, costs};
use crate::transactions::{RecordId, Request, Step, TransactionEngine};
use kvssd_device::Device;
use kvssd_sim::SimError;
use kvssd_transactions::{LockCounters, LockManager, TransactionId};
use kvssd_types::{KvError, NamespaceId, Nanos, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a lock is on (KAML, section V-D: both).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockedUnit {
    /// A record.
    Record,
    /// A page, and the records that come, go or change.
    Page,
}

/// The configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageOptions {
    /// Pages of the buffer pool.
    pub pool_pages: usize,
    /// Bytes of the log's area, in whole blocks of 4 KiB. Checkpoints come for every eighth of it.
    pub log_bytes: u64,
    /// What a lock is on.
    pub locked_unit: LockedUnit,
}

/// What an engine did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounters {
    /// Transactions that committed.
    pub commits: u64,
    /// Transactions that asked to be undone.
    pub aborts: u64,
    /// Transactions that were undone because of a deadlock, or because they held a full log.
    pub victims: u64,
    /// Flushes of the log, each for all that waited.
    pub log_flushes: u64,
    /// Bytes of log records.
    pub log_bytes: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Pages that were written because their frame was needed.
    pub evictions: u64,
    /// What was read and written.
    pub traffic: Traffic,
    /// What the locks did.
    pub locks: LockCounters,
    /// Time of the host's cores, all together.
    pub cpu: Nanos,
}

/// Why a transaction is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Asked,
    Victim,
}

/// Where a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Active,
    /// Its commit record is there.
    Committing(Lsn),
    Undoing(Cause),
}

#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) phase: Phase,
    /// Its records, if it has any.
    pub(super) trail: Option<Trail>,
    /// It waits for a lock, and was not woken.
    pub(super) waits: bool,
    pub(super) ticket: Ticket,
    /// Where bytes may be reserved for it.
    pub(super) pages: BTreeSet<PageId>,
}

impl Transaction {
    pub(super) fn new(phase: Phase, trail: Option<Trail>) -> Self {
        Transaction { phase, trail, waits: false, ticket: Ticket::default(), pages: BTreeSet::new() }
    }
}

/// The engine. It is loaded first ([`TransactionEngine::load`], [`TransactionEngine::end_load`]), even if with nothing.
pub struct PageEngine {
    pub(super) options: PageOptions,
    pub(super) store: Store,
    pub(super) heap: Heap,
    pub(super) locks: LockManager,
    pub(super) transactions: BTreeMap<TransactionId, Transaction>,
    pub(super) next_transaction: u64,
    pub(super) woken: Vec<(TransactionId, Nanos)>,
    background_writer: BackgroundWriter,
    /// Pages that are being loaded.
    loading: BTreeMap<NamespaceId, (PageId, Page)>,
    pub(super) commits: u64,
    pub(super) aborts: u64,
    pub(super) victims: u64,
}

impl PageEngine {
    /// A new one on a drive that has nothing, of the block design.
    ///
    /// # Errors
    /// When the log does not fit the drive.
    pub fn new(device: Device, options: PageOptions) -> Result<Self, SimError> {
        let media = Media::new(device, Archive::default(), options.log_bytes)?;
        let log = Log::new(&media);
        Ok(PageEngine::over(media, log, options))
    }

    pub(super) fn over(media: Media, log: Log, options: PageOptions) -> Self {
        let heap = Heap::new(media.pages_max());
        PageEngine {
            options,
            store: Store::new(media, log, options.pool_pages),
            heap,
            locks: LockManager::new(),
            transactions: BTreeMap::new(),
            next_transaction: 0,
            woken: Vec::new(),
            background_writer: BackgroundWriter::default(),
            loading: BTreeMap::new(),
            commits: 0,
            aborts: 0,
            victims: 0,
        }
    }

    /// What it did since it was made.
    #[must_use]
    pub fn counters(&self) -> PageCounters {
        PageCounters {
            commits: self.commits,
            aborts: self.aborts,
            victims: self.victims,
            log_flushes: self.store.log.flushes,
            log_bytes: self.store.log.end().0,
            checkpoints: self.background_writer.checkpoints(),
            evictions: self.store.evictions,
            traffic: self.store.media.traffic,
            locks: self.locks.counters(),
            cpu: self.store.processors.busy(),
        }
    }

    /// Pages of the data file.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.heap.pages()
    }

    pub(super) fn transaction(&mut self, id: TransactionId) -> &mut Transaction {
        self.transactions.get_mut(&id).expect("a transaction that was begun and has not ended")
    }

    /// Appends a record of a transaction; gives where it is and when it is in the log's buffer.
    pub(super) fn append(&mut self, id: TransactionId, body: Body, at: Nanos) -> (Lsn, Nanos) {
        let Self { transactions, store, .. } = self;
        let transaction = transactions.get_mut(&id).expect("a transaction that was begun and has not ended");
        let previous = transaction.trail.map(|trail| trail.last);
        let undo_next = match &body {
            Body::Compensation(_, undo_next) => *undo_next,
            _ => Some(store.log.end()),
        };
        let entry = Entry { transaction: Some(id), previous, body };
        let (lsn, done) = store.log.append(entry, at, &mut store.processors);
        let first = transaction.trail.map_or(lsn, |trail| trail.first);
        transaction.trail = Some(Trail { first, last: lsn, undo_next });
        (lsn, done)
    }

    /// Changes a page that is there, and the index with it, as the record at `lsn` says.
    pub(super) fn apply(&mut self, id: TransactionId, lsn: Lsn, change: &Change) {
        let Change { table, page, slot, before, after } = change;
        self.store.pool.change(*page, lsn, |page| {
            page.table = Some(*table);
            page.set(*slot, after.clone());
        });
        let bytes = |record: &Option<Record>| record.as_ref().map_or(0, |record| i64::from(record.bytes()));
        self.heap.changed(*page, self.store.pool.page(*page), bytes(after) - bytes(before), id);
        self.transaction(id).pages.insert(*page);
        match (before, after) {
            (None, Some(record)) => {
                let known = self.heap.bind(*table, &record.key, Place { page: *page, slot: *slot });
                assert_eq!(known, None, "a key has one record");
            }
            (Some(record), None) => self.heap.unbind(*table, &record.key),
            _ => {}
        }
    }

    /// Goes on with a commit: waits for the log.
    fn commit(&mut self, id: TransactionId, lsn: Lsn, at: Nanos) -> Result<Step, SimError> {
        let Store { log, media, processors, .. } = &mut self.store;
        if let Some(again) = log.harden(LogWaiter::Commit, lsn, at, media, processors)? {
            return Ok(Step::Again(again));
        }
        self.commits += 1;
        self.release(id, at);
        Ok(Step::Done(self.store.processors.work(at, Nanos(costs::WAKE_NS + costs::END_NS)), None))
    }

    /// Writes the commit record, if there is something to commit.
    fn begin_commit(&mut self, id: TransactionId, at: Nanos) -> Step {
        let clock = self.store.processors.work(at, Nanos(costs::CALL_NS));
        if self.transaction(id).trail.is_none() {
            self.commits += 1;
            self.release(id, at);
            return Step::Done(self.store.processors.work(clock, Nanos(costs::END_NS)), None);
        }
        let (lsn, done) = self.append(id, Body::Commit, clock);
        self.transaction(id).phase = Phase::Committing(lsn);
        Step::Again(done)
    }

    /// Undoes the last change that is not undone; or, when there is none, ends the transaction.
    pub(super) fn undo(&mut self, id: TransactionId, cause: Cause, at: Nanos) -> Result<Step, SimError> {
        let Some(next) = self.transaction(id).trail.and_then(|trail| trail.undo_next) else {
            return Ok(self.end_undo(id, cause, at));
        };
        let entry = self.store.log.entry(next);
        let Body::Change(change) = entry.body.clone() else { panic!("only changes are undone: {entry:?}") };
        let undo_next = entry.previous;
        let Self { store, transactions, .. } = self;
        let transaction = transactions.get_mut(&id).expect("a transaction that was begun and has not ended");
        if let Some(again) = store.fetch(change.page, &mut transaction.ticket, at)? {
            return Ok(Step::Again(again));
        }
        let inverse = Change { before: change.after, after: change.before, ..change };
        let clock = self.store.processors.work(at, Nanos(costs::FIX_NS + costs::INDEX_NS));
        let logged = Change { before: None, ..inverse.clone() };
        let (lsn, done) = self.append(id, Body::Compensation(logged, undo_next), clock);
        self.apply(id, lsn, &inverse);
        Ok(Step::Again(done))
    }

    fn end_undo(&mut self, id: TransactionId, cause: Cause, at: Nanos) -> Step {
        let mut clock = at;
        if self.transaction(id).trail.is_some() {
            clock = self.append(id, Body::End, at).1;
        }
        self.release(id, at);
        let clock = self.store.processors.work(clock, Nanos(costs::END_NS));
        match cause {
            Cause::Asked => {
                self.aborts += 1;
                Step::Done(clock, None)
            }
            Cause::Victim => {
                self.victims += 1;
                Step::Aborted(clock)
            }
        }
    }

    /// Nothing is left of a transaction but what it did.
    fn release(&mut self, id: TransactionId, at: Nanos) {
        let transaction = self.transactions.remove(&id).expect("a transaction that was begun and has not ended");
        self.heap.release(id, &transaction.pages);
        for other in self.locks.release_all(id) {
            self.wake(other, at);
        }
    }

    /// The transaction does not wait any more.
    pub(super) fn wake(&mut self, id: TransactionId, at: Nanos) {
        if std::mem::take(&mut self.transaction(id).waits) {
            let goes_on = self.store.processors.work(at, Nanos(costs::WAKE_NS));
            self.woken.push((id, goes_on));
        }
    }

    /// Writes a page that was loaded, and keeps it in the pool while that has room.
    fn write_loaded(&mut self, id: PageId, page: Page, at: Nanos) -> Result<Nanos, SimError> {
        let page = Arc::new(page);
        self.heap.note(id, &page);
        let done = self.store.media.write_page(id, &page, at)?;
        self.store.pool.install_if_room(id, page, at);
        Ok(done)
    }
}

impl TransactionEngine for PageEngine {
    fn name(&self) -> &str {
        match self.options.locked_unit {
            LockedUnit::Record => "pages, record locks",
            LockedUnit::Page => "pages, page locks",
        }
    }

    fn load(&mut self, record: RecordId<'_>, value: Value, at: Nanos) -> Result<Nanos, SimError> {
        self.store.processors.advance(at);
        let table = record.table;
        let record = Record { key: record.key.bytes().into(), value };
        check(&record)?;
        let fits = |page: &Page| page.fits_new(&record);
        let mut done = at;
        let (id, mut page) = match self.loading.remove(&table) {
            Some((id, page)) if fits(&page) => (id, page),
            full => {
                if let Some((id, page)) = full {
                    done = self.write_loaded(id, page, at)?;
                }
                let id = self.heap.new_page().ok_or_else(full_drive)?;
                (id, Page::of(table))
            }
        };
        let slot = page.free_slot(true);
        let known = self.heap.bind(table, &record.key, Place { page: id, slot });
        assert_eq!(known, None, "a record is loaded once");
        page.set(slot, Some(record));
        self.loading.insert(table, (id, page));
        Ok(done)
    }

    fn end_load(&mut self, at: Nanos) -> Result<Nanos, SimError> {
        let mut done = at;
        for (id, page) in std::mem::take(&mut self.loading).into_values() {
            done = done.max(self.write_loaded(id, page, at)?);
        }
        // Commands come in the order of their times.
        let done = self.store.media.flush(done)?;
        self.checkpoint_waiting(done)
    }

    fn begin(&mut self, at: Nanos) -> TransactionId {
        assert!(self.background_writer.checkpoints() > 0, "the load is ended before transactions begin");
        self.store.processors.advance(at);
        self.store.processors.work(at, Nanos(costs::BEGIN_NS));
        self.next_transaction += 1;
        let id = TransactionId(self.next_transaction);
        self.transactions.insert(id, Transaction::new(Phase::Active, None));
        id
    }

    fn step(&mut self, transaction: TransactionId, request: &Request<'_>, at: Nanos) -> Result<Step, SimError> {
        self.store.processors.advance(at);
        match (self.transaction(transaction).phase, request) {
            (Phase::Undoing(cause), _) => self.undo(transaction, cause, at),
            (Phase::Committing(lsn), _) => self.commit(transaction, lsn, at),
            (Phase::Active, Request::Read { record, for_update }) => self.read(transaction, record, *for_update, at),
            (Phase::Active, Request::Write { record, value }) => self.write(transaction, record, value, at),
            (Phase::Active, Request::Delete { record }) => self.delete(transaction, record, at),
            (Phase::Active, Request::Commit) => Ok(self.begin_commit(transaction, at)),
            (Phase::Active, Request::Abort) => {
                self.transaction(transaction).phase = Phase::Undoing(Cause::Asked);
                self.undo(transaction, Cause::Asked, at)
            }
        }
    }

    fn woken(&mut self) -> Vec<(TransactionId, Nanos)> {
        std::mem::take(&mut self.woken)
    }

    fn background_at(&self) -> Option<Nanos> {
        self.keeper_at()
    }

    fn background(&mut self, at: Nanos) -> Result<(), SimError> {
        self.store.processors.advance(at);
        self.keep(at)
    }

    fn device(&self) -> &Device {
        self.store.media.device()
    }
}

/// What an engine says when its drive has no more room.
pub(super) fn full_drive() -> SimError {
    SimError::Drive(KvError::CapacityExceeded)
}

/// Whether a record fits a page at all.
pub(super) fn check(record: &Record) -> Result<(), SimError> {
    let (bytes, bytes_max) = (record.bytes(), Page::RECORD_BYTES_MAX);
    match bytes <= bytes_max {
        true => Ok(()),
        false => Err(SimError::Setup(format!("a record of {bytes} bytes does not fit a page of {PAGE_BYTES}"))),
    }
}
