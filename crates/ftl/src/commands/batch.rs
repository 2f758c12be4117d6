//! Batches: changes that are made all or none (KAML, section IV-D: Put).
//!
//! ```text
//!   phase 1   look every key up, and see that all can be done          an error leaves everything as it was
//!   phase 2   Begun | record -> write buffer, note, bind | ... | Committed
//!                                                                ^ the commit point: the last note is in the write buffer's memory
//!   phase 3   units are programmed when they are full, as those of single stores are
//! ```
//!
//! The paper binds keys once flash has taken their records. Here a record gets its place in the log when the write buffer
//! takes it, and its key is bound at once. A mount that finds no `Committed` skips what was noted since `Begun`. The
//! entries stay locked until the host has its answer ([`EntryLocks`]).
//!
//! A batch over several engines takes two phases, and each engine makes its share. First all engines prepare ([`prepare`]), and each may
//! refuse. Then all finish ([`finish`]), and one of them, the coordinator, notes that the batch counts.
//!
//! ```text
//!   engine 1      Begun | new keys ............ | the rest | CommittedIf 7        until 7 is decided it is torn for a mount
//!   engine 2      Begun | new keys ............ | the rest | CommittedIf 7
//!   coordinator   Begun | new keys .................................... | the rest | Decided 7
//!                                    all agree ^        commit each ^                        ^ the commit point
//! ```
//!
//! A batch takes no more memory than the largest value, and has no more changes than a superblock has pages. Room for its
//! notes and for the sections that it may evict is kept free beforehand.

use crate::commands::limits::Limits;
use crate::commands::{Found, append_pair, bind_pair, compare, find, unbind_pair};
use crate::index::{Position, Uncompared};
use crate::io::Io;
use crate::io::lack::Lack;
use crate::journal::{BatchNote, Change};
use crate::layout::record::RecordHead;
use crate::namespace::{Namespace, Namespaces};
use kvssd_flash::Geometry;
use kvssd_types::{BatchChange, Key, KvError, NamespaceId, Nanos, Reply, Value};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// The most changes of a batch, whatever the drive. An estimate.
const CHANGES_MAX: u32 = 1024;

/// A change, by its number in the batch, and where its key is.
#[derive(Clone, Copy, Debug)]
struct Planned {
    change: usize,
    position: Position,
    found: Option<Found>,
}

/// What the first phase has found and made.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// New keys first, then keys that change, then keys that go.
    planned: Vec<Planned>,
    /// How many of them are new keys, which are bound already.
    new: usize,
    /// Changes of the batch.
    changes: usize,
}

impl Prepared {
    /// Whether `changes` may be the batch that was prepared: it has as many changes.
    pub(crate) fn is_of(&self, changes: &[BatchChange<'_>]) -> bool {
        self.changes == changes.len()
    }
}

/// Makes all changes or none. The caller has checked them.
pub(crate) fn execute(
    io: &mut Io<'_>,
    namespaces: &mut Namespaces,
    limits: &Limits,
    changes: &[BatchChange<'_>],
) -> Result<Reply, KvError> {
    let prepared = prepare(io, namespaces, limits, changes)?;
    finish(io, namespaces, changes, &prepared)?;
    io.note_request();
    io.note(Change::Batch(BatchNote::Committed));
    Ok(Reply::Batched)
}

/// The first phase: makes sure that all changes can be made, and binds the new keys, since only a new key can find no place in the index.
/// If it refuses, everything is as it was. The caller has checked the changes.
pub(crate) fn prepare(
    io: &mut Io<'_>,
    namespaces: &mut Namespaces,
    limits: &Limits,
    changes: &[BatchChange<'_>],
) -> Result<Prepared, KvError> {
    let aside = io.begin_aside(changes.len());
    let planned = plan(io, namespaces, changes)
        .and_then(|planned| have_room(io, namespaces, limits, changes, &planned).map(|()| planned));
    let needs_freed = |planned: &Vec<Planned>| {
        lacks(io, namespaces, limits, changes, planned, false).map_or(true, |lacks| !lacks.is_empty())
    };
    let waits = aside.is_none() || planned.as_ref().map_or(true, needs_freed);
    io.end_aside(aside, waits);
    let planned = planned?;
    io.note(Change::Batch(BatchNote::Begun));
    let is_new = |planned: &&Planned| changes[planned.change].value.is_some() && planned.found.is_none();
    let new = planned.iter().take_while(is_new).count();
    let prepared = Prepared { planned, new, changes: changes.len() };
    if make_new(io, namespaces, changes, &prepared).map_err(KvError::in_a_change)? {
        return Ok(prepared);
    }
    io.note(Change::Batch(BatchNote::Committed));
    Err(KvError::CapacityExceeded)
}

/// The second phase: makes the remaining changes, which nothing can refuse any more.
pub(crate) fn finish(
    io: &mut Io<'_>,
    namespaces: &mut Namespaces,
    changes: &[BatchChange<'_>],
    prepared: &Prepared,
) -> Result<(), KvError> {
    for planned in &prepared.planned[prepared.new..] {
        make_known(io, namespaces, changes, planned).map_err(KvError::in_a_change)?;
    }
    Ok(())
}

/// Undoes the first phase.
pub(crate) fn abandon(
    io: &mut Io<'_>,
    namespaces: &mut Namespaces,
    changes: &[BatchChange<'_>],
    prepared: &Prepared,
) -> Result<(), KvError> {
    let new = &prepared.planned[..prepared.new];
    take_back(io, namespaces, changes, new).map_err(KvError::in_a_change)?;
    io.note(Change::Batch(BatchNote::Committed));
    Ok(())
}

/// The most changes of a batch on a drive of `geometry`.
pub(crate) fn changes_max(geometry: &Geometry) -> usize {
    CHANGES_MAX.min(geometry.pages_per_superblock()) as usize
}

/// Checks that the drive takes a batch of this size, and that each key occurs once.
pub(crate) fn check(geometry: &Geometry, limits: &Limits, changes: &[BatchChange<'_>]) -> Result<(), KvError> {
    let bytes = changes.iter().map(|change| change.key.bytes().len() + change.value.as_ref().map_or(0, Value::len));
    let (bytes, bytes_max) = (bytes.sum::<usize>() as u64, limits.value_bytes_max);
    let changes_max = changes_max(geometry);
    if changes.len() > changes_max || bytes > bytes_max {
        return Err(KvError::BatchTooLarge { changes: changes.len(), changes_max, bytes, bytes_max });
    }
    let mut keys: Vec<(NamespaceId, Key<'_>)> = changes.iter().map(|change| (change.namespace, change.key)).collect();
    keys.sort_unstable();
    if keys.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(KvError::InvalidCommand("a batch that has a key twice"));
    }
    Ok(())
}

/// Looks up every key. The plan has new keys first, then changed keys, then deleted keys: only a new key can find no
/// place.
fn plan(io: &mut Io<'_>, namespaces: &mut Namespaces, changes: &[BatchChange<'_>]) -> Result<Vec<Planned>, KvError> {
    let mut planned = Vec::with_capacity(changes.len());
    for (number, change) in changes.iter().enumerate() {
        let namespace = of(io, namespaces, change.namespace)?;
        if let Some(why) = namespace.index.refuses_changes() {
            return Err(KvError::Unrecovered(why));
        }
        compare(io, namespace, Uncompared::Of(change.key))?;
        let (position, found) = find(io, namespace.index.as_mut(), change.key)?;
        if change.value.is_some() && position.tag == Position::FULL {
            // A refused batch reports everything that it lacks together.
            io.lacks.push(Lack::InNamespace(change.namespace));
        } else if change.value.is_some() || found.is_some() {
            planned.push(Planned { change: number, position, found });
        }
    }
    planned.sort_by_key(|planned| (changes[planned.change].value.is_none(), planned.found.is_some()));
    Ok(planned)
}

/// The namespace `id`; from here on `io` works for it.
fn of<'n>(io: &mut Io<'_>, namespaces: &'n mut Namespaces, id: NamespaceId) -> Result<&'n mut Namespace, KvError> {
    io.namespace = id;
    namespaces.living(id)
}

/// Checks that the new pairs have a place in each index, and room.
fn have_room(
    io: &mut Io<'_>,
    namespaces: &mut Namespaces,
    limits: &Limits,
    changes: &[BatchChange<'_>],
    planned: &[Planned],
) -> Result<(), KvError> {
    let lacks = lacks(io, namespaces, limits, changes, planned, true)?;
    io.lacks.extend(lacks);
    if io.lacks.is_empty() { Ok(()) } else { Err(KvError::CapacityExceeded) }
}

/// What the new records lack on the drive or in a quota. If `known`, the records that they replace count as freed.
fn lacks(
    io: &Io<'_>,
    namespaces: &mut Namespaces,
    limits: &Limits,
    changes: &[BatchChange<'_>],
    planned: &[Planned],
    known: bool,
) -> Result<Vec<Lack>, KvError> {
    let packing = io.packing();
    let mut sums: BTreeMap<NamespaceId, (u64, u64)> = BTreeMap::new();
    for Planned { change, found, .. } in planned {
        let change = &changes[*change];
        let (come, go) = sums.entry(change.namespace).or_default();
        *come += head_of(change).map_or(0, |head| packing.bytes_charged(&head));
        *go += found.filter(|_| known).map_or(0, |found| packing.bytes_charged(&found.head));
    }
    let come: u64 = sums.values().map(|(come, _)| come).sum();
    let go: u64 = sums.values().map(|(_, go)| go).sum();
    let mut lacks = Vec::new();
    for (&id, &(comes, goes)) in sums.iter().filter(|(_, (comes, goes))| comes > goes) {
        let limits = Limits { taken_bytes: namespaces.taken_beside(id), ..*limits };
        let namespace = namespaces.living(id)?;
        if !namespace.has_quota_for(comes - goes) {
            lacks.push(Lack::InNamespace(id));
        }
        // Bytes that another namespace frees are room on the drive for this one, but not in its quota.
        if come > go {
            lacks.extend(limits.lack_of_flash(io.media, namespace, come - go));
        }
    }
    Ok(lacks)
}

/// Binds the new keys. Returns whether all could be bound; if not, those bound before are removed again.
fn make_new(
    io: &mut Io<'_>,
    namespaces: &mut Namespaces,
    changes: &[BatchChange<'_>],
    prepared: &Prepared,
) -> Result<bool, KvError> {
    let mut came: Vec<NamespaceId> = Vec::new();
    for (number, &Planned { change, mut position, .. }) in prepared.planned[..prepared.new].iter().enumerate() {
        let change = &changes[change];
        let namespace = of(io, namespaces, change.namespace)?;
        let index = namespace.index.as_mut();
        // New keys bound earlier in this batch may have taken its place.
        if came.contains(&change.namespace) {
            (position, _) = find(io, index, change.key)?;
        }
        if position.tag == Position::FULL {
            take_back(io, namespaces, changes, &prepared.planned[..number])?;
            io.lacks.push(Lack::InNamespace(change.namespace));
            return Ok(false);
        }
        match index.reserve(io, position) {
            // An index whose sections split cannot tell in advance whether a key fits.
            Err(KvError::CapacityExceeded) => {
                take_back(io, namespaces, changes, &prepared.planned[..number])?;
                io.lacks.push(Lack::InNamespace(change.namespace));
                return Ok(false);
            }
            reserved => reserved?,
        }
        came.push(change.namespace);
        let (value, head) = change.value.as_ref().zip(head_of(change)).expect("a new key has a value");
        let place = append_pair(io, change.key, value, position.tag)?;
        bind_pair(io, namespace, change.key, position, head.at(place), None)?;
    }
    Ok(true)
}

/// Changes or removes a key that is there.
fn make_known(
    io: &mut Io<'_>,
    namespaces: &mut Namespaces,
    changes: &[BatchChange<'_>],
    &Planned { change, position, found }: &Planned,
) -> Result<(), KvError> {
    let change = &changes[change];
    let namespace = of(io, namespaces, change.namespace)?;
    let Some((value, head)) = change.value.as_ref().zip(head_of(change)) else {
        let found = found.expect("a key that goes is there");
        return unbind_pair(io, namespace, change.key, position, found);
    };
    let place = append_pair(io, change.key, value, position.tag)?;
    bind_pair(io, namespace, change.key, position, head.at(place), found)
}

/// Removes keys that this batch has just bound.
fn take_back(
    io: &mut Io<'_>,
    namespaces: &mut Namespaces,
    changes: &[BatchChange<'_>],
    came: &[Planned],
) -> Result<(), KvError> {
    for planned in came {
        let change = &changes[planned.change];
        let namespace = of(io, namespaces, change.namespace)?;
        let (position, found) = find(io, namespace.index.as_mut(), change.key)?;
        let found = found.expect("a key that has just come is there");
        unbind_pair(io, namespace, change.key, position, found)?;
    }
    Ok(())
}

/// The head of the record that a change writes, if it writes one.
pub(crate) fn head_of(change: &BatchChange<'_>) -> Option<RecordHead> {
    change.value.as_ref().map(|value| RecordHead::of(change.key, value))
}

/// The keys of batches that are not answered yet: a command on one of them waits for the answer, and sees all of the
/// batch or nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct EntryLocks {
    until: BTreeMap<(NamespaceId, u64), Nanos>,
}

impl EntryLocks {
    /// Locks the keys of a batch until it is answered at `done`.
    pub(crate) fn lock(&mut self, changes: &[BatchChange<'_>], done: Nanos) {
        self.until.extend(changes.iter().map(|change| (entry(change.namespace, change.key), done)));
    }

    /// Drops the locks that end by `now`: no command arrives earlier than that any more.
    pub(crate) fn advance(&mut self, now: Nanos) {
        if !self.until.is_empty() {
            self.until.retain(|_, done| *done > now);
        }
    }

    /// The time until which an entry is locked; 0 if it is not.
    pub(crate) fn until(&self, namespace: NamespaceId, key: Key<'_>) -> Nanos {
        if self.until.is_empty() {
            return Nanos::ZERO;
        }
        self.until.get(&entry(namespace, key)).copied().unwrap_or_default()
    }
}

fn entry(namespace: NamespaceId, key: Key<'_>) -> (NamespaceId, u64) {
    (namespace, xxh3_64(key.bytes()))
}
