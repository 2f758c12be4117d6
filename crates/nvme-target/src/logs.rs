//! The log pages that Get Log Page reads.

use crate::command_kind::CommandKind;
use crate::controller::{Controller, ControllerKind, TEMPERATURE_K};
use crate::limits::{ERROR_ENTRIES_MAX, LOG_BYTES_MAX, QUEUE_ENTRIES_MAX};
use crate::namespaces::{caches_page_of, page_of};
use crate::subsystem::Subsystem;
use crate::view::View;
use kvssd_ftl::Utilization;
use kvssd_nvme_spec::admin::{self, GetLogPage};
use kvssd_nvme_spec::attachment::NAMESPACE_ATTACHMENT;
use kvssd_nvme_spec::fabrics::FABRICS_OPCODE;
use kvssd_nvme_spec::identify::{COMMAND_SET_KEY_VALUE, COMMAND_SET_NVM, namespace_list};
use kvssd_nvme_spec::log_page::{
    CommandEffectsPage, Discovered, EFFECT_CONTENT, EFFECT_INVENTORY, EFFECT_SUPPORTED, ErrorEntry, FirmwarePage,
    HEALTH_UNIT_BYTES, HealthPage, SupportedPages, discovery_page, page,
};
use kvssd_nvme_spec::statistics::StatisticsPage;
use kvssd_nvme_spec::{Status, extended, kv, named, write_padded, write_text};
use rustix::time::{ClockId, clock_gettime};
use std::net::SocketAddr;
use zerocopy::IntoBytes;

/// Bits of Critical Warning.
const WARNING_TEMPERATURE: u8 = 1 << 1;
const WARNING_RELIABILITY: u8 = 1 << 2;

/// The requested part of a page, with zeros behind its end.
pub(crate) fn log_page(
    view: View<'_>,
    controller: &Controller,
    wanted: &GetLogPage,
    local: SocketAddr,
) -> Result<Vec<u8>, Status> {
    if wanted.length_bytes > LOG_BYTES_MAX || !wanted.offset_bytes.is_multiple_of(4) {
        return Err(Status::InvalidField);
    }
    let mut whole = match controller.kind {
        ControllerKind::Discovery => of_discovery(view, controller, wanted.page, local)?,
        ControllerKind::Io => of_io(view, controller, wanted)?,
    };
    let offset = usize::try_from(wanted.offset_bytes).unwrap_or(usize::MAX);
    if offset > whole.len() {
        return Err(Status::InvalidField);
    }
    let mut part = whole.split_off(offset);
    part.resize(wanted.length_bytes as usize, 0);
    Ok(part)
}

fn of_discovery(view: View<'_>, controller: &Controller, page: u8, local: SocketAddr) -> Result<Vec<u8>, Status> {
    let address = local.ip().to_canonical();
    match page {
        page::SUPPORTED => Ok(supported(&[page::SUPPORTED, page::DISCOVERY])),
        page::DISCOVERY => {
            let (text, service) = (address.to_string(), local.port().to_string());
            let found = [Discovered {
                subsystem_nqn: &view.subsystem.options.nqn,
                address: &text,
                service: &service,
                is_secured: view.rights.tls_key.is_some(),
            }];
            Ok(discovery_page(&found, controller.discovered, QUEUE_ENTRIES_MAX, address.is_ipv6()))
        }
        _ => Err(Status::InvalidLogPage),
    }
}

fn of_io(view: View<'_>, controller: &Controller, wanted: &GetLogPage) -> Result<Vec<u8>, Status> {
    match wanted.page {
        page::SUPPORTED => Ok(supported(&[
            page::SUPPORTED,
            page::ERROR,
            page::HEALTH,
            page::FIRMWARE,
            page::CHANGED_NAMESPACES,
            page::COMMAND_EFFECTS,
            page::STATISTICS,
            page::NAMESPACES,
            page::CACHES,
        ])),
        page::ERROR => Ok(errors(controller)),
        page::HEALTH => Ok(health(view, controller).as_bytes().to_vec()),
        page::FIRMWARE => {
            let mut firmware = FirmwarePage::zeroed();
            firmware.active = 1;
            write_padded(&mut firmware.slots[0], env!("CARGO_PKG_VERSION"));
            Ok(firmware.as_bytes().to_vec())
        }
        page::CHANGED_NAMESPACES => Ok(namespace_list(controller.changed.iter().copied(), 0).to_vec()),
        // The NVM command set has only the admin commands here.
        page::COMMAND_EFFECTS if !matches!(wanted.command_set, COMMAND_SET_NVM | COMMAND_SET_KEY_VALUE) => {
            Err(Status::InvalidField)
        }
        page::COMMAND_EFFECTS => Ok(effects(wanted.command_set).as_bytes().to_vec()),
        page::STATISTICS => Ok(statistics(view)?.as_bytes().to_vec()),
        page::NAMESPACES => Ok(page_of(&view.namespaces()?)),
        page::CACHES => Ok(caches_page_of(&view.caches()?)),
        _ => Err(Status::InvalidLogPage),
    }
}

fn supported(pages: &[u8]) -> Vec<u8> {
    let mut data = SupportedPages::zeroed();
    for &page in pages {
        data.pages[usize::from(page)] = EFFECT_SUPPORTED.into();
    }
    data.as_bytes().to_vec()
}

/// Page 01h, the latest error first.
fn errors(controller: &Controller) -> Vec<u8> {
    let mut data = Vec::with_capacity(ERROR_ENTRIES_MAX * size_of::<ErrorEntry>());
    for error in &controller.errors {
        data.extend_from_slice(error.as_bytes());
    }
    data.resize(ERROR_ENTRIES_MAX * size_of::<ErrorEntry>(), 0);
    data
}

/// Page 02h. Wear is that of the drive's whole life; reads and writes are counted since the service began, for hosts that
/// see all namespaces.
fn health(view: View<'_>, controller: &Controller) -> HealthPage {
    let (health, metrics) = (view.subsystem.health(), &view.subsystem.metrics);
    let units = |bytes: u64| u128::from(bytes.div_ceil(HEALTH_UNIT_BYTES)).into();
    let sum = |kinds: &[CommandKind]| u128::from(kinds.iter().map(|&kind| metrics.succeeded(kind)).sum::<u64>()).into();
    let used_percent = health.firmware.used_percent();
    let mut page = HealthPage::zeroed();
    let hot = if controller.is_too_hot() { WARNING_TEMPERATURE } else { 0 };
    let failed = if health.has_failed { WARNING_RELIABILITY } else { 0 };
    page.critical_warning = hot | failed;
    page.temperature_k = TEMPERATURE_K.into();
    page.spare_percent = if health.has_failed { 0 } else { 100 };
    page.spare_threshold_percent = 10;
    page.used_percent = used_percent.min(255) as u8;
    if view.is_whole() {
        page.units_read = units(metrics.bytes_out.get());
        page.units_written = units(metrics.bytes_in.get());
        page.reads = sum(&[CommandKind::Retrieve, CommandKind::List, CommandKind::Exist]);
        page.writes = sum(&[CommandKind::Store, CommandKind::Delete]);
    }
    page.power_cycles = 1.into();
    page.error_entries = u128::from(controller.error_count).into();
    page
}

/// Page C0h. A host that does not see all namespaces gets the sums of those that it sees, and zeros where a figure tells
/// of others.
fn statistics(view: View<'_>) -> Result<StatisticsPage, Status> {
    if view.is_whole() {
        return Ok(whole_statistics(view.subsystem));
    }
    let mut page = StatisticsPage::new();
    let seen: Utilization = view.namespaces()?.iter().fold(Utilization::default(), |sum, info| {
        let Utilization { pairs, pair_bytes, record_bytes, .. } = info.utilization;
        sum.plus(&Utilization { pairs, pair_bytes, record_bytes, ..Utilization::default() })
    });
    page.pairs = seen.pairs.into();
    page.pair_bytes = seen.pair_bytes.into();
    page.live_bytes = seen.record_bytes.into();
    view.subsystem.with_drive(|drive| {
        let firmware = drive.firmware_stats();
        page.capacity_bytes = drive.utilization().capacity_bytes.into();
        page.flash_bytes = firmware.flash_bytes.into();
        page.page_bytes = firmware.page_bytes.into();
        write_text(&mut page.design, drive.first().design().name);
    });
    Ok(page)
}

/// Page C0h of the whole drive. The fields of a drive that has failed are zeros.
fn whole_statistics(subsystem: &Subsystem) -> StatisticsPage {
    let metrics = &subsystem.metrics;
    let sum = |kinds: &[CommandKind]| kinds.iter().map(|&kind| metrics.succeeded(kind)).sum::<u64>().into();
    let processor = clock_gettime(ClockId::ProcessCPUTime);
    let mut page = StatisticsPage::new();
    page.stored_bytes = metrics.bytes_in.get().into();
    page.retrieved_bytes = metrics.bytes_out.get().into();
    page.changes = sum(&[CommandKind::Store, CommandKind::Delete]);
    page.lookups = sum(&[CommandKind::Retrieve, CommandKind::List, CommandKind::Exist]);
    page.processor_ns = (processor.tv_sec as u64 * 1_000_000_000 + processor.tv_nsec as u64).into();
    subsystem.with_drive(|drive| {
        let (utilization, firmware) = (drive.utilization(), drive.firmware_stats());
        page.pairs = utilization.pairs.into();
        page.pair_bytes = utilization.pair_bytes.into();
        page.live_bytes = utilization.live_bytes.into();
        page.capacity_bytes = utilization.capacity_bytes.into();
        page.flash_bytes = firmware.flash_bytes.into();
        page.dram_bytes = firmware.dram_bytes.into();
        page.dram_bytes_max = firmware.dram_bytes_max.into();
        page.page_bytes = firmware.page_bytes.into();
        page.pages_read = firmware.pages_read.into();
        page.pages_programmed = firmware.pages_programmed.into();
        page.pairs_moved = firmware.pairs_moved.into();
        page.blocks = firmware.blocks.into();
        page.erases = firmware.erases.into();
        page.erases_max = firmware.erases_max.into();
        write_text(&mut page.design, drive.first().design().name);
    });
    page
}

fn effects(command_set: u8) -> CommandEffectsPage {
    let mut data = CommandEffectsPage::zeroed();
    for opcode in [
        admin::opcode::GET_LOG_PAGE,
        admin::opcode::IDENTIFY,
        admin::opcode::ABORT,
        admin::opcode::SET_FEATURES,
        admin::opcode::GET_FEATURES,
        admin::opcode::ASYNCHRONOUS_EVENT_REQUEST,
        admin::opcode::KEEP_ALIVE,
        named::opcode::CREATE,
        named::opcode::DELETE,
        named::opcode::CACHE,
        FABRICS_OPCODE,
    ] {
        data.admin[usize::from(opcode)] = EFFECT_SUPPORTED.into();
    }
    data.admin[usize::from(NAMESPACE_ATTACHMENT)] = (EFFECT_SUPPORTED | EFFECT_INVENTORY).into();
    if command_set == COMMAND_SET_KEY_VALUE {
        let changes = EFFECT_SUPPORTED | EFFECT_CONTENT;
        for opcode in extended::opcode::ALL {
            let is_change = matches!(opcode, extended::opcode::STORE | extended::opcode::DELETE);
            data.io[usize::from(opcode)] = if is_change { changes } else { EFFECT_SUPPORTED }.into();
        }
        for (opcode, effect) in [
            (kv::opcode::FLUSH, EFFECT_SUPPORTED),
            (kv::opcode::STORE, changes),
            (kv::opcode::RETRIEVE, EFFECT_SUPPORTED),
            (kv::opcode::LIST, EFFECT_SUPPORTED),
            (kv::opcode::DELETE, changes),
            (kv::opcode::EXIST, EFFECT_SUPPORTED),
        ] {
            data.io[usize::from(opcode)] = effect.into();
        }
    }
    data
}
