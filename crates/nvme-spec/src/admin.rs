//! Admin commands.

use crate::attachment::NAMESPACE_ATTACHMENT;
use crate::{SubmissionEntry, named};

/// Opcodes of admin commands (Base Specification, "Admin Command Set").
#[expect(missing_docs, reason = "the names are those of the specification")]
pub mod opcode {
    pub const GET_LOG_PAGE: u8 = 0x02;
    pub const IDENTIFY: u8 = 0x06;
    pub const ABORT: u8 = 0x08;
    pub const SET_FEATURES: u8 = 0x09;
    pub const GET_FEATURES: u8 = 0x0a;
    pub const ASYNCHRONOUS_EVENT_REQUEST: u8 = 0x0c;
    pub const KEEP_ALIVE: u8 = 0x18;
}

/// An admin command (Base Specification, "Admin Command Set").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// LID and the part of the page.
    GetLogPage(GetLogPage),
    /// CNS and what it is about.
    Identify(Identify),
    /// Requests the end of an outstanding command.
    Abort {
        /// SQID.
        queue_id: u16,
        /// CID.
        command_id: u16,
    },
    /// Sets the current value of a feature.
    SetFeatures {
        /// FID.
        feature: u8,
        /// SV: the value outlives a reset.
        save: bool,
        /// Dword 11, of which each feature has its own layout.
        value: u32,
    },
    /// Reads an attribute of a feature.
    GetFeatures {
        /// FID.
        feature: u8,
        /// SEL: 0 current, 1 default, 2 saved, 3 supported capabilities.
        select: u8,
        /// Dword 11, of which each feature has its own layout.
        value: u32,
    },
    /// Completes when an event happens.
    AsynchronousEventRequest,
    /// Restarts the keep-alive timer.
    KeepAlive,
    /// Attaches a namespace to the controllers of a list, or detaches it (see [`attachment`](crate::attachment)).
    NamespaceAttachment {
        /// SEL.
        select: u8,
    },
    /// Makes a namespace, which the data describes (see [`named`](crate::named)).
    CreateNamespace,
    /// Deletes a namespace, whose name is the data.
    DeleteNamespace,
    /// Makes a namespace the cache that the data describes.
    SetCache,
    /// A command with another opcode.
    Other {
        /// Byte 0 of the entry.
        opcode: u8,
    },
}

/// The fields of a Get Log Page command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GetLogPage {
    /// LID (see [`log_page`](crate::log_page)).
    pub page: u8,
    /// LSP.
    pub specific: u8,
    /// RAE: the event of the page stays masked.
    pub retain_event: bool,
    /// NUMD, as bytes: a multiple of 4, at least 4.
    pub length_bytes: u64,
    /// LPO, in bytes.
    pub offset_bytes: u64,
    /// CSI.
    pub command_set: u8,
}

/// The fields of an Identify command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identify {
    /// CNS (see [`identify::cns`](crate::identify::cns)).
    pub cns: u8,
    /// CNTID.
    pub controller: u16,
    /// CNS specific identifier.
    pub specific: u16,
    /// CSI (see [`identify`](crate::identify)).
    pub command_set: u8,
}

impl From<&SubmissionEntry> for AdminCommand {
    fn from(entry: &SubmissionEntry) -> Self {
        let (dword10, dword11) = (entry.dword10.get(), entry.dword11.get());
        let (dword12, dword13, dword14) = (entry.dword12.get(), entry.dword13.get(), entry.dword14.get());
        match entry.opcode {
            opcode::GET_LOG_PAGE => AdminCommand::GetLogPage(GetLogPage {
                page: dword10 as u8,
                specific: (dword10 >> 8) as u8 & 0x7f,
                retain_event: dword10 >> 15 & 1 == 1,
                length_bytes: (u64::from(dword10 >> 16 | dword11 << 16) + 1) * 4,
                offset_bytes: u64::from(dword12) | u64::from(dword13) << 32,
                command_set: (dword14 >> 24) as u8,
            }),
            opcode::IDENTIFY => AdminCommand::Identify(Identify {
                cns: dword10 as u8,
                controller: (dword10 >> 16) as u16,
                specific: dword11 as u16,
                command_set: (dword11 >> 24) as u8,
            }),
            opcode::ABORT => AdminCommand::Abort { queue_id: dword10 as u16, command_id: (dword10 >> 16) as u16 },
            opcode::SET_FEATURES => {
                AdminCommand::SetFeatures { feature: dword10 as u8, save: dword10 >> 31 == 1, value: dword11 }
            }
            opcode::GET_FEATURES => {
                AdminCommand::GetFeatures { feature: dword10 as u8, select: (dword10 >> 8) as u8 & 7, value: dword11 }
            }
            opcode::ASYNCHRONOUS_EVENT_REQUEST => AdminCommand::AsynchronousEventRequest,
            opcode::KEEP_ALIVE => AdminCommand::KeepAlive,
            NAMESPACE_ATTACHMENT => AdminCommand::NamespaceAttachment { select: dword10 as u8 & 0xf },
            named::opcode::CREATE => AdminCommand::CreateNamespace,
            named::opcode::DELETE => AdminCommand::DeleteNamespace,
            named::opcode::CACHE => AdminCommand::SetCache,
            opcode => AdminCommand::Other { opcode },
        }
    }
}

impl AdminCommand {
    /// The submission queue entry, for `namespace` (0 for none), without a data pointer.
    #[must_use]
    pub fn entry(&self, namespace: u32) -> SubmissionEntry {
        let new = |opcode: u8| SubmissionEntry::new(opcode, namespace);
        match *self {
            AdminCommand::GetLogPage(GetLogPage {
                page,
                specific,
                retain_event,
                length_bytes,
                offset_bytes,
                command_set,
            }) => {
                let dwords = (length_bytes / 4).saturating_sub(1) as u32;
                let low = u32::from(page) | u32::from(specific & 0x7f) << 8 | u32::from(retain_event) << 15;
                SubmissionEntry {
                    dword10: (low | dwords << 16).into(),
                    dword11: (dwords >> 16).into(),
                    dword12: (offset_bytes as u32).into(),
                    dword13: ((offset_bytes >> 32) as u32).into(),
                    dword14: (u32::from(command_set) << 24).into(),
                    ..new(opcode::GET_LOG_PAGE)
                }
            }
            AdminCommand::Identify(Identify { cns, controller, specific, command_set }) => SubmissionEntry {
                dword10: (u32::from(cns) | u32::from(controller) << 16).into(),
                dword11: (u32::from(specific) | u32::from(command_set) << 24).into(),
                ..new(opcode::IDENTIFY)
            },
            AdminCommand::Abort { queue_id, command_id } => SubmissionEntry {
                dword10: (u32::from(queue_id) | u32::from(command_id) << 16).into(),
                ..new(opcode::ABORT)
            },
            AdminCommand::SetFeatures { feature, save, value } => SubmissionEntry {
                dword10: (u32::from(feature) | u32::from(save) << 31).into(),
                dword11: value.into(),
                ..new(opcode::SET_FEATURES)
            },
            AdminCommand::GetFeatures { feature, select, value } => SubmissionEntry {
                dword10: (u32::from(feature) | u32::from(select & 7) << 8).into(),
                dword11: value.into(),
                ..new(opcode::GET_FEATURES)
            },
            AdminCommand::AsynchronousEventRequest => new(opcode::ASYNCHRONOUS_EVENT_REQUEST),
            AdminCommand::KeepAlive => new(opcode::KEEP_ALIVE),
            AdminCommand::NamespaceAttachment { select } => {
                SubmissionEntry { dword10: u32::from(select & 0xf).into(), ..new(NAMESPACE_ATTACHMENT) }
            }
            AdminCommand::CreateNamespace => new(named::opcode::CREATE),
            AdminCommand::DeleteNamespace => new(named::opcode::DELETE),
            AdminCommand::SetCache => new(named::opcode::CACHE),
            AdminCommand::Other { opcode } => new(opcode),
        }
    }
}
