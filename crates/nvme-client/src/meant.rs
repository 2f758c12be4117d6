//! Which namespace an id means: the one that had it when this client first saw it, whatever has its number now.
//!
//! ```text
//!   listed       number 2 is "a", of birth 7             id 2 means "a"
//!   another host deletes "a", and makes "b", which gets number 2 and birth 9
//!   Store, id 2                                          sent with birth 7: the drive refuses it, whenever it comes
//!   a list, a new controller                             id 2 is refused here from now on; id 1001 means "b"
//!   Store, id 1001                                       sent to number 2, with birth 9
//! ```
//!
//! An id is the number of the drive where that never meant another namespace here. So a handle, a batch or a transaction that keeps
//! an id comes to its own namespace or to none, and who looks up a name has what is called so now.
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
use std::collections::BTreeMap;

/// The first id that is no number of a drive: a drive of ours has numbers up to 16.
const LENT_FROM: u32 = 1001;

/// The namespaces that a client has seen.
#[derive(Debug, Default)]
pub(crate) struct Meant {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The serial number of the drive.
    drive: Option<[u8; 20]>,
    /// Namespaces by their ids.
    known: BTreeMap<u32, Known>,
    /// Ids that were given beside numbers.
    lent: u32,
    /// Namespaces that this client has made and deleted.
    changes: u64,
}

/// A namespace that was seen.
#[derive(Debug)]
struct Known {
    place: Place,
    name: String,
    /// Another one has its number now.
    is_lost: bool,
}

/// Where a namespace is on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) number: NamespaceId,
    /// What the drive says of its birth; `None` before it has, and of a drive that tells none.
    pub(crate) birth: Option<u32>,
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
        self.lock().known.is_empty()
    }

    /// Takes the time before a list is asked for.
    pub(crate) fn ask(&self) -> Asked {
        Asked { changes: self.lock().changes }
    }

    /// Compares a list from the drive with the known namespaces, unless it is too old.
    pub(crate) fn compare(&self, asked: Asked, listed: &[NamespaceEntry]) {
        self.lock().compare(asked, listed);
    }

    /// Compares a list from the drive with the known namespaces, notes new ones, and puts ids in the place of numbers. Returns `false` if the
    /// list is too old for that.
    pub(crate) fn see(&self, asked: Asked, listed: &mut [NamespaceEntry]) -> bool {
        let mut state = self.lock();
        if !state.compare(asked, listed) {
            return false;
        }
        for entry in listed {
            let number = NamespaceId(entry.number.get());
            let known = state.id_of(number);
            let seen = Place { number, birth: Some(entry.birth()) };
            entry.number = known.unwrap_or_else(|| state.add(seen, name_of(entry))).0.into();
        }
        true
    }

    /// Notes that this client has made a namespace, and returns its id. A drive of an earlier release does not say its birth.
    pub(crate) fn made(&self, place: Place, name: &str) -> NamespaceId {
        let mut state = self.lock();
        state.changes += 1;
        if let Some(id) = state.id_of(place.number) {
            let known = &state.known[&id.0];
            if known.name == name && place.birth.is_none_or(|birth| known.place.birth == Some(birth)) {
                // Another thread has seen it in a list already.
                return id;
            }
            // What had the number before is gone, whoever deleted it.
            state.lose(id);
        }
        state.add(place, name)
    }

    /// Notes that this client has deleted a namespace. What gets its number may get its id as well: this client knows of the deletion.
    pub(crate) fn deleted(&self, id: NamespaceId) {
        let mut state = self.lock();
        state.changes += 1;
        state.known.remove(&id.0);
    }

    /// Whether an id still means what it did.
    pub(crate) fn check(&self, id: NamespaceId) -> Result<(), Error> {
        self.place(id).map(|_| ())
    }

    /// The namespace that an id means; `None` if none was seen yet, an error if another one has its number now.
    pub(crate) fn place(&self, id: NamespaceId) -> Result<Option<Place>, Error> {
        const WHY: &str = "another host deleted it; look up what is there now, or open the drive again";
        let state = self.lock();
        match state.known.get(&id.0) {
            Some(known) if known.is_lost => Err(Error::NoNamespace(format!("{id} {:?} any more: {WHY}", known.name))),
            Some(known) => Ok(Some(known.place)),
            None if (LENT_FROM..=state.last_lent()).contains(&id.0) => {
                Err(Error::NoNamespace(format!("{id} any more: {WHY}")))
            }
            None => Ok(None),
        }
    }

    /// The id of what has a number now.
    pub(crate) fn id_of(&self, number: u32) -> u32 {
        self.lock().id_of(NamespaceId(number)).map_or(number, |id| id.0)
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
            let Some(id) = self.id_of(NamespaceId(entry.number.get())) else { continue };
            let known = self.known.get_mut(&id.0).expect("it was found");
            if known.name == name_of(entry) && known.place.birth.is_none_or(|birth| birth == entry.birth()) {
                known.place.birth = Some(entry.birth());
            } else {
                self.lose(id);
            }
        }
        true
    }

    fn id_of(&self, number: NamespaceId) -> Option<NamespaceId> {
        let mut known = self.known.iter();
        known.find(|(_, known)| known.place.number == number && !known.is_lost).map(|(&id, _)| NamespaceId(id))
    }

    /// Another namespace has its number. A lent id that is not known any more is never given again.
    fn lose(&mut self, id: NamespaceId) {
        if id.0 >= LENT_FROM {
            self.known.remove(&id.0);
        } else if let Some(known) = self.known.get_mut(&id.0) {
            known.is_lost = true;
        }
    }

    fn last_lent(&self) -> u32 {
        LENT_FROM - 1 + self.lent
    }

    /// Gives a namespace its id.
    fn add(&mut self, place: Place, name: &str) -> NamespaceId {
        let number = place.number.0;
        let id = if number < LENT_FROM && !self.known.contains_key(&number) {
            number
        } else {
            self.lent += 1;
            self.last_lent()
        };
        self.known.insert(id, Known { place, name: name.to_owned(), is_lost: false });
        NamespaceId(id)
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

    /// Shows a list; gives the ids of its namespaces.
    fn see(meant: &Meant, listed: &[NamespaceEntry]) -> Vec<u32> {
        let mut listed = listed.to_vec();
        assert!(meant.see(meant.ask(), &mut listed));
        listed.iter().map(|entry| entry.number.get()).collect()
    }

    fn made(meant: &Meant, number: NamespaceId, name: &str, birth: Option<u32>) -> u32 {
        meant.made(Place { number, birth }, name).0
    }

    fn birth(meant: &Meant, id: NamespaceId) -> Option<u32> {
        meant.place(id).unwrap().and_then(|place| place.birth)
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
        assert!(!meant.see(asked, &mut [entry(2, "a")]), "it is deleted");
        assert_eq!(made(&meant, two, "b", Some(5)), 2);
        meant.compare(asked, &[entry(2, "a")]);
        assert!(!meant.see(asked, &mut [entry(2, "a")]));
        assert_eq!(birth(&meant, two), Some(5), "nobody else has its number");
    }

    #[test]
    fn an_id_means_what_had_it_first_and_what_came_in_its_place_has_another_one() {
        let (meant, two) = (Meant::default(), NamespaceId(2));
        assert!(meant.is_empty());
        see(&meant, &[entry(1, ""), entry(2, "a")]);
        see(&meant, &[entry(1, "")]);
        assert!(meant.check(two).is_ok(), "it is gone, and nobody has its number");
        compare(&meant, &[entry(1, ""), entry(2, "b"), entry(3, "c")]);
        let refused = meant.check(two).unwrap_err().to_string();
        assert!(refused.contains("\"a\"") && refused.contains("look up what is there now"), "{refused}");
        assert_eq!((birth(&meant, NamespaceId::FIRST), meant.place(NamespaceId(3))), (Some(0), Ok(None)));
        assert_eq!(
            see(&meant, &[entry(2, "a"), entry(3, "d")]),
            [1001, 3],
            "one that is called so again may be another"
        );
        assert!(meant.check(two).is_err());
        assert_eq!(meant.place(NamespaceId(1001)), Ok(Some(Place { number: two, birth: Some(0) })));
        assert_eq!((meant.id_of(2), meant.id_of(3), meant.id_of(4)), (1001, 3, 4));
        assert_eq!(birth(&meant, NamespaceId(3)), Some(0), "what was compared with was not noted");
        // An id that is not known any more comes to nothing that has its number, and is not given again.
        assert_eq!(see(&meant, &[entry(2, "e")]), [1002]);
        assert!(meant.check(NamespaceId(1001)).is_err() && meant.check(NamespaceId(1002)).is_ok());
        meant.deleted(NamespaceId(1002));
        assert!(meant.check(NamespaceId(1002)).is_err());
        assert_eq!(see(&meant, &[entry(2, "e")]), [1003]);
        assert_eq!(made(&meant, two, "f", Some(5)), 1004, "another host has deleted that one");
        assert!(meant.check(NamespaceId(1003)).is_err());
        assert_eq!(made(&meant, two, "f", Some(5)), 1004, "a list came before the answer");
        // Who deletes one itself has what comes in its place by the same id.
        meant.deleted(NamespaceId(3));
        assert_eq!(see(&meant, &[entry(3, "g")]), [3]);
        // Numbers that could be lent ids have others, where there are any.
        assert!(Meant::default().check(NamespaceId(1001)).is_ok());
        assert_eq!(see(&meant, &[entry(1001, "h")]), [1005]);
    }

    #[test]
    fn one_that_is_called_so_again_is_another_one() {
        let (meant, two) = (Meant::default(), NamespaceId(2));
        let born = |birth| {
            let mut entry = entry(2, "a");
            entry.set_birth(birth);
            [entry]
        };
        made(&meant, two, "a", None);
        assert_eq!(birth(&meant, two), None);
        compare(&meant, &born(7));
        assert_eq!(see(&meant, &born(7)), [2]);
        assert_eq!(birth(&meant, two), Some(7));
        assert_eq!(see(&meant, &born(9)), [1001]);
        assert!(meant.check(two).is_err());
        // What an earlier release made has no birth, and what is made in its place has one.
        meant.deleted(NamespaceId(1001));
        assert_eq!(see(&meant, &born(0)), [1002]);
        assert_eq!(see(&meant, &born(1)), [1003]);
    }

    /// A client that stays while another one makes and deletes namespaces, whose numbers come again and again.
    #[test]
    fn many_replacements_keep_no_more_than_the_numbers() {
        let meant = Meant::default();
        for birth in 1..=1000 {
            let mut entry = entry(2 + birth % 15, "job");
            entry.set_birth(birth.into());
            let id = NamespaceId(see(&meant, &[entry])[0]);
            let place = Place { number: NamespaceId(entry.number.get()), birth: Some(birth) };
            assert_eq!(meant.place(id), Ok(Some(place)));
        }
        assert_eq!(meant.lock().known.len(), 2 * 15);
    }
}
