//! Administration of namespaces: creates, deletes and lists them.
//!
//! ```text
//!   create   an empty index, a note in the journal
//!   delete   gone for hosts at once -> pairs are removed, a few in a step, as deletes do -> the index's records
//!            -> a checkpoint: the number is free. A create that finds no number free waits for all of that
//! ```

use super::Engine;
use crate::io::Io;
use crate::journal::Change;
use crate::journal::attributes::NamespaceAttributes;
use crate::layout::packing::RecordLayout;
use crate::namespace::{Namespace, NamespaceFate, NamespaceInfo, Namespaces};
use crate::space::utilization::Utilization;
use kvssd_cache::CacheAttributes;
use kvssd_types::{KvError, NamespaceId, Nanos};

impl Engine {
    /// Makes a namespace at `at`; returns when it is there, and its number.
    ///
    /// # Errors
    /// [`KvError::InvalidNamespace`] with what cannot be, [`KvError::TooManyNamespaces`] when the design has no more or
    /// their indexes would take more DRAM than there is.
    pub fn create_namespace(
        &mut self,
        attributes: NamespaceAttributes,
        at: Nanos,
    ) -> (Nanos, Result<NamespaceId, KvError>) {
        self.create_namespace_at(None, attributes, at)
    }

    /// Like [`Engine::create_namespace`], under a free number ([`Engine::free_numbers`]); `None` takes the first free one.
    ///
    /// # Errors
    /// As [`Engine::create_namespace`].
    pub fn create_namespace_at(
        &mut self,
        id: Option<NamespaceId>,
        attributes: NamespaceAttributes,
        at: Nanos,
    ) -> (Nanos, Result<NamespaceId, KvError>) {
        // A quota of 0 bytes means no quota, as on the wire.
        let quota_bytes = attributes.quota_bytes.filter(|bytes| *bytes > 0);
        let attributes = NamespaceAttributes { quota_bytes, ..attributes };
        let created = self.administer_for(at, |engine| match engine.create(id, attributes.clone(), at) {
            // Deleted namespaces may still hold the number or the DRAM that is wanted.
            Err(KvError::TooManyNamespaces { .. }) if engine.namespaces.holds_numbers() => {
                engine.finish_removals(at).and_then(|at| engine.create(id, attributes, at))
            }
            created => created,
        });
        self.share_anew();
        created
    }

    /// Does `work` unless the engine has failed. Returns when it is done, and its result.
    pub(super) fn administer_for<T>(
        &mut self,
        at: Nanos,
        work: impl FnOnce(&mut Engine) -> Result<(Nanos, T), KvError>,
    ) -> (Nanos, Result<T, KvError>) {
        let worked = self.check_available().and_then(|()| work(self));
        self.note_failure(&worked);
        match worked {
            Ok((done, given)) => (done, Ok(given)),
            Err(error) => (at, Err(error)),
        }
    }

    /// The same, for work without a result.
    pub(super) fn administer(
        &mut self,
        at: Nanos,
        work: impl FnOnce(&mut Engine) -> Result<Nanos, KvError>,
    ) -> (Nanos, Result<(), KvError>) {
        self.administer_for(at, |engine| work(engine).map(|done| (done, ())))
    }

    pub(super) fn share_anew(&mut self) {
        self.dram_shared = 0;
        self.share_dram();
        self.share_logs();
    }

    /// The free numbers for new namespaces, in order. If there are none, [`Engine::free_all_numbers`] frees those of deleted
    /// namespaces.
    #[must_use]
    pub fn free_numbers(&self) -> Vec<NamespaceId> {
        self.namespaces.free_ids().collect()
    }

    /// Whether a namespace of that number and name was deleted, and its number is not free yet.
    #[must_use]
    pub fn has_deleted(&self, id: NamespaceId, name: Option<&str>) -> bool {
        self.namespaces.has_deleted(id, name)
    }

    /// Sets whether deleted namespaces keep their pairs and their numbers for now. A drive in several partitions needs that when it is opened,
    /// until all partitions know what one of them has deleted.
    pub fn keep_deleted(&mut self, keeps: bool) {
        self.namespaces.keep_deleted(keeps);
    }

    /// Removes what is left of deleted namespaces, so that their numbers are free. Returns when that is done.
    ///
    /// # Errors
    /// What the flash operations answer.
    pub fn free_all_numbers(&mut self, at: Nanos) -> (Nanos, Result<(), KvError>) {
        self.administer(
            at,
            |engine| if engine.namespaces.holds_numbers() { engine.finish_removals(at) } else { Ok(at) },
        )
    }

    fn create(
        &mut self,
        id: Option<NamespaceId>,
        attributes: NamespaceAttributes,
        at: Nanos,
    ) -> Result<(Nanos, NamespaceId), KvError> {
        self.namespaces.check(&attributes).map_err(KvError::InvalidNamespace)?;
        let first = |namespaces: &Namespaces| namespaces.free_ids().find(|free| id.is_none_or(|id| id == *free));
        let namespaces = self.namespaces.iter().count() as u32;
        let id = first(&self.namespaces).ok_or(KvError::TooManyNamespaces { namespaces })?;
        let kind = self.namespaces.create(id, attributes.clone()).map_err(KvError::InvalidNamespace)?;
        let needed = self.dram().kept_bytes() + self.namespaces.iter().count() as u64 * self.least_bytes();
        if needed > self.dram_budget_bytes() {
            self.namespaces.withdraw(id);
            return Err(KvError::TooManyNamespaces { namespaces: self.namespaces.iter().count() as u32 });
        }
        let attributes = match self.media.durable.is_on() {
            // A number is reused only behind a checkpoint, whose pages count: no other namespace of this number has this birth.
            true => attributes.with_birth(self.media.durable.journal.number + 1),
            false => attributes,
        };
        self.namespaces.living(id)?.attributes = attributes.clone();
        let done =
            self.note_at(at, Change::Created { namespace: id.0, attributes: attributes.into(), kind: kind.into() })?;
        Ok((done, id))
    }

    /// DRAM that an index needs to work at all: a few pages.
    fn least_bytes(&self) -> u64 {
        4 * u64::from(self.geometry().page_bytes)
    }

    /// Deletes a namespace at `at`. When this is done, hosts do not see it any more; its pairs are removed in the
    /// background.
    ///
    /// # Errors
    /// [`KvError::NoSuchNamespace`], and what the flash operations answer.
    pub fn delete_namespace(&mut self, id: NamespaceId, at: Nanos) -> (Nanos, Result<(), KvError>) {
        self.administer(at, |engine| engine.delete(id, at))
    }

    fn delete(&mut self, id: NamespaceId, at: Nanos) -> Result<Nanos, KvError> {
        if self.media.space.packing.layout == RecordLayout::Blocks {
            return Err(KvError::InvalidNamespace("a block drive keeps its one".to_owned()));
        }
        self.namespaces.living(id)?.fate = NamespaceFate::Dies(None);
        self.end_iterators(id)?;
        self.note_at(at, Change::Deleted { namespace: id.0 })
    }

    /// Maps a namespace to `logs` logs from `at` on, `None` for all; what was written stays where it is. Returns when that is
    /// done.
    ///
    /// # Errors
    /// [`KvError::NoSuchNamespace`], and what the flash operations answer.
    pub fn set_logs(&mut self, id: NamespaceId, logs: Option<u32>, at: Nanos) -> (Nanos, Result<(), KvError>) {
        self.administer(at, |engine| engine.assign(id, logs, at))
    }

    fn assign(&mut self, id: NamespaceId, logs: Option<u32>, at: Nanos) -> Result<Nanos, KvError> {
        self.namespaces.living(id)?.attributes.logs = logs;
        self.share_logs();
        self.note_at(at, Change::Assigned { namespace: id.0, logs })
    }

    /// Sets, at `at`, which cache a namespace is, if any. It must be empty to become a cache or to stop being one. Returns when that is done.
    ///
    /// # Errors
    /// [`KvError::NoSuchNamespace`], [`KvError::InvalidNamespace`] with what cannot be, and what the flash operations answer.
    pub fn set_cache(
        &mut self,
        id: NamespaceId,
        cache: Option<CacheAttributes>,
        at: Nanos,
    ) -> (Nanos, Result<(), KvError>) {
        self.administer(at, |engine| engine.make_cache(id, cache, at))
    }

    fn make_cache(&mut self, id: NamespaceId, cache: Option<CacheAttributes>, at: Nanos) -> Result<Nanos, KvError> {
        let takes_blocks = self.media.space.packing.layout == RecordLayout::Blocks;
        let namespace = self.namespaces.living(id)?;
        let wanted = NamespaceAttributes { cache: cache.clone(), ..namespace.attributes.clone() };
        wanted.check().map_err(KvError::InvalidNamespace)?;
        let becomes_other = cache.is_some() != namespace.attributes.cache.is_some();
        if takes_blocks || becomes_other && namespace.utilization.pairs > 0 {
            let why = if takes_blocks { "a block drive has no cache" } else { "what has pairs stays a cache, or none" };
            return Err(KvError::InvalidNamespace(why.to_owned()));
        }
        if becomes_other {
            self.end_iterators(id)?;
        }
        let text = cache.as_ref().map(ToString::to_string);
        self.namespaces.living(id)?.attributes.cache = cache;
        let done = self.note_at(at, Change::Cached { namespace: id.0, cache: text })?;
        if !self.media.durable.is_on() {
            return Ok(done);
        }
        // A checkpoint follows: a program that does not know this change refuses the checkpoint.
        self.collector.clock = self.collector.clock.max(done);
        if self.finish_victims()? {
            self.checkpoint(false)?;
        }
        Ok(self.collector.clock)
    }

    fn end_iterators(&mut self, id: NamespaceId) -> Result<(), KvError> {
        self.work_on(id, |io, namespace| {
            while namespace.iterators.expire(io, namespace.index.as_mut())? {}
            Ok(())
        })
    }

    /// Keeps `bytes` of DRAM beside the firmware from here on, for the bookkeeping of namespaces that are caches.
    pub fn keep_beside(&mut self, bytes: u64) {
        if bytes != self.beside_bytes {
            self.beside_bytes = bytes;
            self.share_dram();
        }
    }

    /// Tells the logs which namespaces use them.
    pub(super) fn share_logs(&mut self) {
        let wanted = self.namespaces.iter().map(|namespace| (namespace.id, namespace.attributes.logs));
        self.media.log.placement.share(wanted);
    }

    /// The namespaces that hosts see, in the order of their numbers.
    #[must_use]
    pub fn namespaces(&self) -> Vec<NamespaceInfo> {
        self.namespaces.iter().filter(|namespace| namespace.lives()).map(|namespace| self.info(namespace)).collect()
    }

    fn info(&self, namespace: &Namespace) -> NamespaceInfo {
        let mut dram = crate::DramUse::default();
        namespace.index.dram(&mut dram);
        let all = self.utilization();
        let capacity_bytes =
            namespace.attributes.quota_bytes.map_or(all.capacity_bytes, |quota| quota.min(all.capacity_bytes));
        let live_bytes = namespace.utilization.record_bytes + namespace.index.footprint_bytes();
        let (attributes, birth) = namespace.attributes.clone().split_birth();
        NamespaceInfo {
            id: namespace.id,
            attributes,
            birth,
            index: namespace.kind.plan().name().into(),
            is_ordered: namespace.is_ordered,
            utilization: Utilization { live_bytes, capacity_bytes, ..namespace.utilization },
            pairs_max: self.namespaces.pairs_max(&namespace.kind),
            dram,
        }
    }

    /// Bytes of flash that the records of a namespace take, in whole grains; 0 when there is none.
    #[must_use]
    pub fn record_bytes(&self, namespace: NamespaceId) -> u64 {
        self.namespaces.get(namespace).map_or(0, |namespace| namespace.utilization.record_bytes)
    }

    pub(super) fn note_at(&mut self, at: Nanos, change: Change) -> Result<Nanos, KvError> {
        let mut io = Io::new(&mut self.media, at, false);
        io.cpu(io.costs().command_ns);
        io.note(change);
        let done = io.make_durable()?;
        self.commit_journal(done)?;
        Ok(done)
    }
}
