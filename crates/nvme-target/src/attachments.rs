//! Which controllers have which namespaces, beside what their hosts' rights say.
//!
//! ```text
//!   Connect             a controller has all namespaces that its host may see
//!   detach, attach      one namespace less, and again      by a host that may manage namespaces
//!   the controller ends, the namespace is deleted          nothing is left of it
//! ```
//!
//! Controllers over fabrics are dynamic: each is made by a Connect and keeps nothing for the next. So an attachment is
//! its controller's, and lives as long. Who is to stay without a namespace has rights without it.

use crate::hosts::Member;
use kvssd_nvme_spec::Status;
use kvssd_runtime::sync::atomic::{AtomicBool, Ordering};
use kvssd_runtime::sync::{Arc, PoisonError, RwLock};
use std::collections::{BTreeMap, BTreeSet};

/// The I/O controllers.
#[derive(Default)]
pub(crate) struct Attachments {
    controllers: RwLock<BTreeMap<u16, Attached>>,
    /// Some controller is without a namespace. Where none is, commands need not ask.
    is_any_detached: AtomicBool,
}

struct Attached {
    host: Arc<Member>,
    detached: BTreeSet<u32>,
}

impl Attached {
    /// Whether the controller's host may see the namespace.
    fn may_have(&self, namespace: u32) -> bool {
        self.host.rights().is_some_and(|rights| rights.access(namespace).is_some())
    }

    fn has(&self, namespace: u32) -> bool {
        !self.detached.contains(&namespace) && self.may_have(namespace)
    }
}

impl Attachments {
    /// Adds a controller that has all.
    pub(crate) fn add(&self, controller: u16, host: &Arc<Member>) {
        let attached = Attached { host: Arc::clone(host), detached: BTreeSet::new() };
        self.change(|controllers| controllers.insert(controller, attached));
    }

    /// Forgets a controller that has ended.
    pub(crate) fn remove(&self, controller: u16) {
        self.change(|controllers| controllers.remove(&controller));
    }

    /// Forgets a namespace that is deleted: one that gets its number is another one.
    pub(crate) fn forget_namespace(&self, namespace: u32) {
        self.change(|controllers| {
            for attached in controllers.values_mut() {
                attached.detached.remove(&namespace);
            }
        });
    }

    /// Whether the namespace was taken from the controller.
    pub(crate) fn is_detached(&self, controller: u16, namespace: u32) -> bool {
        self.is_any_detached.load(Ordering::Acquire)
            && self
                .controllers
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .get(&controller)
                .is_some_and(|attached| attached.detached.contains(&namespace))
    }

    /// Attaches a namespace to all these controllers, or detaches it from all of them: where one cannot be, none is.
    pub(crate) fn set(&self, namespace: u32, is_attach: bool, wanted: &[u16]) -> Result<(), Status> {
        self.change(|controllers| {
            if wanted.is_empty() {
                return Err(Status::ControllerListInvalid);
            }
            for id in wanted {
                let attached = controllers.get(id).ok_or(Status::ControllerListInvalid)?;
                match (is_attach, attached.has(namespace)) {
                    (true, true) => return Err(Status::NamespaceAlreadyAttached),
                    // What its host has no right to it does not get in this way.
                    (true, false) if !attached.may_have(namespace) => return Err(Status::OperationDenied),
                    (false, false) => return Err(Status::NamespaceNotAttached),
                    (true, false) | (false, true) => {}
                }
            }
            for id in wanted {
                let Some(attached) = controllers.get_mut(id) else { continue };
                if is_attach {
                    attached.detached.remove(&namespace)
                } else {
                    attached.detached.insert(namespace)
                };
            }
            Ok(())
        })
    }

    /// The controllers from number `from` on, of a host or of all, and of all or of those that have a namespace.
    pub(crate) fn list(&self, from: u16, of: Option<&str>, namespace: Option<u32>) -> Vec<u16> {
        let controllers = self.controllers.read().unwrap_or_else(PoisonError::into_inner);
        let is_listed = |attached: &Attached| {
            of.is_none_or(|nqn| attached.host.nqn == nqn) && namespace.is_none_or(|namespace| attached.has(namespace))
        };
        controllers.range(from..).filter(|(_, attached)| is_listed(attached)).map(|(&id, _)| id).collect()
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<u16, Attached>) -> T) -> T {
        let mut controllers = self.controllers.write().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut controllers);
        let is_any_detached = controllers.values().any(|attached| !attached.detached.is_empty());
        self.is_any_detached.store(is_any_detached, Ordering::Release);
        changed
    }
}
