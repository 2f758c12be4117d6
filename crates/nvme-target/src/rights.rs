//! Who may do what: hosts by name, with the namespaces that they see, and how much of the drive they may use. Pure.
//!
//! ```text
//!   host a   read_write {1, 3}, read_only {2}, at most 10^6 pairs, 20 000 commands a second, 16 connections
//!   host b   read_only: all
//!   others   refused, or rights of their own
//! ```
//!
//! For a host, a namespace that it may not read does not exist.
//!
//! A quota limits what the namespaces that a host may change hold *together, whoever stored it*. A pair has no owner in
//! flash, and the drive's own counts outlive the service. For a quota of each of two hosts, give each a namespace of its
//! own.

use crate::rate::Rate;
use kvssd_nvme_auth::{Credentials, TlsKey};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Some of the drive's namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// All of them.
    All,
    /// Those with these numbers.
    Some(BTreeSet<u32>),
}

impl Namespaces {
    fn forget(&mut self, namespace: u32) {
        if let Namespaces::Some(numbers) = self {
            numbers.remove(&namespace);
        }
    }

    /// None of them.
    pub const NONE: Namespaces = Namespaces::Some(BTreeSet::new());

    pub(crate) fn contains(&self, namespace: u32) -> bool {
        match self {
            Namespaces::All => true,
            Namespaces::Some(numbers) => numbers.contains(&namespace),
        }
    }
}

impl fmt::Display for Namespaces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Namespaces::All => formatter.write_str("all"),
            Namespaces::Some(numbers) => write!(formatter, "{numbers:?}"),
        }
    }
}

/// What a host may do with a namespace that it sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    ReadOnly,
    ReadWrite,
}

/// The most that a host's namespaces may hold; `None` for as much as there is room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Pairs.
    pub pairs_max: Option<u64>,
    /// Bytes of keys and values.
    pub bytes_max: Option<u64>,
}

/// Pairs, and bytes of their keys and values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) pairs: u64,
    pub(crate) bytes: u64,
}

impl Quota {
    /// Whether there is any bound.
    pub(crate) fn is_bounded(&self) -> bool {
        *self != Quota::default()
    }

    /// Whether `new` may replace `old`. A change that does not increase a count is allowed, even beyond a quota that was
    /// lowered.
    pub(crate) fn allows(&self, held: Held, old: Held, new: Held) -> bool {
        let fits = |held: u64, old: u64, new: u64, max: Option<u64>| {
            new <= old || max.is_none_or(|max| held.saturating_sub(old).saturating_add(new) <= max)
        };
        fits(held.pairs, old.pairs, new.pairs, self.pairs_max) && fits(held.bytes, old.bytes, new.bytes, self.bytes_max)
    }
}

/// What a host may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRights {
    /// What it may read and change.
    pub read_write: Namespaces,
    /// What it may read.
    pub read_only: Namespaces,
    /// The most that its `read_write` namespaces may hold.
    pub quota: Quota,
    /// Whether it may make and delete namespaces. Such a host needs the right to read and change all of them.
    pub manage: bool,
    /// How fast it may go.
    pub rate: Rate,
    /// The most connections; `None` for as many as there are, except for those that are kept for others.
    pub connections_max: Option<usize>,
    /// How it proves its identity; `None` if it need not.
    pub authentication: Option<Arc<Credentials>>,
    /// Its TLS key; `None` if it talks in the clear.
    pub tls_key: Option<Arc<TlsKey>>,
}

impl HostRights {
    /// All that there is to do.
    pub const EVERYTHING: HostRights = HostRights {
        read_write: Namespaces::All,
        read_only: Namespaces::NONE,
        quota: Quota { pairs_max: None, bytes_max: None },
        manage: true,
        rate: Rate { operations_per_second: None, bytes_per_second: None },
        connections_max: None,
        authentication: None,
        tls_key: None,
    };

    /// Whether it may make and delete namespaces: only a host that sees all of them learns nothing by that.
    pub(crate) fn may_manage(&self) -> bool {
        self.manage && self.read_write == Namespaces::All
    }

    /// What it may do with that namespace; `None` if it may not know that it exists.
    pub(crate) fn access(&self, namespace: u32) -> Option<Access> {
        if self.read_write.contains(namespace) {
            Some(Access::ReadWrite)
        } else if self.read_only.contains(namespace) {
            Some(Access::ReadOnly)
        } else {
            None
        }
    }
}

/// For the log.
impl fmt::Display for HostRights {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "reads and writes {}, reads {}", self.read_write, self.read_only)
    }
}

/// The rights of all hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    hosts: BTreeMap<String, HostRights>,
    others: Option<HostRights>,
}

impl Rights {
    /// The rights of hosts by their NQNs, and those of all other hosts; `None` to refuse them.
    #[must_use]
    pub fn new(hosts: BTreeMap<String, HostRights>, others: Option<HostRights>) -> Self {
        Rights { hosts, others }
    }

    /// Anybody may do everything.
    #[must_use]
    pub fn everybody() -> Self {
        Rights::new(BTreeMap::new(), Some(HostRights::EVERYTHING))
    }

    /// Only these hosts may connect, and do everything.
    #[must_use]
    pub fn only(hosts: impl IntoIterator<Item = String>) -> Self {
        Rights::new(hosts.into_iter().map(|nqn| (nqn, HostRights::EVERYTHING)).collect(), None)
    }

    /// Whether each host that may connect must prove who it is.
    #[must_use]
    pub fn are_proved(&self) -> bool {
        let is_proved = |rights: &HostRights| rights.authentication.is_some() || rights.tls_key.is_some();
        self.hosts.values().chain(&self.others).all(is_proved)
    }

    /// Whether each host that may connect has a key of TLS, without which all that is said can be read.
    #[must_use]
    pub fn are_encrypted(&self) -> bool {
        self.hosts.values().chain(&self.others).all(|rights| rights.tls_key.is_some())
    }

    /// The rights of a host; `None` if it may not connect.
    pub(crate) fn of(&self, nqn: &str) -> Option<&HostRights> {
        self.hosts.get(nqn).or(self.others.as_ref())
    }

    /// The rights of hosts that are not named; `None` if those may not connect.
    pub(crate) fn of_others(&self) -> Option<&HostRights> {
        self.others.as_ref()
    }

    /// Takes a namespace that is deleted out of the rights of all hosts.
    pub(crate) fn forget_namespace(&mut self, id: u32) {
        for rights in self.hosts.values_mut().chain(&mut self.others) {
            rights.read_write.forget(id);
            rights.read_only.forget(id);
        }
    }

    /// The hosts that are named.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.hosts.keys().map(String::as_str)
    }

    /// Whether that host is named.
    pub(crate) fn is_named(&self, nqn: &str) -> bool {
        self.hosts.contains_key(nqn)
    }

    /// Whether connections are kept for that host: it is named, or nobody is.
    pub(crate) fn is_kept_for(&self, nqn: &str) -> bool {
        self.hosts.is_empty() || self.is_named(nqn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(numbers: &[u32]) -> Namespaces {
        Namespaces::Some(numbers.iter().copied().collect())
    }

    #[test]
    fn the_wider_right_counts_and_what_is_in_neither_is_not_there() {
        let rights = HostRights { read_write: some(&[1, 3]), read_only: some(&[2, 3]), ..HostRights::EVERYTHING };
        let access: Vec<_> = (1..=4).map(|namespace| rights.access(namespace)).collect();
        let (change, look) = (Some(Access::ReadWrite), Some(Access::ReadOnly));
        assert_eq!(access, [change, look, change, None]);
        let reader = HostRights { read_write: some(&[2]), read_only: Namespaces::All, ..HostRights::EVERYTHING };
        assert_eq!((reader.access(2), reader.access(16)), (change, look));
        assert_eq!(rights.to_string(), "reads and writes {1, 3}, reads {2, 3}");
    }

    #[test]
    fn who_is_not_named_has_the_rights_of_others_or_none() {
        let named = Rights::only(["nqn.a".to_owned()]);
        assert_eq!((named.of("nqn.a"), named.of("nqn.b"), named.of("")), (Some(&HostRights::EVERYTHING), None, None));
        assert!(named.is_kept_for("nqn.a") && !named.is_kept_for("nqn.b"));
        let reader = HostRights { read_write: Namespaces::NONE, read_only: Namespaces::All, ..HostRights::EVERYTHING };
        let both = Rights::new(named.hosts, Some(reader.clone()));
        assert_eq!((both.of("nqn.a"), both.of("nqn.b")), (Some(&HostRights::EVERYTHING), Some(&reader)));
        assert!(Rights::everybody().of("").is_some() && Rights::everybody().is_kept_for("nqn.b"));
    }

    #[test]
    fn a_quota_counts_what_an_overwrite_leaves() {
        let quota = Quota { pairs_max: Some(10), bytes_max: Some(1000) };
        let held = |pairs, bytes| Held { pairs, bytes };
        let none = Held::default();
        assert!(quota.allows(held(9, 900), none, held(1, 100)));
        assert!(!quota.allows(held(9, 900), none, held(1, 101)) && !quota.allows(held(10, 900), none, held(1, 1)));
        assert!(quota.allows(held(10, 1000), held(1, 50), held(1, 50)));
        assert!(!quota.allows(held(10, 1000), held(1, 50), held(1, 51)));
        assert!(quota.allows(held(20, 5000), held(1, 50), held(1, 49)), "a quota that was lowered");
        assert!(Quota::default().allows(held(u64::MAX, u64::MAX), none, held(1, u64::MAX)));
    }
}
