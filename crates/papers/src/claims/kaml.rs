//! The claims of the KAML paper (section V): a drive of pairs with a table in DRAM, many logs and batches against a block drive on the
//! same flash, and transactions on both.

mod cell;
mod conflicts;
mod drawn;
mod drives;
mod logs;
mod oltp;
mod paper;
mod side;
mod ycsb;

pub use self::cell::KamlCell;

use self::cell::Bench;
use super::experiment::Context;
use crate::claims::{Assumption, Cell, Claim, Experiment, Findings};
use kvssd_measure::Observer;
use kvssd_sim::SimError;

/// Section V-B: of a Get, an Update and an Insert the host's software takes 2, 8 and 3 %. If that is the same time for each, the board takes
/// 0.23 of a Get for an Update and 0.66 for an Insert (docs/TESTBEDS.md), of which one alone takes 100 us here. That it is the same time is a guess.
const SHARES: Assumption = Assumption::guess(
    "an Update of 23.5 us, and an Insert of 66.0 us",
    &[("firmware.write_ns", "18500"), ("core_costs.new_entry_ns", "42500")],
);

/// Section V-A: the drive was filled with random data; figure 6: small Inserts are slow "due to the same reason" as small Updates, which
/// read what they modify.
const SCATTERED: Assumption = Assumption::fact(
    "inserts go where something was written before, in no order",
    &[("emulator.inserts_scattered", "true")],
);

/// The cost of locking a range of blocks on the board's cores, of which the paper gives no figure.
const RANGE_LOCK: Assumption = Assumption::guess("a range lock of 5 us", &[("core_costs.range_lock_ns", "5000")]);
const LONG_RANGE_LOCK: Assumption =
    Assumption::guess("a range lock of 20 us", &[("core_costs.range_lock_ns", "20000")]);

/// How long a write takes in the controller, and a core for an entry of the table.
const PIPELINE: Assumption = Assumption::guess("a pipeline of 20 us for writes", &[("firmware.write_ns", "20000")]);
const ENTRY: Assumption = Assumption::guess("1 us of a core for each entry", &[("core_costs.comparison_ns", "1000")]);

/// What is known, the guess, and the sweeps, one at a time.
const OF_WRITES: &[Assumption] = &[SHARES, SCATTERED, RANGE_LOCK, LONG_RANGE_LOCK, PIPELINE, ENTRY];
const OF_FILLING: &[Assumption] = &[SHARES, PIPELINE, ENTRY];
const OF_READS: &[Assumption] = &[RANGE_LOCK, LONG_RANGE_LOCK, ENTRY];

pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment::new(&["kaml.1"], 200, check, |context, observer| {
        with(context, observer, |bench| Ok(vec![drives::load_factors(bench)?]))
    })
    .assuming(OF_READS)
    .with_cells(),
    Experiment::new(&["kaml.2", "kaml.3", "kaml.4", "kaml.10", "kaml.11"], 300, check_records, |context, observer| {
        with(context, observer, |bench| Ok(drives::small_records(bench)?.into()))
    })
    .assuming(OF_WRITES)
    .with_cells(),
    Experiment::new(&["kaml.5"], 80, check, |context, observer| {
        with(context, observer, |bench| Ok(vec![drives::filling(bench)?]))
    })
    .assuming(OF_FILLING)
    .with_cells(),
    Experiment::new(&["kaml.6"], 120, check, |context, observer| {
        with(context, observer, |bench| Ok(vec![logs::more_logs(bench)?]))
    })
    .with_cells(),
    Experiment::new(&["kaml.7", "kaml.8"], 400, check, |context, observer| {
        with(context, observer, |bench| Ok(oltp::transactions(bench)?.into()))
    })
    .with_cells(),
    Experiment::new(&["kaml.9"], 250, check, |context, observer| {
        with(context, observer, |bench| Ok(vec![ycsb::workloads(bench)?]))
    })
    .with_cells(),
    Experiment::new(&["kaml.12"], 1, |_| Ok(()), |context, _| Ok(conflicts::under_page_locks(context.seed).into())),
];

/// Refuses drives that cannot be.
fn check(context: &Context) -> Result<(), SimError> {
    with(context, &mut kvssd_measure::Quiet, |_| Ok(Vec::new())).map(|_| ())
}

/// And those that have no room for what is inserted and updated.
fn check_records(context: &Context) -> Result<(), SimError> {
    with(context, &mut kvssd_measure::Quiet, |bench| drives::check_records(bench).map(|_| Vec::new())).map(|_| ())
}

/// Runs an experiment on the board; all that it measured comes with its claims.
fn with(
    context: &Context,
    observer: &mut dyn Observer,
    run: impl FnOnce(&mut Bench<'_>) -> Result<Vec<Claim>, SimError>,
) -> Result<Findings, SimError> {
    let Context { profile, parameters, scale, seed } = context;
    let mut bench = Bench::new(profile, parameters, *scale, *seed, observer)?;
    let claims = run(&mut bench)?;
    let Bench { cells, figures, .. } = bench;
    Ok(Findings { claims, cells: cells.into_iter().map(Cell::Kaml).collect(), figures })
}

#[cfg(test)]
mod tests {
    use crate::claims::{Conditions, Paper};

    #[test]
    fn what_the_claims_choose_themselves_is_refused() {
        let refused = |key: &str, value: &str| {
            let overrides = vec![(format!("design.{key}"), value.to_owned())];
            let conditions = Conditions { paper: Paper::Kaml, overrides, scale: 1.0 / 64.0, seed: 1 };
            Paper::Kaml.experiments()[0].check(&conditions).unwrap_err().to_string()
        };
        assert!(refused("flash_bytes_per_slot", "3072").contains("load factors"));
        assert!(refused("nonsense", "1").contains("flash_bytes_per_slot"));
    }

    #[test]
    fn a_small_drive_is_refused_by_the_claims_that_have_no_room_on_it_alone() {
        let conditions = Conditions { paper: Paper::Kaml, overrides: Vec::new(), scale: 1.0 / 256.0, seed: 1 };
        let checked = |id: &str| {
            let mut experiments = Paper::Kaml.experiments().iter();
            experiments.find(|experiment| experiment.ids.contains(&id)).unwrap().check(&conditions)
        };
        assert!(checked("kaml.2").unwrap_err().to_string().contains("ask for a larger --scale"));
        for id in ["kaml.1", "kaml.5", "kaml.6", "kaml.7", "kaml.9", "kaml.12"] {
            assert!(checked(id).is_ok(), "{id}");
        }
    }
}
