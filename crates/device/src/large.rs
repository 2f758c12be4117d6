//! Values that are larger than a record: segments, under a manifest that is written last.
//!
//! ```text
//!   namespace 1        key -> [0] value                    up to half of what a record can hold
//!                      key -> [1] manifest ---+
//!                                             v
//!   its shadow         id, 0 -> segment   id, 1 -> segment ...        a namespace that hosts do not see
//!                      "ledger" -> ids that no key has
//!
//!   store    ledger + id | segments | batch: key -> manifest, ledger - id + what the key had before     <- the commit point
//!   later    segments of ids that no key has | ledger - id
//! ```
//!
//! Only commands that hosts also have are used, so a large value is as safe as a batch. Whenever the process ends, the next one finds in the
//! ledger what is to be deleted. An overwritten value is deleted when no iterator is left that may show it.
//!
//! On such a drive each value takes one more byte, and while there are large values a change first looks up whether its key has one.
//!
//! Not supported: large values in batches, and changing a part of a value in place.

mod check;
mod ledger;
mod pairs;
mod shadows;
#[cfg(test)]
mod tests;

pub(crate) use check::{each_key, told_keys};

use crate::records::{Glances, Origin, Records};
use kvssd_ftl::{Engine, Lack};
use kvssd_types::{
    BatchChange, Command, IteratedPair, IteratorId, Key, KvError, NamespaceId, Reply, RequestId, StoreCondition, Value,
    ValueBuilder,
};
use ledger::{Ledger, MANIFEST_BYTES, Manifest, TAG_BYTES, Tagged, segment_key};
use shadows::Shadow;
use std::collections::{BTreeMap, VecDeque};

/// The largest value that a drive can be made for.
pub const LARGE_VALUE_BYTES_MAX: u32 = 256 << 20;

/// The most ids in a ledger. If iterators keep so many from being deleted, the oldest iterators are ended. An estimate.
const UNOWNED_MAX: usize = 256;

/// The large values of a drive.
pub(crate) struct LargeValues {
    pub(crate) value_bytes_max: u32,
    segment_bytes: u32,
    shadows: Vec<Shadow>,
    /// Pairs that an iterator has returned but no answer has taken yet: their values are too large for one answer.
    left: BTreeMap<(NamespaceId, IteratorId), VecDeque<IteratedPair>>,
    /// The last iterator that was made.
    youngest: IteratorId,
    /// What the last change lacked, if the records do not say it.
    lacks: Vec<Lack>,
}

impl LargeValues {
    /// Executes a host's command. `request` names a change that may be sent again and was not made yet; the command that makes it carries the name.
    ///
    /// # Errors
    /// What the drive answers; [`KvError::InvalidValueSize`], [`KvError::BatchValueTooLarge`].
    pub(crate) fn execute_as(
        &mut self,
        records: &mut dyn Records,
        (request, namespace): Origin,
        command: Command<'_>,
    ) -> Result<Reply, KvError> {
        if self.is_shadow(namespace) {
            return Err(KvError::NoSuchNamespace(namespace));
        }
        match command {
            Command::Store { .. } | Command::Delete { .. } | Command::Batch { .. } => loop {
                self.lacks.clear();
                match self.change(records, (request, namespace), &command) {
                    Err(KvError::CapacityExceeded) if self.expire(records)? => records.then(),
                    answer => return answer,
                }
            },
            Command::Retrieve { key, offset_bytes, length_bytes } => {
                self.retrieve(records, namespace, key, (offset_bytes, length_bytes))
            }
            Command::CreateIterator { .. } => {
                let reply = records.execute(namespace, command)?;
                if let Reply::IteratorCreated(iterator) = reply {
                    self.youngest = iterator;
                }
                Ok(reply)
            }
            Command::Seek { iterator, .. } => {
                self.left.remove(&(namespace, iterator));
                let reply = records.execute(namespace, command)?;
                self.show(records, namespace, iterator, reply)
            }
            Command::Next { iterator, pairs_max } => self.next(records, namespace, iterator, pairs_max),
            Command::DestroyIterator { iterator } => {
                self.left.remove(&(namespace, iterator));
                let reply = records.execute(namespace, command)?;
                self.sweep_all(records)?;
                Ok(reply)
            }
            other => records.execute(namespace, other),
        }
    }

    /// Like [`Engine::glance`], for whole values.
    pub(crate) fn glance(
        &self,
        engine: &Engine,
        namespace: NamespaceId,
        command: &Command<'_>,
    ) -> Option<Result<Reply, KvError>> {
        let mut records = Glances { engine, sees_all: true };
        let reply = match *command {
            _ if self.is_shadow(namespace) => return None,
            Command::Retrieve { key, offset_bytes, length_bytes } => {
                self.retrieve(&mut records, namespace, key, (offset_bytes, length_bytes))
            }
            // Values of pairs have to be put together, and segments are kept while an iterator may show them.
            _ if command.is_of_iterator() => return None,
            _ => return engine.glance(namespace, command),
        };
        records.sees_all.then_some(reply)
    }

    fn change(
        &mut self,
        records: &mut dyn Records,
        (request, namespace): Origin,
        command: &Command<'_>,
    ) -> Result<Reply, KvError> {
        match *command {
            Command::Store { key, ref value, condition } => {
                self.store(records, (request, namespace), (key, value, condition))
            }
            Command::Delete { key } => {
                let old = self.manifest(records, namespace, key)?;
                records.then();
                match old {
                    None => records.execute_as((request, namespace), Command::Delete { key }),
                    old => self.replace(records, (request, namespace, key), None, (old, None)).map(|()| Reply::Deleted),
                }
            }
            Command::Batch { changes } => self.batch(records, request, changes),
            _ => unreachable!("it changes nothing"),
        }
    }

    /// After a change found no room: ends the oldest iterator if segments are kept for iterators, and deletes what none shows now. Returns
    /// whether that changed anything.
    fn expire(&mut self, records: &mut dyn Records) -> Result<bool, KvError> {
        let shown = self.shown();
        if shown == 0 {
            return Ok(false);
        }
        let has_ended = records.expire()?;
        self.sweep_all(records)?;
        Ok(has_ended || self.shown() < shown)
    }

    /// Large values that no key has and iterators may still show.
    fn shown(&self) -> usize {
        self.shadows.iter().map(|shadow| shadow.shown.len()).sum()
    }

    /// The most bytes of a value that stays in its record: a batch must have room for one, and for ledgers.
    pub(crate) fn inline_bytes_max(&self) -> u32 {
        self.segment_bytes / 2
    }

    /// Where the large value of a key that is about to change is, if it has one. The change begins behind this ([`Records::then`]).
    fn manifest(
        &mut self,
        records: &mut dyn Records,
        namespace: NamespaceId,
        key: Key<'_>,
    ) -> Result<Option<Manifest>, KvError> {
        if self.shadow(namespace).is_none_or(|shadow| shadow.ledger.values == 0) {
            return Ok(None);
        }
        let command = Command::Retrieve { key, offset_bytes: 0, length_bytes: MANIFEST_BYTES };
        match records.execute(namespace, command) {
            Ok(Reply::Retrieved { value, .. }) => match Tagged::read(&value)? {
                Tagged::Inline => Ok(None),
                Tagged::Large(manifest) => {
                    self.check_ledger(records, namespace)?;
                    Ok(Some(manifest))
                }
            },
            Err(KvError::KeyNotFound) => Ok(None),
            Err(error) => Err(error),
            Ok(other) => Err(unexpected(&other)),
        }
    }

    fn store(
        &mut self,
        records: &mut dyn Records,
        (request, namespace): Origin,
        (key, value, condition): (Key<'_>, &Value, StoreCondition),
    ) -> Result<Reply, KvError> {
        if value.len() > self.value_bytes_max as usize {
            let (value_bytes, value_bytes_max) = (value.len() as u64, self.value_bytes_max.into());
            return Err(KvError::InvalidValueSize { value_bytes, value_bytes_max });
        }
        let old = self.manifest(records, namespace, key)?;
        let is_inline = value.len() <= self.inline_bytes_max() as usize;
        if is_inline && old.is_none() {
            let growth = self.growth(records, namespace, key, value)?;
            records.then();
            self.check_quota(records, namespace, growth)?;
            let command = Command::Store { key, value: Tagged::inline(value), condition };
            return records.execute_as((request, namespace), command);
        }
        let exists = match records.execute(namespace, Command::Exist { key }) {
            Err(KvError::KeyNotFound) => false,
            other => other.map(|_| true)?,
        };
        records.then();
        match condition {
            StoreCondition::IfExists if !exists => return Err(KvError::KeyNotFound),
            StoreCondition::IfAbsent if exists => return Err(KvError::KeyExists),
            _ => {}
        }
        self.check_quota(records, namespace, value.len() as u64)?;
        let (new, bound) = if is_inline {
            (None, Tagged::inline(value))
        } else {
            let manifest = self.write_segments(records, namespace, value)?;
            (Some(manifest), manifest.encode())
        };
        self.replace(records, (request, namespace, key), Some(bound), (old, new)).map(|()| Reply::Stored)
    }

    /// Writes the segments of a value that no key has yet.
    fn write_segments(
        &mut self,
        records: &mut dyn Records,
        namespace: NamespaceId,
        value: &Value,
    ) -> Result<Manifest, KvError> {
        self.check_ledger(records, namespace)?;
        let segment_bytes = self.segment_bytes;
        let shadow = self.shadow_mut(namespace)?;
        let mut ledger = shadow.ledger.clone();
        let manifest = Manifest { id: ledger.next_id, value_bytes: value.len() as u32, segment_bytes };
        ledger.next_id += 1;
        ledger.unowned.push((manifest.id, manifest.segments()));
        shadow.save(records, ledger)?;
        records.then();
        let (mut written, mut later_bytes) = (Ok(()), 0);
        for number in 0..manifest.segments() {
            let begin = number as usize * segment_bytes as usize;
            let part = value.slice(begin..value.len().min(begin + segment_bytes as usize));
            let key = segment_key(manifest.id, number);
            let command = Command::Store { key: Key::new(&key)?, value: part, condition: StoreCondition::Always };
            written = records.execute(shadow.id, command).map(|_| ());
            if written.is_err() {
                later_bytes = value.len().saturating_sub(begin + segment_bytes as usize) as u64;
                break;
            }
        }
        if let Err(error) = written {
            if let [Lack::OnDrive { bytes }] = records.lacks()[..] {
                // There is none for the segments behind it either.
                self.lacks.push(Lack::OnDrive { bytes: bytes + later_bytes });
            }
            self.sweep(records, namespace)?;
            return Err(error);
        }
        records.then();
        Ok(manifest)
    }

    /// Binds a key to its new value or removes it, and gives up its old one, both at once.
    fn replace(
        &mut self,
        records: &mut dyn Records,
        (request, namespace, key): (Option<RequestId>, NamespaceId, Key<'_>),
        bound: Option<Value>,
        (old, new): (Option<Manifest>, Option<Manifest>),
    ) -> Result<(), KvError> {
        let youngest = self.youngest;
        let shadow = self.shadow_mut(namespace)?;
        let mut ledger = shadow.ledger.clone();
        ledger.replace(old.as_ref(), new.as_ref());
        let noted = BatchChange { namespace: shadow.id, key: Ledger::key(), value: Some(ledger.encode()) };
        let changes = [BatchChange { namespace, key, value: bound }, noted];
        let changed = records.execute_as((request, namespace), Command::Batch { changes: &changes });
        if changed.is_ok() {
            shadow.changed(ledger, youngest);
        }
        self.sweep(records, namespace)?;
        changed.map(|_| ())
    }

    fn retrieve(
        &self,
        records: &mut dyn Records,
        namespace: NamespaceId,
        key: Key<'_>,
        (offset_bytes, length_bytes): (u32, u32),
    ) -> Result<Reply, KvError> {
        let ahead_bytes = if offset_bytes == 0 { length_bytes.saturating_add(TAG_BYTES) } else { 0 };
        let command = Command::Retrieve { key, offset_bytes: 0, length_bytes: ahead_bytes.max(MANIFEST_BYTES) };
        let (ahead, record_bytes) = match records.execute(namespace, command)? {
            Reply::Retrieved { value, value_bytes } => (value, value_bytes),
            other => return Err(unexpected(&other)),
        };
        match Tagged::read(&ahead)? {
            Tagged::Large(manifest) => {
                records.then();
                let part = (offset_bytes, length_bytes);
                let value = self.read_segments(records, namespace, &manifest, part).map_err(|error| match error {
                    KvError::KeyNotFound => KvError::Unrecovered("a segment of a large value is missing".to_owned()),
                    other => other,
                })?;
                Ok(Reply::Retrieved { value, value_bytes: manifest.value_bytes })
            }
            Tagged::Inline => {
                let value_bytes = record_bytes - TAG_BYTES;
                if offset_bytes == 0 {
                    let end = (TAG_BYTES as usize).saturating_add(length_bytes as usize).min(ahead.len());
                    return Ok(Reply::Retrieved { value: ahead.slice(TAG_BYTES as usize..end), value_bytes });
                }
                records.then();
                let offset_bytes = offset_bytes.saturating_add(TAG_BYTES);
                match records.execute(namespace, Command::Retrieve { key, offset_bytes, length_bytes })? {
                    Reply::Retrieved { value, .. } => Ok(Reply::Retrieved { value, value_bytes }),
                    other => Err(unexpected(&other)),
                }
            }
        }
    }

    /// Reads a part of a large value; [`KvError::KeyNotFound`] if it has been deleted.
    fn read_segments(
        &self,
        records: &mut dyn Records,
        namespace: NamespaceId,
        manifest: &Manifest,
        (offset_bytes, length_bytes): (u32, u32),
    ) -> Result<Value, KvError> {
        let shadow = self.shadow(namespace).ok_or(KvError::NoSuchNamespace(namespace))?.id;
        if manifest.value_bytes > self.value_bytes_max || manifest.segment_bytes != self.segment_bytes {
            return Err(KvError::Unrecovered("a manifest is not one of this drive".to_owned()));
        }
        let end = offset_bytes.saturating_add(length_bytes).min(manifest.value_bytes);
        let mut value = ValueBuilder::with_length(end.saturating_sub(offset_bytes) as usize);
        let mut at = offset_bytes;
        while at < end {
            let (number, offset_bytes) = (at / manifest.segment_bytes, at % manifest.segment_bytes);
            let wanted = (manifest.segment_bytes - offset_bytes).min(end - at);
            let key = segment_key(manifest.id, number);
            let command = Command::Retrieve { key: Key::new(&key)?, offset_bytes, length_bytes: wanted };
            match records.execute(shadow, command) {
                Ok(Reply::Retrieved { value: Value::Pattern(part), .. }) if part.length == wanted => {
                    value.push_pattern(part);
                }
                Ok(Reply::Retrieved { value: Value::Bytes(part), .. }) if part.len() == wanted as usize => {
                    value.push_bytes(&part);
                }
                Ok(_) => return Err(KvError::Unrecovered("a segment of a large value is short".to_owned())),
                Err(error) => return Err(error),
            }
            at += wanted;
        }
        Ok(value.build())
    }
}

/// Answers have the shape of their commands; a drive that breaks that is not trusted.
fn unexpected(reply: &Reply) -> KvError {
    KvError::Failed(format!("an answer to another command: {reply:?}"))
}
