//! A drive on the wire.

mod url;

pub use url::{Digests, DriveUrl};

use crate::backend::Backend;
use crate::{Batch, Error, Stats};
use kvssd_ftl::{NamespaceAttributes, NamespaceInfo};
use kvssd_types::{Command, NamespaceId, Reply};

/// A drive on the wire.
pub(crate) struct Remote;

impl Remote {
    /// Connects.
    pub(crate) fn connect(url: &DriveUrl, _is_read_only: bool) -> Result<Remote, Error> {
        Err(Error::Unreachable { why: format!("{url}: drives on the wire are not reached yet") })
    }
}

impl Backend for Remote {
    fn execute(&self, _namespace: NamespaceId, _command: Command<'_>) -> Result<Option<Reply>, Error> {
        Err(none())
    }

    fn bulk(&self, _batch: &Batch, _own: NamespaceId) -> Result<(), Error> {
        Err(none())
    }

    fn namespaces(&self) -> Result<Vec<NamespaceInfo>, Error> {
        Err(none())
    }

    fn create_namespace(&self, _attributes: NamespaceAttributes) -> Result<NamespaceId, Error> {
        Err(none())
    }

    fn delete_namespace(&self, _id: NamespaceId) -> Result<(), Error> {
        Err(none())
    }

    fn stats(&self) -> Result<Stats, Error> {
        Err(none())
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        Err(none())
    }
}

fn none() -> Error {
    Error::Unreachable { why: "drives on the wire are not reached yet".to_owned() }
}
