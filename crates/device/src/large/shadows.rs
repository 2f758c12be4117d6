//! Shadows: hidden namespaces for segments, one beside each of a host's, and the deletes in them.

use super::ledger::{Ledger, segment_key};
use super::{LargeValues, Records, UNOWNED_MAX};
use crate::clocked::Clocked;
use kvssd_ftl::{Lack, NamespaceAttributes, NamespaceInfo, Utilization};
use kvssd_types::{Command, IteratorId, Key, KvError, NamespaceId, Reply, StoreCondition, Value};
use std::collections::BTreeMap;

/// What the names of shadows begin with; the number of their owner follows.
const NAME_PREFIX: &str = "segments of ";
/// Bytes of a record beside its key and value, including the tag.
const RECORD_HEAD_BYTES: u64 = 6;

/// The segments and the ledger of a namespace.
#[derive(Clone, Debug)]
pub(super) struct Shadow {
    pub(super) owner: NamespaceId,
    pub(super) id: NamespaceId,
    /// The most that it and its owner may take together.
    quota_bytes: Option<u64>,
    /// The ledger as it is stored.
    pub(super) ledger: Ledger,
    /// Why the ledger cannot be read, on a read-only drive, which needs none.
    pub(super) fault: Option<KvError>,
    /// Ids that iterators may still show, each with the youngest iterator at the time when its key gave it up.
    pub(super) shown: BTreeMap<u64, IteratorId>,
}

impl Shadow {
    /// An empty shadow.
    fn new(owner: NamespaceId, id: NamespaceId, quota_bytes: Option<u64>) -> Self {
        Shadow { owner, id, quota_bytes, ledger: Ledger::default(), fault: None, shown: BTreeMap::new() }
    }

    /// Stores a ledger.
    pub(super) fn save(&mut self, records: &mut dyn Records, ledger: Ledger) -> Result<(), KvError> {
        let command = Command::Store { key: Ledger::key(), value: ledger.encode(), condition: StoreCondition::Always };
        records.execute(self.id, command)?;
        self.ledger = ledger;
        Ok(())
    }

    /// Notes that a change has stored `ledger`: iterators up to the youngest may still show values that no key has any more.
    pub(super) fn changed(&mut self, ledger: Ledger, youngest: IteratorId) {
        let known = |id: &u64| self.ledger.unowned.iter().any(|(known, _)| known == id);
        let new: Vec<u64> = ledger.unowned.iter().map(|&(id, _)| id).filter(|id| !known(id)).collect();
        self.shown.extend(new.into_iter().map(|id| (id, youngest)));
        self.ledger = ledger;
    }

    fn load(&mut self, records: &mut dyn Records) -> Result<(), KvError> {
        let command = Command::Retrieve { key: Ledger::key(), offset_bytes: 0, length_bytes: u32::MAX };
        self.ledger = match records.execute(self.id, command) {
            Ok(Reply::Retrieved { value, .. }) => Ledger::decode(&value)?,
            // Nothing large was stored yet.
            Err(KvError::KeyNotFound) => Ledger::default(),
            Err(error) => return Err(error),
            Ok(other) => return Err(super::unexpected(&other)),
        };
        Ok(())
    }

    /// Deletes the segments of ids that no key has and no iterator shows. Segments that cannot be deleted now stay in the ledger, and nothing
    /// waits for them.
    fn sweep(&mut self, records: &mut dyn Records) -> Result<(), KvError> {
        if self.ledger.unowned.is_empty() {
            return Ok(());
        }
        let oldest = records.oldest_iterator();
        self.shown.retain(|_, youngest| oldest.is_some_and(|oldest| oldest <= *youngest));
        let mut unowned = Vec::new();
        for &(id, segments) in &self.ledger.unowned {
            if self.shown.contains_key(&id) {
                unowned.push((id, segments));
                continue;
            }
            match self.delete_segments(records, id, segments) {
                Ok(()) => {}
                Err(error) if error.is_fatal() => return Err(error),
                Err(_) => unowned.push((id, segments)),
            }
        }
        if unowned.len() == self.ledger.unowned.len() {
            return Ok(());
        }
        let swept = Ledger { unowned, ..self.ledger.clone() };
        self.save(records, swept).or_else(|error| if error.is_fatal() { Err(error) } else { Ok(()) })
    }

    fn delete_segments(&self, records: &mut dyn Records, id: u64, segments: u32) -> Result<(), KvError> {
        for number in 0..segments {
            match records.execute(self.id, Command::Delete { key: Key::new(&segment_key(id, number))? }) {
                Ok(_) | Err(KvError::KeyNotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The owner of a namespace, if it is a shadow.
fn owner_of(info: &NamespaceInfo) -> Option<NamespaceId> {
    let number = info.attributes.name.as_deref()?.strip_prefix(NAME_PREFIX)?;
    number.parse().ok().map(NamespaceId)
}

impl LargeValues {
    /// Opens the large values of a drive, and creates shadows that are missing. Unless the drive is read-only, it deletes what an
    /// interrupted process left behind.
    pub(crate) fn open(value_bytes_max: u32, drive: &mut Clocked, is_read_only: bool) -> Result<LargeValues, KvError> {
        let record_bytes_max = drive.device.engine().value_bytes_max();
        let segment_bytes = u32::try_from(record_bytes_max).unwrap_or(u32::MAX);
        let mut large = LargeValues {
            value_bytes_max,
            segment_bytes,
            shadows: Vec::new(),
            left: BTreeMap::new(),
            youngest: IteratorId(0),
            lacks: Vec::new(),
        };
        let namespaces = drive.device.engine().namespaces();
        let is_there = |id: NamespaceId| namespaces.iter().any(|info| info.id == id && owner_of(info).is_none());
        for info in &namespaces {
            match owner_of(info) {
                Some(owner) if is_there(owner) => {
                    let of_owner = namespaces.iter().find(|info| info.id == owner);
                    let quota_bytes = of_owner.and_then(|info| info.attributes.quota_bytes);
                    let mut shadow = Shadow::new(owner, info.id, quota_bytes);
                    match shadow.load(drive) {
                        Err(error @ KvError::Unrecovered(_)) if is_read_only => shadow.fault = Some(error),
                        loaded => loaded?,
                    }
                    large.shadows.push(shadow);
                }
                // A process deleted its owner, and ended then.
                Some(_) if !is_read_only => drive.delete_namespace(info.id)?,
                Some(owner) => large.shadows.push(Shadow::new(owner, info.id, None)),
                None => {}
            }
        }
        if !is_read_only {
            for info in namespaces.iter().filter(|info| owner_of(info).is_none()) {
                if large.shadow(info.id).is_some() {
                    continue;
                }
                match large.add(drive, (info.id, None), &info.attributes) {
                    // A process made it, and ended before it saw that there is no room for a shadow.
                    Err(KvError::TooManyNamespaces { .. }) if info.utilization.pairs == 0 => {
                        drive.delete_namespace(info.id)?;
                    }
                    added => added?,
                }
            }
            large.sweep_all(drive)?;
        }
        Ok(large)
    }

    /// Makes a namespace with its shadow.
    pub(crate) fn create_namespace(
        &mut self,
        drive: &mut Clocked,
        numbers: Option<[NamespaceId; 2]>,
        attributes: &NamespaceAttributes,
    ) -> Result<NamespaceId, KvError> {
        if attributes.name.as_ref().is_some_and(|name| name.starts_with(NAME_PREFIX)) {
            return Err(KvError::InvalidNamespace(format!(
                "names that begin with {NAME_PREFIX:?} are the drive's own"
            )));
        }
        // Hosts do not see shadows, and are not to be told of them.
        let namespaces = self.shadows.len() as u32;
        let seen = |error| match error {
            KvError::TooManyNamespaces { .. } => KvError::TooManyNamespaces { namespaces },
            other => other,
        };
        let owner = drive.create_namespace(numbers.map(|[id, _]| id), attributes.clone()).map_err(seen)?;
        if let Err(error) = self.add(drive, (owner, numbers.map(|[_, id]| id)), attributes) {
            drive.delete_namespace(owner)?;
            return Err(seen(error));
        }
        Ok(owner)
    }

    /// Deletes a namespace with its shadow.
    pub(crate) fn delete_namespace(&mut self, drive: &mut Clocked, owner: NamespaceId) -> Result<(), KvError> {
        if self.is_shadow(owner) {
            return Err(KvError::NoSuchNamespace(owner));
        }
        drive.delete_namespace(owner)?;
        // Another namespace may get its number.
        self.left.retain(|(namespace, _), _| *namespace != owner);
        match self.shadows.iter().position(|shadow| shadow.owner == owner) {
            Some(position) => drive.delete_namespace(self.shadows.remove(position).id),
            None => Ok(()),
        }
    }

    fn add(
        &mut self,
        drive: &mut Clocked,
        (owner, number): (NamespaceId, Option<NamespaceId>),
        attributes: &NamespaceAttributes,
    ) -> Result<(), KvError> {
        let NamespaceAttributes { quota_bytes, logs, .. } = *attributes;
        // The quota is for both together, which the engine does not know.
        let name = Some(format!("{NAME_PREFIX}{owner}"));
        let id = drive.create_namespace(number, NamespaceAttributes { name, logs, ..NamespaceAttributes::PLAIN })?;
        self.shadows.push(Shadow::new(owner, id, quota_bytes));
        Ok(())
    }

    /// The namespaces that hosts see, with what their shadows take.
    pub(crate) fn namespaces(&self, all: Vec<NamespaceInfo>) -> Vec<NamespaceInfo> {
        let (shadows, mut seen): (Vec<_>, Vec<_>) = all.into_iter().partition(|info| self.is_shadow(info.id));
        for info in &mut seen {
            let shadow = self.shadow(info.id).and_then(|shadow| shadows.iter().find(|other| other.id == shadow.id));
            if let Some(shadow) = shadow {
                let Utilization { pairs, capacity_bytes, .. } = info.utilization;
                info.utilization = Utilization { pairs, capacity_bytes, ..info.utilization.plus(&shadow.utilization) };
            }
        }
        seen
    }

    pub(super) fn shadow(&self, owner: NamespaceId) -> Option<&Shadow> {
        self.shadows.iter().find(|shadow| shadow.owner == owner)
    }

    pub(super) fn shadow_mut(&mut self, owner: NamespaceId) -> Result<&mut Shadow, KvError> {
        self.shadows.iter_mut().find(|shadow| shadow.owner == owner).ok_or(KvError::NoSuchNamespace(owner))
    }

    /// Where the segments of a namespace are.
    pub(crate) fn shadow_of(&self, owner: NamespaceId) -> Option<NamespaceId> {
        self.shadow(owner).map(|shadow| shadow.id)
    }

    /// What the last change lacked that was refused for lack of room.
    pub(crate) fn lacks(&self, records: &dyn Records) -> Vec<Lack> {
        let of_owner = |lack| match lack {
            Lack::InNamespace(id) => {
                let shadow = self.shadows.iter().find(|shadow| shadow.id == id);
                Lack::InNamespace(shadow.map_or(id, |shadow| shadow.owner))
            }
            other => other,
        };
        let of_records = || records.lacks().into_iter().map(of_owner).collect();
        if self.lacks.is_empty() { of_records() } else { self.lacks.clone() }
    }

    pub(crate) fn is_shadow(&self, id: NamespaceId) -> bool {
        self.shadows.iter().any(|shadow| shadow.id == id)
    }

    /// Deletes the values that no key of a namespace has and no iterator may show.
    pub(super) fn sweep(&mut self, records: &mut dyn Records, owner: NamespaceId) -> Result<(), KvError> {
        self.shadow_mut(owner)?.sweep(records)
    }

    /// Checks that the ledger has room for one more id that no key has.
    pub(super) fn check_ledger(&mut self, records: &mut dyn Records, owner: NamespaceId) -> Result<(), KvError> {
        if self.shadow_mut(owner)?.ledger.unowned.len() >= UNOWNED_MAX {
            self.sweep(records, owner)?;
        }
        if self.shadow_mut(owner)?.ledger.unowned.len() < UNOWNED_MAX {
            return Ok(());
        }
        self.lacks.push(Lack::Elsewhere);
        Err(KvError::CapacityExceeded)
    }

    /// Checks that a namespace, with its segments, may take `bytes` more.
    pub(super) fn check_quota(&mut self, records: &dyn Records, owner: NamespaceId, bytes: u64) -> Result<(), KvError> {
        let Some(&Shadow { id, quota_bytes: Some(quota_bytes), .. }) = self.shadow(owner) else { return Ok(()) };
        let taken_bytes = records.record_bytes(owner) + records.record_bytes(id);
        if taken_bytes + bytes <= quota_bytes {
            return Ok(());
        }
        self.lacks.push(Lack::InNamespace(owner));
        Err(KvError::CapacityExceeded)
    }

    /// The bytes by which a namespace with a quota grows when a key gets a value that stays in its record.
    pub(super) fn growth(
        &self,
        records: &mut dyn Records,
        owner: NamespaceId,
        key: Key<'_>,
        value: &Value,
    ) -> Result<u64, KvError> {
        if self.shadow(owner).is_none_or(|shadow| shadow.quota_bytes.is_none()) {
            return Ok(0);
        }
        let head_bytes = key.bytes().len() as u64 + RECORD_HEAD_BYTES;
        match records.execute(owner, Command::Retrieve { key, offset_bytes: 0, length_bytes: 0 }) {
            Ok(Reply::Retrieved { value_bytes, .. }) => Ok((value.len() as u64).saturating_sub(value_bytes.into())),
            Err(KvError::KeyNotFound) => Ok(head_bytes + value.len() as u64),
            Err(error) => Err(error),
            Ok(other) => Err(super::unexpected(&other)),
        }
    }

    /// Reads the ledgers again, after a change was undone.
    pub(crate) fn reload(&mut self, records: &mut dyn Records) -> Result<(), KvError> {
        for shadow in &mut self.shadows {
            shadow.load(records)?;
            let Shadow { ledger, shown, .. } = shadow;
            shown.retain(|id, _| ledger.unowned.iter().any(|(unowned, _)| unowned == id));
        }
        Ok(())
    }

    pub(super) fn sweep_all(&mut self, records: &mut dyn Records) -> Result<(), KvError> {
        self.shadows.iter_mut().try_for_each(|shadow| shadow.sweep(records))
    }
}
