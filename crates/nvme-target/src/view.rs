//! The drive as a host sees it: with the namespaces that it may know of, and without a trace of the others.

use crate::command_kind::CommandKind;
use crate::rights::{Access, HostRights};
use crate::status::absent;
use crate::subsystem::Subsystem;
use kvssd_device::{CacheInfo, Partitions};
use kvssd_ftl::NamespaceInfo;
use kvssd_nvme_spec::Status;
use kvssd_nvme_spec::command::NAMESPACE_ALL;
use kvssd_types::NamespaceId;
use std::collections::BTreeMap;

/// A drive, and what a host may do with it.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) subsystem: &'a Subsystem,
    pub(crate) rights: &'a HostRights,
    /// The host's controller, which may be without some of the namespaces; 0 for none.
    pub(crate) controller: u16,
}

impl View<'_> {
    /// What the host may do with that namespace. `None` if there is none, it may not know, or its controller is without.
    pub(crate) fn access(&self, namespace: u32) -> Option<Access> {
        self.rights
            .access(namespace)
            .filter(|_| self.subsystem.namespaces.contains(namespace) && self.is_attached(namespace))
    }

    fn is_attached(&self, namespace: u32) -> bool {
        !self.subsystem.attachments.is_detached(self.controller, namespace)
    }

    /// What the host may do with each namespace that it sees, and which one of that number it is.
    pub(crate) fn accesses(&self) -> BTreeMap<u32, (Access, u64)> {
        let living = self.subsystem.namespaces.living();
        let living = living.into_iter().filter(|&(id, _)| self.is_attached(id));
        living.filter_map(|(id, born)| Some((id, (self.rights.access(id)?, born)))).collect()
    }

    /// Whether the host sees all that there is, so that figures of the whole drive tell it nothing new.
    pub(crate) fn is_whole(&self) -> bool {
        self.subsystem.namespaces.living().keys().all(|&id| self.rights.access(id).is_some())
    }

    /// The namespaces that the controller has. An error as of [`Subsystem::infos`].
    pub(crate) fn namespaces(&self) -> Result<Vec<NamespaceInfo>, Status> {
        let mut namespaces = self.allocated()?;
        namespaces.retain(|info| self.is_attached(info.id.0));
        Ok(namespaces)
    }

    /// Those of them that are caches, and what they hold.
    pub(crate) fn caches(&self) -> Result<Vec<(NamespaceId, CacheInfo)>, Status> {
        let ids: Vec<NamespaceId> = self.namespaces()?.into_iter().map(|info| info.id).collect();
        let look = |drive: &mut Partitions<'_>| ids.into_iter().filter_map(|id| Some((id, drive.cache(id)?))).collect();
        self.subsystem.with_drive(look).ok_or(Status::InternalError)
    }

    /// The namespaces that the host may see, whether its controller has them or not. Errors as
    /// [`View::namespaces`].
    pub(crate) fn allocated(&self) -> Result<Vec<NamespaceInfo>, Status> {
        let mut namespaces = self.subsystem.infos()?;
        namespaces.retain(|info| self.rights.access(info.id.0).is_some());
        Ok(namespaces)
    }

    /// Whether an I/O command may be executed. One on a namespace that the host may not know of gets what one gets on a
    /// namespace that does not exist.
    pub(crate) fn permit(&self, namespace: u32, kind: CommandKind) -> Result<(), Status> {
        let is_change = matches!(kind, CommandKind::Store | CommandKind::Delete);
        match self.access(namespace) {
            Some(Access::ReadOnly) if is_change => Err(Status::NamespaceWriteProtected),
            Some(_) => Ok(()),
            // It writes out what all hosts have stored, and tells this one nothing.
            None if namespace == NAMESPACE_ALL && kind == CommandKind::Flush => Ok(()),
            None => Err(absent(namespace)),
        }
    }
}
