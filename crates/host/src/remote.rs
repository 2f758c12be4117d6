//! A drive on the wire as a backend: the NVMe client, in a store's terms.

use crate::backend::Backend;
use crate::{Batch, Error, FirmwareStats, Stats, TrafficStats};
use kvssd_cache::{AttributesError, CacheAttributes, Counts};
use kvssd_device::CacheInfo;
use kvssd_ftl::{DramUse, NAME_BYTES_MAX, NamespaceAttributes, NamespaceInfo, Utilization};
use kvssd_nvme_client::{Client, Counters, DriveReport, DriveUrl, Error as ClientError};
use kvssd_nvme_spec::identify::IdentifyKvNamespace;
use kvssd_nvme_spec::log_page::{HEALTH_UNIT_BYTES, HealthPage};
use kvssd_nvme_spec::named::{CacheEntry, CreateNamespace, FLAG_ORDERED, NamespaceEntry, SetCache, read_name};
use kvssd_nvme_spec::statistics::StatisticsPage;
use kvssd_nvme_spec::{read_text, write_text};
use kvssd_types::{BatchChange, Command, IteratorId, IteratorOptions, NamespaceId, OwnedKey, Reply, StoreCondition};
use std::collections::{BTreeMap, BTreeSet};

/// A drive on the wire.
pub(crate) struct Remote(Client);

impl Remote {
    pub(crate) fn connect(url: &DriveUrl, is_read_only: bool) -> Result<Remote, Error> {
        Ok(Remote(Client::connect(url, is_read_only)?))
    }
}

impl Backend for Remote {
    fn execute(&self, namespace: NamespaceId, command: Command<'_>) -> Result<Option<Reply>, Error> {
        Ok(self.0.execute(namespace, &command)?)
    }

    fn execute_each(
        &self,
        commands: &mut dyn Iterator<Item = Result<(NamespaceId, Command<'_>), Error>>,
        answered: &mut dyn FnMut(usize, Option<Reply>),
    ) -> Result<(), Error> {
        let mut invalid = None;
        let mut valid = commands.map_while(|command| command.map_err(|error| invalid = Some(error)).ok());
        self.0.execute_all(&mut valid, answered)?;
        invalid.map_or(Ok(()), Err)
    }

    /// Commands of a queue have no order, so only the last change of each key is sent.
    fn bulk(&self, batch: &Batch, own: NamespaceId) -> Result<(), Error> {
        let changes = batch.last_changes(own)?;
        Ok(self.0.execute_all(&mut changes.into_iter().map(command_of), &mut |_, _| {})?)
    }

    fn salvage_keys(&self, _namespace: NamespaceId) -> Result<BTreeSet<OwnedKey>, Error> {
        Err(Error::Refused { why: "keys behind what cannot be read are told where the drive's image is".to_owned() })
    }

    fn create_iterators(&self) -> Result<BTreeMap<NamespaceId, IteratorId>, Error> {
        let ordered: Vec<NamespaceId> =
            self.namespaces()?.into_iter().filter(|info| info.is_ordered).map(|info| info.id).collect();
        if ordered.len() > 1 {
            let why = format!("a drive at a URL shows one namespace at a moment, and {} have an order", ordered.len());
            return Err(Error::Refused { why });
        }
        let begin = |namespace| match self
            .execute(namespace, Command::CreateIterator { options: IteratorOptions::default() })?
        {
            Some(Reply::IteratorCreated(iterator)) => Ok((namespace, iterator)),
            other => unreachable!("{other:?} does not answer the creation of an iterator"),
        };
        ordered.into_iter().map(begin).collect()
    }

    fn namespaces(&self) -> Result<Vec<NamespaceInfo>, Error> {
        match self.0.named_namespaces()? {
            Some(named) => {
                let caches = self.caches()?;
                let with_cache = |entry| with_cache(named_info(entry), &caches);
                Ok(named.iter().map(with_cache).collect())
            }
            None => Ok(self.0.namespaces()?.iter().map(|(id, identify)| namespace_info(*id, identify)).collect()),
        }
    }

    fn check_meant(&self, namespace: NamespaceId) -> Result<(), Error> {
        Ok(self.0.check_meant(namespace)?)
    }

    fn create_namespace(&self, attributes: NamespaceAttributes) -> Result<NamespaceId, Error> {
        let id = self.0.create_namespace(&wanted_of(&attributes)?)?;
        if let Some(cache) = &attributes.cache {
            let name = attributes.name.as_deref().unwrap_or_default();
            let set = self.0.set_cache(id, &cache_of(name, Some(cache)));
            if let Err(error) = set {
                // Without its cache, the namespace is not the one that was asked for.
                self.0.delete_namespace(id, name)?;
                return Err(error.into());
            }
        }
        Ok(id)
    }

    fn set_cache(&self, namespace: &NamespaceInfo, cache: Option<CacheAttributes>) -> Result<(), Error> {
        let name = namespace.attributes.name.as_deref().unwrap_or_default();
        if let Some(cache) = &cache {
            cache.check().map_err(|error| Error::InvalidOptions { why: error.to_string() })?;
        }
        Ok(self.0.set_cache(namespace.id, &cache_of(name, cache.as_ref()))?)
    }

    fn caches(&self) -> Result<Vec<(NamespaceId, CacheInfo)>, Error> {
        self.0.caches()?.iter().map(|entry| Ok((NamespaceId(entry.number.get()), cache_info(entry)?))).collect()
    }

    fn delete_namespace(&self, namespace: &NamespaceInfo) -> Result<(), Error> {
        let name = namespace.attributes.name.as_deref().unwrap_or_default();
        Ok(self.0.delete_namespace(namespace.id, name)?)
    }

    fn key_bytes_max(&self) -> Result<usize, Error> {
        Ok(self.0.key_bytes_max()?)
    }

    fn stats(&self) -> Result<Stats, Error> {
        Ok(stats(&self.0.report()?))
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        Ok(self.0.shut_down()?)
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::InvalidUrl(why) | ClientError::InvalidNamespace(why) => Error::InvalidOptions { why },
            ClientError::CapacityExceeded => Error::Full,
            ClientError::QuotaExceeded => Error::QuotaFull,
            ClientError::InvalidKey { key_bytes, key_bytes_max } => Error::InvalidKey { key_bytes, key_bytes_max },
            ClientError::InvalidValue { value_bytes, value_bytes_max } => {
                Error::InvalidValue { value_bytes, value_bytes_max }
            }
            ClientError::KeyNotFound => Error::KeyNotFound,
            ClientError::KeyExists => Error::KeyExists,
            ClientError::NoNamespace(name) => Error::NoNamespace { name },
            ClientError::TooManyNamespaces(why) => Error::TooManyNamespaces { why },
            ClientError::ReadOnly => Error::ReadOnly,
            ClientError::Refused(why) => Error::Refused { why },
            ClientError::Damaged(why) => Error::Damaged { why },
            ClientError::Io(why) => Error::Io { why },
            ClientError::Unreachable(why) => Error::Unreachable { why },
            ClientError::InDoubt(why) => Error::InDoubt { why },
        }
    }
}

fn command_of(change: BatchChange<'_>) -> (NamespaceId, Command<'_>) {
    let BatchChange { namespace, key, value } = change;
    let command = match value {
        Some(value) => Command::Store { key, value, condition: StoreCondition::Always },
        None => Command::Delete { key },
    };
    (namespace, command)
}

/// The command that creates such a namespace.
fn wanted_of(attributes: &NamespaceAttributes) -> Result<CreateNamespace, Error> {
    let NamespaceAttributes { name, index, parameters, quota_bytes, logs, is_ordered, cache } = attributes;
    let invalid = |why: &str| Err(Error::InvalidOptions { why: why.to_owned() });
    if let Some(error) = cache.as_ref().and_then(|cache| cache.check().err()) {
        return invalid(&error.to_string());
    }
    if !parameters.is_empty() || logs.is_some() {
        return invalid("parameters of an index and numbers of logs are chosen where the drive is, not over the wire");
    }
    let Some(name) = name else { return invalid("a namespace that is made over the wire needs a name") };
    let mut wanted = CreateNamespace::zeroed();
    let index = index.as_deref().unwrap_or_default();
    if name.is_empty() || name.len() > wanted.name.len() || name.chars().any(char::is_control) {
        return invalid(&format!("a name has 1 to {NAME_BYTES_MAX} bytes and is one line, unlike {name:?}"));
    }
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        return invalid(&format!("the name {name} would be taken for a number"));
    }
    if index.len() > wanted.index.len() || index.chars().any(char::is_control) {
        return invalid(&format!("there is no index {index:?}"));
    }
    wanted.quota_bytes = quota_bytes.unwrap_or(0).into();
    wanted.flags = if *is_ordered { FLAG_ORDERED } else { 0 }.into();
    write_text(&mut wanted.name, name);
    write_text(&mut wanted.index, index);
    Ok(wanted)
}

/// The command that makes a namespace such a cache.
fn cache_of(name: &str, cache: Option<&CacheAttributes>) -> SetCache {
    let mut wanted = SetCache::zeroed();
    write_text(&mut wanted.name, name);
    write_text(&mut wanted.cache, &cache.map(ToString::to_string).unwrap_or_default());
    wanted
}

/// A cache, as the page of caches tells of it.
fn cache_info(entry: &CacheEntry) -> Result<CacheInfo, Error> {
    let text = read_name(&entry.cache).unwrap_or_default();
    let damaged = |error: AttributesError| Error::Damaged { why: format!("the drive tells of a cache: {error}") };
    Ok(CacheInfo {
        attributes: text.parse().map_err(damaged)?,
        budget_bytes: entry.budget_bytes.get(),
        held_bytes: entry.held_bytes.get(),
        kept_bytes: entry.dram_bytes.get(),
        hits: entry.hits.get(),
        misses: entry.misses.get(),
        counts: Counts {
            admitted: entry.admitted.get(),
            kept_out: entry.kept_out.get(),
            evicted: entry.evicted.get(),
            expired: entry.expired.get(),
        },
    })
}

fn with_cache(mut info: NamespaceInfo, caches: &[(NamespaceId, CacheInfo)]) -> NamespaceInfo {
    let cache = caches.iter().find(|(id, _)| *id == info.id);
    info.attributes.cache = cache.map(|(_, cache)| cache.attributes.clone());
    info
}

/// A namespace, as the page of names tells of it.
fn named_info(entry: &NamespaceEntry) -> NamespaceInfo {
    let text = |field: &[u8]| read_name(field).map(str::to_owned);
    let attributes = NamespaceAttributes {
        name: text(&entry.name),
        quota_bytes: Some(entry.quota_bytes.get()).filter(|bytes| *bytes > 0),
        is_ordered: entry.flags.get() & FLAG_ORDERED != 0,
        ..NamespaceAttributes::PLAIN
    };
    let utilization = Utilization {
        pairs: entry.pairs.get(),
        pair_bytes: entry.pair_bytes.get(),
        live_bytes: entry.live_bytes.get(),
        capacity_bytes: entry.capacity_bytes.get(),
        ..Utilization::default()
    };
    NamespaceInfo {
        id: NamespaceId(entry.number.get()),
        is_ordered: attributes.is_ordered,
        attributes,
        birth: entry.birth().into(),
        index: text(&entry.index).unwrap_or_default().into(),
        utilization,
        pairs_max: None,
        dram: DramUse::default(),
    }
}

/// A namespace, as far as Identify tells of it.
fn namespace_info(id: NamespaceId, identify: &IdentifyKvNamespace) -> NamespaceInfo {
    let utilization = Utilization {
        live_bytes: identify.utilization_bytes.get(),
        capacity_bytes: identify.size_bytes.get(),
        ..Utilization::default()
    };
    NamespaceInfo {
        id,
        attributes: NamespaceAttributes::PLAIN,
        birth: 0,
        index: "".into(),
        is_ordered: false,
        utilization,
        pairs_max: None,
        dram: DramUse::default(),
    }
}

/// How full the drive is: by its own statistics where it is one of this project's, else by Identify and SMART.
fn stats(report: &DriveReport) -> Stats {
    let namespaces = || report.namespaces.iter().map(|(_, identify)| identify);
    let value_bytes_max = namespaces().map(|identify| identify.kv_formats[0].value_bytes_max.get()).max();
    let stats = Stats {
        design: report.model.clone(),
        live_bytes: namespaces().map(|identify| identify.utilization_bytes.get()).sum(),
        capacity_bytes: namespaces().map(|identify| identify.size_bytes.get()).sum(),
        value_bytes_max: value_bytes_max.unwrap_or(0).into(),
        batch_bytes_max: 0,
        batch_value_bytes_max: 0,
        batch_changes_max: 0,
        queue_depth: Some(report.queue_depth),
        has_failed: report.has_failed,
        staging_note: None,
        firmware: None,
        traffic: None,
    };
    match &report.counters {
        Counters::Statistics(page) => with_statistics(&stats, page),
        Counters::Health(page) => Stats { traffic: Some(traffic(page)), ..stats },
        Counters::None => stats,
    }
}

fn traffic(page: &HealthPage) -> TrafficStats {
    let number = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
    let bytes = |units: u128| number(units).saturating_mul(HEALTH_UNIT_BYTES);
    TrafficStats {
        changes: number(page.writes.get()),
        lookups: number(page.reads.get()),
        stored_bytes: bytes(page.units_written.get()),
        retrieved_bytes: bytes(page.units_read.get()),
        processor_ns: None,
    }
}

fn with_statistics(stats: &Stats, page: &StatisticsPage) -> Stats {
    // A host that does not see all namespaces is told nothing of what is done to the drive: there, zeros are no figures.
    let tells_all = page.processor_ns.get() > 0 || page.blocks.get() > 0;
    Stats {
        design: read_text(&page.design).unwrap_or_default().to_owned(),
        live_bytes: page.live_bytes.get(),
        capacity_bytes: page.capacity_bytes.get(),
        staging_note: None,
        firmware: Some(FirmwareStats {
            pairs: page.pairs.get(),
            pair_bytes: page.pair_bytes.get(),
            flash_bytes: page.flash_bytes.get(),
            dram_bytes: page.dram_bytes.get(),
            dram_bytes_max: page.dram_bytes_max.get(),
            page_bytes: page.page_bytes.get(),
            pages_read: page.pages_read.get(),
            pages_programmed: page.pages_programmed.get(),
            pairs_moved: page.pairs_moved.get(),
            erases: page.erases.get(),
            blocks: page.blocks.get(),
            erases_max: page.erases_max.get(),
        }),
        traffic: tells_all.then(|| TrafficStats {
            changes: page.changes.get(),
            lookups: page.lookups.get(),
            stored_bytes: page.stored_bytes.get(),
            retrieved_bytes: page.retrieved_bytes.get(),
            processor_ns: Some(page.processor_ns.get()).filter(|time| *time > 0),
        }),
        ..*stats
    }
}
