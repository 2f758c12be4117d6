//! An association with a controller: its admin queue, one I/O queue, and the limits of its namespaces.
//!
//! ```text
//!   discovery     if the URL names no subsystem
//!   admin queue   Connect, enable, Identify, Number of Queues, numbered changes
//!   I/O queue     Connect
//!   namespaces    Identify, Key Value Configuration, when a namespace is first used
//! ```

use crate::Error;
use crate::admin_queue::{AdminQueue, connect_queue};
use crate::connection::Connection;
use crate::connection_lost::ConnectionLost;
use crate::discovery::{Subsystem, resolve};
use crate::failure::Failure;
use crate::host_identity::HostIdentity;
use crate::meant::{Meant, Place};
use crate::queue_pair::{Completion, Payload, QueueLimits};
use crate::recognition::Recognition;
use crate::report::DriveReport;
use crate::request::{NamespaceLimits, Request};
use crate::time_left::Deadline;
use crate::url::DriveUrl;
use kvssd_nvme_spec::SubmissionEntry;
use kvssd_nvme_spec::fabrics::Connect;
use kvssd_nvme_spec::identify::{IdentifyController, IdentifyKvNamespace};
use kvssd_nvme_spec::named::{CacheEntry, FLAG_CACHE, NamespaceEntry};
use kvssd_runtime::sync::{Arc, PoisonError, RwLock};
use kvssd_runtime::time::Duration;
use kvssd_types::NamespaceId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// The longest time between two commands on the admin queue.
pub(crate) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// What the data of a command that goes both ways has to the controller, at the most.
const EXTENDED_CAPSULE_BYTES: u32 = 256;
/// Unit of MDTS, in bytes: the smallest memory page.
const TRANSFER_PAGE_BYTES: u32 = 4096;

/// How many associations this process has made.
static ASSOCIATIONS: AtomicU32 = AtomicU32::new(0);

/// A host's controller and its queues.
pub(crate) struct Association {
    admin: AdminQueue,
    pub(crate) io: Connection,
    /// `None` of a drive that does not number changes, and of a client that makes none.
    pub(crate) recognition: Option<Recognition>,
    data_bytes_max: u32,
    controller: IdentifyController,
    namespaces: RwLock<BTreeMap<NamespaceId, NamespaceLimits>>,
    is_read_only: bool,
    meant: Arc<Meant>,
    /// The drive has the commands of [`kvssd_nvme_spec::named`].
    pub(crate) has_extensions: bool,
    /// No other one of this process has it.
    number: u32,
}

impl Association {
    /// Connects to a controller of the drive at `url`, with one I/O queue.
    pub(crate) fn connect(
        url: &DriveUrl,
        host: &HostIdentity,
        is_read_only: bool,
        meant: &Arc<Meant>,
        deadline: &Deadline,
    ) -> Result<Association, Failure> {
        let Subsystem { nqn, addresses } = resolve(url, host, deadline)?;
        let admin = AdminQueue::connect(url, host, &addresses, &nqn, deadline)?;
        let controller = admin.identify_controller(deadline)?;
        if !meant.is_drive(controller.serial) {
            return Err(another_drive(url).into());
        }
        admin.request_io_queue(deadline)?;
        let recognition = match is_read_only {
            true => None,
            false => Recognition::negotiate(&admin.connection, host.instance, deadline)?,
        };
        let capsule_data_bytes_max = (controller.command_capsule_16b.get().saturating_mul(16)).saturating_sub(64);
        // Long keys lie in the capsule.
        let has_extensions = capsule_data_bytes_max >= EXTENDED_CAPSULE_BYTES && admin.has_extensions(deadline)?;
        let is_first = meant.is_empty();
        // It may have gone while the connection was lost, and a host may not see the first one: there are others to be named.
        let may_be_missing = !is_first || has_extensions && url.namespace == NamespaceId::FIRST;
        let largest = match admin.identify_namespace(url.namespace, deadline) {
            Err(failure) if may_be_missing && failure.is_no_namespace() => {
                admin.namespaces(deadline)?.iter().map(|(_, format)| value_bytes_max(format)).max().unwrap_or(u32::MAX)
            }
            format => value_bytes_max(&format?),
        };
        let value_bytes_max = transfer_bytes_max(&controller).min(largest);
        let data_bytes_max = Request::data_bytes_max(value_bytes_max);
        let entries_max = admin.queue_entries_max.min(u32::from(controller.commands_max.get().wrapping_sub(1)) + 2);
        let depth = u32::from(url.queue_depth).min(entries_max - 1) as u16;
        let limits = QueueLimits { depth, capsule_data_bytes_max, data_bytes_max };
        let io = Connection::connect(&addresses, host.preshared_keys(&nqn), url.digests, limits, deadline)?;
        let connect = Connect { queue_id: 1, queue_size: depth, ..Connect::default() };
        connect_queue(&io, connect, admin.controller, host, &nqn, deadline)?;
        let namespaces = RwLock::default();
        let association = Association {
            admin,
            io,
            recognition,
            data_bytes_max,
            controller,
            namespaces,
            is_read_only,
            meant: Arc::clone(meant),
            has_extensions,
            number: ASSOCIATIONS.fetch_add(1, Ordering::Relaxed),
        };
        match association.limits(url.namespace, deadline) {
            Err(failure) if may_be_missing && failure.is_no_namespace() => {}
            known => _ = known?,
        }
        // While a connection was lost others may have got any number.
        if has_extensions && !is_first {
            let asked = meant.ask();
            meant.compare(asked, &association.admin.named(deadline)?);
        }
        Ok(association)
    }

    /// The limits of a namespace, and which one it is. The controller is asked once.
    pub(crate) fn limits(&self, namespace: NamespaceId, deadline: &Deadline) -> Result<NamespaceLimits, Failure> {
        let place = self.place(namespace, deadline)?;
        if let Some(limits) = self.namespaces.read().unwrap_or_else(PoisonError::into_inner).get(&namespace) {
            return Ok(NamespaceLimits { place, ..*limits });
        }
        let format = self.admin.identify_namespace(place.number, deadline)?.kv_formats[0];
        let bytes_max = transfer_bytes_max(&self.controller).min(self.data_bytes_max);
        let limits = NamespaceLimits {
            key_bytes_max: format.key_bytes_max.get().into(),
            value_bytes_max: format.value_bytes_max.get().min(bytes_max),
            extended: self.has_extensions.then_some(self.number),
            place,
            delete_needs_key: !self.is_read_only && self.admin.let_deletes_need_keys(place.number, deadline)?,
        };
        let mut known = self.namespaces.write().unwrap_or_else(PoisonError::into_inner);
        // Other hosts may replace namespaces for as long as this client lives.
        known.retain(|id, _| self.meant.check(*id).is_ok());
        known.insert(namespace, limits);
        Ok(limits)
    }

    /// The namespace that an id means: from its first use on the one that had it then. Of a drive that tells no births it is a number.
    fn place(&self, namespace: NamespaceId, deadline: &Deadline) -> Result<Place, Failure> {
        if !self.has_extensions {
            return Ok(Place { number: namespace, birth: None });
        }
        loop {
            if let Some(place) = self.meant.place(namespace)?.filter(|place| place.birth.is_some()) {
                return Ok(place);
            }
            let asked = self.meant.ask();
            let mut listed = self.admin.named(deadline)?;
            listed.retain(|entry| entry.number.get() == namespace.0);
            if self.meant.see(asked, &mut listed) && !listed.iter().any(|entry| entry.number.get() == namespace.0) {
                return Err(Error::NoNamespace(namespace.to_string()).into());
            }
        }
    }

    pub(crate) fn namespaces(&self, deadline: &Deadline) -> Result<Vec<(NamespaceId, IdentifyKvNamespace)>, Failure> {
        self.admin.namespaces(deadline)
    }

    /// The namespaces by their names, in the order of their numbers, which are replaced by ids; `None` of a drive that does not tell them.
    pub(crate) fn named(&self, deadline: &Deadline) -> Result<Option<Vec<NamespaceEntry>>, Failure> {
        if !self.has_extensions {
            return Ok(None);
        }
        loop {
            let asked = self.meant.ask();
            let mut listed = self.admin.named(deadline)?;
            // Another thread may have made or deleted one meanwhile.
            if self.meant.see(asked, &mut listed) {
                return Ok(Some(listed));
            }
        }
    }

    /// The namespaces that are caches, by their ids; none of a drive that knows no caches.
    pub(crate) fn caches(&self, deadline: &Deadline) -> Result<Vec<CacheEntry>, Failure> {
        let has_some =
            self.named(deadline)?.unwrap_or_default().iter().any(|entry| entry.flags.get() & FLAG_CACHE != 0);
        let mut caches = if has_some { self.admin.caches(deadline)? } else { Vec::new() };
        for entry in &mut caches {
            entry.number = self.meant.id_of(entry.number.get()).into();
        }
        Ok(caches)
    }

    /// Executes an admin command.
    pub(crate) fn call_admin(
        &self,
        entry: &SubmissionEntry,
        payload: &Payload,
        deadline: &Deadline,
    ) -> Result<Completion, ConnectionLost> {
        self.admin.connection.call(entry, payload, deadline)
    }

    pub(crate) fn report(&self, deadline: &Deadline) -> Result<DriveReport, Failure> {
        DriveReport::read(&self.admin, &self.controller, self.io.depth() as u16, deadline)
    }

    pub(crate) fn keep_alive(&self, deadline: &Deadline) -> Result<(), ConnectionLost> {
        self.admin.keep_alive(deadline)
    }

    pub(crate) fn shut_down(&self) -> Result<(), Failure> {
        self.admin.shut_down()
    }
}

fn another_drive(url: &DriveUrl) -> Error {
    Error::Unreachable(format!(
        "{url}: another drive answers there than the one that was opened; open it again for the one that is there now"
    ))
}

/// Bytes of the largest value that a namespace takes.
fn value_bytes_max(format: &IdentifyKvNamespace) -> u32 {
    format.kv_formats[0].value_bytes_max.get()
}

/// MDTS in bytes.
fn transfer_bytes_max(controller: &IdentifyController) -> u32 {
    match controller.transfer_pages_log2 {
        0 => u32::MAX,
        log2 => {
            let bytes = TRANSFER_PAGE_BYTES.checked_shl(log2.into());
            bytes.filter(|bytes| *bytes >= TRANSFER_PAGE_BYTES).unwrap_or(u32::MAX)
        }
    }
}
