//! Diffie-Hellman over the groups of RFC 7919, in constant time for what is secret.

mod primes;

use crate::failure::Failure;
use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};
use zeroize::Zeroizing;

/// Length of a private exponent. RFC 7919 (5.2) wants 400 bits for the largest group.
pub(crate) const EXPONENT_BYTES: usize = 64;
const GENERATOR: u8 = 2;

/// A group, by its identifier in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Group {
    /// None: HMAC-CHAP alone.
    Null = 0,
    /// 2048 bits.
    Ffdhe2048 = 1,
    /// 3072 bits.
    Ffdhe3072 = 2,
    /// 4096 bits.
    Ffdhe4096 = 3,
    /// 6144 bits.
    Ffdhe6144 = 4,
    /// 8192 bits.
    Ffdhe8192 = 5,
}

impl Group {
    /// All, in the order in which they are preferred: 128 bits of security first, then those that cost less.
    pub const ALL: [Group; 6] =
        [Group::Ffdhe3072, Group::Ffdhe2048, Group::Ffdhe4096, Group::Ffdhe6144, Group::Ffdhe8192, Group::Null];

    /// The group of that identifier.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Group> {
        Group::ALL.into_iter().find(|group| *group as u8 == id)
    }

    /// Length of a public value, in bytes; 0 for no group.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.bits() as usize / 8
    }

    fn bits(self) -> u32 {
        self.parameters().map_or(0, |(bits, _)| bits)
    }

    /// Bits of the prime, and those of its digits that X makes its own.
    fn parameters(self) -> Option<(u32, &'static str)> {
        match self {
            Group::Null => None,
            Group::Ffdhe2048 => Some((2048, "886B423861285C97")),
            Group::Ffdhe3072 => Some((3072, "25E41D2B66C62E37")),
            Group::Ffdhe4096 => Some((4096, "C68A007E5E655F6A")),
            Group::Ffdhe6144 => Some((6144, "A40E329CD0E40E65")),
            Group::Ffdhe8192 => Some((8192, "D68C8BB7C5C6424C")),
        }
    }

    fn prime(self) -> Option<Odd<BoxedUint>> {
        let (bits, own) = self.parameters()?;
        let prime = BoxedUint::from_be_hex(&primes::digits(bits, own), bits).into_option()?;
        Odd::new(prime).into_option()
    }

    /// The public value of a private exponent: as many bytes as the prime has, none without a group.
    pub(crate) fn public(self, exponent: &[u8; EXPONENT_BYTES]) -> Vec<u8> {
        self.power(&[GENERATOR], exponent).map_or_else(Vec::new, |public| public.to_vec())
    }

    /// What both sides have in common, as long as the prime; empty without a group.
    ///
    /// # Errors
    /// [`Failure::GroupNotUsable`] for a value of another length, or one that is not between 1 and p - 1.
    pub(crate) fn shared(self, peer: &[u8], exponent: &[u8; EXPONENT_BYTES]) -> Result<Zeroizing<Vec<u8>>, Failure> {
        if peer.len() != self.bytes() {
            return Err(if self == Group::Null { Failure::IncorrectPayload } else { Failure::GroupNotUsable });
        }
        let Some(prime) = self.prime() else { return Ok(Zeroizing::default()) };
        let (one, less_one) =
            (BoxedUint::one_with_precision(self.bits()), prime.as_ref().wrapping_sub(BoxedUint::one()));
        // It is public.
        let value = BoxedUint::from_be_slice(peer, self.bits()).map_err(|_| Failure::GroupNotUsable)?;
        if value <= one || value >= less_one {
            return Err(Failure::GroupNotUsable);
        }
        self.power(peer, exponent).ok_or(Failure::GroupNotUsable)
    }

    fn power(self, base: &[u8], exponent: &[u8; EXPONENT_BYTES]) -> Option<Zeroizing<Vec<u8>>> {
        let params = BoxedMontyParams::new_vartime(self.prime()?);
        let base = BoxedUint::from_be_slice(base, self.bits()).ok()?;
        let exponent = Zeroizing::new(BoxedUint::from_be_slice(exponent, EXPONENT_BYTES as u32 * 8).ok()?);
        let power = BoxedMontyForm::new(base, &params).pow(&exponent);
        Some(Zeroizing::new(Zeroizing::new(power.retrieve()).to_be_bytes().into_vec()))
    }
}
