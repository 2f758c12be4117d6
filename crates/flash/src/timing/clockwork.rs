//! Dies and channels at work.
//!
//! ```text
//!   read      die     |---- sense ----|-- held --|          the die is held until its data is out
//!             channel                 |xfer|xfer|           chunks of the largest transfer
//!
//!   program   die     |-- data in --|------- program -------|
//!             channel |xfer|xfer|
//!
//!   erase     die     |------------ erase ------------|
//! ```

use crate::timing::Calendar;
use crate::{DieId, Geometry, NandTimes};
use kvssd_types::Nanos;

/// The calendars of all dies and channels, and the times that operations take.
#[derive(Clone, Debug)]
pub struct Clockwork {
    channels_count: u32,
    dies: Vec<Calendar>,
    channels: Vec<Calendar>,
    now: Nanos,
    /// By the number of pages that cross the channel.
    crossings: Vec<Crossing>,
    program: Nanos,
    erase: Nanos,
}

/// What moving some pages of one unit takes.
#[derive(Clone, Debug)]
struct Crossing {
    /// Sensing, by cell level.
    sense: Vec<Nanos>,
    /// Each chunk's time on the channel.
    chunks: Vec<Nanos>,
    /// All chunks without a pause.
    transfer: Nanos,
}

impl Clockwork {
    /// A drive that does nothing yet.
    #[must_use]
    pub fn new(geometry: &Geometry, times: &NandTimes) -> Self {
        let crossing = |pages: u32| {
            let bytes = u64::from(pages) * u64::from(geometry.page_bytes);
            let chunk_bytes_max = u64::from(times.channel_transfer_bytes_max);
            let chunks: Vec<Nanos> = (0..bytes.div_ceil(chunk_bytes_max))
                .map(|chunk| chunk_bytes_max.min(bytes - chunk * chunk_bytes_max))
                .map(|chunk_bytes| Nanos::of_transfer(chunk_bytes, times.channel_bytes_per_s))
                .collect();
            let small = bytes <= u64::from(times.read_small_bytes_max);
            let sense = if small { &times.read_small_ns } else { &times.read_large_ns };
            Crossing {
                sense: sense.iter().copied().map(Nanos).collect(),
                transfer: chunks.iter().copied().sum(),
                chunks,
            }
        };
        Clockwork {
            channels_count: geometry.channels,
            dies: vec![Calendar::default(); geometry.dies() as usize],
            channels: vec![Calendar::default(); geometry.channels as usize],
            now: Nanos::ZERO,
            crossings: (0..=geometry.pages_per_program).map(crossing).collect(),
            program: Nanos(times.program_ns),
            erase: Nanos(times.erase_ns),
        }
    }

    /// Nobody asks with a clock before `now` any more.
    pub fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
    }

    /// Reads `pages` pages of the unit in row `row` of a block on `die`; gives the moment when they are in the controller.
    pub fn read(&mut self, die: DieId, row: u32, pages: u32, at: Nanos) -> Nanos {
        let crossing = &self.crossings[pages as usize];
        let sense = crossing.sense[row as usize % crossing.sense.len()];
        let channel = &mut self.channels[(die.0 % self.channels_count) as usize];
        let die = &mut self.dies[die.0 as usize];
        die.advance(self.now);
        channel.advance(self.now);
        let mut from = at;
        loop {
            let start = die.first_gap(from, sense + crossing.transfer);
            let out = cross(channel, &crossing.chunks, start + sense);
            match die.conflict(start, out) {
                None => {
                    die.reserve(start, out);
                    reserve_crossing(channel, &crossing.chunks, start + sense);
                    return out;
                }
                // The channel is so busy that the die would be held into its next reservation: try behind that.
                Some(end) => from = end,
            }
        }
    }

    /// Programs a unit on `die`; gives the moment when the program ends.
    pub fn program(&mut self, die: DieId, at: Nanos) -> Nanos {
        let crossing = self.crossings.last().expect("a unit has pages");
        let channel = &mut self.channels[(die.0 % self.channels_count) as usize];
        let die = &mut self.dies[die.0 as usize];
        die.advance(self.now);
        channel.advance(self.now);
        let mut from = at;
        loop {
            let start = die.first_gap(from, crossing.transfer + self.program);
            let end = cross(channel, &crossing.chunks, start) + self.program;
            match die.conflict(start, end) {
                None => {
                    die.reserve(start, end);
                    reserve_crossing(channel, &crossing.chunks, start);
                    return end;
                }
                Some(busy_until) => from = busy_until,
            }
        }
    }

    /// Erases a block on `die`; gives the moment when it is erased.
    pub fn erase(&mut self, die: DieId, at: Nanos) -> Nanos {
        let die = &mut self.dies[die.0 as usize];
        die.advance(self.now);
        die.take(at, self.erase) + self.erase
    }
}

/// When the last of `chunks` would be over the channel, each going as soon as the one before it is over.
fn cross(channel: &Calendar, chunks: &[Nanos], at: Nanos) -> Nanos {
    chunks.iter().fold(at, |ready, &chunk| channel.first_gap(ready, chunk) + chunk)
}

/// Takes what [`cross`] found.
fn reserve_crossing(channel: &mut Calendar, chunks: &[Nanos], at: Nanos) {
    chunks.iter().fold(at, |ready, &chunk| channel.take(ready, chunk) + chunk);
}
