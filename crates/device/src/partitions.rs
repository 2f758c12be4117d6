//! A drive in partitions: drives side by side in one image, which threads change side by side.
//!
//! ```text
//!   namespace, key -> hash -> partition     store, retrieve, delete, exist, a batch within one: that partition alone     Scope::One
//!   all partitions                          other batches, lists, iterators, namespaces, flushes                        Scope::All
//!
//!   list        the first partition's keys, then the second's ...   batch      prepared in each, then decided (`batch`)
//!   list of an ordered namespace, and iterator    one in each, merged (`merge`)
//!   namespace   of the same number in each, with a share of its quota and of its cache's budget (`namespaces`)
//! ```
//!
//! Their number is chosen when the image is made. Threads that share a drive give each partition a lock. They ask [`Scope`], and lock one
//! partition, or all in their order. A drive of one partition needs none of this.
//!
//! Not supported: timing, since a timed drive has one partition, and moving pairs to another partition. So a drive is full when one of its
//! partitions is.

mod batch;
mod merge;
mod namespaces;
mod opening;
mod settle;

pub use opening::{Mount, Mounts};

use crate::drive::Drive;
use crate::firmware_stats::FirmwareStats;
use kvssd_ftl::Utilization;
use kvssd_types::{ClientId, Command, Key, KvError, NamespaceId, OwnedKey, Reply, RequestId};
use std::collections::BTreeSet;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Indexes hash keys without a seed. The bits that choose the partition must not be among those that an index hashes by, so this hash has one.
const SEED: u64 = 0x7061_7274_6974_696f;

/// The partition that a pair is in. Images depend on this choice.
#[must_use]
pub fn partition_of(namespace: NamespaceId, key: Key<'_>, partitions: usize) -> usize {
    let hash = xxh3_64_with_seed(key.bytes(), SEED ^ u64::from(namespace.0));
    ((u128::from(hash) * partitions as u128) >> 64) as usize
}

/// Which partitions a command concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The partition of that number.
    One(usize),
    /// Several or all of them.
    All,
}

impl Scope {
    /// The scope of a command on a drive of `partitions` partitions.
    #[must_use]
    pub fn of(namespace: NamespaceId, command: &Command<'_>, partitions: usize) -> Scope {
        match command {
            Command::Store { key, .. }
            | Command::Retrieve { key, .. }
            | Command::Delete { key }
            | Command::Exist { key } => Scope::of_key(namespace, Some(*key), partitions),
            Command::Batch { changes } if partitions > 1 => {
                let mut numbers = changes.iter().map(|change| partition_of(change.namespace, change.key, partitions));
                let first = numbers.next().unwrap_or(0);
                if numbers.all(|number| number == first) { Scope::One(first) } else { Scope::All }
            }
            _ => Scope::of_key(namespace, None, partitions),
        }
    }

    /// The scope of a command on one key, or on none or several.
    #[must_use]
    pub fn of_key(namespace: NamespaceId, key: Option<Key<'_>>, partitions: usize) -> Scope {
        match key {
            _ if partitions == 1 => Scope::One(0),
            Some(key) => Scope::One(partition_of(namespace, key, partitions)),
            None => Scope::All,
        }
    }
}

/// All partitions of a drive, with exclusive access.
pub struct Partitions<'a> {
    all: Vec<&'a mut Drive>,
}

impl<'a> Partitions<'a> {
    /// The partitions of one drive, all of them and in their order.
    pub fn new(all: impl IntoIterator<Item = &'a mut Drive>) -> Self {
        Partitions { all: all.into_iter().collect() }
    }

    /// Like [`Drive::execute_as`], for commands of any scope.
    ///
    /// # Errors
    /// As [`Drive::execute_as`]; [`KvError::InvalidCommand`] for a batch over several partitions that may be sent again.
    pub fn execute_as(
        &mut self,
        request: Option<RequestId>,
        namespace: NamespaceId,
        command: Command<'_>,
    ) -> Result<Reply, KvError> {
        if let Scope::One(number) = Scope::of(namespace, &command, self.all.len()) {
            return self.all[number].execute_as(request, namespace, command);
        }
        match command {
            Command::Batch { .. } if request.is_some() => {
                Err(KvError::InvalidCommand("a batch over several partitions that may come again"))
            }
            Command::Batch { changes } => self.batch(changes),
            Command::List { from, keys_max } => self.list(namespace, from, keys_max),
            Command::CreateIterator { options } => self.create_iterator(namespace, &options),
            Command::Seek { iterator, key, pairs_max } => self.seek(namespace, iterator, key, pairs_max),
            Command::Next { iterator, pairs_max } => self.next(namespace, iterator, pairs_max),
            Command::DestroyIterator { iterator } => self.destroy_iterator(namespace, iterator),
            Command::Flush => {
                self.all.iter_mut().try_for_each(|part| part.execute_in(namespace, Command::Flush).map(|_| ()))?;
                Ok(Reply::Flushed)
            }
            // A drive of keys refuses commands on blocks: any partition returns that error.
            other => self.all[0].execute_as(request, namespace, other),
        }
    }

    /// As [`Drive::execute_in`].
    ///
    /// # Errors
    /// As [`Partitions::execute_as`].
    pub fn execute_in(&mut self, namespace: NamespaceId, command: Command<'_>) -> Result<Reply, KvError> {
        self.execute_as(None, namespace, command)
    }

    fn list(&mut self, namespace: NamespaceId, from: Option<Key<'_>>, keys_max: usize) -> Result<Reply, KvError> {
        if self.first().engine().is_ordered(namespace) {
            return self.list_in_order(namespace, from, keys_max);
        }
        let first = from.map_or(0, |key| partition_of(namespace, key, self.all.len()));
        let mut keys = Vec::new();
        for (number, part) in self.all.iter_mut().enumerate().skip(first) {
            let from = from.filter(|_| number == first);
            match part.execute_in(namespace, Command::List { from, keys_max: keys_max - keys.len() })? {
                Reply::Listed(more) => keys.extend(more),
                other => return Err(unexpected(&other)),
            }
            if keys.len() >= keys_max {
                break;
            }
        }
        Ok(Reply::Listed(keys))
    }

    /// As [`Drive::salvage_keys`], of all.
    pub fn salvage_keys(&mut self, namespace: NamespaceId) -> Result<BTreeSet<OwnedKey>, KvError> {
        let mut keys = BTreeSet::new();
        for part in &mut self.all {
            keys.append(&mut part.salvage_keys(namespace)?);
        }
        Ok(keys)
    }

    /// As [`Drive::open_client`].
    pub fn open_client(&mut self, client: ClientId) -> Result<u64, KvError> {
        // Each number grows when its partition forgot the client, and never shrinks: the same holds for their sum.
        self.all.iter_mut().try_fold(0u64, |sum, part| Ok(sum.wrapping_add(part.open_client(client)?)))
    }

    /// The one partition of a drive that models time: only such a drive does.
    ///
    /// # Panics
    /// When there are several.
    pub fn timed(&mut self) -> &mut Drive {
        assert!(self.all.len() == 1, "a drive that is timed has one partition");
        self.all[0]
    }

    /// The answer to a change that was made before, or an error if its outcome is not known any more. `None` if it is still to be made.
    #[must_use]
    pub fn recognize(
        &self,
        request: RequestId,
        namespace: NamespaceId,
        command: &Command<'_>,
    ) -> Option<Result<Reply, KvError>> {
        match Scope::of(namespace, command, self.all.len()) {
            Scope::One(number) => self.all[number].engine().recognize(request, command),
            Scope::All => None,
        }
    }

    /// As [`Drive::hold_commits`], of all.
    pub fn hold_commits(&self, hold: bool) {
        self.all.iter().for_each(|part| part.hold_commits(hold));
    }

    /// As [`Drive::commit`], of all.
    pub fn commit(&mut self) -> Result<(), KvError> {
        self.all.iter_mut().try_for_each(|part| part.commit())
    }

    /// As [`Drive::utilization`], of all together.
    #[must_use]
    pub fn utilization(&self) -> Utilization {
        self.all.iter().fold(Utilization::default(), |sum, part| sum.plus(&part.utilization()))
    }

    /// As [`Drive::firmware_stats`], of all together.
    #[must_use]
    pub fn firmware_stats(&self) -> FirmwareStats {
        let others = self.all[1..].iter().map(|part| part.firmware_stats());
        others.fold(self.all[0].firmware_stats(), |sum, stats| sum.plus(&stats))
    }

    /// The first partition. Design, hardware and limits are the same in all.
    #[must_use]
    pub fn first(&self) -> &Drive {
        self.all[0]
    }

    /// As [`Engine::staging_note`](kvssd_ftl::Engine::staging_note), of the first that has one.
    #[must_use]
    pub fn staging_note(&self) -> Option<&str> {
        self.all.iter().find_map(|part| part.engine().staging_note())
    }

    /// Why the image takes no writes any more, if so.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.all.iter().find_map(|part| part.failure())
    }
}

/// Answers have the shape of their commands; a drive that breaks that is not trusted.
fn unexpected(reply: &Reply) -> KvError {
    KvError::Failed(format!("an answer to another command: {reply:?}"))
}
