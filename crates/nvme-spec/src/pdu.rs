//! The PDUs of NVMe/TCP: what a stream of bytes between a host and a controller is made of.
//!
//! ```text
//!   common header 8 B | rest of the header | header digest 4 B? | padding? | data | data digest 4 B?
//!   type, flags, HLEN, PDO, PLEN                                            ^ PDO                    ^ PLEN
//!
//!   IcRequest  0  host        128 B          IcResponse           1  controller  128 B
//!   Command    4  host         72 B, data    Response             5  controller   24 B
//!   HostData   6  host         24 B, data    ControllerData       7  controller   24 B, data
//!   Terminate  2  host         24 B, data    ReadyToTransfer      9  controller   24 B
//!                                            Terminate            3  controller   24 B, data
//! ```
//!
//! [`Framing`] is what the two agreed on (digests, where data begins) and the most that one takes from the other. [`Pdu::decode`] looks
//! at the bytes that have come so far and says how many it needs, which PDU they are, or what is wrong with them by the transport's
//! own numbers ([`Fault`]). [`Pdu::encode`] is its inverse.
//!
//! What it does not do: know which PDU may come when.

mod decode;
mod encode;
mod layout;

pub use decode::Decoded;
pub use layout::{
    CommonHeader, DATA_HEADER_BYTES, DataHeader, IC_BYTES, IcRequest, IcResponse, R2tHeader, TERMINATION_DATA_MAX,
};

use crate::{CompletionEntry, SubmissionEntry};
use core::fmt;

/// A flag of a common header: a header digest is there.
pub const FLAG_HEADER_DIGEST: u8 = 1 << 0;
/// A flag of a common header: a data digest is there.
pub const FLAG_DATA_DIGEST: u8 = 1 << 1;
/// A flag of data: nothing comes behind it (in answer to an R2T, or to a command).
pub const FLAG_LAST: u8 = 1 << 2;
/// A flag of a controller's last data: there is no response, the command went well.
pub const FLAG_SUCCESS: u8 = 1 << 3;

/// Bytes of a digest (CRC-32C).
pub const DIGEST_BYTES: usize = 4;

/// Who sends a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The host.
    Host,
    /// The controller.
    Controller,
}

/// What both sides agreed on in the beginning, and what one takes from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Headers of commands, responses, data and R2Ts have a digest.
    pub header_digest: bool,
    /// Data has a digest.
    pub data_digest: bool,
    /// Data that is written begins at a multiple of so many bytes (HPDA, CPDA): 4 to 128, a multiple of 4.
    pub data_alignment_bytes: u32,
    /// The most data of a command capsule that is read.
    pub capsule_data_bytes_max: u32,
    /// The most data of a data PDU that is read (MAXH2CDATA).
    pub data_bytes_max: u32,
}

impl Framing {
    /// How all connections begin: no digests, and no data.
    pub const INITIAL: Framing = Framing {
        header_digest: false,
        data_digest: false,
        data_alignment_bytes: 4,
        capsule_data_bytes_max: 0,
        data_bytes_max: 0,
    };
}

/// A PDU. Data is borrowed from the bytes it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pdu<'a> {
    /// ICReq: how a host would like to speak.
    IcRequest(IcRequest),
    /// ICResp: how a controller will.
    IcResponse(IcResponse),
    /// H2CTermReq, C2HTermReq: the connection ends here.
    Terminate {
        /// Who ends it.
        sender: Sender,
        /// Why.
        fault: Fault,
        /// The begin of the PDU that was wrong, at most [`TERMINATION_DATA_MAX`] bytes.
        header: &'a [u8],
    },
    /// CapsuleCmd.
    Command {
        /// The command.
        entry: SubmissionEntry,
        /// What the capsule has behind it.
        data: &'a [u8],
    },
    /// CapsuleResp.
    Response(CompletionEntry),
    /// H2CData, C2HData: a part of a command's data.
    Data {
        /// Who sends it.
        sender: Sender,
        /// Which part of which command's.
        header: DataHeader,
        /// Nothing comes behind it.
        is_last: bool,
        /// Of a controller's: there is no response, the command went well.
        is_success: bool,
        /// The part.
        data: &'a [u8],
    },
    /// R2T: the controller is ready for a part of a command's data.
    ReadyToTransfer(R2tHeader),
}

/// Why a side ends a connection: FES and FEI of a termination request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// FES.
    pub status: FaultStatus,
    /// FEI: the offset of the field that is wrong (for [`FaultStatus::InvalidHeader`] and [`FaultStatus::UnsupportedParameter`]), or the digest
    /// that came (for [`FaultStatus::HeaderDigest`]).
    pub information: u32,
}

impl Fault {
    /// That the field at `offset` of a PDU cannot be.
    #[must_use]
    pub const fn header(offset: u32) -> Self {
        Fault { status: FaultStatus::InvalidHeader, information: offset }
    }

    /// A fault that needs no further information.
    #[must_use]
    pub const fn of(status: FaultStatus) -> Self {
        Fault { status, information: 0 }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { status, information } = *self;
        let (text, code) = (status.text(), status.code());
        match status {
            FaultStatus::InvalidHeader | FaultStatus::UnsupportedParameter => {
                write!(formatter, "{text} at byte {information} (FES {code:02x}h)")
            }
            _ => write!(formatter, "{text} (FES {code:02x}h)"),
        }
    }
}

/// FES: the kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultStatus {
    /// 01h: a field of the header cannot be.
    InvalidHeader,
    /// 02h: the PDU may not come now.
    Sequence,
    /// 03h: the header is not what was sent.
    HeaderDigest,
    /// 04h: data that was not asked for.
    DataOutOfRange,
    /// 05h: more data at a time than was agreed on; from a host, more R2Ts.
    LimitExceeded,
    /// 06h: a parameter that is not supported.
    UnsupportedParameter,
    /// Another one.
    Other(u16),
}

impl FaultStatus {
    /// The kind of a number.
    #[must_use]
    pub const fn from_code(code: u16) -> Self {
        match code {
            1 => FaultStatus::InvalidHeader,
            2 => FaultStatus::Sequence,
            3 => FaultStatus::HeaderDigest,
            4 => FaultStatus::DataOutOfRange,
            5 => FaultStatus::LimitExceeded,
            6 => FaultStatus::UnsupportedParameter,
            other => FaultStatus::Other(other),
        }
    }

    /// Its number.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            FaultStatus::InvalidHeader => 1,
            FaultStatus::Sequence => 2,
            FaultStatus::HeaderDigest => 3,
            FaultStatus::DataOutOfRange => 4,
            FaultStatus::LimitExceeded => 5,
            FaultStatus::UnsupportedParameter => 6,
            FaultStatus::Other(code) => code,
        }
    }

    /// What it says.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            FaultStatus::InvalidHeader => "invalid PDU header field",
            FaultStatus::Sequence => "PDU sequence error",
            FaultStatus::HeaderDigest => "header digest error",
            FaultStatus::DataOutOfRange => "data transfer out of range",
            FaultStatus::LimitExceeded => "transfer limit exceeded",
            FaultStatus::UnsupportedParameter => "unsupported parameter",
            FaultStatus::Other(_) => "a fault that is not known",
        }
    }
}

/// Types of PDUs, and what their headers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    IcRequest,
    IcResponse,
    HostTermination,
    ControllerTermination,
    Command,
    Response,
    HostData,
    ControllerData,
    ReadyToTransfer,
}

impl Kind {
    pub(crate) const fn from_code(code: u8) -> Option<Kind> {
        Some(match code {
            0 => Kind::IcRequest,
            1 => Kind::IcResponse,
            2 => Kind::HostTermination,
            3 => Kind::ControllerTermination,
            4 => Kind::Command,
            5 => Kind::Response,
            6 => Kind::HostData,
            7 => Kind::ControllerData,
            9 => Kind::ReadyToTransfer,
            _ => return None,
        })
    }

    pub(crate) const fn code(self) -> u8 {
        match self {
            Kind::IcRequest => 0,
            Kind::IcResponse => 1,
            Kind::HostTermination => 2,
            Kind::ControllerTermination => 3,
            Kind::Command => 4,
            Kind::Response => 5,
            Kind::HostData => 6,
            Kind::ControllerData => 7,
            Kind::ReadyToTransfer => 9,
        }
    }

    pub(crate) const fn sender(self) -> Sender {
        match self {
            Kind::IcRequest | Kind::HostTermination | Kind::Command | Kind::HostData => Sender::Host,
            Kind::IcResponse
            | Kind::ControllerTermination
            | Kind::Response
            | Kind::ControllerData
            | Kind::ReadyToTransfer => Sender::Controller,
        }
    }

    /// HLEN.
    pub(crate) const fn header_bytes(self) -> usize {
        match self {
            Kind::IcRequest | Kind::IcResponse => IC_BYTES,
            Kind::Command => 72,
            _ => DATA_HEADER_BYTES,
        }
    }

    /// Whether its header may have a digest.
    pub(crate) const fn may_have_digest(self) -> bool {
        !matches!(self, Kind::IcRequest | Kind::IcResponse | Kind::HostTermination | Kind::ControllerTermination)
    }

    /// Whether data may follow that may have a digest.
    pub(crate) const fn may_have_data(self) -> bool {
        matches!(self, Kind::Command | Kind::HostData | Kind::ControllerData)
    }
}
