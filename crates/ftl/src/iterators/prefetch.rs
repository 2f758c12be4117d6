//! Values in flight: which sectors were asked for, when they arrive, and the one buffer that all iterators share.

use super::degree::{IteratorPlan, Pace};
use crate::io::Io;
use crate::io::value::ValuePart;
use crate::journal::PairPlace;
use kvssd_flash::{Cause, PageAddress};
use kvssd_types::{Nanos, OwnedKey};
use std::collections::{BTreeMap, VecDeque};

/// A sector of a page.
type Sector = (PageAddress, u32);

/// The buffer of all iterators, in sectors.
#[derive(Clone, Debug)]
pub(super) struct PrefetchPool {
    bytes_max: u64,
    bytes: u64,
    sector_bytes: u64,
    /// What the last iterator measured.
    pub(super) pace: Pace,
}

impl PrefetchPool {
    pub(super) fn new(bytes_max: u64, sector_bytes: u32) -> Self {
        PrefetchPool { bytes_max, bytes: 0, sector_bytes: sector_bytes.into(), pace: Pace::default() }
    }

    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }
}

/// A pair that comes next.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    pub(super) key: OwnedKey,
    pub(super) pair: PairPlace,
    /// The sectors that were asked for; none when it was not read ahead.
    sectors: Vec<Sector>,
    /// Whether none of them was in flight already.
    is_fresh: bool,
}

/// How many iterators share the dies, which are those with values in flight, and the buffer, which are those with any values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharers {
    pub(super) flying: u32,
    pub(super) holding: u32,
}

impl Ahead {
    pub(super) fn new(key: OwnedKey, pair: PairPlace) -> Self {
        Ahead { key, pair, sectors: Vec::new(), is_fresh: false }
    }

    pub(super) fn is_on_its_way(&self) -> bool {
        !self.sectors.is_empty()
    }
}

/// A sector that was asked for: when that was, when it arrives, and how many pairs want it.
#[derive(Clone, Copy, Debug)]
struct Flight {
    asked: Nanos,
    ready: Nanos,
    wanted: u32,
}

/// What an iterator has read ahead.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefetch {
    pairs: VecDeque<Ahead>,
    sectors: BTreeMap<Sector, Flight>,
    /// When the last sector that was asked for arrives.
    landed: Nanos,
    /// The sector that the last pair ended in. It is still in the controller, and the next pair may begin in it.
    at_hand: Option<ValuePart>,
    /// Whether the cursor is at the end of the range.
    pub(super) is_at_end: bool,
}

impl Prefetch {
    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(super) fn pop(&mut self) -> Option<Ahead> {
        self.pairs.pop_front()
    }

    /// Puts pairs back to the front.
    pub(super) fn put_back(&mut self, chosen: Vec<Ahead>) {
        chosen.into_iter().rev().for_each(|ahead| self.pairs.push_front(ahead));
    }

    pub(super) fn push(&mut self, ahead: Ahead) {
        self.pairs.push_back(ahead);
    }

    /// Whether another value may be read ahead: every iterator has its share of the buffer, and an adaptive one has no
    /// more pages on their way than its share of the dies.
    pub(super) fn has_room(&self, io: &Io<'_>, plan: &IteratorPlan, pool: &PrefetchPool, sharers: Sharers) -> bool {
        let geometry = &io.media.space.geometry;
        let own_bytes = self.sectors.len() as u64 * pool.sector_bytes;
        if own_bytes >= pool.bytes_max / u64::from(sharers.holding.max(1)) || pool.bytes >= pool.bytes_max {
            return false;
        }
        if !plan.prefetch_degree.is_adaptive() {
            return true;
        }
        let flying = self.sectors.iter().filter(|(_, flight)| flight.ready > io.clock);
        let mut pages: Vec<PageAddress> = flying.map(|((page, _), _)| *page).collect();
        pages.dedup();
        (pages.len() as u64) < u64::from((geometry.dies() / sharers.flying.max(1)).max(1))
    }

    /// Registers the sectors that a pair needs. Returns those that nobody has asked for yet.
    pub(super) fn expect(&mut self, ahead: &mut Ahead, parts: &[ValuePart], pool: &mut PrefetchPool) -> Vec<Sector> {
        let sector_bytes = pool.sector_bytes as usize;
        let mut fresh = Vec::new();
        for (page, bytes) in parts {
            for sector in bytes.start / sector_bytes..bytes.end.div_ceil(sector_bytes) {
                let sector = (*page, sector as u32);
                let flight = self.sectors.entry(sector).or_insert_with(|| {
                    fresh.push(sector);
                    pool.bytes += sector_bytes as u64;
                    Flight { asked: Nanos::MAX, ready: Nanos::MAX, wanted: 0 }
                });
                flight.wanted += 1;
                ahead.sectors.push(sector);
            }
        }
        ahead.is_fresh = fresh.len() == ahead.sectors.len();
        fresh
    }

    /// Has sectors read without waiting, those of a program unit together.
    pub(super) fn read(&mut self, io: &mut Io<'_>, mut fresh: Vec<Sector>) {
        io.settle();
        fresh.sort_unstable();
        let geometry = io.media.space.geometry;
        let sector_bytes = geometry.sector_bytes() as usize;
        for unit in fresh.chunk_by(|left, right| geometry.unit_of(left.0) == geometry.unit_of(right.0)) {
            let bytes = |sector: u32| sector as usize * sector_bytes..(sector as usize + 1) * sector_bytes;
            let mut parts: Vec<ValuePart> = Vec::new();
            for &(page, sector) in unit {
                match parts.last_mut().filter(|(last, _)| *last == page) {
                    Some((_, part)) => part.end = bytes(sector).end,
                    None => parts.push((page, bytes(sector))),
                }
            }
            let ready = io.read_parts_without_waiting(&parts, Cause::User);
            self.landed = self.landed.max(ready);
            for sector in unit {
                if let Some(flight) = self.sectors.get_mut(sector) {
                    (flight.asked, flight.ready) = (io.clock, ready);
                }
            }
        }
    }

    /// Notes the last sector of a part in which a fetched pair ended.
    pub(super) fn brought(&mut self, (page, bytes): &ValuePart, sector_bytes: u32) {
        let sector_bytes = sector_bytes as usize;
        let end = bytes.end.next_multiple_of(sector_bytes);
        self.at_hand = Some((*page, end - sector_bytes..end));
    }

    /// Whether all of a part was brought with the last pair.
    pub(super) fn is_at_hand(&self, (page, bytes): &ValuePart) -> bool {
        let known = self.at_hand.as_ref().filter(|(known, _)| known == page);
        known.is_some_and(|(_, known)| known.start <= bytes.start && bytes.end <= known.end)
    }

    /// How long a pair that has arrived was in flight, if all of it was asked for at once.
    pub(super) fn took(&self, ahead: &Ahead) -> Option<u64> {
        let first = ahead.sectors.first().filter(|_| ahead.is_fresh)?;
        let took_ns = self.ready(ahead).0.saturating_sub(self.sectors.get(first)?.asked.0);
        // What is still in the write buffer takes nothing.
        (took_ns > 0).then_some(took_ns)
    }

    /// Whether something is on its way at `now`.
    pub(super) fn is_flying(&self, now: Nanos) -> bool {
        self.landed > now
    }

    /// When all that a pair wants is there.
    pub(super) fn ready(&self, ahead: &Ahead) -> Nanos {
        let known = ahead.sectors.iter().filter_map(|sector| self.sectors.get(sector));
        known.map(|flight| flight.ready).max().unwrap_or(Nanos::ZERO)
    }

    /// Releases the sectors of a pair that was returned.
    pub(super) fn let_go(&mut self, ahead: &Ahead, pool: &mut PrefetchPool) {
        for sector in &ahead.sectors {
            if let Some(flight) = self.sectors.get_mut(sector) {
                flight.wanted -= 1;
                if flight.wanted == 0 {
                    self.sectors.remove(sector);
                    pool.bytes -= pool.sector_bytes;
                }
            }
        }
    }

    /// Drops all that was read ahead.
    pub(super) fn clear(&mut self, pool: &mut PrefetchPool) {
        pool.bytes -= self.sectors.len() as u64 * pool.sector_bytes;
        *self = Prefetch::default();
    }
}
