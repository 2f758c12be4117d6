//! Threads of one program, as in [`threads`](super::threads), on a store whose namespaces are caches except for the first: what is asked for is the
//! newest value or nothing, none holds more than its budget, and the plain one loses nothing.
//!
//! ```text
//!   the book: with each store into a cache begins a delete in doubt, which is made once, at any later moment, or never: the pair leaves
//!             so no older value may come back, nor one that was deleted, and who has left comes back no more
//! ```

use crate::lives::caller::{Caller, Step, key};
use kvssd_host::{AdmissionPolicy, CacheAttributes, CachePlan, Error, EvictionPolicy, Namespace, NamespaceId, Store};
use kvssd_types::Random;

/// Budgets: some hold a few small pairs, and some more than the drive has.
const BUDGETS: [u64; 4] = [2_000, 30_000, 300_000, 1 << 40];

/// Some cache.
pub(super) fn some(random: &mut Random) -> CacheAttributes {
    let eviction = EvictionPolicy::ALL[random.below(4) as usize];
    let admission = match random.below(8) {
        0 => vec![AdmissionPolicy::ASKED.rule(2)],
        1 => vec![AdmissionPolicy::AT_MOST.rule(1000)],
        2 => vec![AdmissionPolicy::A_DAY.rule(10_000_000_000)],
        _ => Vec::new(),
    };
    let budget_bytes = BUDGETS[random.below(4) as usize];
    let time_to_live_ms = (random.below(4) == 0).then(|| 1 + random.below(20));
    CacheAttributes { plan: CachePlan { budget_bytes, eviction, admission }, time_to_live_ms }
}

/// Makes a cache another one, or looks whether it keeps to its budget.
pub(super) fn step(caller: &mut Caller, store: &Store, id: NamespaceId) -> Step {
    if id == NamespaceId::FIRST {
        return Step::Answered;
    }
    let namespace = store.namespace_at(id);
    if caller.random.below(4) > 0 {
        return check(caller, namespace, None);
    }
    match namespace.set_cache(Some(&some(&mut caller.random))) {
        Ok(()) | Err(Error::NoNamespace { .. }) => Step::Answered,
        Err(error) => Step::Ended(error),
    }
}

/// Looks at all pairs of all caches while nobody changes them: there are those that the policy knows of.
pub(super) fn look(caller: &mut Caller, store: &Store) {
    let infos = match store.namespaces() {
        Ok(infos) => infos,
        Err(error) => return drop(caller.wrong(&format!("a namespace cannot be listed: {error}"))),
    };
    for id in infos.into_iter().map(|info| info.id).filter(|id| *id != NamespaceId::FIRST) {
        let (namespace, mut found_bytes) = (store.namespace_at(id), 0);
        for number in 0..caller.keys {
            let (place, line) = ((id.0, number), caller.look_at((id.0, number)));
            match namespace.retrieve(&key(number)) {
                Ok(value) => {
                    caller.saw(line, place, value.as_deref());
                    found_bytes += value.map_or(0, |value| (key(number).len() + value.len()) as u64);
                }
                Err(error) => return drop(caller.wrong(&format!("{place:?} cannot be read: {error}"))),
            }
        }
        if let Step::Ended(error) = check(caller, namespace, Some(found_bytes)) {
            caller.wrong(&format!("a cache cannot be looked at: {error}"));
        }
    }
}

/// Whether a cache keeps to its budget, and knows of pairs of so many bytes where nobody changes it meanwhile.
pub(super) fn check(caller: &Caller, namespace: Namespace<'_>, found_bytes: Option<u64>) -> Step {
    let cache = match namespace.cache() {
        Ok(Some(cache)) => cache,
        Ok(None) if found_bytes.is_some() => return caller.wrong("a cache is none any more"),
        // It was deleted meanwhile.
        Ok(None) | Err(Error::NoNamespace { .. }) => return Step::Answered,
        Err(error) => return Step::Ended(error),
    };
    // Time goes on while one looks.
    let knows_others = cache.attributes.time_to_live_ms.is_none() && found_bytes.is_some_and(|b| b != cache.held_bytes);
    if knows_others || cache.held_bytes > cache.attributes.plan.budget_bytes {
        return caller.wrong(&format!("a cache with pairs of {found_bytes:?} bytes has {cache:?}"));
    }
    Step::Answered
}
