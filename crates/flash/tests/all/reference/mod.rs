//! The same hardware as [`kvssd_flash::timing::Clockwork`] as a classic event-driven simulation: nothing is reserved ahead
//! of time, whoever needs a die or a channel stands in its queue, first come first served.
//!
//! ```text
//!   Asks --> die's queue --> read:    sense -- Sensed --> channel's queue -- Crossed, for each chunk --> Done
//!                            program: channel's queue -- Crossed, for each chunk --> program --> Done
//!                            erase:   --> Done
//! ```
//!
//! It shares no code with the calendars; it is slow, and right by inspection.

use crate::closed_loop::{Figures, Meter};
use kvssd_flash::{Geometry, NandTimes};
use kvssd_types::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// One operation on a die.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Read { die: u32, row: u32, pages: u32 },
    Program { die: u32 },
    Erase { die: u32 },
}

impl Operation {
    fn die(self) -> usize {
        match self {
            Operation::Read { die, .. } | Operation::Program { die } | Operation::Erase { die } => die as usize,
        }
    }
}

/// The operations of a request, each of which begins when the one before it is done.
pub(crate) type Request = Vec<Operation>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Asks,
    Sensed,
    Crossed,
    Done,
}

/// A die or a channel: who has it and who waits for it, as numbers of slots.
#[derive(Clone, Debug, Default)]
struct Station {
    held: bool,
    waiting: VecDeque<usize>,
}

/// A request in flight.
struct Slot {
    request: Request,
    step: usize,
    /// What has yet to cross the channel in this step.
    bytes_left: u64,
    arrival: Nanos,
}

/// The simulation: a heap of events, two kinds of stations and the requests in flight.
struct Reference<'a> {
    geometry: &'a Geometry,
    times: &'a NandTimes,
    now: Nanos,
    events: BinaryHeap<Reverse<(Nanos, u64, Event, usize)>>,
    events_count: u64,
    dies: Vec<Station>,
    channels: Vec<Station>,
    slots: Vec<Slot>,
}

/// Keeps `depth` requests in flight, each the `next` one when it arrives, until `completions_wanted` are done.
pub(crate) fn run(
    geometry: &Geometry,
    times: &NandTimes,
    depth: u32,
    completions_wanted: u64,
    mut next: impl FnMut() -> Request,
) -> Figures {
    let mut meter = Meter::new(completions_wanted);
    let mut reference = Reference {
        geometry,
        times,
        now: Nanos::ZERO,
        events: BinaryHeap::new(),
        events_count: 0,
        dies: vec![Station::default(); geometry.dies() as usize],
        channels: vec![Station::default(); geometry.channels as usize],
        slots: Vec::new(),
    };
    for slot in 0..depth as usize {
        reference.slots.push(Slot { request: next(), step: 0, bytes_left: 0, arrival: Nanos::ZERO });
        reference.after(Nanos::ZERO, Event::Asks, slot);
    }
    while !meter.is_full() {
        if let Some(slot) = reference.step() {
            meter.complete(reference.slots[slot].arrival, reference.now);
            reference.slots[slot] = Slot { request: next(), step: 0, bytes_left: 0, arrival: reference.now };
            reference.after(Nanos::ZERO, Event::Asks, slot);
        }
    }
    meter.figures()
}

impl Reference<'_> {
    /// Lets the next event happen; gives the slot whose request is done with it.
    fn step(&mut self) -> Option<usize> {
        let Reverse((now, _, event, slot)) = self.events.pop().expect("a request in flight has an event to come");
        self.now = now;
        let operation = self.operation(slot);
        match event {
            Event::Asks => {
                self.dies[operation.die()].waiting.push_back(slot);
                self.start_die(operation.die());
            }
            Event::Sensed => self.ask_channel(slot),
            Event::Crossed => self.crossed(slot),
            Event::Done => {
                self.dies[operation.die()].held = false;
                self.start_die(operation.die());
                self.slots[slot].step += 1;
                if self.slots[slot].step == self.slots[slot].request.len() {
                    return Some(slot);
                }
                self.after(Nanos::ZERO, Event::Asks, slot);
            }
        }
        None
    }

    fn after(&mut self, span: Nanos, event: Event, slot: usize) {
        self.events.push(Reverse((self.now + span, self.events_count, event, slot)));
        self.events_count += 1;
    }

    fn operation(&self, slot: usize) -> Operation {
        self.slots[slot].request[self.slots[slot].step]
    }

    /// Lets the first who waits for a free die have it.
    fn start_die(&mut self, die: usize) {
        if self.dies[die].held {
            return;
        }
        let Some(slot) = self.dies[die].waiting.pop_front() else { return };
        self.dies[die].held = true;
        match self.operation(slot) {
            Operation::Read { row, pages, .. } => {
                let bytes = u64::from(pages) * u64::from(self.geometry.page_bytes);
                let small = bytes <= u64::from(self.times.read_small_bytes_max);
                let levels = if small { &self.times.read_small_ns } else { &self.times.read_large_ns };
                let sense = Nanos(levels[row as usize % levels.len()]);
                self.slots[slot].bytes_left = bytes;
                self.after(sense, Event::Sensed, slot);
            }
            Operation::Program { .. } => {
                self.slots[slot].bytes_left = self.geometry.unit_bytes();
                self.ask_channel(slot);
            }
            Operation::Erase { .. } => self.after(Nanos(self.times.erase_ns), Event::Done, slot),
        }
    }

    fn channel_of(&self, slot: usize) -> usize {
        self.operation(slot).die() % self.channels.len()
    }

    fn chunk_bytes(&self, slot: usize) -> u64 {
        self.slots[slot].bytes_left.min(u64::from(self.times.channel_transfer_bytes_max))
    }

    fn ask_channel(&mut self, slot: usize) {
        let channel = self.channel_of(slot);
        self.channels[channel].waiting.push_back(slot);
        self.start_channel(channel);
    }

    /// Lets the first who waits for a free channel move its next chunk.
    fn start_channel(&mut self, channel: usize) {
        if self.channels[channel].held {
            return;
        }
        let Some(slot) = self.channels[channel].waiting.pop_front() else { return };
        self.channels[channel].held = true;
        let span = Nanos::of_transfer(self.chunk_bytes(slot), self.times.channel_bytes_per_s);
        self.after(span, Event::Crossed, slot);
    }

    fn crossed(&mut self, slot: usize) {
        let channel = self.channel_of(slot);
        self.channels[channel].held = false;
        self.slots[slot].bytes_left -= self.chunk_bytes(slot);
        if self.slots[slot].bytes_left > 0 {
            self.channels[channel].waiting.push_back(slot);
        } else {
            let rest = match self.operation(slot) {
                Operation::Program { .. } => Nanos(self.times.program_ns),
                Operation::Read { .. } | Operation::Erase { .. } => Nanos::ZERO,
            };
            self.after(rest, Event::Done, slot);
        }
        self.start_channel(channel);
    }
}
