//! What goes wrong with a session. It is over then.

use s2n_tls::error::{Error, ErrorType};
use thiserror::Error;

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TlsError {
    /// The peer said so, by an alert.
    #[error("the other side ended it with alert {0}{reason}", reason = reason(*.0))]
    Alert(u8),
    /// The peer sent what it may not.
    #[error("{0}")]
    Protocol(String),
    /// The stream of the peer ended within a session.
    #[error("the connection ended without a word")]
    Closed,
    /// The library failed, or was asked for what it cannot do.
    #[error("the TLS library says: {0}")]
    Library(String),
}

/// The alerts that tell something about keys.
fn reason(alert: u8) -> &'static str {
    match alert {
        40 => " (handshake failure)",
        51 => " (decrypt error)",
        70 => " (protocol version)",
        115 => " (unknown identity)",
        _ => "",
    }
}

impl TlsError {
    /// An error of the library; `alert` is what the peer has sent.
    pub(crate) fn of(error: &Error, alert: Option<u8>) -> TlsError {
        match error.kind() {
            ErrorType::Alert => alert.map_or_else(|| TlsError::Protocol(error.message().to_owned()), TlsError::Alert),
            ErrorType::ConnectionClosed => TlsError::Closed,
            ErrorType::ProtocolError => TlsError::Protocol(error.message().to_owned()),
            _ => TlsError::Library(error.message().to_owned()),
        }
    }
}
