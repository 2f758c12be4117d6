//! How the DRAM that is left for indexes is divided among namespaces (KAML, section IV-C).
//!
//! ```text
//!   caches   an index that keeps in DRAM what it can: an equal part
//!   tables   an index that is a table in DRAM: whole, for those in use first and in the order in which they came; what is left, for
//!            those that nobody uses, the last used first
//! ```
//!
//! A table that gets less than its size is written to flash, and its pages are loaded when they are wanted. A table that is
//! used again after a while goes before those that are not in use ([`IDLE`]).

use crate::index::DramTable;
use kvssd_types::Nanos;

/// A namespace that was not used for so long is unused. An estimate: the paper says "before the application starts".
pub(crate) const IDLE: Nanos = Nanos(1_000_000_000);

/// When a namespace was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// When it was first used after an idle time.
    pub(crate) since: Nanos,
    pub(crate) last: Option<Nanos>,
}

impl Usage {
    /// It is used at `now`; returns whether it was unused before.
    pub(crate) fn touch(&mut self, now: Nanos) -> bool {
        let is_new = self.is_idle(now);
        if is_new {
            self.since = now;
        }
        self.last = Some(self.last.unwrap_or(now).max(now));
        is_new
    }

    fn is_idle(&self, now: Nanos) -> bool {
        self.last.is_none_or(|last| last + IDLE < now)
    }
}

/// What an index wants, and has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    /// The table; none for a cache.
    pub(crate) table: Option<DramTable>,
    pub(crate) held_bytes: u64,
    pub(crate) usage: Usage,
}

/// The share of each index. No index gets DRAM that another one still has to give back.
pub(crate) fn shares(bytes: u64, wants: &[Want], now: Nanos) -> Vec<u64> {
    let part = bytes / wants.len().max(1) as u64;
    let mut shares: Vec<u64> =
        wants.iter().map(|want| want.table.map_or(part, |table| table.least_bytes.min(part))).collect();
    let mut left = bytes - shares.iter().sum::<u64>();
    let mut tables: Vec<usize> = (0..wants.len()).filter(|&number| wants[number].table.is_some()).collect();
    tables.sort_by_key(|&number| match wants[number].usage {
        usage if !usage.is_idle(now) => (0, usage.since),
        usage => (1, Nanos(u64::MAX - usage.last.unwrap_or_default().0)),
    });
    for number in tables {
        let whole_bytes = wants[number].table.map_or(0, |table| table.whole_bytes);
        let more = whole_bytes.saturating_sub(shares[number]).min(left);
        shares[number] += more;
        left -= more;
    }
    let owed: u64 = wants.iter().zip(&shares).map(|(want, &share)| want.held_bytes.saturating_sub(share)).sum();
    let bounded = |(want, share): (&Want, u64)| share.saturating_sub(owed).max(share.min(want.held_bytes));
    wants.iter().zip(shares).map(bounded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Nanos = Nanos(10 * IDLE.0);

    fn table(table_bytes: u64, since: u64, last: u64) -> Want {
        let usage = Usage { since: Nanos(since), last: Some(Nanos(last)) };
        Want { table: Some(DramTable { least_bytes: 0, whole_bytes: table_bytes }), held_bytes: 0, usage }
    }

    #[test]
    fn tables_in_use_are_whole_in_the_order_in_which_they_came() {
        let (first, second, unused) = (table(60, 1, NOW.0), table(30, 2, NOW.0), table(20, 0, 5));
        assert_eq!(shares(100, &[unused, second, first], NOW), [10, 30, 60]);
        assert_eq!(shares(70, &[unused, second, first], NOW), [0, 10, 60]);
    }

    #[test]
    fn caches_have_an_equal_part_beside_tables() {
        let cache = Want { table: None, held_bytes: 0, usage: Usage::default() };
        assert_eq!(shares(90, &[cache, table(80, 1, NOW.0), cache], NOW), [30, 30, 30]);
        assert_eq!(shares(90, &[cache], NOW), [90]);
    }

    #[test]
    fn nobody_gets_what_another_has_yet_to_give_back() {
        let holder = Want { held_bytes: 100, ..table(100, 0, 5) };
        let newcomer = table(80, NOW.0, NOW.0);
        assert_eq!(shares(100, &[holder, newcomer], NOW), [20, 0]);
        let giving = Want { held_bytes: 50, ..holder };
        assert_eq!(shares(100, &[giving, newcomer], NOW), [20, 50]);
        let gave = Want { held_bytes: 20, ..holder };
        assert_eq!(shares(100, &[gave, newcomer], NOW), [20, 80]);
    }

    #[test]
    fn what_was_idle_is_new_again() {
        let mut usage = Usage::default();
        assert!(usage.touch(Nanos(5)) && !usage.touch(Nanos(6)));
        assert!(usage.touch(Nanos(7 + IDLE.0)));
        assert_eq!(usage.since, Nanos(7 + IDLE.0));
    }
}
