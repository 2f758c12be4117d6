//! How an engine makes room: by garbage collection, by removing deleted namespaces, and by ending iterators.

use super::{Engine, is_change};
use crate::commands::batch;
use crate::gc::STEP_SUPERBLOCKS;
use crate::io::Io;
use crate::io::lack::Lack;
use crate::layout::record::RecordHead;
use crate::space::Space;
use kvssd_types::{Command, KvError, NamespaceId, Nanos};

/// Superblocks that a step of an index's own work may open.
pub(super) const GROWTH_SUPERBLOCKS: usize = 2;

/// Records kept for iterators may take 1 / HELD_SHARE of the DRAM. An estimate.
const HELD_SHARE: u64 = 64;

/// How many times all superblocks are collected before the drive counts as full. Where pairs are much smaller than sections,
/// moving a few pairs rewrites many sections, and it takes dozens of collections to gain one superblock. An estimate.
const FUTILE_TURNS: u64 = 8;

/// Collection had nothing to gain. It is not tried again until a record dies, or enough was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct FutileCollection {
    /// Grains that lived then.
    live_grains: u64,
    /// It is tried again once this many programs were counted.
    programs_until: u64,
}

/// When a command last changed something, or a record last died.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastChange {
    /// Superblocks that had been collected.
    superblocks: u64,
    /// The fewest grains that have lived since: fewer are a record that died. [`u64::MAX`] until the next look.
    live_grains: u64,
}

impl Engine {
    /// The superblocks after which collection is in vain.
    fn futile_superblocks(&self) -> u64 {
        FUTILE_TURNS * u64::from(self.media.space.geometry.superblocks())
    }

    /// Whether collection is to rest: since the last change it has collected [`FUTILE_TURNS`] times as many superblocks as the drive has. On a
    /// full drive the sections that it changes take all that it frees, and reads evict the last of them: between the two it would never end.
    /// It also rests where more lives than there is room for, nothing has changed, and there are iterators: they would have to keep what is moved
    /// for room that nobody takes, and come to their end.
    pub(super) fn collection_rests(&mut self) -> bool {
        let superblocks = self.collector.counters.superblocks;
        let live_grains = self.media.space.superblocks.live_grains();
        let has_changed = live_grains < self.last_change.live_grains;
        if has_changed {
            self.last_change = LastChange { superblocks, live_grains };
        }
        let is_in_vain = superblocks - self.last_change.superblocks >= self.futile_superblocks();
        is_in_vain || !has_changed && self.is_overfull() && self.media.held.get_mut().is_on()
    }

    /// Collects until there is room, and returns whether there is. It gives up after [`FUTILE_TURNS`] times as many superblocks
    /// as the drive has, since moved records then take all that is freed; and with few superblocks left when more lives than before, since an
    /// index that notes each move then takes more than that. It tries again once a record has died, or another superblock was written.
    pub(super) fn collect_until(&mut self, has_room: impl Fn(&Engine) -> bool) -> Result<bool, KvError> {
        let live_grains = self.media.space.superblocks.live_grains();
        let programs = self.flash_counters().programs.total();
        if self.futile.is_some_and(|futile| live_grains >= futile.live_grains && programs < futile.programs_until) {
            return Ok(false);
        }
        let most = self.collector.counters.superblocks + self.futile_superblocks();
        let grown = live_grains + self.media.space.packing.grains_per_superblock;
        while !has_room(self) {
            self.collector.hasten();
            let superblocks = &self.media.space.superblocks;
            let loses = superblocks.live_grains() > grown && superblocks.free() < STEP_SUPERBLOCKS;
            if loses || self.collector.counters.superblocks >= most || !self.collect()? {
                let superblock_pages = u64::from(self.media.space.geometry.pages_per_superblock());
                let programs_until = self.flash_counters().programs.total() + superblock_pages;
                self.futile = Some(FutileCollection { live_grains, programs_until });
                return Ok(false);
            }
        }
        self.futile = None;
        Ok(true)
    }

    /// Collects until no victim is open. Returns whether that is so: a step that has no superblock left to write to is not begun.
    pub(super) fn finish_victims(&mut self) -> Result<bool, KvError> {
        while self.collector.is_busy() {
            if !self.collect()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Ends the oldest iterator; its next command is refused for that reason. Returns whether there was one.
    ///
    /// # Errors
    /// What the flash operations answer.
    pub fn expire(&mut self) -> Result<bool, KvError> {
        let Engine { media, namespaces, collector, .. } = self;
        let oldest = namespaces.iter_mut().min_by_key(|namespace| namespace.iterators.oldest().unwrap_or(u64::MAX));
        let Some(namespace) = oldest else { return Ok(false) };
        let mut io = Io::new(media, collector.clock, true).of(namespace.id);
        namespace.iterators.expire(&mut io, namespace.index.as_mut())
    }

    /// Ends the oldest iterators while what is kept for iterators takes more than its part of the DRAM.
    pub(super) fn bound_held(&mut self) -> Result<(), KvError> {
        while self.media.held.get_mut().bytes() > self.limits.dram_bytes / HELD_SHARE && self.expire()? {}
        Ok(())
    }

    /// Like [`Engine::collect_until`]. If that is not enough, it removes deleted namespaces and ends iterators, the oldest first.
    pub(super) fn reclaim_until(&mut self, has_room: impl Fn(&Engine) -> bool) -> Result<bool, KvError> {
        loop {
            if self.collect_until(&has_room)? {
                return Ok(true);
            }
            if let Some(namespace) = self.namespaces.dying().filter(|_| self.has_room_to_remove()) {
                self.remove_some(namespace)?;
            } else if !self.keeps_for_iterators() || !self.expire()? {
                return Ok(false);
            }
            self.futile = None;
        }
    }

    /// Whether iterators keep flash.
    fn keeps_for_iterators(&mut self) -> bool {
        let mut ranges = self.namespaces.iter_mut().filter_map(|namespace| namespace.index.ranges());
        self.media.held.get_mut().keeps_flash() || ranges.any(|ranges| !ranges.kept_for_cursors().is_empty())
    }

    /// Whether enough superblocks are free for a step of an index's own work, beside what commands and collection may
    /// need.
    pub(super) fn has_room_to_grow(&self) -> bool {
        self.media.space.superblocks.free() >= self.free_to_grow()
    }

    /// The same for a step of a removal. It makes room: it may take what is kept for commands, for which it would wait in vain on a full drive.
    pub(super) fn has_room_to_remove(&self) -> bool {
        self.media.space.superblocks.free() >= STEP_SUPERBLOCKS + GROWTH_SUPERBLOCKS
    }

    /// The free superblocks that a step of growth needs. As many as a store: changes that wait for such a step would otherwise wait for whole
    /// victims where stores pass. Behind the step there is what look-ups need.
    pub(super) fn free_to_grow(&self) -> usize {
        self.limits.high.max(self.limits.high_of_lookups + GROWTH_SUPERBLOCKS) + STEP_SUPERBLOCKS
    }

    /// Waits until as many superblocks are free as the command may need beside the reserve. It waits for garbage collection, or
    /// for the time at which collection made the room, even if an earlier command already waited for that. While collection rests, a command
    /// that changes nothing waits only where less is free than a step of it may take.
    pub(super) fn wait_for_room(&mut self, command: &Command<'_>, at: &mut Nanos) -> Result<(), KvError> {
        let bytes = self.bytes_wanted(command)?;
        let superblocks = (bytes / self.media.space.packing.superblock_bytes()) as usize;
        let writes = is_change(command) || bytes > 0;
        if writes {
            self.collector.hasten();
            self.last_change.live_grains = u64::MAX;
        }
        let reserve = if writes { self.limits.high } else { self.limits.high_of_lookups };
        let needed = reserve + STEP_SUPERBLOCKS + superblocks;
        let least = if !writes && self.collection_rests() { STEP_SUPERBLOCKS } else { needed };
        let has_room = |engine: &Engine| engine.media.space.superblocks.free() >= least;
        let mut may_gain = true;
        loop {
            // What collection moves may make an index larger: then more of a deleted namespace has to go.
            if bytes > 0 {
                self.finish_removal(bytes, at)?;
            }
            if has_room(self) || !may_gain {
                break;
            }
            self.collector.clock = self.collector.clock.max(self.media.controller.now);
            may_gain = self.reclaim_until(|engine| engine.media.space.superblocks.free() >= needed)?;
        }
        let from = self.media.space.superblocks.free_from(least, *at).unwrap_or(self.collector.clock).max(*at);
        self.collector.counters.stall_ns += (from - *at).0;
        *at = from;
        let is_store = matches!(command, Command::Store { .. } | Command::Write { .. } | Command::Batch { .. });
        // Nothing to gain: deletes may use the reserve, stores may not.
        let has_reserve = self.media.space.superblocks.free() > 0;
        if !has_room(self) && (is_store || is_change(command) && !has_reserve) {
            self.lacks.push(self.lack_of_superblocks(needed));
            return Err(KvError::CapacityExceeded);
        }
        Ok(())
    }

    /// Notes why a command was refused for lack of room: what it reported itself, or else that the index had no place.
    pub(super) fn note_lacks(&mut self, lacks: Vec<Lack>, namespace: NamespaceId) {
        self.lacks.extend(lacks);
        if self.lacks.is_empty() {
            self.lacks.push(Lack::InNamespace(namespace));
        }
    }

    /// The lack if `needed` superblocks could not be freed: what would not fit if all live data were packed into the others.
    fn lack_of_superblocks(&self, needed: usize) -> Lack {
        let Space { superblocks, packing, geometry, .. } = &self.media.space;
        let others = u64::from(geometry.superblocks()).saturating_sub(superblocks.retired() + needed as u64);
        let left_over = superblocks.live_grains().saturating_sub(others * packing.grains_per_superblock);
        Lack::OnDrive { bytes: left_over * u64::from(packing.grain_bytes) }
    }

    /// Removes deleted namespaces until there is room for `bytes`, and moves `at` behind that.
    fn finish_removal(&mut self, bytes: u64, at: &mut Nanos) -> Result<(), KvError> {
        let capacity_bytes = self.utilization().capacity_bytes;
        while let Some(namespace) = self.namespaces.dying()
            && self.namespaces.taken_bytes() + bytes > capacity_bytes
        {
            self.collector.clock = self.collector.clock.max(self.media.controller.now);
            if !self.has_room_to_remove() && !self.reclaim_until(|engine| engine.has_room_to_remove())? {
                break;
            }
            self.remove_some(namespace)?;
            *at = (*at).max(self.growth_clock);
        }
        Ok(())
    }

    /// The most bytes of flash that a command writes, beside the few that every command may.
    pub(super) fn bytes_wanted(&self, command: &Command<'_>) -> Result<u64, KvError> {
        let packing = &self.media.space.packing;
        Ok(match command {
            Command::Store { value, .. } | Command::Write { value, .. }
                if value.len() as u64 > self.limits.value_bytes_max =>
            {
                let value_bytes_max = self.limits.value_bytes_max;
                return Err(KvError::InvalidValueSize { value_bytes: value.len() as u64, value_bytes_max });
            }
            Command::Store { key, value, .. } => {
                let (key_bytes, value_bytes) = (key.bytes().len() as u32, value.len() as u32);
                packing.bytes_charged(&RecordHead { key_bytes, value_bytes })
            }
            Command::Write { value, .. } => value.len() as u64,
            Command::Batch { changes } => {
                // Each of them may evict what a single store may.
                let index_bytes = changes.len() as u64 * 2 * u64::from(packing.page_bytes());
                let heads = changes.iter().filter_map(batch::head_of);
                index_bytes + heads.map(|head| packing.bytes_charged(&head)).sum::<u64>()
            }
            Command::Flush => self.media.gathered.bytes(),
            _ => 0,
        })
    }
}
