//! PDUs as bytes.

use super::layout::TerminationHeader;
use super::{
    CommonHeader, DIGEST_BYTES, FLAG_DATA_DIGEST, FLAG_HEADER_DIGEST, FLAG_LAST, FLAG_SUCCESS, Framing, Kind, Pdu,
    Sender, TERMINATION_DATA_MAX,
};
use alloc::vec::Vec;
use zerocopy::IntoBytes;

impl Pdu<'_> {
    /// Appends what stands before the data of a PDU that has data and its own header to `out`, for who sends the data from elsewhere; gives what
    /// stands behind the data, if something does. Of another PDU it appends all, and data must be none.
    ///
    /// # Panics
    /// As [`Pdu::encode`].
    pub fn encode_around(&self, framing: &Framing, out: &mut Vec<u8>) -> Option<[u8; DIGEST_BYTES]> {
        let Pdu::Data { sender, header, is_last, is_success, data } = self else {
            self.encode(framing, out);
            return None;
        };
        let kind = match sender {
            Sender::Host => Kind::HostData,
            Sender::Controller => Kind::ControllerData,
        };
        let flags = flag(*is_last, FLAG_LAST) | flag(*is_success, FLAG_SUCCESS);
        begin(framing, kind, flags, header.as_bytes(), data, out)
    }

    /// Appends its bytes to `out`.
    ///
    /// # Panics
    /// When the data is longer than a PDU can be, 4 GiB.
    pub fn encode(&self, framing: &Framing, out: &mut Vec<u8>) {
        match self {
            Pdu::IcRequest(request) => append(framing, Kind::IcRequest, 0, request.as_bytes(), &[], out),
            Pdu::IcResponse(response) => append(framing, Kind::IcResponse, 0, response.as_bytes(), &[], out),
            Pdu::Terminate { sender, fault, header } => {
                let kind = match sender {
                    Sender::Host => Kind::HostTermination,
                    Sender::Controller => Kind::ControllerTermination,
                };
                let head = TerminationHeader {
                    status: fault.status.code().into(),
                    information: fault.information.into(),
                    reserved: [0; 10],
                };
                let begin = &header[..header.len().min(TERMINATION_DATA_MAX)];
                append(framing, kind, 0, head.as_bytes(), begin, out);
            }
            Pdu::Command { entry, data } => append(framing, Kind::Command, 0, entry.as_bytes(), data, out),
            Pdu::Response(entry) => append(framing, Kind::Response, 0, entry.as_bytes(), &[], out),
            Pdu::Data { data, .. } => {
                let digest = self.encode_around(framing, out);
                out.extend_from_slice(data);
                out.extend(digest.into_iter().flatten());
            }
            Pdu::ReadyToTransfer(header) => append(framing, Kind::ReadyToTransfer, 0, header.as_bytes(), &[], out),
        }
    }
}

fn flag(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}

fn append(framing: &Framing, kind: Kind, flags: u8, rest: &[u8], data: &[u8], out: &mut Vec<u8>) {
    let digest = begin(framing, kind, flags, rest, data, out);
    out.extend_from_slice(data);
    out.extend(digest.into_iter().flatten());
}

/// Appends all that stands before the data; gives its digest, which stands behind it.
fn begin(
    framing: &Framing,
    kind: Kind,
    flags: u8,
    rest: &[u8],
    data: &[u8],
    out: &mut Vec<u8>,
) -> Option<[u8; DIGEST_BYTES]> {
    let header_digest = framing.header_digest && kind.may_have_digest();
    let data_digest = framing.data_digest && kind.may_have_data() && !data.is_empty();
    let header_bytes = kind.header_bytes();
    let header_end = header_bytes + if header_digest { DIGEST_BYTES } else { 0 };
    let (data_begin, offset) = match (data.is_empty(), kind.may_have_data()) {
        (true, _) => (header_end, 0),
        (false, false) => (header_end, 0),
        (false, true) => {
            let begin = header_end.next_multiple_of(framing.data_alignment_bytes.clamp(4, 128) as usize);
            (begin, begin)
        }
    };
    let pdu_bytes = data_begin + data.len() + if data_digest { DIGEST_BYTES } else { 0 };
    let common = CommonHeader {
        kind: kind.code(),
        flags: flags | flag(header_digest, FLAG_HEADER_DIGEST) | flag(data_digest, FLAG_DATA_DIGEST),
        header_bytes: header_bytes as u8,
        data_offset_bytes: offset as u8,
        pdu_bytes: u32::try_from(pdu_bytes).expect("a PDU is shorter than 4 GiB").into(),
    };
    let begin = out.len();
    out.extend_from_slice(common.as_bytes());
    out.extend_from_slice(rest);
    if header_digest {
        let digest = crc_fast::crc32_iscsi(&out[begin..]);
        out.extend_from_slice(&digest.to_le_bytes());
    }
    out.resize(begin + data_begin, 0);
    data_digest.then(|| crc_fast::crc32_iscsi(data).to_le_bytes())
}
