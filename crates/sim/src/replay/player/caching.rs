//! What caches make of requests: who is taken in, and who leaves.

use super::{Player, Second, Subject};
use crate::error::SimError;
use crate::replay::host_cache::HostCache;
use crate::trace::{Action, Request};
use kvssd_cache::PairId;
use kvssd_device::Completion;
use kvssd_types::{Command, Key, Nanos};
use xxhash_rust::xxh3::xxh3_64;

impl Player {
    /// Has the cache look at a request before anything is done. A pair that is too old leaves.
    pub(super) fn look(&mut self, request: &Request, subject: Subject<'_>, at: Nanos) -> Result<(), SimError> {
        let reads =
            matches!(request.action, Action::Get | Action::Fetch | Action::Probe | Action::Grow | Action::Touch);
        // A hit counts the bytes that the trace says, as a miss does.
        let bytes = request.value_bytes.min(self.value_bytes_max);
        let is_of_use = request.block.is_none_or(|block| self.prefixes.is_whole(block));
        if let Some(cache) = self.drive_cache.as_mut().filter(|_| reads) {
            cache.read(is_of_use && self.model.get(subject.hash).is_some(), bytes);
        }
        let Some(cache) = &mut self.host_cache else { return Ok(()) };
        let pair = PairId(subject.hash);
        let is_old = cache.expire(pair, subject.now);
        if reads {
            cache.read(pair, bytes, subject.now, is_of_use);
        }
        if is_old { self.leave(pair, at) } else { Ok(()) }
    }

    /// What a miss does: it stores the pair, if no other miss of it is about to.
    pub(super) fn fill(&mut self, hash: u64, bytes: u64) -> Option<Second> {
        let is_first = self.filling.insert(hash);
        if !is_first {
            self.counts.joined += 1;
            self.host_cache.iter_mut().for_each(|cache| cache.missed(PairId(hash)));
        }
        is_first.then_some(Second::Store { bytes })
    }

    /// Whether a pair is to be stored; who must leave for it leaves.
    pub(super) fn take_in(&mut self, subject: Subject<'_>, value_bytes: u64, at: Nanos) -> Result<bool, SimError> {
        let Some(cache) = &mut self.host_cache else { return Ok(true) };
        let pair = PairId(subject.hash);
        let leaving = cache.take_in(pair, subject.key, value_bytes, subject.now, subject.expires);
        let is_in = leaving.is_some();
        if !is_in {
            // What the drive has of it is old.
            cache.remove(pair);
        }
        for pair in leaving.unwrap_or_else(|| vec![pair]) {
            self.leave(pair, at)?;
        }
        Ok(is_in)
    }

    /// Makes room on a drive that is full. Gives who left; none where there is no cache, or nobody is left.
    pub(super) fn shrink(&mut self, at: Nanos) -> Result<Vec<PairId>, SimError> {
        let leaving = self.host_cache.as_mut().map(HostCache::shrink).unwrap_or_default();
        leaving.iter().try_for_each(|&pair| self.leave(pair, at))?;
        Ok(leaving)
    }

    /// Deletes a pair that the cache lets go, if the drive has it.
    pub(super) fn leave(&mut self, pair: PairId, at: Nanos) -> Result<(), SimError> {
        let key = self.host_cache.as_mut().and_then(|cache| cache.take_key(pair));
        let Some(key) = key.filter(|_| self.model.get(pair.0).is_some()) else { return Ok(()) };
        self.forget(Key::new(&key).expect("it was a key before"), pair.0, at)
    }

    /// Learns which pairs the drive's own policy has put out. Returns whether `hash` is not among them.
    pub(super) fn forget_left(&mut self, hash: u64) -> bool {
        let left: Vec<u64> = self.drive.take_left().iter().map(|key| xxh3_64(key)).collect();
        left.iter().for_each(|left| self.model.remove(*left));
        !left.contains(&hash)
    }

    /// Deletes a pair that the trace deletes nowhere. The request at hand waits for that.
    pub(super) fn forget(&mut self, key: Key<'_>, hash: u64, at: Nanos) -> Result<(), SimError> {
        let Completion { done, reply } = self.drive.submit(Command::Delete { key }, None, at);
        self.answers_right(&reply, self.model.get(hash))?;
        self.model.remove(hash);
        self.deletes.add(done - at);
        self.waited += done - at;
        Ok(())
    }
}
