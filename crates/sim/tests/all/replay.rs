//! Replays against the map that they are a replay of.

mod blocks;
mod cache;

use kvssd_designs::{DESIGNS, ORIGINAL, PLUS};
use kvssd_flash::Profile;
use kvssd_ftl::Design;
use kvssd_measure::Quiet;
use kvssd_sim::replay::{ReplaySetup, Trace};
use kvssd_sim::trace::{BadLines, TraceName, TraceReader};
use kvssd_sim::{Pace, RunReport, TraceReport};
use kvssd_types::Random;
use std::collections::BTreeMap;
use std::fmt::Write;

fn setup(design: &Design, pace: Pace) -> ReplaySetup {
    let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 512.0).unwrap();
    ReplaySetup { threads: 4, queue_depth: 2, pace, ..ReplaySetup::new(design.clone(), profile, 1) }
}

fn replay(setup: &ReplaySetup, name: TraceName, text: &[u8]) -> RunReport {
    let mut input = text;
    let reader = TraceReader::new(&mut input, b"", name.format(3000), BadLines::Stop);
    let trace = Trace::once(name, reader);
    setup.replay(trace, &mut Quiet).unwrap()
}

fn counts(report: &RunReport) -> &TraceReport {
    let counts = report.trace.as_ref().unwrap();
    assert_eq!((counts.wrong_answers, report.failed_retrieves), (0, 0));
    assert_eq!(report.verified_retrieves, counts.hits);
    counts
}

/// A trace of every command of memcached on few keys, and what must come of it: hits, misses, not stored, deleted, pairs.
fn all_commands(lines: u32) -> (String, [u64; 5]) {
    const COMMANDS: [&str; 11] =
        ["get", "gets", "set", "add", "replace", "cas", "append", "prepend", "incr", "decr", "delete"];
    let mut random = Random::new(3);
    let (mut text, mut pairs, mut expected) = (String::new(), BTreeMap::new(), [0u64; 5]);
    for line in 0..lines {
        let (key, bytes) = (random.below(200), random.below(2000));
        let command = COMMANDS[random.below(11) as usize];
        writeln!(text, "{},key{key},3,{bytes},1,{command},{}", line / 100, random.below(2)).unwrap();
        let held = pairs.get(&key).copied();
        let is_read = !matches!(command, "set" | "add" | "replace" | "cas" | "delete");
        expected[0] += u64::from(is_read && held.is_some());
        expected[1] += u64::from(is_read && held.is_none());
        let stored = match command {
            "set" => Some(bytes),
            "add" if held.is_none() => Some(bytes),
            "replace" | "cas" if held.is_some() => Some(bytes),
            "append" | "prepend" => held.map(|held| held + bytes),
            "incr" | "decr" => held,
            _ => None,
        };
        let stores = !matches!(command, "get" | "gets" | "delete");
        expected[2] += u64::from(stores && stored.is_none());
        match stored {
            Some(bytes) => drop(pairs.insert(key, bytes)),
            None if command == "delete" => expected[3] += u64::from(pairs.remove(&key).is_some()),
            None => {}
        }
    }
    expected[4] = pairs.len() as u64;
    (text, expected)
}

#[test]
fn every_command_does_what_a_map_does() {
    let (text, expected) = all_commands(20_000);
    for design in DESIGNS {
        // One command at a time, so that no request comes between the two commands of another.
        let setup = ReplaySetup { threads: 1, queue_depth: 1, ..setup(&design, Pace::Closed) };
        let report = replay(&setup, TraceName::Twitter, text.as_bytes());
        let counts = counts(&report);
        let found = [counts.hits, counts.misses, counts.not_stored, counts.deleted, counts.pairs];
        assert_eq!(found, expected, "{}", design.name);
        assert_eq!((report.operations, counts.lines, counts.bad_lines), (20_000, 20_000, 0));
        assert!(counts.ttls_ignored > 9_000 && counts.nothing_to_delete > 0 && expected.iter().all(|&count| count > 0));
    }
}

#[test]
fn many_commands_under_way_are_answered_right_at_both_paces_and_the_same_each_time() {
    let (text, _) = all_commands(20_000);
    for pace in [Pace::Closed, Pace::Trace] {
        let once = replay(&setup(&PLUS, pace), TraceName::Twitter, text.as_bytes());
        assert!(counts(&once).hits > 3_000);
        let again = replay(&setup(&PLUS, pace), TraceName::Twitter, text.as_bytes());
        assert_eq!(once.simulated_ns, again.simulated_ns);
        // 20 000 lines are 200 ticks of a second; a closed loop takes no such time.
        let seconds = once.simulated_ns as f64 / 1e9;
        let is_paced = (199.0..200.0).contains(&seconds);
        assert_eq!(is_paced, pace == Pace::Trace, "{seconds}");
    }
}

#[test]
fn a_full_drive_is_counted_and_the_replay_goes_on() {
    let mut text = String::from("key,op,size\n");
    for key in 0..3_000 {
        writeln!(text, "key{key},set,200000").unwrap();
    }
    (0..3_000).for_each(|key| writeln!(text, "key{key},get,0").unwrap());
    let report = replay(&setup(&PLUS, Pace::Closed), TraceName::Csv, text.as_bytes());
    let counts = counts(&report);
    assert!(counts.refused_full > 500, "{}", counts.refused_full);
    assert_eq!((counts.hits + counts.refused_full, counts.hits + counts.misses), (3_000, 3_000));
}

#[test]
fn what_is_read_first_is_filled_where_the_trace_tells_of_no_stores() {
    let objects = [1u64, 2, 1, 3, 2, 1];
    let record =
        |object: &u64| [&1u32.to_le_bytes()[..], &object.to_le_bytes(), &900u32.to_le_bytes(), &[0; 8]].concat();
    let oracle: Vec<u8> = objects.iter().flat_map(record).collect();
    let mooncake = br#"{"timestamp": 0, "hash_ids": [1, 2]}
{"timestamp": 0, "hash_ids": [1]}
{"timestamp": 0, "hash_ids": [3]}
{"timestamp": 0, "hash_ids": [2, 1]}"#;
    for (name, text, exist) in [(TraceName::OracleGeneral, &oracle[..], 0), (TraceName::Mooncake, mooncake, 6)] {
        let setup = ReplaySetup { threads: 1, queue_depth: 1, ..setup(&ORIGINAL, Pace::Closed) };
        let report = replay(&setup, name, text);
        let counts = counts(&report);
        assert_eq!((counts.filled, counts.hits, counts.pairs), (3, 3, 3), "{name}");
        assert_eq!(counts.exist_hits + counts.exist_misses, exist);
    }
}

#[test]
fn parts_of_objects_and_values_that_are_too_large_are_verified() {
    let text = "1 REST.PUT.OBJECT a 5000\n2 REST.GET.OBJECT a 5000 100 199\n3 REST.GET.OBJECT a 5000 4990 9000\n\
                4 REST.PUT.OBJECT b 99999999999\n5 REST.GET.OBJECT b 99999999999 50000000 50000009\n6 REST.GET.OBJECT b\n";
    let setup = ReplaySetup { threads: 1, queue_depth: 1, ..setup(&ORIGINAL, Pace::Closed) };
    let report = replay(&setup, TraceName::Ibm, text.as_bytes());
    let counts = counts(&report);
    assert_eq!((counts.hits, counts.values_cut, counts.misses), (4, 1, 0));
}

#[test]
fn values_larger_than_a_record_are_kept_in_segments_where_that_is_asked_for() {
    let mut text = "op,key,value_size\n".to_owned();
    for line in 0..60u64 {
        let (key, bytes) = (line % 7, [5 << 20, 3 << 20, 100][(line % 3) as usize]);
        writeln!(text, "{},k{key},{bytes}", if line % 4 == 3 { "delete" } else { ["set", "get"][(line % 2) as usize] })
            .unwrap();
    }
    for design in [&PLUS, &ORIGINAL] {
        let plain = setup(design, Pace::Closed);
        let mut large = ReplaySetup { value_bytes_max: Some(8 << 20), ..plain.clone() };
        // Segments have a namespace of their own, which out-of-band areas name.
        large.profile.geometry.oob_bytes = 512;
        let [cut, whole] = [&plain, &large].map(|setup| replay(setup, TraceName::Csv, text.as_bytes()));
        assert!(counts(&cut).values_cut > 10 && counts(&whole).values_cut == 0);
        let programs = |report: &RunReport| report.flash.programs.values().sum::<u64>();
        assert!(programs(&whole) * 4 > programs(&cut) * 5, "more is written");
        assert!(counts(&whole).hits > 5, "{:?}", counts(&whole).hits);
    }
    let impossible = ReplaySetup { value_bytes_max: Some(1 << 30), ..setup(&PLUS, Pace::Closed) };
    let reader = TraceReader::new(text.as_bytes(), b"", TraceName::Csv.format(1), BadLines::Stop);
    let error = impossible.replay(Trace::once(TraceName::Csv, reader), &mut Quiet).unwrap_err();
    assert!(error.to_string().contains("268435456 bytes at the most"), "{error}");
}

/// The second round of a trace asks for the same keys, a tick behind the first.
#[test]
fn a_repeated_trace_is_one_that_says_everything_twice() {
    let text = |rounds: u64| {
        let mut text = "timestamp,op,key,value_size\n".to_owned();
        for line in 0..rounds * 300 {
            let (at, key) = (10 + line / 10, line % 300 * 7 % 40);
            writeln!(text, "{at},{},k{key},900", ["put", "get", "get"][(line % 3) as usize]).unwrap();
        }
        text
    };
    let (once, twice) = (text(1), text(2));
    let reader = || TraceReader::new(once.as_bytes(), b"", TraceName::Csv.format(1), BadLines::Stop);
    for pace in [Pace::Closed, Pace::Trace] {
        let setup = setup(&PLUS, pace);
        let repeated = Trace { further: Box::new([Ok(reader())].into_iter()), ..Trace::once(TraceName::Csv, reader()) };
        let repeated = setup.replay(repeated, &mut Quiet).unwrap();
        let written_out = replay(&setup, TraceName::Csv, twice.as_bytes());
        let figures =
            |report: &RunReport| (report.simulated_ns, report.operations, counts(report).hits, counts(report).misses);
        assert_eq!(figures(&repeated), figures(&written_out));
        // A header each.
        assert_eq!((counts(&repeated).lines, counts(&written_out).lines), (602, 601));
    }
}

#[test]
fn a_trace_without_times_has_no_pace() {
    let mut input = &b"key\nk\n"[..];
    let reader = TraceReader::new(&mut input, b"", TraceName::Csv.format(1), BadLines::Stop);
    let trace = Trace::once(TraceName::Csv, reader);
    let error = setup(&ORIGINAL, Pace::Trace).replay(trace, &mut Quiet).unwrap_err();
    assert!(error.to_string().contains("--pace trace"), "{error}");
}
