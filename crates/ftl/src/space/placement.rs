//! Placement: which log takes a record (KAML, section IV-B).
//!
//! ```text
//!               target 0   target 1   ...           a target is a group of dies that superblocks spread over
//!   user           log        log                   a log writes to the superblocks of its target, one after the other
//!   collection     log        log
//!   map            log        log
//!   journal        log        log
//! ```
//!
//! Where a drive has placement handles (NVM Express Base 2.1, Flexible Data Placement), users have such a row of logs for
//! each, so that superblocks are their reclaim units: initially isolated, since collection has one row for all.
//!
//! A namespace is mapped to some of the targets, which it may share with others; by default to all. The logs of its
//! targets take turns, a unit each. Nobody relies on where a record lies: collection goes where there is room, and so
//! does a record when its own logs have none.

use crate::layout::oob::Stream;
use kvssd_types::{NamespaceId, PlacementHandle};
use serde::{Deserialize, Serialize};

/// A log of a stream. Users have a row of them for each placement handle, all others have one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct LogId {
    pub(crate) stream: Stream,
    /// The handle times the targets, and the target.
    pub(crate) number: u32,
}

/// What a log has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogRoom {
    /// Its open superblock takes the record.
    Open,
    /// The record needs another one, and its target has one.
    Free,
    /// It needs another one, and there is none.
    None,
}

/// The targets of a namespace: `count` of them from `first` on, where target 0 follows the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    namespace: NamespaceId,
    first: u32,
    count: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Placement {
    targets: u32,
    shares: Vec<Share>,
    /// Whose turn it is, by stream.
    turns: [u32; Stream::ALL.len()],
    /// While fewer superblocks are free than this, none is opened that need not be.
    pub(crate) scarce_superblocks: usize,
}

impl Placement {
    pub(crate) fn new(targets: u32) -> Self {
        Placement { targets, shares: Vec::new(), turns: [0; Stream::ALL.len()], scarce_superblocks: 0 }
    }

    /// Maps namespaces to so many targets each; those that name no number have all.
    pub(crate) fn share(&mut self, wanted: impl Iterator<Item = (NamespaceId, Option<u32>)>) {
        let targets = self.targets;
        let mut first = 0;
        self.shares = wanted
            .filter_map(|(namespace, count)| count.map(|count| (namespace, count.clamp(1, targets))))
            .map(|(namespace, count)| {
                let share = Share { namespace, first, count };
                first = (first + count) % targets;
                share
            })
            .collect();
    }

    /// A unit of a stream was programmed: it is the next log's turn.
    pub(crate) fn turn(&mut self, stream: Stream) {
        let turn = &mut self.turns[stream as usize];
        *turn = turn.wrapping_add(1);
    }

    /// The log that takes a record of a namespace: the next of its own that has room, else any that has. While superblocks are
    /// scarce, a log with room in its open superblock goes before one that would open another.
    pub(crate) fn choose(
        &self,
        stream: Stream,
        namespace: NamespaceId,
        handle: PlacementHandle,
        free_superblocks: usize,
        room: impl Fn(LogId) -> LogRoom,
    ) -> LogId {
        let turn = self.turns[stream as usize];
        let share = self.shares.iter().find(|share| share.namespace == namespace && stream != Stream::Journal);
        let (first, count) = share.map_or((0, self.targets), |share| (share.first, share.count));
        let target = |offset: u32| (first + offset) % self.targets;
        let own = (0..count).map(|step| target((turn % count + step) % count));
        let rest = self.targets - count;
        let others = (0..rest).map(|step| target(count + (turn % rest + step) % rest));
        let row = if stream == Stream::User { u32::from(handle.0) * self.targets } else { 0 };
        let all = own.chain(others).map(|target| LogId { stream, number: row + target });
        if self.targets == 1 {
            return LogId { stream, number: row };
        }
        let is_scarce = free_superblocks < self.scarce_superblocks;
        let open = all.clone().find(|&log| room(log) == LogRoom::Open).filter(|_| is_scarce);
        let any = || all.clone().find(|&log| room(log) != LogRoom::None);
        open.or_else(any).unwrap_or(LogId { stream, number: row + target(0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(target: u32) -> LogId {
        LogId { stream: Stream::User, number: target }
    }

    #[test]
    fn a_namespace_takes_its_own_logs_in_turn_and_any_other_when_they_are_full() {
        let mut placement = Placement::new(4);
        let (a, b, all) = (NamespaceId(1), NamespaceId(2), NamespaceId(3));
        placement.share([(a, Some(3)), (b, Some(2)), (all, None)].into_iter());
        let mut taken = |namespace| {
            let taken: Vec<u32> = (0..6)
                .map(|_| {
                    placement.turn(Stream::User);
                    placement.choose(Stream::User, namespace, PlacementHandle::DEFAULT, 9, |_| LogRoom::Free).number
                })
                .collect();
            taken
        };
        assert_eq!(taken(a), [1, 2, 0, 1, 2, 0]);
        // The last log and, around, the first one.
        assert_eq!(taken(b), [0, 3, 0, 3, 0, 3]);
        assert_eq!(taken(all).iter().max(), Some(&3));
        let is_full = |log: LogId| if log.number < 3 { LogRoom::None } else { LogRoom::Free };
        assert_eq!(placement.choose(Stream::User, a, PlacementHandle::DEFAULT, 9, is_full), log(3));
    }

    #[test]
    fn while_superblocks_are_scarce_none_is_opened_that_need_not_be() {
        let mut placement = Placement::new(4);
        placement.scarce_superblocks = 5;
        let room = |log: LogId| if log.number == 2 { LogRoom::Open } else { LogRoom::Free };
        assert_eq!(placement.choose(Stream::User, NamespaceId(1), PlacementHandle::DEFAULT, 5, room), log(0));
        assert_eq!(placement.choose(Stream::User, NamespaceId(1), PlacementHandle::DEFAULT, 4, room), log(2));
    }
}
