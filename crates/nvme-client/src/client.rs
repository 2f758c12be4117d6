//! The client: what a program calls, and the keep-alive of its connection.

use crate::association::{Association, KEEP_ALIVE_INTERVAL};
use crate::failure::Failure;
use crate::link::Link;
use crate::report::DriveReport;
use crate::request::key_bytes_max;
use crate::time_left::Deadline;
use crate::url::DriveUrl;
use crate::{Error, namespaces, pipeline};
use kvssd_nvme_spec::identify::IdentifyKvNamespace;
use kvssd_nvme_spec::kv::LONG_KEY_BYTES_MAX;
use kvssd_nvme_spec::named::{CacheEntry, CreateNamespace, NamespaceEntry, SetCache};
use kvssd_runtime::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use kvssd_runtime::thread;
use kvssd_types::{Command, NamespaceId, Reply};

/// A drive on the wire. Threads share it: they share its queue, and who waits reads for all.
pub struct Client {
    /// The process that connected; a child that is forked from it has no keep-alive thread.
    process: u32,
    link: Arc<Link>,
    closing: Arc<Closing>,
}

/// Tells the keep-alive thread that the client is dropped.
#[derive(Default)]
struct Closing {
    is_closed: Mutex<bool>,
    changed: Condvar,
}

impl Client {
    /// Connects to the drive at `url`, which must be there now. Changes are refused if it `is_read_only`.
    ///
    /// # Errors
    /// [`Error::Unreachable`], [`Error::NoNamespace`], [`Error::Refused`]; [`Error::InvalidUrl`] where the drive has several
    /// subsystems.
    pub fn connect(url: &DriveUrl, is_read_only: bool) -> Result<Client, Error> {
        let link = Arc::new(Link::connect(url, is_read_only)?);
        let closing = Arc::new(Closing::default());
        let (of, until) = (Arc::downgrade(&link), closing.clone());
        let spawned = thread::Builder::new().name("keep-alive".to_owned()).spawn(move || keep_alive(&of, &until));
        spawned.map_err(|error| Error::Io(format!("{url}: no thread can be started: {error}")))?;
        Ok(Client { process: std::process::id(), link, closing })
    }

    /// Executes a command. If the connection is lost it connects again, and sends the command again where it cannot be
    /// made twice. `None` means that the key is not there; a store says that by [`Error::KeyNotFound`].
    ///
    /// A delete on a drive that refuses feature 20h is preceded by an exist, since the drive does not say whether the
    /// key was there. Another host may come in between.
    ///
    /// # Errors
    /// As [`Error`] says; [`Error::InDoubt`] for a change whose completion was lost for good.
    pub fn execute(&self, namespace: NamespaceId, command: &Command<'_>) -> Result<Option<Reply>, Error> {
        self.link.execute(namespace, command)
    }

    /// Executes commands that do not depend on each other, with as many outstanding as the queue has entries for. Calls
    /// `completed` with the index of each command and its reply, in any order. After the first error no more are
    /// submitted; those that were submitted before may have been executed.
    ///
    /// # Errors
    /// The first, as [`Client::execute`].
    pub fn execute_all(
        &self,
        commands: &mut dyn Iterator<Item = (NamespaceId, Command<'_>)>,
        completed: &mut dyn FnMut(usize, Option<Reply>),
    ) -> Result<(), Error> {
        pipeline::execute_all(&self.link, commands, completed)
    }

    /// Identify of each key-value namespace, in the order of their numbers.
    ///
    /// # Errors
    /// As [`Client::execute`].
    pub fn namespaces(&self) -> Result<Vec<(NamespaceId, IdentifyKvNamespace)>, Error> {
        self.link.query(Association::namespaces)
    }

    /// Bytes of the longest key of the URL's namespace.
    ///
    /// # Errors
    /// As [`Client::execute`].
    pub fn key_bytes_max(&self) -> Result<usize, Error> {
        let namespace = self.link.url.namespace;
        self.link.query(|association, deadline| match association.has_extensions {
            // Of every namespace, whether the URL's is there or not.
            true => Ok(LONG_KEY_BYTES_MAX),
            false => Ok(key_bytes_max(association.limits(namespace, deadline)?)),
        })
    }

    /// The namespaces with their names, in the order of their numbers on the drive; `None` of a drive that does not tell them. The number of
    /// an entry is the id that this client knows it by: another one where its number meant another namespace before.
    ///
    /// # Errors
    /// As [`Client::execute`].
    pub fn named_namespaces(&self) -> Result<Option<Vec<NamespaceEntry>>, Error> {
        self.link.query(Association::named)
    }

    /// Whether an id still means the namespace that had it when this client saw it first, by what the drive has listed since.
    ///
    /// # Errors
    /// [`Error::NoNamespace`] when another one has it.
    pub fn check_meant(&self, namespace: NamespaceId) -> Result<(), Error> {
        self.link.meant.check(namespace)
    }

    /// Makes an empty namespace, once; returns its id.
    ///
    /// # Errors
    /// [`Error::InvalidNamespace`] with what cannot be, [`Error::Refused`] when the drive takes no more namespaces, makes
    /// none, or none for this host, and as [`Client::execute`].
    pub fn create_namespace(&self, wanted: &CreateNamespace) -> Result<NamespaceId, Error> {
        namespaces::create(&self.link, wanted)
    }

    /// Deletes the namespace of that id and name, which is empty for one without.
    ///
    /// # Errors
    /// [`Error::NoNamespace`], and as [`Client::create_namespace`].
    pub fn delete_namespace(&self, namespace: NamespaceId, name: &str) -> Result<(), Error> {
        namespaces::delete(&self.link, namespace, name)
    }

    /// Makes the namespace of that id, whose name is in `wanted`, a cache, another one, or none.
    ///
    /// # Errors
    /// [`Error::NoNamespace`], and as [`Client::create_namespace`].
    pub fn set_cache(&self, namespace: NamespaceId, wanted: &SetCache) -> Result<(), Error> {
        namespaces::set_cache(&self.link, namespace, wanted)
    }

    /// The namespaces that are caches, by their ids.
    ///
    /// # Errors
    /// As [`Client::execute`].
    pub fn caches(&self) -> Result<Vec<CacheEntry>, Error> {
        self.link.query(Association::caches)
    }

    /// What the drive says of itself.
    ///
    /// # Errors
    /// As [`Client::execute`].
    pub fn report(&self) -> Result<DriveReport, Error> {
        self.link.query(Association::report)
    }

    /// Shuts the controller down in order. To drop the client ends the connection just so.
    ///
    /// # Errors
    /// When the controller refuses. A connection that is lost is as good an end.
    pub fn shut_down(self) -> Result<(), Error> {
        match self.link.disconnect().map(|association| association.shut_down()) {
            None | Some(Ok(()) | Err(Failure::Lost(_))) => Ok(()),
            Some(Err(Failure::Final(error))) => Err(error),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // In a forked child the lock may be held for ever, by a thread that the child has not.
        if self.process != std::process::id() {
            return;
        }
        *self.closing.is_closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.closing.changed.notify_all();
    }
}

/// Sends a Keep Alive at every interval, while there is a connection.
fn keep_alive(link: &Weak<Link>, closing: &Closing) {
    let mut is_closed = closing.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
    while !*is_closed {
        let waited = closing.changed.wait_timeout(is_closed, KEEP_ALIVE_INTERVAL);
        is_closed = waited.unwrap_or_else(PoisonError::into_inner).0;
        let Some(link) = link.upgrade().filter(|_| !*is_closed) else { return };
        if let Some(association) = link.connected()
            && let Err(lost) = association.keep_alive(&Deadline::within(KEEP_ALIVE_INTERVAL))
        {
            link.lose(&association, &lost.why);
        }
    }
}
