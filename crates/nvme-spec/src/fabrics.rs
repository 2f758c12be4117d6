//! Fabrics commands and the properties of a controller.

use crate::SubmissionEntry;
use crate::command::FLAGS_SGL;
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes, Unaligned};

/// The opcode of all fabrics commands.
pub const FABRICS_OPCODE: u8 = 0x7f;

/// SUBNQN of every discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// Length of the longest NQN, without the terminating zero.
pub const NQN_BYTES_MAX: usize = 223;

/// CNTLID of a Connect that accepts any controller (dynamic controller model).
pub const CONTROLLER_ANY: u16 = 0xffff;

const PROPERTY_SET: u8 = 0x00;
const CONNECT: u8 = 0x01;
const PROPERTY_GET: u8 = 0x04;
const AUTHENTICATION_SEND: u8 = 0x05;
const AUTHENTICATION_RECEIVE: u8 = 0x06;
const DISCONNECT: u8 = 0x08;

/// AUTHREQ in the result of a Connect: the queue answers authentication commands alone until its host has proved who it
/// is (ATR, ASCR).
pub const AUTHENTICATION_REQUIRED: u64 = 1 << 17 | 1 << 18;
/// ATR alone: without a secure channel.
pub const AUTHENTICATION_IN_BAND: u64 = 1 << 17;

/// A fabrics command (Base Specification, "Fabrics Command Set").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricsCommand {
    /// Creates a queue. Its data is [`ConnectData`].
    Connect(Connect),
    /// Reads a controller property.
    PropertyGet {
        /// OFST, of [`property`].
        offset: u32,
        /// ATTRIB: 8 bytes, not 4.
        is_wide: bool,
    },
    /// Writes a controller property.
    PropertySet {
        /// OFST, of [`property`].
        offset: u32,
        /// ATTRIB: 8 bytes, not 4.
        is_wide: bool,
        /// VALUE.
        value: u64,
    },
    /// Deletes an I/O queue.
    Disconnect {
        /// RECFMT: 0.
        format: u16,
    },
    /// Brings a message of an authentication to the controller.
    AuthenticationSend(Security),
    /// Gets the next message of an authentication.
    AuthenticationReceive(Security),
    /// A command with another type.
    Other {
        /// FCTYPE.
        kind: u8,
    },
}

/// The fields of an Authentication Send or Receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Security {
    /// SECP: E9h for NVMe.
    pub protocol: u8,
    /// SPSP0 in the low byte, SPSP1 in the high one: 1 in both for authentication.
    pub specific: u16,
    /// TL or AL: bytes of the message, or of the host's buffer for it.
    pub length_bytes: u32,
}

impl Security {
    /// A message of DH-HMAC-CHAP.
    #[must_use]
    pub fn authentication(length_bytes: u32) -> Self {
        Security { protocol: 0xe9, specific: 0x0101, length_bytes }
    }
}

/// The fields of a Connect command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connect {
    /// RECFMT: 0.
    pub format: u16,
    /// QID: 0 for the admin queue.
    pub queue_id: u16,
    /// SQSIZE: entries of the queue, less one.
    pub queue_size: u16,
    /// CATTR: bit 2 disables flow control by SQHD.
    pub attributes: u8,
    /// KATO; 0 for none. Admin queue only.
    pub keep_alive_ms: u32,
}

impl From<&SubmissionEntry> for FabricsCommand {
    fn from(entry: &SubmissionEntry) -> Self {
        let (dword10, dword11) = (entry.dword10.get(), entry.dword11.get());
        let is_wide = dword10 & 7 == 1;
        match entry.namespace.get() as u8 {
            CONNECT => FabricsCommand::Connect(Connect {
                format: dword10 as u16,
                queue_id: (dword10 >> 16) as u16,
                queue_size: dword11 as u16,
                attributes: (dword11 >> 16) as u8,
                keep_alive_ms: entry.dword12.get(),
            }),
            PROPERTY_GET => FabricsCommand::PropertyGet { offset: dword11, is_wide },
            PROPERTY_SET => FabricsCommand::PropertySet {
                offset: dword11,
                is_wide,
                value: u64::from(entry.dword12.get()) | u64::from(entry.dword13.get()) << 32,
            },
            DISCONNECT => FabricsCommand::Disconnect { format: dword10 as u16 },
            kind @ (AUTHENTICATION_SEND | AUTHENTICATION_RECEIVE) => {
                let (protocol, specific) = ((dword10 >> 24) as u8, (dword10 >> 8) as u16);
                let security = Security { protocol, specific, length_bytes: dword11 };
                match kind {
                    AUTHENTICATION_SEND => FabricsCommand::AuthenticationSend(security),
                    _ => FabricsCommand::AuthenticationReceive(security),
                }
            }
            kind => FabricsCommand::Other { kind },
        }
    }
}

impl From<FabricsCommand> for SubmissionEntry {
    fn from(command: FabricsCommand) -> Self {
        let new = |kind: u8| SubmissionEntry::new(FABRICS_OPCODE, kind.into());
        match command {
            FabricsCommand::Connect(connect) => SubmissionEntry {
                dword10: (u32::from(connect.format) | u32::from(connect.queue_id) << 16).into(),
                dword11: (u32::from(connect.queue_size) | u32::from(connect.attributes) << 16).into(),
                dword12: connect.keep_alive_ms.into(),
                ..new(CONNECT)
            },
            FabricsCommand::PropertyGet { offset, is_wide } => SubmissionEntry {
                dword10: u32::from(is_wide).into(),
                dword11: offset.into(),
                flags: FLAGS_SGL,
                ..new(PROPERTY_GET)
            },
            FabricsCommand::PropertySet { offset, is_wide, value } => SubmissionEntry {
                dword10: u32::from(is_wide).into(),
                dword11: offset.into(),
                dword12: (value as u32).into(),
                dword13: ((value >> 32) as u32).into(),
                ..new(PROPERTY_SET)
            },
            FabricsCommand::Disconnect { format } => {
                SubmissionEntry { dword10: u32::from(format).into(), ..new(DISCONNECT) }
            }
            FabricsCommand::AuthenticationSend(security) => secured(new(AUTHENTICATION_SEND), security),
            FabricsCommand::AuthenticationReceive(security) => secured(new(AUTHENTICATION_RECEIVE), security),
            FabricsCommand::Other { kind } => new(kind),
        }
    }
}

fn secured(entry: SubmissionEntry, security: Security) -> SubmissionEntry {
    let Security { protocol, specific, length_bytes } = security;
    SubmissionEntry {
        dword10: (u32::from(specific) << 8 | u32::from(protocol) << 24).into(),
        dword11: length_bytes.into(),
        ..entry
    }
}

/// The data of a Connect (1024 B).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ConnectData {
    /// HOSTID, a UUID.
    pub host_id: [u8; 16],
    /// CNTLID: [`CONTROLLER_ANY`] for an admin queue, the admin queue's controller for an I/O queue.
    pub controller: U16,
    /// Must be zeros.
    pub reserved: [u8; 238],
    /// SUBNQN, terminated by zeros.
    pub subsystem_nqn: [u8; 256],
    /// HOSTNQN, terminated by zeros.
    pub host_nqn: [u8; 256],
    /// Must be zeros.
    pub reserved_end: [u8; 256],
}

/// Length of [`ConnectData`].
pub const CONNECT_DATA_BYTES: usize = 1024;

const _: () = assert!(size_of::<ConnectData>() == CONNECT_DATA_BYTES);

impl ConnectData {
    /// The data that requests a controller of a subsystem. Names of more than [`NQN_BYTES_MAX`] are cut off.
    #[must_use]
    pub fn new(host_id: [u8; 16], controller: u16, subsystem_nqn: &str, host_nqn: &str) -> Self {
        let mut data = ConnectData {
            host_id,
            controller: controller.into(),
            reserved: [0; 238],
            subsystem_nqn: [0; 256],
            host_nqn: [0; 256],
            reserved_end: [0; 256],
        };
        crate::write_text(&mut data.subsystem_nqn[..=NQN_BYTES_MAX], subsystem_nqn);
        crate::write_text(&mut data.host_nqn[..=NQN_BYTES_MAX], host_nqn);
        data
    }

    /// Views `bytes` as Connect data; `None` unless there are 1024.
    #[must_use]
    pub fn from_data(bytes: &[u8]) -> Option<&ConnectData> {
        ConnectData::try_ref_from_bytes(bytes).ok()
    }
}

/// Offsets of properties (Base Specification, "Controller Properties").
pub mod property {
    /// CAP, 8 B.
    pub const CAPABILITIES: u32 = 0x00;
    /// VS, 4 B.
    pub const VERSION: u32 = 0x08;
    /// CC, 4 B.
    pub const CONFIGURATION: u32 = 0x14;
    /// CSTS, 4 B.
    pub const STATUS: u32 = 0x1c;
    /// NSSR, 4 B.
    pub const SUBSYSTEM_RESET: u32 = 0x20;
    /// CRTO, 4 B.
    pub const READY_TIMEOUTS: u32 = 0x68;
}

/// VS of version 2.0.
pub const VERSION_2_0: u32 = 0x0002_0000;

/// CAP: controller capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// MQES from `queue_entries`, TO from `ready_ms`, CQR, CSS bit 6 (I/O command sets by Identify); MPSMIN and DSTRD
    /// are 0.
    #[must_use]
    pub fn new(queue_entries: u16, ready_ms: u64) -> Self {
        let (contiguous, timeout, command_sets) = (1 << 16, ready_ms.div_ceil(500).min(255) << 24, 1 << 43);
        Capabilities(u64::from(queue_entries.saturating_sub(1)) | contiguous | timeout | command_sets)
    }

    /// MQES, as a number of entries.
    #[must_use]
    pub fn queue_entries_max(self) -> u32 {
        u32::from(self.0 as u16) + 1
    }

    /// CSS bit 6: there may be other command sets than NVM.
    #[must_use]
    pub fn has_command_sets(self) -> bool {
        self.0 >> 43 & 1 == 1
    }
}

/// CC: controller configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Configuration(pub u32);

impl Configuration {
    /// EN, CSS 110b (all supported command sets), queue entries of 64 and 16 bytes.
    pub const KEY_VALUE: Configuration = Configuration(0x0046_0061);

    /// EN: the controller is enabled.
    #[must_use]
    pub fn is_enabled(self) -> bool {
        self.0 & 1 == 1
    }

    /// CSS: 000b the NVM command set, 110b all that are supported, 111b the admin command set only.
    #[must_use]
    pub fn command_sets(self) -> u32 {
        self.0 >> 4 & 7
    }

    /// SHN: 01b requests a normal shutdown, 10b an abrupt one.
    #[must_use]
    pub fn shutdown(self) -> u32 {
        self.0 >> 14 & 3
    }

    /// Sets SHN to 01b.
    #[must_use]
    pub fn with_shutdown(self) -> Self {
        Configuration(self.0 & !(3 << 14) | 1 << 14)
    }
}

/// CSTS: controller status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerStatus(pub u32);

impl ControllerStatus {
    /// RDY in bit 0, CFS in bit 1, SHST in bits 3:2 (10b when a shutdown is complete).
    #[must_use]
    pub fn new(is_ready: bool, is_failed: bool, is_shut_down: bool) -> Self {
        ControllerStatus(u32::from(is_ready) | u32::from(is_failed) << 1 | u32::from(is_shut_down) << 3)
    }

    /// RDY: commands are processed.
    #[must_use]
    pub fn is_ready(self) -> bool {
        self.0 & 1 == 1
    }

    /// CFS: the controller has failed.
    #[must_use]
    pub fn is_failed(self) -> bool {
        self.0 >> 1 & 1 == 1
    }

    /// SHST is 10b: the shutdown is complete.
    #[must_use]
    pub fn is_shut_down(self) -> bool {
        self.0 >> 2 & 3 == 2
    }
}
