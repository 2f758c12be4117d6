//! Short campaigns, and the proof that they find what is wrong.

use crate::of_every_design;
use kvssd_conformance::CampaignError;
use kvssd_conformance::power_cuts::{Campaign, CrashReport, survives};
use kvssd_flash::PowerLoss;
use kvssd_ftl::{Design, PlantedBug};
use kvssd_measure::{Observer, Quiet};
use std::cell::Cell;

pub(crate) fn run(design: &Design, power_loss: PowerLoss, seed: u64, cuts: u32) -> CrashReport {
    Campaign { design: design.clone(), power_loss, seed, cuts, media_faults: false }.run(&mut Quiet).unwrap()
}

/// The campaign of 300 cuts for each is in `campaigns.rs`.
#[test]
fn few_cuts_lose_nothing_and_the_same_seed_gives_the_same_cuts() {
    of_every_design(|design| {
        for power_loss in [PowerLoss::Protected, PowerLoss::Volatile] {
            let few = || run(design, power_loss, 6, 20);
            let report = few();
            assert_eq!((report.losses.as_slice(), report.cuts), (&[][..], 20));
            assert_eq!(report, few());
        }
    });
}

/// Interrupts once it has been asked so often.
struct Impatient(Cell<u32>);

impl Observer for Impatient {
    fn begin(&mut self, _phase: &str, _total: u64) {}

    fn progress(&mut self, done: u64) {
        assert!(done <= 1, "a life takes as long as it will: {done} are over");
    }

    fn is_interrupted(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }
}

/// One of a full drive may take long.
#[test]
fn a_life_ends_where_the_observer_interrupts() {
    // In the middle of its look at all pairs, and behind it.
    for looks in [500, 1020] {
        let design = kvssd_designs::PLUS;
        let campaign = Campaign { design, power_loss: PowerLoss::Protected, seed: 6, cuts: 5, media_faults: false };
        let ended = campaign.run(&mut Impatient(Cell::new(looks)));
        assert!(matches!(ended, Err(CampaignError::Interrupted)), "{ended:?}");
    }
}

/// On drives whose dies have logs of their own, and little room.
#[test]
fn nothing_is_lost_where_several_superblocks_are_emptied_at_once() {
    let design = kvssd_designs::TESSERA;
    for power_loss in [PowerLoss::Protected, PowerLoss::Volatile] {
        let reports = [5, 21].map(|seed| run(&design, power_loss, seed, 50));
        assert!(reports.iter().all(|report| report.losses.is_empty()), "{reports:?}");
        let beside: u64 = reports.iter().map(|report| report.victims_beside).sum();
        assert!(beside > 5, "{beside} beside others: {reports:?}");
    }
}

/// What filled a superblock, and was moved out of it before it was erased and opened again, was in the write buffer's memory with what came
/// next: a second mount put the old units behind the new ones.
#[test]
fn a_superblock_that_was_opened_twice_is_put_back_as_it_was_last() {
    let report = run(kvssd_designs::named("original").as_ref().unwrap(), PowerLoss::Protected, 6, 100);
    assert_eq!((report.losses.as_slice(), report.cuts), (&[][..], 100));
}

/// A checkpoint does not hold what validity has gathered of a victim: the mount behind it asks the index what lives there.
#[test]
fn a_checkpoint_may_come_in_the_middle_of_a_victim() {
    for seed in [4, 14, 24] {
        assert_eq!(run(&kvssd_designs::PLUS, PowerLoss::Protected, seed, 30).losses, [], "seed {seed}");
    }
}

#[test]
fn what_a_test_is_told_names_design_semantics_seed_and_cut() {
    let sound = kvssd_designs::named("kaml").unwrap();
    assert_eq!(survives(&sound, 20), Ok(()));
    // So few cuts end before any table has split, and prove nothing of that.
    let proves_nothing = survives(&kvssd_designs::RHIK, 2).unwrap_err().to_string();
    assert!(proves_nothing.contains("no mount had a split to make again"), "{proves_nothing}");
    let lost = survives(&Design { planted: Some(PlantedBug::LostRelocation), ..sound }, 100).unwrap_err();
    let lines = lost.to_string();
    assert!(lines.starts_with("power_cuts: kaml, protected, seed 7, cut ") && !lines.contains("proves"), "{lost}");
    assert_eq!(format!("{lost:?}"), format!("\n{lines}"), "a test that unwraps shows lines");
}

mod campaigns {
    use super::*;

    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn media_faults_are_caught_and_mended() {
        of_every_design(|design| {
            for power_loss in [PowerLoss::Protected, PowerLoss::Volatile] {
                let campaign = Campaign { design: design.clone(), power_loss, seed: 1, cuts: 100, media_faults: true };
                let report = campaign.run(&mut Quiet).unwrap();
                assert_eq!(report.losses, []);
                assert!(
                    report.flips_caught > 100 && report.pages_rebuilt > 10 && report.blocks_retired > 3,
                    "{report:?}"
                );
            }
        });
    }

    /// Of pairs so tiny that what an index notes of them is as large.
    #[test]
    #[ignore = "a campaign: .ci/run has it"]
    fn full_drives_lose_nothing() {
        of_every_design(|design| {
            for (power_loss, cuts) in [(PowerLoss::Protected, 10), (PowerLoss::Volatile, 3)] {
                let report = run(design, power_loss, 7, cuts);
                assert_eq!((report.losses.as_slice(), report.cuts), (&[][..], cuts.into()), "{}", design.name);
            }
        });
    }
}
