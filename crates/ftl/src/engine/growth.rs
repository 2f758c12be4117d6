//! Work of the indexes' own, and commands that wait for it.

use super::Engine;
use crate::io::Io;
use crate::namespace::Namespace;
use kvssd_flash::timing::{Actor, Lane};
use kvssd_types::{KvError, NamespaceId, Nanos};

impl Engine {
    /// One step of an index's own work.
    pub(super) fn grow(&mut self, namespace: NamespaceId) -> Result<(), KvError> {
        self.work_on(namespace, |io, namespace| namespace.index.grow(io).map_err(KvError::in_a_change))
    }

    /// Does work on a namespace that no command asked for.
    pub(super) fn work_on(
        &mut self,
        namespace: NamespaceId,
        work: impl FnOnce(&mut Io<'_>, &mut Namespace) -> Result<(), KvError>,
    ) -> Result<(), KvError> {
        let begun = self.grown.max(self.media.controller.now);
        // Collection may have made the room with a clock that is ahead.
        self.grown = self.media.space.superblocks.free_from(self.free_to_grow(), begun).unwrap_or(begun);
        let caller = self.recording().work_for(Actor::Growth);
        let Engine { media, namespaces, grown, .. } = self;
        let mut io = Io::new(media, *grown, false).of(namespace);
        if let Some(namespace) = namespaces.get_mut(namespace) {
            work(&mut io, namespace)?;
        }
        let (begun, until) = (*grown, io.settle());
        self.grown = until;
        self.recording().task(Lane::Growth, begun, until);
        self.recording().work_for(caller);
        self.pause(self.grown)?;
        self.share_dram();
        Ok(())
    }

    pub(super) fn keeps_out(&self, namespace: NamespaceId, is_change: bool) -> bool {
        self.namespaces.get(namespace).is_some_and(|namespace| namespace.index.growth().keeps_out(is_change))
    }

    /// Finishes work of an index that keeps such a command of its namespace out, and moves `at` behind it.
    pub(super) fn finish_growth(
        &mut self,
        namespace: NamespaceId,
        is_change: bool,
        at: &mut Nanos,
    ) -> Result<(), KvError> {
        let begun = self.grown.max(*at);
        while self.keeps_out(namespace, is_change) {
            let growth = self.namespaces.living(namespace)?.index.growth();
            self.grown = self.grown.max(*at);
            if !self.has_room_to_grow() {
                self.collector.clock = self.collector.clock.max(self.grown);
                if !self.reclaim_until(|engine| engine.has_room_to_grow())? {
                    break;
                }
                self.grown = self.collector.clock;
            }
            self.grow(namespace)?;
            self.namespaces.living(namespace)?.closed = (growth, self.grown);
        }
        let (growth, closed_until) = self.namespaces.living(namespace)?.closed;
        if closed_until > begun {
            self.growth.add(closed_until - begun, !self.keeps_out(namespace, is_change));
        }
        if growth.keeps_out(is_change) {
            *at = (*at).max(closed_until);
        }
        Ok(())
    }
}
