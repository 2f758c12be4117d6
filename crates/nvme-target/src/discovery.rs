//! How often what each host discovers has changed: GENCTR of log page 70h.
//!
//! The page says where the subsystem is, and whether TLS is required of the host that reads it. So it changes with that
//! host's rights alone, and its count tells nothing of other hosts.

use crate::rights::{HostRights, Rights};
use std::collections::BTreeMap;

/// Counts from 1, since the service began.
#[derive(Debug, Default)]
pub(crate) struct Discoveries {
    /// Of each host that is named, or was.
    changes: BTreeMap<String, u64>,
    changes_others: u64,
}

impl Discoveries {
    /// Notes that `now` are the rights of all hosts, in the place of `before`.
    pub(crate) fn note(&mut self, before: &Rights, now: &Rights) {
        for nqn in before.names().chain(now.names()) {
            if !self.changes.contains_key(nqn) {
                self.changes.insert(nqn.to_owned(), self.changes_others);
            }
        }
        let is_other = |before_of, now_of| shown(before_of) != shown(now_of);
        for (nqn, changes) in &mut self.changes {
            *changes += u64::from(is_other(before.of(nqn), now.of(nqn)));
        }
        self.changes_others += u64::from(is_other(before.of_others(), now.of_others()));
    }

    /// GENCTR of that host's page.
    pub(crate) fn of(&self, nqn: &str) -> u64 {
        1 + self.changes.get(nqn).unwrap_or(&self.changes_others)
    }
}

/// What the page says of the host: whether TLS is required; `None` of a host that gets no page.
fn shown(rights: Option<&HostRights>) -> Option<bool> {
    rights.map(|rights| rights.tls_key.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_nvme_auth::TlsKey;
    use std::sync::Arc;

    const KEY: &str = "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";

    fn rights(named: &[(&str, bool)], others: Option<bool>) -> Rights {
        let key = Arc::new(TlsKey::parse(KEY).unwrap());
        let of =
            |is_secured: bool| HostRights { tls_key: is_secured.then(|| Arc::clone(&key)), ..HostRights::EVERYTHING };
        Rights::new(named.iter().map(|&(nqn, secured)| (nqn.to_owned(), of(secured))).collect(), others.map(of))
    }

    #[test]
    fn a_count_is_of_what_its_host_sees_and_of_nothing_else() {
        let lives = [
            (rights(&[("a", false), ("b", false)], None), [1, 1, 1]),
            (rights(&[("a", true), ("b", false)], None), [2, 1, 1]),
            (rights(&[("a", true), ("b", false)], Some(false)), [2, 1, 2]),
            // What a host is named for makes no difference to what it discovers.
            (rights(&[("a", true), ("b", false), ("c", false)], Some(false)), [2, 1, 2]),
            (rights(&[("a", true)], Some(false)), [2, 1, 2]),
            (rights(&[("a", true)], Some(true)), [2, 2, 3]),
            (rights(&[], None), [3, 3, 4]),
            (rights(&[("b", false)], Some(true)), [4, 4, 5]),
        ];
        let mut discoveries = Discoveries::default();
        for (index, (now, wanted)) in lives.iter().enumerate() {
            let before = &lives[index.saturating_sub(1)].0;
            discoveries.note(before, now);
            assert_eq!(["a", "b", "c"].map(|nqn| discoveries.of(nqn)), *wanted, "life {index}");
        }
    }
}
