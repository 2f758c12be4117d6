//! What goes wrong with a controller.

use crate::Error;
use crate::connection_lost::ConnectionLost;
use crate::url::DriveUrl;

/// Why a controller did not do something.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Another connection may help.
    Lost(ConnectionLost),
    /// The controller would answer the same again.
    Final(Error),
}

impl Failure {
    /// The same of a drive at that URL: a program may have several.
    pub(crate) fn at(self, url: &DriveUrl) -> Failure {
        match self {
            Failure::Final(Error::Refused(why)) => Failure::Final(Error::Refused(format!("{url}: {why}"))),
            other => other,
        }
    }

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
