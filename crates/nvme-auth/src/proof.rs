//! What a response is computed from.
//!
//! ```text
//!   host        HMAC(key, C1' | S1 | T_ID | SC_C | "HostHost"   | NQN of the host      | 00 | NQN of the subsystem)
//!   controller  HMAC(key, C2' | S2 | T_ID | SC_C | "Controller" | NQN of the subsystem | 00 | NQN of the host)
//!   C'          C without a group, else HMAC(H(g^xy), C)
//! ```

use crate::hash::Hash;
use crate::parties::Parties;
use crate::secret::Secret;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// SC_C: no secure channel concatenation.
pub(crate) const NO_CONCATENATION: u8 = 0;

/// What both sides know of an authentication.
pub(crate) struct Transcript<'a> {
    pub(crate) hash: Hash,
    pub(crate) transaction: u16,
    pub(crate) parties: &'a Parties,
    /// g^xy; empty without a group.
    pub(crate) shared: &'a [u8],
}

impl Transcript<'_> {
    /// The host's response to a challenge.
    pub(crate) fn of_host(&self, secret: &Secret, challenge: &[u8], sequence: u32) -> Zeroizing<Vec<u8>> {
        let Parties { host, subsystem } = self.parties;
        self.response(&secret.key(host), challenge, sequence, b"HostHost", host, subsystem)
    }

    /// The controller's response to a challenge.
    pub(crate) fn of_controller(&self, secret: &Secret, challenge: &[u8], sequence: u32) -> Zeroizing<Vec<u8>> {
        let Parties { host, subsystem } = self.parties;
        self.response(&secret.key(subsystem), challenge, sequence, b"Controller", subsystem, host)
    }

    fn response(
        &self,
        key: &[u8],
        challenge: &[u8],
        sequence: u32,
        role: &[u8],
        own: &str,
        other: &str,
    ) -> Zeroizing<Vec<u8>> {
        let augmented = match self.shared {
            [] => Zeroizing::new(challenge.to_vec()),
            shared => self.hash.hmac(&self.hash.digest(shared), &[challenge]),
        };
        let (sequence, transaction) = (sequence.to_le_bytes(), self.transaction.to_le_bytes());
        let parts: [&[u8]; 8] =
            [&augmented, &sequence, &transaction, &[NO_CONCATENATION], role, own.as_bytes(), &[0], other.as_bytes()];
        self.hash.hmac(key, &parts)
    }
}

/// Whether a response is the wanted one, in a time that does not tell where it differs.
pub(crate) fn is_proved(wanted: &[u8], response: &[u8]) -> bool {
    wanted.ct_eq(response).into()
}
