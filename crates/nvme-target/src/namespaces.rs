//! The namespaces of a drive while it is served: which there are, and how hosts make and delete them.
//!
//! ```text
//!   create, delete   the drive, committed   then its number is there, or is not    then every connection looks anew
//! ```
//!
//! A number may be given again. So rights by number go with the namespace that they were given for, and hosts are told of
//! a namespace that came in another's place.

use crate::lock::lock;
use crate::status::{absent, status_of};
use crate::subsystem::Subsystem;
use kvssd_ftl::{NamespaceAttributes, NamespaceInfo};
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::named::{
    CreateNamespace, FLAG_ORDERED, NAME_BYTES_MAX, NamespaceEntry, namespaces_page, read_name,
};
use kvssd_nvme_spec::write_text;
use kvssd_runtime::sync::{Mutex, PoisonError, RwLock};
use kvssd_types::{KvError, NamespaceId};
use std::collections::BTreeMap;

/// The numbers of all namespaces, each with a number that no other namespace of this service has.
pub(crate) struct Namespaces {
    living: RwLock<BTreeMap<u32, u64>>,
    born: Mutex<u64>,
}

impl Namespaces {
    /// With those that there are when the service begins.
    pub(crate) fn new(living: impl IntoIterator<Item = u32>) -> Self {
        Namespaces { living: RwLock::new(living.into_iter().map(|id| (id, 0)).collect()), born: Mutex::new(0) }
    }

    /// Whether there is a namespace of that number.
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.living.read().unwrap_or_else(PoisonError::into_inner).contains_key(&id)
    }

    /// All of them.
    pub(crate) fn living(&self) -> BTreeMap<u32, u64> {
        self.living.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, id: u32) {
        let mut born = lock(&self.born);
        *born += 1;
        self.living.write().unwrap_or_else(PoisonError::into_inner).insert(id, *born);
    }

    fn remove(&self, id: u32) {
        self.living.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}

impl Subsystem {
    /// Makes a namespace; returns its number. It outlives the process when this returns.
    pub(crate) fn create_namespace(&self, data: &[u8]) -> Result<u32, Status> {
        let wanted = CreateNamespace::from_data(data).ok_or(Status::SglLengthInvalid)?;
        let attributes = attributes(wanted).ok_or(Status::InvalidField)?;
        self.on_namespaces(|drive| {
            let is_taken = |info: &NamespaceInfo| info.attributes.name == attributes.name;
            if drive.namespaces().iter().any(is_taken) {
                return Err(Status::NamespaceNameTaken);
            }
            let created = drive.create_namespace(attributes.clone()).map_err(|error| refused(&error))?;
            drive.commit().map_err(|error| status_of(&error))?;
            // While nobody else has the drive: who sees it there sees it here.
            self.namespaces.add(created.0);
            Ok(created.0)
        })
    }

    /// Deletes the namespace of that number and name. The first one stays.
    pub(crate) fn delete_namespace(&self, id: u32, data: &[u8]) -> Result<(), Status> {
        let name = read_name(data.get(..NAME_BYTES_MAX).ok_or(Status::SglLengthInvalid)?);
        if NamespaceId(id) == NamespaceId::FIRST {
            return Err(Status::OperationDenied);
        }
        self.on_namespaces(|drive| {
            let is_it = |info: &NamespaceInfo| info.id.0 == id && info.attributes.name.as_deref() == name;
            if !drive.namespaces().iter().any(is_it) {
                return Err(absent(id));
            }
            drive.delete_namespace(NamespaceId(id)).map_err(|error| refused(&error))?;
            // Before the commit: what fails now is deleted, or the drive takes nothing any more.
            self.namespaces.remove(id);
            self.hosts.forget_namespace(id);
            drive.commit().map_err(|error| status_of(&error))
        })
    }

    /// Changes the namespaces, and has every connection look at them anew.
    fn on_namespaces<T>(
        &self,
        change: impl FnOnce(&mut kvssd_device::Drive) -> Result<T, Status>,
    ) -> Result<T, Status> {
        let change = |drive: &mut kvssd_device::Drive| {
            let changed = change(drive);
            // Nobody executes a command by older rights from here on.
            self.hosts.look_anew();
            changed
        };
        self.with_drive(change).ok_or(Status::InternalError)?
    }
}

/// The attributes of a namespace with a name; `None` if it has none, or fields that are not known.
fn attributes(wanted: &CreateNamespace) -> Option<NamespaceAttributes> {
    let name = read_name(&wanted.name)?;
    let is_whole = |field: &[u8], text: Option<&str>| {
        let end = text.map_or(0, str::len);
        field[end..].iter().all(|&byte| byte == 0)
    };
    let index = read_name(&wanted.index);
    if !wanted.is_known() || !is_whole(&wanted.name, Some(name)) || !is_whole(&wanted.index, index) {
        return None;
    }
    let quota_bytes = wanted.quota_bytes.get();
    Some(NamespaceAttributes {
        name: Some(name.to_owned()),
        index: index.map(str::to_owned),
        quota_bytes: (quota_bytes > 0).then_some(quota_bytes),
        is_ordered: wanted.flags.get() & FLAG_ORDERED != 0,
        ..NamespaceAttributes::PLAIN
    })
}

/// The status of a namespace that was not made, with a line in the log: there is more to say than that.
fn refused(error: &KvError) -> Status {
    tracing::warn!(%error, "a host's namespace was not made or deleted");
    match error {
        KvError::TooManyNamespaces { .. } => Status::NamespaceIdUnavailable,
        error => status_of(error),
    }
}

/// Log page C1h.
pub(crate) fn page_of(namespaces: &[NamespaceInfo]) -> Vec<u8> {
    let entries: Vec<NamespaceEntry> = namespaces.iter().map(entry_of).collect();
    namespaces_page(&entries)
}

fn entry_of(info: &NamespaceInfo) -> NamespaceEntry {
    let mut entry = NamespaceEntry::zeroed();
    entry.number = info.id.0.into();
    entry.flags = if info.is_ordered { FLAG_ORDERED } else { 0 }.into();
    entry.pairs = info.utilization.pairs.into();
    entry.pair_bytes = info.utilization.pair_bytes.into();
    entry.live_bytes = info.utilization.live_bytes.into();
    entry.quota_bytes = info.attributes.quota_bytes.unwrap_or(0).into();
    entry.capacity_bytes = info.utilization.capacity_bytes.into();
    write_text(&mut entry.name, info.attributes.name.as_deref().unwrap_or(""));
    write_text(&mut entry.index, &info.index);
    entry
}
