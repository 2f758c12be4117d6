//! What is collected when a part of a drive's data never dies: how far apart erase counts come, and what policies of victims move.

use kvssd_conformance::{Drive, Medium};
use kvssd_ftl::{Candidate, Design, EraseCounts, VictimChoice, VictimPolicy};
use kvssd_types::Random;

/// Bytes of a value: two pairs lie in a page.
const VALUE_BYTES: usize = 1900;

/// The least and the most erases of a block, and the write amplification, after a life in which all pairs were stored once, and then so many
/// chosen ones once more each.
fn worn(victims: VictimChoice, stores: u32, choose: impl Fn(&mut Random) -> u64) -> (u32, u32, f64) {
    let design = Design { victims, ..kvssd_designs::named("kaml").unwrap() };
    let mut drive = Drive::of(&design, Medium::Ropes, &[]);
    for number in 0..900u64 {
        drive.store(&number.to_be_bytes(), VALUE_BYTES).unwrap();
    }
    let before = drive.engine.flash_counters().programs.total();
    let mut random = Random::new(7);
    for _ in 0..stores {
        drive.store(&choose(&mut random).to_be_bytes(), VALUE_BYTES).unwrap();
    }
    drive.verify_all();
    let programs = drive.engine.flash_counters().programs.total() - before;
    let written_pages = f64::from(stores) / 2.0;
    let (least, most) =
        drive.engine.erases().fold((u32::MAX, 0), |(least, most), erases| (least.min(erases), most.max(erases)));
    (least, most, programs as f64 / written_pages)
}

/// Few of the last third, over and over; two thirds never die.
fn few(random: &mut Random) -> u64 {
    570 + random.below(60)
}

/// Four of five times one of a fifth, which lie among the others.
fn skewed(random: &mut Random) -> u64 {
    let number = random.below(180);
    if random.below(5) < 4 { 5 * number } else { 5 * number + 1 + random.below(4) }
}

#[test]
fn data_that_does_not_die_keeps_no_superblock_from_its_share_of_the_erases() {
    const BOUNDS: [EraseCounts; 3] = [
        EraseCounts { erase_spread_max: 8 },
        EraseCounts { erase_spread_max: 16 },
        EraseCounts { erase_spread_max: 32 },
    ];
    for bound in &BOUNDS {
        let erase_spread_max = bound.erase_spread_max;
        let (least, most, amplification) = worn(VictimChoice::of(bound), 60_000, few);
        assert!(most - least <= erase_spread_max + 8, "{least} to {most} erases with a bound of {erase_spread_max}");
        assert!(amplification < 2.0, "{amplification}");
    }
    let (least, most, _) = worn(VictimChoice::GREEDY, 60_000, few);
    assert!(least <= 1 && most > 40, "greedy: {least} to {most} erases");
}

/// A policy of one's own: what has been full for longest goes first.
#[derive(Clone, Debug)]
struct OldestFirst;

impl VictimPolicy for OldestFirst {
    fn name(&self) -> &'static str {
        "oldest-first"
    }

    fn cost(&self, candidate: &Candidate) -> u64 {
        u64::MAX - candidate.age_pages
    }
}

#[test]
fn a_drive_keeps_its_pairs_whatever_policy_chooses_what_is_collected() {
    let amplifications: Vec<(&str, f64)> = VictimChoice::ALL
        .into_iter()
        .chain([VictimChoice::of(&OldestFirst)])
        .map(|victims| {
            let name = victims.policy().name();
            let (.., amplification) = worn(victims, 10_000, skewed);
            (name, amplification)
        })
        .collect();
    let of = |name: &str| amplifications.iter().find(|(known, _)| *known == name).unwrap().1;
    assert!(of("oldest-first") > 1.1 * of("greedy"), "{amplifications:?}");
    assert!(
        amplifications.iter().all(|(_, amplification)| *amplification > 1.1),
        "pairs were moved: {amplifications:?}"
    );
}
