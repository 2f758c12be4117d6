//! The iterators of hosts: which of the drive's each one is, and where it goes on.
//!
//! ```text
//!   a controller's token ---+--- 7   namespace 2, the drive's iterator 31, goes on behind what it gave
//!   (ends with it)          +--- 9   namespace 2, the drive's iterator 33, goes on at key "k", which had no room
//! ```
//!
//! Numbers are given once in the life of a service. An iterator ends with its controller, by a reset too, when it was not
//! used for a while, and with its namespace. Where the drive has no memory for another one, that of the host which has the
//! most of the namespace makes room, until both have as many.

use kvssd_types::{IteratorId, NamespaceId, Nanos, OwnedKey};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// The most iterators of a controller.
pub(crate) const ITERATORS_MAX: usize = 64;

/// What iterators belong to: a controller, from one reset to the next.
pub(crate) type Owner = Arc<OwnerHost>;

/// A controller's host.
#[derive(Debug, Default)]
pub(crate) struct OwnerHost {
    pub(crate) nqn: String,
}

/// Where an iterator goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// At the beginning of its range.
    Begin,
    /// At that key, or behind it.
    At(OwnedKey),
    /// Behind what the drive gave last.
    Behind,
}

#[derive(Debug)]
pub(crate) struct HostIterator {
    number: u32,
    owner: Weak<OwnerHost>,
    pub(crate) namespace: NamespaceId,
    /// The drive's own.
    pub(crate) id: IteratorId,
    pub(crate) keys_only: bool,
    pub(crate) position: Position,
    last_used: Nanos,
}

impl HostIterator {
    /// The name of its host, if it is of that namespace and its controller lives.
    fn host(&self, namespace: NamespaceId) -> Option<String> {
        self.owner.upgrade().filter(|_| self.namespace == namespace).map(|owner| owner.nqn.clone())
    }
}

#[derive(Debug, Default)]
pub(crate) struct HostIterators {
    living: Vec<HostIterator>,
    last: u32,
}

impl HostIterators {
    /// Whether there is any.
    pub(crate) fn is_empty(&self) -> bool {
        self.living.is_empty()
    }

    /// Whether a controller may have another one.
    pub(crate) fn has_room(&self, owner: &Owner) -> bool {
        let of_owner = self.living.iter().filter(|iterator| iterator.owner.as_ptr() == Arc::as_ptr(owner));
        of_owner.count() < ITERATORS_MAX
    }

    /// Adds an iterator of the drive; returns its number.
    pub(crate) fn add(
        &mut self,
        owner: &Owner,
        (namespace, id): (NamespaceId, IteratorId),
        keys_only: bool,
        now: Nanos,
    ) -> u32 {
        // Not 0, and none that lives: after 2^32 of them numbers come again.
        loop {
            self.last = self.last.wrapping_add(1).max(1);
            if self.living.iter().all(|iterator| iterator.number != self.last) {
                break;
            }
        }
        let (owner, position) = (Arc::downgrade(owner), Position::Begin);
        let number = self.last;
        self.living.push(HostIterator { number, owner, namespace, id, keys_only, position, last_used: now });
        number
    }

    /// The iterator of that number, if it is that controller's and that namespace's.
    pub(crate) fn get(
        &mut self,
        owner: &Owner,
        namespace: NamespaceId,
        number: u32,
        now: Nanos,
    ) -> Option<&mut HostIterator> {
        let at = self.position(owner, namespace, number)?;
        let found = &mut self.living[at];
        found.last_used = now;
        Some(found)
    }

    /// Takes it out.
    pub(crate) fn remove(&mut self, owner: &Owner, namespace: NamespaceId, number: u32) -> Option<HostIterator> {
        self.position(owner, namespace, number).map(|at| self.living.swap_remove(at))
    }

    fn position(&self, owner: &Owner, namespace: NamespaceId, number: u32) -> Option<usize> {
        self.living.iter().position(|iterator| {
            iterator.number == number
                && iterator.namespace == namespace
                && iterator.owner.as_ptr() == Arc::as_ptr(owner)
        })
    }

    /// Takes out those whose controllers have ended, and those that were not used for longer than `idle_ns`.
    pub(crate) fn take_ended(&mut self, idle_ns: Nanos, now: Nanos) -> Vec<HostIterator> {
        let is_over =
            |iterator: &HostIterator| iterator.owner.strong_count() == 0 || now > iterator.last_used + idle_ns;
        let (ended, living) = std::mem::take(&mut self.living).into_iter().partition(is_over);
        self.living = living;
        ended
    }

    /// Where the memory for iterators of a namespace is taken: of the host that has the most of them, takes out the one that was not used for the
    /// longest time, if that host has more than the owner's would have with another one. Returns the name of that host too.
    pub(crate) fn take_from_greediest(
        &mut self,
        owner: &Owner,
        namespace: NamespaceId,
    ) -> Option<(String, HostIterator)> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for host in self.living.iter().filter_map(|iterator| iterator.host(namespace)) {
            *counts.entry(host).or_default() += 1;
        }
        let wanted = counts.get(&owner.nqn).copied().unwrap_or(0) + 1;
        let (greediest, _) = counts.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > wanted)?;
        let is_its = |(_, iterator): &(usize, &HostIterator)| iterator.host(namespace).as_ref() == Some(&greediest);
        let (at, _) = self.living.iter().enumerate().filter(is_its).min_by_key(|(_, iterator)| iterator.last_used)?;
        Some((greediest, self.living.swap_remove(at)))
    }

    /// Takes out those of a namespace.
    pub(crate) fn forget_namespace(&mut self, namespace: NamespaceId) {
        self.living.retain(|iterator| iterator.namespace != namespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: NamespaceId = NamespaceId(2);

    #[test]
    fn an_iterator_is_its_controllers_alone_and_ends_with_it_or_when_it_is_idle() {
        let mut iterators = HostIterators::default();
        let (one, other) = (Owner::default(), Owner::default());
        let first = iterators.add(&one, (SPACE, IteratorId(5)), true, Nanos(0));
        let second = iterators.add(&other, (SPACE, IteratorId(6)), true, Nanos(0));
        assert_ne!(first, second);
        assert!(iterators.get(&one, SPACE, first, Nanos(50)).is_some());
        assert!(iterators.get(&other, SPACE, first, Nanos(50)).is_none(), "another controller's");
        assert!(iterators.get(&one, NamespaceId(3), first, Nanos(50)).is_none(), "another namespace's");
        assert!(iterators.remove(&other, SPACE, first).is_none());
        let ended = iterators.take_ended(Nanos(100), Nanos(101));
        assert_eq!(ended.iter().map(|ended| ended.id).collect::<Vec<_>>(), [IteratorId(6)], "idle");
        drop(one);
        assert_eq!(iterators.take_ended(Nanos(100), Nanos(101)).len(), 1, "its controller has ended");
        assert!(iterators.is_empty());
        for _ in 0..ITERATORS_MAX {
            assert!(iterators.has_room(&other));
            iterators.add(&other, (SPACE, IteratorId(7)), false, Nanos(0));
        }
        assert!(!iterators.has_room(&other) && iterators.has_room(&Owner::default()));
        iterators.forget_namespace(SPACE);
        assert!(iterators.is_empty());
    }

    #[test]
    fn the_host_with_the_most_iterators_makes_room_until_both_have_as_many() {
        let owner = |host: &str| Owner::new(OwnerHost { nqn: host.to_owned() });
        let (one, same_host, other) = (owner("a"), owner("a"), owner("b"));
        let mut iterators = HostIterators::default();
        for (number, owner) in [&one, &same_host, &one, &same_host].into_iter().enumerate() {
            iterators.add(owner, (SPACE, IteratorId(number as u64)), false, Nanos(10 - number as u64));
        }
        assert!(iterators.take_from_greediest(&one, SPACE).is_none(), "no host makes room for itself");
        assert!(iterators.take_from_greediest(&other, NamespaceId(3)).is_none(), "none is of that namespace");
        let (host, taken) = iterators.take_from_greediest(&other, SPACE).unwrap();
        assert_eq!((&*host, taken.id), ("a", IteratorId(3)), "the one that was not used for the longest time");
        iterators.add(&other, (SPACE, IteratorId(9)), false, Nanos(20));
        assert_eq!(iterators.take_from_greediest(&other, SPACE).unwrap().1.id, IteratorId(2));
        iterators.add(&other, (SPACE, IteratorId(10)), false, Nanos(20));
        let mut has_more = |owner| iterators.take_from_greediest(owner, SPACE).is_some();
        assert!(!has_more(&other) && !has_more(&one));
    }
}
