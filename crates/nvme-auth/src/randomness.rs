//! What one side draws for an authentication.

use crate::group::EXPONENT_BYTES;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

const CHALLENGE_BYTES: usize = 64;
/// How many random bytes [`Randomness`] is made of.
pub const RANDOMNESS_BYTES: usize = CHALLENGE_BYTES + EXPONENT_BYTES + 4;

/// A challenge, an exponent and a sequence number. Each authentication has its own.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Randomness {
    pub(crate) challenge: [u8; CHALLENGE_BYTES],
    pub(crate) exponent: [u8; EXPONENT_BYTES],
    /// Never 0, which means that there is no challenge.
    pub(crate) sequence: u32,
}

impl Randomness {
    /// Of bytes that nobody can foresee.
    #[must_use]
    pub fn new(bytes: &Zeroizing<[u8; RANDOMNESS_BYTES]>) -> Self {
        let mut drawn = Randomness { challenge: [0; CHALLENGE_BYTES], exponent: [0; EXPONENT_BYTES], sequence: 0 };
        let (challenge, rest) = bytes.split_at(CHALLENGE_BYTES);
        let (exponent, sequence) = rest.split_at(EXPONENT_BYTES);
        drawn.challenge.copy_from_slice(challenge);
        drawn.exponent.copy_from_slice(exponent);
        drawn.sequence = sequence.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)).max(1);
        drawn
    }

    /// Of a source of random numbers.
    ///
    /// # Errors
    /// Those of the source.
    pub fn draw<E>(mut source: impl FnMut() -> Result<u64, E>) -> Result<Self, E> {
        let mut bytes = Zeroizing::new([0; RANDOMNESS_BYTES]);
        for part in bytes.chunks_mut(8) {
            let number = source()?.to_le_bytes();
            part.copy_from_slice(&number[..part.len()]);
        }
        Ok(Randomness::new(&bytes))
    }
}
