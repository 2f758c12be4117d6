//! What a drive says of itself.

use super::{Engine, GrowthCounters};
use crate::commands::batch;
use crate::dram::DramUse;
use crate::gc::GcCounters;
use crate::index::IndexCounters;
use crate::io::lack::Lack;
use crate::io::spent::Spent;
use crate::iterators::IteratorPlan;
use crate::space::utilization::Utilization;
use kvssd_flash::timing::Recording;
use kvssd_flash::{Counters, Geometry};
use kvssd_types::{BatchChange, IteratorId, KvError, NamespaceId, Nanos};

impl Engine {
    /// How the flash is divided.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.media.space.geometry
    }

    /// The largest value that a store takes, and the most bytes of keys and values of a batch.
    #[must_use]
    pub fn value_bytes_max(&self) -> u64 {
        self.limits.value_bytes_max
    }

    /// Checks that the drive takes a batch of that size, and that each key occurs once.
    ///
    /// # Errors
    /// [`KvError::BatchTooLarge`], [`KvError::InvalidCommand`].
    pub fn check_batch(&self, changes: &[BatchChange<'_>]) -> Result<(), KvError> {
        batch::check(&self.media.space.geometry, &self.limits, changes)
    }

    /// What the last command lacked that was refused with [`KvError::CapacityExceeded`], as far as it was checked; empty if none was refused.
    #[must_use]
    pub fn lacks(&self) -> &[Lack] {
        &self.lacks
    }

    /// Bytes of flash that pairs may still take; what deleted namespaces still hold counts as free.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.media.space.capacity_bytes().saturating_sub(self.namespaces.living_bytes())
    }

    /// The most changes of a batch.
    #[must_use]
    pub fn batch_changes_max(&self) -> usize {
        batch::changes_max(&self.media.space.geometry)
    }

    /// See [`Backing::staging_note`](kvssd_flash::Backing::staging_note).
    #[must_use]
    pub fn staging_note(&self) -> Option<&str> {
        self.media.flash.backing().staging_note()
    }

    /// Where the time of the last command went, from its beginning in the firmware to its answer.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// How full the drive is.
    #[must_use]
    pub fn utilization(&self) -> Utilization {
        let grain_bytes = u64::from(self.media.space.packing.grain_bytes);
        Utilization {
            live_bytes: self.media.space.superblocks.live_grains() * grain_bytes,
            capacity_bytes: self.media.space.capacity_bytes(),
            ..self.namespaces.utilization()
        }
    }

    /// How long dies, channels and cores were reserved so far, including reservations that lie ahead.
    #[must_use]
    pub fn busy(&self) -> [(&'static str, Vec<Nanos>); 3] {
        let (dies, channels) = self.media.flash.busy();
        [("dies", dies), ("channels", channels), ("cores", self.media.controller.cores.busy().collect())]
    }

    /// The recorder of what dies, channels and cores are used for, and what commands wait for.
    pub fn recording(&mut self) -> &mut Recording {
        self.media.flash.recording()
    }

    /// Operations on flash so far.
    #[must_use]
    pub fn flash_counters(&self) -> &Counters {
        self.media.flash.counters()
    }

    /// Free superblocks, including those that garbage collection keeps for itself.
    #[must_use]
    pub fn free_superblocks(&self) -> usize {
        self.media.space.superblocks.free()
    }

    /// The erase count of each block of the log, without the blocks of the system superblock.
    pub fn erases(&self) -> impl Iterator<Item = u32> {
        self.media.flash.erases().skip(self.media.space.geometry.target_dies() as usize)
    }

    /// What all indexes counted so far.
    #[must_use]
    pub fn index_counters(&self) -> IndexCounters {
        self.namespaces.counters()
    }

    /// What garbage collection did so far.
    #[must_use]
    pub fn gc_counters(&self) -> GcCounters {
        self.collector.counters
    }

    /// How often and for how long work of the indexes' own kept commands out so far.
    #[must_use]
    pub fn growth_counters(&self) -> GrowthCounters {
        self.growth
    }

    /// Whether that namespace keeps keys in order.
    #[must_use]
    pub fn is_ordered(&self, namespace: NamespaceId) -> bool {
        self.namespaces.get(namespace).is_some_and(|namespace| namespace.is_ordered)
    }

    /// Makes iterators read ahead by `plan` from their next command on, as far as the design has memory for it.
    pub fn set_iterator_plan(&mut self, plan: IteratorPlan) {
        self.namespaces.iter_mut().for_each(|namespace| namespace.iterators.set_plan(plan));
    }

    /// The times that iterators of the first namespace measured last (IterKVSSD, section 4.5): that of a read of a
    /// value (T_d), and the rest of the time between two pairs (T_A + T_e + T_wait).
    #[must_use]
    pub fn iterator_times(&self) -> (Nanos, Nanos) {
        self.namespaces.get(NamespaceId::FIRST).map_or_else(Default::default, |first| first.iterators.times())
    }

    /// Iterators that live.
    #[must_use]
    pub fn iterators(&self) -> usize {
        self.namespaces.iter().map(|namespace| namespace.iterators.count()).sum()
    }

    /// The oldest iterator that lives: those that were made later have larger numbers.
    #[must_use]
    pub fn oldest_iterator(&self) -> Option<IteratorId> {
        self.namespaces.iter().filter_map(|namespace| namespace.iterators.oldest_id()).min()
    }

    /// DRAM by part.
    #[must_use]
    pub fn dram(&self) -> DramUse {
        let mut dram = DramUse::default();
        self.media.dram(&mut dram);
        self.namespaces.dram(&mut dram);
        if self.beside_bytes > 0 {
            dram.add("cache", self.beside_bytes);
        }
        dram
    }

    /// The budget that [`Engine::dram`] keeps to.
    #[must_use]
    pub fn dram_budget_bytes(&self) -> u64 {
        self.limits.dram_bytes
    }

    /// Checks what must hold between commands.
    ///
    /// # Panics
    /// When it does not.
    pub fn check_invariants(&self) {
        let live: u64 = self.media.space.superblocks.all().iter().map(|superblock| superblock.live_grains).sum();
        assert_eq!(
            live,
            self.media.space.superblocks.live_grains(),
            "the sum of living grains is that of the superblocks"
        );
        let geometry = &self.media.space.geometry;
        let programmed = self.media.flash.counters().programs.total();
        let dies: u64 = self.media.flash.counters().die_programs.iter().sum();
        assert_eq!(programmed, dies, "every program has a cause and a die");
        let pages_now = self.media.flash.pages_programmed();
        let erased = self.media.flash.pages_erased();
        let before = self.media.flash.pages_brought();
        assert_eq!(before + programmed, pages_now + erased, "every page that was programmed is there or was erased");
        assert!(pages_now <= geometry.pages());
    }
}
