//! What calendars were taken for, by whom, and what commands waited for: a record of a window of virtual time.
//!
//! ```text
//!   lane of a die        |sense|hold|     |----program----|           slices: what a resource was taken for
//!   lane of a channel          |out|  |in|
//!   command 7      |link|pipeline|core|record        |link|           parts, one behind the other
//! ```
//!
//! Nobody records unless it is asked for: a [`Recording`] is one pointer that is looked at once for each reservation.

use crate::Cause;
use crate::timing::Calendar;
use kvssd_types::{Command, Nanos, named_enum};

/// A resource, or a task that works behind the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// A die.
    Die(u32),
    /// A channel.
    Channel(u32),
    /// A core of the controller.
    Core(u32),
    /// The link, from the host.
    LinkIn,
    /// The link, to the host.
    LinkOut,
    /// Garbage collection.
    Collector,
    /// Indexes that grow.
    Growth,
}

/// For whom something is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Actor {
    /// Nobody in particular.
    #[default]
    Drive,
    /// The command of this number, from 0 on.
    Command(u64),
    /// Garbage collection.
    Collector,
    /// An index that grows.
    Growth,
}

named_enum! {
    /// What a lane is taken for.
    pub enum Work: "work" {
        /// A die brings a page from its cells.
        Sense = "sense",
        /// A die keeps a page until it is out.
        Hold = "hold",
        /// A die takes a unit and writes it.
        Program = "program",
        /// A die erases a block.
        Erase = "erase",
        /// Data comes.
        In = "in",
        /// Data goes.
        Out = "out",
        /// A core works.
        Compute = "compute",
        /// A core waits for flash.
        Wait = "wait",
        /// A task does one of its steps.
        Step = "step",
    }
}

/// A moment, and a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first moment in it.
    pub from: Nanos,
    /// The first behind it.
    pub until: Nanos,
}

impl Window {
    fn meets(&self, from: Nanos, until: Nanos) -> bool {
        from < self.until && until > self.from
    }
}

/// What a lane was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Which.
    pub lane: Lane,
    /// From when on.
    pub from: Nanos,
    /// Until when.
    pub until: Nanos,
    /// What it did.
    pub work: Work,
    /// Why, where it is flash.
    pub cause: Option<Cause>,
    /// For whom.
    pub actor: Actor,
}

/// A part of a command's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it waited for, or had done.
    pub name: &'static str,
    /// From when on.
    pub from: Nanos,
    /// Until when.
    pub until: Nanos,
}

/// A command, from its arrival to its answer at the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    /// Its number, from 0 on.
    pub number: u64,
    /// What it is.
    pub name: &'static str,
    /// Its arrival.
    pub from: Nanos,
    /// Its answer.
    pub until: Nanos,
    /// Its parts, in their order, without a gap.
    pub parts: Vec<Part>,
}

/// What was recorded: all that lies in the window, or partly.
#[derive(Clone, Debug)]
pub struct Record {
    /// Of which time.
    pub window: Window,
    /// What lanes were taken for, in the order of reservation. Those of a lane never overlap.
    pub slices: Vec<Slice>,
    /// The commands, in the order of their arrival.
    pub commands: Vec<CommandRecord>,
    actor: Actor,
    cause: Option<Cause>,
    /// What the command at hand is called.
    name: &'static str,
    /// Its parts so far.
    parts: Vec<Part>,
    /// The commands before it.
    count: u64,
}

/// Who records, if anybody does.
#[derive(Clone, Debug, Default)]
pub struct Recording(Option<Box<Record>>);

impl Recording {
    /// Records from now on what lies in the window.
    #[must_use]
    pub fn of(window: Window) -> Self {
        Recording(Some(Box::new(Record {
            window,
            slices: Vec::new(),
            commands: Vec::new(),
            actor: Actor::Drive,
            cause: None,
            name: "",
            parts: Vec::new(),
            count: 0,
        })))
    }

    /// What was recorded.
    #[must_use]
    pub fn finish(self) -> Option<Record> {
        self.0.map(|record| *record)
    }

    /// As [`Calendar::fill`].
    #[inline]
    pub fn fill(&mut self, calendar: &mut Calendar, (at, length): (Nanos, Nanos), lane: Lane, work: Work) -> Nanos {
        if let Some(record) = &mut self.0 {
            record.reserve(calendar, (at, length), lane, work);
        }
        calendar.fill(at, length)
    }

    /// As [`Calendar::squeeze`].
    #[inline]
    pub fn squeeze(&mut self, calendar: &mut Calendar, (at, length): (Nanos, Nanos), lane: Lane, work: Work) -> Nanos {
        if let Some(record) = &mut self.0 {
            record.reserve(calendar, (calendar.squeezed(at, length), length), lane, work);
        }
        calendar.squeeze(at, length)
    }

    /// What follows on flash is for this reason.
    #[inline]
    pub fn because(&mut self, cause: Option<Cause>) {
        if let Some(record) = &mut self.0 {
            record.cause = cause;
        }
    }

    /// What follows is done for somebody else; gives for whom it was before.
    pub fn work_for(&mut self, actor: Actor) -> Actor {
        self.0.as_mut().map_or(Actor::Drive, |record| std::mem::replace(&mut record.actor, actor))
    }

    /// A task worked from one moment to another.
    pub fn task(&mut self, lane: Lane, from: Nanos, until: Nanos) {
        if let Some(record) = &mut self.0 {
            record.add(Slice { lane, from, until, work: Work::Step, cause: None, actor: record.actor });
        }
    }

    /// Whether somebody does.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// A command comes.
    #[inline]
    pub fn begin_command(&mut self, command: &Command<'_>) {
        if let Some(record) = &mut self.0 {
            record.begin_command(command.name());
        }
    }

    /// A part of the command that is at work. What is done for others is none.
    #[inline]
    pub fn part(&mut self, name: &'static str, from: Nanos, until: Nanos) {
        if let Some(record) = &mut self.0 {
            record.part(Part { name, from, until });
        }
    }

    /// The command that came last is done.
    #[inline]
    pub fn end_command(&mut self, from: Nanos, until: Nanos) {
        if let Some(record) = &mut self.0 {
            record.end_command(from, until);
        }
    }
}

// Out of the way of who records nothing.
impl Record {
    #[cold]
    fn part(&mut self, part: Part) {
        if matches!(self.actor, Actor::Command(_)) && part.from < part.until {
            self.parts.push(part);
        }
    }

    #[cold]
    fn begin_command(&mut self, name: &'static str) {
        self.actor = Actor::Command(self.count);
        self.name = name;
        self.parts.clear();
    }

    #[cold]
    fn end_command(&mut self, from: Nanos, until: Nanos) {
        if self.window.meets(from, until) {
            let (number, name, parts) = (self.count, self.name, self.parts.clone());
            self.commands.push(CommandRecord { number, name, from, until, parts });
        }
        self.count += 1;
        self.actor = Actor::Drive;
    }

    /// A calendar is taken, in as many pieces as its free time lies in.
    #[cold]
    fn reserve(&mut self, calendar: &Calendar, (at, length): (Nanos, Nanos), lane: Lane, work: Work) {
        let cause = self.cause.filter(|_| matches!(lane, Lane::Die(_) | Lane::Channel(_)));
        for (from, until) in calendar.pieces(at, length) {
            self.add(Slice { lane, from, until, work, cause, actor: self.actor });
        }
    }

    fn add(&mut self, slice: Slice) {
        if slice.from < slice.until && self.window.meets(slice.from, slice.until) {
            self.slices.push(slice);
        }
    }
}
