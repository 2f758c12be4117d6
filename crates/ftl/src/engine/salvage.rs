//! Finds the keys that are still known although some pages cannot be read.
//!
//! ```text
//!   what the index holds, as a check reads it  ->  places  ->  records  ->  keys
//!                         |                                       |
//!                         +--- what cannot be read is left out ---+
//! ```
//!
//! A list command keeps the order of the index, and so ends at the first page that it cannot read.

use super::Engine;
use crate::index::Index;
use crate::io::{Io, readable};
use crate::layout::address::Grain;
use kvssd_types::{Command, KvError, NamespaceId, Nanos, OwnedKey};
use std::collections::BTreeSet;

impl Engine {
    /// The keys of a namespace, without those whose record or index entry lies on an unreadable page. The result may have a key that was
    /// deleted, or whose pair was replaced, if the page that says so is lost: a look-up of such a key ends with an error. This takes memory
    /// for all keys and entries, and no virtual time.
    ///
    /// # Errors
    /// [`KvError::NoSuchNamespace`], [`KvError::InvalidCommand`] on a drive of blocks, [`KvError::Failed`].
    pub fn salvage_keys(&mut self, namespace: NamespaceId) -> Result<BTreeSet<OwnedKey>, KvError> {
        self.check_available()?;
        self.check_command(namespace, &Command::List { from: None, keys_max: 0 })?;
        let Engine { media, namespaces, .. } = self;
        let index = &namespaces.living(namespace)?.index;
        let mut io = Io::new(media, Nanos::ZERO, true).of(namespace);
        known_keys(&mut io, index.as_ref())
    }
}

/// The keys that an index and its records still tell.
pub(super) fn known_keys(io: &mut Io<'_>, index: &dyn Index) -> Result<BTreeSet<OwnedKey>, KvError> {
    let entries = index.contents(io).entries;
    let mut places: Vec<Grain> = entries.into_iter().map(|entry| entry.place).collect();
    // Each page is read once.
    places.sort_unstable();
    let mut keys = BTreeSet::new();
    for place in places.into_iter().filter(|&place| place != Grain(0)) {
        keys.extend(readable(io.key_at(place))?.map(|(_, key)| key));
    }
    Ok(keys)
}
