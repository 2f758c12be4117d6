//! Replays on a block drive: the same caches, whose host keeps the map.

use super::cache::{cache, cached, plan, requests, text};
use super::{all_commands, counts, replay, setup};
use kvssd_cache::EvictionPolicy;
use kvssd_designs::{BLOCK, DESIGNS};
use kvssd_ftl::Design;
use kvssd_measure::Quiet;
use kvssd_sim::Pace;
use kvssd_sim::replay::{ReplaySetup, Trace};
use kvssd_sim::trace::{BadLines, TraceName, TraceReader};
use kvssd_types::Random;
use std::fmt::Write;

#[test]
fn every_command_does_what_a_map_does_on_blocks_too() {
    let (text, expected) = all_commands(20_000);
    let setup = ReplaySetup { threads: 1, queue_depth: 1, ..setup(&BLOCK, Pace::Closed) };
    let report = replay(&setup, TraceName::Twitter, text.as_bytes());
    let counts = counts(&report);
    assert_eq!([counts.hits, counts.misses, counts.not_stored, counts.deleted, counts.pairs], expected);
    assert_eq!(counts.refused_full, 0);
}

/// Ten times as many bytes are stored as the drive has, by each policy: nothing is refused, and the drive is not much smaller than its flash.
#[test]
fn a_full_cache_on_blocks_refuses_nothing_whatever_its_policy() {
    let requests = requests(60_000, 200_000, 1);
    let text = text(&requests);
    for eviction in EvictionPolicy::ALL {
        let raw_bytes = setup(&BLOCK, Pace::Closed).profile.geometry.raw_bytes();
        let setup = ReplaySetup { threads: 8, ..cached(&BLOCK, plan(eviction, 2 * raw_bytes)) };
        let report = replay(&setup, TraceName::Csv, text.as_bytes());
        let (counts, cache) = (counts(&report), cache(&report));
        assert_eq!(counts.refused_full, 0, "{eviction:?}");
        assert!(cache.hits.bytes - cache.hits.hit_bytes > 10 * raw_bytes, "{eviction:?}");
        assert!(cache.budget_bytes_end < cache.budget_bytes && cache.evicted > 1_000, "{eviction:?}");
        assert!(cache.held_bytes > raw_bytes / 3, "{eviction:?}: {} of {raw_bytes} bytes", cache.held_bytes);
        assert!(counts.life.is_some_and(|life| life.years > 0.0 && life.days > 0.0), "{eviction:?}");
        assert!(report.write_amplification > Some(0.9), "{eviction:?}: {:?}", report.write_amplification);
    }
}

/// What LMCache moves: pieces of some sizes, values of more than a command takes, and parts of them.
#[test]
fn values_of_several_commands_are_put_together_on_blocks() {
    let requests = requests(3_000, 6 << 20, 5);
    let mut setup = cached(&BLOCK, plan(EvictionPolicy::LRU, u64::MAX / 2));
    setup.value_bytes_max = Some(8 << 20);
    let report = replay(&setup, TraceName::Csv, text(&requests).as_bytes());
    assert_eq!((counts(&report).refused_full, counts(&report).values_cut), (0, 0));
    assert!(cache(&report).evicted > 100 && counts(&report).hits > 100);

    let parts = "1 REST.PUT.OBJECT a 5000\n2 REST.GET.OBJECT a 5000 100 199\n3 REST.GET.OBJECT a 5000 4990 9000\n\
                 4 REST.PUT.OBJECT b 7000000\n5 REST.GET.OBJECT b 7000000 4194300 4194310\n6 REST.PUT.OBJECT c 0\n\
                 7 REST.GET.OBJECT c 0\n8 REST.GET.OBJECT a 5000 5000 6000\n";
    let report = replay(&setup, TraceName::Ibm, parts.as_bytes());
    assert_eq!((counts(&report).hits, counts(&report).misses), (5, 0));
}

/// Pairs of two tenants that come by turns, of which one's die young.
fn two_tenants(column: &str) -> String {
    let mut random = Random::new(8);
    let mut text = format!("key,op,size,{column}\n");
    for number in 0..40_000 {
        // The first keeps what it has; the second writes over few keys, again and again.
        let (key, tenant) = match number % 4 {
            0 => (number / 4 % 4_500, "still"),
            _ => (10_000 + random.below(300), "busy"),
        };
        writeln!(text, "key{key},set,16384,{tenant}").unwrap();
    }
    text
}

/// A drive with handles keeps streams apart: less is moved than where one handle has both, and no more than where the streams are not told.
#[test]
fn streams_have_placement_handles_of_their_own_and_the_drive_honours_them() {
    let written = |handles: u32, column: &str| {
        let design = Design { placement_handles: handles, ..BLOCK };
        // Some write over what others do.
        let setup = ReplaySetup { threads: 8, ..cached(&design, plan(EvictionPolicy::LRU, u64::MAX / 2)) };
        replay(&setup, TraceName::Csv, two_tenants(column).as_bytes()).write_amplification.unwrap()
    };
    let (mixed, apart, untold) = (written(1, "tenant"), written(3, "tenant"), written(3, "colour"));
    assert!(apart < mixed && untold >= mixed * 0.99, "{mixed} mixed, {apart} apart, {untold} of one size");
}

/// Collection reads the pages of a large record side by side: it takes a key-value drive about as long to move it as a block drive.
#[test]
fn large_values_are_moved_by_every_design_as_fast_as_blocks_are() {
    let mut random = Random::new(4);
    let mut text = "key,op,size\n".to_owned();
    (0..800).for_each(|_| writeln!(text, "key{},set,1048576", random.below(90)).unwrap());
    let took = |design: &Design| {
        let setup = ReplaySetup { threads: 8, ..cached(design, plan(EvictionPolicy::LRU, u64::MAX / 2)) };
        replay(&setup, TraceName::Csv, text.as_bytes()).simulated_ns
    };
    let blocks = took(&BLOCK);
    for design in DESIGNS.into_iter().filter(|design| design.name != BLOCK.name) {
        let took = took(&design);
        assert!(took < 2 * blocks, "{}: {took} ns, a block drive {blocks}", design.name);
    }
}

#[test]
fn a_block_drive_keeps_no_cache_by_itself_and_says_so() {
    let setup = ReplaySetup { is_drives_cache: true, ..cached(&BLOCK, plan(EvictionPolicy::LRU, 1 << 20)) };
    let reader = TraceReader::new(&b"key\nk\n"[..], b"", TraceName::Csv.format(1), BadLines::Stop);
    let error = setup.replay(Trace::once(TraceName::Csv, reader), &mut Quiet).unwrap_err().to_string();
    assert!(error.starts_with("--cache-in drive: a drive of blocks") && !error.contains('\n'), "{error}");
}
