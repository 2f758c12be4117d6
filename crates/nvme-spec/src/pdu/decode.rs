//! Bytes as PDUs.

use super::layout::TerminationHeader;
use super::{
    CommonHeader, DIGEST_BYTES, DataHeader, FLAG_DATA_DIGEST, FLAG_HEADER_DIGEST, FLAG_LAST, FLAG_SUCCESS, Fault,
    FaultStatus, Framing, IcRequest, IcResponse, Kind, Pdu, R2tHeader, Sender, TERMINATION_DATA_MAX,
};
use crate::{CompletionEntry, SubmissionEntry};
use zerocopy::{FromBytes, Immutable, KnownLayout};

const COMMON_BYTES: usize = size_of::<CommonHeader>();

/// Offsets of the fields of a common header, for [`Fault::header`].
const AT_KIND: u32 = 0;
const AT_FLAGS: u32 = 1;
const AT_HEADER_BYTES: u32 = 2;
const AT_DATA_OFFSET: u32 = 3;
const AT_PDU_BYTES: u32 = 4;
/// That of DATAL.
const AT_DATA_BYTES: u32 = 16;

/// What the bytes so far are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// The begin of a PDU: look again when there are so many bytes.
    Needs(usize),
    /// A PDU.
    Pdu {
        /// It.
        pdu: Pdu<'a>,
        /// Its bytes; those behind are of the next one.
        bytes: usize,
        /// Its data is what was sent, as far as its digest tells. Otherwise the command that it is about has failed,
        /// and the connection goes on.
        is_data_intact: bool,
    },
}

/// Where the parts of a PDU are.
struct Parts {
    kind: Kind,
    flags: u8,
    /// Where the header ends, without its digest.
    header_end: usize,
    header_digest: bool,
    data_begin: usize,
    data_end: usize,
    data_digest: bool,
    end: usize,
}

impl<'a> Pdu<'a> {
    /// Reads the PDU that `bytes` begin with, sent by `sender`.
    ///
    /// No more is looked at than is needed: what is wrong with the first bytes is said before there are others.
    ///
    /// # Errors
    /// What the connection is to be ended with.
    pub fn decode(bytes: &'a [u8], sender: Sender, framing: &Framing) -> Result<Decoded<'a>, Fault> {
        let Some((common, _)) = prefix::<CommonHeader>(bytes) else { return Ok(Decoded::Needs(COMMON_BYTES)) };
        let parts = parts(common, sender, framing)?;
        let head_end = parts.header_end + if parts.header_digest { DIGEST_BYTES } else { 0 };
        let Some(head) = bytes.get(..head_end) else { return Ok(Decoded::Needs(head_end)) };
        if parts.header_digest {
            check_header(head, parts.header_end)?;
        }
        check_data_bytes(&parts, head)?;
        let Some(whole) = bytes.get(..parts.end) else { return Ok(Decoded::Needs(parts.end)) };
        let data = &whole[parts.data_begin..parts.data_end];
        let is_data_intact =
            !parts.data_digest || crc_fast::crc32_iscsi(data).to_le_bytes() == whole[parts.data_end..parts.end];
        let pdu = typed(&parts, &head[COMMON_BYTES..], data).ok_or(Fault::header(AT_HEADER_BYTES))?;
        Ok(Decoded::Pdu { pdu, bytes: parts.end, is_data_intact })
    }
}

/// Checks a common header, and says what it says.
fn parts(common: &CommonHeader, sender: Sender, framing: &Framing) -> Result<Parts, Fault> {
    let kind = Kind::from_code(common.kind).filter(|kind| kind.sender() == sender).ok_or(Fault::header(AT_KIND))?;
    let header_end = kind.header_bytes();
    if usize::from(common.header_bytes) != header_end {
        return Err(Fault::header(AT_HEADER_BYTES));
    }
    let header_digest = framing.header_digest && kind.may_have_digest();
    if (common.flags & FLAG_HEADER_DIGEST != 0) != header_digest {
        return Err(Fault::header(AT_FLAGS));
    }
    let end = usize::try_from(common.pdu_bytes.get()).map_err(|_| Fault::header(AT_PDU_BYTES))?;
    let head_end = header_end + if header_digest { DIGEST_BYTES } else { 0 };
    let no_data = Parts {
        kind,
        flags: common.flags,
        header_end,
        header_digest,
        data_begin: head_end,
        data_end: head_end,
        data_digest: false,
        end: head_end,
    };
    if end == head_end {
        return Ok(no_data);
    }
    let (data_begin, data_max) = match kind {
        Kind::HostTermination | Kind::ControllerTermination => (head_end, TERMINATION_DATA_MAX),
        Kind::Command => (common.data_offset_bytes.into(), framing.capsule_data_bytes_max as usize),
        Kind::HostData | Kind::ControllerData => (common.data_offset_bytes.into(), framing.data_bytes_max as usize),
        _ => return Err(Fault::header(AT_PDU_BYTES)),
    };
    if end < head_end {
        return Err(Fault::header(AT_PDU_BYTES));
    }
    if data_begin < head_end || data_begin % 4 != 0 {
        return Err(Fault::header(AT_DATA_OFFSET));
    }
    let data_digest = framing.data_digest && kind.may_have_data();
    if kind.may_have_data() && (common.flags & FLAG_DATA_DIGEST != 0) != data_digest {
        return Err(Fault::header(AT_FLAGS));
    }
    let data_end = end.checked_sub(if data_digest { DIGEST_BYTES } else { 0 });
    let data_end = data_end.filter(|&data_end| data_end > data_begin).ok_or(Fault::header(AT_PDU_BYTES))?;
    if data_end - data_begin > data_max {
        let is_data = matches!(kind, Kind::HostData | Kind::ControllerData);
        return Err(if is_data { Fault::of(FaultStatus::LimitExceeded) } else { Fault::header(AT_PDU_BYTES) });
    }
    Ok(Parts { data_begin, data_end, data_digest, end, ..no_data })
}

fn check_header(head: &[u8], header_end: usize) -> Result<(), Fault> {
    let (header, digest) = head.split_at(header_end);
    let digest = digest.try_into().map_or(0, u32::from_le_bytes);
    if crc_fast::crc32_iscsi(header) == digest {
        Ok(())
    } else {
        Err(Fault { status: FaultStatus::HeaderDigest, information: digest })
    }
}

/// That data is as long as its header says.
fn check_data_bytes(parts: &Parts, head: &[u8]) -> Result<(), Fault> {
    if !matches!(parts.kind, Kind::HostData | Kind::ControllerData) {
        return Ok(());
    }
    let said = prefix::<DataHeader>(&head[COMMON_BYTES..]).map(|(header, _)| header.length_bytes.get() as usize);
    if said == Some(parts.data_end - parts.data_begin) { Ok(()) } else { Err(Fault::header(AT_DATA_BYTES)) }
}

fn typed<'a>(parts: &Parts, rest: &[u8], data: &'a [u8]) -> Option<Pdu<'a>> {
    let sender = parts.kind.sender();
    Some(match parts.kind {
        Kind::IcRequest => Pdu::IcRequest(*prefix::<IcRequest>(rest)?.0),
        Kind::IcResponse => Pdu::IcResponse(*prefix::<IcResponse>(rest)?.0),
        Kind::HostTermination | Kind::ControllerTermination => {
            let (header, _) = prefix::<TerminationHeader>(rest)?;
            let status = FaultStatus::from_code(header.status.get());
            let fault = Fault { status, information: header.information.get() };
            Pdu::Terminate { sender, fault, header: data }
        }
        Kind::Command => Pdu::Command { entry: *prefix::<SubmissionEntry>(rest)?.0, data },
        Kind::Response => Pdu::Response(*prefix::<CompletionEntry>(rest)?.0),
        Kind::HostData | Kind::ControllerData => Pdu::Data {
            sender,
            header: *prefix::<DataHeader>(rest)?.0,
            is_last: parts.flags & FLAG_LAST != 0,
            is_success: parts.flags & FLAG_SUCCESS != 0,
            data,
        },
        Kind::ReadyToTransfer => Pdu::ReadyToTransfer(*prefix::<R2tHeader>(rest)?.0),
    })
}

fn prefix<T: FromBytes + KnownLayout + Immutable>(bytes: &[u8]) -> Option<(&T, &[u8])> {
    T::ref_from_prefix(bytes).ok()
}
