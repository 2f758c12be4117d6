//! Namespaces by their names: made, deleted and listed, on a drive that has commands for it ([`kvssd_nvme_spec::named`]).
//!
//! | the answer was lost, and then | a namespace is made | a namespace is deleted |
//! |---|---|---|
//! | none is called so | sent again | done |
//! | one is called so | in doubt: it may be another host's | in doubt: it may be another one |
//!
//! Nobody makes what was left on the old controller: the drive refuses it there, since this client has a new one.

use crate::Error;
use crate::association::Association;
use crate::failure::Failure;
use crate::link::Link;
use crate::meant::Place;
use crate::queue_pair::Payload;
use crate::time_left::Deadline;
use kvssd_nvme_spec::admin::AdminCommand;
use kvssd_nvme_spec::named::{CreateNamespace, NAME_BYTES_MAX, NamespaceEntry, SetCache, read_name, set_meant_birth};
use kvssd_nvme_spec::{Status, write_text};
use kvssd_types::NamespaceId;
use zerocopy::IntoBytes;

/// A change of the namespaces.
enum Change<'a> {
    Create(&'a CreateNamespace),
    Delete(NamespaceId, &'a str),
    Cache(NamespaceId, &'a SetCache),
}

/// Makes a namespace.
pub(crate) fn create(link: &Link, wanted: &CreateNamespace) -> Result<NamespaceId, Error> {
    perform(link, &Change::Create(wanted))
}

/// Deletes the namespace of that id and name, which is empty for one without.
pub(crate) fn delete(link: &Link, id: NamespaceId, name: &str) -> Result<(), Error> {
    perform(link, &Change::Delete(id, name)).map(|_| ())
}

/// Makes the namespace of that id a cache, another one, or none. To do so again changes nothing.
pub(crate) fn set_cache(link: &Link, id: NamespaceId, wanted: &SetCache) -> Result<(), Error> {
    perform(link, &Change::Cache(id, wanted)).map(|_| ())
}

fn perform(link: &Link, change: &Change<'_>) -> Result<NamespaceId, Error> {
    if link.is_read_only {
        return Err(Error::ReadOnly);
    }
    let deadline = &link.deadline();
    let mut may_be_made = false;
    let doubt = |may_be_made: bool, error: Error| match error {
        error if !may_be_made => error,
        error => change.doubt(link, &error.to_string()),
    };
    loop {
        let association = link.association(deadline).map_err(|error| doubt(may_be_made, error))?;
        let listed = association.named(deadline);
        let listed = link.unless_lost(&association, listed, deadline).map_err(|error| doubt(may_be_made, error))?;
        let Some(listed) = listed else { continue };
        let listed = listed.ok_or_else(|| Error::not_in_the_command_set("namespaces that are made and deleted"))?;
        let found = listed.iter().find(|entry| change.is_of(entry));
        match (change, found.is_some()) {
            (Change::Cache(..), true) => {}
            (Change::Cache(id, _), false) => return Err(gone(link, *id)),
            (_, true) if may_be_made => return Err(change.doubt(link, "there is one that is called so")),
            (Change::Delete(id, _), false) if may_be_made => return Ok(*id),
            (Change::Delete(id, _), false) => return Err(gone(link, *id)),
            (Change::Create(_), true) => return Err(taken()),
            // The drive may not know that the lost one is to be refused.
            (Change::Create(_), false) if may_be_made && association.recognition.is_none() => {
                return Err(change.doubt(link, "the drive does not number changes"));
            }
            (Change::Create(_), false) | (Change::Delete(..), true) => {}
        }
        match change.send(link, &association, found, deadline) {
            Ok(place) => return Ok(change.note(link, place)),
            Err(Failure::Final(Error::InvalidNamespace(_))) if may_be_made && !matches!(change, Change::Cache(..)) => {
                return Err(change.doubt(link, "there is one that is called so"));
            }
            Err(Failure::Final(error)) => return Err(error),
            Err(Failure::Lost(lost)) => {
                link.lose(&association, &lost.why);
                may_be_made |= !lost.is_unsent;
                link.check_deadline(deadline, &lost.why).map_err(|error| doubt(may_be_made, error))?;
            }
        }
    }
}

impl Change<'_> {
    fn is_of(&self, entry: &NamespaceEntry) -> bool {
        match self {
            Change::Create(wanted) => read_name(&entry.name) == read_name(&wanted.name),
            Change::Delete(id, name) => {
                entry.number.get() == id.0 && read_name(&entry.name).unwrap_or_default() == *name
            }
            Change::Cache(id, wanted) => {
                entry.number.get() == id.0 && read_name(&entry.name) == read_name(&wanted.name)
            }
        }
    }

    /// Notes what this client did with the namespace at that place; returns its id.
    fn note(&self, link: &Link, place: Place) -> NamespaceId {
        match self {
            Change::Create(wanted) => link.meant.made(place, read_name(&wanted.name).unwrap_or_default()),
            Change::Delete(id, _) => {
                link.meant.deleted(*id);
                *id
            }
            Change::Cache(id, _) => *id,
        }
    }

    /// Sends it, for the namespace that was found; returns where that is.
    fn send(
        &self,
        link: &Link,
        association: &Association,
        found: Option<&NamespaceEntry>,
        deadline: &Deadline,
    ) -> Result<Place, Failure> {
        // Another thread may have seen since that it is another's.
        let number = |id: NamespaceId| Ok::<_, Error>(link.meant.place(id)?.map_or(id, |place| place.number).0);
        let (mut entry, data) = match self {
            Change::Create(wanted) => (AdminCommand::CreateNamespace.entry(0), wanted.as_bytes().to_vec()),
            Change::Delete(id, name) => {
                let mut data = vec![0; NAME_BYTES_MAX];
                write_text(&mut data, name);
                (AdminCommand::DeleteNamespace.entry(number(*id)?), data)
            }
            Change::Cache(id, wanted) => (AdminCommand::SetCache.entry(number(*id)?), wanted.as_bytes().to_vec()),
        };
        if let Some(found) = found {
            set_meant_birth(&mut entry, found.birth());
        }
        let completion = association.call_admin(&entry, &Payload::Out(data.into()), deadline)?.entry;
        let birth = Some((completion.result() >> 32) as u32).filter(|birth| *birth > 0);
        let place = Place { number: NamespaceId(completion.dword0.get()), birth };
        Err(match (completion.status(), self) {
            (Ok(Status::Success), _) => return Ok(place),
            (Ok(Status::OperationDenied), Change::Delete(NamespaceId(1), _)) => {
                Error::InvalidNamespace("namespace 1 stays: what names no namespace is in it".to_owned())
            }
            (Ok(Status::OperationDenied), _) => {
                Error::Refused("the drive lets this host make and delete no namespaces".to_owned())
            }
            (Ok(Status::InvalidOpcode), Change::Cache(..)) => Error::Refused("the drive has no caches".to_owned()),
            (Ok(Status::InvalidField), Change::Cache(..)) => {
                let why = "the drive makes no such cache: what has pairs stays a cache, or none, and its log says what else \
                           cannot be";
                Error::InvalidNamespace(why.to_owned())
            }
            (Ok(Status::NamespaceNameTaken), _) => taken(),
            (Ok(Status::NamespaceIdUnavailable), _) => {
                Error::TooManyNamespaces("the drive takes no more namespaces: delete one".to_owned())
            }
            (Ok(Status::InvalidField), Change::Create(_)) => {
                let why = "the drive makes no such namespace: its name, index or quota cannot be, and the drive's log \
                           says which";
                Error::InvalidNamespace(why.to_owned())
            }
            (Ok(Status::InvalidField | Status::InvalidNamespace), Change::Delete(id, _) | Change::Cache(id, _)) => {
                Error::NoNamespace(id.to_string())
            }
            (Ok(Status::InternalError), _) => {
                let why = "the drive has failed: it is not known whether that was done";
                Error::InDoubt(why.to_owned())
            }
            // It has another controller of this client; a new one is asked.
            (Ok(Status::ClientSuperseded), _) => {
                return Err(crate::connection_lost::ConnectionLost::new("its controller was left").into());
            }
            (Ok(status), _) => Error::Refused(format!("the drive says: {status}")),
            (Err(code), _) => Error::Refused(format!("the drive answers with status {code:03x}h")),
        }
        .into())
    }

    fn doubt(&self, link: &Link, why: &str) -> Error {
        let what = match self {
            Change::Create(_) => "the creation of a namespace",
            Change::Delete(..) => "the deletion of a namespace",
            Change::Cache(..) => "the making of a cache",
        };
        let url = &link.url;
        Error::InDoubt(format!("{url}: the answer to {what} was lost ({why}); it is not known whether it was done"))
    }
}

/// Why there is nothing to change at an id.
fn gone(link: &Link, id: NamespaceId) -> Error {
    link.meant.check(id).err().unwrap_or_else(|| Error::NoNamespace(id.to_string()))
}

fn taken() -> Error {
    Error::InvalidNamespace("another namespace has that name".to_owned())
}
