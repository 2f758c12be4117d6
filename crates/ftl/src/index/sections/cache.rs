//! The sections that DRAM holds, first in, first out.
//!
//! ```text
//!   leave  <-  | 7 | 8 | 9 | ... | 41 |  <-  come          tickets: the directory finds a section by its own
//! ```

use kvssd_flash::Blob;
use kvssd_types::Nanos;
use std::collections::VecDeque;

/// Bytes of DRAM that a section takes beside its own: its number, state and place in the queue.
const ENTRY_BYTES: u64 = 16;

/// What a section that is in DRAM is found by. Tickets are given out in turn, and after 2^31 again from the first on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u32);

impl Ticket {
    /// The ticket of sections that are not in DRAM.
    pub(crate) const NONE: Ticket = Ticket(u32::MAX);

    const MASK: u32 = u32::MAX >> 1;
}

/// A section in DRAM.
#[derive(Clone, Debug)]
pub(crate) struct Cached {
    /// Its number; none when it was replaced.
    pub(crate) section: Option<u64>,
    pub(crate) bytes: Blob,
    /// It was changed since it was read or written, and is written when it leaves.
    pub(crate) dirty: bool,
    /// It was changed by garbage collection alone, on a testbed that writes nothing for that: its bytes are kept when it leaves.
    pub(crate) moved: bool,
    /// Memory has let go of the older bytes on flash, so that these need no copy to be changed.
    pub(crate) forgotten: bool,
    /// When it is in DRAM: a command that comes before has to wait.
    pub(crate) ready: Nanos,
}

/// The sections in DRAM.
#[derive(Clone, Debug, Default)]
pub(crate) struct SectionCache {
    queue: VecDeque<Cached>,
    /// The ticket of the one that leaves next.
    first: u32,
    bytes: u64,
}

impl SectionCache {
    /// Bytes of DRAM that they take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of DRAM that a section of `bytes` takes here.
    pub(crate) fn cost_bytes(bytes: usize) -> u64 {
        bytes as u64 + ENTRY_BYTES
    }

    /// Takes a section in.
    pub(crate) fn push(&mut self, cached: Cached) -> Ticket {
        self.bytes += Self::cost_bytes(cached.bytes.len());
        self.queue.push_back(cached);
        Ticket((self.first + self.queue.len() as u32 - 1) & Ticket::MASK)
    }

    /// Puts the section out that came first.
    pub(crate) fn pop(&mut self) -> Option<Cached> {
        let cached = self.queue.pop_front()?;
        self.bytes -= Self::cost_bytes(cached.bytes.len());
        self.first = (self.first + 1) & Ticket::MASK;
        Some(cached)
    }

    /// Takes out a section and all that came behind it; all that are here, if it has left.
    pub(crate) fn take_from(&mut self, ticket: Ticket) -> VecDeque<Cached> {
        let position = Some(self.position(ticket)).filter(|&position| position < self.queue.len());
        let taken = self.queue.split_off(position.unwrap_or(0));
        self.bytes -= taken.iter().map(|cached| Self::cost_bytes(cached.bytes.len())).sum::<u64>();
        taken
    }

    /// A section that is here was replaced by others: it will leave as nobody's. Returns whether memory has let go of its
    /// older bytes on flash.
    pub(crate) fn abandon(&mut self, ticket: Ticket) -> bool {
        let cached = self.get_mut(ticket);
        (cached.section, cached.dirty, cached.moved) = (None, false, false);
        cached.forgotten
    }

    /// A section that is here.
    #[inline]
    pub(crate) fn get(&self, ticket: Ticket) -> &Cached {
        &self.queue[self.position(ticket)]
    }

    /// A section that is here, to change its state.
    #[inline]
    pub(crate) fn get_mut(&mut self, ticket: Ticket) -> &mut Cached {
        let position = self.position(ticket);
        &mut self.queue[position]
    }

    /// Edits a section that is here; returns how many bytes it had and has, and what `edit` gave.
    pub(crate) fn edit<T>(&mut self, ticket: Ticket, edit: impl FnOnce(&mut Cached) -> T) -> (usize, usize, T) {
        let cached = self.get_mut(ticket);
        let before = cached.bytes.len();
        let given = edit(cached);
        let after = cached.bytes.len();
        self.bytes = self.bytes - before as u64 + after as u64;
        (before, after, given)
    }

    /// The sections that leave next, in order.
    pub(crate) fn leavers(&self) -> impl Iterator<Item = &Cached> {
        self.queue.iter()
    }

    fn position(&self, ticket: Ticket) -> usize {
        (ticket.0.wrapping_sub(self.first) & Ticket::MASK) as usize
    }
}
