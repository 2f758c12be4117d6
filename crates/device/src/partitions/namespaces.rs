//! Namespaces of a drive in partitions: one of the same number in each.
//!
//! A process may end while it makes or deletes a namespace: the next open settles that (`settle`). Quotas and budgets of caches are divided
//! evenly and rounded up, so a namespace may be full when its share in one partition is.

use super::{Partitions, partition_of};
use crate::cached::CacheInfo;
use kvssd_cache::CacheAttributes;
use kvssd_ftl::{NamespaceAttributes, NamespaceInfo};
use kvssd_types::{Key, KvError, NamespaceId, Nanos};

impl Partitions<'_> {
    /// As [`Drive::create_namespace`].
    pub fn create_namespace(&mut self, attributes: NamespaceAttributes) -> Result<NamespaceId, KvError> {
        let share = NamespaceAttributes {
            quota_bytes: attributes.quota_bytes.map(|bytes| self.share_bytes(bytes)),
            cache: attributes.cache.map(|cache| cache.sized(|bytes| self.share_bytes(bytes))),
            ..attributes
        };
        let numbers = self.free_numbers()?;
        let id = self.all[0].create_namespace_at(numbers, share.clone())?;
        for number in 1..self.all.len() {
            if let Err(error) = self.all[number].create_namespace_at(numbers, share.clone()) {
                self.all[..number].iter_mut().try_for_each(|part| part.delete_namespace(id))?;
                return Err(error);
            }
        }
        Ok(id)
    }

    /// Two numbers that are free in all partitions, for a namespace and, on a drive of large values, for its shadow. `None` on a drive of one
    /// partition, which finds its own.
    fn free_numbers(&mut self) -> Result<Option<[NamespaceId; 2]>, KvError> {
        if self.all.len() == 1 {
            return Ok(None);
        }
        if let Some(free) = self.common_numbers() {
            return Ok(Some(free));
        }
        // Commit between: the deletes must be safe in all partitions before a number is given again.
        self.commit()?;
        self.all.iter_mut().try_for_each(|part| part.free_all_numbers())?;
        self.commit()?;
        let namespaces = self.namespaces().len() as u32;
        self.common_numbers().map(Some).ok_or(KvError::TooManyNamespaces { namespaces })
    }

    fn common_numbers(&self) -> Option<[NamespaceId; 2]> {
        let free: Vec<Vec<NamespaceId>> = self.all.iter().map(|part| part.engine().free_numbers()).collect();
        let mut common = free[0].iter().copied().filter(|id| free.iter().all(|numbers| numbers.contains(id)));
        let first = common.next()?;
        match common.next() {
            Some(second) => Some([first, second]),
            None if self.all[0].large.is_none() => Some([first, first]),
            None => None,
        }
    }

    fn share_bytes(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.all.len() as u64)
    }

    /// As [`Drive::delete_namespace`].
    pub fn delete_namespace(&mut self, id: NamespaceId) -> Result<(), KvError> {
        // It may be missing in some partitions, if an earlier call failed in the middle.
        let deleted: Vec<Result<(), KvError>> = self.all.iter_mut().map(|part| part.delete_namespace(id)).collect();
        self.all[0].merges.forget_namespace(id);
        // Before one partition goes on: it could remove the namespace and forget it while another one's delete is not safe yet.
        self.commit()?;
        let is_new = deleted.iter().any(Result::is_ok);
        let missing = KvError::NoSuchNamespace(id);
        deleted.into_iter().filter(|deleted| !is_new || *deleted != Err(missing.clone())).collect()
    }

    /// As [`Drive::set_cache`].
    pub fn set_cache(&mut self, id: NamespaceId, cache: Option<CacheAttributes>) -> Result<(), KvError> {
        let share = cache.map(|cache| cache.sized(|bytes| self.share_bytes(bytes)));
        let before = self.all[0].namespaces().into_iter().find(|info| info.id == id);
        let before = before.ok_or(KvError::NoSuchNamespace(id))?.attributes.cache;
        // The first partition is the last to change: an open makes the others follow it.
        for number in (0..self.all.len()).rev() {
            if let Err(error) = self.all[number].set_cache(id, share.clone()) {
                let mut changed = self.all[number + 1..].iter_mut();
                changed.try_for_each(|part| part.set_cache(id, before.clone()))?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// As [`Drive::namespaces`], of all together.
    #[must_use]
    pub fn namespaces(&self) -> Vec<NamespaceInfo> {
        let partitions = self.all.len() as u64;
        let others: Vec<Vec<NamespaceInfo>> = self.all[1..].iter().map(|part| part.namespaces()).collect();
        let whole = |mut info: NamespaceInfo| {
            for infos in &others {
                let is_same =
                    |other: &&NamespaceInfo| other.id == info.id && other.attributes.name == info.attributes.name;
                let other = infos.iter().find(is_same)?;
                info.utilization = info.utilization.plus(&other.utilization);
                info.pairs_max = info.pairs_max.zip(other.pairs_max).map(|(most, more)| most.saturating_add(more));
                info.dram = std::mem::take(&mut info.dram).plus(&other.dram);
            }
            let NamespaceAttributes { quota_bytes, cache, .. } = &mut info.attributes;
            *quota_bytes = quota_bytes.map(|share| share.saturating_mul(partitions));
            *cache = cache.take().map(|share| share.sized(|bytes| bytes.saturating_mul(partitions)));
            Some(info)
        };
        self.all[0].namespaces().into_iter().filter_map(whole).collect()
    }

    /// As [`Drive::cache`], of all together.
    #[must_use]
    pub fn cache(&self, id: NamespaceId) -> Option<CacheInfo> {
        let mut infos = self.all.iter().map(|part| part.cache(id));
        let first = infos.next()??;
        let sum = infos.try_fold(first, |sum, info| Some(sum.plus(&info?)))?;
        Some(CacheInfo { attributes: sum.attributes.sized(|bytes| bytes.saturating_mul(self.all.len() as u64)), ..sum })
    }

    /// As [`Drive::let_go`].
    pub fn let_go(&mut self, id: NamespaceId) -> Result<bool, KvError> {
        self.all.iter_mut().try_fold(false, |some, part| Ok(part.let_go(id)? || some))
    }

    /// As [`Drive::would_take`].
    pub fn would_take(&mut self, namespace: NamespaceId, key: Key<'_>, value_bytes: u64) -> Result<bool, KvError> {
        let number = partition_of(namespace, key, self.all.len());
        self.all[number].would_take(namespace, key, value_bytes)
    }

    /// As [`Drive::value_bytes_of`].
    pub fn value_bytes_of(&mut self, namespace: NamespaceId, key: Key<'_>) -> Result<Option<u32>, KvError> {
        let number = partition_of(namespace, key, self.all.len());
        self.all[number].value_bytes_of(namespace, key)
    }

    /// As [`Drive::wants_time`].
    #[must_use]
    pub fn wants_time(&self) -> bool {
        self.all.iter().any(|part| part.wants_time())
    }

    /// As [`Drive::tell_time`].
    pub fn tell_time(&mut self, now: Nanos) {
        self.all.iter_mut().for_each(|part| part.tell_time(now));
    }
}
