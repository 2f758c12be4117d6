//! Log pages.

use alloc::vec::Vec;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, TryFromBytes, Unaligned};

/// LID: which page is wanted.
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
}

/// An entry of the error log (64 B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ErrorEntry {
    /// Counts all errors; 0 in an entry that holds none.
    pub error_count: U64,
    /// The queue.
    pub queue_id: U16,
    /// The command.
    pub command_id: U16,
    /// As in its completion.
    pub status: U16,
    /// Where in the command it was; FFFFh where that is not said.
    pub parameter: U16,
    /// LBA.
    pub block: U64,
    /// The namespace.
    pub namespace: U32,
    /// Vendor's log page.
    pub vendor_page: u8,
    /// TRTYPE.
    pub transport: u8,
    reserved_30: [u8; 2],
    /// What the command says more.
    pub specific: U64,
    reserved_40: [u8; 24],
}

/// SMART and health (512 B).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct HealthPage {
    /// Bit 0 spare below its threshold, bit 2 reliability degraded, bit 3 read only.
    pub critical_warning: u8,
    /// Composite temperature.
    pub temperature_k: U16,
    /// Per cent of the spare that are left.
    pub spare_percent: u8,
    /// Per cent of the spare that a warning begins below.
    pub spare_threshold_percent: u8,
    /// Per cent of the life that are used; may be above 100.
    pub used_percent: u8,
    reserved_6: [u8; 26],
    /// Units of 512 000 B that hosts read, rounded up.
    pub units_read: U128,
    /// Units of 512 000 B that hosts wrote, rounded up.
    pub units_written: U128,
    /// Read commands.
    pub reads: U128,
    /// Write commands.
    pub writes: U128,
    /// Minutes that the controller was busy.
    pub busy_minutes: U128,
    /// How often it was switched on.
    pub power_cycles: U128,
    /// Hours that it was on.
    pub power_on_hours: U128,
    /// Ends that were no shutdowns.
    pub unsafe_shutdowns: U128,
    /// Data that could not be recovered.
    pub media_errors: U128,
    /// Entries that the error log ever had.
    pub error_entries: U128,
    /// Minutes above the warning temperature.
    pub warning_minutes: U32,
    /// Minutes above the critical temperature.
    pub critical_minutes: U32,
    /// Sensors.
    pub sensors_k: [U16; 8],
    reserved_216: [u8; 296],
}

/// Bytes of a unit of [`HealthPage`].
pub const HEALTH_UNIT_BYTES: u64 = 512_000;

/// Firmware slots (512 B).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct FirmwarePage {
    /// AFI: the active slot in bits 2:0.
    pub active: u8,
    reserved_1: [u8; 7],
    /// FRS: what is in the slots, ASCII with spaces behind it.
    pub slots: [[u8; 8]; 7],
    reserved_64: [u8; 448],
}

/// Commands supported and their effects (4096 B). Bit 0 of an entry: supported; bit 1: changes logical content; bit 2: changes the
/// capabilities of namespaces; bit 3: changes the inventory of namespaces.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CommandEffectsPage {
    /// By opcode.
    pub admin: [U32; 256],
    /// By opcode.
    pub io: [U32; 256],
    reserved_2048: [u8; 2048],
}

/// Bit of [`CommandEffectsPage`]: the command is there.
pub const EFFECT_SUPPORTED: u32 = 1;
/// Bit of [`CommandEffectsPage`]: it changes what is stored.
pub const EFFECT_CONTENT: u32 = 1 << 1;

/// Supported log pages (1024 B): bit 0 of an entry, supported.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SupportedPages {
    /// By LID.
    pub pages: [U32; 256],
}

/// The head of the discovery log (1024 B); [`DiscoveryEntry`]s follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DiscoveryHeader {
    /// GENCTR: changes with the log.
    pub generation: U64,
    /// NUMREC: entries.
    pub entries: U64,
    /// RECFMT: 0.
    pub format: U16,
    reserved_18: [u8; 1006],
}

/// Where a subsystem can be reached (1024 B).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DiscoveryEntry {
    /// TRTYPE: [`TRANSPORT_TCP`].
    pub transport: u8,
    /// ADRFAM: [`FAMILY_IPV4`] or [`FAMILY_IPV6`].
    pub family: u8,
    /// SUBTYPE: [`SUBSYSTEM_NVM`].
    pub subsystem: u8,
    /// TREQ: 0, a secure channel is not said anything of; 2 not required.
    pub requirements: u8,
    /// PORTID.
    pub port: U16,
    /// CNTLID: FFFFh, any.
    pub controller: U16,
    /// ASQSZ: entries of the admin queue at the most.
    pub admin_queue_entries: U16,
    /// EFLAGS.
    pub flags: U16,
    reserved_12: [u8; 20],
    /// TRSVCID: the port, as ASCII.
    pub service: [u8; 32],
    reserved_64: [u8; 192],
    /// SUBNQN, and zeros.
    pub subsystem_nqn: [u8; 256],
    /// TRADDR: the address, as ASCII.
    pub address: [u8; 256],
    /// TSAS: byte 0 the kind of security, 0 for none.
    pub specific: [u8; 256],
}

/// TRTYPE of TCP.
pub const TRANSPORT_TCP: u8 = 3;
/// ADRFAM of IPv4.
pub const FAMILY_IPV4: u8 = 1;
/// ADRFAM of IPv6.
pub const FAMILY_IPV6: u8 = 2;
/// SUBTYPE of a subsystem with namespaces.
pub const SUBSYSTEM_NVM: u8 = 2;

/// Bytes of [`DiscoveryHeader`] and of [`DiscoveryEntry`].
pub const DISCOVERY_RECORD_BYTES: usize = 1024;

const _: () = assert!(size_of::<ErrorEntry>() == 64);
const _: () = assert!(size_of::<HealthPage>() == 512);
const _: () = assert!(core::mem::offset_of!(HealthPage, warning_minutes) == 192);
const _: () = assert!(size_of::<FirmwarePage>() == 512);
const _: () = assert!(size_of::<CommandEffectsPage>() == 4096);
const _: () = assert!(size_of::<SupportedPages>() == 1024);
const _: () = assert!(size_of::<DiscoveryHeader>() == DISCOVERY_RECORD_BYTES);
const _: () = assert!(size_of::<DiscoveryEntry>() == DISCOVERY_RECORD_BYTES);

macro_rules! whole {
    ($($name:ty),*) => {$(
        impl $name {
            /// All zeros.
            #[must_use]
            pub fn zeroed() -> Self {
                FromZeros::new_zeroed()
            }

            /// The first of those bytes; none where there are too few.
            #[must_use]
            pub fn from_data(bytes: &[u8]) -> Option<&Self> {
                TryFromBytes::try_ref_from_prefix(bytes).ok().map(|(page, _)| page)
            }
        }
    )*};
}

whole!(ErrorEntry, HealthPage, FirmwarePage, CommandEffectsPage, SupportedPages, DiscoveryHeader, DiscoveryEntry);

/// Which subsystem can be reached where, as a host finds it in the discovery log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discovered<'a> {
    /// Its name.
    pub subsystem_nqn: &'a str,
    /// The address.
    pub address: &'a str,
    /// The port.
    pub service: &'a str,
}

/// The discovery log with those subsystems, reached over TCP.
#[must_use]
pub fn discovery_page(found: &[Discovered<'_>], admin_queue_entries: u16, is_ipv6: bool) -> Vec<u8> {
    let header =
        DiscoveryHeader { generation: 1.into(), entries: (found.len() as u64).into(), ..DiscoveryHeader::zeroed() };
    let mut page = Vec::from(header.as_bytes());
    for one in found {
        let mut entry = DiscoveryEntry {
            transport: TRANSPORT_TCP,
            family: if is_ipv6 { FAMILY_IPV6 } else { FAMILY_IPV4 },
            subsystem: SUBSYSTEM_NVM,
            port: 1.into(),
            controller: crate::fabrics::CONTROLLER_ANY.into(),
            admin_queue_entries: admin_queue_entries.into(),
            ..DiscoveryEntry::zeroed()
        };
        crate::write_padded(&mut entry.service, one.service);
        crate::write_text(&mut entry.subsystem_nqn, one.subsystem_nqn);
        crate::write_padded(&mut entry.address, one.address);
        page.extend_from_slice(entry.as_bytes());
    }
    page
}

/// The entries of a discovery log that say something that can be read.
pub fn read_discovery_page(page: &[u8]) -> impl Iterator<Item = Discovered<'_>> {
    let entries = DiscoveryHeader::from_data(page).map_or(0, |header| header.entries.get());
    let records = page.chunks_exact(DISCOVERY_RECORD_BYTES).skip(1);
    records.take(usize::try_from(entries).unwrap_or(usize::MAX)).filter_map(|record| {
        let entry = DiscoveryEntry::from_data(record).filter(|entry| entry.subsystem == SUBSYSTEM_NVM)?;
        Some(Discovered {
            subsystem_nqn: crate::read_text(&entry.subsystem_nqn)?,
            address: crate::read_text(&entry.address)?,
            service: crate::read_text(&entry.service)?,
        })
    })
}
