//! The data structures of Identify.

use crate::controller::{Controller, ControllerKind};
use crate::limits::{CAPSULE_DATA_BYTES_MAX, ERROR_ENTRIES_MAX, EVENT_REQUESTS_MAX, NAMESPACES_MAX, QUEUE_ENTRIES_MAX};
use crate::rights::Access;
use crate::status::absent;
use crate::subsystem::Subsystem;
use crate::view::View;
use kvssd_ftl::NamespaceInfo;
use kvssd_nvme_spec::admin::Identify;
use kvssd_nvme_spec::attachment::controller_list;
use kvssd_nvme_spec::command::{NAMESPACE_ALL, SUBMISSION_ENTRY_BYTES};
use kvssd_nvme_spec::completion::COMPLETION_ENTRY_BYTES;
use kvssd_nvme_spec::fabrics::{DISCOVERY_NQN, VERSION_2_0};
use kvssd_nvme_spec::features::{EVENT_DISCOVERY, EVENT_NAMESPACES};
use kvssd_nvme_spec::identify::{
    COMMAND_SET_KEY_VALUE, IDENTIFY_BYTES, IdentifyController, IdentifyIndependentNamespace, IdentifyKvController,
    IdentifyKvNamespace, IdentifyNamespace, KvFormat, cns, command_set_combinations, namespace_descriptors,
    namespace_list,
};
use kvssd_nvme_spec::kv::KEY_BYTES_MAX;
use kvssd_nvme_spec::named::told_birth;
use kvssd_nvme_spec::{Status, write_padded, write_text};
use kvssd_types::mix64;
use zerocopy::IntoBytes;

/// VER of the Key Value command set: 1.3.
const KEY_VALUE_VERSION: u32 = 0x0001_0300;
/// SGLS: no alignment, longer than the data, in-capsule data at an offset, transport SGL.
const SGL_SUPPORT: u32 = 1 | 1 << 18 | 1 << 20 | 1 << 21;
/// CTRATT: host identifiers of 128 bits.
const HOST_IDS_OF_128_BITS: u32 = 1;
/// NMIC: shared by several controllers.
const SHARED: u8 = 1;
/// NSATTR: write protected.
const WRITE_PROTECTED: u8 = 1;
/// The block size that Identify 00h reports of key-value namespaces.
const BLOCK_BYTES_LOG2: u8 = 9;
const PAGE_BYTES: u64 = 4096;

/// The data structure of `wanted.cns`, 4096 bytes.
pub(crate) fn identify(
    view: View<'_>,
    controller: &Controller,
    wanted: &Identify,
    namespace: u32,
) -> Result<Vec<u8>, Status> {
    let subsystem = view.subsystem;
    if wanted.cns == cns::CONTROLLER {
        return Ok(match controller.kind {
            ControllerKind::Io => io_controller(subsystem, controller),
            ControllerKind::Discovery => discovery_controller(controller),
        }
        .as_bytes()
        .to_vec());
    }
    if controller.kind == ControllerKind::Discovery {
        return Err(Status::InvalidField);
    }
    let is_key_value = wanted.command_set == COMMAND_SET_KEY_VALUE;
    let of_namespace = || find(namespace, view.namespaces()?);
    let allocated = || find(namespace, view.allocated()?);
    let attributes = match view.rights.access(namespace) {
        Some(Access::ReadOnly) => WRITE_PROTECTED,
        Some(Access::ReadWrite) | None => 0,
    };
    match wanted.cns {
        cns::NAMESPACE_LIST => list(namespace, &view.namespaces()?),
        cns::COMMAND_SET_NAMESPACE_LIST if is_key_value => list(namespace, &view.namespaces()?),
        cns::ALLOCATED_LIST => list(namespace, &view.allocated()?),
        cns::COMMAND_SET_ALLOCATED_LIST if is_key_value => list(namespace, &view.allocated()?),
        cns::ALLOCATED_NAMESPACE => {
            Ok(allocated()?.map_or_else(zeros, |info| block_namespace(subsystem, &info, attributes)))
        }
        cns::COMMAND_SET_ALLOCATED_NAMESPACE if is_key_value => {
            Ok(allocated()?.map_or_else(zeros, |info| kv_namespace(subsystem, &info, attributes)))
        }
        cns::NAMESPACE_CONTROLLERS => {
            allocated()?.ok_or(absent(namespace))?;
            Ok(controllers(view, controller, wanted.controller, Some(namespace)))
        }
        cns::CONTROLLERS => Ok(controllers(view, controller, wanted.controller, None)),
        cns::COMMAND_SET_CONTROLLER if is_key_value => {
            let mut data = IdentifyKvController::zeroed();
            data.version = KEY_VALUE_VERSION.into();
            Ok(data.as_bytes().to_vec())
        }
        cns::COMMAND_SETS => Ok(command_set_combinations().to_vec()),
        cns::NAMESPACE => Ok(of_namespace()?.map_or_else(zeros, |info| block_namespace(subsystem, &info, attributes))),
        cns::NAMESPACE_DESCRIPTORS => {
            let info = of_namespace()?.ok_or(absent(namespace))?;
            Ok(namespace_descriptors(guid(subsystem, &info), uuid(subsystem, &info), COMMAND_SET_KEY_VALUE).to_vec())
        }
        cns::COMMAND_SET_NAMESPACE if is_key_value => {
            Ok(of_namespace()?.map_or_else(zeros, |info| kv_namespace(subsystem, &info, attributes)))
        }
        cns::INDEPENDENT_NAMESPACE => Ok(of_namespace()?.map_or_else(zeros, |_| independent_namespace(attributes))),
        cns::COMMAND_SET_FORMAT if is_key_value && wanted.specific == 0 => Ok(format(subsystem)),
        _ => Err(Status::InvalidField),
    }
}

/// The serial number of a drive without an identity, and of discovery controllers.
const SERIAL: &str = "KVSSD0000000001";

/// Identify data of an inactive namespace.
fn zeros() -> Vec<u8> {
    vec![0; IDENTIFY_BYTES]
}

/// The namespace; `None` if it is inactive.
fn find(namespace: u32, among: Vec<NamespaceInfo>) -> Result<Option<NamespaceInfo>, Status> {
    if absent(namespace) == Status::InvalidNamespace {
        return Err(Status::InvalidNamespace);
    }
    Ok(among.into_iter().find(|info| info.id.0 == namespace))
}

fn list(after: u32, among: &[NamespaceInfo]) -> Result<Vec<u8>, Status> {
    if after >= NAMESPACE_ALL - 1 {
        return Err(Status::InvalidNamespace);
    }
    Ok(namespace_list(among.iter().map(|info| info.id.0), after).to_vec())
}

/// The controllers from number `from` on, of those that have a namespace or of all. A host that may not attach namespaces
/// to those of others does not see them.
fn controllers(view: View<'_>, controller: &Controller, from: u16, namespace: Option<u32>) -> Vec<u8> {
    let of = (!view.rights.may_manage()).then_some(controller.host.nqn.as_str());
    controller_list(view.subsystem.attachments.list(from, of, namespace).into_iter()).to_vec()
}

fn common(controller: &Controller) -> IdentifyController {
    let mut data = IdentifyController::zeroed();
    write_padded(&mut data.serial, SERIAL);
    write_padded(&mut data.model, "kvssd key-value drive");
    write_padded(&mut data.firmware, env!("CARGO_PKG_VERSION"));
    data.controller = controller.id.into();
    data.version = VERSION_2_0.into();
    data.attributes = HOST_IDS_OF_128_BITS.into();
    data.event_request_limit = EVENT_REQUESTS_MAX as u8 - 1;
    data.log_attributes = 1 << 1 | 1 << 2;
    data.keep_alive_100ms = 1.into();
    data.commands_max = QUEUE_ENTRIES_MAX.into();
    data.sgl = SGL_SUPPORT.into();
    data.command_capsule_16b = ((SUBMISSION_ENTRY_BYTES as u32 + CAPSULE_DATA_BYTES_MAX) / 16).into();
    data.response_capsule_16b = (COMPLETION_ENTRY_BYTES as u32 / 16).into();
    data.sgl_descriptors_max = 1;
    data
}

fn io_controller(subsystem: &Subsystem, controller: &Controller) -> IdentifyController {
    let health = subsystem.health();
    let mut data = common(controller);
    write_padded(&mut data.serial, &serial(subsystem));
    write_text(&mut data.subsystem_nqn, &subsystem.options.nqn);
    // Bit 1: more than one controller.
    data.multi_path = 1 << 1;
    let transfer_pages = subsystem.value_bytes_max.div_ceil(PAGE_BYTES).max(1);
    data.transfer_pages_log2 = transfer_pages.next_power_of_two().ilog2() as u8;
    data.events = EVENT_NAMESPACES.into();
    data.kind = 1;
    data.abort_limit = 3;
    // One slot, read only.
    data.firmware_updates = 1 | 1 << 1;
    data.error_log_entries = ERROR_ENTRIES_MAX as u8 - 1;
    data.warning_temperature_k = crate::controller::TEMPERATURE_THRESHOLD_K.into();
    data.critical_temperature_k = (crate::controller::TEMPERATURE_THRESHOLD_K + 10).into();
    data.capacity_bytes = u128::from(health.utilization.capacity_bytes).into();
    data.submission_entry_log2 = 0x66;
    data.completion_entry_log2 = 0x44;
    data.namespaces_max = NAMESPACES_MAX.into();
    data.allowed_namespaces_max = NAMESPACES_MAX.into();
    // Flush takes all namespaces. There is no volatile cache: a completed Store is safe.
    data.volatile_write_cache = 3 << 1;
    // Disconnect.
    data.optional_fabrics = 1.into();
    data
}

fn discovery_controller(controller: &Controller) -> IdentifyController {
    let mut data = common(controller);
    write_text(&mut data.subsystem_nqn, DISCOVERY_NQN);
    data.events = EVENT_DISCOVERY.into();
    data.kind = 2;
    data
}

/// Identify 00h. It reports a capacity in blocks, since some hosts ignore a namespace without one. No more is told to be in use than that
/// (NUSE): what an index takes is not bounded by the quota.
fn block_namespace(subsystem: &Subsystem, info: &NamespaceInfo, attributes: u8) -> Vec<u8> {
    let blocks = |bytes: u64| (bytes >> BLOCK_BYTES_LOG2).into();
    let mut data = IdentifyNamespace::zeroed();
    data.size = blocks(info.utilization.capacity_bytes);
    data.capacity = blocks(info.utilization.capacity_bytes);
    data.utilization = blocks(info.utilization.live_bytes.min(info.utilization.capacity_bytes));
    data.sharing = SHARED;
    data.attributes = attributes;
    data.formats[0] = [0, 0, BLOCK_BYTES_LOG2, 0];
    data.guid = guid(subsystem, info);
    data.as_bytes().to_vec()
}

fn kv_namespace(subsystem: &Subsystem, info: &NamespaceInfo, attributes: u8) -> Vec<u8> {
    let mut data = IdentifyKvNamespace::zeroed();
    data.size_bytes = info.utilization.capacity_bytes.into();
    data.utilization_bytes = info.utilization.record_bytes.into();
    data.sharing = SHARED;
    data.attributes = attributes;
    data.value_granularity_bytes = subsystem.value_granularity_bytes.into();
    data.guid = guid(subsystem, info);
    data.kv_formats[0] = kv_format(subsystem);
    data.as_bytes().to_vec()
}

fn format(subsystem: &Subsystem) -> Vec<u8> {
    let mut data = IdentifyKvNamespace::zeroed();
    data.kv_formats[0] = kv_format(subsystem);
    data.as_bytes().to_vec()
}

fn kv_format(subsystem: &Subsystem) -> KvFormat {
    let mut format = KvFormat::default();
    format.key_bytes_max = (KEY_BYTES_MAX as u16).into();
    format.value_bytes_max = u32::try_from(subsystem.value_bytes_max).unwrap_or(u32::MAX).into();
    format
}

fn independent_namespace(attributes: u8) -> Vec<u8> {
    let mut data = IdentifyIndependentNamespace::zeroed();
    data.attributes = attributes;
    data.sharing = SHARED;
    // Ready.
    data.status = 1;
    data.as_bytes().to_vec()
}

/// The serial number: it follows from the drive's identity, so that hosts take no other drive for it.
fn serial(subsystem: &Subsystem) -> String {
    subsystem.identity.map_or_else(|| SERIAL.to_owned(), |identity| format!("KVS{identity:016X}"))
}

/// NGUID: it follows from the subsystem's NQN, the drive's identity, and the namespace's number, which may come again, birth and name.
fn guid(subsystem: &Subsystem, info: &NamespaceInfo) -> [u8; 16] {
    let mixed = |hash: u64, byte: u8| mix64(hash ^ u64::from(byte));
    let seed = |salt: u64| subsystem.options.nqn.bytes().fold(salt, mixed) ^ subsystem.identity.unwrap_or_default();
    let name = info.attributes.name.as_deref().unwrap_or_default();
    let which = u64::from(info.id.0) | u64::from(told_birth(info.birth)) << 32;
    let half = |salt: u64| name.bytes().fold(mix64(seed(salt) ^ which), mixed);
    let (high, low) = (half(1), half(2));
    let mut guid = [0; 16];
    guid[..8].copy_from_slice(&high.to_be_bytes());
    guid[8..].copy_from_slice(&low.to_be_bytes());
    guid
}

/// [`guid`] as a UUID of version 8.
fn uuid(subsystem: &Subsystem, info: &NamespaceInfo) -> [u8; 16] {
    uuid::Builder::from_custom_bytes(guid(subsystem, info)).into_uuid().into_bytes()
}
