//! What a connection looks at from time to time: its host's rights, timeouts, keep-alive and events.

use super::{Connection, Phase};
use crate::lock::lock;
use crate::secured::Proofs;
use crate::view::View;
use kvssd_types::Nanos;

impl Connection {
    /// Takes notice of new rights. Who has lost all of them is disconnected.
    pub(super) fn check_rights(&mut self, now: Nanos) {
        if !self.place.refresh() {
            return;
        }
        let Some(rights) = self.place.known_rights().cloned() else {
            let host = self.place.member().map_or("", |member| &member.nqn);
            tracing::warn!(host, "a host that has no rights any more was disconnected");
            return self.stop();
        };
        if self.held_to.as_ref().is_some_and(|held_to| *held_to != Proofs::of(&rights)) {
            let host = self.place.member().map_or("", |member| &member.nqn);
            tracing::warn!(host, "a host that is to prove itself by another secret or key now was disconnected");
            return self.stop();
        }
        if let Phase::Admin { controller, id } = &self.phase {
            let mut controller = lock(controller);
            let view = View { subsystem: &self.subsystem, rights: &rights, controller: *id };
            controller.note_accesses(view.accesses());
            controller.note_discovered(self.place.discovered());
        }
        self.note_strange();
        self.refuse_ready(now);
    }

    /// Looks which namespaces the host does not know yet, although it may use their numbers.
    pub(super) fn note_strange(&mut self) {
        let Phase::Io { controller, .. } = &self.phase else { return };
        let Ok(living) = self.view().map(|view| view.accesses()) else { return };
        self.strange = lock(controller).strange(&living);
    }

    /// Checks timeouts, keep-alive and events.
    pub(super) fn check_timers(&mut self, now: Nanos) {
        self.check_rights(now);
        let limits = self.subsystem.options.limits;
        let has_failed = self.subsystem.has_failed();
        if self.transfers.deadline(limits.transfer_ns).is_some_and(|expires| now > expires) {
            tracing::warn!("a host did not send in time what it was asked for");
            return self.stop_for_fault();
        }
        match &self.phase {
            Phase::AwaitingIcRequest | Phase::AwaitingConnect | Phase::Authenticating { .. } => {
                if self.place.is_given_up() {
                    tracing::warn!("a peer that has not said who it is made room for another");
                    self.has_made_room = true;
                    self.stop_for_fault();
                } else if now > self.began + limits.connect_ns {
                    tracing::warn!("a peer did not connect in time");
                    self.stop_for_fault();
                }
            }
            Phase::Admin { controller, id } => {
                let mut controller = lock(controller);
                let over = controller.keep_alive_deadline().filter(|expires| now > *expires);
                let before = std::mem::replace(&mut self.overdue, over);
                if !controller.is_alive || over.is_some() && over == before {
                    tracing::warn!(
                        controller = id,
                        host = controller.host.nqn,
                        "a host kept silent: its controller ends"
                    );
                    drop(controller);
                    return self.stop_for_fault();
                }
                self.subsystem.end_iterators(now);
                controller.check_events(has_failed);
                while let Some(completion) = controller.complete_event_request() {
                    self.output.completions.push(completion);
                }
            }
            Phase::Io { controller, resets, .. } => {
                if !lock(controller).serves(*resets) {
                    self.stop();
                }
            }
            Phase::Ended => {}
        }
    }
}
