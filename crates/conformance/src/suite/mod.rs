//! The checks, and who runs them.
//!
//! ```text
//!   basics      pairs beside a map: life, full drives, sizes, conditions, lists, flushes
//!   keys        those of one tag, and what a mount makes of an index
//!   iterators   each sees the moment when it was made; nothing to do where keys have no order
//!   mistakes    of existing emulators, each once
//!   namespaces  of the design, with indexes of other kinds beside it, and logs of their own
//!   lives       namespaces that come and go over power cuts and closes, and batches on a nearly full drive
//! ```
//!
//! A check panics where a design is wrong. [`run_check`] catches that, and says where it was.

mod basics;
mod iterators;
mod keys;
mod lives;
mod mistakes;
mod namespaces;

pub use mistakes::worn;

use crate::drive::Medium;
use crate::power_cuts::words_of;
use crate::report::{Failure, Report};
use crate::selection::names_in;
use crate::trial::Trial;
use kvssd_ftl::Design;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A thing that every design must do.
#[derive(Clone, Copy)]
pub struct Check {
    /// What it must do, as a name.
    pub name: &'static str,
    /// The media that it is run on.
    media: &'static [Medium],
    run: fn(&Trial),
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Checks of a module, each under its function's name.
macro_rules! checks {
    ($($module:ident::$name:ident on $media:expr;)*) => {
        [$(Check { name: stringify!($name), media: $media, run: $module::$name }),*]
    };
}

const BOTH: &[Medium] = &Medium::ALL;
const ROPES: &[Medium] = &[Medium::Ropes];
const BYTES: &[Medium] = &[Medium::Bytes];

/// Names the checks that [`run`] runs, with commas between them.
const CHECK: &str = "CHECK";

/// All checks.
pub static SUITE: [Check; 38] = checks! {
    basics::random_operations_against_a_map on BOTH;
    basics::the_same_seed_gives_the_same_run on BOTH;
    basics::a_snapshot_goes_on_as_the_drive_does on BOTH;
    basics::both_media_take_the_same_time_and_operations on ROPES;
    basics::a_full_drive_serves_reads_and_deletes_and_takes_stores_again on BOTH;
    basics::places_of_a_larger_drive_are_told_apart on ROPES;
    basics::overwrites_of_a_full_drive_go_on_for_ever on ROPES;
    basics::values_of_every_size_come_back_whole_and_in_parts on BOTH;
    basics::conditions_are_kept on BOTH;
    basics::a_list_names_every_key_once_in_a_stable_order_from_any_key_on on BOTH;
    basics::a_list_that_goes_on_while_keys_come_has_all_that_stay on BOTH;
    basics::a_flush_puts_everything_into_flash on BOTH;
    keys::keys_of_one_tag_are_told_apart on BOTH;
    keys::a_drive_that_was_closed_takes_as_many_pairs on BYTES;
    keys::an_index_is_restored_from_any_bytes_or_refuses_them on ROPES;
    keys::an_index_redoes_any_change_or_refuses_it on ROPES;
    iterators::an_iterator_sees_the_drive_of_the_moment_when_it_was_made on ROPES;
    iterators::pairs_that_were_seen_before_are_those_of_the_moment on ROPES;
    iterators::a_snapshot_has_the_iterators_of_the_drive on ROPES;
    iterators::the_same_pairs_come_however_many_are_read_ahead on ROPES;
    iterators::iterators_are_refused_in_one_line_and_end on ROPES;
    iterators::a_full_drive_ends_iterators_before_it_refuses_overwrites on ROPES;
    iterators::an_iterator_of_an_empty_drive_keeps_nothing on ROPES;
    iterators::idle_iterators_do_not_slow_an_active_one on ROPES;
    iterators::short_ranges_read_no_more_of_the_index_for_reading_ahead on ROPES;
    mistakes::mistake_1_programs_spread_over_all_dies on ROPES;
    mistakes::mistake_3_every_operation_of_garbage_collection_is_counted_and_takes_time on ROPES;
    mistakes::mistake_5_places_changed_by_garbage_collection_survive_eviction on ROPES;
    mistakes::mistake_6_a_delete_does_not_hide_the_keys_behind_it on ROPES;
    mistakes::mistake_7_invalid_mappings_do_not_outlive_their_superblock on ROPES;
    mistakes::mistake_9_everything_is_charged_to_one_budget on ROPES;
    namespaces::indexes_of_all_kinds_share_a_drive_and_its_batches on ROPES;
    namespaces::many_logs_share_a_drive_that_is_nearly_full on BOTH;
    namespaces::a_namespace_keeps_to_its_logs_however_often_they_are_written_over on ROPES;
    namespaces::the_collector_of_many_logs_comes_to_rest_on_a_full_drive on BOTH;
    namespaces::a_number_comes_back_as_often_as_it_is_given_back on ROPES;
    lives::namespaces_come_and_go_over_many_lives on ROPES;
    lives::a_nearly_full_drive_takes_all_of_a_batch_or_nothing on ROPES;
};

/// Runs the whole suite on a design that takes keys, or the checks that the environment variable `CHECK` names.
///
/// # Panics
/// When it names a check that there is not.
#[must_use]
pub fn run(design: &Design) -> Report {
    let mut report = Report::default();
    chosen(names_in(CHECK).as_deref()).for_each(|check| report.add(run_check(check, design)));
    report
}

/// The checks of these names, or all.
fn chosen(names: Option<&[String]>) -> impl Iterator<Item = &'static Check> {
    let known = SUITE.map(|check| check.name);
    for name in names.into_iter().flatten() {
        assert!(
            known.contains(&name.as_str()),
            "{CHECK}={name}: there is no such check; there are {}",
            known.join(", ")
        );
    }
    SUITE.iter().filter(move |check| names.is_none_or(|names| names.iter().any(|name| name == check.name)))
}

/// Runs a check on a design, on each medium of the check. On bytes an index that can begin small does.
#[must_use]
pub fn run_check(check: &Check, design: &Design) -> Report {
    let mut report = Report::default();
    for &medium in check.media {
        let mut design = design.clone();
        if medium == Medium::Bytes {
            design.index.begin_small();
        }
        let trial = Trial::new(&design, medium);
        match catch_unwind(AssertUnwindSafe(|| (check.run)(&trial))) {
            Ok(()) => report.passed += 1,
            Err(panic) => report.failures.push(Failure {
                check: check.name,
                design: design.name.to_owned(),
                medium: trial.medium(),
                place: trial.position().to_string(),
                what: words_of(panic.as_ref()).to_owned(),
            }),
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_check_that_finds_something(trial: &Trial) {
        let mut random = trial.random(7);
        let mut drive = trial.drive();
        for number in 0..3 {
            drive.store(&[number], random.below(100) as usize).unwrap();
        }
        assert!(trial.medium() == Medium::Ropes, "a key is lost");
    }

    #[test]
    fn checks_are_chosen_by_name_and_a_name_that_there_is_not_is_told() {
        let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(chosen(None).count(), SUITE.len());
        let names = of(&["conditions_are_kept", "a_flush_puts_everything_into_flash"]);
        assert!(chosen(Some(&names)).map(|check| check.name).eq(names.iter().map(String::as_str)));
        let panic = catch_unwind(|| chosen(Some(&of(&["conditions"]))).count()).unwrap_err();
        assert!(words_of(panic.as_ref()).starts_with("CHECK=conditions: there is no such check; there are random_op"));
    }

    #[test]
    fn a_failure_names_check_design_medium_seed_step_and_what_was_said() {
        let check = Check { name: "every_key_is_there", media: BOTH, run: a_check_that_finds_something };
        let report = run_check(&check, &kvssd_designs::named("plus").unwrap());
        assert_eq!(report.passed, 1);
        let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
        assert_eq!(failures, ["every_key_is_there: plus on bytes, seed 7, step 3 (store): a key is lost"]);
    }
}
