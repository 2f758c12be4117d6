//! Why a connection is gone, and whether it was gone before the command.

use crate::queue_pair::ProtocolError;
use std::io;

/// Why a connection is gone.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionLost {
    pub(crate) why: String,
    /// The command was not sent.
    pub(crate) is_unsent: bool,
}

impl ConnectionLost {
    pub(crate) fn new(why: &str) -> ConnectionLost {
        ConnectionLost { why: why.to_owned(), is_unsent: false }
    }
}

impl From<io::Error> for ConnectionLost {
    fn from(error: io::Error) -> Self {
        ConnectionLost::new(&error.to_string())
    }
}

impl From<ProtocolError> for ConnectionLost {
    fn from(error: ProtocolError) -> Self {
        ConnectionLost::new(&error.to_string())
    }
}
