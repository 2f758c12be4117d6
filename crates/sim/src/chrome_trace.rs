//! A record of a run as Chrome's trace events, which Perfetto opens (https://ui.perfetto.dev).
//!
//! ```text
//!   commands     a lane for each that is under way at once; the parts of a command lie within it
//!   background   collector, growth
//!   link         in, out
//!   cores, channels, dies      one lane each
//! ```
//!
//! What a lane does for a command has its number (`args.command`), and flows lead from the command to it. Times are microseconds
//! since the drive was new: the collector may be a little behind the beginning of a run. The format: "Trace Event Format", complete events
//! (X), metadata (M), flows by `bind_id`.

use kvssd_flash::timing::{Actor, CommandRecord, Lane, Part, Record, Slice, Window};
use kvssd_types::Nanos;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Threads of a process of the trace, at most.
const LANES_MAX: u64 = 1_000_000;

/// The record of one run.
#[derive(Clone, Debug)]
pub struct RunTrace {
    pub(crate) record: Record,
    /// When the run began.
    pub(crate) start: Nanos,
    /// What was run: design, profile, workload, seed.
    pub(crate) about: Value,
}

/// A window of virtual time: where it is asked for, from the beginning of the run on.
pub type TraceWindow = Window;

#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    cat: &'a str,
    ph: &'a str,
    ts: f64,
    dur: f64,
    pid: u64,
    tid: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bind_id: Option<u64>,
    #[serde(skip_serializing_if = "is_false")]
    flow_in: bool,
    #[serde(skip_serializing_if = "is_false")]
    flow_out: bool,
    #[serde(skip_serializing_if = "Value::is_null")]
    args: Value,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The processes of the trace, in their order.
const PROCESSES: [&str; 6] = ["commands", "background", "link", "cores", "channels", "dies"];

impl RunTrace {
    /// Writes the trace, an event a line.
    ///
    /// # Errors
    /// What the writer answers.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (lanes, command_lanes) = (self.lanes(), self.command_lanes());
        let shown = command_lanes.iter().max().map_or(0, |last| last + 1);
        let mut first = true;
        let mut line = |out: &mut dyn Write, event: &Value| {
            let comma = if std::mem::take(&mut first) { "" } else { ",\n" };
            write!(out, "{comma}{event}")
        };
        let about = json!({
            "about": self.about,
            "run_begin_us": in_us(self.start),
            "window_from_us": in_us(self.record.window.from.max(self.start)),
            "window_until_us": in_us(self.record.window.until),
        });
        writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[")?;
        for (process, name) in (1u64..).zip(PROCESSES) {
            line(out, &metadata("process_name", process, 0, &json!({ "name": name })))?;
            line(out, &metadata("process_sort_index", process, 0, &json!({ "sort_index": process })))?;
        }
        let commands = (0..shown).map(|number| ((1, thread(1, number)), format!("command {number}")));
        for ((process, thread), name) in commands.chain(lanes.iter().map(|&lane| (place(lane), name_of(lane)))) {
            line(out, &metadata("thread_name", process, thread, &json!({ "name": name })))?;
            line(out, &metadata("thread_sort_index", process, thread, &json!({ "sort_index": thread })))?;
        }
        for (command, &lane) in self.record.commands.iter().zip(&command_lanes) {
            for event in self.command(command, thread(1, lane)) {
                line(out, &json!(event))?;
            }
        }
        for slice in &self.record.slices {
            line(out, &json!(self.slice(slice)))?;
        }
        writeln!(out, "\n]}}")
    }

    fn lanes(&self) -> BTreeSet<Lane> {
        self.record.slices.iter().map(|slice| slice.lane).collect()
    }

    /// A lane for each command: the first that is free when it arrives.
    fn command_lanes(&self) -> Vec<u64> {
        let mut free_from: Vec<Nanos> = Vec::new();
        let lane_of = |command: &CommandRecord| {
            let free = free_from.iter().position(|&from| from <= command.from);
            let lane = free.unwrap_or(free_from.len());
            if lane == free_from.len() {
                free_from.push(Nanos::ZERO);
            }
            free_from[lane] = command.until;
            lane as u64
        };
        self.record.commands.iter().map(lane_of).collect()
    }

    /// A command and the parts in it.
    fn command<'a>(&'a self, command: &'a CommandRecord, thread: u64) -> impl Iterator<Item = Event<'a>> {
        let CommandRecord { number, name, from, until, parts } = command;
        let event = move |cat, name, (from, until)| Event {
            name,
            cat,
            ph: "X",
            ts: in_us(from),
            dur: in_us(until - from),
            pid: 1,
            tid: thread,
            bind_id: None,
            flow_in: false,
            flow_out: false,
            args: Value::Null,
        };
        let whole = Event {
            bind_id: Some(*number),
            flow_out: true,
            args: json!({ "command": number }),
            ..event("command", name, (*from, *until))
        };
        let part = move |part: &'a Part| event("part", part.name, (part.from, part.until));
        std::iter::once(whole).chain(parts.iter().map(part))
    }

    fn slice(&self, slice: &Slice) -> Event<'_> {
        let (pid, tid) = place(slice.lane);
        let command = match slice.actor {
            Actor::Command(number) => Some(number),
            Actor::Drive | Actor::Collector | Actor::Growth => None,
        };
        let mut args = json!({ "for": actor_name(slice.actor) });
        if let Some(number) = command {
            args["command"] = json!(number);
        }
        if let Some(cause) = slice.cause {
            args["cause"] = json!(cause.name());
        }
        Event {
            name: slice.work.name(),
            cat: actor_name(slice.actor),
            ph: "X",
            ts: in_us(slice.from),
            dur: in_us(slice.until - slice.from),
            pid,
            tid,
            bind_id: command,
            flow_in: command.is_some(),
            flow_out: command.is_some(),
            args,
        }
    }
}

fn actor_name(actor: Actor) -> &'static str {
    match actor {
        Actor::Command(_) => "command",
        Actor::Drive => "drive",
        Actor::Collector => "collector",
        Actor::Growth => "growth",
    }
}

fn name_of(lane: Lane) -> String {
    match lane {
        Lane::Die(number) => format!("die {number}"),
        Lane::Channel(number) => format!("channel {number}"),
        Lane::Core(number) => format!("core {number}"),
        Lane::LinkIn => "in".to_owned(),
        Lane::LinkOut => "out".to_owned(),
        Lane::Collector => "collector".to_owned(),
        Lane::Growth => "growth".to_owned(),
    }
}

/// Process and thread of a lane.
fn place(lane: Lane) -> (u64, u64) {
    let (process, number) = match lane {
        Lane::Collector => (2, 0),
        Lane::Growth => (2, 1),
        Lane::LinkIn => (3, 0),
        Lane::LinkOut => (3, 1),
        Lane::Core(number) => (4, number),
        Lane::Channel(number) => (5, number),
        Lane::Die(number) => (6, number),
    };
    (process, thread(process, number.into()))
}

/// A thread's number, which no thread of another process has.
fn thread(process: u64, number: u64) -> u64 {
    process * LANES_MAX + number + 1
}

fn metadata(name: &str, pid: u64, tid: u64, args: &Value) -> Value {
    json!({ "name": name, "ph": "M", "pid": pid, "tid": tid, "args": args })
}

/// Microseconds. Perfetto cuts off what is less than a nanosecond: of the numbers beside the right one it must be one that is not less.
fn in_us(span: Nanos) -> f64 {
    let us = span.0 as f64 / 1e3;
    if (us * 1e3) as u64 == span.0 { us } else { us.next_up() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvssd_types::Random;

    #[test]
    fn no_nanosecond_is_lost_whether_a_reader_rounds_or_cuts_off() {
        let mut random = Random::new(1);
        for _ in 0..1_000_000 {
            let bits = 1 + random.below(43);
            let ns = random.below(1 << bits);
            let us: f64 = json!(in_us(Nanos(ns))).to_string().parse().unwrap();
            assert_eq!(((us * 1e3) as u64, (us * 1e3).round() as u64), (ns, ns));
        }
    }
}
