//! A namespace of a store: the calls on its keys.
//!
//! ```text
//!   Store       namespace("accounts")  ->  Namespace    store, retrieve, delete, exist, list, keys, pairs, range
//!     |                                       |
//!   Backend     executes commands  <----------+
//! ```

use crate::{Error, Keys, Pairs, Range, RangeCursor, Store};
use kvssd_cache::CacheAttributes;
use kvssd_device::CacheInfo;
use kvssd_ftl::NamespaceInfo;
use kvssd_types::{Command, IteratorOptions, Key, NamespaceId, Reply, StoreCondition, Value};
use std::collections::BTreeSet;

/// A namespace of a store: a key space of its own, with the calls of a store. After this store has deleted it, calls fail or go to a new
/// namespace with its number; after another host has, they fail.
#[derive(Clone, Copy)]
pub struct Namespace<'a> {
    store: &'a Store,
    id: NamespaceId,
}

impl<'a> Namespace<'a> {
    pub(crate) fn new(store: &'a Store, id: NamespaceId) -> Self {
        Namespace { store, id }
    }

    pub(crate) fn store_of(&self) -> &'a Store {
        self.store
    }

    /// Its number in this store, for batches and transactions: the drive's, or one from 1001 on ([`Store::namespaces`]).
    #[must_use]
    pub fn id(&self) -> NamespaceId {
        self.id
    }

    /// Its attributes, and how full it is.
    ///
    /// # Errors
    /// [`Error::NoNamespace`], [`Error::Failed`].
    pub fn info(&self) -> Result<NamespaceInfo, Error> {
        let found = self.store.namespaces()?.into_iter().find(|info| info.id == self.id);
        self.store.drive()?.check_meant(self.id)?;
        found.ok_or_else(|| Error::NoNamespace { name: self.id.to_string() })
    }

    /// Sets which cache it is. A cache keeps its pairs; a namespace must be empty to become a cache or to stop being one. A cache never refuses a
    /// pair that fits its budget: its policy evicts others. A pair that its rules find not worth a write is answered as if stored, but is not there.
    ///
    /// # Errors
    /// [`Error::InvalidOptions`] with the impossible attribute, [`Error::Refused`] from a drive without caches and while a
    /// [`PairCache`](crate::PairCache) is open in it, and as [`Namespace::store`].
    pub fn set_cache(&self, cache: Option<&CacheAttributes>) -> Result<(), Error> {
        self.store.check_owner()?;
        if cache.is_some() && self.store.lives().hold().is_claimed(self.id) {
            let why = format!("namespace {}: this store has a cache open in it; close that one first", self.id);
            return Err(Error::Refused { why });
        }
        self.store.drive()?.set_cache(&self.info()?, cache.cloned())
    }

    /// What it holds as a cache, and what happened since the drive was opened or the cache was changed; `None` if it is no cache.
    ///
    /// # Errors
    /// As [`Namespace::info`].
    pub fn cache(&self) -> Result<Option<CacheInfo>, Error> {
        self.store.check_owner()?;
        self.info()?;
        let caches = self.store.drive()?.caches()?;
        Ok(caches.into_iter().find(|(id, _)| *id == self.id).map(|(_, cache)| cache))
    }

    /// The number of pairs. On a drive of another make all keys are listed and counted.
    ///
    /// # Errors
    /// As [`Namespace::info`] and [`Namespace::retrieve`].
    pub fn count(&self) -> Result<u64, Error> {
        let info = self.info()?;
        // Identify has no number of pairs, and no index.
        if !info.index.is_empty() {
            return Ok(info.utilization.pairs);
        }
        self.keys(None).try_fold(0, |count, key| key.map(|_| count + 1))
    }

    /// Stores `value` under `key`, new or not.
    ///
    /// # Errors
    /// As [`Store::store`], and [`Error::NoNamespace`].
    pub fn store(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.store_if(key, value, StoreCondition::Always)
    }

    /// Stores `value` under `key` if the key exists, or if it does not.
    ///
    /// # Errors
    /// [`Error::KeyNotFound`], [`Error::KeyExists`], and as [`Namespace::store`].
    pub fn store_if(&self, key: &[u8], value: &[u8], condition: StoreCondition) -> Result<(), Error> {
        let key = Key::new(key)?;
        // The copy is made before the drive is locked.
        let value = Value::from(value);
        self.store.execute_in(self.id, Command::Store { key, value, condition }).map(|_| ())
    }

    /// The value of `key`, if there is one.
    ///
    /// # Errors
    /// As [`Store::retrieve`], and [`Error::NoNamespace`].
    pub fn retrieve(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.retrieve_part(key, 0, u32::MAX)
    }

    /// [`Namespace::retrieve`] without a copy.
    ///
    /// # Errors
    /// As [`Namespace::retrieve`].
    pub fn retrieve_value(&self, key: &[u8]) -> Result<Option<Value>, Error> {
        self.value(Key::new(key)?, 0, u32::MAX)
    }

    /// At most `length_bytes` bytes of the value of `key`, from `offset_bytes` on; empty behind the value's end, `None`
    /// without a value.
    ///
    /// # Errors
    /// As [`Namespace::retrieve`].
    pub fn retrieve_part(&self, key: &[u8], offset_bytes: u32, length_bytes: u32) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.value(Key::new(key)?, offset_bytes, length_bytes)?.map(|value| value.to_vec()))
    }

    /// Copies the value of `key` from `offset_bytes` on to `buffer`, as much as fits. Returns the length of the whole
    /// value, `None` without one; with an empty buffer nothing is copied.
    ///
    /// # Errors
    /// As [`Namespace::retrieve`].
    pub fn retrieve_into(&self, key: &[u8], offset_bytes: u32, buffer: &mut [u8]) -> Result<Option<u32>, Error> {
        let length_bytes = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let command = Command::Retrieve { key: Key::new(key)?, offset_bytes, length_bytes };
        Ok(self.ask(command)?.map(|reply| match reply {
            Reply::Retrieved { value, value_bytes } => {
                match &value {
                    Value::Bytes(bytes) => buffer[..bytes.len()].copy_from_slice(bytes),
                    described @ Value::Pattern(_) => buffer[..described.len()].copy_from_slice(&described.to_vec()),
                }
                value_bytes
            }
            other => unreachable!("{other:?} does not answer a retrieve"),
        }))
    }

    /// [`Namespace::retrieve_part`] without a copy.
    pub(crate) fn value(&self, key: Key<'_>, offset_bytes: u32, length_bytes: u32) -> Result<Option<Value>, Error> {
        let command = Command::Retrieve { key, offset_bytes, length_bytes };
        Ok(self.ask(command)?.map(value_of))
    }

    /// Calls back with the index of each key and its value. On the wire as many commands are outstanding as the queue
    /// takes, and values come in any order. Keys are taken from the iterator when there is room.
    ///
    /// # Errors
    /// As [`Namespace::retrieve`]. Values of other keys may be missing then.
    pub fn retrieve_each<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k [u8]>,
        mut see: impl FnMut(usize, Option<Vec<u8>>),
    ) -> Result<(), Error> {
        let mut commands = keys.into_iter().map(|key| {
            Ok((self.id, Command::Retrieve { key: Key::new(key)?, offset_bytes: 0, length_bytes: u32::MAX }))
        });
        let mut answered = |number, reply: Option<Reply>| see(number, reply.map(|reply| value_of(reply).to_vec()));
        self.store.drive()?.execute_each(&mut commands, &mut answered)
    }

    /// Stores pairs of different keys, and calls back with the index of each that is safe. On the wire as many commands
    /// are outstanding as the queue takes. Pairs are taken from the iterator when there is room.
    ///
    /// # Errors
    /// As [`Namespace::store`]. Any other pair may be stored or not then.
    pub fn store_each<'k>(
        &self,
        pairs: impl IntoIterator<Item = (&'k [u8], impl Into<Value>)>,
        mut stored: impl FnMut(usize),
    ) -> Result<(), Error> {
        let mut commands = pairs.into_iter().map(|(key, value)| {
            let (key, value, condition) = (Key::new(key)?, value.into(), StoreCondition::Always);
            Ok((self.id, Command::Store { key, value, condition }))
        });
        self.store.drive()?.execute_each(&mut commands, &mut |number, _| stored(number))
    }

    /// Removes `key` and its value; returns whether it existed.
    ///
    /// # Errors
    /// As [`Namespace::store`].
    pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        let key = Key::new(key)?;
        self.store.execute_in(self.id, Command::Delete { key }).map(|reply| reply.is_some())
    }

    /// Whether `key` exists.
    ///
    /// # Errors
    /// As [`Namespace::retrieve`].
    pub fn exist(&self, key: &[u8]) -> Result<bool, Error> {
        let key = Key::new(key)?;
        Ok(self.ask(Command::Exist { key })?.is_some())
    }

    /// At most `count` keys in the index's own order, from `from` or the next key on. The order is stable while no key
    /// is stored or deleted. A drive on the wire gives 4096 at the most, and fewer than `count` need not be all then: [`Namespace::keys`] goes to
    /// the end.
    ///
    /// # Errors
    /// As [`Namespace::retrieve`].
    pub fn list(&self, from: Option<&[u8]>, count: usize) -> Result<Vec<Box<[u8]>>, Error> {
        let from = from.map(Key::new).transpose()?;
        match self.ask(Command::List { from, keys_max: count })? {
            Some(Reply::Listed(keys)) => Ok(keys),
            other => unreachable!("{other:?} does not answer a list"),
        }
    }

    /// At most `count` keys in descending order, from `from` or the next lesser key on.
    ///
    /// # Errors
    /// As [`Namespace::range`] and the items of a [`Range`].
    pub fn list_descending(&self, from: Option<&[u8]>, count: u32) -> Result<Vec<Box<[u8]>>, Error> {
        let key = from.map(Key::new).transpose()?;
        let options = IteratorOptions { descending: true, keys_only: true, ..IteratorOptions::default() };
        let mut cursor = RangeCursor::new(*self, &options)?;
        let pairs = cursor.take_from(*self, key, count);
        cursor.end(*self);
        Ok(pairs?.into_iter().map(|(key, _)| key).collect())
    }

    /// All keys from `from` on, in the order of [`Namespace::list`]. A key that exists all the time comes once; one
    /// that is stored or deleted meanwhile may come or not.
    #[must_use]
    pub fn keys(&self, from: Option<&[u8]>) -> Keys<'a> {
        Keys::new(*self, from)
    }

    /// All pairs, in the order of [`Namespace::keys`].
    #[must_use]
    pub fn pairs(&self) -> Pairs<'a> {
        Pairs::new(*self)
    }

    /// The keys that are still known although some pages cannot be read, where [`Namespace::keys`] ends with [`Error::Damaged`]. Keys whose record
    /// or index entry lies on such a page are missing; only [`Namespace::info`] shows that, since it counts all pairs. The result may have keys that
    /// were deleted or stored again, if that cannot be read: for them [`Namespace::exist`] fails. This takes memory for all keys.
    ///
    /// # Errors
    /// [`Error::Refused`] from a drive on the wire. And as [`Namespace::info`].
    pub fn salvage_keys(&self) -> Result<BTreeSet<Box<[u8]>>, Error> {
        self.store.drive()?.salvage_keys(self.id)
    }

    /// The pairs of a range of keys as they are now, whatever is stored or deleted meanwhile. The drive keeps them until the range is dropped.
    /// If stores need that room, the drive ends the oldest range, which then returns [`Error::Refused`].
    ///
    /// # Errors
    /// [`Error::Refused`] where keys have no order, on a drive of another make, and where memory has no room for
    /// another range. And as [`Namespace::retrieve`].
    pub fn range(&self, options: &IteratorOptions<'_>) -> Result<Range<'a>, Error> {
        Range::new(*self, options)
    }

    pub(crate) fn check_owner(&self) -> Result<(), Error> {
        self.store.check_owner()
    }

    /// Executes a command that reads; `None` means that the key is not there.
    pub(crate) fn ask(&self, command: Command<'_>) -> Result<Option<Reply>, Error> {
        self.store.execute_in(self.id, command)
    }
}

fn value_of(reply: Reply) -> Value {
    match reply {
        Reply::Retrieved { value, .. } => value,
        other => unreachable!("{other:?} does not answer a retrieve"),
    }
}
