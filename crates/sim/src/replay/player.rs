//! Turns requests into commands, and checks what the drive answers.

use super::model::{Held, Model};
use crate::error::SimError;
use crate::measured::Measured;
use crate::report::TraceReport;
use crate::trace::{Action, Request, Requests};
use kvssd_device::{Completion, Device};
use kvssd_flash::{Profile, RopeBacking};
use kvssd_ftl::Design;
use kvssd_measure::Latencies;
use kvssd_types::{Command, KEY_BYTES_MAX, Key, KvError, Nanos, Reply, StoreCondition, Value};

/// The keys that the drive is told of at once.
const EXPECTED_MAX: usize = 32;

/// A drive, what must be on it, and what came of the requests so far.
pub(super) struct Player {
    device: Device,
    model: Model,
    counts: TraceReport,
    measured: Measured,
    misses: Latencies,
    deletes: Latencies,
    exists: Latencies,
    value_bytes_max: u64,
    waiting: Vec<Waiting>,
    free: Vec<usize>,
}

/// What a request still has to do when its first command is answered.
#[derive(Clone, Copy, Debug)]
enum Second {
    Store { bytes: u64 },
    Retrieve,
}

/// A request whose second command has not come yet.
#[derive(Clone, Debug)]
struct Waiting {
    key: [u8; KEY_BYTES_MAX],
    key_bytes: u8,
    hash: u64,
    second: Second,
}

/// A key and the hash that the model knows it by.
#[derive(Clone, Copy)]
struct Subject<'a> {
    key: Key<'a>,
    hash: u64,
}

impl Player {
    pub(super) fn new(design: &Design, profile: &Profile, seed: u64) -> Result<Self, SimError> {
        let device = Device::new(design, profile, Box::new(RopeBacking::new(profile.geometry)))?;
        Ok(Player {
            value_bytes_max: device.engine().value_bytes_max(),
            device,
            model: Model::new(seed),
            counts: TraceReport::default(),
            measured: Measured::default(),
            misses: Latencies::new(),
            deletes: Latencies::new(),
            exists: Latencies::new(),
            waiting: Vec::new(),
            free: Vec::new(),
        })
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// The drive, what the hosts saw, and the counts.
    pub(super) fn end(mut self) -> (Device, Measured, TraceReport) {
        self.counts.pairs = self.model.len() as u64;
        let others = [("delete", self.deletes), ("exist", self.exists), ("miss", self.misses)];
        self.measured.others.extend(others);
        (self.device, self.measured, self.counts)
    }

    /// The number of requests that wait for their second command.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len() - self.free.len()
    }

    /// Tells the memory of drive and model what will be wanted soon.
    pub(super) fn expect(&mut self, requests: &Requests) {
        let first = &requests.list()[..requests.len().min(EXPECTED_MAX)];
        let keys: Vec<Key<'_>> = first.iter().map(|request| requests.key(request)).collect();
        self.device.expect(&keys);
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
        self.counts.ttls_ignored += u64::from(request.has_ttl);
        let subject = Subject { key, hash: request.hash() };
        let held = self.model.get(subject.hash);
        let bytes = request.value_bytes;
        let (done, second) = match request.action {
            Action::Get => (self.retrieve(subject, request.part, at)?, None),
            Action::Fetch => {
                let second = held.is_none().then_some(Second::Store { bytes });
                (self.retrieve(subject, request.part, at)?, second)
            }
            Action::Probe => {
                let second = held.map_or(Second::Store { bytes }, |_| Second::Retrieve);
                (self.exist(subject, at)?, Some(second))
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
            Action::Delete => (self.delete(subject, at)?, None),
            Action::Exist => (self.exist(subject, at)?, None),
        };
        self.counts.filled += u64::from(held.is_none() && second.is_some());
        self.measured.end = self.measured.end.max(done);
        Ok((done, second.map(|second| self.wait(subject, second))))
    }

    /// Submits the second command of a request.
    pub(super) fn go_on(&mut self, slot: u64, at: Nanos) -> Result<Nanos, SimError> {
        let slot = slot as usize;
        let Waiting { key, key_bytes, hash, second } = self.waiting[slot];
        self.free.push(slot);
        let key = Key::new(&key[..usize::from(key_bytes)]).expect("it was a key before");
        let subject = Subject { key, hash };
        let done = match second {
            Second::Store { bytes } => self.store(subject, bytes, StoreCondition::Always, at)?,
            Second::Retrieve => self.retrieve(subject, None, at)?,
        };
        self.measured.end = self.measured.end.max(done);
        Ok(done)
    }

    /// Deletes a key behind the model's back.
    #[cfg(test)]
    pub(super) fn lose(&mut self, key: Key<'_>, at: Nanos) {
        self.device.submit(Command::Delete { key }, at).reply.expect("the key is there");
    }

    fn wait(&mut self, subject: Subject<'_>, second: Second) -> u64 {
        let bytes = subject.key.bytes();
        let mut key = [0; KEY_BYTES_MAX];
        key[..bytes.len()].copy_from_slice(bytes);
        let waiting = Waiting { key, key_bytes: bytes.len() as u8, hash: subject.hash, second };
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
        let Subject { key, hash } = subject;
        self.counts.values_cut += u64::from(bytes > self.value_bytes_max);
        let held = self.model.draft(bytes.min(self.value_bytes_max) as u32);
        let value = Value::Pattern(self.model.pattern(hash, held));
        let Completion { done, reply } = self.device.submit(Command::Store { key, value, condition }, at);
        let must_be_done = match condition {
            StoreCondition::Always => true,
            StoreCondition::IfExists => self.model.get(hash).is_some(),
            StoreCondition::IfAbsent => self.model.get(hash).is_none(),
        };
        match reply {
            Ok(_) => {
                self.counts.wrong_answers += u64::from(!must_be_done);
                self.model.put(hash, held);
                self.measured.stored_bytes += key.bytes().len() as u64 + u64::from(held.bytes);
                self.measured.stores.add(done - at);
            }
            Err(KvError::CapacityExceeded) => self.counts.refused_full += 1,
            Err(KvError::KeyExists | KvError::KeyNotFound) => {
                self.counts.wrong_answers += u64::from(must_be_done);
                self.counts.not_stored += 1;
            }
            Err(other) => return Err(SimError::Drive(other)),
        }
        Ok(done)
    }

    fn retrieve(&mut self, subject: Subject<'_>, part: Option<(u64, u64)>, at: Nanos) -> Result<Nanos, SimError> {
        let Subject { key, hash } = subject;
        let held = self.model.get(hash);
        let bytes = held.map_or(0, |held| held.bytes);
        // A part of a value that was cut, or that was stored anew and shorter, is what there is of it.
        let (first, length) = part.unwrap_or((0, bytes.into()));
        let first = first.min(bytes.into()) as u32;
        let length = length.min((bytes - first).into()) as u32;
        let command = Command::Retrieve { key, offset_bytes: first, length_bytes: length };
        let Completion { done, reply } = self.device.submit(command, at);
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
        let Completion { done, reply } = self.device.submit(Command::Delete { key: subject.key }, at);
        let is_there = self.answers_right(&reply, self.model.get(subject.hash))?;
        self.model.remove(subject.hash);
        self.counts.deleted += u64::from(is_there);
        self.counts.nothing_to_delete += u64::from(!is_there);
        self.deletes.add(done - at);
        Ok(done)
    }

    fn exist(&mut self, subject: Subject<'_>, at: Nanos) -> Result<Nanos, SimError> {
        let Completion { done, reply } = self.device.submit(Command::Exist { key: subject.key }, at);
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
