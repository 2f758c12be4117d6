//! What a store needs of a drive, wherever that is.
//!
//! ```text
//!   Store, Namespace, Keys, Pairs, Port         one face
//!     |
//!   Backend      execute, execute_each, bulk, namespaces, stats, close
//!     |                        |
//!   Image (image.rs)         Remote (remote.rs): the NVMe client
//! ```

use crate::{Batch, Error, Stats};
use kvssd_ftl::{NamespaceAttributes, NamespaceInfo};
use kvssd_types::{Command, NamespaceId, Reply};

/// A drive under a store. Threads call it at the same time. A drive that cannot keep what a call promises refuses it
/// ([`Error::Refused`]); none does something weaker in its place.
pub(crate) trait Backend: Send + Sync {
    /// What the drive answers, to a change when that is safe. None when the key is not there, but to a store, whose condition that is.
    fn execute(&self, namespace: NamespaceId, command: Command<'_>) -> Result<Option<Reply>, Error>;

    /// Executes commands of which none waits for another, as many at a time as the drive takes, and shows each answer with the
    /// number of its command, in any order. Ends at the first error; commands behind it may have been executed.
    fn execute_each(
        &self,
        commands: &mut dyn Iterator<Item = Result<(NamespaceId, Command<'_>), Error>>,
        answered: &mut dyn FnMut(usize, Option<Reply>),
    ) -> Result<(), Error> {
        for (number, command) in commands.enumerate() {
            let (namespace, command) = command?;
            answered(number, self.execute(namespace, command)?);
        }
        Ok(())
    }

    /// Makes the changes of a batch, not all or none; returns when they are safe. `own` is the namespace of those without one.
    fn bulk(&self, batch: &Batch, own: NamespaceId) -> Result<(), Error>;

    /// The namespaces, in the order of their numbers.
    fn namespaces(&self) -> Result<Vec<NamespaceInfo>, Error>;

    /// Makes a namespace.
    fn create_namespace(&self, attributes: NamespaceAttributes) -> Result<NamespaceId, Error>;

    /// Deletes a namespace other than the first.
    fn delete_namespace(&self, id: NamespaceId) -> Result<(), Error>;

    /// How full it is, and what it did.
    fn stats(&self) -> Result<Stats, Error>;

    /// Ends in order.
    fn close(self: Box<Self>) -> Result<(), Error>;
}
