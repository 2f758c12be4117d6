//! Log pages (Base Specification, "Get Log Page command").

use crate::structure::{layout, structures};
use alloc::vec::Vec;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes, Unaligned};

/// LID: identifiers of log pages.
pub mod page {
    /// Supported log pages.
    pub const SUPPORTED: u8 = 0x00;
    /// Error information.
    pub const ERROR: u8 = 0x01;
    /// SMART and health.
    pub const HEALTH: u8 = 0x02;
    /// Firmware slots.
    pub const FIRMWARE: u8 = 0x03;
    /// Changed namespaces.
    pub const CHANGED_NAMESPACES: u8 = 0x04;
    /// Commands supported and their effects.
    pub const COMMAND_EFFECTS: u8 = 0x05;
    /// Discovery.
    pub const DISCOVERY: u8 = 0x70;
    /// How full the drive is and what it did (see [`statistics`](crate::statistics)): vendor specific.
    pub const STATISTICS: u8 = 0xc0;
    /// Vendor specific: see [`named`](crate::named).
    pub const NAMESPACES: u8 = 0xc1;
    /// Vendor specific: see [`named`](crate::named).
    pub const CACHES: u8 = 0xc2;
}

/// An entry of the error log (64 B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ErrorEntry {
    /// Counts all errors; 0 in an entry that holds none.
    pub error_count: U64,
    /// SQID; FFFFh for none.
    pub queue_id: U16,
    /// CID; FFFFh for none.
    pub command_id: U16,
    /// The status field of the completion.
    pub status: U16,
    /// Parameter Error Location: the byte in the command; FFFFh for none.
    pub parameter: U16,
    /// LBA, of the NVM command set.
    pub block: U64,
    /// NSID.
    pub namespace: U32,
    /// LID of a vendor's log page that says more; 0 for none.
    pub vendor_page: u8,
    /// TRTYPE.
    pub transport: u8,
    reserved_30: [u8; 2],
    /// Command specific information.
    pub specific: U64,
    reserved_40: [u8; 24],
}

/// SMART and health (512 B).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct HealthPage {
    /// Bit 0 spare below its threshold, bit 2 reliability degraded, bit 3 read only.
    pub critical_warning: u8,
    /// Composite temperature, in kelvins.
    pub temperature_k: U16,
    /// Available spare, in per cent.
    pub spare_percent: u8,
    /// The spare below which a warning begins, in per cent.
    pub spare_threshold_percent: u8,
    /// Percentage used of the drive's life; may exceed 100.
    pub used_percent: u8,
    reserved_6: [u8; 26],
    /// Units of 512 000 B that hosts read, rounded up.
    pub units_read: U128,
    /// Units of 512 000 B that hosts wrote, rounded up.
    pub units_written: U128,
    /// Host read commands.
    pub reads: U128,
    /// Host write commands.
    pub writes: U128,
    /// Minutes that the controller was busy.
    pub busy_minutes: U128,
    /// Times that it was switched on.
    pub power_cycles: U128,
    /// Hours that it was on.
    pub power_on_hours: U128,
    /// Power cycles without a shutdown.
    pub unsafe_shutdowns: U128,
    /// Unrecovered data integrity errors.
    pub media_errors: U128,
    /// Entries of the error log over its life.
    pub error_entries: U128,
    /// Minutes above the warning temperature.
    pub warning_minutes: U32,
    /// Minutes above the critical temperature.
    pub critical_minutes: U32,
    /// Temperature sensors 1 to 8, in kelvins; 0 for none.
    pub sensors_k: [U16; 8],
    reserved_216: [u8; 296],
}

/// Bytes of one of the units of [`HealthPage`].
pub const HEALTH_UNIT_BYTES: u64 = 512_000;

/// Firmware slots (512 B).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct FirmwarePage {
    /// AFI: the active slot in bits 2:0.
    pub active: u8,
    reserved_1: [u8; 7],
    /// FRS: the revisions in the slots, ASCII padded with spaces.
    pub slots: [[u8; 8]; 7],
    reserved_64: [u8; 448],
}

/// Commands supported and their effects (4096 B). Bit 0 of an entry: supported; bit 1: changes logical content; bit 2:
/// changes the capabilities of namespaces; bit 3: changes the inventory of namespaces.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CommandEffectsPage {
    /// Admin commands, by opcode.
    pub admin: [U32; 256],
    /// I/O commands, by opcode.
    pub io: [U32; 256],
    reserved_2048: [u8; 2048],
}

/// CSUPP of [`CommandEffectsPage`]: the command is supported.
pub const EFFECT_SUPPORTED: u32 = 1;
/// LBCC of [`CommandEffectsPage`]: the command changes stored data.
pub const EFFECT_CONTENT: u32 = 1 << 1;
/// NIC of [`CommandEffectsPage`]: the command changes which namespaces there are.
pub const EFFECT_INVENTORY: u32 = 1 << 3;

/// Supported log pages (1024 B): bit 0 of an entry, supported.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SupportedPages {
    /// One entry for each LID.
    pub pages: [U32; 256],
}

/// Header of the discovery log page (1024 B). [`DiscoveryEntry`]s follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DiscoveryHeader {
    /// GENCTR: changes with the page.
    pub generation: U64,
    /// NUMREC: number of entries.
    pub entries: U64,
    /// RECFMT: 0.
    pub format: U16,
    reserved_18: [u8; 1006],
}

/// An entry of the discovery log page (1024 B): a subsystem, and where it is reached.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DiscoveryEntry {
    /// TRTYPE: [`TRANSPORT_TCP`].
    pub transport: u8,
    /// ADRFAM: [`FAMILY_IPV4`] or [`FAMILY_IPV6`].
    pub family: u8,
    /// SUBTYPE: [`SUBSYSTEM_NVM`].
    pub subsystem: u8,
    /// TREQ: a secure channel is [`SECURITY_REQUIRED`] or [`SECURITY_NOT_REQUIRED`]; 0 for not specified.
    pub requirements: u8,
    /// PORTID.
    pub port: U16,
    /// CNTLID: FFFFh, any.
    pub controller: U16,
    /// ASQSZ: the most entries of an admin queue.
    pub admin_queue_entries: U16,
    /// EFLAGS.
    pub flags: U16,
    reserved_12: [u8; 20],
    /// TRSVCID: the port, as ASCII.
    pub service: [u8; 32],
    reserved_64: [u8; 192],
    /// SUBNQN, terminated by zeros.
    pub subsystem_nqn: [u8; 256],
    /// TRADDR: the address, as ASCII.
    pub address: [u8; 256],
    /// TSAS: byte 0 is the security type (SECTYPE), 0 for none, [`SECURITY_TLS13`].
    pub specific: [u8; 256],
}

/// TRTYPE of TCP.
pub const TRANSPORT_TCP: u8 = 3;
/// ADRFAM of IPv4.
pub const FAMILY_IPV4: u8 = 1;
/// ADRFAM of IPv6.
pub const FAMILY_IPV6: u8 = 2;
/// SUBTYPE of an NVM subsystem.
pub const SUBSYSTEM_NVM: u8 = 2;

/// TREQ: a secure channel is required.
pub const SECURITY_REQUIRED: u8 = 1;
/// TREQ: a secure channel is not required.
pub const SECURITY_NOT_REQUIRED: u8 = 2;
/// SECTYPE of TLS 1.3.
pub const SECURITY_TLS13: u8 = 2;

/// Length of [`DiscoveryHeader`] and of [`DiscoveryEntry`].
pub const DISCOVERY_RECORD_BYTES: usize = 1024;

layout!(ErrorEntry: 64);
layout!(HealthPage: 512, warning_minutes at 192);
layout!(FirmwarePage: 512);
layout!(CommandEffectsPage: 4096);
layout!(SupportedPages: 1024);
layout!(DiscoveryHeader: DISCOVERY_RECORD_BYTES);
layout!(DiscoveryEntry: DISCOVERY_RECORD_BYTES);

structures! {
    |bytes| TryFromBytes::try_ref_from_prefix(bytes).ok().map(|(page, _)| page);
    ErrorEntry, HealthPage, FirmwarePage, CommandEffectsPage, SupportedPages, DiscoveryHeader, DiscoveryEntry
}

/// The texts of a [`DiscoveryEntry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discovered<'a> {
    /// SUBNQN.
    pub subsystem_nqn: &'a str,
    /// TRADDR.
    pub address: &'a str,
    /// TRSVCID: the port.
    pub service: &'a str,
    /// TREQ and SECTYPE: TLS 1.3 is required.
    pub is_secured: bool,
}

/// A discovery log page with those subsystems, all reached over TCP. `generation` (GENCTR) differs where the page does.
#[must_use]
pub fn discovery_page(found: &[Discovered<'_>], generation: u64, admin_queue_entries: u16, is_ipv6: bool) -> Vec<u8> {
    let entries = found.len() as u64;
    let header =
        DiscoveryHeader { generation: generation.into(), entries: entries.into(), ..DiscoveryHeader::zeroed() };
    let mut page = Vec::from(header.as_bytes());
    for one in found {
        let mut entry = DiscoveryEntry {
            transport: TRANSPORT_TCP,
            family: if is_ipv6 { FAMILY_IPV6 } else { FAMILY_IPV4 },
            subsystem: SUBSYSTEM_NVM,
            port: 1.into(),
            controller: crate::fabrics::CONTROLLER_ANY.into(),
            admin_queue_entries: admin_queue_entries.into(),
            requirements: if one.is_secured { SECURITY_REQUIRED } else { SECURITY_NOT_REQUIRED },
            ..DiscoveryEntry::zeroed()
        };
        entry.specific[0] = if one.is_secured { SECURITY_TLS13 } else { 0 };
        crate::write_padded(&mut entry.service, one.service);
        crate::write_text(&mut entry.subsystem_nqn, one.subsystem_nqn);
        crate::write_padded(&mut entry.address, one.address);
        page.extend_from_slice(entry.as_bytes());
    }
    page
}

/// The NVM subsystems of a discovery log page, without entries that are no UTF-8.
pub fn read_discovery_page(page: &[u8]) -> impl Iterator<Item = Discovered<'_>> {
    let entries = DiscoveryHeader::from_data(page).map_or(0, |header| header.entries.get());
    let records = page.chunks_exact(DISCOVERY_RECORD_BYTES).skip(1);
    records.take(usize::try_from(entries).unwrap_or(usize::MAX)).filter_map(|record| {
        let entry = DiscoveryEntry::from_data(record).filter(|entry| entry.subsystem == SUBSYSTEM_NVM)?;
        Some(Discovered {
            subsystem_nqn: crate::read_text(&entry.subsystem_nqn)?,
            address: crate::read_text(&entry.address)?,
            service: crate::read_text(&entry.service)?,
            is_secured: entry.requirements & 3 == SECURITY_REQUIRED,
        })
    })
}
