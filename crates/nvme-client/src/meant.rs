//! Which namespace a number means: the one that had it when this client first saw it, whatever has it now.
//!
//! ```text
//!   listed       2 is "a"      handles of "a" have number 2
//!   another host deletes "a", and makes "b", which gets number 2
//!   the old controller         the drive refuses 2 there until this client looks (page C1h, without Retain)
//!   a new controller, a list   2 is "b", or an "a" of another birth -> 2 is refused here from now on
//! ```
//!
//! So a change that was meant for "a" comes to "b" neither by a handle that was kept nor by being sent again.

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
    /// Names, and births where they are known: 0 where they are not.
    names: BTreeMap<u32, (String, u32)>,
    /// Numbers that others have now.
    lost: BTreeSet<u32>,
}

/// What a list of namespaces says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing that was not known.
    Known,
    /// Numbers that were not seen before.
    New,
    /// A number that means another one.
    Another,
}

impl Meant {
    /// Whether any namespace was seen.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().names.is_empty()
    }

    /// Compares a list of the drive's with what was seen, and notes what was not.
    pub(crate) fn see(&self, listed: &[NamespaceEntry]) -> Seen {
        let mut state = self.lock();
        let mut seen = Seen::Known;
        for entry in listed {
            let (number, name) = (entry.number.get(), read_name(&entry.name).unwrap_or_default());
            let birth = entry.birth();
            match state.names.get_mut(&number) {
                Some((known, born)) if known == name && (*born == birth || *born == 0 || birth == 0) => {
                    *born = birth.max(*born);
                }
                Some(_) => {
                    state.lost.insert(number);
                    seen = Seen::Another;
                }
                None => {
                    state.names.insert(number, (name.to_owned(), birth));
                    seen = if seen == Seen::Known { Seen::New } else { seen };
                }
            }
        }
        seen
    }

    /// This client has made one.
    pub(crate) fn made(&self, id: NamespaceId, name: &str) {
        let mut state = self.lock();
        state.lost.remove(&id.0);
        state.names.insert(id.0, (name.to_owned(), 0));
    }

    /// This client has deleted one.
    pub(crate) fn deleted(&self, id: NamespaceId) {
        let mut state = self.lock();
        state.names.remove(&id.0);
        state.lost.remove(&id.0);
    }

    /// Whether a number still means what it did.
    pub(crate) fn check(&self, id: NamespaceId) -> Result<(), Error> {
        let state = self.lock();
        match state.names.get(&id.0).filter(|_| state.lost.contains(&id.0)) {
            Some((name, _)) => Err(Error::NoNamespace(format!(
                "{id} {name:?} any more: another host deleted it, and another one has its number; open the drive again for that one"
            ))),
            None => Ok(()),
        }
    }

    /// A panic leaves the state whole, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

    #[test]
    fn a_number_means_what_had_it_first() {
        let (meant, two) = (Meant::default(), NamespaceId(2));
        assert!(meant.is_empty());
        assert_eq!(meant.see(&[entry(1, ""), entry(2, "a")]), Seen::New);
        assert_eq!(meant.see(&[entry(1, "")]), Seen::Known, "it is gone, and nobody has its number");
        assert!(meant.check(two).is_ok());
        assert_eq!(meant.see(&[entry(1, ""), entry(2, "b"), entry(3, "c")]), Seen::Another);
        let refused = meant.check(two).unwrap_err().to_string();
        assert!(refused.contains("\"a\"") && refused.contains("open the drive again"), "{refused}");
        assert!(meant.check(NamespaceId::FIRST).is_ok() && meant.check(NamespaceId(3)).is_ok());
        assert_eq!(meant.see(&[entry(2, "a")]), Seen::Known);
        assert!(meant.check(two).is_err(), "one that is called so again may be another one");
        meant.made(two, "d");
        assert!(meant.check(two).is_ok());
        meant.deleted(two);
        assert_eq!(meant.see(&[entry(2, "e")]), Seen::New);
        assert!(meant.check(two).is_ok());
        // Also one that was another's.
        assert_eq!(meant.see(&[entry(2, "f")]), Seen::Another);
        meant.deleted(two);
        assert_eq!(meant.see(&[entry(2, "g")]), Seen::New);
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
        meant.made(two, "a");
        // A drive that says no births has the same for all it tells.
        assert_eq!([0, 7, 0, 7].map(|birth| meant.see(&born(birth))), [Seen::Known; 4]);
        assert_eq!(meant.see(&born(9)), Seen::Another);
        assert!(meant.check(two).is_err());
    }
}
