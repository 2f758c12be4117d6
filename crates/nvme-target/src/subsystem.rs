//! What all controllers share: the drive, the hosts that may use it, and counters.
//!
//! ```text
//!   host a   controller 1   admin queue, I/O queues 1, 2     \
//!   host b   controller 2   admin queue, I/O queue 1          >--- Subsystem: namespaces of one drive
//!   nvme discover   controller 3 (discovery)                 /
//! ```

use crate::attachments::Attachments;
use crate::clients::OpenedClient;
use crate::command_kind::CommandKind;
use crate::completion::{Completion, Success};
use crate::controller::{Controller, ControllerKind, Host, IoSettings};
use crate::controllers::Controllers;
use crate::execution::Executor;
use crate::hosts::{Hosts, Member};
use crate::io_command::{Burst, IoCommand};
use crate::limits::{GLANCE_BYTES_MAX, Limits};
use crate::lock::lock;
use crate::memory::{MemoryBudget, MemoryShare};
use crate::metrics::Metrics;
use crate::namespaces::Namespaces;
use crate::rights::Rights;
use kvssd_device::Drive;
use kvssd_ftl::NamespaceInfo;
use kvssd_nvme_spec::Status;
use kvssd_runtime::sync::atomic::{AtomicBool, Ordering};
use kvssd_runtime::sync::{Arc, Mutex, Turns};
use kvssd_types::{ClientId, KvError, Nanos};

/// Program/erase cycles of a block, as common for TLC flash. An estimate: profiles do not say.
const BLOCK_ERASES_MAX: u64 = 3_000;

/// How a subsystem is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubsystemOptions {
    /// SUBNQN.
    pub nqn: String,
    /// Who may do what.
    pub rights: Rights,
    /// Data digests are granted. Some hosts compute them differently (docs/NVME.md).
    pub data_digest: bool,
    /// Completions wait until the drive's model completes the command.
    pub is_timed: bool,
    /// Bounds and timeouts.
    pub limits: Limits,
}

impl SubsystemOptions {
    /// Any host may do everything, and nothing is timed.
    #[must_use]
    pub fn new(nqn: &str) -> Self {
        SubsystemOptions {
            nqn: nqn.to_owned(),
            rights: Rights::everybody(),
            data_digest: false,
            is_timed: false,
            limits: Limits::default(),
        }
    }
}

/// A drive with its controllers.
pub struct Subsystem {
    pub(crate) options: SubsystemOptions,
    /// Who is connected, and may do what.
    pub(crate) hosts: Arc<Hosts>,
    /// Which namespaces there are.
    pub(crate) namespaces: Namespaces,
    /// Which controllers have them.
    pub(crate) attachments: Arc<Attachments>,
    pub(crate) metrics: Metrics,
    pub(crate) value_bytes_max: u64,
    /// NOVG: values take flash in multiples of this.
    pub(crate) value_granularity_bytes: u32,
    /// Values that were requested by R2T and are not stored yet.
    pub(crate) values_in: Arc<MemoryBudget>,
    /// Output that hosts have not taken yet.
    pub(crate) values_out: Arc<MemoryBudget>,
    has_failed: AtomicBool,
    has_iterators: std::sync::Arc<std::sync::atomic::AtomicBool>,
    executor: Turns<Option<Executor>>,
    controllers: Mutex<Controllers>,
}

/// Room for the data of a burst of commands.
pub(crate) struct OutputRoom<'a> {
    /// Free in the connection.
    pub(crate) bytes: usize,
    /// In use in the connection.
    pub(crate) used_bytes: usize,
    pub(crate) share: &'a mut MemoryShare,
}

/// The state of the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Health {
    pub(crate) pairs: u64,
    pub(crate) pair_bytes: u64,
    pub(crate) live_bytes: u64,
    pub(crate) capacity_bytes: u64,
    pub(crate) programmed_bytes: u64,
    pub(crate) erases: u64,
    pub(crate) erases_mean: f64,
    pub(crate) pairs_moved: u64,
    pub(crate) has_failed: bool,
}

impl Health {
    /// Percentage Used of SMART: the mean of all erases over the cycles of a block.
    pub(crate) fn used_percent(&self) -> u64 {
        (self.erases_mean * 100.0 / BLOCK_ERASES_MAX as f64) as u64
    }
}

impl Subsystem {
    /// A subsystem with all namespaces of `drive`.
    #[must_use]
    pub fn new(drive: Drive, options: SubsystemOptions) -> Self {
        let (is_timed, limits) = (options.is_timed, options.limits);
        let metrics = Metrics::new();
        let has_iterators = Arc::default();
        let iterators = (limits.iterator_idle_ns, std::sync::Arc::clone(&has_iterators));
        let executor = Executor::new(drive, is_timed, metrics.recognized.clone(), iterators);
        let attachments: Arc<Attachments> = Arc::default();
        let hosts = Hosts::new(options.rights.clone(), limits.connections_max);
        Subsystem {
            options,
            hosts,
            namespaces: Namespaces::new(executor.drive.namespaces().iter().map(|info| info.id.0)),
            metrics,
            value_bytes_max: executor.drive.value_bytes_max(),
            value_granularity_bytes: executor.drive.design().grain_bytes,
            values_in: MemoryBudget::new(limits.values_bytes_max),
            values_out: MemoryBudget::new(limits.values_bytes_max),
            has_failed: AtomicBool::new(false),
            has_iterators,
            executor: Turns::new(Some(executor)),
            controllers: Mutex::new(Controllers::new(Arc::clone(&attachments))),
            attachments,
        }
    }

    /// Bounds and timeouts.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.options.limits
    }

    /// Closes the drive. Later commands fail with Internal Error.
    ///
    /// # Errors
    /// When the image fails, or has failed.
    pub fn close(&self) -> Result<(), KvError> {
        let executor = self.executor.take().map_or_else(|_| None, |mut executor| executor.take());
        let Some(executor) = executor else {
            return Err(KvError::Failed("the service stopped in the middle of a change".to_owned()));
        };
        executor.drive.close()
    }

    /// Bytes of values in transfer, in and out, of all connections. Each is bounded by [`Limits::values_bytes_max`].
    #[must_use]
    pub fn values_bytes(&self) -> (u64, u64) {
        (self.values_in.used_bytes(), self.values_out.used_bytes())
    }

    /// The largest value that the drive stores.
    #[must_use]
    pub fn value_bytes_max(&self) -> u64 {
        self.value_bytes_max
    }

    /// The number of changes that came again and were not made again.
    #[must_use]
    pub fn recognized(&self) -> u64 {
        self.metrics.recognized.get()
    }

    /// Why the drive has failed; `None` if it works.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        match self.executor.look() {
            Ok(executor) => executor.as_ref().and_then(|executor| executor.drive.failure().map(str::to_owned)),
            Err(_) => Some("the firmware panicked in the middle of a change".to_owned()),
        }
    }

    /// Executes the commands of a burst, as far as there is room for their data. Returns whether the host's rights are
    /// those of now: no namespace comes or goes meanwhile.
    pub(crate) fn execute(
        &self,
        burst: &mut Burst<'_>,
        mut room: OutputRoom<'_>,
        now: Nanos,
        settings: &IoSettings,
        completions: &mut Vec<Completion>,
    ) -> bool {
        self.glance(burst, &mut room, settings, completions);
        if burst.front(true).is_none() {
            return true;
        }
        let mut executor = self.executor.take().ok();
        if let Some(Some(executor)) = executor.as_deref_mut() {
            if self.hosts.generation() != settings.generation {
                return false;
            }
            let OutputRoom { bytes, used_bytes, share } = room;
            let bytes_max = bytes.min(usize::try_from(self.values_out.free_bytes()).unwrap_or(usize::MAX));
            executor.execute(|has_room| burst.next(has_room), bytes_max, now, settings, completions);
            // Before the lock is released, so that the next connection sees it.
            share.resize(used_bytes + completions.iter().map(|completion| completion.data.len()).sum::<usize>());
            if executor.drive.failure().is_some() {
                self.has_failed.store(true, Ordering::Relaxed);
            }
            return true;
        }
        // It was closed, or its firmware panicked.
        while let Some(ready) = burst.next(true) {
            let failure = Err(Status::InternalError.into());
            completions.push(Completion::new(
                ready.command_id,
                CommandKind::of(&ready.command),
                ready.arrived,
                failure,
            ));
        }
        true
    }

    /// Answers the first commands of a burst beside other connections that do so, as far as they change nothing, their values are small and
    /// there is room.
    fn glance(
        &self,
        burst: &mut Burst<'_>,
        room: &mut OutputRoom<'_>,
        settings: &IoSettings,
        completions: &mut Vec<Completion>,
    ) {
        if self.options.is_timed || !burst.front(true).is_some_and(IoCommand::is_look) {
            return;
        }
        let Ok(executor) = self.executor.look() else { return };
        let Some(executor) = executor.as_ref() else { return };
        if self.hosts.generation() != settings.generation {
            return;
        }
        let mut used_bytes =
            room.used_bytes + completions.iter().map(|completion| completion.data.len()).sum::<usize>();
        while let Some(ready) = burst.front(room.bytes > 0).filter(|ready| ready.is_look()) {
            if !room.share.try_grow(GLANCE_BYTES_MAX.into()) {
                break;
            }
            let outcome = executor.glance(ready, GLANCE_BYTES_MAX);
            let seen_bytes = match &outcome {
                Some(Ok(Success { data, .. })) => data.len(),
                _ => 0,
            };
            used_bytes += seen_bytes;
            room.bytes = room.bytes.saturating_sub(seen_bytes);
            room.share.resize(used_bytes);
            let Some(outcome) = outcome else { break };
            let Some(ready) = burst.next(true) else { break };
            completions.push(Completion::new(
                ready.command_id,
                CommandKind::of(&ready.command),
                ready.arrived,
                outcome,
            ));
        }
    }

    /// Whether the drive has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed) || self.executor.is_poisoned()
    }

    /// Ends the iterators that nobody uses any more.
    pub(crate) fn end_iterators(&self, now: Nanos) {
        if !self.has_iterators.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(Some(executor)) = self.executor.take().as_deref_mut().map(Option::as_mut) {
            executor.end_iterators(now);
        }
    }

    /// Does something with the drive and its hosts' iterators.
    pub(crate) fn with_executor<T>(&self, work: impl FnOnce(&mut Executor) -> T) -> Option<T> {
        let mut executor = self.executor.take().ok()?;
        executor.as_mut().map(work)
    }

    pub(crate) fn with_drive<T>(&self, look: impl FnOnce(&mut Drive) -> T) -> Option<T> {
        self.with_executor(|executor| look(&mut executor.drive))
    }

    /// Makes a controller the client's only one. `None` if the drive has failed.
    pub(crate) fn open_client(&self, client: ClientId) -> Option<Result<OpenedClient, KvError>> {
        let mut executor = self.executor.take().ok()?;
        executor.as_mut().map(|executor| executor.open_client(client))
    }

    /// The namespaces. A drive whose firmware has panicked has not none: that is an error.
    pub(crate) fn infos(&self) -> Result<Vec<NamespaceInfo>, Status> {
        self.with_drive(|drive| drive.namespaces()).ok_or(Status::InternalError)
    }

    pub(crate) fn health(&self) -> Health {
        let look = |drive: &mut Drive| {
            let engine = drive.engine();
            let (utilization, flash, geometry) = (drive.utilization(), engine.flash_counters(), engine.geometry());
            let (blocks, erases) =
                engine.erases().fold((0u64, 0u64), |(blocks, erases), block| (blocks + 1, erases + u64::from(block)));
            Health {
                pairs: utilization.pairs,
                pair_bytes: utilization.pair_bytes,
                live_bytes: utilization.live_bytes,
                capacity_bytes: utilization.capacity_bytes,
                programmed_bytes: flash.programs.total() * u64::from(geometry.page_bytes),
                erases,
                erases_mean: erases as f64 / blocks.max(1) as f64,
                pairs_moved: engine.gc_counters().pairs_moved,
                has_failed: drive.failure().is_some(),
            }
        };
        self.with_drive(look).unwrap_or(Health { has_failed: true, ..Health::default() })
    }

    /// Replaces the rights of all hosts. They hold for commands that come from now on; who has none any more is
    /// disconnected.
    pub fn set_rights(&self, rights: Rights) {
        self.hosts.replace(rights);
    }

    /// Creates a controller for a host.
    pub(crate) fn add_controller(
        &self,
        kind: ControllerKind,
        host: Host,
        member: &Arc<Member>,
        keep_alive_ms: u32,
        now: Nanos,
    ) -> Result<Arc<Mutex<Controller>>, Status> {
        let mut controllers = lock(&self.controllers);
        let added = controllers.add(kind, host, member, keep_alive_ms, &self.options.limits, now);
        self.metrics.controllers.set(controllers.len() as i64);
        added.map_err(|why| {
            tracing::warn!(host = member.nqn, %why, "a host was refused a controller");
            Status::ConnectControllerBusy
        })
    }

    pub(crate) fn controller(&self, id: u16) -> Option<Arc<Mutex<Controller>>> {
        lock(&self.controllers).get(id)
    }

    /// Ends a controller. Its queues end by themselves.
    pub(crate) fn remove_controller(&self, id: u16) {
        let mut controllers = lock(&self.controllers);
        controllers.remove(id);
        self.metrics.controllers.set(controllers.len() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Host;
    use crate::identify::identify;
    use crate::rights::HostRights;
    use crate::view::View;
    use kvssd_device::{CreateDrive, image_design, image_profile};
    use kvssd_nvme_spec::admin::Identify;
    use kvssd_nvme_spec::identify::cns;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn after_a_panic_of_the_firmware_the_drive_has_failed_and_no_namespace_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
        let drive = Drive::create(folder.path().join("drive.kv"), &profile, &design, CreateDrive::default()).unwrap();
        let subsystem = Subsystem::new(drive, SubsystemOptions::new("nqn.2025-01.org.kvssd:test"));
        assert!(!subsystem.has_failed() && subsystem.failure().is_none());
        let planted = catch_unwind(AssertUnwindSafe(|| subsystem.with_drive(|_| panic!("planted"))));
        assert!(planted.is_err());
        assert!(subsystem.has_failed() && subsystem.health().has_failed);
        assert!(subsystem.failure().is_some_and(|why| why.contains("panicked")));
        let host = Host { nqn: "nqn.host".to_owned(), id: [1; 16] };
        let controller = Controller::new(ControllerKind::Io, 1, host, 0, Nanos::ZERO);
        let view = View { subsystem: &subsystem, rights: &HostRights::EVERYTHING, controller: 1 };
        for cns in [cns::NAMESPACE, cns::NAMESPACE_LIST, cns::COMMAND_SET_NAMESPACE, cns::NAMESPACE_DESCRIPTORS] {
            let wanted =
                Identify { cns, command_set: u8::from(cns == cns::COMMAND_SET_NAMESPACE), ..Identify::default() };
            let said = identify(view, &controller, &wanted, u32::from(cns != cns::NAMESPACE_LIST));
            assert_eq!(said.map(|_| ()), Err(Status::InternalError), "CNS {cns:x}");
        }
        assert!(subsystem.close().is_err());
    }
}
