//! Changes of the journal, made again.

use crate::io::Io;
use crate::io::media::Media;
use crate::journal::attributes::read_cache;
use crate::journal::clients::ClientTable;
use crate::journal::{BatchNote, Change, PairPlace, TablePlace};
use crate::layout::address::Grain;
use crate::namespace::{Namespace, NamespaceFate, Namespaces};
use crate::recovery::damaged;
use crate::recovery::durability::Checkpoint;
use crate::space::OF_ANOTHER;
use crate::space::superblock::{State, Superblock};
use crate::space::validity::Spill;
use kvssd_flash::SuperblockId;
use kvssd_types::{ClientId, KvError, NamespaceId};
use std::collections::BTreeSet;

/// The namespace that a change removes, if it does. Its number is not given again before the next checkpoint.
fn removed_by(change: &Change) -> Option<NamespaceId> {
    match change {
        Change::Removed { namespace } => Some(NamespaceId(*namespace)),
        _ => None,
    }
}

pub(super) struct Redo<'a, 'b> {
    pub(super) io: &'a mut Io<'b>,
    pub(super) namespaces: &'a mut Namespaces,
    /// Pages of invalid mappings that are full and of which no change has said where they lie.
    pub(super) spills: Vec<Spill>,
}

impl Redo<'_, '_> {
    /// Makes all changes again on the state of the checkpoint. Afterwards `io` works for the namespace of the last ones.
    pub(super) fn redo_all(&mut self, checkpoint: Checkpoint, all: &[Change]) -> Result<(), KvError> {
        let Media { space, durable, .. } = &mut *self.io.media;
        if !checkpoint.is_possible(space.packing.grains_per_superblock) {
            return Err(damaged(OF_ANOTHER));
        }
        space.restore(checkpoint.superblocks, &checkpoint.validity).map_err(damaged)?;
        durable.decided = checkpoint.decided;
        let saved = ClientTable::from_saved(checkpoint.clients);
        durable.clients = saved.ok_or_else(|| damaged("its checkpoint has more clients than there can be"))?;
        let restored = self.namespaces.restore(checkpoint.namespaces);
        restored.map_err(|why| damaged(&format!("its checkpoint has a namespace that cannot be: {why}")))?;
        self.prepare(all)?;
        let removed: BTreeSet<NamespaceId> = all.iter().filter_map(removed_by).collect();
        self.io.namespace = NamespaceId::FIRST;
        for (position, change) in all.iter().enumerate() {
            self.redo(change)?;
            // The index records of a namespace that is removed later may have been erased already.
            if let Some(namespace) = self.namespaces.get_mut(self.io.namespace)
                && !removed.contains(&namespace.id)
            {
                namespace.index.redo(self.io, change, position)?;
            }
        }
        let grains_max = self.io.packing().grains_per_superblock;
        if self.io.media.space.superblocks.all().iter().any(|superblock| superblock.appended_grains > grains_max) {
            return Err(damaged("its journal gives a superblock more grains than it has"));
        }
        let last = self.io.namespace;
        for namespace in self.namespaces.iter_mut() {
            self.io.namespace = namespace.id;
            namespace.index.end_redo(self.io)?;
        }
        self.io.namespace = last;
        Ok(())
    }

    /// What all changes say that must be known before the first is made again: which namespaces there are, and where indexes have written
    /// records of their own since.
    fn prepare(&mut self, all: &[Change]) -> Result<(), KvError> {
        let mut namespace = NamespaceId::FIRST;
        for (position, change) in all.iter().enumerate() {
            match change {
                Change::In { namespace: next } => namespace = NamespaceId(*next),
                Change::Created { namespace, attributes, kind } => {
                    let created = self.namespaces.put(NamespaceId(*namespace), attributes.as_ref().clone(), Some(kind));
                    let created = created.map_err(|why| damaged(&format!("its journal makes a namespace: {why}")))?;
                    created.index.set_dram_budget(u64::MAX);
                }
                Change::Own { .. } | Change::Split { .. } => {
                    let known = self.named(namespace.0)?.index.redo_own(change, position);
                    known.ok_or_else(|| damaged("its journal speaks of a section that the index cannot have"))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The namespace of that number, which the journal speaks of.
    fn named(&mut self, namespace: u32) -> Result<&mut Namespace, KvError> {
        let found = self.namespaces.get_mut(NamespaceId(namespace));
        found.ok_or_else(|| damaged("its journal speaks of a namespace that there is not"))
    }

    /// Makes a change again, but for what the index does about it.
    fn redo(&mut self, change: &Change) -> Result<(), KvError> {
        let grains_per_page = self.io.packing().grains_per_page;
        match *change {
            Change::Batch(BatchNote::Decided(sequence)) => self.io.media.durable.decided = sequence,
            Change::End | Change::Batch(_) | Change::Created { .. } | Change::Key { .. } | Change::Range { .. } => {}
            // It may be a removed namespace, whose remaining notes belong to nobody.
            Change::In { namespace } => self.io.namespace = NamespaceId(namespace),
            Change::Deleted { namespace } => self.named(namespace)?.fate = NamespaceFate::Dies(None),
            Change::Assigned { namespace, logs } => self.named(namespace)?.attributes.logs = logs,
            Change::Cached { namespace, ref cache } => {
                let cache = cache.as_deref().map(read_cache).transpose();
                self.named(namespace)?.attributes.cache =
                    cache.map_err(|why| damaged(&format!("its journal makes a cache: {why}")))?;
            }
            Change::Client { slot, client } => {
                let opened = self.io.media.durable.clients.open(slot, ClientId(client));
                opened.ok_or_else(|| damaged("its journal gives a client a slot that there is not"))?;
            }
            Change::Request { slot, serial } => {
                let recorded = self.io.media.durable.clients.record_in(slot, serial);
                recorded.ok_or_else(|| damaged("its journal speaks of a client that it has not"))?;
            }
            Change::Gone { place, grains } => self.disappear(place, grains)?,
            Change::Removed { namespace } => {
                self.named(namespace)?;
                self.namespaces.remove(NamespaceId(namespace));
            }
            Change::Opened { stream, superblock, within, generation } => {
                let opened = Superblock { has_strays: true, generation, ..Superblock::new(State::Open, stream) };
                *self.lifeless(superblock, "a superblock was opened with living records in it")? = opened;
                if let Some(before) = within {
                    self.superblock(before)?.next = superblock;
                }
            }
            Change::Closed { superblock } => self.superblock(superblock)?.state = State::Closed,
            Change::Skipped { superblock } => {
                self.superblock(superblock)?.appended_grains += u64::from(grains_per_page);
            }
            Change::Erased { superblock } => {
                self.forget(superblock)?;
                let erased = self.lifeless(superblock, "a superblock was erased with living records in it")?;
                *erased = Superblock { must_erase: true, ..Superblock::new(State::Free, erased.stream) };
            }
            Change::Retired { superblock } => self.retire(superblock)?,
            Change::Bound { tag, pair, old, .. } => {
                self.appear(pair.place, self.grains_of(&pair))?;
                self.count(&pair, true)?;
                old.map_or(Ok(()), |old| self.end_pair(tag, &old))?;
            }
            Change::Unbound { tag, old, .. } => self.end_pair(tag, &old)?,
            Change::Moved { tag, from, to, grains } => {
                self.appear(to, grains)?;
                // The victim may not have been erased, and be collected again.
                self.died(tag, from, grains)?;
            }
            Change::Own { place, bytes, old, .. } => self.replace_own(&[place], bytes, old)?,
            Change::Split { places, bytes, old, .. } => self.replace_own(&places, bytes, old)?,
            Change::Spilled { superblock, place } => self.write_spill(superblock, place)?,
            Change::SpillMoved { superblock, from, to } => {
                self.superblock(superblock)?;
                self.appear(to, grains_per_page)?;
                self.io.media.space.validity.spill_moved(superblock, from, to);
                self.disappear(from, grains_per_page)?;
            }
            Change::Merged { ref taken, ref made } => self.merge(taken, made)?,
        }
        Ok(())
    }

    fn retire(&mut self, superblock: SuperblockId) -> Result<(), KvError> {
        let retired = self.superblock(superblock)?;
        if retired.state != State::Closed {
            return Err(damaged("its journal retires a superblock that is not full"));
        }
        // Records that only iterators kept do not live any more: then the superblock can be collected.
        if retired.live_grains > 0 {
            self.io.media.space.superblocks.retire(superblock);
        }
        self.forget(superblock)
    }

    fn write_spill(&mut self, superblock: SuperblockId, place: Grain) -> Result<(), KvError> {
        self.superblock(superblock)?;
        let full = self.spills.iter().position(|spill| spill.superblock == superblock);
        self.spills.remove(full.ok_or_else(|| damaged("a page of invalid mappings comes from nowhere"))?);
        self.appear(place, self.io.packing().grains_per_page)?;
        self.io.media.space.validity.spilled(superblock, place);
        Ok(())
    }

    /// Records of the index's own, of `bytes` bytes each, replace the one at `old`; grain 0 means that there was none.
    fn replace_own(&mut self, places: &[Grain], bytes: u32, old: (Grain, u32)) -> Result<(), KvError> {
        let packing = self.io.packing();
        for &place in places {
            self.appear(place, packing.grains_of(bytes as usize))?;
        }
        match old {
            (Grain(0), _) => Ok(()),
            (old, old_bytes) => self.disappear(old, packing.grains_of(old_bytes as usize)),
        }
    }

    fn merge(&mut self, taken: &[TablePlace], made: &[TablePlace]) -> Result<(), KvError> {
        let grains_per_page = self.io.packing().grains_per_page;
        // A table may change its level and stay where it is.
        let pages = |tables: &[TablePlace]| tables.iter().flat_map(|table| table.pages.clone()).collect();
        let (before, after): (BTreeSet<Grain>, BTreeSet<Grain>) = (pages(taken), pages(made));
        for &page in after.difference(&before) {
            self.appear(page, grains_per_page)?;
        }
        for &page in before.difference(&after) {
            self.disappear(page, grains_per_page)?;
        }
        Ok(())
    }

    /// A superblock in which nothing lives.
    fn lifeless(&mut self, superblock: SuperblockId, else_why: &str) -> Result<&mut Superblock, KvError> {
        let found = self.superblock(superblock)?;
        if found.live_grains > 0 { Err(damaged(else_why)) } else { Ok(found) }
    }

    /// Drops what validity knows of the dead records in a superblock.
    fn forget(&mut self, superblock: SuperblockId) -> Result<(), KvError> {
        self.superblock(superblock)?;
        self.spills.retain(|spill| spill.superblock != superblock);
        for spill in self.io.media.space.validity.close_victim(superblock) {
            self.disappear(spill, self.io.packing().grains_per_page)?;
        }
        Ok(())
    }

    fn superblock(&mut self, superblock: SuperblockId) -> Result<&mut Superblock, KvError> {
        let found = self.io.media.space.superblocks.get_mut(superblock).filter(|found| found.state != State::System);
        found.ok_or_else(|| damaged("its journal speaks of a superblock that it has not"))
    }

    fn grains_of(&self, pair: &PairPlace) -> u32 {
        self.io.packing().grains_of_record(&pair.head())
    }

    fn count(&mut self, pair: &PairPlace, comes: bool) -> Result<(), KvError> {
        let packing = self.io.packing();
        let utilization = &mut self.named(self.io.namespace.0)?.utilization;
        if comes {
            utilization.add(&pair.head(), &packing);
            return Ok(());
        }
        let removed = utilization.remove(&pair.head(), &packing);
        removed.ok_or_else(|| damaged("its journal ends more pairs than there were"))
    }

    fn end_pair(&mut self, tag: u64, pair: &PairPlace) -> Result<(), KvError> {
        self.died(tag, pair.place, self.grains_of(pair))?;
        self.count(pair, false)
    }

    fn appear(&mut self, place: Grain, grains: u32) -> Result<(), KvError> {
        if !self.io.media.space.can_occupy(place, grains) {
            return Err(damaged("its journal puts a record where it cannot be"));
        }
        self.io.occupy(place, grains);
        Ok(())
    }

    fn disappear(&mut self, place: Grain, grains: u32) -> Result<(), KvError> {
        if !self.io.media.space.can_vacate(place, grains) {
            return Err(damaged("its journal ends a record that does not live"));
        }
        self.io.vacate(place, grains);
        Ok(())
    }

    fn died(&mut self, tag: u64, place: Grain, grains: u32) -> Result<(), KvError> {
        self.disappear(place, grains)?;
        self.spills.extend(self.io.media.space.validity.pair_died(tag, place));
        Ok(())
    }
}
