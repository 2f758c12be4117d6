//! Why an authentication fails.

use thiserror::Error;

/// Reason code explanation of a Failure1 or Failure2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[repr(u8)]
pub enum Failure {
    /// A response is not the one that the secret gives.
    #[error("the secrets differ, or the names")]
    WrongResponse = 1,
    /// No authentication protocol of the other side is known.
    #[error("there is no protocol that both know")]
    NotUsable = 2,
    /// Secure channel concatenation was asked for, which there is not.
    #[error("a secure channel was asked for")]
    Concatenation = 3,
    /// None of the hashes of the other side is known.
    #[error("there is no hash that both know")]
    HashNotUsable = 4,
    /// None of the groups of the other side is known.
    #[error("there is no group that both know")]
    GroupNotUsable = 5,
    /// A message is too short, or contradicts itself.
    #[error("a message is too short, or contradicts itself")]
    IncorrectPayload = 6,
    /// A message came out of order.
    #[error("a message came out of order")]
    IncorrectMessage = 7,
}

impl Failure {
    /// The failure of that code. Codes that are not known are taken for [`Failure::WrongResponse`].
    #[must_use]
    pub fn from_code(code: u8) -> Failure {
        use Failure::*;
        let all = [NotUsable, Concatenation, HashNotUsable, GroupNotUsable, IncorrectPayload, IncorrectMessage];
        all.into_iter().find(|failure| *failure as u8 == code).unwrap_or(WrongResponse)
    }
}
