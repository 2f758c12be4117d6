//! The controllers of all hosts, and which of them ends for another.

use crate::attachments::Attachments;
use crate::controller::{Controller, ControllerKind, Host};
use crate::hosts::{Member, Refusal, Share};
use crate::limits::Limits;
use crate::lock::lock;
use kvssd_runtime::sync::{Arc, Mutex};
use kvssd_types::Nanos;
use std::collections::BTreeMap;

/// The highest CNTLID (FFF0h and above are reserved).
const CONTROLLER_ID_MAX: u16 = 0xffef;
/// Controllers that each host may have before it leaves the rest to others.
const CONTROLLERS_FIRST: usize = 1;

#[derive(Default)]
pub(crate) struct Controllers {
    living: BTreeMap<u16, Living>,
    attachments: Arc<Attachments>,
    last: u16,
}

struct Living {
    member: Arc<Member>,
    controller: Arc<Mutex<Controller>>,
}

impl Controllers {
    /// None, whose namespaces will be in `attachments`.
    pub(crate) fn new(attachments: Arc<Attachments>) -> Self {
        Controllers { attachments, ..Controllers::default() }
    }

    /// Creates a controller for a host. When there is no place, one that has been idle for long ends for it.
    pub(crate) fn add(
        &mut self,
        kind: ControllerKind,
        host: Host,
        member: &Arc<Member>,
        keep_alive_ms: u32,
        limits: &Limits,
        now: Nanos,
    ) -> Result<Arc<Mutex<Controller>>, Refusal> {
        while let Err(refusal) = self.share(member, limits).check() {
            // What is kept for others is not made by ending theirs.
            let of = (refusal == Refusal::Kept).then_some(member);
            if !self.end_idle(limits.idle_ns, of, now) {
                return Err(refusal);
            }
        }
        loop {
            self.last = if self.last >= CONTROLLER_ID_MAX { 1 } else { self.last + 1 };
            if !self.living.contains_key(&self.last) {
                break;
            }
        }
        let controller = Arc::new(Mutex::new(Controller::new(kind, self.last, host, keep_alive_ms, now)));
        let living = Living { member: Arc::clone(member), controller: Arc::clone(&controller) };
        self.living.insert(self.last, living);
        if kind == ControllerKind::Io {
            self.attachments.add(self.last, member);
        }
        Ok(controller)
    }

    pub(crate) fn get(&self, id: u16) -> Option<Arc<Mutex<Controller>>> {
        self.living.get(&id).map(|living| Arc::clone(&living.controller))
    }

    /// Ends a controller. Its queues end by themselves.
    pub(crate) fn remove(&mut self, id: u16) {
        self.attachments.remove(id);
        if let Some(living) = self.living.remove(&id) {
            lock(&living.controller).is_alive = false;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.living.len()
    }

    fn share(&self, member: &Arc<Member>, limits: &Limits) -> Share {
        let own = self.living.values().filter(|living| Arc::ptr_eq(&living.member, member)).count();
        let (places, taken) = (limits.controllers_max(), self.living.len());
        Share { places, taken, own, first: CONTROLLERS_FIRST, is_kept_for: member.is_kept_for() }
    }

    /// Ends the controller that has been idle for longest, without commands and I/O queues, if that is longer than
    /// `idle_ns`: one of that host, or of any. A host without a keep-alive timer may have gone long ago. Returns whether
    /// there was one.
    fn end_idle(&mut self, idle_ns: Nanos, of: Option<&Arc<Member>>, now: Nanos) -> bool {
        let idle = |(&id, living): (&u16, &Living)| {
            // A locked controller is in use.
            let since = living.controller.try_lock().ok()?.idle_since()?;
            (now > since + idle_ns).then_some((since, id))
        };
        let may_end = |(_, living): &(&u16, &Living)| of.is_none_or(|member| Arc::ptr_eq(member, &living.member));
        let Some((_, id)) = self.living.iter().filter(may_end).filter_map(idle).min() else { return false };
        if let Some(living) = self.living.get(&id) {
            let host = &living.member.nqn;
            tracing::warn!(controller = id, host, "an idle controller was ended for another host");
        }
        self.remove(id);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::Hosts;
    use crate::rights::Rights;

    #[test]
    fn a_discovery_controller_that_is_kept_alive_does_not_end_for_another_host() {
        let limits = Limits { connections_max: 8, ..Limits::default() };
        let mut controllers = Controllers::default();
        let hosts = Hosts::new(Rights::everybody(), 64);
        let mut place = hosts.arrive(Nanos::ZERO);
        let member = Arc::clone(place.claim("nqn.host", true).unwrap());
        let mut add = |kind, keep_alive_ms, now| {
            let host = Host { nqn: member.nqn.clone(), id: [1; 16] };
            let added = controllers.add(kind, host, &member, keep_alive_ms, &limits, now);
            added.map(|controller| lock(&controller).id)
        };
        // Linux's, one without a timer, and one whose timer is longer than anybody waits.
        for keep_alive_ms in [30_000, 0, 3_600_000] {
            add(ControllerKind::Discovery, keep_alive_ms, Nanos::ZERO).unwrap();
        }
        let later = limits.idle_ns + Nanos(1);
        for _ in 0..2 {
            add(ControllerKind::Discovery, 30_000, later).unwrap();
        }
        assert!(add(ControllerKind::Io, 0, later).is_err(), "nobody is idle");
        assert_eq!(controllers.living.keys().copied().collect::<Vec<_>>(), [1, 4, 5]);
    }
}
