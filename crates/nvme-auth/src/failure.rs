//! Why an authentication fails.

use thiserror::Error;

/// Reason code explanation of a Failure1 or Failure2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// A response is not the one that the secret gives.
    #[error("the secrets differ, or the names")]
    WrongResponse,
    /// The host wants a proof of the controller, which has no secret for it.
    #[error("the host wants a proof of the drive, which has no secret of its own for that host")]
    NoControllerSecret,
    /// No authentication protocol of the other side is known.
    #[error("there is no protocol that both know")]
    NotUsable,
    /// Secure channel concatenation was asked for, which there is not.
    #[error("a secure channel was asked for")]
    Concatenation,
    /// None of the hashes of the other side is known.
    #[error("there is no hash that both know")]
    HashNotUsable,
    /// None of the groups of the other side is known.
    #[error("there is no group that both know")]
    GroupNotUsable,
    /// A message is too short, or contradicts itself.
    #[error("a message is too short, or contradicts itself")]
    IncorrectPayload,
    /// A message came out of order.
    #[error("a message came out of order")]
    IncorrectMessage,
}

impl Failure {
    /// The code of its explanation. Which secret is missing is not told to the peer.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Failure::WrongResponse | Failure::NoControllerSecret => 1,
            Failure::NotUsable => 2,
            Failure::Concatenation => 3,
            Failure::HashNotUsable => 4,
            Failure::GroupNotUsable => 5,
            Failure::IncorrectPayload => 6,
            Failure::IncorrectMessage => 7,
        }
    }

    /// The failure of that code. Codes that are not known are taken for [`Failure::WrongResponse`].
    #[must_use]
    pub fn from_code(code: u8) -> Failure {
        use Failure::*;
        let all = [NotUsable, Concatenation, HashNotUsable, GroupNotUsable, IncorrectPayload, IncorrectMessage];
        all.into_iter().find(|failure| failure.code() == code).unwrap_or(WrongResponse)
    }
}
