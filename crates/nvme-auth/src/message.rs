//! The messages of DH-HMAC-CHAP, byte by byte. Numbers are little-endian, public values big-endian.
//!
//! ```text
//!   all         0 type | 1 identifier | 2 zeros | 4 T_ID u16
//!   Negotiate   6 SC_C | 7 protocols | of each 64 B: 0 identifier, 2 hashes, 3 groups, 4 hash list 30 B, 34 group list 30 B
//!   Challenge   6 hash length | 8 hash | 9 group | 10 length of g^y u16 | 12 S1 u32 | 16 C1 | g^y
//!   Reply       6 hash length | 8 C2 valid | 10 length of g^x u16 | 12 S2 u32 | 16 response | C2 | g^x
//!   Success1    6 hash length | 8 response valid | 16 response, if it is
//!   Success2    16 B          Failure1, Failure2   6 reason | 7 explanation
//! ```

use crate::failure::Failure;
use crate::group::Group;
use crate::hash::Hash;

/// The longest message: a Reply with the largest hash and group has 1168 bytes.
pub const MESSAGE_BYTES_MAX: usize = 4096;

const COMMON: u8 = 0;
const DH_CHAP: u8 = 1;
const HEADER_BYTES: usize = 16;
const NEGOTIATE_BYTES: usize = 8;
const PROTOCOL_BYTES: usize = 64;
const PROTOCOL_DH_CHAP: u8 = 1;
const LIST_MAX: usize = 30;
/// Reason code: authentication failure.
const REASON: u8 = 1;

const NEGOTIATE: (u8, u8) = (COMMON, 0x00);
const CHALLENGE: (u8, u8) = (DH_CHAP, 0x01);
const REPLY: (u8, u8) = (DH_CHAP, 0x02);
const SUCCESS1: (u8, u8) = (DH_CHAP, 0x03);
const SUCCESS2: (u8, u8) = (DH_CHAP, 0x04);
const FAILURE2: (u8, u8) = (COMMON, 0xf0);
const FAILURE1: (u8, u8) = (COMMON, 0xf1);

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// What the host knows; identifiers that nobody here knows are left out.
    Negotiate {
        concatenation: u8,
        hashes: Vec<Hash>,
        groups: Vec<Group>,
    },
    Challenge {
        hash: Hash,
        group: Group,
        sequence: u32,
        challenge: Vec<u8>,
        public: Vec<u8>,
    },
    Reply {
        response: Vec<u8>,
        sequence: u32,
        challenge: Option<Vec<u8>>,
        public: Vec<u8>,
    },
    Success1 {
        hash_bytes: u8,
        response: Option<Vec<u8>>,
    },
    Success2,
    Failure1(Failure),
    Failure2(Failure),
}

/// A message of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) transaction: u16,
    pub(crate) body: Body,
}

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match &self.body {
            Body::Negotiate { concatenation, hashes, groups } => self.negotiate(*concatenation, hashes, groups),
            Body::Challenge { hash, group, sequence, challenge, public } => {
                let mut bytes = self.begin(CHALLENGE, HEADER_BYTES);
                (bytes[6], bytes[8], bytes[9]) = (challenge.len() as u8, *hash as u8, *group as u8);
                bytes[10..12].copy_from_slice(&(public.len() as u16).to_le_bytes());
                bytes[12..16].copy_from_slice(&sequence.to_le_bytes());
                bytes.extend_from_slice(challenge);
                bytes.extend_from_slice(public);
                bytes
            }
            Body::Reply { response, sequence, challenge, public } => {
                let mut bytes = self.begin(REPLY, HEADER_BYTES);
                (bytes[6], bytes[8]) = (response.len() as u8, challenge.is_some().into());
                bytes[10..12].copy_from_slice(&(public.len() as u16).to_le_bytes());
                bytes[12..16].copy_from_slice(&sequence.to_le_bytes());
                bytes.extend_from_slice(response);
                match challenge {
                    Some(challenge) => bytes.extend_from_slice(challenge),
                    None => bytes.resize(bytes.len() + response.len(), 0),
                }
                bytes.extend_from_slice(public);
                bytes
            }
            Body::Success1 { hash_bytes, response } => {
                let mut bytes = self.begin(SUCCESS1, HEADER_BYTES);
                (bytes[6], bytes[8]) = (*hash_bytes, response.is_some().into());
                bytes.extend_from_slice(response.as_deref().unwrap_or_default());
                bytes
            }
            Body::Success2 => self.begin(SUCCESS2, HEADER_BYTES),
            Body::Failure1(failure) => self.failure(FAILURE1, *failure),
            Body::Failure2(failure) => self.failure(FAILURE2, *failure),
        }
    }

    fn begin(&self, (kind, id): (u8, u8), length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        (bytes[0], bytes[1]) = (kind, id);
        bytes[4..6].copy_from_slice(&self.transaction.to_le_bytes());
        bytes
    }

    fn negotiate(&self, concatenation: u8, hashes: &[Hash], groups: &[Group]) -> Vec<u8> {
        let mut bytes = self.begin(NEGOTIATE, NEGOTIATE_BYTES + PROTOCOL_BYTES);
        (bytes[6], bytes[7]) = (concatenation, 1);
        let protocol = &mut bytes[NEGOTIATE_BYTES..];
        (protocol[0], protocol[2], protocol[3]) = (PROTOCOL_DH_CHAP, hashes.len() as u8, groups.len() as u8);
        protocol[4..].iter_mut().zip(hashes).for_each(|(slot, hash)| *slot = *hash as u8);
        protocol[4 + LIST_MAX..].iter_mut().zip(groups).for_each(|(slot, group)| *slot = *group as u8);
        bytes
    }

    fn failure(&self, kind: (u8, u8), failure: Failure) -> Vec<u8> {
        let mut bytes = self.begin(kind, NEGOTIATE_BYTES);
        (bytes[6], bytes[7]) = (REASON, failure.code());
        bytes
    }

    /// Reads a message. What follows its end is ignored.
    ///
    /// # Errors
    /// [`Failure::IncorrectMessage`] for one that is not known, [`Failure::IncorrectPayload`] for one that cannot be,
    /// [`Failure::HashNotUsable`] and others for what a Challenge chooses.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Message, Failure> {
        let Some(&[kind, id, _, _, low, high, sixth, seventh]) = bytes.first_chunk() else {
            return Err(Failure::IncorrectPayload);
        };
        let transaction = u16::from_le_bytes([low, high]);
        let body = match (kind, id) {
            NEGOTIATE => negotiation(sixth, seventh, &bytes[NEGOTIATE_BYTES..])?,
            CHALLENGE => challenge(sixth.into(), bytes)?,
            REPLY => reply(sixth.into(), bytes)?,
            SUCCESS1 => {
                let (header, rest) = header(bytes)?;
                let response = (header[8] & 1 == 1).then(|| part(rest, 0, sixth.into())).transpose()?;
                Body::Success1 { hash_bytes: sixth, response }
            }
            SUCCESS2 => Body::Success2,
            FAILURE1 => Body::Failure1(Failure::from_code(seventh)),
            FAILURE2 => Body::Failure2(Failure::from_code(seventh)),
            _ => return Err(Failure::IncorrectMessage),
        };
        Ok(Message { transaction, body })
    }
}

fn negotiation(concatenation: u8, protocols: u8, rest: &[u8]) -> Result<Body, Failure> {
    if protocols == 0 || rest.len() < usize::from(protocols) * PROTOCOL_BYTES {
        return Err(Failure::IncorrectPayload);
    }
    let mut known = rest.chunks_exact(PROTOCOL_BYTES).take(protocols.into());
    let protocol = known.find(|protocol| protocol[0] == PROTOCOL_DH_CHAP).ok_or(Failure::NotUsable)?;
    let (hashes, groups) = (usize::from(protocol[2]), usize::from(protocol[3]));
    if hashes > LIST_MAX || groups > LIST_MAX {
        return Err(Failure::IncorrectPayload);
    }
    Ok(Body::Negotiate {
        concatenation,
        hashes: protocol[4..][..hashes].iter().filter_map(|id| Hash::from_id(*id)).collect(),
        groups: protocol[4 + LIST_MAX..][..groups].iter().filter_map(|id| Group::from_id(*id)).collect(),
    })
}

fn challenge(hash_bytes: usize, bytes: &[u8]) -> Result<Body, Failure> {
    let (header, rest) = header(bytes)?;
    let hash = Hash::from_id(header[8]).filter(|hash| hash.bytes() == hash_bytes).ok_or(Failure::HashNotUsable)?;
    let group = Group::from_id(header[9]).ok_or(Failure::GroupNotUsable)?;
    let public_bytes = u16::from_le_bytes([header[10], header[11]]);
    let sequence = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    let challenge = part(rest, 0, hash_bytes)?;
    Ok(Body::Challenge { hash, group, sequence, challenge, public: part(rest, hash_bytes, public_bytes.into())? })
}

fn reply(hash_bytes: usize, bytes: &[u8]) -> Result<Body, Failure> {
    let (header, rest) = header(bytes)?;
    let public_bytes = u16::from_le_bytes([header[10], header[11]]);
    let sequence = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    let challenge = part(rest, hash_bytes, hash_bytes)?;
    Ok(Body::Reply {
        response: part(rest, 0, hash_bytes)?,
        sequence,
        challenge: (header[8] & 1 == 1).then_some(challenge),
        public: part(rest, 2 * hash_bytes, public_bytes.into())?,
    })
}

fn header(bytes: &[u8]) -> Result<(&[u8; HEADER_BYTES], &[u8]), Failure> {
    bytes.split_first_chunk().ok_or(Failure::IncorrectPayload)
}

fn part(bytes: &[u8], at: usize, length: usize) -> Result<Vec<u8>, Failure> {
    bytes.get(at..at + length).map(<[u8]>::to_vec).ok_or(Failure::IncorrectPayload)
}
