//! What a store needs of a drive, in a file or on the wire.
//!
//! ```text
//!   Store, Namespace, Keys, Pairs, Port         what programs call
//!     |
//!   Backend      execute, execute_each, bulk, namespaces, stats, close
//!     |                        |
//!   Image (image.rs)         Remote (remote.rs): the NVMe client
//! ```

use crate::{Batch, Error, Stats};
use kvssd_cache::CacheAttributes;
use kvssd_device::CacheInfo;
use kvssd_ftl::{NamespaceAttributes, NamespaceInfo};
use kvssd_types::{Command, IteratorId, NamespaceId, OwnedKey, Reply};
use std::collections::{BTreeMap, BTreeSet};

/// A drive under a store, called by several threads at a time. A drive that cannot keep what a call promises fails it
/// with [`Error::Refused`], and does nothing weaker in its place.
pub(crate) trait Backend: Send + Sync {
    /// Executes a command; returns when a change is safe. `None` means that the key is not there. A conditional store
    /// fails with [`Error::KeyNotFound`] instead.
    fn execute(&self, namespace: NamespaceId, command: Command<'_>) -> Result<Option<Reply>, Error>;

    /// Executes commands that do not depend on each other, as many at a time as the drive takes. Calls `answered` with
    /// the index of each command and its reply, in any order. Ends at the first error; later commands may have been
    /// executed.
    fn execute_each(
        &self,
        commands: &mut dyn Iterator<Item = Result<(NamespaceId, Command<'_>), Error>>,
        answered: &mut dyn FnMut(usize, Option<Reply>),
    ) -> Result<(), Error> {
        for (number, command) in commands.enumerate() {
            let (namespace, command) = command?;
            answered(number, self.execute(namespace, command)?);
        }
        Ok(())
    }

    /// Makes the changes of a batch, each by itself and in any order but for those of one key; returns when all are safe. `own` is the namespace
    /// of changes without one.
    fn bulk(&self, batch: &Batch, own: NamespaceId) -> Result<(), Error>;

    /// The keys of a namespace that are still known although some pages cannot be read.
    fn salvage_keys(&self, namespace: NamespaceId) -> Result<BTreeSet<OwnedKey>, Error>;

    /// Creates an iterator in each namespace whose keys have an order: together they see the drive at one moment. The wire has no command for
    /// that: such a drive refuses it where there are several.
    fn create_iterators(&self) -> Result<BTreeMap<NamespaceId, IteratorId>, Error>;

    /// All namespaces, in the order of their numbers.
    fn namespaces(&self) -> Result<Vec<NamespaceInfo>, Error>;

    /// Checks that a number still means the namespace that had it when this store first saw it. Only on the wire can another host have replaced that
    /// namespace; a list of namespaces that was just fetched shows it.
    fn check_meant(&self, _namespace: NamespaceId) -> Result<(), Error> {
        Ok(())
    }

    /// Creates a namespace; returns its number.
    fn create_namespace(&self, attributes: NamespaceAttributes) -> Result<NamespaceId, Error>;

    /// Deletes a namespace other than the first.
    fn delete_namespace(&self, namespace: &NamespaceInfo) -> Result<(), Error>;

    /// Sets which cache a namespace is, if any.
    fn set_cache(&self, namespace: &NamespaceInfo, cache: Option<CacheAttributes>) -> Result<(), Error>;

    /// What those namespaces hold that are caches.
    fn caches(&self) -> Result<Vec<(NamespaceId, CacheInfo)>, Error>;

    /// Bytes of the longest key.
    fn key_bytes_max(&self) -> Result<usize, Error>;

    /// Capacities and counters.
    fn stats(&self) -> Result<Stats, Error>;

    /// Closes the drive in order.
    fn close(self: Box<Self>) -> Result<(), Error>;
}
