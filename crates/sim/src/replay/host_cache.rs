//! The cache that a host keeps on the drive: who is there, by which key, and how often that was so. And how often it was where the drive keeps one.

use crate::report::{CacheReport, HitReport};
use kvssd_cache::{Cache, CachePlan, Counts, PairId};
use kvssd_device::CacheInfo;
use kvssd_types::{Key, Nanos, OwnedKey};
use std::collections::HashMap;

/// Windows of the course at the most; then two become one.
const WINDOWS_MAX: usize = 64;
/// Reads of a window at first.
const WINDOW_READS: u64 = 1 << 10;

/// A cache, and the keys of its pairs.
pub(super) struct HostCache {
    plan: CachePlan,
    cache: Cache,
    keys: HashMap<PairId, OwnedKey>,
    course: Course,
    /// What was counted before the figures begin.
    before: Counts,
}

/// A cache that the drive keeps by itself.
pub(super) struct DriveCache {
    plan: CachePlan,
    course: Course,
    before: Counts,
}

/// How many reads found their pair, in all and over time.
pub(super) struct Course {
    hits: HitReport,
    windows: Vec<HitReport>,
    window_reads: u64,
}

impl Course {
    fn new() -> Self {
        Course { hits: HitReport::default(), windows: Vec::new(), window_reads: WINDOW_READS }
    }

    fn add(&mut self, is_hit: bool, bytes: u64) {
        self.hits.add(is_hit, bytes);
        if self.windows.last().is_none_or(|window| window.requests >= self.window_reads) {
            self.windows.push(HitReport::default());
        }
        self.windows.last_mut().expect("there is one").add(is_hit, bytes);
        if self.windows.len() > WINDOWS_MAX {
            let one = |two: &[HitReport]| {
                let mut one = two[0];
                two[1..].iter().for_each(|next| one.append(next));
                one
            };
            self.windows = self.windows.chunks(2).map(one).collect();
            self.window_reads *= 2;
        }
    }
}

impl DriveCache {
    pub(super) fn new(plan: &CachePlan) -> Self {
        DriveCache { plan: plan.clone(), course: Course::new(), before: Counts::default() }
    }

    /// A pair is read.
    pub(super) fn read(&mut self, is_hit: bool, bytes: u64) {
        self.course.add(is_hit, bytes);
    }

    /// The figures begin here.
    pub(super) fn begin_measuring(&mut self, info: &CacheInfo) {
        (self.before, self.course) = (info.counts, Course::new());
    }

    pub(super) fn report(&self, info: &CacheInfo) -> CacheReport {
        let report = report(&self.plan, &self.course, info.counts, self.before);
        let (budget_bytes_end, held_bytes) = (info.budget_bytes, info.held_bytes);
        CacheReport { kept_by: Some("drive"), budget_bytes_end, held_bytes, ..report }
    }
}

/// What both kinds say.
fn report(plan: &CachePlan, course: &Course, counts: Counts, before: Counts) -> CacheReport {
    CacheReport {
        kept_by: None,
        eviction: plan.eviction.name,
        admission: plan.admission.iter().map(ToString::to_string).collect(),
        budget_bytes: plan.budget_bytes,
        budget_bytes_end: plan.budget_bytes,
        held_bytes: 0,
        admitted: counts.admitted - before.admitted,
        kept_out: counts.kept_out - before.kept_out,
        evicted: counts.evicted - before.evicted,
        expired: counts.expired - before.expired,
        hits: course.hits,
        course: course.windows.clone(),
    }
}

impl HostCache {
    pub(super) fn new(plan: &CachePlan) -> Self {
        HostCache {
            plan: plan.clone(),
            cache: Cache::new(plan),
            keys: HashMap::new(),
            course: Course::new(),
            before: Counts::default(),
        }
    }

    /// A pair is read, if it would be of use.
    pub(super) fn read(&mut self, pair: PairId, bytes: u64, now: Nanos, is_of_use: bool) {
        let is_hit = is_of_use && self.cache.look(pair, now);
        self.course.add(is_hit, bytes);
    }

    /// A pair was missed once more while it is about to be stored.
    pub(super) fn missed(&mut self, pair: PairId) {
        self.cache.missed(pair);
    }

    /// Takes a pair in that is to be stored; gives who must leave before. None when it is not worth a write.
    pub(super) fn take_in(
        &mut self,
        pair: PairId,
        key: Key<'_>,
        value_bytes: u64,
        now: Nanos,
        expires: Nanos,
    ) -> Option<Vec<PairId>> {
        let bytes = key.bytes().len() as u64 + value_bytes;
        if !self.cache.admits(pair, bytes, now) {
            return None;
        }
        let leaving = self.cache.insert(pair, bytes, expires);
        self.keys.insert(pair, key.bytes().into());
        Some(leaving)
    }

    /// Whether a pair was too old, and went.
    pub(super) fn expire(&mut self, pair: PairId, now: Nanos) -> bool {
        self.cache.expire(pair, now)
    }

    /// A pair is deleted.
    pub(super) fn delete(&mut self, pair: PairId) {
        self.cache.remove(pair);
        self.keys.remove(&pair);
    }

    /// A pair is to leave; its key is known until it is [taken](Self::take_key).
    pub(super) fn remove(&mut self, pair: PairId) {
        self.cache.remove(pair);
    }

    /// The drive is full: who leaves now.
    pub(super) fn shrink(&mut self) -> Vec<PairId> {
        self.cache.shrink()
    }

    /// The key of a pair that leaves the drive.
    pub(super) fn take_key(&mut self, pair: PairId) -> Option<OwnedKey> {
        self.keys.remove(&pair)
    }

    /// The figures begin here.
    pub(super) fn begin_measuring(&mut self) {
        self.before = self.cache.counts();
        self.course = Course::new();
    }

    pub(super) fn report(&self) -> CacheReport {
        let report = report(&self.plan, &self.course, self.cache.counts(), self.before);
        let (budget_bytes_end, held_bytes) = (self.cache.budget_bytes(), self.cache.held_bytes());
        CacheReport { budget_bytes_end, held_bytes, ..report }
    }
}
