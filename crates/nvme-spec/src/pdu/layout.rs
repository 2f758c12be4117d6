//! The headers of PDUs.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length of an ICReq or ICResp.
pub const IC_BYTES: usize = 128;

/// HLEN of H2CData, C2HData, R2T, CapsuleResp and termination requests.
pub const DATA_HEADER_BYTES: usize = 24;

/// The most bytes of the faulty PDU in a termination request.
pub const TERMINATION_DATA_MAX: usize = 128;

/// The common header of every PDU (8 B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CommonHeader {
    /// PDU-Type.
    pub kind: u8,
    /// FLAGS.
    pub flags: u8,
    /// HLEN: length of the header, without its digest.
    pub header_bytes: u8,
    /// PDO: offset of the data; 0 for none.
    pub data_offset_bytes: u8,
    /// PLEN: length of the PDU.
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
    /// DGST: bit 0 requests header digests, bit 1 data digests.
    pub digests: u8,
    /// MAXR2T: the most outstanding R2Ts of a command, less one.
    pub r2t_max: U32,
    reserved: [u8; 112],
}

/// ICResp, behind the common header (120 B).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IcResponse {
    /// PFV: 0.
    pub version: U16,
    /// CPDA: as HPDA, for data that the host sends.
    pub data_alignment: u8,
    /// DGST: as in the request; the digests that are granted.
    pub digests: u8,
    /// MAXH2CDATA: the most data of an H2CData; at least 4096, a multiple of 4.
    pub data_bytes_max: U32,
    reserved: [u8; 112],
}

impl IcRequest {
    /// A request with HPDA 0, and MAXR2T from a number of outstanding R2Ts, at least 1.
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

    /// Whether header digests and data digests are requested.
    #[must_use]
    pub fn digests(&self) -> (bool, bool) {
        (self.digests & 1 != 0, self.digests & 2 != 0)
    }
}

impl IcResponse {
    /// A response with CPDA 0.
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

    /// Whether header digests and data digests are granted.
    #[must_use]
    pub fn digests(&self) -> (bool, bool) {
        (self.digests & 1 != 0, self.digests & 2 != 0)
    }
}

fn digests(header_digest: bool, data_digest: bool) -> u8 {
    u8::from(header_digest) | u8::from(data_digest) << 1
}

/// H2CData and C2HData, behind the common header (16 B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DataHeader {
    /// CCCID: the command.
    pub command_id: U16,
    /// TTAG of the R2T; reserved in C2HData.
    pub transfer_tag: U16,
    /// DATAO: offset in the command's data.
    pub offset_bytes: U32,
    /// DATAL: length of the data in this PDU.
    pub length_bytes: U32,
    reserved: U32,
}

impl DataHeader {
    /// A header with the reserved bytes zero.
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

/// R2T, behind the common header (16 B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct R2tHeader {
    /// CCCID: the command.
    pub command_id: U16,
    /// TTAG, which the H2CData repeats.
    pub transfer_tag: U16,
    /// R2TO: offset in the command's data, where the last part ended.
    pub offset_bytes: U32,
    /// R2TL: length of the requested part.
    pub length_bytes: U32,
    reserved: U32,
}

impl R2tHeader {
    /// A header with the reserved bytes zero.
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
