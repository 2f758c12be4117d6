//! What goes wrong with a controller.

use crate::Error;
use crate::connection_lost::ConnectionLost;

/// Why a controller did not do something.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Another connection may help.
    Lost(ConnectionLost),
    /// The controller would answer the same again.
    Final(Error),
}

impl Failure {
    /// Whether there is no such namespace, or not any more.
    pub(crate) fn is_no_namespace(&self) -> bool {
        matches!(self, Failure::Final(Error::NoNamespace(_)))
    }
}

impl From<ConnectionLost> for Failure {
    fn from(lost: ConnectionLost) -> Self {
        Failure::Lost(lost)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Final(error)
    }
}
