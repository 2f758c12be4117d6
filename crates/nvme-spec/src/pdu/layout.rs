//! The headers of PDUs.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of an ICReq or ICResp.
pub const IC_BYTES: usize = 128;

/// Bytes of the header of data, of an R2T, a response and a termination request.
pub const DATA_HEADER_BYTES: usize = 24;

/// The most bytes of the PDU that was wrong in a termination request.
pub const TERMINATION_DATA_MAX: usize = 128;

/// What every PDU begins with (8 B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CommonHeader {
    /// PDU-Type.
    pub kind: u8,
    /// Flags.
    pub flags: u8,
    /// HLEN: bytes of the header, without its digest.
    pub header_bytes: u8,
    /// PDO: where data begins; 0 where there is none.
    pub data_offset_bytes: u8,
    /// PLEN: bytes of it all.
    pub pdu_bytes: U32,
}

/// ICReq, behind the common header (120 B).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IcRequest {
    /// PFV: 0.
    pub version: U16,
    /// HPDA: data that the controller sends begins at a multiple of 4 B times this plus one; 0 to 31.
    pub data_alignment: u8,
    /// DGST: bit 0, header digests are wanted; bit 1, data digests.
    pub digests: u8,
    /// MAXR2T: R2Ts of a command at a time, less one.
    pub r2t_max: U32,
    reserved: [u8; 112],
}

/// ICResp, behind the common header (120 B).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IcResponse {
    /// PFV: 0.
    pub version: U16,
    /// CPDA: as HPDA, of data that the host sends.
    pub data_alignment: u8,
    /// DGST: as in the request, what there will be.
    pub digests: u8,
    /// MAXH2CDATA: the most data of a PDU of the host's; from 4096 on, a multiple of 4.
    pub data_bytes_max: U32,
    reserved: [u8; 112],
}

impl IcRequest {
    /// A request for digests, of a host that takes data at any multiple of 4 B and so many R2Ts of a command at a time, from 1 on.
    #[must_use]
    pub fn new(header_digest: bool, data_digest: bool, r2ts_max: u32) -> Self {
        IcRequest {
            version: 0.into(),
            data_alignment: 0,
            digests: digests(header_digest, data_digest),
            r2t_max: r2ts_max.saturating_sub(1).into(),
            reserved: [0; 112],
        }
    }

    /// Whether header digests and data digests are wanted.
    #[must_use]
    pub fn digests(&self) -> (bool, bool) {
        (self.digests & 1 != 0, self.digests & 2 != 0)
    }
}

impl IcResponse {
    /// A response that grants digests, of a controller that takes so much data in a PDU, at any multiple of 4 B.
    #[must_use]
    pub fn new(header_digest: bool, data_digest: bool, data_bytes_max: u32) -> Self {
        IcResponse {
            version: 0.into(),
            data_alignment: 0,
            digests: digests(header_digest, data_digest),
            data_bytes_max: data_bytes_max.into(),
            reserved: [0; 112],
        }
    }

    /// Whether there will be header digests and data digests.
    #[must_use]
    pub fn digests(&self) -> (bool, bool) {
        (self.digests & 1 != 0, self.digests & 2 != 0)
    }
}

fn digests(header_digest: bool, data_digest: bool) -> u8 {
    u8::from(header_digest) | u8::from(data_digest) << 1
}

/// Which part of a command's data a PDU has (16 B, behind the common header).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DataHeader {
    /// CCCID: the command.
    pub command_id: U16,
    /// TTAG: what the R2T had; of a controller's data nothing.
    pub transfer_tag: U16,
    /// DATAO: the first byte in the command's data.
    pub offset_bytes: U32,
    /// DATAL: bytes.
    pub length_bytes: U32,
    reserved: U32,
}

impl DataHeader {
    /// The header of `length_bytes` from `offset_bytes` on.
    #[must_use]
    pub fn new(command_id: u16, transfer_tag: u16, offset_bytes: u32, length_bytes: u32) -> Self {
        DataHeader {
            command_id: command_id.into(),
            transfer_tag: transfer_tag.into(),
            offset_bytes: offset_bytes.into(),
            length_bytes: length_bytes.into(),
            reserved: 0.into(),
        }
    }
}

/// Which part of a command's data a controller is ready for (16 B, behind the common header).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct R2tHeader {
    /// CCCID: the command.
    pub command_id: U16,
    /// TTAG: what the data is to have.
    pub transfer_tag: U16,
    /// R2TO: the first byte in the command's data, which is where the last part ended.
    pub offset_bytes: U32,
    /// R2TL: bytes.
    pub length_bytes: U32,
    reserved: U32,
}

impl R2tHeader {
    /// The header that asks for `length_bytes` from `offset_bytes` on.
    #[must_use]
    pub fn new(command_id: u16, transfer_tag: u16, offset_bytes: u32, length_bytes: u32) -> Self {
        R2tHeader {
            command_id: command_id.into(),
            transfer_tag: transfer_tag.into(),
            offset_bytes: offset_bytes.into(),
            length_bytes: length_bytes.into(),
            reserved: 0.into(),
        }
    }
}

/// A termination request, behind the common header (16 B).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct TerminationHeader {
    /// FES.
    pub(crate) status: U16,
    /// FEI.
    pub(crate) information: U32,
    pub(crate) reserved: [u8; 10],
}

const _: () = assert!(size_of::<CommonHeader>() == 8);
const _: () = assert!(size_of::<IcRequest>() == IC_BYTES - 8);
const _: () = assert!(size_of::<IcResponse>() == IC_BYTES - 8);
const _: () = assert!(size_of::<DataHeader>() == DATA_HEADER_BYTES - 8);
const _: () = assert!(size_of::<R2tHeader>() == DATA_HEADER_BYTES - 8);
const _: () = assert!(size_of::<TerminationHeader>() == DATA_HEADER_BYTES - 8);
