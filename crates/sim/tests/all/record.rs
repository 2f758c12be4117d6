//! The trace of a run: lanes that are taken for just as long as the report says, and commands whose parts are all of them.

use crate::once;
use crate::side_by_side::side_by_side;
use kvssd_measure::Quiet;
use kvssd_sim::workload::YcsbCore;
use kvssd_sim::{Bench, RunReport, TraceWindow};
use kvssd_types::Nanos;
use serde_json::Value;
use std::collections::BTreeMap;

const WHOLE: TraceWindow = TraceWindow { from: Nanos::ZERO, until: Nanos::MAX };

/// A slice, in nanoseconds.
#[derive(Clone, Debug)]
struct Slice {
    name: String,
    from: u64,
    until: u64,
    args: Value,
    is_part: bool,
}

type Lanes = BTreeMap<(String, String), Vec<Slice>>;

fn bench(design: &str, workload: YcsbCore) -> Bench {
    let ordered = workload == YcsbCore::E;
    let dram = ("memory.dram_bytes".to_owned(), "8589934592".to_owned());
    Bench {
        designs: vec![design.to_owned()],
        scale: 1.0 / 512.0,
        fill: 0.6,
        operations: Some(if ordered { 200 } else { 2_000 }),
        workload,
        overrides: if ordered { vec![dram] } else { Vec::new() },
        ..Bench::default()
    }
}

fn recorded(bench: &Bench, window: TraceWindow) -> (RunReport, String) {
    let (experiment, filled) = once::filled(bench);
    let (report, trace) = experiment.run_recorded_on(filled, window, &mut Quiet).unwrap();
    let mut bytes = Vec::new();
    trace.write(&mut bytes).unwrap();
    (report, String::from_utf8(bytes).unwrap())
}

/// The slices of a trace by process and thread.
fn lanes(text: &str) -> Lanes {
    let document: Value = serde_json::from_str(text).expect("a trace is JSON");
    let events = document["traceEvents"].as_array().expect("a trace has events");
    let ids = |event: &Value| (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
    let (mut processes, mut threads, mut lanes) = (BTreeMap::new(), BTreeMap::new(), Lanes::new());
    for event in events {
        let (process, thread) = ids(event);
        let ns = |field: &str| (event[field].as_f64().unwrap() * 1e3).round() as u64;
        match (event["ph"].as_str().unwrap(), event["name"].as_str().unwrap()) {
            ("M", "process_name") => _ = processes.insert(process, event["args"]["name"].as_str().unwrap().to_owned()),
            ("M", "thread_name") => {
                let name = event["args"]["name"].as_str().unwrap().to_owned();
                assert!(threads.insert(thread, name).is_none(), "a thread has one name");
            }
            ("M", _) => {}
            ("X", name) => {
                let lane = (processes[&process].clone(), threads[&thread].clone());
                let (from, until, args) = (ns("ts"), ns("ts") + ns("dur"), event["args"].clone());
                let slice = Slice { name: name.to_owned(), from, until, args, is_part: event["cat"] == "part" };
                lanes.entry(lane).or_default().push(slice);
            }
            (other, name) => panic!("an event {name} of kind {other}"),
        }
    }
    lanes
}

fn busy_ns(slices: &[Slice]) -> u64 {
    slices.iter().map(|slice| slice.until - slice.from).sum()
}

/// Whether no two slices of a lane overlap; gives them in their order.
fn in_order(lane: &(String, String), slices: &[Slice]) {
    let mut slices: Vec<_> = slices.iter().filter(|slice| !slice.is_part).collect();
    slices.sort_by_key(|slice| slice.from);
    for pair in slices.windows(2) {
        assert!(pair[0].until <= pair[1].from, "{lane:?}: {:?} and {:?}", pair[0], pair[1]);
    }
}

#[test]
fn a_window_has_what_lies_in_it_and_changes_nothing() {
    let bench = bench("plus", YcsbCore::A);
    let (report, text) = recorded(&bench, WHOLE);
    let window = TraceWindow { from: Nanos(4_000_000), until: Nanos(6_000_000) };
    let (same, part) = recorded(&bench, window);
    let core_of = |report: &RunReport| format!("{report:?}").split("host: ").next().map(str::to_owned);
    assert_eq!(core_of(&report), core_of(&same));
    assert_eq!(recorded(&bench, window).1, part, "the same seed gives the same bytes");
    let about: Value = serde_json::from_str(&part).unwrap();
    let bound = |name: &str| (about["otherData"][name].as_f64().unwrap() * 1e3).round() as u64;
    let (from, until) = (bound("window_from_us"), bound("window_until_us"));
    assert_eq!((from - bound("run_begin_us"), until - from), (4_000_000, 2_000_000));
    let (whole, part) = (lanes(&text), lanes(&part));
    for (lane, slices) in &whole {
        if lane.0 == "commands" {
            continue;
        }
        let meets = |slice: &&Slice| slice.from < until && slice.until > from;
        let expected = slices.iter().filter(meets).map(|slice| (slice.from, slice.until, slice.args.clone()));
        let found = part.get(lane).into_iter().flatten().map(|slice| (slice.from, slice.until, slice.args.clone()));
        assert!(expected.eq(found), "{lane:?}");
    }
    let commands = part.iter().filter(|((process, _), _)| process == "commands").flat_map(|(_, slices)| slices);
    let numbers: Vec<u64> = commands.filter_map(|slice| slice.args["command"].as_u64()).collect();
    assert!(numbers.len() > 100, "{} commands", numbers.len());
}

mod campaigns {
    use super::*;

    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn lanes_are_taken_for_as_long_as_the_report_says() {
        let runs = [
            ("plus", YcsbCore::A),
            ("original", YcsbCore::F),
            ("rhik", YcsbCore::D),
            ("multilevel", YcsbCore::A),
            ("block", YcsbCore::A),
            ("pink", YcsbCore::A),
            ("iter", YcsbCore::E),
            ("tessera", YcsbCore::A),
        ];
        side_by_side(&runs, |&(design, workload)| {
            let (report, text) = recorded(&bench(design, workload), WHOLE);
            let lanes = lanes(&text);
            lanes.iter().for_each(|(lane, slices)| in_order(lane, slices));
            for (kind, of_report) in &report.utilization {
                let (process, thread) = match *kind {
                    "link_in" => ("link", Some("in")),
                    "link_out" => ("link", Some("out")),
                    kind => (kind, None),
                };
                let of_kind =
                    lanes.iter().filter(|((of, name), _)| of == process && thread.is_none_or(|thread| name == thread));
                let most = of_kind.map(|(_, slices)| busy_ns(slices)).max().unwrap_or(0);
                let reported = of_report.max * report.simulated_ns as f64;
                assert!((most as f64 - reported).abs() < 1.0, "{design} {kind}: {most} ns, and {reported} reported");
            }
            let mean = |process: &str| {
                lanes.iter().filter(|((of, _), _)| of == process).map(|(_, slices)| busy_ns(slices)).sum::<u64>()
            };
            let dies = report.utilization["dies"].mean * report.simulated_ns as f64 * 64.0;
            assert!((mean("dies") as f64 / dies - 1.0).abs() < 1e-9, "{design}: {} and {dies}", mean("dies"));
            let collector = lanes.get(&("background".to_owned(), "collector".to_owned()));
            assert_eq!(collector.map_or(0, |slices| busy_ns(slices)), report.gc.busy_ns, "{design}");
        });
    }

    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn the_parts_of_a_command_are_all_of_it() {
        let runs = [
            ("plus", YcsbCore::A),
            ("multilevel", YcsbCore::A),
            ("block", YcsbCore::F),
            ("iter", YcsbCore::E),
            ("tessera", YcsbCore::A),
        ];
        side_by_side(&runs, |&(design, workload)| {
            let (report, text) = recorded(&bench(design, workload), WHOLE);
            let mut spent: BTreeMap<String, u64> = BTreeMap::new();
            let mut commands = 0;
            for ((process, _), slices) in lanes(&text) {
                if process != "commands" {
                    continue;
                }
                // A command comes before its parts.
                for of_command in slices.chunk_by(|_, next| next.is_part) {
                    let (command, parts) = of_command.split_first().unwrap();
                    commands += 1;
                    assert!(!command.is_part);
                    let end = parts.iter().fold(command.from, |at, part| {
                        assert_eq!(part.from, at, "{design}: parts of {command:?} leave a gap: {parts:?}");
                        *spent.entry(part.name.clone()).or_default() += part.until - part.from;
                        part.until
                    });
                    assert_eq!(end, command.until, "{design}: the parts of {command:?} are not all: {parts:?}");
                }
            }
            let mut reported: BTreeMap<String, u64> = BTreeMap::new();
            for (part, &ns) in report.spent_ns.values().flatten().filter(|(_, ns)| **ns > 0) {
                *reported.entry((*part).to_owned()).or_default() += ns;
            }
            assert_eq!(spent, reported, "{design}");
            assert!(commands >= report.operations, "{commands}");
        });
    }
}
