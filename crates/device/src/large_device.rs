//! A measured drive that takes values larger than a record, in segments, as a drive in a file does.

use crate::cached::{CacheInfo, Caches, STAMP_BYTES, Whole};
use crate::clocked::Clocked;
use crate::large::{LARGE_VALUE_BYTES_MAX, LargeValues};
use crate::{Completion, Device};
use kvssd_cache::CacheAttributes;
use kvssd_flash::{Backing, Profile};
use kvssd_ftl::{Design, DesignError};
use kvssd_types::{Command, Key, KvError, NamespaceId, Nanos, OwnedKey};

/// The fewest namespaces of a drive of large values: the first, and that of its segments.
const NAMESPACES_MIN: u32 = 2;

/// A drive.
pub struct LargeDevice {
    clocked: Clocked,
    /// When it was ready. A command at time 0 arrives then.
    began: Nanos,
    large: Option<LargeValues>,
    caches: Caches,
}

impl LargeDevice {
    /// A new drive, as [`Device::new`]. If `value_bytes_max` is more than a record holds, up to [`LARGE_VALUE_BYTES_MAX`], large values are kept in
    /// segments.
    ///
    /// # Errors
    /// When the design does not fit the hardware, or cannot keep segments.
    pub fn new(
        design: &Design,
        profile: &Profile,
        backing: Box<dyn Backing>,
        value_bytes_max: Option<u32>,
    ) -> Result<Self, DesignError> {
        if let Some(bytes) = value_bytes_max.filter(|bytes| *bytes > LARGE_VALUE_BYTES_MAX) {
            let why = format!("values have {LARGE_VALUE_BYTES_MAX} bytes at the most, and not {bytes}");
            return Err(DesignError::Parameter { key: "value_bytes_max".to_owned(), why });
        }
        let of_record = design.value_bytes_max(&profile.geometry);
        let value_bytes_max = value_bytes_max.filter(|bytes| u64::from(*bytes) > of_record);
        let namespaces_max = value_bytes_max.map_or(0, |_| NAMESPACES_MIN).max(design.namespaces_max);
        let device = Device::new(&Design { namespaces_max, ..design.clone() }, profile, backing)?;
        let mut clocked = Clocked::new(device, Nanos::ZERO);
        let large = value_bytes_max.map(|bytes| LargeValues::open(bytes, &mut clocked, false)).transpose()?;
        let began = clocked.clock();
        let engine = clocked.device.engine();
        let most = large.as_ref().map_or(engine.value_bytes_max(), |large| large.value_bytes_max.into());
        let caches = Caches::measured(engine, most);
        Ok(LargeDevice { clocked, began, large, caches })
    }

    /// Makes the first namespace a cache before anything is stored. An eviction costs what a delete costs, and the policy's memory is charged to
    /// the DRAM. The caller also has to [ask](Self::take_left) for the evicted keys.
    ///
    /// # Errors
    /// As [`Engine::set_cache`](kvssd_ftl::Engine::set_cache).
    pub fn make_cache(&mut self, cache: &CacheAttributes) -> Result<(), KvError> {
        self.clocked.set_cache(NamespaceId::FIRST, Some(cache.clone()))?;
        self.caches.set(NamespaceId::FIRST, Some(cache.clone()), None);
        let whole = &mut Whole { large: self.large.as_mut(), records: &mut self.clocked };
        self.caches.share_dram(whole)?;
        self.began = self.clocked.clock();
        Ok(())
    }

    /// The keys of the pairs that were evicted or kept out since the last call.
    pub fn take_left(&mut self) -> Vec<OwnedKey> {
        self.caches.take_left()
    }

    /// What the cache holds, and what happened; `None` without a cache.
    #[must_use]
    pub fn cache(&self) -> Option<CacheInfo> {
        self.caches.info(NamespaceId::FIRST)
    }

    /// Executes a command of the first namespace that arrives at `arrival`, as [`Device::submit`].
    ///
    /// # Panics
    /// When a command was submitted that arrived later.
    pub fn submit(&mut self, command: Command<'_>, arrival: Nanos) -> Completion {
        let LargeDevice { clocked, began, large, caches } = self;
        if large.is_none() && caches.is_empty() {
            return clocked.device.submit(command, arrival);
        }
        let mut arrival = clocked.arrive(*began + arrival);
        let at = arrival.at();
        let mut whole = Whole { large: large.as_mut(), records: &mut arrival };
        let reply = caches.execute_as(&mut whole, (None, NamespaceId::FIRST), command, at);
        Completion { done: arrival.done() - *began, reply }
    }

    /// Tells the machine's memory which keys will be wanted, as [`Device::expect`].
    pub fn expect(&mut self, keys: &[Key<'_>]) {
        self.clocked.device.expect(keys);
    }

    /// The largest value in bytes.
    #[must_use]
    pub fn value_bytes_max(&self) -> u64 {
        let most =
            self.large.as_ref().map_or(self.device().engine().value_bytes_max(), |large| large.value_bytes_max.into());
        if self.caches.is_empty() { most } else { most - u64::from(STAMP_BYTES) }
    }

    /// What keeps the records.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.clocked.device
    }

    /// The device, when no command will come any more.
    #[must_use]
    pub fn into_device(self) -> Device {
        self.clocked.device
    }
}
