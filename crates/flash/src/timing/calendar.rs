//! A calendar: when one resource (a die, a channel, the link, a core) is taken.
//!
//! A reservation takes free time at or after the asker's clock, so that a request that is handled later can use a gap that an
//! earlier one left:
//!
//! ```text
//!                     t
//!   taken               ####   ########        ###
//!   take 6 at t                        ^^^^^^      the first gap that is long enough
//!   fill 6 at t       ^^    ^^^        ^           whatever is free
//!   squeeze 6 at t          ^^^        ^^^         from the first gap on that half of it fits into
//! ```
//!
//! Requests need not fit into one gap. Gaps that are too short would be lost, although only the order in which requests are
//! handled made them: in a queue, the earlier request would have gone first and delayed the other. But the other's time is
//! already promised, so the earlier request is split around it, and the resource works as much as it would have.
//! `tests/all/calendars_against_reference.rs` holds the error that is left.

use crate::timing::{Lane, Recording, Work};
use kvssd_types::Nanos;
use std::collections::VecDeque;

/// The reservations of one resource that still matter. Neighbours that touch are one.
#[derive(Clone, Debug, Default)]
pub struct Calendar {
    taken: VecDeque<(Nanos, Nanos)>,
    busy: Nanos,
}

impl Calendar {
    /// The first moment at or after `at` from which the resource is free for `length`.
    #[must_use]
    pub fn first_gap(&self, at: Nanos, length: Nanos) -> Nanos {
        match self.taken.back() {
            Some(last) if last.1 > at => {}
            _ => return at,
        }
        let mut start = at;
        for &(from, until) in self.taken.range(self.first_ending_after(at)..) {
            if start + length <= from {
                return start;
            }
            start = start.max(until);
        }
        start
    }

    /// Takes the resource from `from` until `until`.
    ///
    /// # Panics
    /// When it is taken already.
    pub fn reserve(&mut self, from: Nanos, until: Nanos) {
        if from == until {
            return;
        }
        self.busy += until - from;
        let index = self.first_ending_after(from);
        assert!(self.taken.get(index).is_none_or(|next| until <= next.0), "a resource is taken twice");
        let touches_next = self.taken.get(index).is_some_and(|next| next.0 == until);
        let touches_previous = index > 0 && self.taken[index - 1].1 == from;
        match (touches_previous, touches_next) {
            (true, true) => {
                self.taken[index - 1].1 = self.taken[index].1;
                self.taken.remove(index);
            }
            (true, false) => self.taken[index - 1].1 = until,
            (false, true) => self.taken[index].0 = from,
            (false, false) => self.taken.insert(index, (from, until)),
        }
    }

    /// Takes the resource for `length` in the first gap at or after `at`; returns the start.
    pub fn take(&mut self, at: Nanos, length: Nanos) -> Nanos {
        let start = self.first_gap(at, length);
        self.reserve(start, start + length);
        start
    }

    /// The moment at or after `at` from which nothing is reserved any more.
    #[must_use]
    pub fn free_from(&self, at: Nanos) -> Nanos {
        self.taken.back().map_or(at, |last| last.1.max(at))
    }

    /// When [`Calendar::fill`] would end.
    #[must_use]
    pub fn filled(&self, at: Nanos, length: Nanos) -> Nanos {
        let mut until = at + length;
        for taken in self.taken.range(self.first_ending_after(at)..).take_while(|_| length > Nanos::ZERO) {
            if taken.0 >= until {
                break;
            }
            until += taken.1 - taken.0.max(at);
        }
        until
    }

    /// The pieces that [`Calendar::fill`] would take.
    #[must_use]
    pub fn pieces(&self, at: Nanos, length: Nanos) -> Vec<(Nanos, Nanos)> {
        let (mut pieces, mut from, mut left) = (Vec::new(), at, length);
        for taken in self.taken.range(self.first_ending_after(at)..) {
            let piece = left.min(taken.0 - from);
            if piece > Nanos::ZERO {
                pieces.push((from, from + piece));
                left = left - piece;
            }
            if left == Nanos::ZERO {
                return pieces;
            }
            from = from.max(taken.1);
        }
        if left > Nanos::ZERO {
            pieces.push((from, from + left));
        }
        pieces
    }

    /// Takes the first `length` of free time at or after `at`, in as many pieces as it lies in; returns the end of the last.
    pub fn fill(&mut self, at: Nanos, length: Nanos) -> Nanos {
        if length == Nanos::ZERO {
            return at;
        }
        self.busy += length;
        let mut first = self.first_ending_after(at);
        let (mut next, mut from, mut until) = (first, at, at + length);
        // Reservations on the way delay the end.
        while let Some(taken) = self.taken.get(next).filter(|taken| taken.0 < until) {
            until += taken.1 - taken.0.max(at);
            from = from.min(taken.0);
            next += 1;
        }
        let end = until;
        // Nothing from `at` to the end is free now: all that lay there, and what touches it, is one reservation.
        if let Some(touching) = self.taken.get(next).filter(|taken| taken.0 == end) {
            until = touching.1;
            next += 1;
        }
        if first > 0 && self.taken[first - 1].1 == from {
            first -= 1;
            from = self.taken[first].0;
        }
        if first == next {
            self.taken.insert(first, (from, until));
        } else {
            self.taken[first] = (from, until);
            self.taken.drain(first + 1..next);
        }
        end
    }

    /// As [`Calendar::fill`], from the first gap on in which at least half of `length` fits; returns the end of the last piece.
    ///
    /// Between things that go one after another whole, such as transfers, this errs to neither side: whoever is asked for
    /// late either pushes in, as if the next one could still be put off, or stays behind it.
    #[inline]
    pub fn squeeze(&mut self, at: Nanos, length: Nanos) -> Nanos {
        if length == Nanos::ZERO {
            return at;
        }
        self.fill(self.squeezed(at, length), length)
    }

    /// Where [`Calendar::squeeze`] would begin.
    #[must_use]
    #[inline]
    pub fn squeezed(&self, at: Nanos, length: Nanos) -> Nanos {
        self.first_gap(at, Nanos(length.0.div_ceil(2)))
    }

    /// How long it was reserved so far, including reservations that lie ahead.
    #[must_use]
    pub fn busy(&self) -> Nanos {
        self.busy
    }

    /// Drops what ended before `now`: nobody asks with an earlier clock any more.
    #[inline]
    pub fn advance(&mut self, now: Nanos) {
        while self.taken.front().is_some_and(|first| first.1 <= now) {
            self.taken.pop_front();
        }
    }

    fn first_ending_after(&self, at: Nanos) -> usize {
        // Most calendars hold a handful of reservations: looking at each is faster than halving.
        if self.taken.len() <= 16 {
            return self.taken.iter().position(|taken| taken.1 > at).unwrap_or(self.taken.len());
        }
        self.taken.partition_point(|taken| taken.1 <= at)
    }
}

/// Several resources of which any will do, such as the cores of the firmware.
#[derive(Clone, Debug)]
pub struct Pool {
    members: Vec<Calendar>,
}

impl Pool {
    /// `members` free resources, at least one.
    #[must_use]
    pub fn new(members: u32) -> Self {
        assert!(members > 0, "a pool has members");
        Pool { members: vec![Calendar::default(); members as usize] }
    }

    /// Reserves `length` of free time at or after `at` on the member that is done first, around its other reservations.
    /// Returns the end.
    pub fn take(&mut self, at: Nanos, length: Nanos, now: Nanos) -> Nanos {
        self.take_for(at, length, now, &mut Recording::default(), Work::Compute)
    }

    /// As [`Pool::take`], of cores, for this work.
    pub fn take_for(&mut self, at: Nanos, length: Nanos, now: Nanos, recording: &mut Recording, work: Work) -> Nanos {
        let mut best = (Nanos::MAX, 0);
        for (index, member) in self.members.iter_mut().enumerate() {
            member.advance(now);
            let end = member.filled(at, length);
            if end < best.0 {
                best = (end, index);
            }
            if end == at + length {
                break;
            }
        }
        recording.fill(&mut self.members[best.1], (at, length), Lane::Core(best.1 as u32), work)
    }

    /// How long each member was reserved so far, including reservations that lie ahead.
    pub fn busy(&self) -> impl Iterator<Item = Nanos> {
        self.members.iter().map(Calendar::busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn takes_the_first_gap_and_never_twice(asks in prop::collection::vec((0u64..300, 1u64..20), 1..60)) {
            let mut calendar = Calendar::default();
            let mut taken = vec![false; 4000];
            for (at, length) in asks {
                let expected = (at as usize..).find(|&start| !taken[start..start + length as usize].contains(&true)).unwrap();
                let start = calendar.take(Nanos(at), Nanos(length)).0 as usize;
                prop_assert_eq!(start, expected);
                taken[start..start + length as usize].fill(true);
                let runs = taken.windows(2).filter(|pair| !pair[0] && pair[1]).count() + usize::from(taken[0]);
                prop_assert_eq!(calendar.taken.len(), runs);
            }
        }

        #[test]
        fn fills_whatever_is_free_and_squeezes_where_half_fits(
            asks in prop::collection::vec((0u64..300, 1u64..20, any::<bool>()), 1..60),
        ) {
            let mut calendar = Calendar::default();
            let mut taken = vec![false; 4000];
            for (at, length, squeezed) in asks {
                let free = |from: usize, length: u64| !taken[from..from + length as usize].contains(&true);
                let half = (at as usize..).find(|&start| free(start, length.div_ceil(2))).unwrap();
                let from = if squeezed { half } else { at as usize };
                let pieces: Vec<_> = (from..).filter(|&moment| !taken[moment]).take(length as usize).collect();
                let told = calendar.pieces(Nanos(if squeezed { half as u64 } else { at }), Nanos(length));
                let told: Vec<usize> = told.iter().flat_map(|(from, until)| from.0 as usize..until.0 as usize).collect();
                prop_assert_eq!(&told, &pieces);
                if !squeezed {
                    prop_assert_eq!(calendar.filled(Nanos(at), Nanos(length)).0 as usize, pieces[pieces.len() - 1] + 1);
                }
                let end = if squeezed {
                    calendar.squeeze(Nanos(at), Nanos(length))
                } else {
                    calendar.fill(Nanos(at), Nanos(length))
                };
                prop_assert_eq!(end.0 as usize, pieces[pieces.len() - 1] + 1);
                pieces.iter().for_each(|&moment| taken[moment] = true);
                let runs = taken.windows(2).filter(|pair| !pair[0] && pair[1]).count() + usize::from(taken[0]);
                prop_assert_eq!(calendar.taken.len(), runs);
            }
        }
    }

    #[test]
    fn a_later_request_uses_the_gap_that_an_earlier_one_left() {
        let mut calendar = Calendar::default();
        assert_eq!(calendar.take(Nanos(100), Nanos(10)), Nanos(100));
        assert_eq!(calendar.take(Nanos(50), Nanos(10)), Nanos(50));
        assert_eq!(calendar.take(Nanos(55), Nanos(41)), Nanos(110));
    }

    #[test]
    fn a_pool_works_on_several_things_at_once() {
        let mut pool = Pool::new(2);
        assert_eq!(pool.take(Nanos(0), Nanos(10), Nanos(0)), Nanos(10));
        assert_eq!(pool.take(Nanos(0), Nanos(10), Nanos(0)), Nanos(10));
        assert_eq!(pool.take(Nanos(0), Nanos(10), Nanos(0)), Nanos(20));
    }

    #[test]
    fn a_pool_loses_nothing_to_fragments() {
        let mut pool = Pool::new(1);
        // Small pieces, reserved ahead, leave gaps of 9.
        for piece in 0..100 {
            pool.take(Nanos(10 * piece), Nanos(1), Nanos(0));
        }
        for piece in 1..=18 {
            assert!(pool.take(Nanos(0), Nanos(50), Nanos(0)) <= Nanos(50 * piece * 10 / 9 + 10));
        }
        assert_eq!(pool.busy().collect::<Vec<_>>(), [Nanos(1000)]);
    }
}
