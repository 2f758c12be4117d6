//! What all controllers share: the drive, the hosts that may use it, and counters.
//!
//! ```text
//!   host a   controller 1   admin queue, I/O queues 1, 2     \
//!   host b   controller 2   admin queue, I/O queue 1          >--- Subsystem: namespaces of one drive
//!   nvme discover   controller 3 (discovery)                 /
//! ```

pub(crate) mod burst_run;

use crate::attachments::Attachments;
use crate::clients::OpenedClient;
use crate::controller::{Controller, ControllerKind, Host};
use crate::controllers::Controllers;
use crate::execution::{Executor, Sessions};
use crate::hosts::{Hosts, Member};
use crate::limits::Limits;
use crate::lock::lock;
use crate::memory::{MemoryBudget, MemoryShare};
use crate::metrics::Metrics;
use crate::namespaces::Namespaces;
use crate::rights::Rights;
use kvssd_device::{Drive, FirmwareStats, Partitions};
use kvssd_ftl::{NamespaceInfo, Utilization};
use kvssd_nvme_spec::Status;
use kvssd_runtime::sync::atomic::{AtomicBool, Ordering};
use kvssd_runtime::sync::{Arc, Mutex, Turn, Turns};
use kvssd_types::{ClientId, KvError, Nanos};

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
    /// What tells the drive from all others, if something does.
    pub(crate) identity: Option<u64>,
    pub(crate) value_bytes_max: u64,
    /// NOVG: values take flash in multiples of this.
    pub(crate) value_granularity_bytes: u32,
    /// Values that were requested by R2T and are not stored yet.
    pub(crate) values_in: Arc<MemoryBudget>,
    /// Output that hosts have not taken yet.
    pub(crate) values_out: Arc<MemoryBudget>,
    has_failed: AtomicBool,
    /// The drive's partitions; `None` in them after [`Subsystem::close`]. Who takes several takes them in their order.
    partitions: Vec<Turns<Option<Drive>>>,
    sessions: Sessions,
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

impl OutputRoom<'_> {
    /// Takes so much of it for data that is here, and gives back what was reserved beyond: while the drive is held, so that the next connection
    /// sees it.
    fn fill(&mut self, bytes: usize) {
        self.used_bytes += bytes;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.share.resize(self.used_bytes);
    }
}

/// The state of the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Health {
    pub(crate) utilization: Utilization,
    pub(crate) firmware: FirmwareStats,
    pub(crate) has_failed: bool,
}

impl Health {
    /// Bytes of flash that were programmed since the drive was opened.
    pub(crate) fn programmed_bytes(&self) -> u64 {
        self.firmware.pages_programmed * self.firmware.page_bytes
    }
}

/// The turns of somebody who has all partitions of the drive.
struct AllTurns<'a> {
    turns: Vec<Turn<'a, Option<Drive>>>,
    sessions: &'a Sessions,
}

impl AllTurns<'_> {
    /// `None` after the drive was closed.
    fn executor(&mut self) -> Option<Executor<'_>> {
        let drives: Option<Vec<&mut Drive>> = self.turns.iter_mut().map(|turn| turn.as_mut()).collect();
        Some(Executor { drive: Partitions::new(drives?), sessions: self.sessions })
    }
}

impl Subsystem {
    /// A subsystem with all namespaces of `drive`.
    #[must_use]
    pub fn new(drive: Drive, options: SubsystemOptions) -> Self {
        Subsystem::over(vec![drive], options)
    }

    /// A subsystem with all namespaces of a drive in partitions, of which there is one at least.
    ///
    /// # Panics
    /// When a drive that is timed has several.
    #[must_use]
    pub fn over(mut drives: Vec<Drive>, options: SubsystemOptions) -> Self {
        let (is_timed, limits) = (options.is_timed, options.limits);
        assert!(!is_timed || drives.len() == 1, "a drive that is timed has one partition");
        let metrics = Metrics::new();
        let sessions = Sessions::new(is_timed, metrics.recognized.clone(), limits.iterator_idle_ns);
        let attachments: Arc<Attachments> = Arc::default();
        let hosts = Hosts::new(options.rights.clone(), limits.connections_max);
        let drive = Partitions::new(&mut drives);
        Subsystem {
            options,
            hosts,
            namespaces: Namespaces::new(&drive.namespaces()),
            metrics,
            identity: drive.first().identity(),
            value_bytes_max: drive.first().value_bytes_max(),
            value_granularity_bytes: drive.first().design().grain_bytes,
            values_in: MemoryBudget::new(limits.values_bytes_max),
            values_out: MemoryBudget::new(limits.values_bytes_max),
            has_failed: AtomicBool::new(false),
            partitions: drives.into_iter().map(|drive| Turns::new(Some(drive))).collect(),
            sessions,
            controllers: Mutex::new(Controllers::new(Arc::clone(&attachments))),
            attachments,
        }
    }

    /// The number of the drive's partitions.
    pub(crate) fn partitions(&self) -> usize {
        self.partitions.len()
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
        let closed = || KvError::Failed("the service stopped in the middle of a change".to_owned());
        let mut turns = self.turns().ok_or_else(closed)?;
        let drives = turns.turns.iter_mut().map(|turn| turn.take()).collect::<Option<Vec<Drive>>>();
        // Each, whether or not one before it could be closed.
        let ended: Vec<Result<(), KvError>> = drives.ok_or_else(closed)?.into_iter().map(Drive::close).collect();
        ended.into_iter().collect()
    }

    /// Bytes of values in transfer, in and out, of all connections. Each is bounded by [`Limits::values_bytes_max`], and one value of each
    /// partition beyond.
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
        self.partitions.iter().find_map(|partition| match partition.look() {
            Ok(drive) => drive.as_ref().and_then(|drive| drive.failure().map(str::to_owned)),
            Err(_) => Some("the firmware panicked in the middle of a change".to_owned()),
        })
    }

    /// Whether the drive has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed) || self.partitions.iter().any(Turns::is_poisoned)
    }

    /// Ends the iterators that nobody uses any more.
    pub(crate) fn end_iterators(&self, now: Nanos) {
        if self.sessions.has_iterators() {
            self.with_executor(|executor| executor.end_iterators(now));
        }
    }

    /// All partitions, in their order; none where a firmware panicked.
    fn turns(&self) -> Option<AllTurns<'_>> {
        let turns = self.partitions.iter().map(|partition| partition.take().ok()).collect::<Option<_>>()?;
        Some(AllTurns { turns, sessions: &self.sessions })
    }

    /// Does something with the whole drive and its hosts' iterators.
    pub(crate) fn with_executor<T>(&self, work: impl FnOnce(&mut Executor<'_>) -> T) -> Option<T> {
        let mut turns = self.turns()?;
        turns.executor().map(|mut executor| work(&mut executor))
    }

    pub(crate) fn with_drive<T>(&self, look: impl FnOnce(&mut Partitions<'_>) -> T) -> Option<T> {
        self.with_executor(|executor| look(&mut executor.drive))
    }

    /// Makes a controller the client's only one. `None` if the drive has failed.
    pub(crate) fn open_client(&self, client: ClientId) -> Option<Result<OpenedClient, KvError>> {
        self.with_executor(|executor| executor.open_client(client))
    }

    /// The namespaces. An error after the firmware has panicked: nobody knows then which there are.
    pub(crate) fn infos(&self) -> Result<Vec<NamespaceInfo>, Status> {
        self.with_drive(|drive| drive.namespaces()).ok_or(Status::InternalError)
    }

    pub(crate) fn health(&self) -> Health {
        let look = |drive: &mut Partitions<'_>| Health {
            utilization: drive.utilization(),
            firmware: drive.firmware_stats(),
            has_failed: drive.failure().is_some(),
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
pub(crate) mod tests {
    use super::*;
    use crate::controller::Host;
    use crate::identify::identify;
    use crate::rights::HostRights;
    use crate::view::View;
    use kvssd_device::{CreateDrive, image_design, image_profile};
    use kvssd_nvme_spec::admin::Identify;
    use kvssd_nvme_spec::identify::cns;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::Path;

    /// Over a new drive in the folder.
    pub(crate) fn new_in(folder: &Path) -> Subsystem {
        let (profile, design) = (image_profile(64 << 20).unwrap(), image_design("plus").unwrap());
        let drive = Drive::create(folder.join("drive.kv"), &profile, &design, CreateDrive::default()).unwrap();
        Subsystem::new(drive, SubsystemOptions::new("nqn.2025-01.org.kvssd:test"))
    }

    #[test]
    fn after_a_panic_of_the_firmware_the_drive_has_failed_and_no_namespace_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let subsystem = new_in(folder.path());
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
