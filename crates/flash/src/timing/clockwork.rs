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
//!
//! A die serves a request in its free time, around what it promised to requests that were handled
//! before (see [`Calendar`]).

use crate::timing::{Calendar, Lane, Recording, Work};
use crate::{DieId, Geometry, NandTimes};
use kvssd_types::Nanos;

/// The calendars of all dies and channels, and the times that operations take.
#[derive(Clone, Debug)]
pub struct Clockwork {
    channels_count: u32,
    dies: Vec<Calendar>,
    channels: Vec<Calendar>,
    now: Nanos,
    sectors_per_page: u32,
    /// By the number of sectors that cross the channel.
    crossings: Vec<Crossing>,
    program: Nanos,
    erase: Nanos,
    /// Whether dies use no gaps ([`Emulator::dies_first_come`](crate::Emulator::dies_first_come)).
    dies_first_come: bool,
    /// The recorder of what dies and channels are used for.
    pub recording: Recording,
}

/// What moving some sectors of one unit takes.
#[derive(Clone, Debug)]
struct Crossing {
    /// Sensing, by cell level.
    sense: Vec<Nanos>,
    /// Each chunk's time on the channel.
    chunks: Vec<Nanos>,
}

impl Clockwork {
    /// A drive that does nothing yet.
    #[must_use]
    pub fn new(geometry: &Geometry, times: &NandTimes) -> Self {
        Clockwork::with(geometry, times, false)
    }

    /// The same, whose dies do what they are asked for in the order in which they are asked.
    #[must_use]
    pub fn first_come(geometry: &Geometry, times: &NandTimes) -> Self {
        Clockwork::with(geometry, times, true)
    }

    fn with(geometry: &Geometry, times: &NandTimes, dies_first_come: bool) -> Self {
        let crossing = |sectors: u32| {
            let bytes = u64::from(sectors) * u64::from(geometry.sector_bytes());
            let chunk_bytes_max = u64::from(times.channel_transfer_bytes_max);
            let chunks: Vec<Nanos> = (0..bytes.div_ceil(chunk_bytes_max))
                .map(|chunk| chunk_bytes_max.min(bytes - chunk * chunk_bytes_max))
                .map(|chunk_bytes| Nanos::of_transfer(chunk_bytes, times.channel_bytes_per_s))
                .collect();
            let small = bytes <= u64::from(times.read_small_bytes_max);
            let sense = if small { &times.read_small_ns } else { &times.read_large_ns };
            Crossing { sense: sense.iter().copied().map(Nanos).collect(), chunks }
        };
        Clockwork {
            channels_count: geometry.channels,
            dies: vec![Calendar::default(); geometry.dies() as usize],
            channels: vec![Calendar::default(); geometry.channels as usize],
            now: Nanos::ZERO,
            sectors_per_page: geometry.sectors_per_page(),
            crossings: (0..=geometry.pages_per_program * geometry.sectors_per_page()).map(crossing).collect(),
            program: Nanos(times.program_ns),
            erase: Nanos(times.erase_ns),
            dies_first_come,
            recording: Recording::default(),
        }
    }

    /// Nobody asks with a clock before `now` any more.
    #[inline]
    pub fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
    }

    /// The clock before which nobody asks any more.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The time for which each die was taken so far, and each channel, what lies ahead with it.
    #[must_use]
    pub fn busy(&self) -> (Vec<Nanos>, Vec<Nanos>) {
        let busy = |calendars: &[Calendar]| calendars.iter().map(Calendar::busy).collect();
        (busy(&self.dies), busy(&self.channels))
    }

    /// Reads `pages` pages of the unit on word line `line` of `die`; returns the moment when they are in the controller.
    pub fn read(&mut self, die: DieId, line: u32, pages: u32, at: Nanos) -> Nanos {
        self.read_sectors(die, line, pages * self.sectors_per_page, at).1
    }

    /// As [`Clockwork::read`], of so many sectors; returns when they are sensed, too.
    pub fn read_sectors(&mut self, die: DieId, line: u32, sectors: u32, at: Nanos) -> (Nanos, Nanos) {
        let crossing = &self.crossings[sectors as usize];
        let sense = crossing.sense[line as usize % crossing.sense.len()];
        let (lane, recording) = (Lane::Die(die.0), &mut self.recording);
        let mut channel = Bus::new(&mut self.channels, die.0 % self.channels_count, Work::Out);
        let die = &mut self.dies[die.0 as usize];
        die.advance(self.now);
        channel.calendar.advance(self.now);
        let at = if self.dies_first_come { die.free_from(at) } else { at };
        let sensed = recording.fill(die, (at, sense), lane, Work::Sense);
        let out = crossing.over(&mut channel, sensed, recording);
        recording.fill(die, (sensed, out - sensed), lane, Work::Hold);
        (sensed, out)
    }

    /// Brings more sectors of a page that a die has sensed, from `from` on, when it has brought others; returns the moment when they are
    /// there. None when the die does something else then, and has the page no more.
    pub fn bring(&mut self, die: DieId, sectors: u32, from: Nanos) -> Option<Nanos> {
        let crossing = &self.crossings[sectors as usize];
        let (lane, recording) = (Lane::Die(die.0), &mut self.recording);
        let mut channel = Bus::new(&mut self.channels, die.0 % self.channels_count, Work::Out);
        let die = &mut self.dies[die.0 as usize];
        if die.free_from(from) > from {
            return None;
        }
        let out = crossing.over(&mut channel, from, recording);
        recording.fill(die, (from, out - from), lane, Work::Hold);
        Some(out)
    }

    /// What reading so many sectors takes when nothing is in the way.
    #[must_use]
    pub fn read_time(&self, line: u32, sectors: u32) -> Nanos {
        let Crossing { sense, chunks } = &self.crossings[sectors as usize];
        chunks.iter().fold(sense[line as usize % sense.len()], |sum, &chunk| sum + chunk)
    }

    /// Programs a unit on `die`; returns the moment when the program ends.
    pub fn program(&mut self, die: DieId, at: Nanos) -> Nanos {
        let crossing = self.crossings.last().expect("a unit has pages");
        let (lane, recording) = (Lane::Die(die.0), &mut self.recording);
        let mut channel = Bus::new(&mut self.channels, die.0 % self.channels_count, Work::In);
        let die = &mut self.dies[die.0 as usize];
        die.advance(self.now);
        channel.calendar.advance(self.now);
        let at = if self.dies_first_come { die.free_from(at) } else { at };
        let start = die.first_gap(at, Nanos(1));
        let data_in = crossing.over(&mut channel, start, recording);
        recording.fill(die, (start, data_in - start + self.program), lane, Work::Program)
    }

    /// Erases a block on `die`; returns the moment when it is erased.
    pub fn erase(&mut self, die: DieId, at: Nanos) -> Nanos {
        let lane = Lane::Die(die.0);
        let die = &mut self.dies[die.0 as usize];
        die.advance(self.now);
        let at = if self.dies_first_come { die.free_from(at) } else { at };
        self.recording.fill(die, (at, self.erase), lane, Work::Erase)
    }
}

/// A channel, and which way data goes over it.
struct Bus<'a> {
    calendar: &'a mut Calendar,
    lane: Lane,
    way: Work,
}

impl<'a> Bus<'a> {
    fn new(channels: &'a mut [Calendar], number: u32, way: Work) -> Self {
        Bus { calendar: &mut channels[number as usize], lane: Lane::Channel(number), way }
    }
}

impl Crossing {
    /// Takes the channel for each chunk, which goes when the one before it is over; returns the moment when the last one is.
    fn over(&self, channel: &mut Bus<'_>, at: Nanos, recording: &mut Recording) -> Nanos {
        let Bus { calendar, lane, way } = channel;
        self.chunks.iter().fold(at, |ready, &chunk| recording.squeeze(calendar, (ready, chunk), *lane, *way))
    }
}
