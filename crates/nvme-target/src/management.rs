//! How hosts make and delete namespaces.
//!
//! ```text
//!   create, delete   the drive, committed   then its number is there, or is not    then every connection looks anew
//! ```
//!
//! A number may be given again. So rights by number go with the namespace that they were given for, and hosts are told of
//! a namespace that came in another's place.

use crate::execution::Executor;
use crate::rights::Rights;
use crate::status::{absent, status_of};
use crate::subsystem::Subsystem;
use kvssd_cache::CacheAttributes;
use kvssd_device::Partitions;
use kvssd_ftl::{NamespaceAttributes, NamespaceInfo};
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::named::{CreateNamespace, FLAG_ORDERED, NAME_BYTES_MAX, SetCache, read_name, told_birth};
use kvssd_types::{KvError, NamespaceId};

impl Subsystem {
    /// The numbers of all namespaces, and their names, as they are now; `None` of a drive that has failed.
    #[must_use]
    pub fn namespace_names(&self) -> Option<Vec<(u32, Option<String>)>> {
        let infos = self.infos().ok()?;
        Some(infos.into_iter().map(|info| (info.id.0, info.attributes.name)).collect())
    }

    /// As [`Subsystem::set_rights`], for namespaces of those names. Returns whether they are called so still; if not, all
    /// rights stay as they were.
    pub fn set_rights_of(&self, names: &[(u32, Option<String>)], rights: Rights) -> bool {
        let set = |drive: &mut Partitions<'_>| {
            let infos = drive.namespaces().into_iter();
            let is_so = infos.map(|info| (info.id.0, info.attributes.name)).eq(names.iter().cloned());
            if is_so {
                self.set_rights(rights);
            }
            is_so
        };
        self.with_drive(set).unwrap_or(false)
    }

    /// Makes a namespace for a host; returns its number, and what is told of its birth. It outlives the process when this returns.
    pub(crate) fn create_namespace(&self, host: &str, data: &[u8]) -> Result<(u32, u32), Status> {
        let wanted = CreateNamespace::from_data(data).ok_or(Status::SglLengthInvalid)?;
        let attributes = attributes(wanted).ok_or(Status::InvalidField)?;
        self.on_namespaces(host, |executor| {
            let drive = &mut executor.drive;
            let is_taken = |info: &NamespaceInfo| info.attributes.name == attributes.name;
            if drive.namespaces().iter().any(is_taken) {
                return Err(Status::NamespaceNameTaken);
            }
            let created = drive.create_namespace(attributes.clone()).map_err(|error| refused(&error))?;
            drive.commit().map_err(|error| status_of(&error))?;
            // While nobody else has the drive: who sees it there sees it here.
            let birth =
                drive.namespaces().iter().find(|info| info.id == created).map_or(0, |info| told_birth(info.birth));
            self.namespaces.add(created.0, birth);
            Ok((created.0, birth))
        })
    }

    /// Deletes the namespace of that number and name for a host, if it is the one that is meant. The first one stays.
    pub(crate) fn delete_namespace(&self, host: &str, meant: Meant, data: &[u8]) -> Result<(), Status> {
        let id = meant.id;
        let name = read_name(data.get(..NAME_BYTES_MAX).ok_or(Status::SglLengthInvalid)?);
        if NamespaceId(id) == NamespaceId::FIRST {
            return Err(Status::OperationDenied);
        }
        self.on_namespaces(host, |executor| {
            let drive = &mut executor.drive;
            if !drive.namespaces().iter().any(|info| meant.is_it(info, name)) {
                return Err(absent(id));
            }
            drive.delete_namespace(NamespaceId(id)).map_err(|error| refused(&error))?;
            executor.forget_namespace(NamespaceId(id));
            // Before the commit: what fails now is deleted, or the drive takes nothing any more.
            self.namespaces.remove(id);
            self.attachments.forget_namespace(id);
            self.hosts.forget_namespace(id);
            executor.drive.commit().map_err(|error| status_of(&error))
        })
    }

    /// Makes the namespace of that number and name a cache for a host, another one, or none, if it is the one that is meant.
    pub(crate) fn set_cache(&self, host: &str, meant: Meant, data: &[u8]) -> Result<(), Status> {
        let id = meant.id;
        let wanted = SetCache::from_data(data).ok_or(Status::SglLengthInvalid)?;
        let name = read_name(&wanted.name);
        let text = read_name(&wanted.cache);
        if !wanted.is_known() || !is_whole(&wanted.name, name) || !is_whole(&wanted.cache, text) {
            return Err(Status::InvalidField);
        }
        let cache: Option<CacheAttributes> = text.map(str::parse).transpose().map_err(|error| {
            tracing::warn!(%error, "a host's cache was not made");
            Status::InvalidField
        })?;
        self.on_namespaces(host, |executor| {
            let drive = &mut executor.drive;
            if !drive.namespaces().iter().any(|info| meant.is_it(info, name)) {
                return Err(absent(id));
            }
            drive.set_cache(NamespaceId(id), cache).map_err(|error| refused(&error))?;
            drive.commit().map_err(|error| status_of(&error))
        })
    }

    /// Attaches a namespace to controllers, or detaches it, if the host may. No command of theirs is executed on it after this
    /// returns.
    pub(crate) fn set_attached(
        &self,
        host: &str,
        (id, is_attach): (u32, bool),
        controllers: &[u16],
    ) -> Result<(), Status> {
        self.on_namespaces(host, |_| {
            if !self.namespaces.contains(id) {
                return Err(absent(id));
            }
            self.attachments.set(id, is_attach, controllers)
        })
    }

    /// Changes the namespaces, if the host may, and has every connection look at them anew.
    fn on_namespaces<T>(
        &self,
        host: &str,
        change: impl FnOnce(&mut Executor<'_>) -> Result<T, Status>,
    ) -> Result<T, Status> {
        let change = |executor: &mut Executor<'_>| {
            // It may have waited for the drive while its right was taken away.
            if !self.hosts.may_manage(host) {
                return Err(Status::OperationDenied);
            }
            let changed = change(executor);
            // Nobody executes a command by older rights from here on.
            self.hosts.look_anew();
            changed
        };
        self.with_executor(change).ok_or(Status::InternalError)?
    }
}

/// The namespace that a command means: its number, and which one of that number if it says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meant {
    pub(crate) id: u32,
    pub(crate) birth: Option<u32>,
}

impl Meant {
    fn is_it(self, info: &NamespaceInfo, name: Option<&str>) -> bool {
        let is_born_so = self.birth.is_none_or(|birth| birth == told_birth(info.birth));
        info.id.0 == self.id && info.attributes.name.as_deref() == name && is_born_so
    }
}

/// The attributes of a namespace with a name; `None` if it has none, or fields that are not known.
fn attributes(wanted: &CreateNamespace) -> Option<NamespaceAttributes> {
    let name = read_name(&wanted.name)?;
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

/// Whether nothing stands behind the text of a field.
fn is_whole(field: &[u8], text: Option<&str>) -> bool {
    field[text.map_or(0, str::len)..].iter().all(|&byte| byte == 0)
}

/// The status of a namespace that was not made, with a line in the log: there is more to say than that.
fn refused(error: &KvError) -> Status {
    tracing::warn!(%error, "a host's namespace was not made or deleted");
    match error {
        KvError::TooManyNamespaces { .. } => Status::NamespaceIdUnavailable,
        error => status_of(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subsystem::tests::new_in;
    use kvssd_nvme_spec::write_text;
    use std::thread;
    use std::time::Duration;
    use zerocopy::IntoBytes;

    /// Rights that are taken away while a command waits for the drive are gone when its turn comes.
    #[test]
    fn who_may_not_manage_any_more_makes_and_deletes_nothing_that_waited() {
        let folder = tempfile::tempdir().unwrap();
        let subsystem = new_in(folder.path());
        let mut wanted = CreateNamespace::zeroed();
        write_text(&mut wanted.name, "new");
        let create = || subsystem.create_namespace("nqn.host", wanted.as_bytes()).map(|(id, _)| id);
        let meant = Meant { id: 2, birth: None };
        let delete = || subsystem.delete_namespace("nqn.host", meant, &wanted.name).map(|()| 2);
        assert_eq!(create(), Ok(2));
        for waits in [&create as &(dyn Fn() -> Result<u32, Status> + Sync), &delete] {
            subsystem.set_rights(Rights::everybody());
            thread::scope(|scope| {
                let waiting = subsystem.with_drive(|_| {
                    let waiting = scope.spawn(waits);
                    thread::sleep(Duration::from_millis(100));
                    subsystem.set_rights(Rights::only(["nqn.other".to_owned()]));
                    waiting
                });
                assert_eq!(waiting.unwrap().join().unwrap(), Err(Status::OperationDenied));
            });
        }
        assert_eq!(subsystem.namespace_names().unwrap().len(), 2);
        subsystem.close().unwrap();
    }
}
