//! The suite on every design that comes along, a test for each check, and what single designs promise beyond it.
//!
//! `DESIGN=plus cargo test -p kvssd-conformance` runs the suite for one design, `DESIGN=plus,rhik` for two.

mod behind;
mod campaigns;
mod collection;
mod crowd;
mod dram_hash;
mod failure;
mod growth;
mod hash;
mod journal;
mod later;
mod mistaken;
mod namespaces;
mod parts;
mod power_cuts;
mod rest;
mod rhik;
mod tessera;
mod wear;

use kvssd_allocator as _;
use kvssd_conformance::{Drive, Report, SUITE, run_check, selected};
use kvssd_ftl::Design;
use kvssd_types::Random;
use std::panic::resume_unwind;
use std::thread;

/// A test for each check of the suite.
macro_rules! suite {
    ($($check:ident)*) => {
        $(
            #[test]
            fn $check() {
                every_design_passes(stringify!($check));
            }
        )*

        #[test]
        fn every_check_is_a_test() {
            assert!(SUITE.iter().map(|check| check.name).eq([$(stringify!($check)),*]));
        }
    };
}

/// What comes of each design, side by side: the longest does not keep the others waiting.
fn of_every_design<T: Send>(work: impl Fn(&Design) -> T + Sync) -> Vec<T> {
    let (designs, work) = (selected(), &work);
    thread::scope(|scope| {
        let running: Vec<_> = designs.iter().map(|design| scope.spawn(move || work(design))).collect();
        running.into_iter().map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// A design, with choices of its index.
fn design_with(name: &str, parameters: &[(&str, &str)]) -> Design {
    let mut design = kvssd_designs::named(name).unwrap();
    parameters.iter().for_each(|(key, value)| design.set(key, value).unwrap());
    design
}

/// Fills a drive whose directory has one entry, and gives the number of its pairs and the bytes of its directory then.
fn fill_and_grow(drive: &mut Drive) -> (u32, u64) {
    let directory = |drive: &Drive| drive.engine.dram().parts()["index_directory"];
    assert_eq!(directory(drive), 8);
    let (mut stored, mut random) = (0u32, Random::new(3));
    while drive.store(&stored.to_be_bytes(), 40).is_ok() {
        stored += 1;
        let number = random.below(stored.into()) as u32;
        drive.verify(&number.to_be_bytes());
    }
    (stored, directory(drive))
}

fn every_design_passes(name: &str) {
    let check = SUITE.iter().find(|check| check.name == name).expect("a check of the suite");
    let reports: Vec<Report> = of_every_design(|design| run_check(check, design));
    let failures: Vec<String> = reports.iter().flat_map(|report| &report.failures).map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

suite! {
    random_operations_against_a_map
    the_same_seed_gives_the_same_run
    a_snapshot_goes_on_as_the_drive_does
    both_media_take_the_same_time_and_operations
    a_full_drive_serves_reads_and_deletes_and_takes_stores_again
    places_of_a_larger_drive_are_told_apart
    overwrites_of_a_full_drive_go_on_for_ever
    values_of_every_size_come_back_whole_and_in_parts
    conditions_are_kept
    a_list_names_every_key_once_in_a_stable_order_from_any_key_on
    a_list_that_goes_on_while_keys_come_has_all_that_stay
    a_flush_puts_everything_into_flash
    keys_of_one_tag_are_told_apart
    a_drive_that_was_closed_takes_as_many_pairs
    an_index_is_restored_from_any_bytes_or_refuses_them
    an_index_redoes_any_change_or_refuses_it
    an_iterator_sees_the_drive_of_the_moment_when_it_was_made
    pairs_that_were_seen_before_are_those_of_the_moment
    a_snapshot_has_the_iterators_of_the_drive
    the_same_pairs_come_however_many_are_read_ahead
    iterators_are_refused_in_one_line_and_end
    a_full_drive_ends_iterators_before_it_refuses_overwrites
    an_iterator_of_an_empty_drive_keeps_nothing
    idle_iterators_do_not_slow_an_active_one
    short_ranges_read_no_more_of_the_index_for_reading_ahead
    mistake_1_programs_spread_over_all_dies
    mistake_3_every_operation_of_garbage_collection_is_counted_and_takes_time
    mistake_5_places_changed_by_garbage_collection_survive_eviction
    mistake_6_a_delete_does_not_hide_the_keys_behind_it
    mistake_7_invalid_mappings_do_not_outlive_their_superblock
    mistake_9_everything_is_charged_to_one_budget
    indexes_of_all_kinds_share_a_drive_and_its_batches
    many_logs_share_a_drive_that_is_nearly_full
    a_namespace_keeps_to_its_logs_however_often_they_are_written_over
    the_collector_of_many_logs_comes_to_rest_on_a_full_drive
    a_number_comes_back_as_often_as_it_is_given_back
    namespaces_come_and_go_over_many_lives
    a_nearly_full_drive_takes_all_of_a_batch_or_nothing
}
