//! Why a connection is gone, and whether it was gone before the command.

use crate::queue_pair::ProtocolError;
use std::io::{self, ErrorKind};

/// Why a connection is gone.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionLost {
    pub(crate) why: String,
    /// The command was not sent.
    pub(crate) is_unsent: bool,
    /// It was cut, by whatever lies between or by a service that ended: not by what was said.
    pub(crate) is_cut: bool,
    /// The other side ended it before it was made, as a drive does with too many connections.
    pub(crate) is_turned_away: bool,
}

impl ConnectionLost {
    /// The other side ended it, `when`.
    pub(crate) fn turned_away(when: &str) -> ConnectionLost {
        let why = format!("it ended the connection {when}: it may have too many connections, or be something else");
        ConnectionLost { is_turned_away: true, ..ConnectionLost::new(&why) }
    }

    pub(crate) fn new(why: &str) -> ConnectionLost {
        ConnectionLost { why: why.to_owned(), is_unsent: false, is_cut: false, is_turned_away: false }
    }
}

impl From<io::Error> for ConnectionLost {
    fn from(error: io::Error) -> Self {
        let is_cut =
            matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe);
        ConnectionLost { is_cut, ..ConnectionLost::new(&error.to_string()) }
    }
}

impl From<ProtocolError> for ConnectionLost {
    fn from(error: ProtocolError) -> Self {
        ConnectionLost::new(&error.to_string())
    }
}
