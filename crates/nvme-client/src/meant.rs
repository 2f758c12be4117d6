//! Which namespace a number means: the one that had it when this client first saw it, whatever has it now.
//!
//! ```text
//!   listed       2 is "a", of birth 7      handles of "a" have number 2
//!   another host deletes "a", and makes "b", which gets number 2 and birth 9
//!   Store, number 2, birth 7               the drive refuses it, whenever it comes and by whatever connection
//!   a list, a new controller               2 is "b", or an "a" of another birth -> 2 is refused here from now on
//! ```
//!
//! Every command carries the birth of its namespace, and the drive compares it while nobody can change the namespaces: so no
//! change between this table and the drive leads a command elsewhere. A refusal here comes earlier and explains more.
//! A drive of an earlier release takes no births; there a number means what its controller saw first.
//!
//! It also tells which drive an address means: the one that answered first. Another drive there is refused, whatever its namespaces.

use crate::Error;
use kvssd_nvme_spec::named::{NamespaceEntry, read_name};
use kvssd_runtime::sync::{Mutex, MutexGuard, PoisonError};
use kvssd_types::NamespaceId;
use std::collections::{BTreeMap, BTreeSet};

/// The namespaces that a client has seen.
#[derive(Debug, Default)]
pub(crate) struct Meant {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The serial number of the drive.
    drive: Option<[u8; 20]>,
    /// Names, and what the drive says of their births; `None` before it has.
    names: BTreeMap<u32, (String, Option<u32>)>,
    /// Numbers that other namespaces have now.
    lost: BTreeSet<u32>,
    /// Namespaces that this client has made and deleted.
    changes: u64,
}

/// A moment before a list was asked for. What this client has made or deleted since may not be in the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    changes: u64,
}

impl Meant {
    /// Whether the drive with that serial number is the one that was connected to first.
    pub(crate) fn is_drive(&self, serial: [u8; 20]) -> bool {
        *self.lock().drive.get_or_insert(serial) == serial
    }

    /// Whether any namespace was seen.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().names.is_empty()
    }

    /// Takes the time before a list is asked for.
    pub(crate) fn ask(&self) -> Asked {
        Asked { changes: self.lock().changes }
    }

    /// Compares a list from the drive with the known namespaces, unless it is too old.
    pub(crate) fn compare(&self, asked: Asked, listed: &[NamespaceEntry]) {
        self.lock().compare(asked, listed);
    }

    /// Compares a list from the drive with the known namespaces, and notes new ones. Returns `false` if the list is too old for that.
    pub(crate) fn see(&self, asked: Asked, listed: &[NamespaceEntry]) -> bool {
        let mut state = self.lock();
        if !state.compare(asked, listed) {
            return false;
        }
        for entry in listed {
            let seen = || (name_of(entry).to_owned(), Some(entry.birth()));
            state.names.entry(entry.number.get()).or_insert_with(seen);
        }
        true
    }

    /// Notes that this client has made a namespace; a drive of an earlier release does not say its birth.
    pub(crate) fn made(&self, id: NamespaceId, name: &str, birth: Option<u32>) {
        let mut state = self.lock();
        state.changes += 1;
        state.lost.remove(&id.0);
        state.names.insert(id.0, (name.to_owned(), birth));
    }

    /// Notes that this client has deleted a namespace.
    pub(crate) fn deleted(&self, id: NamespaceId) {
        let mut state = self.lock();
        state.changes += 1;
        state.names.remove(&id.0);
        state.lost.remove(&id.0);
    }

    /// Whether a number still means what it did.
    pub(crate) fn check(&self, id: NamespaceId) -> Result<(), Error> {
        self.birth(id).map(|_| ())
    }

    /// The birth that a number means; `None` if that was not seen yet, an error if the number means another one now.
    pub(crate) fn birth(&self, id: NamespaceId) -> Result<Option<u32>, Error> {
        let state = self.lock();
        match state.names.get(&id.0) {
            Some((name, _)) if state.lost.contains(&id.0) => Err(Error::NoNamespace(format!(
                "{id} {name:?} any more: another host deleted it, and another one has its number; open the drive again for that one"
            ))),
            known => Ok(known.and_then(|(_, birth)| *birth)),
        }
    }

    /// A panic leaves the state whole, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn compare(&mut self, asked: Asked, listed: &[NamespaceEntry]) -> bool {
        if asked.changes != self.changes {
            return false;
        }
        for entry in listed {
            match self.names.get_mut(&entry.number.get()) {
                Some((name, birth)) if name == name_of(entry) && birth.is_none_or(|birth| birth == entry.birth()) => {
                    *birth = Some(entry.birth());
                }
                Some(_) => {
                    self.lost.insert(entry.number.get());
                }
                None => {}
            }
        }
        true
    }
}

fn name_of(entry: &NamespaceEntry) -> &str {
    read_name(&entry.name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_nvme_spec::write_text;

    fn entry(number: u32, name: &str) -> NamespaceEntry {
        let mut entry = NamespaceEntry::zeroed();
        entry.number = number.into();
        write_text(&mut entry.name, name);
        entry
    }

    fn see(meant: &Meant, listed: &[NamespaceEntry]) {
        assert!(meant.see(meant.ask(), listed));
    }

    fn compare(meant: &Meant, listed: &[NamespaceEntry]) {
        meant.compare(meant.ask(), listed);
    }

    #[test]
    fn a_list_from_before_a_change_says_nothing_of_it() {
        let (meant, two) = (Meant::default(), NamespaceId(2));
        see(&meant, &[entry(2, "a")]);
        let asked = meant.ask();
        meant.deleted(two);
        assert!(!meant.see(asked, &[entry(2, "a")]), "it is deleted");
        meant.made(two, "b", Some(5));
        meant.compare(asked, &[entry(2, "a")]);
        assert!(!meant.see(asked, &[entry(2, "a")]));
        assert_eq!(meant.birth(two), Ok(Some(5)), "nobody else has its number");
    }

    #[test]
    fn a_number_means_what_had_it_first() {
        let (meant, two) = (Meant::default(), NamespaceId(2));
        assert!(meant.is_empty());
        see(&meant, &[entry(1, ""), entry(2, "a")]);
        see(&meant, &[entry(1, "")]);
        assert!(meant.check(two).is_ok(), "it is gone, and nobody has its number");
        compare(&meant, &[entry(1, ""), entry(2, "b"), entry(3, "c")]);
        let refused = meant.check(two).unwrap_err().to_string();
        assert!(refused.contains("\"a\"") && refused.contains("open the drive again"), "{refused}");
        assert_eq!((meant.birth(NamespaceId::FIRST), meant.birth(NamespaceId(3))), (Ok(Some(0)), Ok(None)));
        see(&meant, &[entry(2, "a"), entry(3, "d")]);
        assert!(meant.check(two).is_err(), "one that is called so again may be another one");
        assert_eq!(meant.birth(NamespaceId(3)), Ok(Some(0)), "what was compared with was not noted");
        meant.made(two, "d", Some(5));
        assert_eq!(meant.birth(two), Ok(Some(5)));
        meant.deleted(two);
        see(&meant, &[entry(2, "e")]);
        assert!(meant.check(two).is_ok());
        // Also one that was another's.
        see(&meant, &[entry(2, "f")]);
        assert!(meant.check(two).is_err());
        meant.deleted(two);
        see(&meant, &[entry(2, "g")]);
        assert!(meant.check(two).is_ok());
    }

    #[test]
    fn one_that_is_called_so_again_is_another_one() {
        let (meant, two) = (Meant::default(), NamespaceId(2));
        let born = |birth| {
            let mut entry = entry(2, "a");
            entry.set_birth(birth);
            [entry]
        };
        meant.made(two, "a", None);
        assert_eq!(meant.birth(two), Ok(None));
        compare(&meant, &born(7));
        see(&meant, &born(7));
        assert_eq!(meant.birth(two), Ok(Some(7)));
        see(&meant, &born(9));
        assert!(meant.check(two).is_err());
        // What an earlier release made has no birth, and what is made in its place has one.
        meant.deleted(two);
        see(&meant, &born(0));
        see(&meant, &born(1));
        assert!(meant.check(two).is_err());
    }
}
