//! The hosts that are connected: what each may do now, how fast it goes, and whether there is a place for one more
//! connection.
//!
//! ```text
//!   accepted   without a name       half of all places; the one that has been silent for longest goes for the next
//!   Connect    of host a            its own bound, and the last quarter of all is kept for hosts with fewer than two
//!   SIGHUP     rights are replaced  each connection sees that before its next command
//! ```

use crate::discovery::Discoveries;
use crate::lock::lock;
use crate::rate::Pace;
use crate::rights::{HostRights, Rights};
#[cfg(feature = "tls")]
use kvssd_nvme_auth::TlsKey;
use kvssd_runtime::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use kvssd_runtime::sync::{Arc, Mutex};
use kvssd_types::Nanos;
use std::collections::BTreeMap;
use thiserror::Error;

/// A connection that has had no name for this long is closed for the next one. An estimate: ICReq and Connect are two round trips.
const UNNAMED_NS: Nanos = Nanos(1_000_000_000);
/// Connections that each host may have before it leaves the rest to others: an admin queue and an I/O queue.
const CONNECTIONS_FIRST: usize = 2;

/// Why a host gets no connection, or no controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    #[error("it has no rights here")]
    NoRights,
    #[error("it has the {0} connections that it may have")]
    OwnMax(usize),
    #[error("what is left is kept for other hosts")]
    Kept,
    #[error("all are in use")]
    AllInUse,
}

/// How many of something are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// How many there are.
    pub(crate) places: usize,
    /// Taken by all hosts.
    pub(crate) taken: usize,
    /// Taken by this one.
    pub(crate) own: usize,
    /// A host that has fewer places than this may take one of those that are kept.
    pub(crate) first: usize,
    /// Whether places are kept for hosts such as this one.
    pub(crate) is_kept_for: bool,
}

impl Share {
    /// Checks that a host may take one more place. The last quarter is kept for hosts with few.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let kept = self.places / 4;
        let is_entitled = self.is_kept_for && self.own < self.first;
        match self.places.saturating_sub(self.taken) {
            0 => Err(Refusal::AllInUse),
            free if free <= kept && !is_entitled => Err(Refusal::Kept),
            _ => Ok(()),
        }
    }
}

/// A host that has rights, or had them.
pub(crate) struct Member {
    pub(crate) nqn: String,
    /// Discovery controllers of whoever says that name and proves nothing, where the host itself has to: they count apart from its own connections.
    is_unproved: bool,
    state: Mutex<MemberState>,
}

struct MemberState {
    rights: Option<Arc<HostRights>>,
    /// How often what it discovers has changed.
    discovered: u64,
    is_kept_for: bool,
    connections: usize,
    pace: Pace,
}

impl Member {
    /// What it may do now; `None` if it has lost all rights.
    pub(crate) fn rights(&self) -> Option<Arc<HostRights>> {
        lock(&self.state).rights.clone()
    }

    /// What it may do now, and how often what it discovers has changed until then.
    fn seen(&self) -> (Option<Arc<HostRights>>, u64) {
        let state = lock(&self.state);
        (state.rights.clone(), state.discovered)
    }

    /// What it is found by.
    fn key(&self) -> (String, bool) {
        (self.nqn.clone(), self.is_unproved)
    }

    /// Whether places are kept for it.
    pub(crate) fn is_kept_for(&self) -> bool {
        lock(&self.state).is_kept_for
    }

    /// When its next command may be executed; not before `now`.
    pub(crate) fn opens(&self, now: Nanos) -> Nanos {
        lock(&self.state).pace.opens(now)
    }

    /// Counts what it does.
    pub(crate) fn take(&self, operations: u64, bytes: u64, now: Nanos) {
        let mut state = lock(&self.state);
        if let Some(rights) = state.rights.clone() {
            state.pace.take(operations, bytes, &rights.rate, now);
        }
    }
}

pub(crate) struct Hosts {
    connections_max: usize,
    /// Counts replacements of the rights, and changes of the namespaces.
    generation: AtomicU64,
    state: Mutex<State>,
}

struct State {
    rights: Rights,
    discoveries: Discoveries,
    /// Hosts with connections. One that the rights name stays without any until they are replaced: it cannot escape its rate by a new connection.
    members: BTreeMap<(String, bool), Arc<Member>>,
    connections: usize,
    /// Connections without a name, in the order in which they came.
    unnamed: BTreeMap<u64, (Nanos, Arc<AtomicBool>)>,
    accepted: u64,
}

impl Hosts {
    pub(crate) fn new(rights: Rights, connections_max: usize) -> Arc<Self> {
        let (discoveries, members, unnamed) = Default::default();
        let state = State { rights, discoveries, members, connections: 0, unnamed, accepted: 0 };
        Arc::new(Hosts { connections_max, generation: AtomicU64::new(0), state: Mutex::new(state) })
    }

    /// A place for a connection without a name. If there are too many, the oldest one loses its place, or the new one gets none.
    pub(crate) fn arrive(self: &Arc<Self>, now: Nanos) -> Place {
        let mut state = lock(&self.state);
        let is_given_up = Arc::new(AtomicBool::new(false));
        if state.unnamed.len() >= (self.connections_max / 2).max(1) {
            match state.unnamed.first_key_value() {
                Some((&oldest, &(since, ref flag))) if now > since + UNNAMED_NS => {
                    flag.store(true, Ordering::Relaxed);
                    state.unnamed.remove(&oldest);
                }
                _ => is_given_up.store(true, Ordering::Relaxed),
            }
        }
        state.accepted += 1;
        let number = state.accepted;
        state.unnamed.insert(number, (now, Arc::clone(&is_given_up)));
        Place { hosts: Arc::clone(self), number, is_given_up, member: None, rights: None, discovered: 0, generation: 0 }
    }

    /// The key that this host uses for TLS, if it has one.
    #[cfg(feature = "tls")]
    pub(crate) fn tls_key(&self, nqn: &str) -> Option<Arc<TlsKey>> {
        lock(&self.state).rights.of(nqn)?.tls_key.clone()
    }

    /// Whether that host may make and delete namespaces now.
    pub(crate) fn may_manage(&self, nqn: &str) -> bool {
        lock(&self.state).rights.of(nqn).is_some_and(HostRights::may_manage)
    }

    /// How often rights or namespaces have changed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Makes every connection look again at what its host sees.
    pub(crate) fn look_anew(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Takes a namespace that is deleted out of all rights: another one may get its number.
    pub(crate) fn forget_namespace(&self, id: u32) {
        let mut rights = lock(&self.state).rights.clone();
        rights.forget_namespace(id);
        self.replace(rights);
    }

    /// Replaces the rights of all hosts.
    pub(crate) fn replace(&self, rights: Rights) {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        state.discoveries.note(&state.rights, &rights);
        for member in state.members.values() {
            let discovered = state.discoveries.of(&member.nqn);
            let mut state = lock(&member.state);
            state.discovered = discovered;
            let now = rights.of(&member.nqn);
            if state.rights.as_deref() != now {
                match now {
                    Some(now) => tracing::info!(host = member.nqn, rights = %now, "a host has other rights now"),
                    None => tracing::warn!(host = member.nqn, "a host has no rights any more"),
                }
                // Debts of an old rate do not count at a new one.
                if state.rights.as_ref().map(|before| before.rate) != now.map(|now| now.rate) {
                    state.pace = Pace::default();
                }
                state.rights = now.cloned().map(Arc::new);
            }
            state.is_kept_for = !member.is_unproved && rights.is_kept_for(&member.nqn);
        }
        state.rights = rights;
        state.members.retain(|_, member| lock(&member.state).connections > 0);
        self.generation.fetch_add(1, Ordering::Release);
    }
}

impl State {
    /// Counts a connection of a host.
    fn claim(&mut self, nqn: &str, proves: bool, connections_max: usize) -> Result<Arc<Member>, Refusal> {
        let rights = self.rights.of(nqn).ok_or(Refusal::NoRights)?;
        let is_unproved = !proves && (rights.authentication.is_some() || rights.tls_key.is_some());
        let is_kept_for = !is_unproved && self.rights.is_kept_for(nqn);
        let member = match self.members.get(&(nqn.to_owned(), is_unproved)) {
            Some(member) => Arc::clone(member),
            None => {
                let rights = Some(Arc::new(rights.clone()));
                let (discovered, pace) = (self.discoveries.of(nqn), Pace::default());
                let state = MemberState { rights, discovered, is_kept_for, connections: 0, pace };
                Arc::new(Member { nqn: nqn.to_owned(), is_unproved, state: Mutex::new(state) })
            }
        };
        let mut state = lock(&member.state);
        let own = state.connections;
        if let Some(max) = rights.connections_max.filter(|max| own >= *max) {
            return Err(Refusal::OwnMax(max));
        }
        let share =
            Share { places: connections_max, taken: self.connections, own, first: CONNECTIONS_FIRST, is_kept_for };
        share.check()?;
        state.connections += 1;
        drop(state);
        self.connections += 1;
        self.members.insert(member.key(), Arc::clone(&member));
        Ok(member)
    }
}

/// A connection's place. Dropping it frees the place.
pub(crate) struct Place {
    hosts: Arc<Hosts>,
    number: u64,
    is_given_up: Arc<AtomicBool>,
    member: Option<Arc<Member>>,
    /// The host's rights as of `generation`.
    rights: Option<Arc<HostRights>>,
    discovered: u64,
    generation: u64,
}

impl Place {
    /// Whether it was given to another connection before the host said its name.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }

    /// Takes the place in the name of a host, until [`Place::settle`] or [`Place::leave`]. `proves` is whether it proves that name, or is to,
    /// where it has something to do so by.
    pub(crate) fn claim(&mut self, nqn: &str, proves: bool) -> Result<&Arc<Member>, Refusal> {
        let mut state = lock(&self.hosts.state);
        let member = state.claim(nqn, proves, self.hosts.connections_max)?;
        self.generation = self.hosts.generation.load(Ordering::Acquire);
        drop(state);
        self.leave();
        (self.rights, self.discovered) = member.seen();
        Ok(self.member.insert(member))
    }

    /// Keeps the place for as long as the connection lasts.
    pub(crate) fn settle(&self) {
        lock(&self.hosts.state).unnamed.remove(&self.number);
    }

    /// Gives back the place that a Connect claimed, which then failed for another reason.
    pub(crate) fn leave(&mut self) {
        let Some(member) = self.member.take() else { return };
        let mut state = lock(&self.hosts.state);
        state.connections -= 1;
        let mut of_member = lock(&member.state);
        of_member.connections -= 1;
        let is_over = of_member.connections == 0 && !state.rights.is_named(&member.nqn);
        drop(of_member);
        if is_over {
            state.members.remove(&member.key());
        }
    }

    /// The host, once it has said its name.
    pub(crate) fn member(&self) -> Option<&Arc<Member>> {
        self.member.as_ref()
    }

    /// What the host may do, as of the last [`Place::refresh`]; `None` if it has no rights, or said no name yet.
    pub(crate) fn known_rights(&self) -> Option<&Arc<HostRights>> {
        self.rights.as_ref()
    }

    /// How often what the host discovers has changed, as of the same time.
    pub(crate) fn discovered(&self) -> u64 {
        self.discovered
    }

    /// The change of rights or namespaces up to which the rights are known.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Looks whether the rights of the host were replaced. Returns whether they may have changed.
    pub(crate) fn refresh(&mut self) -> bool {
        let generation = self.hosts.generation.load(Ordering::Acquire);
        let Some(member) = self.member.as_ref().filter(|_| generation != self.generation) else { return false };
        self.generation = generation;
        (self.rights, self.discovered) = member.seen();
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rate;
    use std::num::NonZeroU64;

    const NOW: Nanos = Nanos(5_000_000_000);

    fn claimed(hosts: &Arc<Hosts>, nqn: &str) -> Result<Place, Refusal> {
        let mut place = hosts.arrive(NOW);
        place.claim(nqn, true)?;
        place.settle();
        Ok(place)
    }

    #[test]
    fn the_last_quarter_is_kept_for_hosts_with_few_connections() {
        let hosts = Hosts::new(Rights::everybody(), 16);
        let greedy: Vec<_> = (0..20).map_while(|_| claimed(&hosts, "nqn.greedy").ok()).collect();
        assert_eq!(greedy.len(), 12);
        assert_eq!(claimed(&hosts, "nqn.greedy").err(), Some(Refusal::Kept));
        let modest: Vec<_> = ["nqn.a", "nqn.a", "nqn.b", "nqn.b"].map(|nqn| claimed(&hosts, nqn).unwrap()).into();
        assert_eq!(claimed(&hosts, "nqn.c").err(), Some(Refusal::AllInUse));
        drop(modest);
        assert!(claimed(&hosts, "nqn.c").is_ok());
        drop(greedy);
        assert_eq!(lock(&hosts.state).connections, 0);
        assert!(lock(&hosts.state).members.is_empty() && lock(&hosts.state).unnamed.is_empty());
    }

    #[test]
    fn what_is_kept_is_kept_for_those_who_are_named() {
        let named = [("nqn.named".to_owned(), HostRights::EVERYTHING)].into();
        let hosts = Hosts::new(Rights::new(named, Some(HostRights::EVERYTHING)), 8);
        let others: Vec<_> = (0..9).map_while(|host| claimed(&hosts, &format!("nqn.other:{host}")).ok()).collect();
        assert_eq!(others.len(), 6, "each says another name");
        assert!(claimed(&hosts, "nqn.named").is_ok());
    }

    #[test]
    fn a_host_has_its_own_bound_and_strangers_have_none() {
        let rights = HostRights { connections_max: Some(1), ..HostRights::EVERYTHING };
        let hosts = Hosts::new(Rights::new([("nqn.a".to_owned(), rights)].into(), None), 8);
        let first = claimed(&hosts, "nqn.a").unwrap();
        assert_eq!(claimed(&hosts, "nqn.a").err(), Some(Refusal::OwnMax(1)));
        assert_eq!(claimed(&hosts, "nqn.b").err(), Some(Refusal::NoRights));
        drop(first);
        let mut place = hosts.arrive(NOW);
        place.claim("nqn.a", true).unwrap();
        place.leave();
        assert!(place.claim("nqn.a", true).is_ok(), "a Connect that failed is no connection");
    }

    #[test]
    fn who_says_no_name_loses_its_place_to_the_next() {
        let hosts = Hosts::new(Rights::everybody(), 8);
        let silent: Vec<_> = (0..4).map(|_| hosts.arrive(NOW)).collect();
        assert!(hosts.arrive(NOW).is_given_up(), "all have just come");
        let later = hosts.arrive(NOW + UNNAMED_NS + Nanos(1));
        let given_up: Vec<_> = silent.iter().map(Place::is_given_up).collect();
        assert_eq!((given_up, later.is_given_up()), (vec![true, false, false, false], false));
    }

    #[test]
    fn new_rights_are_seen_by_who_is_connected_and_to_connect_again_pays_for_nothing() {
        let rate = Rate { operations_per_second: NonZeroU64::new(1), bytes_per_second: None };
        let slow = HostRights { rate, ..HostRights::EVERYTHING };
        let of = |rights: &HostRights| Rights::new([("nqn.a".to_owned(), rights.clone())].into(), None);
        let hosts = Hosts::new(of(&slow), 8);
        let place = claimed(&hosts, "nqn.a").unwrap();
        place.member().unwrap().take(10, 0, NOW);
        drop(place);
        let mut place = claimed(&hosts, "nqn.a").unwrap();
        assert!(place.member().unwrap().opens(NOW) > NOW, "it has taken ten seconds' worth");
        hosts.replace(of(&HostRights::EVERYTHING));
        assert!(place.refresh() && !place.refresh());
        assert_eq!(place.known_rights().map(|rights| **rights == HostRights::EVERYTHING), Some(true));
        assert_eq!(place.member().unwrap().opens(NOW), NOW);
        hosts.replace(Rights::only(["nqn.b".to_owned()]));
        assert!(place.refresh() && place.known_rights().is_none());
        hosts.replace(of(&slow));
        assert!(place.refresh() && place.known_rights().is_some_and(|rights| **rights == slow));
    }
}
