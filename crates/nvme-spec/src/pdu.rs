//! The PDUs of NVMe/TCP.
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
//! [`Framing`] is what both sides have agreed on: digests, alignment, limits. [`Pdu::decode`] reads the front of a stream: it returns a PDU, how many
//! bytes it needs, or the [`Fault`] of a termination request. [`Pdu::encode`] is its inverse.
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
use zerocopy::{Immutable, KnownLayout, TryFromBytes};

/// HDGSTF: there is a header digest.
pub const FLAG_HEADER_DIGEST: u8 = 1 << 0;
/// DDGSTF: there is a data digest.
pub const FLAG_DATA_DIGEST: u8 = 1 << 1;
/// LAST_PDU: the last data of an R2T, or of a command.
pub const FLAG_LAST: u8 = 1 << 2;
/// SUCCESS, on a controller's last data: the command succeeded, and no CapsuleResp follows.
pub const FLAG_SUCCESS: u8 = 1 << 3;

/// Length of a digest (CRC-32C).
pub const DIGEST_BYTES: usize = 4;

/// Who sends a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// H2C.
    Host,
    /// C2H.
    Controller,
}

/// What ICReq and ICResp agreed on, and the limits of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// HDGST_ENABLE.
    pub header_digest: bool,
    /// DDGST_ENABLE.
    pub data_digest: bool,
    /// HPDA or CPDA in bytes: the alignment of data that is written, a multiple of 4 from 4 to 128.
    pub data_alignment_bytes: u32,
    /// The most in-capsule data that is read.
    pub capsule_data_bytes_max: u32,
    /// The most data of an H2CData or C2HData that is read (MAXH2CDATA).
    pub data_bytes_max: u32,
}

impl Framing {
    /// The framing of ICReq and ICResp: no digests, and no data.
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
    /// ICReq.
    IcRequest(IcRequest),
    /// ICResp.
    IcResponse(IcResponse),
    /// H2CTermReq, C2HTermReq: the connection ends here.
    Terminate {
        /// Who ends the connection.
        sender: Sender,
        /// FES and FEI.
        fault: Fault,
        /// The front of the faulty PDU, at most [`TERMINATION_DATA_MAX`] bytes.
        header: &'a [u8],
    },
    /// CapsuleCmd.
    Command {
        /// The submission queue entry.
        entry: SubmissionEntry,
        /// In-capsule data.
        data: &'a [u8],
    },
    /// CapsuleResp.
    Response(CompletionEntry),
    /// H2CData, C2HData: a part of a command's data.
    Data {
        /// H2CData of a host, C2HData of a controller.
        sender: Sender,
        /// Which part of the data of which command.
        header: DataHeader,
        /// LAST_PDU.
        is_last: bool,
        /// SUCCESS, of C2HData only.
        is_success: bool,
        /// That part.
        data: &'a [u8],
    },
    /// R2T: the controller requests a part of a command's data.
    ReadyToTransfer(R2tHeader),
}

/// Why a side ends a connection: FES and FEI of a termination request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// FES: what is wrong.
    pub status: FaultStatus,
    /// FEI: the offset of the faulty field (of [`FaultStatus::InvalidHeader`] and
    /// [`FaultStatus::UnsupportedParameter`]), or the digest that came (of [`FaultStatus::HeaderDigest`]).
    pub information: u32,
}

impl Fault {
    /// An invalid field at `offset` in the PDU.
    #[must_use]
    pub const fn header(offset: u32) -> Self {
        Fault { status: FaultStatus::InvalidHeader, information: offset }
    }

    /// A fault without FEI.
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

/// FES: fatal error status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultStatus {
    /// 01h: invalid PDU header field.
    InvalidHeader,
    /// 02h: PDU sequence error.
    Sequence,
    /// 03h: header digest error.
    HeaderDigest,
    /// 04h: data transfer out of range.
    DataOutOfRange,
    /// 05h: data transfer limit exceeded, or R2T limit exceeded.
    LimitExceeded,
    /// 06h: unsupported parameter.
    UnsupportedParameter,
    /// A reserved value.
    Other(u16),
}

/// FES and the specification's name of each known fault.
const FAULTS: [(u16, FaultStatus, &str); 6] = [
    (1, FaultStatus::InvalidHeader, "invalid PDU header field"),
    (2, FaultStatus::Sequence, "PDU sequence error"),
    (3, FaultStatus::HeaderDigest, "header digest error"),
    (4, FaultStatus::DataOutOfRange, "data transfer out of range"),
    (5, FaultStatus::LimitExceeded, "transfer limit exceeded"),
    (6, FaultStatus::UnsupportedParameter, "unsupported parameter"),
];

impl FaultStatus {
    /// Decodes FES.
    #[must_use]
    pub fn from_code(code: u16) -> Self {
        FAULTS.iter().find(|fault| fault.0 == code).map_or(FaultStatus::Other(code), |fault| fault.1)
    }

    /// The value of FES.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            FaultStatus::Other(code) => code,
            known => FAULTS.iter().find(|fault| fault.1 == known).map_or(0, |fault| fault.0),
        }
    }

    /// The specification's name of it.
    #[must_use]
    pub fn text(self) -> &'static str {
        FAULTS.iter().find(|fault| fault.1 == self).map_or("a fault that is not known", |fault| fault.2)
    }
}

/// PDU-Type. Those of hosts are even, those of controllers odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, Immutable, KnownLayout)]
#[repr(u8)]
pub(crate) enum Kind {
    IcRequest = 0,
    IcResponse = 1,
    HostTermination = 2,
    ControllerTermination = 3,
    Command = 4,
    Response = 5,
    HostData = 6,
    ControllerData = 7,
    ReadyToTransfer = 9,
}

impl Kind {
    pub(crate) fn from_code(code: u8) -> Option<Kind> {
        Kind::try_read_from_bytes(&[code]).ok()
    }

    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    pub(crate) const fn sender(self) -> Sender {
        if self.code().is_multiple_of(2) { Sender::Host } else { Sender::Controller }
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
