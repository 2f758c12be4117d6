//! An admin queue: how a controller is connected to and enabled, and what it says of itself.
//!
//! ```text
//!   Connect, CAP, CC = key value, CSTS ready      connect
//!   Identify, Get Log Page, Set Features          what the controller says
//!   CC with SHN, CSTS shut down                   shut_down
//! ```

use crate::Error;
use crate::authentication::authenticate;
use crate::connection::Connection;
use crate::connection_lost::ConnectionLost;
use crate::failure::Failure;
use crate::host_identity::HostIdentity;
use crate::queue_pair::{Completion, Payload, QueueLimits};
use crate::request::drive_failed;
use crate::time_left::Deadline;
use crate::url::DriveUrl;
use kvssd_nvme_spec::admin::{AdminCommand, GetLogPage, Identify};
use kvssd_nvme_spec::command::NAMESPACE_ALL;
use kvssd_nvme_spec::fabrics::{
    CONTROLLER_ANY, Capabilities, Configuration, Connect, ConnectData, ControllerStatus, DISCOVERY_NQN, FabricsCommand,
    property,
};
use kvssd_nvme_spec::features::{DELETE_NEEDS_KEY, feature, queue_count_value};
use kvssd_nvme_spec::identify::{
    COMMAND_SET_KEY_VALUE, IDENTIFY_BYTES, IdentifyController, IdentifyKvNamespace, cns, read_namespace_list,
};
use kvssd_nvme_spec::log_page::page;
use kvssd_nvme_spec::named::{
    CACHE_ENTRY_BYTES, CacheEntry, ENTRY_BYTES, HEADER_BYTES, NamespaceEntry, SIGNATURE, read_caches, read_namespaces,
};
use kvssd_nvme_spec::{Status, SubmissionEntry};
use kvssd_runtime::net::SocketAddr;
use kvssd_runtime::thread::sleep;
use kvssd_runtime::time::Duration;
use kvssd_types::NamespaceId;
use zerocopy::IntoBytes;

/// Outstanding admin commands. One at a time is the rule.
const ADMIN_DEPTH: u16 = 31;
/// In-capsule data that every admin queue takes (NVMe/TCP).
const ADMIN_CAPSULE_DATA_BYTES: u32 = 8192;
/// The most data that an admin command asks for.
const ADMIN_DATA_BYTES_MAX: u32 = 256 << 10;
/// The most namespaces that are listed.
const NAMESPACES_MAX: usize = 1024;
/// The most namespaces of which names are read: the page takes 32 KiB.
const NAMED_MAX: usize = 255;
/// KATO: the controller ends when it hears nothing for that long.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(15);
/// Result of a Connect whose controller does not exist: IPO and IATTR name bytes 16 and 17 of its data.
const NO_SUCH_CONTROLLER: u64 = 1 << 16 | 16;
/// Time between two reads of CSTS.
const STATUS_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// How long a controller may take to shut down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The admin queue of a controller that is enabled.
pub(crate) struct AdminQueue {
    pub(crate) connection: Connection,
    /// CNTLID.
    pub(crate) controller: u16,
    /// The most entries of an I/O queue (CAP.MQES).
    pub(crate) queue_entries_max: u32,
}

impl AdminQueue {
    /// Connects to a new controller of the subsystem `nqn`, and enables it.
    pub(crate) fn connect(
        url: &DriveUrl,
        host: &HostIdentity,
        addresses: &[SocketAddr],
        nqn: &str,
        deadline: &Deadline,
    ) -> Result<AdminQueue, Failure> {
        let limits = QueueLimits {
            depth: ADMIN_DEPTH,
            capsule_data_bytes_max: ADMIN_CAPSULE_DATA_BYTES,
            data_bytes_max: ADMIN_DATA_BYTES_MAX,
        };
        let connection = Connection::connect(addresses, host.preshared_keys(nqn), url.digests, limits, deadline)?;
        let keep_alive_ms = KEEP_ALIVE_TIMEOUT.as_millis() as u32;
        let connect = Connect { queue_size: ADMIN_DEPTH, keep_alive_ms, ..Connect::default() };
        let controller = connect_queue(&connection, connect, CONTROLLER_ANY, host, nqn, deadline)?;
        let mut admin = AdminQueue { connection, controller, queue_entries_max: 0 };
        let get = FabricsCommand::PropertyGet { offset: property::CAPABILITIES, is_wide: true };
        let capabilities = Capabilities(admin.call(&get.into(), &Payload::None, deadline)?.entry.result());
        if !capabilities.has_command_sets() && nqn != DISCOVERY_NQN {
            return Err(Error::Refused(format!("{nqn} has blocks, and no Key Value command set")).into());
        }
        admin.queue_entries_max = capabilities.queue_entries_max().max(2);
        admin.set_configuration(Configuration::KEY_VALUE, deadline)?;
        admin.wait_for_status("become ready", ControllerStatus::is_ready, deadline)?;
        Ok(admin)
    }

    /// Executes a command that must succeed.
    fn call(&self, entry: &SubmissionEntry, payload: &Payload, deadline: &Deadline) -> Result<Completion, Failure> {
        Ok(succeeded(self.connection.call(entry, payload, deadline)?)?)
    }

    fn set_configuration(&self, to: Configuration, deadline: &Deadline) -> Result<(), Failure> {
        let set = FabricsCommand::PropertySet { offset: property::CONFIGURATION, is_wide: false, value: to.0.into() };
        self.call(&set.into(), &Payload::None, deadline).map(|_| ())
    }

    fn wait_for_status(
        &self,
        what: &str,
        is_reached: impl Fn(ControllerStatus) -> bool,
        deadline: &Deadline,
    ) -> Result<(), Failure> {
        let get = FabricsCommand::PropertyGet { offset: property::STATUS, is_wide: false }.into();
        loop {
            let status = ControllerStatus(self.call(&get, &Payload::None, deadline)?.entry.dword0.get());
            if is_reached(status) {
                return Ok(());
            }
            if deadline.is_over() {
                return Err(ConnectionLost::new(&format!("its controller does not {what}")).into());
            }
            sleep(STATUS_POLL_INTERVAL);
        }
    }

    fn identify(&self, cns: u8, namespace: u32, command_set: u8, deadline: &Deadline) -> Result<Vec<u8>, Failure> {
        let entry = AdminCommand::Identify(Identify { cns, command_set, ..Identify::default() }).entry(namespace);
        let completion = self.connection.call(&entry, &Payload::In(IDENTIFY_BYTES as u32), deadline)?;
        if completion.entry.status() == Ok(Status::InvalidNamespace) {
            return Err(Error::NoNamespace(namespace.to_string()).into());
        }
        Ok(succeeded(completion)?.data)
    }

    pub(crate) fn identify_controller(&self, deadline: &Deadline) -> Result<IdentifyController, Failure> {
        let data = self.identify(cns::CONTROLLER, 0, 0, deadline)?;
        Ok(*IdentifyController::from_data(&data).ok_or_else(short_identify)?)
    }

    /// Identify of a namespace, by the Key Value command set.
    pub(crate) fn identify_namespace(
        &self,
        namespace: NamespaceId,
        deadline: &Deadline,
    ) -> Result<IdentifyKvNamespace, Failure> {
        let data = self.identify(cns::COMMAND_SET_NAMESPACE, namespace.0, COMMAND_SET_KEY_VALUE, deadline)?;
        let found = *IdentifyKvNamespace::from_data(&data).ok_or_else(short_identify)?;
        // The data of a number that no namespace has is zeros.
        if found.kv_formats[0].key_bytes_max.get() == 0 {
            return Err(Error::NoNamespace(namespace.to_string()).into());
        }
        Ok(found)
    }

    /// Identify of all key-value namespaces, in the order of their numbers.
    pub(crate) fn namespaces(&self, deadline: &Deadline) -> Result<Vec<(NamespaceId, IdentifyKvNamespace)>, Failure> {
        let (mut found, mut after) = (Vec::new(), 0);
        loop {
            let list = self.identify(cns::COMMAND_SET_NAMESPACE_LIST, after, COMMAND_SET_KEY_VALUE, deadline)?;
            let numbers: Vec<u32> = read_namespace_list(&list).filter(|&number| number > after).collect();
            for &number in numbers.iter().take(NAMESPACES_MAX - found.len()) {
                let id = NamespaceId(number);
                // Of one that is gone too: a drive that lists it again is not asked for ever.
                after = number;
                match self.identify_namespace(id, deadline) {
                    Ok(identify) => found.push((id, identify)),
                    // It was deleted since it was listed.
                    Err(Failure::Final(Error::NoNamespace(_))) => {}
                    Err(failure) => return Err(failure),
                }
            }
            if numbers.len() < IDENTIFY_BYTES / 4 || found.len() == NAMESPACES_MAX {
                return Ok(found);
            }
        }
    }

    /// The first `length_bytes` of a log page.
    pub(crate) fn log_page(&self, page: u8, length_bytes: u32, deadline: &Deadline) -> Result<Vec<u8>, Failure> {
        // A drive of an earlier release refuses what came in the place of another one, until a list without Retain is read:
        // with commands under way that is never the moment.
        let wanted =
            GetLogPage { page, retain_event: true, length_bytes: length_bytes.into(), ..GetLogPage::default() };
        let entry = AdminCommand::GetLogPage(wanted);
        Ok(self.call(&entry.entry(NAMESPACE_ALL), &Payload::In(length_bytes), deadline)?.data)
    }

    /// Whether the controller has the commands of [`named`](kvssd_nvme_spec::named): another make's feature C1h says
    /// something else.
    pub(crate) fn has_extensions(&self, deadline: &Deadline) -> Result<bool, ConnectionLost> {
        let get = AdminCommand::GetFeatures { feature: feature::EXTENSIONS, select: 0, value: 0 };
        let completion = self.connection.call(&get.entry(0), &Payload::None, deadline)?.entry;
        Ok(completion.status() == Ok(Status::Success) && completion.dword0.get() == SIGNATURE)
    }

    /// The namespaces by their names.
    pub(crate) fn named(&self, deadline: &Deadline) -> Result<Vec<NamespaceEntry>, Failure> {
        let bytes_max = (HEADER_BYTES + NAMED_MAX * ENTRY_BYTES) as u32;
        let page = self.log_page(page::NAMESPACES, bytes_max, deadline)?;
        let damaged = || Error::Damaged("the drive sent a page of its namespaces that cannot be".to_owned());
        Ok(read_namespaces(&page).ok_or_else(damaged)?)
    }

    /// The namespaces that are caches.
    pub(crate) fn caches(&self, deadline: &Deadline) -> Result<Vec<CacheEntry>, Failure> {
        let bytes_max = (HEADER_BYTES + NAMED_MAX * CACHE_ENTRY_BYTES) as u32;
        let page = self.log_page(page::CACHES, bytes_max, deadline)?;
        let damaged = || Error::Damaged("the drive sent a page of its caches that cannot be".to_owned());
        Ok(read_caches(&page).ok_or_else(damaged)?)
    }

    /// Requests one I/O queue (feature 07h).
    pub(crate) fn request_io_queue(&self, deadline: &Deadline) -> Result<(), Failure> {
        let set = AdminCommand::SetFeatures { feature: feature::QUEUES, save: false, value: queue_count_value(1) };
        self.call(&set.entry(0), &Payload::None, deadline).map(|_| ())
    }

    /// Has Delete fail where the key is missing (feature 20h, bit 0). Returns whether the controller does.
    pub(crate) fn let_deletes_need_keys(
        &self,
        namespace: NamespaceId,
        deadline: &Deadline,
    ) -> Result<bool, ConnectionLost> {
        let (feature, value) = (feature::KEY_VALUE_CONFIGURATION, DELETE_NEEDS_KEY);
        let entry = AdminCommand::SetFeatures { feature, save: false, value }.entry(namespace.0);
        let completion = self.connection.call(&entry, &Payload::None, deadline)?;
        Ok(completion.entry.status() == Ok(Status::Success))
    }

    pub(crate) fn keep_alive(&self, deadline: &Deadline) -> Result<(), ConnectionLost> {
        self.connection.call(&AdminCommand::KeepAlive.entry(0), &Payload::None, deadline).map(|_| ())
    }

    /// Shuts the controller down in order (CC.SHN, CSTS.SHST).
    pub(crate) fn shut_down(&self) -> Result<(), Failure> {
        let deadline = &Deadline::of_caller(SHUTDOWN_TIMEOUT);
        self.set_configuration(Configuration::KEY_VALUE.with_shutdown(), deadline)?;
        self.wait_for_status("shut down", ControllerStatus::is_shut_down, deadline)
    }
}

/// Connects a queue, and proves to it who this host is if it asks for that; returns the controller that it belongs to
/// (CNTLID).
pub(crate) fn connect_queue(
    connection: &Connection,
    connect: Connect,
    controller: u16,
    host: &HostIdentity,
    nqn: &str,
    deadline: &Deadline,
) -> Result<u16, Failure> {
    let data = ConnectData::new(host.id, controller, nqn, &host.nqn);
    let payload = Payload::Out(data.as_bytes().into());
    let completion = connection.call(&FabricsCommand::Connect(connect).into(), &payload, deadline)?;
    let (is_io, result) = (connect.queue_id > 0, completion.entry.result());
    let name = |field: &[u8]| kvssd_nvme_spec::read_text(field).unwrap_or("?").to_owned();
    let lost = |why: &str| Err(ConnectionLost::new(why).into());
    let refused = |why: String| Err(Error::Refused(why).into());
    match completion.entry.status() {
        // A discovery controller has nothing to prove, and asks for nothing.
        Ok(Status::Success) if nqn == DISCOVERY_NQN && result >> 16 == 0 => Ok(result as u16),
        Ok(Status::Success) => authenticate(connection, host, nqn, result, deadline).map(|()| result as u16),
        Ok(Status::ConnectControllerBusy) => lost("it has no place left for this host"),
        // The admin queue was lost meanwhile, and the controller with it.
        Ok(Status::ConnectInvalidParameters) if is_io && result == NO_SUCH_CONTROLLER => lost("its controller is gone"),
        Ok(Status::CommandSequenceError) if is_io => lost("its controller is not ready"),
        Ok(Status::ConnectInvalidHost) => refused(format!("the drive does not let {} in", name(&data.host_nqn))),
        Ok(Status::ConnectInvalidParameters) => {
            refused(format!("there is no subsystem {}, or not with such a queue", name(&data.subsystem_nqn)))
        }
        Ok(Status::AuthenticationRequired) => {
            refused("the drive wants TLS: add tls-key-file=PATH to the URL".to_owned())
        }
        Ok(status) => refused(format!("the drive says: {status}")),
        Err(code) => refused(format!("the drive answers a connect with status {code:03x}h")),
    }
}

fn succeeded(completion: Completion) -> Result<Completion, Error> {
    match completion.entry.status() {
        Ok(Status::Success) => Ok(completion),
        // The drive has failed, and knows nothing of itself any more.
        Ok(Status::InternalError) => Err(drive_failed()),
        Ok(status) => Err(Error::Refused(format!("the drive says: {status}"))),
        Err(code) => Err(Error::Refused(format!("the drive answers with status {code:03x}h"))),
    }
}

fn short_identify() -> Error {
    Error::Refused(format!("the drive says less of itself than the {IDENTIFY_BYTES} bytes that it should"))
}
