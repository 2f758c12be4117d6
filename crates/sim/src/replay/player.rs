//! Turns requests into commands, and checks what the drive answers.

mod caching;
#[cfg(test)]
mod tests;

use super::ReplaySetup;
use super::host_cache::{DriveCache, HostCache};
use super::model::{Held, Model};
use super::pair_drive::PairDrive;
use super::pairs_on_blocks::PairsOnBlocks;
use super::prefixes::Prefixes;
use crate::error::SimError;
use crate::measured::Measured;
use crate::report::TraceReport;
use crate::trace::{Action, Request, Requests};
use kvssd_cache::{CacheAttributes, CachePlan, PairId};
use kvssd_device::{Completion, Device, LargeDevice};
use kvssd_flash::{Profile, RopeBacking};
use kvssd_ftl::Design;
use kvssd_measure::Latencies;
use kvssd_types::{Command, KEY_BYTES_MAX, Key, KvError, Nanos, Reply, StoreCondition, Value};
use std::collections::HashSet;

/// The keys that the drive is told of at once.
const EXPECTED_MAX: usize = 32;

/// A drive, what must be on it, and what came of the requests so far.
pub(super) struct Player {
    drive: Box<dyn PairDrive>,
    model: Model,
    /// What the host keeps, if it is the host that has a cache.
    host_cache: Option<HostCache>,
    /// What the drive keeps, if it is the drive.
    drive_cache: Option<DriveCache>,
    counts: TraceReport,
    measured: Measured,
    misses: Latencies,
    deletes: Latencies,
    exists: Latencies,
    value_bytes_max: u64,
    waiting: Vec<Waiting>,
    free: Vec<usize>,
    /// Pairs that were missed and are not stored yet.
    filling: HashSet<u64>,
    prefixes: Prefixes,
    /// How long the commands of the request at hand took that were answered before its last one was sent.
    waited: Nanos,
}

/// What a request still has to do when its first command is answered.
#[derive(Clone, Copy, Debug)]
enum Second {
    Store {
        bytes: u64,
    },
    /// Perhaps for a prefix.
    Retrieve {
        prefix: Option<u64>,
    },
}

/// A request whose second command is not sent yet, with a [`Subject`] of its own.
#[derive(Clone, Debug)]
struct Waiting {
    key: [u8; KEY_BYTES_MAX],
    key_bytes: u8,
    hash: u64,
    now: Nanos,
    expires: Nanos,
    stream: Option<u64>,
    second: Second,
}

/// The pair that a request is about.
#[derive(Clone, Copy)]
struct Subject<'a> {
    key: Key<'a>,
    /// What model and caches know it by.
    hash: u64,
    /// When the request comes, and when the pair expires, as caches count time.
    now: Nanos,
    expires: Nanos,
    stream: Option<u64>,
}

impl<'a> Subject<'a> {
    /// Of a request that is sent at `at`, by the trace's times where it has some.
    fn of(request: &Request, key: Key<'a>, at: Nanos) -> Self {
        let now = request.at_ns.map_or(at, Nanos);
        let expires = request.ttl_ns.map_or(Nanos::MAX, |ttl_ns| now + Nanos(ttl_ns));
        Subject { key, hash: request.hash(), now, expires, stream: request.stream }
    }
}

/// A new drive, with a cache of its own if it is to keep one.
fn drive(
    design: &Design,
    profile: &Profile,
    cache: Option<&CachePlan>,
    value_bytes_max: Option<u32>,
) -> Result<Box<dyn PairDrive>, SimError> {
    if !design.takes_keys() {
        if cache.is_some() {
            let why = "--cache-in drive: a drive of blocks knows no keys to keep a cache of; leave it out, and the host keeps one";
            return Err(SimError::Setup(why.to_owned()));
        }
        return Ok(Box::new(PairsOnBlocks::new(design, profile, value_bytes_max)?));
    }
    let mut device = LargeDevice::new(design, profile, Box::new(RopeBacking::new(profile.geometry)), value_bytes_max)?;
    if let Some(plan) = cache {
        let made = device.make_cache(&CacheAttributes { plan: plan.clone(), time_to_live_ms: None });
        made.map_err(|error| SimError::Setup(error.to_string()))?;
    }
    Ok(Box::new(device))
}

impl Player {
    pub(super) fn new(setup: &ReplaySetup) -> Result<Self, SimError> {
        let (cache, is_in_drive) = (setup.cache.as_ref(), setup.is_drives_cache);
        let drive = drive(&setup.design, &setup.profile, cache.filter(|_| is_in_drive), setup.value_bytes_max)?;
        Ok(Player {
            value_bytes_max: drive.value_bytes_max(),
            drive,
            model: Model::new(setup.seed),
            host_cache: cache.filter(|_| !is_in_drive).map(HostCache::new),
            drive_cache: cache.filter(|_| is_in_drive).map(DriveCache::new),
            counts: TraceReport::default(),
            measured: Measured::default(),
            misses: Latencies::new(),
            deletes: Latencies::new(),
            exists: Latencies::new(),
            waiting: Vec::new(),
            free: Vec::new(),
            filling: HashSet::new(),
            prefixes: Prefixes::default(),
            waited: Nanos::ZERO,
        })
    }

    pub(super) fn device(&self) -> &Device {
        self.drive.device()
    }

    /// The drive, what the hosts saw, and the counts.
    pub(super) fn end(mut self) -> (Device, Measured, TraceReport) {
        self.counts.pairs = self.model.len() as u64;
        let of_drive = self.drive_cache.as_ref().zip(self.drive.cache());
        let of_drive = of_drive.map(|(cache, info)| cache.report(&info));
        self.counts.cache = self.host_cache.as_ref().map(HostCache::report).or(of_drive);
        let others = [("delete", self.deletes), ("exist", self.exists), ("miss", self.misses)];
        self.measured.others.extend(others);
        if let Some((report, took)) = self.prefixes.result() {
            self.counts.prefixes = Some(report);
            self.measured.sequences.insert("prefix", took);
        }
        (self.drive.into_device(), self.measured, self.counts)
    }

    /// What was done so far is none of the figures.
    pub(super) fn begin_measuring(&mut self) {
        self.measured = Measured::from(self.measured.end, None);
        self.counts = TraceReport::default();
        self.prefixes.begin_measuring();
        self.host_cache.iter_mut().for_each(HostCache::begin_measuring);
        if let Some((cache, info)) = self.drive_cache.as_mut().zip(self.drive.cache()) {
            cache.begin_measuring(&info);
        }
        for latencies in [&mut self.misses, &mut self.deletes, &mut self.exists] {
            *latencies = Latencies::new();
        }
    }

    /// The number of requests that wait for their second command.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len() - self.free.len()
    }

    /// Tells the memory of drive and model what will be wanted soon.
    pub(super) fn expect(&mut self, requests: &Requests) {
        let first = &requests.list()[..requests.len().min(EXPECTED_MAX)];
        let keys: Vec<Key<'_>> = first.iter().map(|request| requests.key(request)).collect();
        self.drive.expect(&keys);
        self.model.expect(first.iter().map(Request::hash));
    }

    /// Submits a request's first command at `at`: when it is done, and the number of what is left to do then.
    pub(super) fn begin(
        &mut self,
        request: &Request,
        key: Key<'_>,
        at: Nanos,
    ) -> Result<(Nanos, Option<u64>), SimError> {
        self.measured.operations += 1;
        self.counts.keys_hashed += u64::from(request.is_key_hashed());
        self.counts.ttls_ignored += u64::from(request.ttl_ns.is_some() && self.host_cache.is_none());
        let subject = Subject::of(request, key, at);
        self.look(request, subject, at)?;
        let held = self.model.get(subject.hash);
        let bytes = request.value_bytes;
        let (done, second) = match request.action {
            Action::Get => (self.retrieve(subject, request.part, at)?, None),
            Action::Fetch => {
                let second = if held.is_none() { self.fill(subject.hash, bytes) } else { None };
                (self.retrieve(subject, request.part, at)?, second)
            }
            Action::Probe => {
                let prefix = request.block.map(|block| self.prefixes.block(block, held.is_some(), at));
                let second = match (held, prefix) {
                    (None, _) => self.fill(subject.hash, bytes),
                    // Behind a block that is missing.
                    (Some(_), Some(None)) => None,
                    (Some(_), prefix) => Some(Second::Retrieve { prefix: prefix.flatten() }),
                };
                (self.exist(subject, at)?, second)
            }
            Action::Set => (self.store(subject, bytes, StoreCondition::Always, at)?, None),
            Action::Add => (self.store(subject, bytes, StoreCondition::IfAbsent, at)?, None),
            Action::Replace => (self.store(subject, bytes, StoreCondition::IfExists, at)?, None),
            Action::Grow | Action::Touch => {
                self.counts.not_stored += u64::from(held.is_none());
                let more = if request.action == Action::Grow { bytes } else { 0 };
                let second = held.map(|held| Second::Store { bytes: u64::from(held.bytes).saturating_add(more) });
                (self.retrieve(subject, None, at)?, second)
            }
            Action::Delete => {
                self.host_cache.iter_mut().for_each(|cache| cache.delete(PairId(subject.hash)));
                (self.delete(subject, at)?, None)
            }
            Action::Exist => (self.exist(subject, at)?, None),
        };
        let done = self.answered(done);
        Ok((done, second.map(|second| self.wait(subject, second))))
    }

    /// Submits the second command of a request.
    pub(super) fn go_on(&mut self, slot: u64, at: Nanos) -> Result<Nanos, SimError> {
        let slot = slot as usize;
        let Waiting { key, key_bytes, hash, now, expires, stream, second } = self.waiting[slot];
        self.free.push(slot);
        let key = Key::new(&key[..usize::from(key_bytes)]).expect("it was a key before");
        let subject = Subject { key, hash, now, expires, stream };
        let done = match second {
            Second::Store { bytes } => {
                let fills = self.filling.remove(&hash);
                let done = self.store(subject, bytes, StoreCondition::Always, at)?;
                self.counts.filled += u64::from(fills && self.model.get(hash).is_some());
                done
            }
            Second::Retrieve { prefix } => {
                let is_there = self.model.get(hash).is_some();
                let done = self.retrieve(subject, None, at)?;
                prefix.into_iter().for_each(|prefix| self.prefixes.loaded(prefix, is_there, done));
                done
            }
        };
        Ok(self.answered(done))
    }

    /// When a request's last command is answered, which would be done at `done` were it the only one: a host sends one at a time.
    fn answered(&mut self, done: Nanos) -> Nanos {
        let done = done + std::mem::take(&mut self.waited);
        self.measured.end = self.measured.end.max(done);
        done
    }

    /// Deletes a key behind the model's back.
    #[cfg(test)]
    pub(super) fn lose(&mut self, key: Key<'_>, at: Nanos) {
        self.drive.submit(Command::Delete { key }, None, at).reply.expect("the key is there");
    }

    fn wait(&mut self, subject: Subject<'_>, second: Second) -> u64 {
        let Subject { hash, now, expires, stream, .. } = subject;
        let bytes = subject.key.bytes();
        let mut key = [0; KEY_BYTES_MAX];
        key[..bytes.len()].copy_from_slice(bytes);
        let waiting = Waiting { key, key_bytes: bytes.len() as u8, hash, now, expires, stream, second };
        let slot = self.free.pop().unwrap_or(self.waiting.len());
        if slot == self.waiting.len() {
            self.waiting.push(waiting);
        } else {
            self.waiting[slot] = waiting;
        }
        slot as u64
    }

    fn store(
        &mut self,
        subject: Subject<'_>,
        bytes: u64,
        condition: StoreCondition,
        at: Nanos,
    ) -> Result<Nanos, SimError> {
        let Subject { key, hash, stream, .. } = subject;
        self.counts.values_cut += u64::from(bytes > self.value_bytes_max);
        let held = self.model.draft(bytes.min(self.value_bytes_max) as u32);
        let value = Value::Pattern(self.model.pattern(hash, held));
        let must_be_done = match condition {
            StoreCondition::Always => true,
            StoreCondition::IfExists => self.model.get(hash).is_some(),
            StoreCondition::IfAbsent => self.model.get(hash).is_none(),
        };
        if must_be_done && !self.take_in(subject, held.bytes.into(), at)? {
            return Ok(at);
        }
        let mut completion = self.drive.submit(Command::Store { key, value: value.clone(), condition }, stream, at);
        let mut has_left = false;
        while matches!(completion.reply, Err(KvError::CapacityExceeded)) {
            let leaving = self.shrink(at)?;
            // The policy may choose the pair that came.
            has_left = leaving.contains(&PairId(hash));
            if has_left || leaving.is_empty() {
                break;
            }
            self.waited += completion.done - at;
            completion = self.drive.submit(Command::Store { key, value: value.clone(), condition }, stream, at);
        }
        let Completion { done, reply } = completion;
        if reply.is_ok() {
            self.model.put(hash, held);
        }
        let is_in = self.forget_left(hash);
        match reply {
            Ok(_) => {
                self.counts.wrong_answers += u64::from(!must_be_done);
                // A pair that the drive's own cache keeps out is not written, as with a host's cache.
                if is_in {
                    self.measured.stored_bytes += key.bytes().len() as u64 + u64::from(held.bytes);
                }
                self.measured.stores.add(done - at);
            }
            Err(KvError::CapacityExceeded) => {
                self.counts.refused_full += u64::from(!has_left);
                self.leave(PairId(hash), at)?;
                // A cache of the drive's own keeps the old value: the host deletes what it could not replace.
                if self.drive_cache.is_some() && self.model.get(hash).is_some() {
                    self.forget(key, hash, at)?;
                }
            }
            Err(KvError::KeyExists | KvError::KeyNotFound) => {
                self.counts.wrong_answers += u64::from(must_be_done);
                self.counts.not_stored += 1;
            }
            Err(other) => return Err(SimError::Drive(other)),
        }
        Ok(done)
    }

    fn retrieve(&mut self, subject: Subject<'_>, part: Option<(u64, u64)>, at: Nanos) -> Result<Nanos, SimError> {
        let Subject { key, hash, .. } = subject;
        let held = self.model.get(hash);
        let bytes = held.map_or(0, |held| held.bytes);
        // A part of a value that was cut, or that was stored anew and shorter, is what there is of it.
        let (first, length) = part.unwrap_or((0, bytes.into()));
        let first = first.min(bytes.into()) as u32;
        let length = length.min((bytes - first).into()) as u32;
        let command = Command::Retrieve { key, offset_bytes: first, length_bytes: length };
        let Completion { done, reply } = self.drive.submit(command, None, at);
        match (reply, held) {
            (Ok(Reply::Retrieved { value, value_bytes }), Some(held)) => {
                let part = first as usize..(first + length) as usize;
                let expected = Value::Pattern(self.model.pattern(hash, held).slice(part));
                let is_right = value == expected && value_bytes == held.bytes;
                self.measured.verified_retrieves += u64::from(is_right);
                self.measured.failed_retrieves += u64::from(!is_right);
                self.counts.hits += 1;
                self.measured.retrieved_bytes += u64::from(length);
                self.measured.retrieves.add(done - at);
            }
            (Err(KvError::KeyNotFound), None) => {
                self.counts.misses += 1;
                self.misses.add(done - at);
            }
            (Ok(_) | Err(KvError::KeyNotFound), _) => self.measured.failed_retrieves += 1,
            (Err(other), _) => return Err(SimError::Drive(other)),
        }
        Ok(done)
    }

    fn delete(&mut self, subject: Subject<'_>, at: Nanos) -> Result<Nanos, SimError> {
        let Completion { done, reply } = self.drive.submit(Command::Delete { key: subject.key }, None, at);
        let is_there = self.answers_right(&reply, self.model.get(subject.hash))?;
        self.model.remove(subject.hash);
        self.counts.deleted += u64::from(is_there);
        self.counts.nothing_to_delete += u64::from(!is_there);
        self.deletes.add(done - at);
        Ok(done)
    }

    fn exist(&mut self, subject: Subject<'_>, at: Nanos) -> Result<Nanos, SimError> {
        let Completion { done, reply } = self.drive.submit(Command::Exist { key: subject.key }, None, at);
        let is_there = self.answers_right(&reply, self.model.get(subject.hash))?;
        self.counts.exist_hits += u64::from(is_there);
        self.counts.exist_misses += u64::from(!is_there);
        self.exists.add(done - at);
        Ok(done)
    }

    /// Whether an answer says that the key was there. One that is wrong about that is counted.
    fn answers_right(&mut self, reply: &Result<Reply, KvError>, held: Option<Held>) -> Result<bool, SimError> {
        let is_there = match reply {
            Ok(_) => true,
            Err(KvError::KeyNotFound) => false,
            Err(other) => return Err(SimError::Drive(other.clone())),
        };
        self.counts.wrong_answers += u64::from(is_there != held.is_some());
        Ok(is_there)
    }
}
