//! A controller that this host has: its admin queue, an I/O queue, and what it says of itself.
//!
//! ```text
//!   (discovery: which subsystem, if none is named)
//!   admin queue   Connect, CAP, CC = key value, CSTS ready, Identify, Number of Queues
//!   I/O queue     Connect
//!   namespaces    Identify (limits), Key Value Configuration (a delete says whether the key was there)
//! ```

use super::channel::{Channel, Lost};
use super::memory::Memory;
use super::queue::{Answer, Payload, QueueLimits};
use super::request::{NamespaceLimits, Request, drive_failed};
use super::url::DriveUrl;
use crate::Error;
use kvssd_runtime::net::{IpAddr, SocketAddr, ToSocketAddrs};
use kvssd_runtime::random_u64;
use kvssd_runtime::sync::{PoisonError, RwLock};
use kvssd_runtime::thread::sleep;
use kvssd_runtime::time::{Duration, Instant};
use kvssd_spec::admin::{AdminCommand, GetLogPage, Identify};
use kvssd_spec::command::NAMESPACE_ALL;
use kvssd_spec::fabrics::{
    CONTROLLER_ANY, Capabilities, Configuration, Connect, ConnectData, ControllerStatus, DISCOVERY_NQN, FabricsCommand,
    property,
};
use kvssd_spec::features::{DELETE_NEEDS_KEY, feature, queue_count_value};
use kvssd_spec::identify::{
    COMMAND_SET_KEY_VALUE, IDENTIFY_BYTES, IdentifyController, IdentifyKvNamespace, cns, read_namespace_list,
};
use kvssd_spec::log_page::{DISCOVERY_RECORD_BYTES, DiscoveryHeader, page, read_discovery_page};
use kvssd_spec::numbered::INSTANCE_BYTES;
use kvssd_spec::{Status, SubmissionEntry};
use kvssd_types::NamespaceId;
use std::collections::BTreeMap;
use zerocopy::IntoBytes;

/// Commands under way on an admin queue: few, and one at a time.
const ADMIN_DEPTH: u16 = 31;
/// What every admin queue takes in a capsule.
const ADMIN_CAPSULE_DATA_BYTES: u32 = 8192;
/// The most data of an admin command that is asked for.
const ADMIN_DATA_BYTES_MAX: u32 = 256 << 10;
/// Entries of a discovery log that are looked at.
const DISCOVERED_MAX: u64 = 32;
/// Namespaces that are looked at.
const NAMESPACES_MAX: usize = 1024;
/// How soon a controller takes a host that says nothing for gone.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(15);
/// Which parameter of a connect cannot be: bytes 16 and 17 of its data, the controller (IPO and IATTR).
const NO_SUCH_CONTROLLER: u64 = 1 << 16 | 16;
/// Between two looks at whether a controller is ready, or shut down.
const LOOK: Duration = Duration::from_millis(1);
/// How long the end of a controller is waited for.
const SHUTDOWN_MAX: Duration = Duration::from_secs(5);

/// How often a controller hears from this host at least.
pub(super) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// Who asks.
#[derive(Clone, Debug)]
pub(super) struct HostIdentity {
    pub(super) id: [u8; 16],
    /// This program on it.
    instance: [u8; INSTANCE_BYTES],
    pub(super) nqn: String,
}

impl HostIdentity {
    /// Another host than all others, called `nqn` where it has a name.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(super) fn new(nqn: Option<&str>) -> std::io::Result<Self> {
        let wide = || {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&random_u64()?.to_le_bytes());
            bytes[8..].copy_from_slice(&random_u64()?.to_le_bytes());
            Ok::<_, std::io::Error>(bytes)
        };
        let (mut id, instance) = (wide()?, wide()?);
        // A UUID of version 4.
        id[6] = id[6] & 0x0f | 0x40;
        id[8] = id[8] & 0x3f | 0x80;
        let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
        let own = || format!("nqn.2014-08.org.nvmexpress:uuid:{}", parts.join("-"));
        Ok(HostIdentity { id, instance, nqn: nqn.map_or_else(own, str::to_owned) })
    }
}

/// Why a controller did not do something.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The connection is gone; another one may do.
    Lost(Lost),
    /// It would say the same again.
    Refused(Error),
}

impl From<Lost> for Trouble {
    fn from(lost: Lost) -> Self {
        Trouble::Lost(lost)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Refused(error)
    }
}

/// A controller.
pub(super) struct Session {
    admin: Channel,
    pub(super) io: Channel,
    /// What the drive remembers of this host's changes, if it does.
    pub(super) memory: Option<Memory>,
    data_bytes_max: u32,
    controller: IdentifyController,
    namespaces: RwLock<BTreeMap<NamespaceId, NamespaceLimits>>,
    is_read_only: bool,
}

impl Session {
    /// Connects to the controller at `url`.
    pub(super) fn connect(
        url: &DriveUrl,
        host: &HostIdentity,
        is_read_only: bool,
        deadline: Instant,
    ) -> Result<Session, Trouble> {
        let mut addresses = addresses_of(url)?;
        let nqn = match &url.nqn {
            Some(nqn) => nqn.clone(),
            None => {
                let (nqn, address) = discover(url, host, &addresses, deadline)?;
                addresses = address.map_or(addresses, |address| vec![address]);
                nqn
            }
        };
        let admin = Admin::connect(url, host, &addresses, &nqn, deadline)?;
        let controller = admin.identify(cns::CONTROLLER, 0, 0, deadline)?;
        let controller = *IdentifyController::from_data(&controller).ok_or_else(short_identify)?;
        let queues = AdminCommand::SetFeatures { feature: feature::QUEUES, save: false, value: queue_count_value(1) };
        admin.call(&queues.entry(0), &Payload::None, deadline)?;
        let memory = if is_read_only { None } else { Memory::begin(&admin.channel, host.instance, deadline)? };
        let format = admin.kv_namespace(url.namespace, deadline)?;
        let value_bytes_max = transfer_bytes_max(&controller).min(format.kv_formats[0].value_bytes_max.get());
        let data_bytes_max = Request::data_bytes_max(value_bytes_max);
        let entries_max = admin.queue_entries_max.min(u32::from(controller.commands_max.get().wrapping_sub(1)) + 2);
        let depth = u32::from(url.queue_depth).min(entries_max - 1) as u16;
        let capsule_data_bytes_max = (controller.command_capsule_16b.get().saturating_mul(16)).saturating_sub(64);
        let limits = QueueLimits { depth, capsule_data_bytes_max, data_bytes_max };
        let io = Channel::connect(&addresses, url.digests, limits, deadline)?;
        let connect = Connect { queue_id: 1, queue_size: depth, ..Connect::default() };
        connect_queue(&io, connect, &ConnectData::new(host.id, admin.controller, &nqn, &host.nqn), deadline)?;
        let namespaces = RwLock::default();
        let session =
            Session { admin: admin.channel, io, memory, data_bytes_max, controller, namespaces, is_read_only };
        session.limits(url.namespace, deadline)?;
        Ok(session)
    }

    /// What a namespace takes.
    pub(super) fn limits(&self, namespace: NamespaceId, deadline: Instant) -> Result<NamespaceLimits, Trouble> {
        if let Some(limits) = self.namespaces.read().unwrap_or_else(PoisonError::into_inner).get(&namespace) {
            return Ok(*limits);
        }
        let format = kv_namespace(&self.admin, namespace, deadline)?.kv_formats[0];
        let bytes_max = transfer_bytes_max(&self.controller).min(self.data_bytes_max);
        let limits = NamespaceLimits {
            key_bytes_max: format.key_bytes_max.get().into(),
            value_bytes_max: format.value_bytes_max.get().min(bytes_max),
            delete_needs_key: !self.is_read_only && self.let_deletes_need_keys(namespace, deadline)?,
        };
        self.namespaces.write().unwrap_or_else(PoisonError::into_inner).insert(namespace, limits);
        Ok(limits)
    }

    /// Has deletes say whether the key was there; gives whether they will.
    fn let_deletes_need_keys(&self, namespace: NamespaceId, deadline: Instant) -> Result<bool, Lost> {
        let (feature, value) = (feature::KEY_VALUE_CONFIGURATION, DELETE_NEEDS_KEY);
        let entry = AdminCommand::SetFeatures { feature, save: false, value }.entry(namespace.0);
        let answer = self.admin.call(&entry, &Payload::None, deadline)?;
        Ok(answer.entry.status() == Ok(Status::Success))
    }

    /// The numbers of all namespaces of keys, with what each says of itself.
    pub(super) fn namespaces(&self, deadline: Instant) -> Result<Vec<(NamespaceId, IdentifyKvNamespace)>, Trouble> {
        let mut found = Vec::new();
        loop {
            let after = found.last().map_or(0, |(NamespaceId(number), _)| *number);
            let list = identify(&self.admin, cns::COMMAND_SET_NAMESPACE_LIST, after, COMMAND_SET_KEY_VALUE, deadline)?;
            let numbers: Vec<u32> = read_namespace_list(&list).filter(|&number| number > after).collect();
            for &number in numbers.iter().take(NAMESPACES_MAX - found.len()) {
                let id = NamespaceId(number);
                found.push((id, kv_namespace(&self.admin, id, deadline)?));
            }
            if numbers.len() < IDENTIFY_BYTES / 4 || found.len() == NAMESPACES_MAX {
                return Ok(found);
            }
        }
    }

    /// What the controller says of itself.
    pub(super) fn controller(&self) -> &IdentifyController {
        &self.controller
    }

    /// The first bytes of a log page.
    pub(super) fn log_page(&self, page: u8, length_bytes: u32, deadline: Instant) -> Result<Vec<u8>, Trouble> {
        log_page(&self.admin, page, length_bytes, deadline)
    }

    /// Says that this host is there.
    pub(super) fn keep_alive(&self, deadline: Instant) -> Result<(), Lost> {
        self.admin.call(&AdminCommand::KeepAlive.entry(0), &Payload::None, deadline).map(|_| ())
    }

    /// Has the controller end in order.
    pub(super) fn shut_down(&self) -> Result<(), Trouble> {
        let deadline = Instant::now() + SHUTDOWN_MAX;
        set_configuration(&self.admin, Configuration::KEY_VALUE.with_shutdown(), deadline)?;
        wait_for_status(&self.admin, "shut down", ControllerStatus::is_shut_down, deadline)
    }
}

/// A controller that has only an admin queue yet.
struct Admin {
    channel: Channel,
    controller: u16,
    queue_entries_max: u32,
}

impl Admin {
    fn connect(
        url: &DriveUrl,
        host: &HostIdentity,
        addresses: &[SocketAddr],
        nqn: &str,
        deadline: Instant,
    ) -> Result<Admin, Trouble> {
        let limits = QueueLimits {
            depth: ADMIN_DEPTH,
            capsule_data_bytes_max: ADMIN_CAPSULE_DATA_BYTES,
            data_bytes_max: ADMIN_DATA_BYTES_MAX,
        };
        let channel = Channel::connect(addresses, url.digests, limits, deadline)?;
        let keep_alive_ms = KEEP_ALIVE_TIMEOUT.as_millis() as u32;
        let connect = Connect { queue_size: ADMIN_DEPTH, keep_alive_ms, ..Connect::default() };
        let data = ConnectData::new(host.id, CONTROLLER_ANY, nqn, &host.nqn);
        let controller = connect_queue(&channel, connect, &data, deadline)?;
        let get = FabricsCommand::PropertyGet { offset: property::CAPABILITIES, is_wide: true };
        let capabilities = Capabilities(call(&channel, &get.into(), &Payload::None, deadline)?.entry.result());
        if !capabilities.has_command_sets() && nqn != DISCOVERY_NQN {
            let why = format!("{nqn} has blocks, and no Key Value command set");
            return Err(Error::Refused { why }.into());
        }
        set_configuration(&channel, Configuration::KEY_VALUE, deadline)?;
        wait_for_status(&channel, "become ready", ControllerStatus::is_ready, deadline)?;
        Ok(Admin { channel, controller, queue_entries_max: capabilities.queue_entries_max().max(2) })
    }

    fn call(&self, entry: &SubmissionEntry, payload: &Payload, deadline: Instant) -> Result<Answer, Trouble> {
        call(&self.channel, entry, payload, deadline)
    }

    fn identify(&self, cns: u8, namespace: u32, command_set: u8, deadline: Instant) -> Result<Vec<u8>, Trouble> {
        identify(&self.channel, cns, namespace, command_set, deadline)
    }

    fn kv_namespace(&self, namespace: NamespaceId, deadline: Instant) -> Result<IdentifyKvNamespace, Trouble> {
        kv_namespace(&self.channel, namespace, deadline)
    }
}

/// The only subsystem that is known at those addresses, and where it says it is.
fn discover(
    url: &DriveUrl,
    host: &HostIdentity,
    addresses: &[SocketAddr],
    deadline: Instant,
) -> Result<(String, Option<SocketAddr>), Trouble> {
    let admin = Admin::connect(url, host, addresses, DISCOVERY_NQN, deadline)?;
    let header = log_page(&admin.channel, page::DISCOVERY, DISCOVERY_RECORD_BYTES as u32, deadline)?;
    let entries = DiscoveryHeader::from_data(&header).map_or(0, |header| header.entries.get()).min(DISCOVERED_MAX);
    let length_bytes = DISCOVERY_RECORD_BYTES as u32 * (entries as u32 + 1);
    let log = log_page(&admin.channel, page::DISCOVERY, length_bytes, deadline)?;
    let mut found: Vec<_> = read_discovery_page(&log).collect();
    found.sort_by_key(|one| one.subsystem_nqn);
    found.dedup_by_key(|one| one.subsystem_nqn);
    let names = || found.iter().map(|one| one.subsystem_nqn).collect::<Vec<_>>().join(", ");
    match found[..] {
        [only] => {
            let address = only.address.parse::<IpAddr>().ok().zip(only.service.parse::<u16>().ok());
            Ok((only.subsystem_nqn.to_owned(), address.map(SocketAddr::from)))
        }
        [] => Err(Error::Refused { why: format!("{url}: no subsystem is known there") }.into()),
        _ => {
            let why = format!("{url}: there are several subsystems; add the name of one to the URL: {}", names());
            Err(Error::InvalidOptions { why }.into())
        }
    }
}

fn addresses_of(url: &DriveUrl) -> Result<Vec<SocketAddr>, Error> {
    let found = (url.host.as_str(), url.port).to_socket_addrs();
    found.map(Iterator::collect).map_err(|error| Error::Unreachable { why: format!("{url}: {error}") })
}

/// Makes a connection a queue; gives the controller that it belongs to.
fn connect_queue(channel: &Channel, connect: Connect, data: &ConnectData, deadline: Instant) -> Result<u16, Trouble> {
    let payload = Payload::Out(data.as_bytes().into());
    let answer = channel.call(&FabricsCommand::Connect(connect).into(), &payload, deadline)?;
    let name = |field: &[u8]| kvssd_spec::read_text(field).unwrap_or("?").to_owned();
    let refused = |why: String| Err(Error::Refused { why }.into());
    match answer.entry.status() {
        Ok(Status::Success) => Ok(answer.entry.result() as u16),
        Ok(Status::ConnectControllerBusy) => Err(Lost::of("it has no controller left").into()),
        // The admin queue was lost meanwhile, and the controller with it.
        Ok(Status::ConnectInvalidParameters) if connect.queue_id > 0 && answer.entry.result() == NO_SUCH_CONTROLLER => {
            Err(Lost::of("its controller is gone").into())
        }
        Ok(Status::CommandSequenceError) if connect.queue_id > 0 => Err(Lost::of("its controller is not ready").into()),
        Ok(Status::ConnectInvalidHost) => refused(format!("the drive does not let {} in", name(&data.host_nqn))),
        Ok(Status::ConnectInvalidParameters) => {
            refused(format!("there is no subsystem {}, or not with such a queue", name(&data.subsystem_nqn)))
        }
        Ok(status) => refused(format!("the drive says: {status}")),
        Err(code) => refused(format!("the drive answers a connect with status {code:03x}h")),
    }
}

fn set_configuration(channel: &Channel, to: Configuration, deadline: Instant) -> Result<(), Trouble> {
    let set = FabricsCommand::PropertySet { offset: property::CONFIGURATION, is_wide: false, value: to.0.into() };
    call(channel, &set.into(), &Payload::None, deadline).map(|_| ())
}

fn wait_for_status(
    channel: &Channel,
    what: &str,
    is_it: impl Fn(ControllerStatus) -> bool,
    deadline: Instant,
) -> Result<(), Trouble> {
    let get = FabricsCommand::PropertyGet { offset: property::STATUS, is_wide: false }.into();
    loop {
        let status = ControllerStatus(call(channel, &get, &Payload::None, deadline)?.entry.dword0.get());
        if is_it(status) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(Lost::of(&format!("its controller does not {what}")).into());
        }
        sleep(LOOK);
    }
}

fn kv_namespace(channel: &Channel, namespace: NamespaceId, deadline: Instant) -> Result<IdentifyKvNamespace, Trouble> {
    let data = identify(channel, cns::COMMAND_SET_NAMESPACE, namespace.0, COMMAND_SET_KEY_VALUE, deadline)?;
    let found = *IdentifyKvNamespace::from_data(&data).ok_or_else(short_identify)?;
    // Of a number that no namespace has all is zero.
    if found.kv_formats[0].key_bytes_max.get() == 0 {
        return Err(Error::NoNamespace { name: namespace.to_string() }.into());
    }
    Ok(found)
}

fn identify(
    channel: &Channel,
    cns: u8,
    namespace: u32,
    command_set: u8,
    deadline: Instant,
) -> Result<Vec<u8>, Trouble> {
    let entry = AdminCommand::Identify(Identify { cns, command_set, ..Identify::default() }).entry(namespace);
    let answer = channel.call(&entry, &Payload::In(IDENTIFY_BYTES as u32), deadline)?;
    if answer.entry.status() == Ok(Status::InvalidNamespace) {
        return Err(Error::NoNamespace { name: namespace.to_string() }.into());
    }
    Ok(succeeded(answer)?.data)
}

fn log_page(channel: &Channel, page: u8, length_bytes: u32, deadline: Instant) -> Result<Vec<u8>, Trouble> {
    let length = u64::from(length_bytes);
    let entry = AdminCommand::GetLogPage(GetLogPage { page, length_bytes: length, ..GetLogPage::default() });
    Ok(call(channel, &entry.entry(NAMESPACE_ALL), &Payload::In(length_bytes), deadline)?.data)
}

/// Executes a command that is to go well.
fn call(channel: &Channel, entry: &SubmissionEntry, payload: &Payload, deadline: Instant) -> Result<Answer, Trouble> {
    Ok(succeeded(channel.call(entry, payload, deadline)?)?)
}

fn succeeded(answer: Answer) -> Result<Answer, Error> {
    let refused = |why: String| Err(Error::Refused { why });
    match answer.entry.status() {
        Ok(Status::Success) => Ok(answer),
        // It cannot say what it has any more.
        Ok(Status::InternalError) => Err(drive_failed()),
        Ok(status) => refused(format!("the drive says: {status}")),
        Err(code) => refused(format!("the drive answers with status {code:03x}h")),
    }
}

/// MDTS in bytes.
fn transfer_bytes_max(controller: &IdentifyController) -> u32 {
    match controller.transfer_pages_log2 {
        0 => u32::MAX,
        log2 => 4096u32.checked_shl(log2.into()).filter(|bytes| *bytes >= 4096).unwrap_or(u32::MAX),
    }
}

fn short_identify() -> Error {
    Error::Refused { why: format!("the drive says less of itself than the {IDENTIFY_BYTES} bytes that it should") }
}
