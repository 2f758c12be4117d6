//! Replays with a cache: nothing is refused, the hits are those of the policy, and what is too old is gone.

use super::{counts, replay, setup};
use crate::side_by_side::side_by_side;
use kvssd_cache::{AdmissionPolicy, Cache, CachePlan, EvictionPolicy, PairId};
use kvssd_designs::{BLOCK, DESIGNS, PLUS, TESSERA};
use kvssd_ftl::Design;
use kvssd_sim::replay::ReplaySetup;
use kvssd_sim::trace::TraceName;
use kvssd_sim::{CacheReport, Pace, RunReport};
use kvssd_types::{Nanos, Random};
use std::fmt::Write;
use xxhash_rust::xxh3::xxh3_64;

/// A cache's trace without a word about stores: key and size up to some, a few keys often and most once.
pub(super) fn requests(count: u64, bytes_max: u64, seed: u64) -> Vec<(u64, u64)> {
    let mut random = Random::new(seed);
    let key = |random: &mut Random| {
        let bits = 1 + random.below(24);
        random.below(1 << bits)
    };
    (0..count).map(|_| key(&mut random)).map(|key| (key, 500 + key * 7919 % bytes_max)).collect()
}

pub(super) fn text(requests: &[(u64, u64)]) -> String {
    let mut text = "time,key,size\n".to_owned();
    for (number, (key, bytes)) in requests.iter().enumerate() {
        writeln!(text, "{},key{key},{bytes}", number / 100).unwrap();
    }
    text
}

pub(super) fn plan(eviction: EvictionPolicy, budget_bytes: u64) -> CachePlan {
    CachePlan { budget_bytes, eviction, admission: Vec::new() }
}

/// One command at a time, so that requests are in the order of the trace.
pub(super) fn cached(design: &Design, plan: CachePlan) -> ReplaySetup {
    ReplaySetup { threads: 1, queue_depth: 1, cache: Some(plan), ..setup(design, Pace::Closed) }
}

pub(super) fn cache(report: &RunReport) -> &CacheReport {
    counts(report).cache.as_ref().unwrap()
}

/// Ten times as many bytes are stored as the drive has.
#[test]
fn a_full_cache_refuses_nothing_whatever_its_design_and_policy() {
    full_caches_refuse_nothing(false, |_| {});
}

/// The same where the drive keeps the cache, in a namespace: it charges what it keeps to its DRAM, and who leaves to its flash.
#[test]
fn a_full_drive_that_is_a_cache_by_itself_refuses_nothing_whatever_its_design_and_policy() {
    full_caches_refuse_nothing(true, |report| {
        assert_eq!(cache(report).kept_by, Some("drive"));
        assert!(report.dram.parts.contains_key("cache"), "{:?}", report.dram);
    });
}

fn full_caches_refuse_nothing(is_drives_cache: bool, check: impl Fn(&RunReport) + Sync) {
    let requests = requests(60_000, 200_000, 1);
    let text = text(&requests);
    let kinds = EvictionPolicy::ALL.into_iter().cycle();
    let cases: Vec<_> = DESIGNS.into_iter().zip(kinds).collect();
    side_by_side(&cases, |(design, eviction)| {
        let raw_bytes = setup(design, Pace::Closed).profile.geometry.raw_bytes();
        // More than a drive takes: it says so when it is full.
        let plan = plan(*eviction, 2 * raw_bytes);
        let setup = ReplaySetup { threads: 8, is_drives_cache, ..cached(design, plan) };
        let report = replay(&setup, TraceName::Csv, text.as_bytes());
        let (counts, cache) = (counts(&report), cache(&report));
        let name = design.name;
        assert_eq!(counts.refused_full, 0, "{name}");
        assert!(cache.hits.bytes - cache.hits.hit_bytes > 10 * raw_bytes, "{name}");
        assert!(cache.budget_bytes_end < cache.budget_bytes && cache.evicted > 1_000, "{name}: {cache:?}");
        assert!(cache.held_bytes > raw_bytes / 4, "{name} holds {} of {raw_bytes} bytes", cache.held_bytes);
        assert!(counts.life.is_some_and(|life| life.years > 0.0 && life.days > 0.0), "{name}");
        check(&report);
    });
}

/// Values in segments, on a drive that is full of them: what is evicted in the middle of a store leaves room, and nothing wrong behind.
#[test]
fn a_full_cache_of_values_in_segments_refuses_nothing_either() {
    let requests = requests(3_000, 6 << 20, 5);
    let text = text(&requests);
    let mut setup = cached(&PLUS, plan(EvictionPolicy::LRU, u64::MAX / 2));
    setup.value_bytes_max = Some(8 << 20);
    setup.profile.geometry.oob_bytes = 512;
    let raw_bytes = setup.profile.geometry.raw_bytes();
    for threads in [1, 8] {
        let report = replay(&ReplaySetup { threads, ..setup.clone() }, TraceName::Csv, text.as_bytes());
        let (counts, cache) = (counts(&report), cache(&report));
        assert_eq!((counts.refused_full, counts.values_cut), (0, 0));
        assert!(cache.budget_bytes_end < raw_bytes && cache.evicted > 100, "{} evicted", cache.evicted);
        assert!(cache.held_bytes > raw_bytes / 4, "it holds {} of {raw_bytes} bytes", cache.held_bytes);
    }
}

#[test]
fn hits_are_those_of_the_policy_without_a_drive() {
    let requests = requests(20_000, 20_000, 2);
    let text = text(&requests);
    for eviction in EvictionPolicy::ALL {
        let plan = plan(eviction, 20 << 20);
        let mut alone = Cache::new(&plan);
        let (mut hits, mut hit_bytes) = (0, 0);
        for &(key, bytes) in &requests {
            let name = format!("key{key}");
            let pair = PairId(xxh3_64(name.as_bytes()));
            if alone.look(pair, Nanos::ZERO) {
                (hits, hit_bytes) = (hits + 1, hit_bytes + bytes);
            } else if alone.admits(pair, name.len() as u64 + bytes, Nanos::ZERO) {
                alone.insert(pair, name.len() as u64 + bytes, Nanos::MAX);
            }
        }
        for (design, is_drives_cache) in [(&PLUS, false), (&PLUS, true), (&BLOCK, false)] {
            let setup = ReplaySetup { is_drives_cache, ..cached(design, plan.clone()) };
            let report = replay(&setup, TraceName::Csv, text.as_bytes());
            let (found, case) = (cache(&report), format!("{eviction:?} {} {is_drives_cache}", design.name));
            assert_eq!((found.hits.hits, found.hits.hit_bytes), (hits, hit_bytes), "{case}");
            assert_eq!((found.evicted, found.held_bytes), (alone.counts().evicted, alone.held_bytes()), "{case}");
            assert_eq!(found.budget_bytes_end, found.budget_bytes, "the drive has room for it");
            assert_eq!(found.course.iter().map(|window| window.hits).sum::<u64>(), hits);
            assert_eq!(counts(&report).hits, hits, "and each was read");
        }
    }
}

#[test]
fn who_is_kept_out_is_not_written_and_what_the_drive_had_of_it_goes() {
    let plan = CachePlan { admission: vec![AdmissionPolicy::AT_MOST.rule(1000)], ..plan(EvictionPolicy::LRU, 1 << 20) };
    let text = "timestamp,key,op,size\n0,a,set,500\n0,a,get,0\n0,a,set,5000\n0,a,get,0\n0,b,set,2000\n0,b,get,0\n";
    let report = replay(&cached(&TESSERA, plan), TraceName::Csv, text.as_bytes());
    let (counts, cache) = (counts(&report), cache(&report));
    assert_eq!((counts.hits, counts.misses, counts.pairs), (1, 2, 0));
    assert_eq!((cache.admitted, cache.kept_out, cache.evicted), (1, 2, 0));
}

#[test]
fn times_to_live_are_the_traces() {
    let text = "timestamp,key,op,size,ttl\n0,a,set,10,5\n0,b,set,10,0\n4,a,get,0,0\n5,a,get,0,0\n6,b,get,0,0\n7,a,set,10,9\n8,a,get,0,0\n";
    let report = replay(&cached(&PLUS, plan(EvictionPolicy::TIME_TO_LIVE, 1 << 20)), TraceName::Csv, text.as_bytes());
    let (counts, cache) = (counts(&report), cache(&report));
    assert_eq!((counts.hits, counts.misses, counts.ttls_ignored), (3, 1, 0));
    assert_eq!((cache.expired, cache.evicted, counts.pairs), (1, 0, 2));
}

#[test]
fn a_prefix_is_loaded_up_to_the_first_block_that_is_missing() {
    let lines = [&[1, 2, 4][..], &[1, 2, 3, 4, 5], &[6, 1], &[1, 2, 3]];
    let text: String = lines.iter().map(|ids| format!("{{\"timestamp\": 0, \"hash_ids\": {ids:?}}}\n")).collect();
    let report = replay(&cached(&PLUS, plan(EvictionPolicy::LRU, 1 << 20)), TraceName::Mooncake, text.as_bytes());
    let (counts, cache) = (counts(&report), cache(&report));
    let prefixes = counts.prefixes.unwrap();
    assert_eq!((prefixes.requests, prefixes.blocks, prefixes.loaded_blocks), (4, 13, 5));
    assert_eq!((prefixes.whole, prefixes.none, report.sequence_latency_ns["prefix"].count), (1, 2, 2));
    // Block 4 of the second request and block 1 of the third were there, and of no use.
    assert_eq!((counts.hits, counts.filled, cache.hits.hits, cache.hits.requests), (5, 6, 5, 13));
    assert!(report.sequence_latency_ns["prefix"].mean > report.latency_ns["retrieve"].mean);
}

/// On a drive that is full the pair that came may be the first to leave: it is evicted, and none was refused.
#[test]
fn times_to_live_refuse_nothing_on_a_full_drive() {
    let raw_bytes = setup(&PLUS, Pace::Closed).profile.geometry.raw_bytes();
    let mut text = "time,key,op,size,ttl\n".to_owned();
    for number in 0..2 * raw_bytes / 100_000 {
        writeln!(text, "0,key{number},set,100000,{}", 10_000_000 - number).unwrap();
    }
    let report =
        replay(&cached(&PLUS, plan(EvictionPolicy::TIME_TO_LIVE, 2 * raw_bytes)), TraceName::Csv, text.as_bytes());
    let found = cache(&report);
    assert!(found.evicted > 0 && found.budget_bytes_end < found.budget_bytes);
    assert_eq!(counts(&report).refused_full, 0);
}

#[test]
fn a_block_that_left_before_it_was_retrieved_is_not_loaded() {
    let mut random = Random::new(4);
    let lines = (0..2_000).map(|_| (random.below(60) * 100, 2 + random.below(18)));
    let text: String = lines
        .map(|(first, count)| {
            let ids: Vec<u64> = (first..first + count).collect();
            format!("{{\"timestamp\": 0, \"hash_ids\": {ids:?}}}\n")
        })
        .collect();
    let setup = ReplaySetup { threads: 20, ..cached(&PLUS, plan(EvictionPolicy::FIFO, 90_000)) };
    let report = replay(&setup, TraceName::Mooncake, text.as_bytes());
    let counts = counts(&report);
    assert!(counts.misses > 0, "some left");
    assert_eq!(counts.prefixes.unwrap().loaded_blocks, counts.hits);
}

/// Who is missed by several at once was asked for so often.
#[test]
fn who_comes_in_by_frequency_does_not_hang_on_the_number_of_threads() {
    let text: String = (0..500).flat_map(|key| vec![format!("key{key},10000\n"); 8]).collect();
    let text = format!("key,size\n{text}");
    for threads in [1, 8] {
        let plan =
            CachePlan { admission: vec![AdmissionPolicy::ASKED.rule(2)], ..plan(EvictionPolicy::LRU, 100 << 20) };
        let report = replay(&ReplaySetup { threads, ..cached(&PLUS, plan) }, TraceName::Csv, text.as_bytes());
        assert_eq!((cache(&report).admitted, counts(&report).filled), (500, 500), "{threads} threads");
    }
}

/// A drive that throws a store away has not stored its bytes: whoever keeps the cache, the drive writes as much for as many.
#[test]
fn what_is_kept_out_counts_as_stored_nowhere() {
    let text = text(&requests(20_000, 20_000, 5));
    let [host, drive] = [false, true].map(|is_drives_cache| {
        let plan =
            CachePlan { admission: vec![AdmissionPolicy::AT_MOST.rule(3000)], ..plan(EvictionPolicy::LRU, 2 << 20) };
        replay(&ReplaySetup { is_drives_cache, ..cached(&PLUS, plan) }, TraceName::Csv, text.as_bytes())
    });
    assert!(cache(&drive).kept_out > 1000 && cache(&drive).kept_out == cache(&host).kept_out);
    let [of_host, of_drive] = [&host, &drive].map(|report| report.write_amplification.unwrap());
    assert!((of_drive / of_host - 1.0).abs() < 0.05, "{of_host:.3} and {of_drive:.3}");
    let [of_host, of_drive] = [&host, &drive].map(|report| counts(report).life.unwrap().drive_writes_a_day);
    assert!((of_drive / of_host - 1.0).abs() < 0.05, "{of_host:.3} and {of_drive:.3}");
}

/// Little's law: one command at a time cannot take longer than the time that passes, whoever keeps the cache and however it loses pairs.
#[test]
fn one_command_at_a_time_takes_all_the_time_that_passes() {
    let mut text = "timestamp,key,op,size,ttl\n".to_owned();
    for (number, (key, bytes)) in requests(10_000, 200_000, 6).into_iter().enumerate() {
        writeln!(text, "{},key{key},{},{bytes},20", number / 100, ["set", "get"][number % 2]).unwrap();
    }
    let raw_bytes = setup(&PLUS, Pace::Closed).profile.geometry.raw_bytes();
    let at_most =
        CachePlan { admission: vec![AdmissionPolicy::AT_MOST.rule(100_000)], ..plan(EvictionPolicy::LRU, 8 << 20) };
    let plans = [plan(EvictionPolicy::LRU, 8 << 20), plan(EvictionPolicy::TIME_TO_LIVE, 2 * raw_bytes), at_most];
    let kinds = [(PLUS, false), (PLUS, true), (BLOCK, false)];
    let cases: Vec<_> = plans.iter().flat_map(|plan| kinds.iter().map(move |kind| (plan, kind))).collect();
    side_by_side(&cases, |&(plan, (design, is_drives_cache))| {
        let setup = ReplaySetup { is_drives_cache: *is_drives_cache, ..cached(design, plan.clone()) };
        let report = replay(&setup, TraceName::Csv, text.as_bytes());
        let took: f64 = report.latency_ns.values().map(|latency| latency.count as f64 * latency.mean).sum();
        let under_way = took / report.simulated_ns as f64;
        let lost = cache(&report).evicted + cache(&report).expired + cache(&report).kept_out;
        let case = format!("{plan:?} {} {is_drives_cache}", design.name);
        assert!(lost > 100, "{lost} pairs were deleted: {case}");
        // Latencies are counted to three digits.
        assert!((0.99..1.001).contains(&under_way), "{under_way} commands under way: {case}");
    });
}

/// A drive refuses such a pair and keeps the one that it has; a host keeps it out, with the one before.
#[test]
fn a_value_larger_than_the_budget_leaves_no_old_one_to_be_hit_whoever_keeps_the_cache() {
    let text = "key,op,value_size\na,set,100\na,get,1\na,set,5000\na,get,1\na,get,1\n";
    for is_drives_cache in [false, true] {
        let setup = ReplaySetup { is_drives_cache, ..cached(&PLUS, plan(EvictionPolicy::LRU, 4096)) };
        let report = replay(&setup, TraceName::Csv, text.as_bytes());
        assert_eq!((counts(&report).hits, counts(&report).misses), (1, 2), "{is_drives_cache}");
    }
}

#[test]
fn misses_of_one_key_that_are_under_way_store_it_once() {
    let text = format!("key,size\n{}", "k,100000\n".repeat(8));
    let setup = ReplaySetup { threads: 8, queue_depth: 1, ..setup(&PLUS, Pace::Closed) };
    let report = replay(&setup, TraceName::Csv, text.as_bytes());
    let counts = counts(&report);
    assert_eq!((counts.filled, counts.joined, counts.misses), (1, 7, 8));
}

#[test]
fn the_figures_begin_behind_the_warm_up() {
    let requests = requests(4_000, 20_000, 3);
    let text = text(&requests);
    let whole = cached(&PLUS, plan(EvictionPolicy::S3_FIFO, 8 << 20));
    let warm = ReplaySetup { warm_up: 3_000, ..whole.clone() };
    let [all, rest] = [&whole, &warm].map(|setup| replay(setup, TraceName::Csv, text.as_bytes()));
    assert_eq!((all.operations, rest.operations), (4_000, 1_000));
    assert_eq!(cache(&rest).hits.requests, 1_000);
    assert!(cache(&rest).hits.hits < cache(&all).hits.hits && rest.flash.programs["user"] < all.flash.programs["user"]);
    assert_eq!(cache(&rest).held_bytes, cache(&all).held_bytes, "the drive is the same");
}
