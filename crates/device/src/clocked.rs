//! A device whose commands come one after the other, or at given times: both keep records.

use crate::records::{Origin, Records};
use crate::{Completion, Device};
use kvssd_cache::CacheAttributes;
use kvssd_ftl::{Engine, NamespaceAttributes};
use kvssd_types::{ClientId, Command, KvError, NamespaceId, Nanos, Reply};

/// Virtual time between two looks at what is left of deleted namespaces. Nobody waits for it.
const REMOVAL_TIME: Nanos = Nanos(1_000_000_000);

/// A device, and when all its work so far is done. A command arrives when the one before it is done.
pub(crate) struct Clocked {
    pub(crate) device: Device,
    clock: Nanos,
}

impl Clocked {
    pub(crate) fn new(device: Device, clock: Nanos) -> Self {
        Clocked { device, clock }
    }

    /// When all its work so far is done.
    pub(crate) fn clock(&self) -> Nanos {
        self.clock
    }

    /// The device at a time before which nothing will come any more.
    pub(crate) fn arrive(&mut self, at: Nanos) -> Arrival<'_> {
        self.clock = self.clock.max(at);
        Arrival { device: &mut self.device, at: self.clock, side_by_side: self.clock, before: Nanos::ZERO }
    }

    pub(crate) fn create_namespace(
        &mut self,
        id: Option<NamespaceId>,
        attributes: NamespaceAttributes,
    ) -> Result<NamespaceId, KvError> {
        self.in_turn(|engine, at| engine.create_namespace_at(id, attributes, at))
    }

    /// Notes that a namespace is deleted. No background goes on before: it could remove one that another partition does not yet know to be
    /// deleted, and forget it.
    pub(crate) fn delete_namespace(&mut self, id: NamespaceId) -> Result<(), KvError> {
        self.in_prepared(|engine, at| engine.delete_namespace(id, at))
    }

    pub(crate) fn set_cache(&mut self, id: NamespaceId, cache: Option<CacheAttributes>) -> Result<(), KvError> {
        self.in_turn(|engine, at| engine.set_cache(id, cache, at))
    }

    pub(crate) fn open_client(&mut self, client: ClientId) -> Result<u64, KvError> {
        self.in_turn(|engine, at| engine.open_client(client, at))
    }

    /// Makes the engine do something when all before it is done.
    pub(crate) fn in_turn<T>(
        &mut self,
        act: impl FnOnce(&mut Engine, Nanos) -> (Nanos, Result<T, KvError>),
    ) -> Result<T, KvError> {
        self.device.engine.advance(self.clock)?;
        self.in_prepared(act)
    }

    /// As [`Clocked::in_turn`], in the middle of something that concerns several partitions: nothing else goes on meanwhile.
    pub(crate) fn in_prepared<T>(
        &mut self,
        act: impl FnOnce(&mut Engine, Nanos) -> (Nanos, Result<T, KvError>),
    ) -> Result<T, KvError> {
        let (done, result) = act(&mut self.device.engine, self.clock);
        self.clock = self.clock.max(done);
        result
    }

    /// Gives the background the time to remove deleted namespaces. What cannot be read stays.
    pub(crate) fn finish_removal(&mut self) -> Result<(), KvError> {
        let mut pairs = u64::MAX;
        let engine = &mut self.device.engine;
        while engine.is_removing() && engine.utilization().pairs < pairs {
            pairs = engine.utilization().pairs;
            self.clock += REMOVAL_TIME;
            engine.advance(self.clock)?;
        }
        Ok(())
    }
}

impl Records for Clocked {
    fn engine(&self) -> &Engine {
        &self.device.engine
    }

    fn engine_mut(&mut self) -> Option<&mut Engine> {
        Some(&mut self.device.engine)
    }

    fn execute_as(&mut self, (request, namespace): Origin, command: Command<'_>) -> Result<Reply, KvError> {
        if let Command::Seek { .. } | Command::Next { .. } = command
            && let Some(reply) = self.device.engine.glance(namespace, &command)
        {
            return reply;
        }
        self.in_turn(|engine, at| match request {
            None => engine.execute_in(namespace, command, at),
            Some(request) => engine.execute_request(request, namespace, command, at),
        })
    }
}

/// A device at one time: commands then run side by side, except for those that wait for answers.
///
/// All of them arrive at the device at this one time, so that no later command waits for one that has not begun. A command that waits for an
/// answer is done later by the time that the answer took. This is exact as long as the device is not busy.
pub(crate) struct Arrival<'a> {
    device: &'a mut Device,
    at: Nanos,
    /// When what runs side by side is done, if it began at `at`.
    side_by_side: Nanos,
    /// The time that was taken before that began.
    before: Nanos,
}

impl Arrival<'_> {
    /// The moment.
    pub(crate) fn at(&self) -> Nanos {
        self.at
    }

    /// When all of it is done.
    pub(crate) fn done(&self) -> Nanos {
        self.side_by_side + self.before
    }
}

impl Records for Arrival<'_> {
    fn engine(&self) -> &Engine {
        &self.device.engine
    }

    fn engine_mut(&mut self) -> Option<&mut Engine> {
        Some(&mut self.device.engine)
    }

    fn execute_as(&mut self, (request, namespace): Origin, command: Command<'_>) -> Result<Reply, KvError> {
        let Completion { done, reply } = self.device.submit_as(request, namespace, command, self.at);
        self.side_by_side = self.side_by_side.max(done);
        reply
    }

    fn then(&mut self) {
        self.before += self.side_by_side - self.at;
        self.side_by_side = self.at;
    }
}
