//! Removal of what is left of deleted namespaces, a few pairs in a step.
//!
//! ```text
//!   parts of the index, with their pairs -> pairs in the order of the list -> where there is no list, or it cannot be read: pairs that
//!   are told of all the same -> the index's records, all at once
//! ```

use super::Engine;
use super::growth::grow;
use super::salvage::known_keys;
use crate::commands;
use crate::index::{Growth, OwnRecord, Uncompared};
use crate::io::{Io, readable};
use crate::journal::Change;
use crate::layout::address::Grain;
use crate::namespace::{Namespace, NamespaceFate, Told};
use kvssd_types::{Key, KvError, NamespaceId, Nanos, OwnedKey};

/// Pairs that a step removes.
const REMOVED_PER_STEP: usize = 32;

impl Engine {
    /// Whether something is left of a namespace that was deleted, which [`Engine::advance`] removes.
    #[must_use]
    pub fn is_removing(&self) -> bool {
        self.namespaces.dying().is_some()
    }

    /// A step towards the end of a namespace that was deleted.
    pub(super) fn remove_some(&mut self, id: NamespaceId) -> Result<(), KvError> {
        self.work_on(
            id,
            |io, namespace| if remove_part(io, namespace)? { Ok(()) } else { remove_more(io, namespace) },
        )?;
        let is_empty = self.namespaces.get(id).is_some_and(|namespace| namespace.utilization.pairs == 0);
        if is_empty {
            self.work_uncommitted(id, remove_index)?;
            if self.namespaces.get(id).is_some_and(|namespace| namespace.fate == NamespaceFate::Stays) {
                return Ok(());
            }
            self.namespaces.remove(id);
            self.commit_journal(self.growth_clock)?;
            self.share_anew();
        }
        Ok(())
    }

    /// Removes a part of the index of a namespace that was deleted. Returns whether there was one.
    pub(super) fn remove_part(&mut self, id: NamespaceId) -> Result<bool, KvError> {
        let mut is_removed = false;
        self.work_on(id, |io, namespace| {
            is_removed = remove_part(io, namespace)?;
            Ok(())
        })?;
        Ok(is_removed)
    }

    /// Removes what is left of the deleted namespaces, as far as there is room for that. Returns when it is done.
    pub(super) fn remove_deleted(&mut self, at: Nanos) -> Result<Nanos, KvError> {
        self.growth_clock = self.growth_clock.max(at);
        let mut done = at;
        while let Some(id) = self.namespaces.dying()
            && self.make_room(Engine::has_room_to_remove)?
        {
            self.remove_some(id)?;
            done = self.growth_clock;
        }
        Ok(done)
    }

    /// Removes what is left of the deleted namespaces and makes the journal forget them, so that their numbers are free.
    /// This takes as long as deleting their pairs takes. Returns when it is done.
    pub(super) fn finish_removals(&mut self, at: Nanos) -> Result<Nanos, KvError> {
        self.remove_deleted(at)?;
        self.collector.clock = self.collector.clock.max(self.growth_clock);
        if !self.media.durable.is_on() {
            self.namespaces.forget_gone();
        } else if self.finish_victims()? {
            self.checkpoint(false)?;
        }
        Ok(self.collector.clock)
    }
}

/// Removes a part of the index with its pairs. Returns whether there was one.
fn remove_part(io: &mut Io<'_>, namespace: &mut Namespace) -> Result<bool, KvError> {
    io.has_iterators = false;
    let removed = namespace.index.remove_part(io);
    io.count_replaced(&mut namespace.utilization);
    removed.map_err(KvError::in_a_change)
}

/// A step where the index has no such part.
fn remove_more(io: &mut Io<'_>, namespace: &mut Namespace) -> Result<(), KvError> {
    match namespace.index.growth() {
        // The index may hold pairs that it does not list yet.
        Growth::Background | Growth::Changes | Growth::Foreground => grow(io, namespace),
        Growth::None if !namespace.index.uncompared().is_empty() => commands::compare(io, namespace, Uncompared::Some),
        Growth::None if namespace.utilization.pairs == 0 => Ok(()),
        Growth::None => remove_pairs(io, namespace),
    }
}

/// Gives up all records of an index at once. A mount can redo earlier changes without knowing where these records lay.
fn remove_index(io: &mut Io<'_>, namespace: &mut Namespace) -> Result<(), KvError> {
    let grains = |own: &OwnRecord| io.packing().grains_of(own.bytes as usize);
    let mut own: Vec<(Grain, u32)> = namespace.index.own_records().iter().map(|own| (own.place, grains(own))).collect();
    own.sort_unstable();
    let runs = runs(&own, io.packing().grains_per_superblock);
    // An earlier release could keep a namespace whose index was removed already.
    if !runs.iter().all(|&(place, grains)| io.can_vacate(place, grains)) {
        namespace.fate = NamespaceFate::Stays;
        return Ok(());
    }
    io.note_as_one(|io| {
        for run in runs {
            io.note(Change::Gone { place: run.0, grains: run.1 });
            io.vacate(run.0, run.1);
        }
        io.note(Change::Removed { namespace: namespace.id.0 });
        Ok(())
    })?;
    for (place, _) in own {
        io.forget(place);
    }
    Ok(())
}

/// Merges records that follow one another into runs. No run crosses the end of a superblock.
fn runs(records: &[(Grain, u32)], superblock_grains: u64) -> Vec<(Grain, u32)> {
    let mut runs: Vec<(Grain, u32)> = Vec::new();
    for &(place, grains) in records {
        match runs.last_mut() {
            Some((first, count))
                if first.0 + u64::from(*count) == place.0 && !place.0.is_multiple_of(superblock_grains) =>
            {
                *count += grains;
            }
            _ => runs.push((place, grains)),
        }
    }
    runs
}

/// Removes the next pairs of a namespace: as they are listed, and where there is no list, or it ends with what cannot be read, those that are told
/// of all the same.
/// What is left then stays until the next mount.
fn remove_pairs(io: &mut Io<'_>, namespace: &mut Namespace) -> Result<(), KvError> {
    let NamespaceFate::Dies(from) = namespace.fate.clone() else { return Ok(()) };
    if !namespace.told.keys.is_empty() {
        return remove_told(io, namespace);
    }
    let removed = match remove_from(io, namespace, from.as_deref()) {
        // An index may have no list, as that of a drive without iterators.
        Err(KvError::InvalidCommand(_)) => None,
        removed => readable(removed)?,
    };
    match removed {
        // At the end of the list it begins again.
        Some(last) if last.is_some() || from.is_some() || namespace.utilization.pairs == 0 => {
            namespace.fate = NamespaceFate::Dies(last);
        }
        _ => {
            let pairs = namespace.utilization.pairs;
            let is_new = pairs != namespace.told.pairs;
            let keys =
                if is_new { known_keys(io, namespace.index.as_ref())?.into_iter().collect() } else { Vec::new() };
            if keys.is_empty() {
                namespace.fate = NamespaceFate::Stays;
            }
            namespace.told = Told { keys, pairs };
        }
    }
    Ok(())
}

/// Removes some pairs, from a key on. Returns the last of their keys.
fn remove_from(io: &mut Io<'_>, namespace: &mut Namespace, from: Option<&[u8]>) -> Result<Option<OwnedKey>, KvError> {
    let keys = commands::listed(io, namespace.index.as_mut(), from.map(Key::new).transpose()?, REMOVED_PER_STEP)?;
    for key in &keys {
        commands::delete(io, namespace, Key::new(key)?)?;
    }
    Ok(keys.last().cloned())
}

/// Removes some pairs of those that are told of, without those of which it cannot be read whether they are there.
fn remove_told(io: &mut Io<'_>, namespace: &mut Namespace) -> Result<(), KvError> {
    let keys = &mut namespace.told.keys;
    for key in keys.split_off(keys.len().saturating_sub(REMOVED_PER_STEP)) {
        match readable(commands::delete(io, namespace, Key::new(&key)?)) {
            Ok(_) | Err(KvError::KeyNotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
